package sale_test

import (
	"errors"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/money"
	"bursar/internal/sale"
)

func opening(available, pending int64) sale.NewOpening {
	return sale.NewOpening{
		Seller: "usr_seller", Available: money.Amount(available), Pending: money.Amount(pending), By: decision.By{Operator: "ada", Note: "moved"},
	}
}

func (s *fixture) open(n sale.NewOpening, wantCreated bool) {
	s.Helper()
	if would, err := s.sales.WouldOpen(s.Context(), n); err != nil || would != wantCreated {
		s.Errorf("a trial of %+v: created %t, %v", n, would, err)
	}
	if created, err := s.sales.Open(s.Context(), n); err != nil || created != wantCreated {
		s.Fatalf("open %+v: created %t, %v; want %t", n, created, err, wantCreated)
	}
}

func TestOpen_IsFirstAndOnce(t *testing.T) {
	s := openShop(t)
	n := opening(5000, 700)
	n.AvailableAt = s.now.Add(time.Hour)
	s.open(n, true)
	s.wantBalance(700, 5000, 5700)
	s.now = s.now.Add(time.Minute)
	s.open(n, false)
	for name, change := range map[string]func(*sale.NewOpening){
		"available":   func(n *sale.NewOpening) { n.Available++ },
		"nothing":     func(n *sale.NewOpening) { n.Available = 0 },
		"pending":     func(n *sale.NewOpening) { n.Pending++ },
		"availableAt": func(n *sale.NewOpening) { n.AvailableAt = n.AvailableAt.Add(time.Second) },
		"no pending":  func(n *sale.NewOpening) { n.Pending, n.AvailableAt = 0, time.Time{} },
	} {
		other := n
		change(&other)
		if _, err := s.sales.Open(s.Context(), other); !errors.Is(err, sale.ErrOpeningConflict) {
			t.Errorf("with another %s: %v", name, err)
		}
	}
	s.now = s.now.Add(time.Hour)
	if s.release() != 1 {
		t.Error("what was pending is not released")
	}
	s.wantBalance(0, 5700, 5700)
	s.open(n, false)
	s.wantBalance(0, 5700, 5700)

	list, err := s.sales.Adjustments(t.Context(), "usr_seller", 0, 10)
	if err != nil || len(list) != 1 || list[0].Operator != "ada" || list[0].Admin != "" || list[0].Amount != 5000 {
		t.Errorf("listed are %+v, %v", list, err)
	}
}

// TestOpen_PendingOccurred dates what is pending: now, or on the day that it becomes available, if that is over. That decides the month.
func TestOpen_PendingOccurred(t *testing.T) {
	for name, tt := range map[string]struct {
		after                     time.Duration // until it is available; 0 for what the service says
		wantOccurred, wantRelease time.Duration
		wantMonth                 string
	}{
		"later":      {time.Hour, 0, time.Hour, "2026-11"},
		"not said":   {0, 0, 72 * time.Hour, "2026-11"},
		"last month": {-72 * time.Hour, -72 * time.Hour, -72 * time.Hour, "2026-10"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t)
			n := opening(0, 700)
			if tt.after != 0 {
				n.AvailableAt = s.now.Add(tt.after)
			}
			s.open(n, true)
			s.open(n, false)
			list, _, err := s.sales.List(t.Context(), "usr_seller", 0, 10)
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			got := list[0]
			if got.OccurredAt.Sub(s.now) != tt.wantOccurred || got.AvailableAt.Sub(s.now) != tt.wantRelease || got.Month != tt.wantMonth {
				t.Errorf("now is %s, and it is %+v", s.now, got)
			}
		})
	}
}

func TestOpen_OfADebt(t *testing.T) {
	s := openShop(t)
	s.open(opening(-300, 0), true)
	s.wantBalance(0, -300, -300)
	s.open(opening(-300, 0), false)
}

// TestOpen_ReleaseDayOfNothing has a release day beside no pending money, as exports do that write each column on each line.
func TestOpen_ReleaseDayOfNothing(t *testing.T) {
	s := openShop(t)
	for _, created := range []bool{true, false} {
		n := opening(500, 0)
		n.AvailableAt = s.now
		if got, err := s.sales.Open(t.Context(), n); got != created || err != nil {
			t.Fatalf("created %t, %v; want %t", got, err, created)
		}
	}
	s.wantBalance(0, 500, 500)
}

