package sale_test

import (
	"errors"
	"fmt"
	"testing"

	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/sale"
)

// A sale that its seller's total has no room for is refused after the group was begun, so each of the group is recorded alone.
func TestRecordAll_OneRefusedLate_OthersRecorded(t *testing.T) {
	s := openShop(t)
	full := int(ledger.MaxTotal / money.Max) // sales of the largest amount that one seller has room for
	var sales []sale.NewSale
	for i := range full + 1 {
		sales = append(sales, sale.NewSale{ID: fmt.Sprintf("order-%d", i), Seller: "usr_seller", Amount: money.Max})
	}
	small := ledger.MaxTotal - money.Amount(full)*money.Max
	sales = append(sales,
		sale.NewSale{ID: "order-small", Seller: "usr_seller", Amount: small},
		sale.NewSale{ID: "order-odd", Seller: "usr_nobody", Amount: 100},
		sale.NewSale{ID: "order-0", Seller: "usr_seller", Amount: money.Max},
		sale.NewSale{ID: "order-0", Seller: "usr_seller", Amount: 1},
	)
	for range 2 { // to record them again changes nothing
		refused, err := s.sales.RecordAll(t.Context(), sales)
		if err != nil || len(refused) != len(sales) {
			t.Fatalf("%d outcomes of %d sales, %v", len(refused), len(sales), err)
		}
		for i, err := range refused {
			switch want := map[int]error{full: ledger.ErrTooLarge, full + 4: sale.ErrConflict}[i]; {
			case i == full+2 && err == nil:
				t.Error("a sale of a seller who is not there is recorded")
			case i != full+2 && !errors.Is(err, want):
				t.Errorf("%s, the sale %d: %v, want %v", sales[i].ID, i, err, want)
			}
		}
		s.wantBalance(ledger.MaxTotal, 0, ledger.MaxTotal)
	}
}
