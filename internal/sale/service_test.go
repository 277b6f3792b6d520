package sale_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/sale"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

// fixture is the service over a real database, on a clock of its own.
type fixture struct {
	*testing.T
	db    *store.DB
	place storetest.Place
	sales *sale.Service
	now   time.Time
	// options are those of sales.
	options sale.Options
}

func TestOnPostgres(t *testing.T) { storetest.OnPostgres(t) }

func openShop(t *testing.T) *fixture {
	t.Helper()
	return openShopAt(t, storetest.NewPlace(t))
}

func openShopAt(t *testing.T, place storetest.Place) *fixture {
	t.Helper()
	db := place.Open(t)
	s := &fixture{T: t, db: db, place: place, now: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)}
	var err error
	s.options = sale.Options{
		Store: losing{db.Sales()}, Now: func() time.Time { return s.now }, HoldingPeriod: 72 * time.Hour, Zone: time.FixedZone("IST", 19800),
	}
	s.sales, err = sale.New(s.options)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
		for id, role := range map[string]auth.Role{"usr_seller": auth.Seller, "usr_buyer": auth.Buyer} {
			if err := tx.InsertUser(t.Context(), auth.User{ID: id, Name: "Asha", Email: id + "@example.com", Role: role, CreatedAt: s.now}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// losing is a store that begins every transaction twice, as one does that loses its connection: the
// first breaks off near its end, is undone, and must have left no trace in the closure either.
type losing struct{ sale.Store }

var errLost = errors.New("lost, to be begun again")

func (s losing) InTx(ctx context.Context, fn func(sale.Tx) error) error {
	err := s.Store.InTx(ctx, func(tx sale.Tx) error { return errors.Join(fn(losingTx{tx}), errLost) })
	if !errors.Is(err, errLost) {
		return err
	}
	return s.Store.InTx(ctx, fn)
}

type losingTx struct{ sale.Tx }

func (losingTx) AddEarnings(context.Context, string, string, money.Amount) error { return errLost }

// record records a sale and wants it to be new or not.
func (s *fixture) record(n sale.NewSale, wantCreated bool) sale.Sale {
	s.Helper()
	got, created, err := s.sales.Record(s.Context(), n)
	if err != nil || created != wantCreated {
		s.Fatalf("record %s: created %t, error %v; want created %t", n.ID, created, err, wantCreated)
	}
	return got
}

func (s *fixture) release() int {
	s.Helper()
	n, err := s.sales.ReleaseDue(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return n
}

func (s *fixture) wantBalance(pending, available, earned money.Amount) {
	s.Helper()
	b, err := s.db.Balance(s.Context(), "usr_seller")
	if err != nil {
		s.Fatal(err)
	}
	if b.Pending != pending || b.Available != available || b.Earned != earned {
		s.Errorf("pending %d, available %d, earned %d; want %d, %d, %d", b.Pending, b.Available, b.Earned, pending, available, earned)
	}
	s.wantViolated()
}

// wantViolated runs the audit and wants just the named invariants broken.
func (s *fixture) wantViolated(want ...string) {
	s.Helper()
	report, err := s.db.Audit(s.Context(), storetest.Keys(s))
	if err != nil {
		s.Fatal(err)
	}
	var got, violations []string
	for _, f := range report.Findings {
		if len(f.Violations) > 0 {
			got, violations = append(got, f.Name), append(violations, f.Lines()...)
		}
	}
	if !slices.Equal(got, want) {
		s.Errorf("the audit finds %v broken, want %v: %q", got, want, violations)
	}
}

func TestRecord_Repeated_RecordedOnce(t *testing.T) {
	s := openShop(t)
	n := sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 5000}
	first := s.record(n, true)
	if want := s.now.Add(72 * time.Hour); !first.AvailableAt.Equal(want) || !first.OccurredAt.Equal(s.now) {
		t.Errorf("occurred %s, available %s; want %s and %s", first.OccurredAt, first.AvailableAt, s.now, want)
	}
	s.now = s.now.Add(time.Hour) // the defaults would now be others; the request is the same
	if again := s.record(n, false); again != first {
		t.Errorf("the repeat returned %+v, want %+v", again, first)
	}
	for name, other := range map[string]sale.NewSale{
		"amount":      {ID: "order-1", Seller: "usr_seller", Amount: 5001},
		"occurredAt":  {ID: "order-1", Seller: "usr_seller", Amount: 5000, OccurredAt: s.now},
		"availableAt": {ID: "order-1", Seller: "usr_seller", Amount: 5000, AvailableAt: s.now},
	} {
		if _, _, err := s.sales.Record(t.Context(), other); !errors.Is(err, sale.ErrConflict) {
			t.Errorf("another %s under the same id: %v, want ErrConflict", name, err)
		}
	}
	s.wantBalance(5000, 0, 5000)
}

func TestRecord_InvalidSellerOrTime_Refused(t *testing.T) {
	s := openShop(t)
	for _, seller := range []string{"usr_buyer", "usr_nobody", ""} {
		_, _, err := s.sales.Record(t.Context(), sale.NewSale{ID: "order-1", Seller: seller, Amount: 1})
		if !errors.Is(err, sale.ErrSellerNotFound) {
			t.Errorf("a sale of %q: %v, want ErrSellerNotFound", seller, err)
		}
	}
	_, _, err := s.sales.Record(t.Context(), sale.NewSale{
		ID: "order-1", Seller: "usr_seller", Amount: 1, OccurredAt: s.now, AvailableAt: s.now.Add(-time.Second),
	})
	if f := fault.From(err); f == nil || f.Details["availableAt"] == "" {
		t.Errorf("available before it occurred: %v, want a fault that names availableAt", err)
	}
}

func TestRecord_NoOccurredAt_UsesAvailableAt(t *testing.T) {
	s := openShop(t)
	for i, available := range []time.Time{s.now, s.now.Add(-time.Second), s.now.AddDate(0, -1, 0)} {
		got := s.record(sale.NewSale{ID: fmt.Sprint("order-", i), Seller: "usr_seller", Amount: 100, AvailableAt: available}, true)
		if !got.OccurredAt.Equal(available) {
			t.Errorf("available %s, occurred %s; want the same", available, got.OccurredAt)
		}
	}
	s.release()
	s.wantBalance(0, 300, 300)
}

func TestRelease_OnceWhenHoldingPeriodIsOver(t *testing.T) {
	s := openShop(t)
	s.record(sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 5000}, true)
	s.now = s.now.Add(72*time.Hour - time.Second)
	if n := s.release(); n != 0 {
		t.Errorf("%d sales were released before their time", n)
	}
	s.now = s.now.Add(time.Second)
	var released atomic.Int64
	var loops sync.WaitGroup
	for range 4 {
		loops.Go(func() { released.Add(int64(s.release())) })
	}
	loops.Wait()
	if released.Load() != 1 {
		t.Errorf("released %d times, want once", released.Load())
	}
	s.wantBalance(0, 5000, 5000)
}

func TestRefund_BeforeAndAfterRelease(t *testing.T) {
	s := openShop(t)
	s.record(sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 5000}, true)
	s.record(sale.NewSale{ID: "order-2", Seller: "usr_seller", Amount: 3000}, true)

	refund := func(saleID, id string, amount money.Amount, wantCreated bool, want error) sale.Refund {
		t.Helper()
		_, r, created, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: saleID, ID: id, Amount: amount})
		if !errors.Is(err, want) || created != wantCreated {
			t.Errorf("refund %s of %d from %s: created %t, error %v; want created %t, error %v", id, amount, saleID, created, err, wantCreated, want)
		}
		return r
	}
	refund("order-1", "r1", 1000, true, nil) // before the release: from pending
	s.wantBalance(7000, 0, 7000)
	refund("order-1", "r1", 1000, false, nil)
	refund("order-1", "r1", 1001, false, sale.ErrRefundConflict)
	refund("order-1", "r2", 4001, false, sale.ErrRefundTooLarge)
	refund("order-3", "r1", 1, false, sale.ErrNotFound)

	s.now = s.now.Add(100 * time.Hour)
	s.release()
	s.wantBalance(0, 7000, 7000)
	if r := refund("order-2", "all", 0, true, nil); r.Amount != 3000 { // after it: from available
		t.Errorf("all that was left was %d, want 3000", r.Amount)
	}
	refund("order-2", "all", 0, false, nil)
	refund("order-2", "more", 0, false, sale.ErrRefundTooLarge)
	s.wantBalance(0, 4000, 4000)
}

