package storetest

import (
	"errors"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/store"
)

// view reads what explains a seller's balance, twice, with a change between.
func (b *bench) view(seller string, between func()) {
	b.Helper()
	b.must(b.db.Payouts().View(b.ctx(), func(v payout.View) error {
		for range 2 {
			balance, err := v.Balance(b.ctx(), seller)
			b.must(err)
			list, err := v.PayoutsInTransit(b.ctx(), seller, 10)
			b.must(err)
			account, err := v.AccountToPay(b.ctx(), seller)
			b.must(err)
			if balance.Available != 700 || balance.InTransit != 300 || len(list) != 1 || list[0].Amount != 300 || list[0].State != payout.Waiting || account.ID == "" {
				b.Errorf("the view has %+v, %+v, %+v", balance, list, account)
			}
			between()
		}
		return nil
	}))
}

// testView reads beside a change that is under way, and beside one that commits during the view.
func testView(t *testing.T, b *bench) {
	t.Helper()
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	b.ask("pyt_1", seller, 300, 5)
	b.update(func(tx *store.Tx) error {
		if _, err := tx.Append(b.ctx(), b.posting(seller, ledger.SaleRecorded, ledger.Sale(50))); err != nil {
			return err
		}
		b.view(seller, func() {}) // waits for nothing
		return nil
	})
	changes := 0
	b.view(seller, func() {
		if changes++; changes == 1 {
			b.ask("pyt_2", seller, 200, 5)
		}
	})
	b.must(b.db.Payouts().View(b.ctx(), func(v payout.View) error {
		list, err := v.PayoutsInTransit(b.ctx(), seller, 10)
		if len(list) != 2 || list[0].ID != "pyt_2" {
			t.Errorf("the next view has %+v", list)
		}
		newest, err2 := v.PayoutsInTransit(b.ctx(), seller, 1)
		if len(newest) != 1 || newest[0].ID != "pyt_2" {
			t.Errorf("the newest one in transit is %+v", newest)
		}
		b.must(err2)
		return err
	}))
	changed := b.with(b.engine.Tamper(b.T, b.db, `UPDATE bank_accounts SET holder = 'Mallory'`))
	b.must(changed.db.Payouts().View(b.ctx(), func(v payout.View) error {
		if account, err := v.AccountToPay(b.ctx(), seller); !errors.Is(err, ledger.ErrTampered) {
			t.Errorf("a bank account that was changed by hand: %+v, %v", account, err)
		}
		return nil
	}))
}

// testViewTimes asks when payouts were paused, and when the balance fell below amounts.
func testViewTimes(t *testing.T, b *bench) {
	t.Helper()
	seller := b.seller("usr_a")
	start := b.now
	b.fund(seller, 1000)
	times := map[string]time.Time{}
	step := func(name string, do func()) {
		b.now = b.now.Add(time.Hour)
		times[name] = b.now
		do()
	}
	step("first", func() { b.ask("pyt_1", seller, 600, 5) }) // 400 are left
	step("second", func() { b.ask("pyt_2", seller, 300, 5) })
	step("paused", func() { b.pause(true) })
	step("again", func() { b.pause(false) })
	step("paused again", func() { b.pause(true) })
	b.must(b.db.Payouts().View(b.ctx(), func(v payout.View) error {
		for amount, want := range map[money.Amount]time.Time{401: times["first"], 1000: times["first"], 400: times["second"], 101: times["second"], 1001: {}} {
			if at, err := v.BelowSince(b.ctx(), seller, amount); err != nil || !at.Equal(want) {
				t.Errorf("less than %d is available since %v, %v, want %v", amount, at, err, want)
			}
		}
		at, err := v.NewestOfType(b.ctx(), decision.Platform, decision.Platform, ledger.PayoutsFrozen)
		if err != nil || !at.Equal(times["paused again"]) {
			t.Errorf("payouts are paused since %v, %v", at, err)
		}
		at, err = v.NewestOfType(b.ctx(), seller, seller, ledger.PayoutsFrozen)
		if err != nil || !at.IsZero() {
			t.Errorf("the seller is frozen since %v, %v", at, err)
		}
		about, err := v.EntriesAbout(b.ctx(), seller, "pyt_1")
		if err != nil || len(about) != 1 || about[0].At.Before(start) {
			t.Errorf("the entries about a payout are %+v, %v", about, err)
		}
		paused, err := v.PayoutsPaused(b.ctx())
		if !paused {
			t.Error("payouts are not paused")
		}
		return err
	}))
}
