package sale_test

import (
	"errors"
	"testing"
	"time"

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

// TestTamperedJournal_HoldsUpAllSalesOfTheSeller takes an entry out of the journal that could have told of any sale before it.
func TestTamperedJournal_HoldsUpAllSalesOfTheSeller(t *testing.T) {
	s := openShop(t)
	for i, id := range []string{"order-1", "order-2", "order-3"} {
		s.record(sale.NewSale{ID: id, Seller: "usr_seller", Amount: 100, OccurredAt: s.now, AvailableAt: s.now.Add(time.Duration(i+1) * time.Minute)}, true)
	}
	s.record(sale.NewSale{ID: "far", Seller: "usr_seller", Amount: 900, OccurredAt: s.now, AvailableAt: s.now.AddDate(0, 1, 0)}, true)
	s.place.ByHand(t, `DELETE FROM entries WHERE subject = 'sale:far'`)
	s.now = s.now.Add(time.Hour)
	if _, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("released: %v", err)
	}
	s.wantBalances(1200, 0)
}
