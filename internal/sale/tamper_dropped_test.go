package sale_test

import (
	"errors"
	"testing"

	"bursar/internal/ledger"
	"bursar/internal/sale"
)

// TestTamperedJournal_ReleasedAgain puts a released sale back to pending, and drops the entry that tells of its release. Its
// amount would come out of what other sales have pending.
func TestTamperedJournal_ReleasedAgain(t *testing.T) {
	s := openTamperedShop(t, `UPDATE sales SET due_at = due_at`)
	s.release()
	s.wantBalance(900_000, 5300, 905_300)
	s.place.ByHand(t, `UPDATE sales SET released_at = NULL, due_at = available_at WHERE id = 'order-1'`)
	s.place.ByHand(t, `DELETE FROM entries WHERE type = 'sale.released' AND subject = 'sale:order-1'`)
	s.wantViolated("journals-are-whole", "events-match-journal")
	if _, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("released: %v", err)
	}
	s.wantBalances(900_000, 5300)
}

// TestTamperedJournal_Relabelled puts a released sale back to pending, and makes the entry that tells of its release one
// about another sale.
func TestTamperedJournal_Relabelled(t *testing.T) {
	s := openTamperedShop(t, `UPDATE sales SET due_at = due_at`)
	s.release()
	s.wantBalance(900_000, 5300, 905_300)
	s.place.ByHand(t, `UPDATE sales SET released_at = NULL, due_at = available_at WHERE id = 'order-1'`)
	s.place.ByHand(t, `UPDATE entries SET subject = 'sale:other' WHERE type = 'sale.released' AND subject = 'sale:order-1'`)
	s.wantViolated("journals-are-whole", "sales-match-journal")
	if _, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("released: %v", err)
	}
	s.wantBalances(900_000, 5300)
}

// TestTamperedJournal_RefundedAgain takes a refund out of the records. It would be taken from the seller a second time.
func TestTamperedJournal_RefundedAgain(t *testing.T) {
	s := openTamperedShop(t, `UPDATE sales SET due_at = due_at`)
	s.release()
	refund := sale.NewRefund{Sale: "order-1", ID: "r1", Amount: 100}
	if _, _, _, err := s.sales.Refund(t.Context(), refund); err != nil {
		t.Fatal(err)
	}
	s.place.ByHand(t, `DELETE FROM sale_refunds`)
	s.place.ByHand(t, `UPDATE sales SET refunded = 0 WHERE id = 'order-1'`)
	s.place.ByHand(t, `UPDATE entries SET subject = 'sale:other' WHERE type = 'sale.refunded'`)
	if _, _, _, err := s.sales.Refund(t.Context(), refund); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("refunded: %v", err)
	}
	s.wantBalances(900_000, 5200)
}
