package payout_test

import (
	"errors"
	"testing"

	"bursar/internal/payout"
)

// TestTamperedJournal_CancelledAgain puts a cancelled payout back to what it was, and drops the entry that tells of its end.
// Its amount would come out of what another payout has reserved.
func TestTamperedJournal_CancelledAgain(t *testing.T) {
	s := newStory(t)
	s.keep("payouts")
	cancel := func() error {
		_, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "")
		return err
	}
	if err := cancel(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 50_000}); err != nil {
		t.Fatal(err)
	}
	available := s.available()
	s.place.ByHand(t, `DELETE FROM payouts WHERE id = '`+string(s.id)+`'`)
	s.place.ByHand(t, `INSERT INTO payouts SELECT * FROM kept_payouts`)
	s.place.ByHand(t, `DELETE FROM entries WHERE type = 'payout.cancelled'`)
	s.wantRow(true) // it is what is left of its entries
	s.wantJournal(false)
	if err := cancel(); !errors.Is(err, payout.ErrAltered) {
		t.Errorf("cancelled again: %v", err)
	}
	s.wantAvailable(available)
}