// The money of the refunded sale is reserved for a payout.
func TestRefund_MoneyReserved_BalanceNegative(t *testing.T) {
	s := openShop(t)
	s.record(sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 5000, OccurredAt: s.now, AvailableAt: s.now}, true)
	s.release()
	err := s.db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Append(t.Context(), ledger.Posting{
			Owner: "usr_seller", At: s.now, Type: ledger.PayoutRequested, Subject: "pyt_1", Actor: "user:usr_seller", Data: "{}", Moved: ledger.ReservePayout(4000),
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "r1"}); err != nil {
		t.Fatal(err)
	}
	b, err := s.db.Balance(t.Context(), "usr_seller")
	if err != nil || b.Available != -4000 || b.InTransit != 4000 {
		t.Errorf("available %d, in transit %d, error %v; want -4000 and 4000", b.Available, b.InTransit, err)
	}
}

func TestRelease_RefundedSale_AddsNothing(t *testing.T) {
	s := openShop(t)
	s.record(sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 5000}, true)
	if _, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "r1"}); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(100 * time.Hour)
	if n := s.release(); n != 1 {
		t.Errorf("released %d, want the one sale marked", n)
	}
	s.wantBalance(0, 0, 0)
}

func TestRelease_OneFails_OthersReleased(t *testing.T) {
	s := openShop(t)
	s.record(sale.NewSale{ID: "broken", Seller: "usr_seller", Amount: 700, OccurredAt: s.now, AvailableAt: s.now}, true)
	s.record(sale.NewSale{ID: "good", Seller: "usr_seller", Amount: 300, OccurredAt: s.now, AvailableAt: s.now.Add(time.Second)}, true)
	err := s.db.Update(t.Context(), func(tx *store.Tx) error { // the ledger is short of 100, as it never should be
		_, err := tx.Append(t.Context(), ledger.Posting{
			Owner: "usr_seller", At: s.now, Type: ledger.SaleRefunded, Subject: "sale:other", Actor: "marketplace", Data: "{}", Moved: ledger.RefundSale(400, false),
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(time.Minute)
	released, err := s.sales.ReleaseDue(t.Context())
	if released != 1 || err == nil || !strings.Contains(err.Error(), "broken") || strings.Contains(err.Error(), "good") {
		t.Errorf("released %d, error %v; want the good one released and the broken one named", released, err)
	}
	b, err := s.db.Balance(t.Context(), "usr_seller")
	if err != nil || b.Available != 300 {
		t.Errorf("available %d, error %v; want 300", b.Available, err)
	}
}

// TestMonthsFollowTheZone has a sale at a moment that is October in UTC and November in India.
func TestMonthsFollowTheZone(t *testing.T) {
	s := openShop(t)
	at := time.Date(2026, 10, 31, 18, 30, 0, 0, time.UTC)
	for i, occurred := range []time.Time{at.Add(-time.Microsecond), at} {
		s.record(sale.NewSale{ID: fmt.Sprintf("order-%d", i), Seller: "usr_seller", Amount: money.Amount(100 + i), OccurredAt: occurred}, true)
	}
	summary, err := s.db.Summary(t.Context(), "usr_seller", "2026-11", "2026-10")
	if err != nil {
		t.Fatal(err)
	}
	if summary.ThisMonth != 101 || summary.LastMonth != 100 {
		t.Errorf("November %d, October %d; want 101 and 100", summary.ThisMonth, summary.LastMonth)
	}
}

func TestRefund_Concurrent_NeverExceedsSale(t *testing.T) {
	s := openShop(t)
	s.record(sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 1000}, true)
	var refunded atomic.Int64
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() {
			_, _, created, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: fmt.Sprint("r", i), Amount: 300})
			switch {
			case created:
				refunded.Add(300)
			case !errors.Is(err, sale.ErrRefundTooLarge):
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if refunded.Load() != 900 {
		t.Errorf("refunded %d of 1000 in steps of 300, want 900", refunded.Load())
	}
	s.wantBalance(100, 0, 100)
}
