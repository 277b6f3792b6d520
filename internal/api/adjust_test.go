package api_test

import (
	"fmt"
	"strings"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/proof"
)

// adjust asks for an adjustment as an admin.
func (h *fixture) adjust(admin user, seller, body string) answer {
	return h.do(call{method: "POST", path: "/api/admin/sellers/" + seller + "/adjustments", token: admin.token, body: body})
}

// TestAdjustments corrects a seller's balance up and down, and reads what both sides see of it.
func TestAdjustments(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	h.earn(seller, "s1", "9000")
	h.withBank(seller, "6789")
	const up = `{"adjustmentId":"ticket-1","amount":50.25,"reason":"A fee was charged twice.","note":"Case 4711."}`
	first := h.adjust(admin, seller.id, up).want(t, 201)
	for _, part := range []string{
		`"adjustmentId":"ticket-1"`, `"amount":50.25`, `"availableBalance":9050.25`, `"reason":"A fee was charged twice."`, `"note":"Case 4711."`,
		`"sellerId":"` + seller.id + `"`, `"createdBy":"` + admin.id + `"`,
	} {
		if !strings.Contains(first.body, part) {
			t.Errorf("the answer lacks %s: %s", part, first.body)
		}
	}
	if again := h.adjust(admin, seller.id, up).want(t, 200); again.body != first.body {
		t.Errorf("the repeat is answered with %s, and was with %s", again.body, first.body)
	}
	h.adjust(admin, seller.id, strings.Replace(up, "50.25", "50.26", 1)).wantFailure(t, 409, "adjustment_conflict")

	waits := h.request(seller, `{"amount":9000}`).want(t, 201).text(t, "data.payoutId")
	down := h.adjust(admin, seller.id, `{"adjustmentId":"ticket-2","amount":-1000,"reason":"A sale was recorded twice.","note":"Case 4712."}`).want(t, 201)
	if !strings.Contains(down.body, `"availableBalance":-949.75`) {
		t.Errorf("beside a payout that waits, the answer is %s", down.body)
	}
	h.request(seller, `{"amount":600}`).wantFailure(t, 400, "insufficient_balance")
	h.do(call{method: "POST", path: "/api/payouts/" + waits + "/cancel", token: seller.token}).want(t, 200)
	balance := h.do(call{method: "GET", path: "/api/payouts/balance", token: seller.token}).want(t, 200).body
	if !strings.Contains(balance, `"availableBalance":8050.25`) || !strings.Contains(balance, `"totalEarnings":8050.25`) || !strings.Contains(balance, `"thisMonth":9000`) {
		t.Errorf("the balance is %s", balance)
	}

	own := h.do(call{method: "GET", path: "/api/payouts/adjustments?limit=1", token: seller.token}).want(t, 200)
	if !strings.Contains(own.body, "A sale was recorded twice.") || strings.Contains(own.body, "Case 47") || strings.Contains(own.body, admin.id) {
		t.Errorf("the seller reads %s", own.body)
	}
	next := h.do(call{method: "GET", path: "/api/payouts/adjustments?before=" + fmt.Sprint(own.read(t, "data.next")), token: seller.token}).want(t, 200)
	if !strings.Contains(next.body, "ticket-1") || strings.Contains(next.body, "ticket-2") || strings.Contains(next.body, "next") {
		t.Errorf("on the next page the seller reads %s", next.body)
	}
	all := h.do(call{method: "GET", path: "/api/admin/sellers/" + seller.id + "/adjustments", token: admin.token}).want(t, 200).body
	if !strings.Contains(all, "Case 4711.") || !strings.Contains(all, "Case 4712.") || strings.Index(all, "ticket-2") > strings.Index(all, "ticket-1") {
		t.Errorf("the admin reads %s", all)
	}
	keys, err := proof.ParseKeys([]byte(h.do(call{method: "GET", path: "/.well-known/jwks.json"}).want(t, 200).body))
	must(t, err)
	for _, f := range []string{"json", "csv"} {
		statement := h.do(call{method: "GET", path: "/api/payouts/statement?from=2026-11-20&to=2026-11-30&format=" + f, token: seller.token}).want(t, 200)
		if v, err := proof.Verify(strings.NewReader(statement.body), keys); err != nil || len(v.Problems) > 0 ||
			!strings.Contains(statement.body, "Balance adjusted (ticket-1)") || strings.Contains(statement.body, "Case 47") {
			t.Errorf("the statement proves %+v, %v:\n%s", v, err, statement.body)
		}
	}
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %v, %v", report.Findings, err)
	}
}

