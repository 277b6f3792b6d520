package store

import (
	"testing"

	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// TestNote_KeepsTheFirst keeps as many violations as are listed.
func TestNote_KeepsTheFirst(t *testing.T) {
	var f ledger.Finding
	for i := range ledger.MaxViolations + 1 {
		if f.IsFull() != (i >= ledger.MaxViolations) {
			t.Errorf("with %d violations the finding is full: %t", i, f.IsFull())
		}
		note(&f, ledger.Violation{Subject: "a"}, "look")
	}
	if len(f.Violations) != ledger.MaxViolations || f.Violations[0].Next != "look" {
		t.Errorf("%d are kept, and the first is %+v", len(f.Violations), f.Violations[0])
	}
}

func TestWords_Mismatch(t *testing.T) {
	for want, m := range map[string]ledger.Mismatch{
		"the state is completed, and the journal says waiting": {Field: "state", Row: payout.Completed, Journal: payout.Waiting},
		"the state is not set, and the journal says waiting":   {Field: "state", Row: payout.State(""), Journal: payout.Waiting},
		"the bank account is not what the journal says":        {Field: "bankAccount", Row: "bka_1", Journal: "bka_2"},
	} {
		if got := (words{}).mismatch(m); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
