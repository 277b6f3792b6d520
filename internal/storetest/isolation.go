package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/store"
)

// testLockedReads has many read a row under its lock, work out the next value and write it.
func testLockedReads(_ *testing.T, b *bench) {
	const callers, rounds = 8, 20
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	p := b.ask("pyt_1", seller, 100, 0)
	b.atOnce(callers, func(int) error {
		for range rounds {
			err := b.db.Update(b.ctx(), func(tx *store.Tx) error {
				p, err := tx.PayoutForUpdate(b.ctx(), p.ID)
				if err != nil {
					return err
				}
				p.Tries++
				_, err = tx.UpdatePayout(b.ctx(), p.State, p)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	p, err := b.db.Payout(b.ctx(), p.ID)
	if err != nil || p.Tries != callers*rounds {
		b.Errorf("%d increments of %d are left, %v", p.Tries, callers*rounds, err)
	}

	for i := range rounds {
		id := fmt.Sprintf("sale %d", i)
		b.sell(id, seller, 500)
		b.atOnce(callers, func(int) error {
			return b.db.Update(b.ctx(), func(tx *store.Tx) error {
				s, err := tx.SaleForUpdate(b.ctx(), id)
				if err != nil || s.Left() == 0 {
					return err
				}
				within, err := tx.AddRefunded(b.ctx(), id, s.Left())
				if err == nil && !within {
					err = errors.New("a sale changed under its lock")
				}
				return err
			})
		})
	}
}

// testFirstUse has many make the rows that the first of them needs, and lock.
func testFirstUse(_ *testing.T, b *bench) {
	for round := range 5 {
		u := newUser(fmt.Sprintf("usr_%d", round))
		b.update(func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), u) })
		b.atOnce(8, func(i int) error {
			return b.db.Update(b.ctx(), func(tx *store.Tx) error {
				id := fmt.Sprint(i)
				if err := post(b, tx, u.ID, ledger.SaleRecorded, sale.SubjectPrefix+id, sale.Sale{}, sale.Sale{Amount: 100}, ledger.Sale(100)); err != nil {
					return err
				}
				return tx.AddEarnings(b.ctx(), u.ID, "2026-11", 100)
			})
		})
		balance, err := b.db.Balance(b.ctx(), u.ID)
		b.must(err)
		if balance.Pending != 800 || balance.Counts.Sales != 8 {
			b.Errorf("eight first sales of 100 left %d pending and %d counted", balance.Pending, balance.Counts.Sales)
		}
		summary, err := b.db.Summary(b.ctx(), u.ID, "2026-11", "2026-10")
		if err != nil || summary.ThisMonth != 800 {
			b.Errorf("the month's first sales make %d, %v; want 800", summary.ThisMonth, err)
		}
	}
}

// testFailedStatement has a closure go on after a statement of its failed, as if nothing were.
func testFailedStatement(_ *testing.T, b *bench) {
	key := func(tx *store.Tx, id string) error { return b.insertKey(tx, id) }
	err := b.db.Update(b.ctx(), func(tx *store.Tx) error {
		if err := key(tx, "key_1"); err != nil {
			return err
		}
		again := b.serviceKey("key_1")
		again.Name = "another"
		_, failed := tx.InsertServiceKey(b.ctx(), again, "operator:asha")
		if failed == nil {
			b.Error("one id was given to two keys")
		}
		if after := key(tx, "key_2"); !errors.Is(after, failed) {
			b.Errorf("a statement after one that failed was run: %v", after)
		}
		if _, _, after := tx.UserByEmail(b.ctx(), "usr_a@example.com"); !errors.Is(after, failed) {
			b.Errorf("a query after a statement that failed was run: %v", after)
		}
		return nil
	})
	if err == nil {
		b.Error("a closure succeeded though a statement of its failed")
	}
	for _, id := range []string{"key_1", "key_2"} {
		if _, kept, err := b.db.ServiceKey(b.ctx(), "hash of "+id, b.now); kept || err != nil {
			b.Errorf("%s was kept: %t, %v", id, kept, err)
		}
	}
	b.update(func(tx *store.Tx) error { return key(tx, "key_1") })
}

// testCallerWhoLeaves has a caller who is gone before its transaction is over. What was begun is finished,
// and its outcome is the answer.
func testCallerWhoLeaves(_ *testing.T, b *bench) {
	ctx, leave := context.WithCancel(b.ctx())
	defer leave()
	err := b.db.Update(ctx, func(tx *store.Tx) error {
		if err := b.insertKey(tx, "key_1"); err != nil {
			return err
		}
		leave()
		_, _, err := tx.UserByEmail(ctx, "usr_a@example.com")
		return errors.Join(err, b.insertKey(tx, "key_2"))
	})
	if err != nil {
		b.Errorf("a transaction ended with its caller: %v", err)
	}
	if err := b.db.Update(ctx, func(*store.Tx) error { return nil }); err == nil {
		b.Error("a transaction was begun for a caller who had left")
	}
	for _, id := range []string{"key_1", "key_2"} {
		if _, kept, err := b.db.ServiceKey(b.ctx(), "hash of "+id, b.now); !kept || err != nil {
			b.Errorf("%s was kept: %t, %v", id, kept, err)
		}
	}
}

// testReleasesBesideEverything releases the sales of many sellers from several sides at once, while the
// same sellers sell, refund and withdraw. All transactions lock their balances in one order.
func testReleasesBesideEverything(_ *testing.T, b *bench) {
	const sellers, sales = 16, 14
	service, err := sale.New(sale.Options{
		Store: b.db.Sales(), Now: func() time.Time { return b.now }, HoldingPeriod: time.Hour, Zone: time.UTC,
	})
	b.must(err)
	seller := func(i int) string { return fmt.Sprintf("usr_%d", i%sellers) }
	record := func(id, seller string, due time.Time) error {
		_, _, err := service.Record(b.ctx(), sale.NewSale{ID: id, Seller: seller, Amount: 100, OccurredAt: due.Add(-time.Hour), AvailableAt: due})
		return err
	}
	for i := range sellers {
		b.seller(seller(i))
	}
	b.atOnce(sellers, func(from int) error { // due in an order that mixes the sellers
		for i := from * sales; i < (from+1)*sales; i++ {
			if err := record(fmt.Sprintf("sale %d", i), seller(i*5), b.now.Add(-time.Duration(i*37%100)*time.Second)); err != nil {
				return err
			}
		}
		return nil
	})
	release := func(int, int) error { _, err := service.ReleaseDue(b.ctx()); return err }
	sell := func(worker, round int) error {
		return record(fmt.Sprintf("late %d-%d", worker, round), seller(worker+round), b.now)
	}
	refund := func(worker, round int) error {
		_, _, _, err := service.Refund(b.ctx(), sale.NewRefund{
			Sale: fmt.Sprintf("sale %d", (worker*7+round)%(sellers*sales)), ID: fmt.Sprintf("%d-%d", worker, round), Amount: 1,
		})
		return err
	}
	withdraw := func(worker, round int) error {
		id := fmt.Sprintf("pyt_%d_%d", worker, round)
		_, err := b.request(seller(worker+round), id, payout.ID(id), 50)
		return err
	}
	roles := []func(worker, round int) error{release, withdraw, sell, withdraw, refund, release, withdraw, withdraw}
	b.atOnce(3*len(roles), func(worker int) error {
		for round := range 12 {
			if err := roles[worker%len(roles)](worker, round); err != nil {
				return err
			}
		}
		return nil
	})
	for range sellers * sales {
		n, err := service.ReleaseDue(b.ctx())
		b.must(err)
		if n == 0 {
			break
		}
	}
	for i := range sellers {
		balance, err := b.db.Balance(b.ctx(), seller(i))
		b.must(err)
		if balance.Pending != money.Amount(0) {
			b.Errorf("%s still has %d pending", seller(i), balance.Pending)
		}
	}
	b.wantCleanAudit()
}
