package api_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/payout"
)

// requestWith asks for a payout with a proof, under a key if there is one.
func (h *fixture) requestWith(u user, amount, proof, key string) answer {
	h.t.Helper()
	headers := header("Step-Up", proof)
	if key != "" {
		headers["Idempotency-Key"] = key
	}
	return h.do(call{method: "POST", path: "/api/payouts/request", token: u.token, body: `{"amount":` + amount + `}`, header: headers})
}

// provePayout gets a proof for a payout with the password.
func (h *fixture) provePayout(u user, amount string) string {
	h.t.Helper()
	return h.stepUp(u, `"action":"payout.request","amount":`+amount+`,"password":"`+password+`"`).want(h.t, 200).text(h.t, "data.proof")
}

// again signs the user in once more.
func (h *fixture) again(u user) user {
	h.t.Helper()
	u.token = h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"` + u.email + `","password":"` + password + `"}`}).want(h.t, 200).text(h.t, "data.token")
	return u
}

func TestPayoutProof_RequiredAboveLimit(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.stepUp(seller, `"action":"payout.request","amount":1500000,"password":"`+password+`"`).wantFailure(t, 400, "bank_account_not_verified")
	h.withBank(seller, "6789")
	h.earn(seller, "s1", "90000000")
	h.request(seller, `{"amount":1000000}`).want(t, 201) // as much as the limit needs none

	refused := h.request(seller, `{"amount":1000000.01}`)
	if f := refused.wantFailure(t, 401, "step_up_required", "methods"); f.Details["methods"] != "password" {
		t.Errorf("it is proven by %s", f.Details["methods"])
	}
	if got := refused.header.Get("WWW-Authenticate"); got != `Bearer error="insufficient_user_authentication"` {
		t.Errorf("WWW-Authenticate is %q", got)
	}
	h.stepUp(seller, `"action":"payout.request","amount":1500000,"password":"wrong"`).wantFailure(t, 400, "wrong_password", "password")
	h.stepUp(seller, `"action":"payout.request","amount":1500000`).wantFailure(t, 422, "validation_failed", "password")
	h.stepUp(seller, `"action":"payout.request","password":"`+password+`"`).wantFailure(t, 400, "invalid_request", "amount")

	proof := h.provePayout(seller, "1500000")
	h.requestWith(seller, "1500000.01", proof, "").wantFailure(t, 401, "step_up_required", "methods") // it is for one amount
	h.requestWith(h.again(seller), "1500000", proof, "").wantFailure(t, 401, "step_up_required", "methods")
	made := h.requestWith(seller, "1500000.00", proof, "k1").want(t, 201)
	if repeat := h.requestWith(seller, "1500000.00", "", "k1").want(t, 201); repeat.body != made.body || repeat.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a repeat without a proof answers %s, the first answered %s", repeat.body, made.body)
	}
	h.requestWith(seller, "1500000", proof, "").wantFailure(t, 401, "step_up_required", "methods") // and for once
	h.requestWith(seller, "1500000", proof, "k2").wantFailure(t, 401, "step_up_required", "methods")
	h.requestWith(seller, "1500000", h.provePayout(seller, "1500000"), "k2").want(t, 201) // the key kept no refusal

	late := h.provePayout(seller, "1500000")
	h.clock.advance(5 * time.Minute)
	h.requestWith(seller, "1500000", late, "").wantFailure(t, 401, "step_up_required", "methods")

	poor := h.provePayout(seller, "99000000")
	h.requestWith(seller, "99000000", poor, "k3").wantFailure(t, 400, "insufficient_balance")
	h.requestWith(seller, "99000000", "", "k3").wantFailure(t, 400, "insufficient_balance") // the stored answer

	before := h.provePayout(seller, "1500000")
	a, _, _ := h.enrol(seller)
	if f := h.requestWith(seller, "1500000", before, "").wantFailure(t, 401, "step_up_required", "methods"); f.Details["methods"] != "totp recovery_code" {
		t.Errorf("it is proven by %s", f.Details["methods"])
	}
	h.stepUp(seller, `"action":"payout.request","amount":1500000,"password":"`+password+`"`).wantFailure(t, 422, "validation_failed", "code")
	coded := h.stepUp(seller, `"action":"payout.request","amount":1500000,"code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof")
	h.requestWith(seller, "1500000", coded, "").want(t, 201)
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %+v, %v", report.Findings, err)
	}
}

func TestPayoutProof_OfAnotherAccount(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.earn(seller, "s1", "90000000")
	put := `{"accountHolder":"Asha Rao","accountNumber":"50100123451111","ifsc":"HDFC0000053"}`
	h.do(call{method: "PUT", path: "/api/bank-account", token: seller.token, body: put}).want(t, 200)
	proof := h.provePayout(seller, "1500000")
	h.withBank(seller, "6789") // replaced in between, before it was verified
	h.requestWith(seller, "1500000", proof, "").wantFailure(t, 401, "step_up_required", "methods")
	h.requestWith(seller, "1500000", h.provePayout(seller, "1500000"), "").want(t, 201)
}

// A session that has ended while its request was under way moves no money.
func TestPayoutProof_AfterLogout(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "s1", "90000000")
	p, err := h.auth.Authenticate(t.Context(), seller.token)
	must(t, err)
	proof := h.provePayout(seller, "1500000")
	h.do(call{method: "POST", path: "/api/auth/logout", token: seller.token}).want(t, 200)
	h.requestWith(seller, "1500000", proof, "").wantFailure(t, 401, "invalid_token")
	_, _, err = h.payouts.Request(t.Context(), payout.Request{Seller: seller.id, Amount: 1_500_000_00, Session: p.Session, Proof: proof})
	if !errors.Is(err, auth.ErrToken) {
		t.Errorf("a session that has ended is answered with %v", err)
	}
}

// Of requests with one proof, each under a key of its own, one is made; under one key, all have its answer.
func TestPayoutProof_AtOnce(t *testing.T) {
	for name, key := range map[string]func(int) string{
		"keys of their own": func(i int) string { return fmt.Sprint("k", i) }, "one key": func(int) string { return "k" }, "no key": func(int) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			h := openFixture(t)
			seller := h.signUp("Asha", auth.Seller)
			h.withBank(seller, "6789")
			h.earn(seller, "s1", "90000000")
			proof := h.provePayout(seller, "1500000")
			answers := make([]answer, 6)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() { answers[i] = h.requestWith(seller, "1500000", proof, key(i)) })
			}
			all.Wait()
			made := 0
			for _, a := range answers {
				switch {
				case a.status == 201:
					made++
				case name == "one key":
					t.Errorf("a repeat is refused: %s", a.body)
				default:
					a.wantFailure(t, 401, "step_up_required", "methods")
				}
			}
			if name != "one key" && made != 1 {
				t.Errorf("%d requests were made", made)
			}
			history := h.do(call{method: "GET", path: "/api/payouts/history", token: seller.token}).want(t, 200)
			if !strings.Contains(history.body, `"totalItems":1,`) {
				t.Errorf("one proof made %s", history.body)
			}
		})
	}
}
