package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
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
