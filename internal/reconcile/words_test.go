package reconcile

import (
	"strings"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/money"
	"bursar/internal/payout"
)

func TestReportOf_AllThatMayNotChange(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{o: Options{Currency: inr}}
	at := time.Date(2026, 11, 2, 9, 4, 5, 0, time.FixedZone("IST", 19800))
	for want, l := range map[string]gateway.Line{
		"takes 5.00 INR on 2 November 2026 03:34:05 UTC":                              {Debit: 500, Currency: "INR", At: at},
		"gives 0.07 USD on 2 November 2026 03:34:05 UTC, balance 10.00":               {Credit: 7, Currency: "USD", At: at, HasBalance: true, Balance: 1000},
		"takes 5.00 INR on 2 November 2026 03:34:05 UTC, balance 0.00, from pout_one": {Debit: 500, Currency: "INR", At: at, HasBalance: true, SourceID: "pout_one"},
	} {
		if got := s.reportOf(Line{Line: l}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDiffers_AmountsByState(t *testing.T) {
	for state, want := range map[payout.State]money.Amount{payout.Completed: 90, payout.Returned: 0, payout.Failed: 0, payout.Submitted: 0, payout.Cancelled: 0} {
		file := caseFile{p: payout.Payout{State: state, Amount: 100, Fee: 10}, taken: 90, given: 40}
		if d := file.differs(AmountDiffers, "x"); d.InLedger != want || d.AtGateway != 50 {
			t.Errorf("%s: %d in the ledger and %d at the gateway, want %d and 50", state, d.InLedger, d.AtGateway, want)
		}
	}
}

func TestAmounts_WordOfEachLine(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	for word, file := range map[string]caseFile{
		"Line txn_1 takes 9.90;":   {debits: []Line{{Line: gateway.Line{ID: "txn_1", Debit: 990}}}},
		"Line txn_1 returns 9.90;": {credits: []Line{{Line: gateway.Line{ID: "txn_1", Credit: 990}}}},
	} {
		file.currency, file.p = inr, payout.Payout{Amount: 1000}
		if found := file.amounts(); len(found) != 1 || !strings.HasPrefix(found[0].Detail, word) {
			t.Errorf("found is %+v, want one that begins with %q", found, word)
		}
	}
}
