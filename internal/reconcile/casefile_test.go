package reconcile

import (
	"testing"

	"bursar/internal/payout"
)

// TestFeeOf_ToldByAnotherLine excuses a line that returns money from telling its fee, and none that takes money.
func TestFeeOf_ToldByAnotherLine(t *testing.T) {
	taken := Line{ID: "taken", Debit: 1010, Fees: 10}
	for _, tt := range []struct {
		line  Line
		right bool
	}{
		{taken, true},
		{Line{ID: "returned", Credit: 1010}, true},
		{Line{ID: "returned without the fee", Credit: 1000}, true},
		{Line{ID: "returned with more", Credit: 1011}, false},
		{Line{ID: "taken again", Debit: 1010}, false},
	} {
		d := caseFile{p: payout.Payout{Amount: 1000}, lines: []Line{taken, tt.line}}
		if fee, right := d.feeOf(tt.line); right != tt.right {
			t.Errorf("%s: the fee %d may be: %t, want %t", tt.line.ID, fee, right, tt.right)
		}
	}
}