// TestAdjustments_ByServiceKey has the marketplace's server correct a balance.
func TestAdjustments_ByServiceKey(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	h.earn(seller, "s1", "9000")
	external := h.do(call{
		method: "POST", path: "/api/marketplace/sellers", token: h.serviceKey, body: `{"externalId":"shop-7/é","name":"Bela","email":"bela@example.com"}`,
	}).want(t, 201).text(t, "data.sellerId")
	byKey := func(key, name, body string) answer {
		return h.do(call{method: "POST", path: "/api/admin/sellers/" + name + "/adjustments", token: key, body: body})
	}
	const body = `{"adjustmentId":"ticket-1","amount":50.25,"reason":"A fee was charged twice.","note":"Case 4711."}`
	writing, stored, err := h.auth.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "writing", Scopes: []string{string(auth.ScopeSellersWrite)}}, "operator:tests")
	must(t, err)
	wanting, _, err := h.auth.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "wanting", Scopes: []string{string(auth.ScopeSalesWrite), string(auth.ScopeSellersRead)}}, "operator:tests")
	must(t, err)
	first := byKey(writing, seller.id, body).want(t, 201)
	if !strings.Contains(first.body, `"createdBy":"key:`+stored.ID+`"`) || !strings.Contains(first.body, `"availableBalance":9050.25`) {
		t.Errorf("the answer is %s", first.body)
	}
	if again := byKey(writing, seller.id, body).want(t, 200); again.body != first.body {
		t.Errorf("the repeat is answered with %s, and was with %s", again.body, first.body)
	}
	header := h.do(call{method: "POST", path: "/api/admin/sellers/" + seller.id + "/adjustments", header: header("X-Api-Key", writing), body: body})
	if header.want(t, 200).body != first.body {
		t.Errorf("with the key in its own header the answer is %s", header.body)
	}
	if byAdmin := h.adjust(admin, seller.id, body).want(t, 200); byAdmin.body != first.body {
		t.Errorf("the admin's repeat is answered with %s", byAdmin.body)
	}
	byKey(writing, seller.id, strings.Replace(body, "50.25", "50.26", 1)).wantFailure(t, 409, "adjustment_conflict")
	byKey(wanting, seller.id, body).wantFailure(t, 403, "scope_missing", "scope")
	byKey("bsk_"+strings.Repeat("0", 40), seller.id, body).wantFailure(t, 401, "invalid_service_key")
	byKey(writing, admin.id, body).wantFailure(t, 404, "seller_not_found")
	byKey(writing, "ext:nobody", body).wantFailure(t, 404, "seller_not_found")
	byKey(writing, "nobody", body).wantFailure(t, 404, "user_not_found")

	for i, caller := range []string{writing, admin.token} {
		named := strings.Replace(body, "ticket-1", fmt.Sprint("ext-", i), 1)
		if got := byKey(caller, "ext:shop-7%2F%C3%A9", named).want(t, 201); !strings.Contains(got.body, `"sellerId":"`+external+`"`) {
			t.Errorf("by the marketplace's id the answer is %s", got.body)
		}
	}
	own := h.do(call{method: "GET", path: "/api/payouts/adjustments", token: seller.token}).want(t, 200).body
	if !strings.Contains(own, "A fee was charged twice.") || strings.Contains(own, "Case 47") || strings.Contains(own, "key") {
		t.Errorf("the seller reads %s", own)
	}
	all := h.do(call{method: "GET", path: "/api/admin/sellers/" + seller.id + "/adjustments", token: admin.token}).want(t, 200).body
	decisions := h.do(call{method: "GET", path: "/api/admin/decisions", token: admin.token}).want(t, 200).body
	if !strings.Contains(all, `"createdBy":"key:`+stored.ID+`"`) || !strings.Contains(decisions, stored.ID) {
		t.Errorf("the admin reads %s and %s", all, decisions)
	}
	if b, err := h.db.Balance(t.Context(), seller.id); err != nil || b.Available != 9050_25 {
		t.Errorf("the balance is %+v, %v", b, err)
	}
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %v, %v", report.Findings, err)
	}
}

