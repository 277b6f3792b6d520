package sale_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/sale"
)

// TestCheckEntries has the entries of a sale, and each time one of them changed or missing.
func TestCheckEntries(t *testing.T) {
	s := openShop(t)
	s.record(sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 500, OccurredAt: s.now, AvailableAt: s.now.Add(time.Minute)}, true)
	refund := func(id string) {
		t.Helper()
		if _, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: id, Amount: 100}); err != nil {
			t.Fatal(err)
		}
	}
	refund("r1")
	s.now = s.now.Add(time.Hour)
	s.release()
	refund("r2")
	recorded, _, err := s.db.SaleByID(t.Context(), "order-1")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := s.db.EntriesAbout(t.Context(), "usr_seller", sale.SubjectPrefix+"order-1")
	if err != nil || len(entries) != 4 {
		t.Fatal(entries, err)
	}
	if err := sale.CheckEntries(recorded, entries); err != nil {
		t.Error(err)
	}
	for i := range entries {
		for name, change := range map[string]func(*ledger.Entry){
			"other money":    func(e *ledger.Entry) { e.Moved.Available++ },
			"another type":   func(e *ledger.Entry) { e.Type = ledger.AdminDecided },
			"recorded again": func(e *ledger.Entry) { e.Type, e.Moved = ledger.SaleRecorded, ledger.Sale(501) },
			"unreadable":     func(e *ledger.Entry) { e.Data = "{" },
		} {
			changed := slices.Clone(entries)
			change(&changed[i])
			if err := sale.CheckEntries(recorded, changed); !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("entry %d, %s: %v", i, name, err)
			}
		}
		if err := sale.CheckEntries(recorded, slices.Delete(slices.Clone(entries), i, i+1)); !errors.Is(err, ledger.ErrTampered) {
			t.Errorf("without entry %d: %v", i, err)
		}
	}
	// Nothing but its data is wrong with this one: the sale is what the entries before it say, and it moves no money.
	unreadable := ledger.Entry{Posting: ledger.Posting{Type: ledger.PayoutUpdated, Data: "{"}}
	if err := sale.CheckEntries(recorded, append(slices.Clone(entries), unreadable)); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("with an entry that can't be read: %v", err)
	}
}
