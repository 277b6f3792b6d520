package sale_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/sale"
)

// TestRecordAll_Refused records a group in which some are refused before anything is added.
func TestRecordAll_Refused(t *testing.T) {
	s := openShop(t)
	s.record(sale.NewSale{ID: "order-0", Seller: "usr_seller", Amount: 700}, true)
	want := []error{nil, sale.ErrSellerNotFound, sale.ErrConflict, fault.Field("saleId", ""), nil}
	refused, err := s.sales.RecordAll(t.Context(), []sale.NewSale{
		{ID: "order-1", Seller: "usr_seller", Amount: 100},
		{ID: "order-2", Seller: "usr_nobody", Amount: 100},
		{ID: "order-0", Seller: "usr_seller", Amount: 1},
		{ID: "opening:usr_seller", Seller: "usr_seller", Amount: 100},
		{ID: "order-3", Seller: "usr_seller", Amount: 200},
	})
	if err != nil || !slices.EqualFunc(refused, want, errors.Is) {
		t.Errorf("refused are %v, %v; want %v", refused, err, want)
	}
	s.wantBalance(1000, 0, 1000)
}

// TestRecordAll_Repeated has sales of one id in one group, which are appended to no journal yet, and one of an earlier group.
func TestRecordAll_Repeated(t *testing.T) {
	s := openShop(t)
	one, two := sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 100}, sale.NewSale{ID: "order-2", Seller: "usr_seller", Amount: 200}
	other := one
	other.Amount++
	for _, group := range [][]sale.NewSale{{one, one, other}, {two, one, other}} {
		refused, err := s.sales.RecordAll(t.Context(), group)
		if want := []error{nil, nil, sale.ErrConflict}; err != nil || !slices.EqualFunc(refused, want, errors.Is) {
			t.Errorf("refused are %v, %v; want %v", refused, err, want)
		}
	}
	s.wantBalance(300, 0, 300)
}

// closing is a store that refuses an entry at the end of a first transaction, and is closed then.
type closing struct {
	sale.Store
	begun bool
}

var errClosed = errors.New("closed")

func (s *closing) InTx(ctx context.Context, fn func(sale.Tx) error) error {
	if s.begun {
		return errClosed
	}
	s.begun = true
	return s.Store.InTx(ctx, func(tx sale.Tx) error { return fn(fullTx{tx}) })
}

type fullTx struct{ sale.Tx }

func (fullTx) Append(context.Context, ledger.Posting) (ledger.Entry, error) {
	return ledger.Entry{}, ledger.ErrTooLarge
}

// The sales of a group are recorded one by one, and the database fails meanwhile: none is said to be recorded.
func TestRecordAll_OneByOne_StoreFails(t *testing.T) {
	s := openShop(t)
	sales, err := sale.New(sale.Options{Store: &closing{Store: s.db.Sales()}, Now: func() time.Time { return s.now }, Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	if refused, err := sales.RecordAll(t.Context(), []sale.NewSale{{ID: "order-1", Seller: "usr_seller", Amount: 100}}); !errors.Is(err, errClosed) {
		t.Errorf("refused are %v, %v", refused, err)
	}
	s.wantBalance(0, 0, 0)
}

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

// TestRecordAll_EarningsTampered_OthersRecorded has the earnings of one seller of a group raised by hand to more than can be counted.
func TestRecordAll_EarningsTampered_OthersRecorded(t *testing.T) {
	s := openShop(t)
	s.record(sale.NewSale{ID: "order-0", Seller: "usr_seller", Amount: 700}, true)
	s.place.ByHand(t, `UPDATE earnings SET amount = 9223372036854775807; UPDATE users SET role = 'seller'`)
	refused, err := s.sales.RecordAll(t.Context(), []sale.NewSale{
		{ID: "order-1", Seller: "usr_buyer", Amount: 100}, {ID: "order-2", Seller: "usr_seller", Amount: 100}, {ID: "order-3", Seller: "usr_buyer", Amount: 100},
	})
	if err != nil || !slices.EqualFunc(refused, []error{nil, ledger.ErrTampered, nil}, errors.Is) {
		t.Errorf("refused are %v, %v; want the second alone", refused, err)
	}
}

// TestReleaseDue_TakesLong has each step take a while, so that one transaction releases a part, and the next ones the rest.
func TestReleaseDue_TakesLong(t *testing.T) {
	s := openShop(t)
	const sales = 7
	for i := range sales {
		s.record(sale.NewSale{ID: fmt.Sprintf("order-%d", i), Seller: "usr_seller", Amount: 100}, true)
	}
	s.now = s.now.Add(100 * time.Hour)
	options := s.options
	options.Now = func() time.Time {
		s.now = s.now.Add(20 * time.Millisecond)
		return s.now
	}
	slow, err := sale.New(options)
	if err != nil {
		t.Fatal(err)
	}
	released, batches := 0, 0
	for {
		n, err := slow.ReleaseDue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		released, batches = released+n, batches+1
	}
	if released != sales || batches != 3 {
		t.Errorf("%d sales were released in %d batches, want %d in 3", released, batches, sales)
	}
	s.wantBalance(0, sales*100, sales*100)
}
