package payout_test

import (
	"slices"
	"testing"

	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// TestExplain_Balance tells a balance below zero from one that is only too small. A payout of the minimum itself may be asked for.
func TestExplain_Balance(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	available, minimum := money.Amount(opening), s.payouts.Minimum()
	for _, tt := range []struct {
		available money.Amount
		want      []string
	}{
		{minimum, nil},
		{minimum - 1, []string{payout.BlockedBelowLeast}},
		{0, []string{payout.BlockedBelowLeast}},
		{-1, []string{payout.BlockedBelowZero}},
	} {
		adjusted := ledger.Posting{
			Owner: "usr_b", At: s.now, Type: ledger.BalanceAdjusted, Subject: "adjustment:one", Actor: "user:usr_admin", Data: "{}", Moved: ledger.AdjustBalance(tt.available - available),
		}
		if err := s.db.Payouts().InTx(t.Context(), func(tx payout.Tx) error {
			_, err := tx.Append(t.Context(), adjusted)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		available = tt.available
		explained, err := s.payouts.Explain(t.Context(), "usr_b")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range explained.Blockers {
			got = append(got, b.Code)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("with %d available, what blocks payouts is %v, want %v", tt.available, got, tt.want)
		}
	}
}
