package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/store"
)

// request asks for a payout as package payout does, and returns the one that its key stands for.
func (b *bench) request(seller, key string, id payout.ID, amount money.Amount) (payout.Payout, error) {
	var p payout.Payout
	err := b.db.Payouts().InGroup(b.ctx(), ledger.Scope{Owner: seller, Key: key}, func(tx payout.ChangeTx) error {
		isNew, err := tx.SaveIdempotency(b.ctx(), seller, key, payout.Idempotency{Fingerprint: fmt.Sprintf("request %d ", amount), Payout: id}, b.now)
		if err != nil {
			return err
		}
		if !isNew {
			p, err = b.replay(tx, seller, key)
			return err
		}
		p, err = b.reserve(tx, seller, id, amount)
		if errors.Is(err, ledger.ErrInsufficient) {
			balance, err := tx.Balance(b.ctx(), seller)
			p.Notes = fmt.Sprintf("only %d", balance.Available)
			return errors.Join(err, tx.SaveIdempotencyRefusal(b.ctx(), seller, key, p.Notes))
		}
		return err
	})
	return p, err
}

func (b *bench) reserve(tx payout.RequestTx, seller string, id payout.ID, amount money.Amount) (payout.Payout, error) {
	account, err := tx.AccountToPay(b.ctx(), seller)
	if err != nil {
		return payout.Payout{}, err
	}
	p := payout.Payout{
		ID: id, Seller: seller, BankAccountID: account.ID, Amount: amount, State: payout.Waiting, Rail: "IMPS", Gateway: atGateway,
		RequestedAt: b.now, ArriveAt: b.now.Add(time.Hour), DueAt: b.now,
		AccountHolder: account.Holder, AccountLast4: account.Last4, AccountIFSC: string(account.IFSC),
	}
	if err := post(b, tx, seller, ledger.PayoutRequested, string(id), payout.Payout{ID: id}, p, ledger.ReservePayout(amount)); err != nil {
		return payout.Payout{}, err
	}
	return p, tx.InsertPayout(b.ctx(), p)
}

func (b *bench) replay(tx payout.RequestTx, seller, key string) (payout.Payout, error) {
	first, err := tx.Idempotency(b.ctx(), seller, key)
	if err != nil {
		return payout.Payout{}, err
	}
	if first.Refusal != "" {
		return payout.Payout{Notes: first.Refusal}, nil
	}
	return tx.Payout(b.ctx(), first.Payout)
}

// testRequests serves a crowd of requests: of one seller and of many, under keys of their own and under
// one key, more than the balances hold.
func testRequests(_ *testing.T, b *bench) {
	for i := range 5 {
		b.fund(b.seller(fmt.Sprintf("usr_%d", i)), 1000)
	}
	var mu sync.Mutex
	asked := map[payout.ID]int{}
	refused := 0
	for range 2 { // and all of them again
		b.atOnce(60, func(i int) error {
			seller, key := fmt.Sprintf("usr_%d", i%5), fmt.Sprintf("key_%d", i)
			if i%5 == 0 {
				key = "one key"
			}
			p, err := b.request(seller, key, payout.ID(fmt.Sprintf("pyt_%02d", i)), 150)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
			case strings.HasPrefix(p.Notes, "only 100"):
				refused++
			case p.Amount != 150 || p.Seller != seller || p.BankAccountID != bank.ID("bka_"+seller) || p.AccountLast4 != "1234":
				b.Errorf("%s was given %+v", seller, p)
			default:
				asked[p.ID]++
			}
			return err
		})
	}
	// The first seller's twelve requests are one, and each other seller's 1000 are enough for six.
	if len(asked) != 1+4*6 || refused != 2*4*6 {
		b.Errorf("%d payouts were made and %d refused, want 25 and 48", len(asked), refused)
	}
	for id, times := range asked {
		stored, err := b.db.Payout(b.ctx(), id)
		b.must(err)
		if want := map[bool]int{true: 24, false: 2}[stored.Seller == "usr_0"]; times != want {
			b.Errorf("%s was the answer %d times, want %d", id, times, want)
		}
	}
	b.wantCleanAudit()
}

