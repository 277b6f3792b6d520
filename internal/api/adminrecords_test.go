package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/payout"
)

// TestAdminRecords reads what admins see of users, accounts, mails and the service itself.
func TestAdminRecords(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	h.earn(seller, "s1", "9000")
	account := h.withBank(seller, "6789")
	h.request(seller, `{"amount":600}`).want(t, 201)
	get := func(path string) answer {
		return h.do(call{method: "GET", path: "/api/admin/" + path, token: admin.token})
	}
	for path, want := range map[string][]string{
		"bank-accounts/" + account: {`"accountNumber":"****6789"`, `"sellerName":"Asha"`, `"current":true`, `"action":"accept_bank_account"`},
		"users?q=asha":             {`"email":"asha@example.com"`, `"id":"` + seller.id + `"`},
		"users?q=" + admin.id:      {`"role":"admin"`},
		"users/" + seller.id:       {`"balance":{"available":8400,"pending":0,"inTransit":600}`, `"totalEarnings":9000`, `"id":"` + account + `"`, `"frozen":false`, `"holdUntil":null`},
		"users/" + admin.id:        {`"bankAccount":null`},
		"differences":              {`"differences":[]`},
		"reconciliation":           {`"reachedAt":null`, `"runs":[]`},
		"ledger/audit":             {`"last":null`},
		"health":                   {`"name":"payouts","state":"working"`, `"name":"sales","state":"stalled"`, `"lastError":"no connection"`, `"waitedMs":1000`, `"startupReconciled":true`},
		"mails":                    {`"kind":"verify-email"`, `"to":"a…@example.com"`, `"state":"queued"`},
	} {
		body := get(path).want(t, 200).body
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s lacks %s: %s", path, w, body)
			}
		}
		if strings.Contains(body, "50100123456789") {
			t.Errorf("%s tells the account number", path)
		}
		h.do(call{method: "GET", path: "/api/admin/" + path, token: seller.token}).wantFailure(t, 403, "forbidden")
		h.do(call{method: "GET", path: "/api/admin/" + path}).wantFailure(t, 401, "invalid_token")
	}
	if got := len(get("users?limit=1").want(t, 200).read(t, "data.users").([]any)); got != 1 {
		t.Errorf("a page of one has %d", got)
	}
	for path, code := range map[string]string{
		"bank-accounts/nothing": "bank_account_not_found", "bank-accounts/bka_" + strings.Repeat("0", 24): "bank_account_not_found",
		"users/nobody": "user_not_found", "users/usr_" + strings.Repeat("0", 24): "user_not_found",
		"differences/x": "difference_not_found", "differences/%00": "difference_not_found", "differences/dif_" + strings.Repeat("0", 24): "difference_not_found",
		"mails/x": "mail_not_found", "mails/mai_" + strings.Repeat("0", 24): "mail_not_found",
	} {
		get(path).wantFailure(t, 404, code)
	}
	for _, path := range []string{"users", "differences", "reconciliation", "mails"} {
		get(path+"?limit=101").wantFailure(t, 422, "validation_failed", "limit")
	}
	mailID := get("mails?limit=1").want(t, 200).text(t, "data.mails.0.id")
	if got := get("mails/"+mailID).want(t, 200); got.text(t, "data.id") != mailID || got.read(t, "data.body") != nil {
		t.Errorf("the mail is %s", got.body)
	}

	begun := h.do(call{method: "POST", path: "/api/admin/ledger/audit", token: seller.token})
	begun.wantFailure(t, 403, "forbidden")
}

