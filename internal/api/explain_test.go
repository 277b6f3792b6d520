package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
)

// explained is what GET /api/payouts/explain says.
type explained struct {
	Buckets struct {
		Available, Owed json.Number
		Pending         []struct{ Amount json.Number }
		InTransit       []struct{ Amount json.Number }
	}
	Blockers []struct{ Code, Until string }
}

func (h *fixture) explain(u user) explained {
	h.t.Helper()
	a := h.do(call{method: "GET", path: "/api/payouts/explain", token: u.token}).want(h.t, 200)
	var body struct{ Data explained }
	must(h.t, json.Unmarshal([]byte(a.body), &body))
	sum := 0.0
	add := func(n json.Number) {
		f, err := n.Float64()
		must(h.t, err)
		sum += f
	}
	add(body.Data.Buckets.Available)
	for _, p := range body.Data.Buckets.Pending {
		add(p.Amount)
	}
	for _, p := range body.Data.Buckets.InTransit {
		add(p.Amount)
	}
	if owed, err := body.Data.Buckets.Owed.Float64(); err != nil || owed != sum {
		h.t.Errorf("the buckets of %s add up to %v", a.body, sum)
	}
	return body.Data
}

// TestExplain_EachBlockerRefusesARequest goes from a seller who has nothing to one who is paid, and stops them in every way.
func TestExplain_EachBlockerRefusesARequest(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	blocked := func(code string, status int, refusal string, amount string) {
		t.Helper()
		list := h.explain(seller).Blockers
		var codes []string
		for _, b := range list {
			codes = append(codes, b.Code)
		}
		if len(codes) == 0 || codes[0] != code {
			t.Fatalf("the blockers are %v, want %s first", codes, code)
		}
		a := h.request(seller, `{"amount":`+amount+`}`).want(t, status)
		if !strings.Contains(a.body, `"code":"`+refusal+`"`) {
			t.Errorf("a request is refused with %s, want %s", a.body, refusal)
		}
	}
	blocked("bank_account_missing", 400, "bank_account_not_verified", "500")
	h.do(call{method: "PUT", path: "/api/bank-account", token: seller.token, body: accountBody}).want(t, 200)
	blocked("bank_account_unverified", 400, "bank_account_not_verified", "500")
	h.withBank(seller, "6789")
	blocked("below_minimum", 400, "insufficient_balance", "500")
	h.earn(seller, "s1", "3000")

	by := decision.By{Admin: admin.id, Note: "Case 1"}
	must(t, h.payouts.Freeze(t.Context(), by, seller.id))
	blocked("payouts_frozen", 409, "payouts_on_hold", "500")
	must(t, h.payouts.Unfreeze(t.Context(), by, seller.id))
	must(t, h.payouts.Pause(t.Context(), by))
	blocked("payouts_paused", 409, "payouts_on_hold", "500")
	must(t, h.payouts.Resume(t.Context(), by))
	h.withBank(seller, "1111") // takes the place of a verified one
	blocked("payouts_on_hold", 409, "payouts_on_hold", "500")
	h.clock.advance(73 * time.Hour)

	// Without a blocker, all that is available can be withdrawn.
	e := h.explain(seller)
	if len(e.Blockers) != 0 {
		t.Fatalf("the blockers are %v", e.Blockers)
	}
	h.request(seller, `{"amount":`+e.Buckets.Available.String()+`}`).want(t, 201)
	later := h.clock.Now().Add(40 * 24 * time.Hour).Format(time.RFC3339)
	for i, at := range []string{later, h.clock.Now().Add(48 * time.Hour).Format(time.RFC3339)} {
		h.marketplace("POST", "sales", fmt.Sprintf(`{"saleId":"p%d","sellerId":%q,"amount":100.25,"availableAt":%q}`, i, seller.id, at)).want(t, 201)
	}
	if e = h.explain(seller); len(e.Buckets.Pending) != 2 || len(e.Buckets.InTransit) != 1 || e.Buckets.Owed != "3200.5" {
		t.Errorf("the buckets are %+v", e.Buckets)
	}
	h.marketplace("POST", "sales/s1/refund", `{"refundId":"r1"}`).want(t, 201)
	blocked("negative_balance", 400, "insufficient_balance", "500")
}
