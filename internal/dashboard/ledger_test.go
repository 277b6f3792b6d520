package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

const ledgerPage = "/dashboard/ledger"

func TestSellerLedger(t *testing.T) {
	h := openFixture(t)
	seller, other := h.signUp("Asha Rao", auth.Seller), h.signUp("Ravi Menon", auth.Seller)
	seller.get("/dashboard").want(t, 200).says(t, `href="/dashboard/ledger"`)
	checkPage(t, "empty", seller.get(ledgerPage).want(t, 200).reads(t, "Your first sale will be the first entry."))
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 2_000_00)
	h.earn(other, "of-another", 9_999_00)
	made := h.ask(seller, 600_00, "")
	h.follow(made.ID, payout.Submitted)

	page := seller.get(ledgerPage).want(t, 200).
		reads(t, "Sale released", "+₹2,000.00 available", "−₹2,000.00 pending", "Payout requested", "−₹600.00 available", "+₹600.00 in transit", "₹1,400.00").
		says(t, "/dashboard/payouts/"+string(made.ID), "/dashboard/sales/sale?id=order-1").
		saysNot(t, "of-another", "Payout being sent", "Bank account added", accountDigits)
	checkPage(t, "ledger", page)
	seller.get(ledgerPage+"?kind=sales").want(t, 200).reads(t, "Sale released").saysNot(t, "Payout requested")
	seller.get(ledgerPage+"?kind=payouts").want(t, 200).reads(t, "Payout requested").saysNot(t, "Sale released")
	seller.get(ledgerPage+"?kind=adjustments").want(t, 200).reads(t, "No entries match.")
	seller.get(ledgerPage+"?kind=nonsense").want(t, 200).reads(t, "Sale released", "Payout requested")
	h.signUp("Kabir Gupta", auth.Buyer).get(ledgerPage).want(t, http.StatusForbidden)
}

// TestSellerLedger_Period has entries of three days.
func TestSellerLedger_Period(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	for day := range 3 { // from the 20th on
		h.earn(seller, fmt.Sprintf("order-%d", day), 1_000_00)
		h.clock.advance(24 * time.Hour)
	}
	for query, want := range map[string][3]bool{
		"":                               {true, true, true},
		"from=2026-11-21":                {false, true, true},
		"from=2026-11-21&to=2026-11-21":  {false, true, false},
		"to=2026-11-21":                  {true, true, false},
		"from=2026-11-24&to=2026-11-30":  {false, false, false},
		"from=2026-10-01&to=2026-10-30":  {false, false, false},
		"from=2026-11-22&to=&kind=sales": {false, false, true},
	} {
		body := seller.get(ledgerPage+"?"+query).want(t, 200).body
		for day, is := range want {
			if strings.Contains(body, fmt.Sprintf("order-%d", day)) != is {
				t.Errorf("%q has the entries of day %d: %v", query, day, !is)
			}
		}
	}
	wrong := seller.get(ledgerPage+"?from=2026-11-22&to=2026-11-20").want(t, 422).reads(t, "Last day must be after the start of the period.").says(t, `value="2026-11-22"`)
	checkPage(t, "wrong", wrong)
	seller.get(ledgerPage+"?from=yesterday").want(t, 422).reads(t, "First day must be a day such as")

	printed := seller.get("/dashboard/payouts/statements/print?from=2026-11-21&to=2026-11-21").want(t, 200)
	checkPage(t, "print", printed)
	printed.reads(t, "Opening ₹1,000.00 ₹0.00 ₹0.00", "Closing ₹2,000.00 ₹0.00 ₹0.00").says(t, "order-1").saysNot(t, "order-0", "order-2")
	seller.get("/dashboard/payouts/statements/print?from=2026-10-01&to=2026-10-30").want(t, 200).reads(t, "Opening ₹0.00", "Closing ₹0.00", "Nothing changed your balance")
	seller.get("/dashboard/payouts/statements/print?from=2026-12-01&to=2026-12-30").want(t, 200).reads(t, "Opening ₹3,000.00", "Closing ₹3,000.00", "Nothing changed your balance")
}

