package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/money"
	"bursar/internal/sale"
	"bursar/internal/store"
)

func testSaleIDs(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	s := sale.Sale{
		ID: "s1", Seller: seller, Amount: 500, Month: "2026-10", OccurredAt: b.now.Add(-time.Hour),
		AvailableAt: b.now.Add(time.Hour), CreatedAt: b.now, Fingerprint: "first",
	}
	for i, want := range []bool{true, false} {
		b.update(func(tx *store.Tx) error {
			inserted, err := tx.InsertSale(b.ctx(), s)
			if inserted != want {
				b.Errorf("insert %d: %t, want %t", i, inserted, want)
			}
			return err
		})
	}
	b.update(func(tx *store.Tx) error {
		got, err := tx.SaleForUpdate(b.ctx(), "s1")
		if got != s {
			b.Errorf("read back %+v, want %+v", got, s)
		}
		if _, missing := tx.SaleForUpdate(b.ctx(), "s2"); !errors.Is(missing, sale.ErrNotFound) {
			b.Errorf("a sale that is not there: %v", missing)
		}
		for id, want := range map[string]bool{seller: true, "usr_nobody": false} {
			sells, err := tx.SellerExists(b.ctx(), id)
			if err != nil || sells != want {
				b.Errorf("%s sells: %t, %v; want %t", id, sells, err, want)
			}
		}
		return err
	})
}

func testRefundLimits(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.sell("s1", seller, 500)
	b.update(func(tx *store.Tx) error {
		for _, step := range []struct {
			amount int64
			want   bool
		}{{300, true}, {201, false}, {200, true}, {1, false}} {
			within, err := tx.AddRefunded(b.ctx(), "s1", money.Amount(step.amount))
			if err != nil || within != step.want {
				b.Errorf("refund of %d: %t, %v; want %t", step.amount, within, err, step.want)
			}
		}
		r := sale.Refund{ID: "r1", Sale: "s1", Amount: 300, At: b.now, Fingerprint: "f"}
		if err := tx.InsertRefund(b.ctx(), r); err != nil {
			return err
		}
		got, seen, err := tx.Refund(b.ctx(), "s1", "r1")
		if !seen || got != r {
			b.Errorf("read back %+v, %t; want %+v", got, seen, r)
		}
		if _, seen, err := tx.Refund(b.ctx(), "s2", "r1"); seen || err != nil {
			b.Errorf("a refund of another sale was found: %t, %v", seen, err)
		}
		return err
	})
}

func testDueSales(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	for id, reserve := range map[string]time.Duration{"later": time.Hour, "second": -time.Minute, "first": -time.Hour} {
		b.update(func(tx *store.Tx) error {
			_, err := tx.InsertSale(b.ctx(), sale.Sale{
				ID: id, Seller: seller, Amount: 1, OccurredAt: b.now, AvailableAt: b.now.Add(reserve), CreatedAt: b.now,
			})
			return err
		})
	}
	b.update(func(tx *store.Tx) error {
		one, err := tx.DueSales(b.ctx(), b.now, 1)
		if err != nil || len(one) != 1 || one[0] != "first" {
			b.Errorf("the longest due is %v, %v; want first", one, err)
		}
		all, err := tx.DueSales(b.ctx(), b.now, 10)
		if err != nil || len(all) != 2 || all[1] != "second" {
			b.Errorf("due are %v, %v; want first and second", all, err)
		}
		for i, want := range []bool{true, false} {
			marked, err := tx.MarkReleased(b.ctx(), "first", b.now)
			if err != nil || marked != want {
				b.Errorf("release %d: %t, %v; want %t", i, marked, err, want)
			}
		}
		all, err = tx.DueSales(b.ctx(), b.now, 10)
		if err != nil || len(all) != 1 || all[0] != "second" {
			b.Errorf("after a release, due are %v, %v; want second", all, err)
		}
		for id, until := range map[string]time.Time{"first": b.now, "second": b.now.Add(time.Minute)} { // the first was released
			if err := tx.PostponeRelease(b.ctx(), id, until); err != nil {
				return err
			}
		}
		for at, want := range map[time.Time]int{b.now: 0, b.now.Add(time.Minute): 1} {
			if due, err := tx.DueSales(b.ctx(), at, 10); err != nil || len(due) != want {
				b.Errorf("after one was postponed, due at %s are %v, %v; want %d", at, due, err, want)
			}
		}
		return nil
	})
}

