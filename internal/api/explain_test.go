package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// explained is what GET /api/payouts/explain says.
type explained struct {
	Buckets struct {
		Available, Owed json.Number
		Pending         []struct{ Amount json.Number }
		InTransit       []struct{ Amount json.Number }
	}
	Blockers []struct{ Code, Refusal, Since, Until string }
}

func (h *fixture) explain(u user) explained {
	h.t.Helper()
	return h.addUp(h.do(call{method: "GET", path: "/api/payouts/explain", token: u.token}).want(h.t, 200))
}

// addUp reads an explanation, whose buckets have to add up.
func (h *fixture) addUp(a answer) explained {
	h.t.Helper()
	e := readExplained(h.t, a)
	var sum money.Amount
	add := func(n json.Number) {
		sum += minor(h.t, n.String())
	}
	add(e.Buckets.Available)
	for _, p := range e.Buckets.Pending {
		add(p.Amount)
	}
	for _, p := range e.Buckets.InTransit {
		add(p.Amount)
	}
	if minor(h.t, e.Buckets.Owed.String()) != sum {
		h.t.Errorf("the buckets of %s add up to %v", a.body, sum)
	}
	return e
}

func readExplained(t *testing.T, a answer) explained {
	t.Helper()
	var body struct{ Data explained }
	must(t, json.Unmarshal([]byte(a.body), &body))
	return body.Data
}

// TestExplain_EachBlockerRefusesARequest goes from a seller who has nothing to one who is paid, and stops them in every way.
func TestExplain_EachBlockerRefusesARequest(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	// blocked wants a blocker first, which began at since; "" wants no time. A request is refused as the blocker says.
	blocked := func(code, since string, status int, refusal string) {
		t.Helper()
		list := h.explain(seller).Blockers
		if len(list) == 0 || list[0].Code != code || list[0].Refusal != refusal || list[0].Since != since {
			t.Fatalf("the blockers are %+v, want %s first, refused with %s, since %q", list, code, refusal, since)
		}
		h.request(seller, `{"amount":500}`).wantFailure(t, status, refusal, detailsOf(refusal, list[0].Until)...)
	}
	// now is the time of what the test does next: an hour after what it did before.
	now := func() string {
		h.clock.advance(time.Hour)
		return h.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	}
	registered := h.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	blocked("bank_account_missing", registered, 400, "bank_account_not_verified")
	at := now()
	h.do(call{method: "PUT", path: "/api/bank-account", token: h.again(seller).token, body: accountBody}).want(t, 200)
	seller = h.again(seller)
	blocked("bank_account_unverified", at, 400, "bank_account_not_verified")
	h.withBank(seller, "6789")
	blocked("below_minimum", "", 400, "insufficient_balance")
	h.earn(seller, "s1", "3000")

	by := decision.By{Admin: admin.id, Note: "Case 1"}
	at = now()
	must(t, h.payouts.Freeze(t.Context(), by, seller.id))
	seller = h.again(seller)
	blocked("payouts_frozen", at, 409, "payouts_on_hold")
	must(t, h.payouts.Unfreeze(t.Context(), by, seller.id))
	at = now()
	must(t, h.payouts.Pause(t.Context(), by))
	seller = h.again(seller)
	blocked("payouts_paused", at, 409, "payouts_on_hold")
	must(t, h.payouts.Resume(t.Context(), by))
	at = now()
	seller = h.again(seller)
	h.withBank(seller, "1111") // takes the place of a verified one
	blocked("payouts_on_hold", at, 409, "payouts_on_hold")
	h.clock.advance(73 * time.Hour)
	seller = h.again(seller)

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
	at = now()
	h.marketplace("POST", "sales/s1/refund", `{"refundId":"r1"}`).want(t, 201)
	h.clock.advance(time.Minute)
	h.adjust(h.again(admin), seller.id, `{"adjustmentId":"a1","amount":-1,"reason":"A fee.","note":"Case 2."}`)
	seller = h.again(seller)
	blocked("negative_balance", at, 400, "insufficient_balance")
}

// detailsOf names the details of a refusal.
func detailsOf(refusal, until string) []string {
	switch {
	case refusal != "payouts_on_hold":
		return nil
	case until != "":
		return []string{"until"}
	default:
		return []string{"reason"}
	}
}