// TestAuditByAPI runs the audit, and finds what was changed.
func TestAuditByAPI(t *testing.T) {
	jobs := make(chan func(), 5)
	h := openFixture(t)
	h.options.Audits.Background = func(job func(context.Context)) { jobs <- func() { job(t.Context()) } }
	admin := h.signUp("Ada", auth.Admin)
	run := func() answer {
		return h.do(call{method: "POST", path: "/api/admin/ledger/audit", token: admin.token}).want(t, 202)
	}
	show := func() answer {
		return h.do(call{method: "GET", path: "/api/admin/ledger/audit", token: admin.token}).want(t, 200)
	}
	run()
	h.clock.advance(time.Minute)
	if got := run(); got.read(t, "data.running") != true || len(jobs) != 1 {
		t.Errorf("the second request begins another: %s", got.body)
	}
	(<-jobs)()
	if got := show(); got.read(t, "data.running") != false || got.read(t, "data.last.clean") != true || got.read(t, "data.last.finished") != true {
		t.Errorf("the audit is %s", got.body)
	}
	seller := h.signUp("Asha", auth.Seller)
	h.earn(seller, "s1", "9000")
	h.withBank(seller, "6789")
	id := h.request(seller, `{"amount":600}`).want(t, 201).text(t, "data.payoutId")
	h.withDiscrepancy(t, payout.ID(id), "it says otherwise") // which the audit finds
	run()
	(<-jobs)()
	got := show()
	if got.read(t, "data.last.clean") != false || !strings.Contains(got.body, `"passed":false`) || !strings.Contains(got.body, id) {
		t.Errorf("the audit finds %s", got.body)
	}
}

// TestDifferencesByAPI reconciles a day on which the gateway took the money of a payout twice.
func TestDifferencesByAPI(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	h.earn(seller, "s1", "9000")
	h.withBank(seller, "6789")
	id := h.request(seller, `{"amount":600}`).want(t, 201).text(t, "data.payoutId")
	h.work(t, id, payout.StatusCompleted)
	h.control(t, "POST", "/control/statement", fmt.Sprintf(`{"change":"double","line":%q}`, id))
	h.clock.advance(2 * time.Minute)
	today, err := h.differences.Period("today", "today")
	must(t, err)
	_, err = h.differences.Reconcile(t.Context(), today, true)
	must(t, err)

	get := func(path string) answer {
		return h.do(call{method: "GET", path: "/api/admin/" + path, token: admin.token}).want(t, 200)
	}
	list := get("differences")
	if len(list.read(t, "data.differences").([]any)) != 1 || list.text(t, "data.differences.0.kind") != "paid-twice" || list.text(t, "data.differences.0.payoutId") != id {
		t.Fatalf("found %s", list.body)
	}
	difference, detail := list.text(t, "data.differences.0.id"), list.text(t, "data.differences.0.detail")
	shown := get("differences/" + difference)
	if len(shown.read(t, "data.lines").([]any)) != 2 || shown.text(t, "data.payout.sellerName") != "Asha" {
		t.Errorf("the evidence is %s", shown.body)
	}
	if got := get("reconciliation"); fmt.Sprint(got.read(t, "data.runs.0.open")) != "1" || fmt.Sprint(got.read(t, "data.runs.0.unexplained")) != "0" {
		t.Errorf("the run is %s", got.body)
	}
	resolve := func(by user, body string) answer {
		return h.do(call{method: "POST", path: "/api/admin/differences/" + difference + "/resolve", token: by.token, body: body})
	}
	body := fmt.Sprintf(`{"detail":%q,"note":"Called back, case 4711."}`, detail)
	resolve(seller, body).wantFailure(t, 403, "forbidden")
	resolve(admin, `{}`).wantFailure(t, 400, "invalid_request", "detail", "note")
	resolve(admin, `{"detail":"another","note":"x"}`).wantFailure(t, 400, "difference_changed")
	resolve(admin, body).want(t, 200)
	resolve(admin, body).wantFailure(t, 400, "difference_changed")
	if len(get("differences").read(t, "data.differences").([]any)) != 0 || get("differences/"+difference).read(t, "data.resolvedAt") == nil {
		t.Error("the difference is still open")
	}
	if got := get("differences/"+difference).text(t, "data.decisions.0.action"); got != "resolve_difference" {
		t.Errorf("decided was %s", got)
	}
}