// testChangesInGroups cancels payouts of many sellers at once, each more than once, among changes that fail.
func testChangesInGroups(_ *testing.T, b *bench) {
	const sellers, each = 4, 3
	for i := range sellers {
		seller := b.seller(fmt.Sprintf("usr_%d", i))
		b.fund(seller, 1000)
		for j := range each {
			b.ask(payout.ID(fmt.Sprintf("pyt_%d_%d", i, j)), seller, 300, 0)
		}
	}
	changedMind := errors.New("changed its mind")
	cancel := func(id payout.ID, fails bool) (cancelled bool, err error) {
		err = b.db.Payouts().InGroup(b.ctx(), ledger.Scope{Payout: string(id)}, func(tx payout.ChangeTx) error {
			cancelled = false
			was, err := tx.PayoutForUpdate(b.ctx(), id)
			if err != nil || was.State != payout.Waiting {
				return err
			}
			entries, err := tx.EntriesAbout(b.ctx(), was.Seller, string(id))
			if err == nil {
				err = errors.Join(payout.CheckEntries(was, entries), tx.CheckJournal(b.ctx(), was.Seller, entries[0].Number))
			}
			if err != nil {
				return err
			}
			p := was
			p.State = payout.Cancelled
			if cancelled, err = tx.UpdatePayout(b.ctx(), payout.Waiting, p); err != nil || !cancelled {
				return errors.Join(err, fmt.Errorf("%s was loaded as waiting, and moved %v", id, cancelled))
			}
			if again, err := tx.UpdatePayout(b.ctx(), payout.Waiting, p); err != nil || again {
				b.Errorf("%s moved twice, %v", id, err)
			}
			if err := post(b, tx, was.Seller, ledger.PayoutCancelled, string(id), was, p, ledger.ReleasePayout(p.Amount)); err != nil || !fails {
				return err
			}
			return changedMind
		})
		return cancelled && err == nil, err
	}
	var mu sync.Mutex
	times := map[payout.ID]int{}
	b.atOnce(6*sellers*each, func(n int) error {
		id, fails := payout.ID(fmt.Sprintf("pyt_%d_%d", n%sellers, n/sellers%each)), n%5 == 0
		cancelled, err := cancel(id, fails)
		mu.Lock()
		defer mu.Unlock()
		if cancelled {
			times[id]++
		}
		if fails && errors.Is(err, changedMind) {
			return nil
		}
		return err
	})
	for i := range sellers {
		seller := fmt.Sprintf("usr_%d", i)
		for j := range each {
			if id := payout.ID(fmt.Sprintf("pyt_%d_%d", i, j)); times[id] != 1 {
				b.Errorf("%s was cancelled %d times", id, times[id])
			}
		}
		if a := b.head(seller); a.Available != 1000 || a.InTransit != 0 {
			b.Errorf("%s has %+v", seller, a)
		}
	}
	_, err := cancel("pyt_of_nobody", false)
	if !errors.Is(err, payout.ErrNotFound) {
		b.Errorf("a payout that is not there: %v", err)
	}
	b.wantCleanAudit()
}

// testFailingRequests has requests that fail, each in its own way, among others that must not notice.
func testFailingRequests(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 10_000)
	b.update(func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), newUser("usr_without")) })
	changedMind := errors.New("changed its mind")
	fail := func(caller ledger.Scope, fn func(payout.ChangeTx) error) error {
		return b.db.Payouts().InGroup(b.ctx(), caller, fn)
	}
	caller := ledger.Scope{Owner: seller}
	failures := []struct {
		name string
		do   func() error
		want error // nil for any
	}{
		{"after it wrote", func() error {
			return fail(caller, func(tx payout.ChangeTx) error {
				_, err := b.reserve(tx, seller, "pyt_undone", 100)
				return errors.Join(err, changedMind)
			})
		}, changedMind},
		{"by a panic", func() error {
			return fail(caller, func(tx payout.ChangeTx) error {
				_, err := b.reserve(tx, seller, "pyt_panic", 100)
				panic(err)
			})
		}, nil},
		{"for want of money", func() error {
			return fail(caller, func(tx payout.ChangeTx) error {
				_, err := b.reserve(tx, seller, "pyt_much", 1_000_000)
				return err
			})
		}, ledger.ErrInsufficient},
		{"for want of a journal and a bank account", func() error {
			_, err := b.request("usr_without", "k", "pyt_without", 100)
			return err
		}, bank.ErrNone},
		{"as an id that is taken", func() error {
			_, err := b.request(seller, "taken", "pyt_0", 100)
			if err != nil {
				return err
			}
			_, err = b.request(seller, "taken too", "pyt_0", 100)
			return err
		}, nil},
	}
	b.atOnce(8*len(failures), func(i int) error {
		if i >= len(failures) {
			_, err := b.request(seller, fmt.Sprint("key", i), payout.ID(fmt.Sprintf("pyt_%d", i)), 100)
			return err
		}
		f := failures[i]
		if err := f.do(); err == nil || (f.want != nil && !errors.Is(err, f.want)) {
			return fmt.Errorf("a request that fails %s: %w, want %w", f.name, err, f.want)
		}
		return nil
	})
	balance, err := b.db.Balance(b.ctx(), seller)
	b.must(err)
	if n := 7*len(failures) + 1; balance.Counts.Processing != int64(n) || balance.InTransit != money.Amount(n*100) {
		b.Errorf("%d payouts with %d in transit, want %d", balance.Counts.Processing, balance.InTransit, n)
	}
	b.wantCleanAudit()
}

// testKeysAtOnce lets eight remember one key. One does; the others wait for its transaction, and find
// what it left. Where it fails, another gets through.
func testKeysAtOnce(_ *testing.T, b *bench) {
	changedMind := errors.New("changed its mind")
	var mu sync.Mutex
	through := 0
	failed := false
	b.atOnce(8, func(i int) error {
		id := payout.ID(fmt.Sprintf("pyt_%d", i))
		err := b.db.Update(b.ctx(), func(tx *store.Tx) error {
			isNew, err := tx.SaveIdempotency(b.ctx(), "usr_a", "k", payout.Idempotency{Fingerprint: "f", Payout: id}, b.now)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if !isNew {
				first, err := tx.Idempotency(b.ctx(), "usr_a", "k")
				if first.Payout == "" || first.Payout == id || first.Refusal != "so it was" {
					b.Errorf("the key was taken, and stands for %+v", first)
				}
				return err
			}
			if !failed {
				failed = true
				return changedMind
			}
			through++
			return tx.SaveIdempotencyRefusal(b.ctx(), "usr_a", "k", "so it was")
		})
		if errors.Is(err, changedMind) {
			return nil
		}
		return err
	})
	if !failed || through != 1 {
		b.Errorf("%d got through after one that failed (%t), want 1", through, failed)
	}
}
