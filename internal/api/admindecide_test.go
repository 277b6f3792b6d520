package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// control tells the sandbox gateway what to do.
func (h *fixture) control(t *testing.T, method, path, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, h.gatewayURL+path, strings.NewReader(body))
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	must(t, response.Body.Close())
	if response.StatusCode >= 300 {
		t.Fatalf("the sandbox answers %s", response.Status)
	}
}

// fault has the gateway answer certain requests otherwise, and clearFaults ends that.
func (h *fixture) fault(t *testing.T, rule string) {
	t.Helper()
	h.control(t, http.MethodPost, "/control/faults", rule)
}

func (h *fixture) clearFaults(t *testing.T) {
	t.Helper()
	h.control(t, http.MethodDelete, "/control/faults", "")
}

// TestDecideAboutPayouts has an admin settle payouts whose outcome nobody knows.
func TestDecideAboutPayouts(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	h.earn(seller, "s1", "9000")
	h.withBank(seller, "0008") // whose webhooks never come
	post := func(by user, id, what, body string) answer {
		return h.do(call{method: "POST", path: "/api/admin/payouts/" + id + "/" + what, token: by.token, body: body})
	}
	show := func(id string) answer {
		return h.do(call{method: "GET", path: "/api/admin/payouts/" + id, token: admin.token}).want(t, 200)
	}
	options := func(id string) (actions []string) {
		for _, o := range show(id).read(t, "data.options").([]any) {
			action := fmt.Sprint(o.(map[string]any)["action"])
			if o.(map[string]any)["from"] != nil {
				action += " later"
			}
			actions = append(actions, action)
		}
		return actions
	}
	wantOptions := func(id string, want ...string) {
		t.Helper()
		if got := options(id); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v can be decided, want %v", got, want)
		}
	}
	unclear := func(amount, when string) string {
		t.Helper()
		id := h.request(seller, `{"amount":`+amount+`}`).want(t, 201).text(t, "data.payoutId")
		h.fault(t, `{"method":"POST","path":"/v1/payouts","cut":true`+when+`}`)
		h.clock.advance(31 * time.Second)
		_ = h.payouts.Step(t.Context(), payout.ID(id)) // its failure is seen in its state
		return id
	}

	lost := unclear("640", "")
	wantOptions(lost, "ask_gateway", "review_payout", "match_transfer")
	const note = `{"note":"Case 4711."}`
	for _, what := range []string{"ask", "review", "match", "resolve", "refund"} {
		post(seller, lost, what, note).wantFailure(t, 403, "forbidden")
		post(user{}, lost, what, note).wantFailure(t, 401, "invalid_token")
		post(admin, "pyt_"+strings.Repeat("0", 24), what, `{"note":"x","gatewayId":"x","discrepancy":"x","noTransferAtGateway":true}`).wantFailure(t, 404, "payout_not_found")
	}
	h.do(call{method: "GET", path: "/api/admin/payouts/" + lost, token: seller.token}).wantFailure(t, 403, "forbidden")
	h.do(call{method: "GET", path: "/api/admin/payouts/nothing", token: admin.token}).wantFailure(t, 404, "payout_not_found")
	post(admin, lost, "review", `{}`).wantFailure(t, 400, "invalid_request", "note")
	post(admin, lost, "review", `{"note":" "}`).wantFailure(t, 422, "validation_failed", "note")
	post(admin, lost, "ask", `{}`).wantFailure(t, 400, "unknown_to_gateway")
	h.fault(t, `{"path":"/v1/payouts*","status":503,"times":9}`)
	post(admin, lost, "ask", `{}`).wantFailure(t, 503, "gateway_unclear")
	h.clearFaults(t)
	post(admin, lost, "refund", `{"note":"x","noTransferAtGateway":true}`).wantFailure(t, 400, "payout_moved_on")
	if got := post(admin, lost, "review", note).want(t, 200).text(t, "data.state"); got != "manual_review" {
		t.Errorf("the payout is %s", got)
	}
	post(admin, lost, "review", note).wantFailure(t, 400, "payout_moved_on")
	wantOptions(lost, "ask_gateway", "match_transfer", "refund_payout later")
	post(admin, lost, "refund", `{"note":"x"}`).wantFailure(t, 400, "invalid_request", "noTransferAtGateway")
	post(admin, lost, "refund", `{"note":"x","noTransferAtGateway":false}`).wantFailure(t, 422, "validation_failed", "noTransferAtGateway")
	post(admin, lost, "refund", `{"note":"x","noTransferAtGateway":true}`).wantFailure(t, 400, "refund_too_early")
	h.clock.advance(time.Hour)
	wantOptions(lost, "ask_gateway", "match_transfer", "refund_payout")
	if got := post(admin, lost, "refund", `{"note":"x","noTransferAtGateway":true}`).want(t, 200).text(t, "data.status"); got != "failed" {
		t.Errorf("the payout is %s", got)
	}
	all := show(lost)
	for _, want := range []string{
		`"sellerName":"Asha"`, `"action":"refund_payout"`, `"action":"review_payout"`, `"type":"payout.failed"`, `"to":"manual_review"`, `"tampered":false`,
		`"moved":{"pending":0,"available":640,"inTransit":-640,"sales":0,"gateway":0,"fees":0}`,
	} {
		if !strings.Contains(all.body, want) {
			t.Errorf("the payout lacks %s: %s", want, all.body)
		}
	}

	made := unclear("650", `,"when":"after"`)
	post(admin, made, "review", note).want(t, 200)
	post(admin, made, "match", `{"note":"x","gatewayId":"../contacts"}`).wantFailure(t, 422, "validation_failed", "gatewayId")
	post(admin, made, "match", `{"note":"x","gatewayId":"pout_00000000000zzz"}`).wantFailure(t, 400, "unknown_to_gateway")
	if got := post(admin, made, "ask", note).want(t, 200).text(t, "data.state"); got != "submitted" && got != "completed" {
		t.Errorf("the payout is %s", got)
	}
	other := unclear("660", `,"when":"after"`)
	theirs := show(made).text(t, "data.gatewayPayoutId")
	post(admin, other, "match", `{"note":"x","gatewayId":"`+theirs+`"}`).wantFailure(t, 400, "other_transfer")

	disputed := h.request(seller, `{"amount":670}`).want(t, 201).text(t, "data.payoutId")
	h.withDiscrepancy(t, payout.ID(disputed), "it says otherwise")
	post(admin, disputed, "resolve", `{"note":"x","discrepancy":"it says nothing"}`).wantFailure(t, 400, "discrepancy_changed")
	post(admin, disputed, "resolve", `{"note":"x","discrepancy":"it says otherwise"}`).want(t, 200)
	if show(disputed).read(t, "data.discrepancy") != nil {
		t.Error("the discrepancy is still there")
	}
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %s, %v", fmt.Sprint(report.Findings), err)
	}
}

