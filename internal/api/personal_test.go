package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/sale"
	"bursar/internal/store"
)

func TestExport(t *testing.T) {
	h := openFixture(t)
	seller, other := h.signUp("Asha", auth.Seller), h.signUp("Ravi", auth.Seller)
	h.withBank(seller, "6789")
	h.withBank(other, "1111")
	const sales = 450 // more than two pages
	var want []any
	for i := range sales {
		h.earn(seller, fmt.Sprintf("order-%03d", i), "100")
		want = append([]any{fmt.Sprintf("order-%03d", i)}, want...)
	}
	h.earn(other, "of-another", "1000")
	made := h.request(seller, `{"amount":600,"notes":"Rent"}`).want(t, 201).text(t, "data.payoutId")
	h.request(other, `{"amount":500}`).want(t, 201)
	const adjustments = 401 // more than two pages
	for i := range adjustments {
		_, _, err := h.sales.Adjust(t.Context(), sale.NewAdjustment{
			ID: fmt.Sprintf("ticket-%03d", i), Seller: seller.id, Amount: 1, Reason: "A fee.", By: decision.By{Operator: "ada", Note: "Ticket."},
		})
		must(t, err)
	}
	const changes = 120 // more than a page
	must(t, h.db.Update(t.Context(), func(tx *store.Tx) error {
		for range changes {
			_, err := tx.Append(t.Context(), ledger.Posting{
				Owner: seller.id, At: h.clock.Now(), Type: ledger.AccountProfileChanged, Subject: seller.id, Actor: "user:" + seller.id, Data: "{}",
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))

	a := h.do(call{method: "GET", path: "/api/auth/export", token: seller.token}).want(t, 200)
	for field, want := range map[string]any{
		"data.user.id": seller.id, "data.user.email": "asha@example.com", "data.user.profile.bio": "", "data.user.stats.totalSales": json.Number("450"),
		"data.bankAccount.accountNumber": "****6789", "data.signIns": []any{},
	} {
		if diff := cmp.Diff(want, a.read(t, field)); diff != "" {
			t.Errorf("%s: %s", field, diff)
		}
	}
	if sessions, _ := a.read(t, "data.sessions").([]any); len(sessions) != 2 {
		t.Errorf("sessions %v, want two", sessions)
	}
	payouts, _ := a.read(t, "data.payouts").([]any)
	if len(payouts) != 1 {
		t.Fatalf("payouts %v, want one", payouts)
	}
	if p, _ := payouts[0].(map[string]any); p["id"] != made || p["notes"] != "Rent" || p["sellerId"] != seller.id {
		t.Errorf("payout %v", p)
	}
	var got []any
	exported, _ := a.read(t, "data.sales").([]any)
	for _, s := range exported {
		sale, _ := s.(map[string]any)
		got = append(got, sale["saleId"])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sales: %s", diff)
	}
	adjusted, _ := a.read(t, "data.adjustments").([]any)
	for i, m := range adjusted {
		if m, _ := m.(map[string]any); m["adjustmentId"] != fmt.Sprintf("ticket-%03d", adjustments-1-i) {
			t.Fatalf("adjustment %d is %v", i, m)
		}
	}
	if len(adjusted) != adjustments {
		t.Errorf("%d adjustments, want %d", len(adjusted), adjustments)
	}
	events, _ := a.read(t, "data.securityEvents").([]any)
	numbers := map[any]bool{}
	for _, e := range events {
		event, _ := e.(map[string]any)
		if numbers[event["number"]] = true; event["type"] != "account.profile_changed" {
			t.Errorf("event %v", event)
		}
	}
	if len(numbers) != changes || len(events) != len(numbers) {
		t.Errorf("%d events with %d numbers, want %d", len(events), len(numbers), changes)
	}
	if strings.Contains(a.body, "5010012345") {
		t.Error("the export has the number of the bank account")
	}
	if a.header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment; ") {
		t.Errorf("headers %v", a.header)
	}

	buyer := h.signUp("Bela", auth.Buyer)
	a = h.do(call{method: "GET", path: "/api/auth/export", token: buyer.token}).want(t, 200)
	for field, want := range map[string]any{"data.bankAccount": nil, "data.payouts": []any{}, "data.sales": []any{}} {
		if diff := cmp.Diff(want, a.read(t, field)); diff != "" {
			t.Errorf("a buyer's %s: %s", field, diff)
		}
	}
	admin := h.signUp("Root", auth.Admin)
	a = h.do(call{method: "GET", path: "/api/auth/export", token: admin.token}).want(t, 200)
	if diff := cmp.Diff([]any{}, a.read(t, "data.payouts")); diff != "" {
		t.Errorf("an admin exports the payouts of others: %s", diff)
	}
	if a := h.do(call{method: http.MethodHead, path: "/api/auth/export", token: seller.token}); a.status != 200 || a.body != "" {
		t.Errorf("HEAD is answered with %d: %q", a.status, a.body)
	}
	h.do(call{method: "GET", path: "/api/auth/export"}).wantFailure(t, 401, "invalid_token")
}

func TestDeleteAccount(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	account := h.withBank(seller, "6789")
	remove := func(body string) answer {
		return h.do(call{method: "DELETE", path: "/api/auth/me", token: seller.token, body: body})
	}
	const right = `{"password":"correct horse battery"}`
	h.do(call{method: "PATCH", path: "/api/auth/me", token: seller.token, body: `{"bio":"Pots","website":"https://a.example","avatar":"https://a.example/a.png"}`}).want(t, 200)
	remove(`{}`).wantFailure(t, 400, "invalid_request", "password")
	remove(`{"password":"a-guess-at-it"}`).wantFailure(t, 400, "wrong_password", "password")

	h.earn(seller, "order-1", "600")
	remove(right).wantFailure(t, 409, "money_left") // available
	made := h.request(seller, `{"amount":600}`).want(t, 201).text(t, "data.payoutId")
	remove(right).wantFailure(t, 409, "money_left") // in transit
	h.do(call{method: "POST", path: "/api/payouts/" + made + "/cancel", token: seller.token}).want(t, 200)
	refund := func(body string) {
		h.do(call{method: "POST", path: "/api/marketplace/sales/order-1/refund", token: h.serviceKey, body: body}).want(t, 201)
	}
	refund(`{"refundId":"r1","amount":500}`)
	remove(right).wantFailure(t, 409, "money_left")
	h.do(call{method: "GET", path: "/api/bank-account", token: seller.token}).want(t, 200) // a refusal changes nothing
	refund(`{"refundId":"r2"}`)
	freeze := call{method: "POST", path: "/api/admin/sellers/" + seller.id + "/freeze", token: h.signUp("Ada", auth.Admin).token, body: `{"reason":"A payout was paid twice.","note":"Case 12."}`}
	h.do(freeze).want(t, 200)
	remove(right).wantFailure(t, 409, "case_open")
	freeze.path = strings.Replace(freeze.path, "/freeze", "/unfreeze", 1)
	h.do(freeze).want(t, 200)

	a := h.do(call{method: "DELETE", path: "/api/auth/me", body: right, header: header("Cookie", "bursar="+seller.token, "Content-Type", "application/json")}).want(t, 200)
	if !strings.HasPrefix(a.header.Get("Set-Cookie"), "bursar=;") {
		t.Errorf("the cookie stays: %q", a.header.Values("Set-Cookie"))
	}
	remove(right).wantFailure(t, 401, "invalid_token")
	h.do(call{method: "POST", path: "/api/auth/refresh", body: fmt.Sprintf(`{"refreshToken":%q}`, seller.refreshToken)}).want(t, 401)
	h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"asha@example.com","password":"correct horse battery"}`}).wantFailure(t, 401, "invalid_credentials")
	h.do(call{method: "POST", path: "/api/marketplace/sales", token: h.serviceKey, body: fmt.Sprintf(`{"saleId":"order-2","sellerId":%q,"amount":600}`, seller.id)}).
		wantFailure(t, 404, "seller_not_found")

	u, err := h.auth.FindUser(t.Context(), seller.id)
	must(t, err)
	if u.Name != "Deleted user" || !u.Deleted() || u.PasswordHash != "" || u.Profile != (auth.Profile{}) || u.Role != auth.Buyer || u.Verified {
		t.Errorf("what is left of the user: %+v", u)
	}
	decisions, err := h.db.Decisions(t.Context(), seller.id, 10)
	if err != nil || len(decisions) != 3 || decisions[0].User != seller.id || decisions[0].Note != "Now deleted." {
		t.Errorf("decisions %+v, %v", decisions, err)
	}
	stored, err := h.db.BankAccountByID(t.Context(), bank.ID(account))
	if err != nil || stored.EncryptedNumber != "" || stored.Status != bank.StatusRejected || stored.Current {
		t.Errorf("what is left of the bank account: %+v, %v", stored, err)
	}

	again := h.signUp("Asha", auth.Seller)
	if again.id == seller.id {
		t.Error("the account is the same one")
	}
	admin := h.signUp("Root", auth.Admin)
	if a := h.do(call{method: "GET", path: "/api/payouts/" + made, token: admin.token}).want(t, 200); a.text(t, "data.sellerId") != seller.id {
		t.Errorf("the payout is %s", a.body)
	}
	h.do(call{method: "DELETE", path: "/api/auth/me", token: admin.token, body: right}).wantFailure(t, 409, "admin_account")
	if report, err := h.db.Audit(t.Context(), h.keys); err != nil || !report.Clean() {
		t.Errorf("the audit finds %s, %v", fmt.Sprint(report.Findings), err)
	}
}

// Either the sale is recorded and the account stays, or the account is deleted and the sale finds no seller.
func TestDeleteAccount_BesideASale(t *testing.T) {
	h := openFixture(t)
	for i := range 12 {
		seller := h.signUp(fmt.Sprint("Seller", i), auth.Seller)
		var deleted, recorded answer
		var both sync.WaitGroup
		both.Go(func() {
			deleted = h.do(call{method: "DELETE", path: "/api/auth/me", token: seller.token, body: `{"password":"correct horse battery"}`})
		})
		both.Go(func() {
			body := fmt.Sprintf(`{"saleId":"order-%d","sellerId":%q,"amount":600}`, i, seller.id)
			recorded = h.do(call{method: "POST", path: "/api/marketplace/sales", token: h.serviceKey, body: body})
		})
		both.Wait()
		switch {
		case deleted.status == 200:
			recorded.wantFailure(t, 404, "seller_not_found")
		default:
			deleted.wantFailure(t, 409, "money_left")
			recorded.want(t, 201)
		}
	}
}

// TestDeleteMe_ByProof deletes with a proof in the place of the password, which a user with a second factor needs.
func TestDeleteMe_ByProof(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	remove := func(proof, body string) answer {
		return h.do(call{method: "DELETE", path: "/api/auth/me", token: seller.token, body: body, header: header("Step-Up", proof)})
	}
	remove("nonsense", "").wantFailure(t, 401, "step_up_required", "methods")
	early := h.stepUp(seller, `"action":"account.delete","password":"`+password+`"`).want(t, 200).text(t, "data.proof")
	a, _, _ := h.enrol(seller)
	remove(early, "").wantFailure(t, 401, "step_up_required", "methods") // a password is not enough any more
	remove("", `{"password":"`+password+`"}`).wantFailure(t, 401, "step_up_required", "methods")
	remove(h.stepUp(seller, `"action":"factor.add","code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof"), "").wantFailure(t, 401, "step_up_required", "methods")
	proof := h.stepUp(seller, `"action":"account.delete","code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof")
	h.earn(seller, "s1", "900")
	remove(proof, "").wantFailure(t, 409, "money_left")
	h.do(call{method: "POST", path: "/api/marketplace/sales/s1/refund", token: h.serviceKey, body: `{"refundId":"r1"}`}).want(t, 201)
	remove(proof, "").want(t, 200) // nothing had used it up
	remove(proof, "").wantFailure(t, 401, "invalid_token")
	if told := mailedTo[mail.AccountDeleted](h, seller.email, 1); told.Address != "127.0.0.1" {
		t.Errorf("the mail says %+v", told)
	}
	entries, err := h.db.EntriesAboutBefore(t.Context(), seller.id, seller.id, 0, 10)
	must(t, err)
	deleted := slices.IndexFunc(entries, func(e ledger.Entry) bool { return e.Type == ledger.AccountDeleted })
	if deleted < 0 || strings.Contains(entries[max(deleted, 0)].Data, "127.0.0.1") {
		t.Errorf("the journal has %+v", entries)
	}
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %+v, %v", report.Findings, err)
	}
}

// TestSecurityEvents_OfProfileAndSessions changes the profile and ends sessions, and counts the events that the user sees.
func TestSecurityEvents_OfProfileAndSessions(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller) // who has a session of the registration, and one of the sign-in
	count := func(event string) int {
		t.Helper()
		return strings.Count(h.do(call{method: "GET", path: "/api/auth/security-events?limit=100", token: seller.token}).want(t, 200).body, `"`+event+`"`)
	}
	rename := func(name string) {
		t.Helper()
		h.do(call{method: "PATCH", path: "/api/auth/me", token: seller.token, body: `{"name":"` + name + `"}`}).want(t, 200)
	}
	rename("Asha")
	if n := count("account.profile_changed"); n != 0 {
		t.Errorf("a profile that stays as it is makes %d events", n)
	}
	for i := range 25 {
		rename(fmt.Sprint("Asha ", i))
	}
	if n := count("account.profile_changed"); n != 20 {
		t.Errorf("25 changes make %d events", n)
	}
	h.do(call{method: "DELETE", path: "/api/auth/sessions", token: seller.token}).want(t, 200)
	h.do(call{method: "DELETE", path: "/api/auth/sessions", token: seller.token}).want(t, 200) // there is no other
	if n := count("account.sessions_ended"); n != 1 {
		t.Errorf("ending the other sessions makes %d events", n)
	}
	other, err := h.auth.Authenticate(t.Context(), h.again(seller).token)
	must(t, err)
	end := call{method: "DELETE", path: "/api/auth/sessions/" + other.Session, token: seller.token}
	h.do(end).want(t, 200)
	h.do(end).wantFailure(t, 404, "session_not_found")
	if n := count("account.sessions_ended"); n != 2 {
		t.Errorf("ending a session makes %d events", n-1)
	}
}

// A change that was under way when the account was deleted leaves no name behind.
func TestPatchMe_AfterDeletion(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	p, err := h.auth.Authenticate(t.Context(), seller.token)
	must(t, err)
	h.do(call{method: "DELETE", path: "/api/auth/me", token: seller.token, body: `{"password":"` + password + `"}`}).want(t, 200)
	if err := h.auth.SetProfile(t.Context(), p, auth.ProfileChange{Name: new("Asha Rao")}, auth.Device{}); !errors.Is(err, auth.ErrToken) {
		t.Errorf("the change is answered with %v", err)
	}
	if u, _, err := h.auth.User(t.Context(), seller.id); err != nil || u.Name != "Deleted user" {
		t.Errorf("the user is %+v, %v", u, err)
	}
}
