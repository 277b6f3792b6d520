package bank_test

import (
	"testing"
	"time"

	"bursar/internal/bank"
)

// TestRestored_NextStep restores accounts. Only one that waits for its verification has a next step.
func TestRestored_NextStep(t *testing.T) {
	now := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	later := now.Add(time.Hour)
	for _, tt := range []struct {
		status       bank.Status
		current      bool
		found, wants time.Time
	}{
		{bank.StatusUnverified, true, time.Time{}, now},
		{bank.StatusUnverified, true, later, later},
		{bank.StatusUnverified, false, time.Time{}, time.Time{}},
		{bank.StatusVerified, true, time.Time{}, time.Time{}},
		{bank.StatusRejected, true, time.Time{}, time.Time{}},
	} {
		folded := bank.Account{ID: "bka_1", Seller: "usr_a", Status: tt.status, Current: tt.current}
		row, steps, err := folded.Rebuilt(bank.Account{DueAt: tt.found, Tries: 3}, "operator:test", now)
		if err != nil || len(steps) > 0 || row.Tries != 3 || !row.DueAt.Equal(tt.wants) {
			t.Errorf("%+v, due at %s, becomes %+v with %v, %v; want it due at %s", folded, tt.found, row, steps, err, tt.wants)
		}
	}
}
