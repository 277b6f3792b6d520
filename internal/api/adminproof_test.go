package api_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
)

// TestAdminProof_RequiredForMoneyAndAccess calls each admin route that moves money or access, as an admin with a second
// factor, and wants it refused for want of a proof.
func TestAdminProof_RequiredForMoneyAndAccess(t *testing.T) {
	h := openFixture(t)
	admin := h.signUp("Ada", auth.Admin)
	h.enrol(admin)
	ids := strings.NewReplacer("{accountId}", "bka_"+strings.Repeat("0", 24), "{userId}", admin.id, "{sellerId}", admin.id, "{payoutId}", "pyt_"+strings.Repeat("0", 24), "{gatewayId}", "pout_1", "{keyId}", "key_"+strings.Repeat("0", 24))
	called := 0
	harmless := []string{"addNote", "claimTask", "releaseTask", "askGateway", "askAboutPayout", "reviewPayout", "resolveDiscrepancy", "resolveDifference", "beginAudit"} // they move neither money nor access
	for path, item := range h.spec.doc.Paths.Map() {
		if !strings.HasPrefix(path, "/api/admin/") {
			continue
		}
		for method, operation := range item.Operations() {
			if method == http.MethodGet || slices.Contains(harmless, operation.OperationID) {
				continue
			}
			called++
			body := []byte("")
			if operation.RequestBody != nil {
				var err error
				body, err = json.Marshal(operation.RequestBody.Value.Content.Get("application/json").Example)
				must(t, err)
			}
			h.do(call{method: method, path: ids.Replace(path), token: admin.token, body: string(body)}).wantFailure(t, 401, "step_up_required", "methods")
		}
	}
	if called < 3 {
		t.Errorf("only %d routes were called", called)
	}
}

func TestAdminProof(t *testing.T) {
	h := openFixture(t)
	admin, seller, other := h.signUp("Ada", auth.Admin), h.signUp("Asha", auth.Seller), h.signUp("Ravi", auth.Seller)
	h.earn(seller, "s1", "9000")
	h.withBank(seller, "6789")
	first := h.request(seller, `{"amount":600}`).want(t, 201).text(t, "data.payoutId")
	second := h.request(seller, `{"amount":700}`).want(t, 201).text(t, "data.payoutId")
	account := h.do(call{
		method: "PUT", path: "/api/bank-account", token: other.token,
		body: `{"accountHolder":"Ravi Rao","accountNumber":"50100123451111","ifsc":"HDFC0000053"}`,
	}).want(t, 200).text(t, "data.id")
	access := func(u, proof string) answer {
		return h.do(call{method: "POST", path: "/api/admin/users/" + u + "/access", token: admin.token, body: `{"role":"seller","suspended":true}`, header: header("Step-Up", proof)})
	}
	access(seller.id, "").want(t, 200) // an admin without a second factor needs none
	a, _, _ := h.enrol(admin)
	prove := func(action, subject string) string {
		t.Helper()
		return h.stepUp(admin, `"action":"`+action+`","subject":"`+subject+`","code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof")
	}
	h.stepUp(admin, `"action":"admin.everything","subject":"x","code":"1"`).wantFailure(t, 422, "validation_failed", "action")
	h.stepUp(admin, `"action":"admin.ask_gateway","subject":"x","code":"1"`).wantFailure(t, 422, "validation_failed", "action")
	h.stepUp(admin, `"action":"admin.change_access","code":"123456"`).wantFailure(t, 400, "invalid_request", "subject")
	h.stepUp(other, `"action":"admin.change_access","subject":"`+seller.id+`","password":"`+password+`"`).wantFailure(t, 403, "forbidden")

	proof := prove("admin.change_access", other.id)
	access(seller.id, proof).wantFailure(t, 401, "step_up_required", "methods") // it is for one user
	access(other.id, proof).want(t, 200)
	access(other.id, proof).wantFailure(t, 401, "step_up_required", "methods")

	verify := func(verified, proof string) answer {
		return h.do(call{
			method: "POST", path: "/api/admin/bank-accounts/" + account + "/verification", token: admin.token, body: `{"verified":` + verified + `,"reason":"No."}`,
			header: header("Step-Up", proof),
		})
	}
	reject := prove("admin.reject_bank_account", account)
	verify("true", reject).wantFailure(t, 401, "step_up_required", "methods")
	verify("false", reject).want(t, 200)

	cancel := func(u user, id, key, proof string) answer {
		headers := header("Step-Up", proof)
		if key != "" {
			headers["Idempotency-Key"] = key
		}
		return h.do(call{method: "POST", path: "/api/payouts/" + id + "/cancel", token: u.token, header: headers})
	}
	cancel(admin, first, "k1", "").wantFailure(t, 401, "step_up_required", "methods")
	proof = prove("admin.cancel_payout", first)
	cancel(admin, second, "k1", proof).wantFailure(t, 401, "step_up_required", "methods")
	done := cancel(admin, first, "k1", proof).want(t, 200)
	if again := cancel(admin, first, "k1", "").want(t, 200); again.body != done.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a repeat without a proof answers %s", again.body)
	}
	cancel(admin, second, "k1", "").wantFailure(t, 422, "idempotency_key_reused")
	cancel(admin, second, "", proof).wantFailure(t, 401, "step_up_required", "methods")
	cancel(admin, "pyt_"+strings.Repeat("0", 24), "", "").wantFailure(t, 404, "payout_not_found")
}

// Of decisions with one proof at the same time, one is carried out.
func TestAdminProof_AtOnce(t *testing.T) {
	h := openFixture(t)
	admin := h.signUp("Ada", auth.Admin)
	a, _, _ := h.enrol(admin)
	p, err := h.auth.Authenticate(t.Context(), admin.token)
	must(t, err)
	p.Proof = h.stepUp(admin, `"action":"admin.lift_hold","subject":"x","code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof")
	var used atomic.Int64
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			switch err := h.auth.ProveDecision(t.Context(), p, decision.LiftHold, "x"); {
			case err == nil:
				used.Add(1)
			case !errors.Is(err, auth.ErrStepUp):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if used.Load() != 1 {
		t.Errorf("one proof was used %d times", used.Load())
	}
	h.do(call{method: "POST", path: "/api/auth/logout", token: admin.token}).want(t, 200)
	if err := h.auth.ProveDecision(t.Context(), p, decision.LiftHold, "x"); !errors.Is(err, auth.ErrToken) {
		t.Errorf("a session that has ended is answered with %v", err)
	}
}

func TestAdminFactorRequired(t *testing.T) {
	h := openFixture(t)
	h.withAuth(func(o *auth.Options) { o.AdminFactor = true })
	admin, seller := h.signUp("Ada", auth.Admin), h.signUp("Asha", auth.Seller)
	h.do(call{method: "GET", path: "/api/payouts/history", token: seller.token}).want(t, 200)
	for _, path := range []string{"/api/payouts/history", "/api/payouts/balance", "/api/admin/users/" + seller.id + "/security-events"} {
		h.do(call{method: "GET", path: path, token: admin.token}).wantFailure(t, 403, "admin_factor_required")
	}
	h.do(call{method: "POST", path: "/api/admin/sellers/" + seller.id + "/lift-hold", token: admin.token, body: `{"note":"x"}`}).wantFailure(t, 403, "admin_factor_required")
	h.do(call{method: "GET", path: "/api/auth/me", token: admin.token}).want(t, 200)
	h.clock.advance(time.Minute)
	h.enrol(admin)
	h.do(call{method: "GET", path: "/api/payouts/history", token: admin.token}).want(t, 200)
}
