package storetest

import (
	"errors"
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
	for id, hold := range map[string]time.Duration{"later": time.Hour, "second": -time.Minute, "first": -time.Hour} {
		b.update(func(tx *store.Tx) error {
			_, err := tx.InsertSale(b.ctx(), sale.Sale{
				ID: id, Seller: seller, Amount: 1, OccurredAt: b.now, AvailableAt: b.now.Add(hold), CreatedAt: b.now,
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
		return nil
	})
}
