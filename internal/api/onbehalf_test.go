package api_test

import (
	"fmt"
	"strings"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

const accountBody = `{"accountHolder":"Asha Rao","accountNumber":"50100123456789","ifsc":"HDFC0000053"}`

// TestOnBehalfOfASeller follows a seller who never signs in, from their first sale to a payout.
func TestOnBehalfOfASeller(t *testing.T) {
	h := openFixture(t)
	seller := h.newSeller("17")
	h.earn(user{id: "ext:17"}, "s1", "9000")
	const at = "sellers/ext:17/"
	account := h.marketplace("PUT", at+"bank-account", accountBody).want(t, 200)
	if account.text(t, "data.sellerId") != seller.id || account.text(t, "data.externalId") != "17" || account.text(t, "data.accountNumber") != "****6789" {
		t.Errorf("the account is %s", account.body)
	}
	id := account.text(t, "data.id")
	if again := h.marketplace("PUT", at+"bank-account", accountBody).want(t, 200).text(t, "data.id"); again != id {
		t.Errorf("the same again made %s", again)
	}
	request := func(body, key string) answer {
		return h.do(call{method: "POST", path: "/api/marketplace/" + at + "payouts", token: h.serviceKey, body: body, header: header("Idempotency-Key", key)})
	}
	request(`{"amount":600}`, "early").wantFailure(t, 400, "bank_account_not_verified")
	_, err := h.bank.Resolve(t.Context(), decision.By{Admin: "usr_an_admin"}, bank.ID(id), bank.Verdict{Verified: true})
	must(t, err)
	request(`{"amount":499}`, "k0").wantFailure(t, 422, "validation_failed", "amount")
	request(`{"amount":9001}`, "k1").wantFailure(t, 400, "insufficient_balance")
	made := request(`{"amount":600,"notes":"November"}`, "k2").want(t, 201)
	payoutID := made.text(t, "data.payoutId")
	if made.text(t, "data.source") != "marketplace" || made.text(t, "data.externalId") != "17" {
		t.Errorf("the payout is %s", made.body)
	}
	if again := request(`{"amount":600,"notes":"November"}`, "k2").want(t, 201); again.body != made.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same again is %s", again.body)
	}
	request(`{"amount":700}`, "k2").wantFailure(t, 422, "idempotency_key_reused")
	other, _, err := h.auth.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "other"}, "operator:tests")
	must(t, err)
	byOther := h.do(call{method: "POST", path: "/api/marketplace/" + at + "payouts", token: other, body: `{"amount":700}`, header: header("Idempotency-Key", "k2")}).want(t, 201)
	if byOther.text(t, "data.payoutId") == payoutID {
		t.Error("two service keys share an idempotency key")
	}

	balance := h.marketplace("GET", at+"balance", "").want(t, 200)
	if balance.text(t, "data.sellerId") != seller.id || fmt.Sprint(balance.read(t, "data.availableBalance")) != "7700" {
		t.Errorf("the balance is %s", balance.body)
	}
	list := h.marketplace("GET", at+"payouts?status=processing&limit=1", "").want(t, 200)
	if fmt.Sprint(list.read(t, "data.pagination.totalItems")) != "2" {
		t.Errorf("the payouts are %s", list.body)
	}
	sales := h.marketplace("GET", "sellers/"+seller.id+"/sales", "").want(t, 200)
	if sales.text(t, "data.sales.0.saleId") != "s1" || sales.text(t, "data.sales.0.externalId") != "17" || fmt.Sprint(sales.read(t, "data.pagination.totalItems")) != "1" {
		t.Errorf("the sales are %s", sales.body)
	}

	admin := h.signUp("Ada", auth.Admin)
	detail := h.do(call{method: "GET", path: "/api/payouts/" + payoutID, token: admin.token}).want(t, 200)
	if detail.text(t, "data.source") != "marketplace" {
		t.Errorf("the payout's detail is %s", detail.body)
	}
	service, err := h.auth.AuthenticateService(t.Context(), h.serviceKey)
	must(t, err)
	for subject, want := range map[string]ledger.Type{payoutID: ledger.PayoutRequested, id: ledger.BankAccountAdded} {
		entries, err := h.db.EntriesAbout(t.Context(), seller.id, subject)
		must(t, err)
		if entries[0].Type != want || entries[0].Actor != service.Actor() {
			t.Errorf("%s of %s is by %s, want %s", entries[0].Type, subject, entries[0].Actor, service.Actor())
		}
	}
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %s, %v", fmt.Sprint(report.Findings), err)
	}
}

