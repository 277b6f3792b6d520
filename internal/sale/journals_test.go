package sale_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/sale"
)

// reading is a store that counts which journals are read outside of transactions, and does something once one was read.
type reading struct {
	sale.Store
	reads int
	// first and then run around it.
	first, then func()
	// fails is what a read returns, if it is set.
	fails error
}

func (r *reading) CheckJournalFrom(ctx context.Context, owner string, from int64, subjects []string) (ledger.Head, map[string][]ledger.Entry, error) {
	r.reads++
	if r.first != nil {
		r.first()
	}
	if r.fails != nil {
		return ledger.Head{}, nil, r.fails
	}
	at, about, err := r.Store.CheckJournalFrom(ctx, owner, from, subjects)
	if r.then != nil {
		r.then()
	}
	return at, about, err
}

// openLongShop has a sale of 1,000, refunded by 100, before more entries than a transaction reads.
func openLongShop(t *testing.T) (*fixture, *reading) {
	t.Helper()
	s := openShop(t)
	store := &reading{Store: s.db.Sales()}
	s.options.Store = store
	var err error
	if s.sales, err = sale.New(s.options); err != nil {
		t.Fatal(err)
	}
	s.record(sale.NewSale{ID: "first", Seller: "usr_seller", Amount: 1000}, true)
	s.refundOf("first", "r1", 100)
	var others []sale.NewSale
	for i := range 2100 {
		others = append(others, sale.NewSale{ID: fmt.Sprintf("order-%d", i), Seller: "usr_seller", Amount: 1, AvailableAt: s.now.Add(1000 * time.Hour)})
	}
	if _, err := s.sales.RecordAll(t.Context(), others); err != nil {
		t.Fatal(err)
	}
	if store.reads > 0 {
		t.Fatalf("to record sales, %d journals were read", store.reads)
	}
	return s, store
}

func (s *fixture) refundOf(id, refund string, amount money.Amount) {
	s.Helper()
	if _, _, created, err := s.sales.Refund(s.Context(), sale.NewRefund{Sale: id, ID: refund, Amount: amount}); err != nil || !created {
		s.Fatalf("refund %s: created %t, %v", refund, created, err)
	}
}

// TestRefund_LongJournal refunds a sale after so many entries that they are read outside of the transaction.
func TestRefund_LongJournal(t *testing.T) {
	s, store := openLongShop(t)
	store.then = func() { // another refund comes meanwhile
		store.then = nil
		s.refundOf("order-2099", "r1", 1)
		s.refundOf("first", "r2", 100)
	}
	s.refundOf("first", "r3", 100)
	if store.reads != 2 {
		t.Errorf("the journal was read %d times, want once for each refund of the first sale", store.reads)
	}
	if _, _, created, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "first", ID: "r3", Amount: 100}); err != nil || created || store.reads != 2 {
		t.Errorf("repeated: created %t, %v; the journal was read %d times", created, err, store.reads)
	}
	s.wantBalance(1000-300+2100-1, 0, 1000-300+2100-1)
}

// TestRelease_LongJournal releases a sale so.
func TestRelease_LongJournal(t *testing.T) {
	s, store := openLongShop(t)
	s.now = s.now.Add(100 * time.Hour)
	for n := 1; n > 0; n = s.release() {
	}
	if store.reads != 1 {
		t.Errorf("the journal was read %d times, want once", store.reads)
	}
	s.wantBalance(2100, 900, 3000)
}

// longStore is a store in which every journal is too long to be read in a transaction.
type longStore struct{ sale.Store }

func (l longStore) InTx(ctx context.Context, fn func(sale.Tx) error) error {
	return l.Store.InTx(ctx, func(tx sale.Tx) error { return fn(longTx{tx}) })
}

type longTx struct{ sale.Tx }

func (longTx) JournalEnd(context.Context, string) (int64, error) { return 10_000, nil }

// TestRelease_LongJournalsOfManySellers has more long journals than one batch reads: the others are read by the next one.
func TestRelease_LongJournalsOfManySellers(t *testing.T) {
	s := openShop(t)
	store := &reading{Store: longStore{s.db.Sales()}}
	s.options.Store = store
	var err error
	if s.sales, err = sale.New(s.options); err != nil {
		t.Fatal(err)
	}
	const sellers = 7
	for i := range sellers {
		seller := fmt.Sprintf("usr_%d", i)
		err := s.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
			return tx.InsertUser(t.Context(), auth.User{ID: seller, Name: "Asha", Email: seller + "@example.com", Role: auth.Seller, CreatedAt: s.now})
		})
		if err != nil {
			t.Fatal(err)
		}
		s.record(sale.NewSale{ID: "order-" + seller, Seller: seller, Amount: 100, AvailableAt: s.now.Add(time.Hour)}, true)
	}
	s.now = s.now.Add(time.Hour)
	s.release()
	if store.reads != 5 {
		t.Errorf("the first batch read %d journals, want 5", store.reads)
	}
	for n := 1; n > 0; n = s.release() {
	}
	if store.reads != sellers {
		t.Errorf("%d journals were read, want each of the %d once", store.reads, sellers)
	}
	for i := range sellers {
		if b, err := s.db.Balance(t.Context(), fmt.Sprintf("usr_%d", i)); err != nil || b.Available != 100 {
			t.Errorf("seller %d has %d available, %v; want 100", i, b.Available, err)
		}
	}
}

// countingStore is a store that counts the journals that transactions read.
type countingStore struct {
	sale.Store
	checked *int
}

func (c countingStore) InTx(ctx context.Context, fn func(sale.Tx) error) error {
	return c.Store.InTx(ctx, func(tx sale.Tx) error { return fn(countingTx{tx, c.checked}) })
}