func TestOpen_Refusals(t *testing.T) {
	s := openShop(t)
	if would, err := s.sales.WouldOpen(t.Context(), opening(100, 200)); !would || err != nil {
		t.Errorf("a trial: %t, %v", would, err)
	}
	s.wantBalance(0, 0, 0)
	for name, n := range map[string]sale.NewOpening{
		"available": opening(0, 0),
		"pending":   opening(1, -1),
	} {
		_, err := s.sales.Open(t.Context(), n)
		if f := fault.From(err); f == nil || f.Details[name] == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, seller := range []string{"usr_buyer", "usr_nobody"} {
		n := opening(1, 0)
		n.Seller = seller
		if _, err := s.sales.Open(t.Context(), n); !errors.Is(err, sale.ErrSellerNotFound) {
			t.Errorf("of %s: %v", seller, err)
		}
	}
	// Nobody else's sale or adjustment takes the place of an opening balance.
	_, _, err := s.sales.Record(t.Context(), sale.NewSale{ID: "opening:usr_seller", Seller: "usr_seller", Amount: 100})
	if f := fault.From(err); f == nil || f.Details["saleId"] == "" {
		t.Errorf("a sale with its id: %v", err)
	}
	_, _, err = s.sales.Adjust(t.Context(), sale.NewAdjustment{ID: "opening", Seller: "usr_seller", Amount: 100, Reason: "A gift.", By: decision.By{Admin: "usr_admin", Note: "n"}})
	if f := fault.From(err); f == nil || f.Details["adjustmentId"] == "" {
		t.Errorf("an adjustment with its id: %v", err)
	}
	s.record(sale.NewSale{ID: "s1", Seller: "usr_seller", Amount: 100, OccurredAt: s.now}, true)
	if _, err := s.sales.Open(t.Context(), opening(100, 0)); !errors.Is(err, sale.ErrNotFirst) {
		t.Errorf("after a sale: %v", err)
	}
	s.wantBalance(100, 0, 100)
	if _, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "s1", ID: "r1", Amount: 100}); err != nil {
		t.Fatal(err)
	}
	s.wantBalance(0, 0, 0)
	if _, err := s.sales.Open(t.Context(), opening(100, 0)); !errors.Is(err, sale.ErrNotFirst) {
		t.Errorf("after a sale that was refunded: %v", err)
	}
}

func TestWouldRecord(t *testing.T) {
	s := openShop(t)
	n := sale.NewSale{ID: "s1", Seller: "usr_seller", Amount: 100, OccurredAt: s.now}
	for range 2 {
		if got, would, err := s.sales.WouldRecord(t.Context(), n); err != nil || !would || got.Amount != 100 {
			t.Errorf("a trial: %+v, %t, %v", got, would, err)
		}
		s.wantBalance(0, 0, 0)
	}
	s.record(n, true)
	if _, would, err := s.sales.WouldRecord(t.Context(), n); err != nil || would {
		t.Errorf("a trial of the same again: %t, %v", would, err)
	}
	n.Amount++
	if _, _, err := s.sales.WouldRecord(t.Context(), n); !errors.Is(err, sale.ErrConflict) {
		t.Errorf("a trial of another sale: %v", err)
	}
	s.wantBalance(100, 0, 100)
}

func TestOpen_LargestAmounts(t *testing.T) {
	for name, tt := range map[string]struct {
		available, pending money.Amount
		field              string
	}{
		"the most":          {money.Max, money.Max, ""},
		"the least":         {-money.Max, 0, ""},
		"one above":         {money.Max + 1, 0, "available"},
		"one below":         {-money.Max - 1, 0, "available"},
		"pending above":     {0, money.Max + 1, "pending"},
		"pending below":     {0, -1, "pending"},
		"pending alone":     {0, 1, ""},
		"nothing at all":    {0, 0, "available"},
		"both, one too low": {1, -1, "pending"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t)
			n := opening(int64(tt.available), int64(tt.pending))
			if tt.pending > 0 {
				n.AvailableAt = s.now.Add(time.Hour)
			}
			created, err := s.sales.Open(t.Context(), n)
			if f := fault.From(err); tt.field == "" && (err != nil || !created) || tt.field != "" && (f == nil || f.Details[tt.field] == "") {
				t.Fatalf("created %t, %v; want a fault of %q", created, err, tt.field)
			}
			if tt.field != "" {
				tt.available, tt.pending = 0, 0
			}
			s.wantBalance(tt.pending, tt.available, tt.pending+tt.available)
		})
	}
}