// TestOnBehalfOfASeller_Rules: what stops the seller stops a server that acts for them.
func TestOnBehalfOfASeller_Rules(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	h.earn(seller, "s1", "2000000")
	h.withBank(seller, "6789")
	request := func(body string) answer {
		return h.do(call{method: "POST", path: "/api/marketplace/sellers/" + seller.id + "/payouts", token: h.serviceKey, body: body, header: header("Idempotency-Key", "k1")})
	}
	// The seller's own key is another one.
	own := h.do(call{method: "POST", path: "/api/payouts/request", token: seller.token, body: `{"amount":600}`, header: header("Idempotency-Key", "k1")}).want(t, 201)
	if made := request(`{"amount":600}`).want(t, 201); made.text(t, "data.payoutId") == own.text(t, "data.payoutId") {
		t.Error("the seller and the marketplace share an idempotency key")
	}
	h.marketplace("POST", "sellers/"+seller.id+"/payouts", fmt.Sprintf(`{"amount":%d}`, proveAbove/100+1)).wantFailure(t, 403, "seller_proof_required")

	// An admin may have money too, and is none of the marketplace's sellers.
	for _, path := range []string{"", "/balance", "/payouts", "/sales", "/explain"} {
		h.marketplace("GET", "sellers/"+admin.id+path, "").wantFailure(t, 404, "seller_not_found")
	}
	h.marketplace("PUT", "sellers/"+admin.id, `{"productsListed":1}`).wantFailure(t, 404, "seller_not_found")

	admins := func(path, body string) {
		t.Helper()
		h.do(call{method: "POST", path: "/api/admin/" + path, token: admin.token, body: body}).want(t, 200)
	}
	admins("sellers/"+seller.id+"/freeze", `{"reason":"Case 1"}`)
	h.marketplace("POST", "sellers/"+seller.id+"/payouts", `{"amount":600}`).wantFailure(t, 409, "payouts_on_hold", "reason")
	admins("sellers/"+seller.id+"/unfreeze", `{"reason":"Case 1"}`)

	// Another account in the place of the verified one puts payouts on hold, and the seller is mailed.
	h.marketplace("PUT", "sellers/"+seller.id+"/bank-account", strings.Replace(accountBody, "6789", "1111", 1)).want(t, 200)
	h.marketplace("POST", "sellers/"+seller.id+"/payouts", `{"amount":600}`).wantFailure(t, 409, "payouts_on_hold", "until")
	mailed := func(of mail.Data) bool {
		for _, d := range h.mailbox.To(seller.email) {
			if fmt.Sprintf("%T", d) == fmt.Sprintf("%T", of) {
				return true
			}
		}
		return false
	}
	if !mailed(mail.BankAccountReplaced{}) {
		t.Error("the seller got no mail about another account")
	}

	// A seller with a second factor confirms accounts themselves, and learns of the attempt.
	h.enrol(seller)
	h.marketplace("PUT", "sellers/"+seller.id+"/bank-account", strings.Replace(accountBody, "6789", "2222", 1)).wantFailure(t, 403, "seller_proof_required")
	if !mailed(mail.BankAccountRefused{}) {
		t.Error("the seller got no mail about the attempt")
	}
	if a, err := h.bank.Account(t.Context(), seller.id); err != nil || a.Last4 != "1111" {
		t.Errorf("the account is %+v, %v", a, err)
	}

	admins("users/"+seller.id+"/access", `{"role":"seller","suspended":true}`)
	h.marketplace("PUT", "sellers/"+seller.id+"/bank-account", accountBody).wantFailure(t, 409, "seller_suspended")
	h.marketplace("POST", "sellers/"+seller.id+"/payouts", `{"amount":600}`).wantFailure(t, 409, "seller_suspended")
	h.marketplace("GET", "sellers/"+seller.id+"/balance", "").want(t, 200)
	h.marketplace("POST", "sellers/"+admin.id+"/payouts", `{"amount":600}`).wantFailure(t, 404, "seller_not_found")
	h.marketplace("PUT", "sellers/"+admin.id+"/bank-account", accountBody).wantFailure(t, 404, "seller_not_found")
}

func TestOnBehalfOfASeller_UnconfirmedAddress(t *testing.T) {
	h := openFixture(t)
	h.newSeller("17")
	h.withAuth(func(o *auth.Options) { o.RequireVerifiedEmail = true })
	h.marketplace("POST", "sellers/ext:17/payouts", `{"amount":600}`).wantFailure(t, 403, "email_not_verified")
}