// TestExplain_SellersOfTheMarketplace asks with a service key: about sellers who can't ask themselves, by both names, and
// wants a request on their behalf to be refused as the blocker says.
func TestExplain_SellersOfTheMarketplace(t *testing.T) {
	h := openFixture(t)
	h.withAuth(func(o *auth.Options) { o.RequireVerifiedEmail = true })
	seller, admin := h.newSeller("shop-17"), h.signUp("Ada", auth.Admin)
	registered := h.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	blocked := func(code, since string, status int) {
		t.Helper()
		for _, name := range []string{seller.id, "ext:shop-17"} {
			a := h.marketplace("GET", "sellers/"+name+"/explain", "").want(t, 200)
			if a.text(t, "data.sellerId") != seller.id || a.text(t, "data.externalId") != "shop-17" || a.text(t, "data.blockers.0.code") != code {
				t.Fatalf("%s is explained as %s, want %s", name, a.body, code)
			}
			if got := a.text(t, "data.blockers.0.since"); got != since {
				t.Errorf("%s began at %s, want %s", code, got, since)
			}
			h.marketplace("POST", "sellers/"+name+"/payouts", `{"amount":500}`).wantFailure(t, status, a.text(t, "data.blockers.0.refusal"))
		}
	}
	blocked("email_not_verified", registered, 403)
	h.clock.advance(time.Hour)
	suspended := h.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	by := decision.By{Admin: admin.id, Note: "Case 1, suspended."}
	must(t, h.auth.SetAccess(t.Context(), by, seller.id, auth.Seller, true))
	blocked("seller_suspended", suspended, 409)
	h.clock.advance(time.Hour)
	must(t, h.auth.SetAccess(t.Context(), by, seller.id, auth.Seller, true)) // again
	blocked("seller_suspended", suspended, 409)
	must(t, h.auth.SetAccess(t.Context(), by, seller.id, auth.Seller, false))
	blocked("email_not_verified", registered, 403)
	h.clock.advance(time.Hour)
	suspended = h.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	must(t, h.auth.SetAccess(t.Context(), by, seller.id, auth.Seller, true))
	blocked("seller_suspended", suspended, 409)

	for _, name := range []string{"usr_nobody", "ext:nobody"} {
		h.marketplace("GET", "sellers/"+name+"/explain", "").wantFailure(t, 404, "seller_not_found")
	}
	key, _, err := h.auth.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "narrow", Scopes: []string{string(auth.ScopePayoutsRead)}}, "operator:tests")
	must(t, err)
	h.do(call{method: "GET", path: "/api/marketplace/sellers/ext:shop-17/explain", token: key}).wantFailure(t, 403, "scope_missing", "scope")
	h.do(call{method: "GET", path: "/api/marketplace/sellers/ext:shop-17/explain"}).want(t, 401)
}

// TestBalance_TamperedTotals_NotShown changes the row of totals by hand. No read shows what the service did not write, and operators learn of it.
func TestBalance_TamperedTotals_NotShown(t *testing.T) {
	for name, change := range map[string]string{
		"raised":  `UPDATE journals SET available = available + 1000000 WHERE owner = '%s'`,
		"missing": `DELETE FROM journals WHERE owner = '%s'`,
	} {
		t.Run(name, func(t *testing.T) {
			h := openFixture(t)
			seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
			h.withBank(seller, "6789")
			h.earn(seller, "s1", "3000")
			h.place.ByHand(t, fmt.Sprintf(change, seller.id))
			refusals := 0
			refused := func(r answer) {
				t.Helper()
				r.wantFailure(t, 409, "records_tampered")
				refusals++
				if want := fmt.Sprintf(`bursar_tampered_rows_refused_total{kind="seller_records"} %d`, refusals); !strings.Contains(h.scrape(t), want) {
					t.Errorf("the metrics lack %s", want)
				}
			}
			for _, path := range []string{"balance", "explain"} {
				refused(h.do(call{method: "GET", path: "/api/payouts/" + path, token: seller.token}))
				refused(h.marketplace("GET", "sellers/"+seller.id+"/"+path, ""))
			}
			refused(h.do(call{method: "GET", path: "/api/admin/users/" + seller.id, token: admin.token}))
			refused(h.request(seller, `{"amount":500}`))
		})
	}
}

// TestExplain_OldTotals_NotShown puts back the row of totals from before two sales and a payout. The pending sales are more than
// the row has.
func TestExplain_OldTotals_NotShown(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "s1", "3000")
	h.place.ByHand(t, `CREATE TABLE kept_journals AS SELECT * FROM journals`)
	h.request(seller, `{"amount":500}`).want(t, 201)
	h.do(call{method: "POST", path: "/api/marketplace/sales", token: h.serviceKey, body: `{"saleId":"s2","sellerId":"` + seller.id + `","amount":10}`}).want(t, 201)
	h.place.ByHand(t, `DELETE FROM journals WHERE owner = '`+seller.id+`'`)
	h.place.ByHand(t, `INSERT INTO journals SELECT * FROM kept_journals WHERE owner = '`+seller.id+`'`)
	h.do(call{method: "GET", path: "/api/payouts/explain", token: seller.token}).wantFailure(t, 409, "records_tampered")
	h.request(seller, `{"amount":500}`).wantFailure(t, 409, "records_tampered")
}