// TestAdjustments_WhoeverTheSellerIs adjusts the balance of sellers who are frozen or suspended, and of nobody else.
func TestAdjustments_WhoeverTheSellerIs(t *testing.T) {
	h := openFixture(t)
	seller, buyer, admin := h.signUp("Asha", auth.Seller), h.signUp("Ben", auth.Buyer), h.signUp("Ada", auth.Admin)
	const body = `{"adjustmentId":"1","amount":50,"reason":"A fee.","note":"Case 4711."}`
	h.adjust(seller, seller.id, body).wantFailure(t, 403, "forbidden")
	h.adjust(admin, buyer.id, body).wantFailure(t, 404, "seller_not_found")
	h.adjust(admin, "nobody", body).wantFailure(t, 404, "user_not_found")
	h.adjust(admin, "usr_"+strings.Repeat("0", 24), body).wantFailure(t, 404, "seller_not_found")
	h.do(call{method: "GET", path: "/api/admin/sellers/nobody/adjustments", token: admin.token}).wantFailure(t, 404, "user_not_found")
	h.do(call{method: "GET", path: "/api/admin/sellers/" + seller.id + "/adjustments", token: seller.token}).wantFailure(t, 403, "forbidden")
	h.do(call{method: "GET", path: "/api/payouts/adjustments", token: buyer.token}).wantFailure(t, 403, "forbidden")

	decide := func(path, body string) {
		t.Helper()
		h.do(call{method: "POST", path: "/api/admin/" + path, token: admin.token, body: body}).want(t, 200)
	}
	decide("sellers/"+seller.id+"/freeze", `{"reason":"Case 4711."}`)
	decide("payouts/pause", `{"reason":"Case 4711."}`)
	h.adjust(admin, seller.id, body).want(t, 201)
	decide("users/"+seller.id+"/access", `{"role":"seller","suspended":true}`)
	h.adjust(admin, seller.id, strings.Replace(body, `"1"`, `"2"`, 1)).want(t, 201)
	if b, err := h.db.Balance(t.Context(), seller.id); err != nil || b.Available != 100_00 || !b.Frozen {
		t.Errorf("the balance is %+v, %v", b, err)
	}
	if deleted := h.do(call{method: "DELETE", path: "/api/auth/me", token: buyer.token, body: `{"password":"` + password + `"}`}); deleted.status != 200 {
		t.Fatalf("the deletion is answered with %d: %s", deleted.status, deleted.body)
	}
	h.adjust(admin, buyer.id, body).wantFailure(t, 404, "seller_not_found")
}

func TestAdjustments_Fields(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	body := func(id, amount, reason, note string) string {
		return fmt.Sprintf(`{"adjustmentId":%s,"amount":%s,"reason":%s,"note":%s}`, id, amount, reason, note)
	}
	for _, tt := range []struct {
		body   string
		status int
		code   string
		fields []string
	}{
		{`{}`, 400, "invalid_request", []string{"adjustmentId", "amount", "reason", "note"}},
		{body(`"1"`, `"50"`, `"r"`, `"n"`), 400, "invalid_request", []string{"amount"}},
		{body(`"1"`, `0`, `"r"`, `"n"`), 422, "validation_failed", []string{"amount"}},
		{body(`"1"`, `-0.0`, `"r"`, `"n"`), 422, "validation_failed", []string{"amount"}},
		{body(`"1"`, `-0.005`, `"r"`, `"n"`), 422, "validation_failed", []string{"amount"}},
		{body(`"1"`, `-1e30`, `"r"`, `"n"`), 422, "validation_failed", []string{"amount"}},
		{body(`"1"`, `1e30`, `"r"`, `"n"`), 422, "validation_failed", []string{"amount"}},
		{body(`""`, `1`, `" "`, `"\n"`), 422, "validation_failed", []string{"adjustmentId", "reason", "note"}},
		{body(`"1"`, `1`, `"a\nb"`, `"n"`), 422, "validation_failed", []string{"reason"}},
	} {
		h.adjust(admin, seller.id, tt.body).wantFailure(t, tt.status, tt.code, tt.fields...)
	}
	h.adjust(admin, seller.id, body(`"1"`, `-1e3`, `"r"`, `"n\nm"`)).want(t, 201)
}