// sellAt records a sale that occurred and becomes available at the given times from now.
func (b *bench) sellAt(id, seller string, amount money.Amount, occurred, available time.Duration) sale.Sale {
	b.Helper()
	s := sale.Sale{
		ID: id, Seller: seller, Amount: amount, Month: "2026-11", OccurredAt: b.now.Add(occurred), AvailableAt: b.now.Add(available),
		CreatedAt: b.now, Fingerprint: "f",
	}
	b.addSale(s)
	return s
}

func testSalePages(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	var want []sale.Sale
	for id, occurred := range map[string]time.Duration{"d": -time.Hour, "c": 0, "b": 0, "a": time.Hour} {
		want = append(want, b.sellAt(id, seller, 500, occurred, time.Hour))
	}
	slices.SortFunc(want, func(a, b sale.Sale) int { return strings.Compare(a.ID, b.ID) })
	want[1], want[2] = want[2], want[1] // of those at one time the later id comes first
	b.update(func(tx *store.Tx) error {
		if _, err := tx.AddRefunded(b.ctx(), "a", 20); err != nil {
			return err
		}
		_, err := tx.MarkReleased(b.ctx(), "a", b.now)
		return err
	})
	want[0].Refunded, want[0].ReleasedAt = 20, b.now
	b.sellAt("other", b.seller("usr_b"), 500, 0, 0)
	for _, tt := range []struct {
		seller        string
		offset, limit int
		want          []sale.Sale
		total         int64
	}{
		{seller, 0, 10, want, 4}, {seller, 0, 3, want[:3], 4}, {seller, 3, 3, want[3:], 4}, {seller, 4, 3, nil, 4}, {"usr_nobody", 0, 3, nil, 0},
	} {
		got, total, err := b.db.ListSales(b.ctx(), tt.seller, tt.offset, tt.limit)
		b.must(err)
		if !slices.Equal(got, tt.want) || total != tt.total {
			b.Errorf("%d of %s from %d: %+v of %d, want %+v of %d", tt.limit, tt.seller, tt.offset, got, total, tt.want, tt.total)
		}
	}
}

func testMonths(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.update(func(tx *store.Tx) error {
		for month, amount := range map[string]money.Amount{"2026-09": 9, "2026-10": 10, "2026-12": 12, "2027-01": 1} {
			if err := tx.AddEarnings(b.ctx(), seller, month, amount); err != nil {
				return err
			}
		}
		return nil
	})
	got, err := b.db.Earnings(b.ctx(), seller, "2026-10", "2026-12")
	b.must(err)
	if want := []sale.Month{{Month: "2026-10", Earned: 10}, {Month: "2026-12", Earned: 12}}; !slices.Equal(got, want) {
		b.Errorf("earnings %+v, want %+v", got, want)
	}
}

func testPendingByDay(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	const day = 24 * time.Hour
	b.sellAt("overdue", seller, 1, -day, -time.Hour)
	b.sellAt("last of the day", seller, 20, 0, day-time.Microsecond)
	b.sellAt("first of the next", seller, 300, 0, day)
	b.sellAt("refunded whole", seller, 4000, 0, day)
	b.sellAt("beyond", seller, 50_000, 0, 3*day)
	b.sellAt("released", seller, 600_000, 0, 0)
	b.sellAt("another's", b.seller("usr_b"), 7_000_000, 0, 0)
	b.update(func(tx *store.Tx) error {
		for id, refunded := range map[string]money.Amount{"first of the next": 100, "refunded whole": 4000} {
			if _, err := tx.AddRefunded(b.ctx(), id, refunded); err != nil {
				return err
			}
		}
		_, err := tx.MarkReleased(b.ctx(), "released", b.now)
		return err
	})
	days := []time.Time{b.now, b.now.Add(day), b.now.Add(2 * day), b.now.Add(3 * day)}
	got, err := b.db.PendingByDay(b.ctx(), seller, days)
	b.must(err)
	want := []sale.Release{{Day: days[0], Amount: 21, Sales: 2}, {Day: days[1], Amount: 200, Sales: 1}}
	if !slices.Equal(got, want) {
		b.Errorf("pending by day %+v, want %+v", got, want)
	}
}