type countingTx struct {
	sale.Tx
	checked *int
}

func (c countingTx) CheckJournal(ctx context.Context, owner string, from int64) error {
	*c.checked++
	return c.Tx.CheckJournal(ctx, owner, from)
}

// TestRelease_LongJournalOfTwoSales_ReadFromTheOlder has two sales of a long journal due, of which the newer one is looked at first. One read is enough for both.
func TestRelease_LongJournalOfTwoSales_ReadFromTheOlder(t *testing.T) {
	s := openShop(t)
	checked := 0
	store := &reading{Store: countingStore{longStore{s.db.Sales()}, &checked}}
	s.options.Store = store
	var err error
	if s.sales, err = sale.New(s.options); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"order-2", "order-1"} { // those that are due are listed by their ids
		s.record(sale.NewSale{ID: id, Seller: "usr_seller", Amount: 100, AvailableAt: s.now.Add(time.Hour)}, true)
	}
	s.now = s.now.Add(time.Hour)
	if n := s.release(); n != 2 || store.reads != 1 || checked != 0 {
		t.Errorf("%d sales were released; the journal was read %d times, and in transactions %d times; want 2, 1 and 0", n, store.reads, checked)
	}
	s.wantBalance(0, 200, 200)
}

// TestRefund_LongJournalPutBack_ReadAgain has another instance add an entry before the journal is read outside of the transaction, and the datastore put back
// to before that once it was read. The journal that is there is whole.
func TestRefund_LongJournalPutBack_ReadAgain(t *testing.T) {
	s, store := openLongShop(t)
	kept := []string{"journals", "entries", "earnings", "queued_events"}
	for _, table := range kept {
		s.place.ByHand(t, `CREATE TABLE kept_`+table+` AS SELECT * FROM `+table)
	}
	store.first = func() {
		o := s.options
		o.Store = s.place.Open(t).Sales()
		other, err := sale.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := other.Record(t.Context(), sale.NewSale{ID: "late", Seller: "usr_seller", Amount: 1}); err != nil {
			t.Fatal(err)
		}
	}
	store.then = func() {
		s.place.ByHand(t, `DELETE FROM sales WHERE id = 'late'`)
		for _, table := range kept {
			s.place.ByHand(t, `DELETE FROM `+table)
			s.place.ByHand(t, `INSERT INTO `+table+` SELECT * FROM kept_`+table)
			s.place.ByHand(t, `DROP TABLE kept_`+table)
		}
	}
	s.refundOf("first", "r2", 100)
	s.wantBalance(1000-200+2100, 0, 1000-200+2100)
}

// TestLongJournal_ReadFails has the read outside of the transaction fail: nothing may look as if it were done.
func TestLongJournal_ReadFails(t *testing.T) {
	s, store := openLongShop(t)
	store.fails = errors.New("the database is gone")
	if _, _, created, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "first", ID: "r2", Amount: 100}); !errors.Is(err, store.fails) || created {
		t.Errorf("refund: created %t, %v", created, err)
	}
	s.now = s.now.Add(100 * time.Hour)
	if n, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, store.fails) || n != 0 {
		t.Errorf("%d sales were released, %v", n, err)
	}
	store.fails = nil
	s.refundOf("first", "r2", 100)
	if n := s.release(); n == 0 {
		t.Error("no sale was released once the journal could be read")
	}
}

// TestLongJournal_TamperedWith deletes an entry in the middle of the journal, or one about the sale once the journal was read.
func TestLongJournal_TamperedWith(t *testing.T) {
	hideRefund := func(s *fixture) {
		s.place.ByHand(s, `DELETE FROM entries WHERE subject = 'sale:first' AND type = 'sale.refunded'; DELETE FROM sale_refunds; UPDATE sales SET refunded = 0 WHERE id = 'first'`)
	}
	for name, tamper := range map[string]func(*fixture, *reading){
		"an entry of another sale": func(s *fixture, _ *reading) {
			s.place.ByHand(s, `DELETE FROM entries WHERE owner = 'usr_seller' AND number = 1000`)
		},
		"the refund":                   func(s *fixture, _ *reading) { hideRefund(s) },
		"the refund, once it was read": func(s *fixture, r *reading) { r.then = func() { hideRefund(s) } },
		"the refund, but while it is read": func(s *fixture, r *reading) {
			s.place.ByHand(s, `CREATE TABLE kept_entries AS SELECT * FROM entries WHERE subject = 'sale:first' AND type = 'sale.refunded'`)
			hideRefund(s)
			r.first = func() { s.place.ByHand(s, `INSERT INTO entries SELECT * FROM kept_entries`) }
			r.then = func() { hideRefund(s) }
		},
		"an entry behind what was read": func(s *fixture, r *reading) {
			r.then = func() {
				r.then = nil
				s.refundOf("order-2098", "r1", 1)
				s.refundOf("order-2099", "r1", 1)
				s.place.ByHand(s, `DELETE FROM entries WHERE subject = 'sale:order-2098' AND type = 'sale.refunded'`)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, store := openLongShop(t)
			tamper(s, store)
			if _, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "first", ID: "r9", Amount: 950}); !errors.Is(err, ledger.ErrTampered) && !errors.Is(err, sale.ErrRefundTooLarge) {
				t.Errorf("refunded: %v", err)
			}
			if _, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "first", ID: "r8", Amount: 50}); !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("refunded by less: %v", err)
			}
			s.now = s.now.Add(100 * time.Hour)
			if _, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("released: %v", err)
			}
			if b, err := s.db.Balance(t.Context(), "usr_seller"); err != nil || b.Available != 0 {
				t.Errorf("available is %d, %v", b.Available, err)
			}
		})
	}
}
