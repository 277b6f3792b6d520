package payout_test

import (
	"testing"
	"time"

	"bursar/internal/payout"
)

// TestRestored_Discrepancy restores a payout with a discrepancy. It is resolved only if what was tampered with has made it.
func TestRestored_Discrepancy(t *testing.T) {
	const ofTransfer, ofAccount = "it has another amount", "it has a transfer to another account"
	for _, tt := range []struct {
		noted     string
		account   bool
		want      string
		wantSteps int
	}{
		{"", false, "", 0},
		{"", true, "", 0},
		{ofTransfer, false, ofTransfer, 0},
		{ofTransfer, true, ofTransfer, 0},
		{ofAccount, false, ofAccount, 0},
		{ofAccount, true, "", 1},
	} {
		now := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
		folded := payout.Payout{ID: "pyt_1", Seller: "usr_a", State: payout.Submitted, Discrepancy: tt.noted}
		found := payout.Payout{Tries: 3}
		row, steps, err := folded.Rebuilt(found, tt.account, "operator:test", now)
		if err != nil || row.Discrepancy != tt.want || len(steps) != tt.wantSteps {
			t.Errorf("%q, of a tampered account %t, becomes %q with %d entries, %v", tt.noted, tt.account, row.Discrepancy, len(steps), err)
		}
		if row.Tries != 3 || !row.DueAt.Equal(now) {
			t.Errorf("it was tried %d times and is due at %s", row.Tries, row.DueAt)
		}
		found.DueAt = now.Add(time.Hour)
		if row, _, _ := folded.Rebuilt(found, false, "operator:test", now); !row.DueAt.Equal(found.DueAt) {
			t.Errorf("it is due at %s, want when it was", row.DueAt)
		}
	}
}