// TestExplain_BucketsAddUp walks through random sales, releases, refunds, corrections and payouts. After each step the buckets
// add up to what the seller is owed, worked out from the steps alone.
func TestExplain_BucketsAddUp(t *testing.T) {
	h := openFixture(t)
	seller := h.newSeller("shop-17")
	admin := decision.By{Admin: h.signUp("Ada", auth.Admin).id, Note: "Case 1"}
	account := h.marketplace("PUT", "sellers/ext:shop-17/bank-account", accountBody).want(t, 200).text(t, "data.id")
	_, err := h.bank.Resolve(t.Context(), admin, bank.ID(account), bank.Verdict{Verified: true})
	must(t, err)
	owed, sold, asked := money.Amount(0), map[string]money.Amount{}, []string{}
	random := rand.New(rand.NewPCG(7, 11))
	seen := map[string]int{}
	for i := range 80 {
		id := fmt.Sprintf("s%d", i)
		amount := money.Amount(100_00 + random.Int64N(2000_00))
		step := []string{"sell", "sell", "release", "refund", "adjust", "payout", "cancel", "settle"}[random.IntN(8)]
		switch step {
		case "sell":
			later := h.clock.Now().Add(time.Duration(random.IntN(60*24)) * time.Hour).Format(time.RFC3339)
			h.marketplace("POST", "sales", fmt.Sprintf(`{"saleId":%q,"sellerId":"ext:shop-17","amount":%s,"availableAt":%q}`, id, rupees(t).Format(amount), later)).want(t, 201)
			owed, sold[id] = owed+amount, amount
		case "release":
			h.clock.advance(time.Duration(random.IntN(10*24)) * time.Hour)
			_, err := h.sales.ReleaseDue(t.Context())
			must(t, err)
		case "refund":
			for _, sale := range slices.Sorted(maps.Keys(sold))[:min(1, len(sold))] {
				h.marketplace("POST", "sales/"+sale+"/refund", `{"refundId":"all"}`).want(t, 201)
				owed -= sold[sale]
				delete(sold, sale)
			}
		case "adjust":
			amount -= 1000_00
			_, _, err := h.sales.Adjust(t.Context(), sale.NewAdjustment{By: admin, ID: id, Seller: seller.id, Amount: amount, Reason: "A fee."})
			must(t, err)
			owed += amount
		case "payout":
			a := h.marketplace("POST", "sellers/ext:shop-17/payouts", fmt.Sprintf(`{"amount":%s}`, rupees(t).Format(amount+500_00)))
			if a.status != 201 {
				step = "refused payout"
				break
			}
			asked = append(asked, a.text(t, "data.payoutId"))
		case "cancel":
			if len(asked) == 0 {
				break
			}
			_, _, err := h.payouts.Cancel(t.Context(), payout.Caller{User: seller.id}, payout.ID(asked[0]), "")
			must(t, err)
			asked = asked[1:]
		case "settle":
			h.clock.advance(time.Minute)
			for _, id := range asked {
				p, err := h.payouts.Payout(t.Context(), payout.Caller{User: seller.id}, payout.ID(id))
				must(t, err)
				h.work(t, id, payout.StatusCompleted)
				owed -= p.Amount
			}
			asked = nil
		}
		seen[step]++
		a := h.marketplace("GET", "sellers/ext:shop-17/explain", "").want(t, 200)
		e := h.addUp(a)
		if minor(t, e.Buckets.Owed.String()) != owed {
			t.Fatalf("after %v the seller is owed %s, want %s", seen, e.Buckets.Owed, rupees(t).Format(owed))
		}
		if len(e.Buckets.InTransit) != len(asked) {
			t.Fatalf("%d payouts are in transit, want %d", len(e.Buckets.InTransit), len(asked))
		}
	}
	for _, step := range []string{"sell", "release", "refund", "adjust", "payout", "cancel", "settle"} {
		if seen[step] == 0 {
			t.Errorf("the walk has no %s: %v", step, seen)
		}
	}
}

// minor reads an amount that may be below zero.
func minor(t *testing.T, text string) money.Amount {
	t.Helper()
	text, negative := strings.CutPrefix(text, "-")
	amount, err := rupees(t).Parse(text)
	must(t, err)
	if negative {
		return -amount
	}
	return amount
}
