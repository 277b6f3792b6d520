package store

import (
	"fmt"
	"testing"

	"bursar/internal/payout"
)

// TestSumPayouts_Cut has as many payouts as are looked through, and then one more. An export of a selection that is cut is refused, so
// it must be neither cut too early nor too late.
func TestSumPayouts_Cut(t *testing.T) {
	db := openTemp(t)
	add := func(from, to int) {
		t.Helper()
		err := db.Update(t.Context(), func(tx *Tx) error {
			_, err := tx.exec(t.Context(), fmt.Sprintf(`INSERT INTO payouts (%s) WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d)
				SELECT printf('pyt_%%06d', i), 'asha', 'bka_asha', 500, 0, 'rent', 'IMPS', 'completed', 'completed',
				1, 2, 3, 4, 5, 6, NULL, 0, '', '', 'paid', '', '', '', 'paid twice', 'razorpayx' FROM n`, filledColumns, from, to))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(isCut bool) {
		t.Helper()
		for name, sel := range map[string]payout.Selection{"all": {}, "with a discrepancy": {Discrepancy: true}} {
			totals, err := db.SumPayouts(t.Context(), sel)
			if err != nil || totals.Cut != isCut {
				t.Errorf("%s, %d payouts: cut %t, %v; want %t", name, totals.Count, totals.Cut, err, isCut)
			}
		}
	}
	add(1, payout.LookedThrough)
	want(false)
	add(payout.LookedThrough+1, payout.LookedThrough+1)
	want(true)
}