// TestSellerLedger_Pages reads all pages, and finds each entry once.
func TestSellerLedger_Pages(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	const sales = 45 // two entries each, which fill three pages
	for i := range sales {
		h.earn(seller, fmt.Sprintf("order-%d", i), 1_000_00)
	}
	sale := regexp.MustCompile(`sales/sale\?id=(order-\d+)"`)
	older := regexp.MustCompile(`rel="next" href="([^"]+)"`)
	seen := map[string]int{}
	pages := 0
	for at := ledgerPage + "?kind=sales"; at != ""; pages++ {
		body := seller.get(at).want(t, 200).body
		for _, m := range sale.FindAllStringSubmatch(body, -1) {
			seen[m[1]]++
		}
		at = ""
		if m := older.FindStringSubmatch(body); m != nil {
			at = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	for i := range sales {
		if n := seen[fmt.Sprintf("order-%d", i)]; n != 2 {
			t.Errorf("order-%d has %d entries, want 2", i, n)
		}
	}
	if pages != 3 {
		t.Errorf("%d pages, want 3", pages)
	}
}

func TestSalePage(t *testing.T) {
	h := openFixture(t)
	seller, other := h.signUp("Asha Rao", auth.Seller), h.signUp("Ravi Menon", auth.Seller)
	const id = "order/1?<b>&x=../.."
	h.earn(seller, id, 2_000_00)
	later := h.clock.Now().Add(48 * time.Hour)
	_, _, err := h.sales.Record(t.Context(), sale.NewSale{ID: "order-2", Seller: seller.id, Amount: 999_00, OccurredAt: h.clock.Now(), AvailableAt: later})
	must(t, err)
	_, _, _, err = h.sales.Refund(t.Context(), sale.NewRefund{Sale: id, ID: "return-1", Amount: 500_00})
	must(t, err)
	address := "/dashboard/sales/sale?" + url.Values{"id": {id}}.Encode()
	seller.get("/dashboard/sales").want(t, 200).says(t, strings.ReplaceAll(address, "&", "&amp;"))
	page := seller.get(address).want(t, 200).reads(t, "Sale of ₹2,000.00", "Released", "Refunded −₹500.00", "Left ₹1,500.00", "Refund", "−₹500.00 available", "Sale released").saysNot(t, "<b>&x")
	checkPage(t, "sale", page)
	seller.get("/dashboard/sales/sale?id=order-2").want(t, 200).reads(t, "Pending", "You can withdraw it from Sun 22 Nov 2026")
	for _, unknown := range []string{"", "?id=", "?id=order-3", "?id=pyt_1", "?id=%00"} {
		seller.get("/dashboard/sales/sale"+unknown).want(t, 404)
	}
	other.get(address).want(t, 404)
}

// TestSellerLedger_Tampered shows what can be believed, and prints nothing that can't.
func TestSellerLedger_Tampered(t *testing.T) {
	o := openAdminFixture(t)
	for i := range 20 {
		o.earn(o.seller, fmt.Sprintf("order-%d", i+100), 1_000_00)
	}
	o.place.ByHand(t, `UPDATE entries SET available = available + 777, sales = sales - 777 WHERE subject = 'sale:order-101' AND type = 'sale.released'`)
	first := o.seller.get(ledgerPage).want(t, 200).saysNot(t, "in review")
	next := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(first.body)
	if next == nil {
		t.Fatal("the first page, which is whole, leads to no other")
	}
	second := o.seller.get(strings.ReplaceAll(next[1], "&amp;", "&")).want(t, 200).reads(t, "Older entries are in review").says(t, "order-102").saysNot(t, "order-100", "7.77")
	checkPage(t, "tampered", second)
	o.seller.get("/dashboard/payouts/statements/print?from=2026-11-01&to=2026-11-30").want(t, http.StatusConflict).saysNot(t, "7.77")
}
