package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
	"bursar/internal/store"
)

// An admin resolved an unmatched transfer. Days later the gateway takes money for it once more: that is not explained, and is named.
func TestReconcile_ResolvedUnmatchedTakenTwice_Named(t *testing.T) {
	w := newFixture(t)
	of := func(id string, day int) gateway.Line {
		return gateway.Line{ID: id, At: time.Date(2026, 11, day, 10, 0, 0, 0, india), Debit: 7_000, Kind: gateway.LinePayout, Transfer: "pout_x", SourceID: "pout_x"}
	}
	w.statement("paper", of("txn_1", 2))
	w.goTo(3, 4)
	w.must(w.runDue(w.service))
	wantOpen := func(want ...reconcile.Kind) {
		t.Helper()
		if got := w.open(); !slices.Equal(got, want) {
			t.Errorf("open are %v, want %v", got, want)
		}
	}
	wantOpen(reconcile.LineWithoutPayout)
	w.must(w.db.Update(t.Context(), func(tx *store.Tx) error {
		s := payout.UnmatchedTransfer{Gateway: "paper", Transfer: gateway.Transfer{Report: gateway.Report{GatewayID: "pout_x", Amount: 7_000}}, FoundAt: w.now}
		if _, err := tx.RecordUnmatchedTransfer(t.Context(), s); err != nil {
			return err
		}
		_, err := tx.ResolveUnmatchedTransfer(t.Context(), "paper", "pout_x")
		return err
	}))
	w.now = w.now.Add(11 * time.Minute)
	w.must(w.runDue(w.service))
	wantOpen()
	w.statement("paper", of("txn_1", 2), of("txn_2", 4))
	w.goTo(5, 4)
	w.must(w.runDue(w.service))
	wantOpen(reconcile.LineWithoutPayout)
	w.now = w.now.Add(11 * time.Minute) // what is open is compared once more
	w.must(w.runDue(w.service))
	wantOpen(reconcile.LineWithoutPayout)
}

// Another gateway's statement takes money for a payout, and is corrected: nothing differs any more.
func TestReconcile_OtherGatewaysLineCorrected_Ends(t *testing.T) {
	w := newFixture(t)
	id := w.pay("1234", 10_000)
	w.statement("other", gateway.Line{
		ID: "txn_1", At: time.Date(2026, 11, 2, 10, 0, 0, 0, india), Debit: 10_000, Kind: gateway.LinePayout, Transfer: "pout_x", SourceID: "pout_x", Reference: string(id),
	})
	w.goTo(3, 4)
	w.must(w.runDue(w.service))
	if got := w.open(); !slices.Contains(got, reconcile.LineBeforeOrder) {
		t.Fatalf("open are %v", got)
	}
	w.statement("other")
	w.goTo(4, 4)
	w.must(w.runDue(w.service))
	if got := w.open(); slices.Contains(got, reconcile.LineBeforeOrder) {
		t.Errorf("the line is gone, and open are %v", got)
	}
}
