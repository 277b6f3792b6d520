package sale_test

import (
	"errors"
	"testing"

	"bursar/internal/ledger"
)

// TestTamperedJournal_ReleasedAgain puts a released sale back to pending, and drops the entry that tells of its release. Its
// amount would come out of what other sales have pending.
func TestTamperedJournal_ReleasedAgain(t *testing.T) {
	s := openTamperedShop(t, `UPDATE sales SET due_at = due_at`)
	s.release()
	s.wantBalance(900_000, 5300, 905_300)
	s.place.ByHand(t, `UPDATE sales SET released_at = NULL, due_at = available_at WHERE id = 'order-1'`)
	s.place.ByHand(t, `DELETE FROM entries WHERE type = 'sale.released' AND subject = 'sale:order-1'`)
	s.wantViolated("journals-are-whole")
	if _, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("released: %v", err)
	}
	s.wantStanding(900_000, 5300)
}