// withDiscrepancy records a discrepancy on a payout.
func (h *fixture) withDiscrepancy(t *testing.T, id payout.ID, says string) {
	t.Helper()
	was, err := h.db.Payout(t.Context(), id)
	must(t, err)
	p := was
	p.Discrepancy = says
	data, err := ledger.Patch(was, p)
	must(t, err)
	must(t, h.db.Payouts().InTx(t.Context(), func(tx payout.Tx) error {
		if _, err := tx.Append(t.Context(), ledger.Posting{
			Owner: p.Seller, At: h.clock.Now(), Type: ledger.DiscrepancyFound, Subject: string(p.ID), Actor: "gateway", Data: data,
		}); err != nil {
			return err
		}
		_, err := tx.UpdatePayout(t.Context(), p.State, p)
		return err
	}))
}

// TestUnmatchedTransfers lists transfers that match no payout, and resolves one.
func TestUnmatchedTransfers(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	const path = "/api/admin/unmatched-transfers"
	get := func(path string) answer { return h.do(call{method: "GET", path: path, token: admin.token}) }
	if got := get(path).want(t, 200).body; !strings.Contains(got, `"transfers":[]`) {
		t.Errorf("none are %s", got)
	}
	for i, of := range []string{seller.id, "usr_gone"} {
		must(t, h.db.Payouts().InTx(t.Context(), func(tx payout.Tx) error {
			_, err := tx.RecordUnmatchedTransfer(t.Context(), payout.UnmatchedTransfer{Gateway: "paper", FoundAt: h.clock.Now().Add(time.Duration(i) * time.Second), Why: "nobody knows whose", Transfer: gateway.Transfer{
				Report: gateway.Report{GatewayID: fmt.Sprint("pout_", i), Reference: "pyt_lost", Amount: 700_50, Currency: []string{"", "INR"}[i], Progress: gateway.Paid, UTR: []string{"", "627812345678"}[i]}, Order: gateway.Order{Seller: of},
			}})
			return err
		}))
	}
	list := get(path).want(t, 200)
	for i, want := range map[string]any{
		"0.id": "paper:pout_0", "0.gateway": "paper", "0.gatewayPayoutId": "pout_0", "0.sellerName": "Asha", "1.sellerName": nil, "1.why": "nobody knows whose", "1.madeAt": nil,
		"0.currency": nil, "0.utr": nil, "1.currency": "INR", "1.utr": "627812345678",
	} {
		if got := list.read(t, "data.transfers."+i); got != want {
			t.Errorf("%s is %v", i, got)
		}
	}
	if got := fmt.Sprint(get(path+"/paper:pout_1").want(t, 200).read(t, "data.amount")); got != "700.5" {
		t.Errorf("the amount is %s", got)
	}
	get(path+"/paper:pout_2").wantFailure(t, 404, "unmatched_transfer_not_found")
	get(path+"/%00").wantFailure(t, 404, "unmatched_transfer_not_found")
	resolve := func(by user, id, body string) answer {
		return h.do(call{method: "POST", path: path + "/" + id + "/resolve", token: by.token, body: body})
	}
	resolve(seller, "paper:pout_1", `{"note":"x"}`).wantFailure(t, 403, "forbidden")
	resolve(admin, "paper:pout_1", `{}`).wantFailure(t, 400, "invalid_request", "note")
	resolve(admin, "paper:pout_1", `{"note":"Paid by hand."}`).want(t, 200)
	resolve(admin, "paper:pout_1", `{"note":"Paid by hand."}`).wantFailure(t, 404, "unmatched_transfer_not_found")
	get(path+"/paper:pout_1").wantFailure(t, 404, "unmatched_transfer_not_found")
	if got := get("/api/admin/decisions?subject=paper:pout_1").want(t, 200).text(t, "data.decisions.0.action"); got != "resolve_unmatched_transfer" {
		t.Errorf("decided was %s", got)
	}
}
