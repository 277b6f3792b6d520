package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/keyset"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/pgtest"
	"bursar/internal/sale"
)

// crowd is sellers who ask for payouts of a PostgreSQL database, by way of some open handles to it.
type crowd struct {
	*testing.T
	keys    *keyset.Set
	handles []*DB
	ids     atomic.Int64
}

func newCrowd(t *testing.T, handles int) *crowd {
	t.Helper()
	return newCrowdAt(t, pgtest.New(t), handles)
}

func newCrowdAt(t *testing.T, url string, handles int) *crowd {
	t.Helper()
	c := &crowd{T: t, keys: testKeys(t)}
	for range handles {
		db, err := OpenPostgres(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		db.UseKeys(c.keys)
		c.handles = append(c.handles, db)
	}
	return c
}

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// seller adds one with an available balance, and a bank account unless its status is "".
func (c *crowd) seller(id string, available money.Amount, account bank.Status) {
	c.Helper()
	ctx := c.Context()
	err := c.handles[0].Update(ctx, func(tx *Tx) error {
		err := tx.InsertUser(ctx, auth.User{ID: id, Name: "Asha", Email: id + "@example.com", Role: auth.Seller, CreatedAt: noon})
		if err == nil && account != "" {
			err = c.addAccount(ctx, tx, bank.Account{
				ID: bank.ID("bka_" + id), Seller: id, Holder: "Asha Rao", IFSC: "HDFC0000053", Last4: "1234", Current: true,
				Status: account, NameScore: -1, CreatedAt: noon,
			})
		}
		if err != nil || available == 0 {
			return err
		}
		return c.earn(ctx, tx, id, available)
	})
	if err != nil {
		c.Fatal(err)
	}
}

// addAccount adds a bank account, as package bank does.
func (c *crowd) addAccount(ctx context.Context, tx *Tx, a bank.Account) (err error) {
	if a.EncryptedNumber, err = c.keys.Encrypt("00001111"+a.Last4, "bank_accounts|encrypted_number|"+string(a.ID)); err != nil {
		return err
	}
	if _, err := tx.InsertBankAccount(ctx, a); err != nil {
		return err
	}
	p, err := bank.Recorded(bank.Account{ID: a.ID}, a, "user:"+a.Seller, noon)
	if err == nil {
		_, err = tx.Append(ctx, p)
	}
	return err
}

// testKeys are keys of the test's own.
func testKeys(t testing.TB) *keyset.Set {
	t.Helper()
	keys, err := keyset.Open(t.Context(), keyset.File(filepath.Join(t.TempDir(), "keys.json")))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// earn records a sale and releases it, as package sale does.
func (c *crowd) earn(ctx context.Context, tx *Tx, seller string, amount money.Amount) error {
	id := "sale of " + seller
	sold := sale.Sale{
		ID: id, Seller: seller, Amount: amount, Month: "2026-11", OccurredAt: noon, AvailableAt: noon, CreatedAt: noon,
		Fingerprint: fmt.Sprintf("%s %d - -", seller, amount),
	}
	released := sold
	released.ReleasedAt = noon
	_, err := tx.InsertSale(ctx, sold)
	if err == nil {
		_, err = tx.MarkReleased(ctx, id, noon)
	}
	return errors.Join(err,
		post(ctx, tx, seller, ledger.SaleRecorded, sale.SubjectPrefix+id, sale.Sale{ID: id}, sold, ledger.Sale(amount)),
		post(ctx, tx, seller, ledger.SaleReleased, sale.SubjectPrefix+id, sold, released, ledger.ReleaseSale(amount)),
		tx.AddEarnings(ctx, seller, "2026-11", amount))
}

// post appends the entry that takes a row from what it was to what it is.
func post[R any](ctx context.Context, tx payout.RequestTx, owner string, t ledger.Type, subject string, was, is R, moved ledger.Moved) error {
	data, err := ledger.Patch(was, is)
	if err == nil {
		_, err = tx.Append(ctx, ledger.Posting{Owner: owner, At: noon, Type: t, Subject: subject, Actor: "system", Data: data, Moved: moved})
	}
	return err
}

var errUnverified = errors.New("no verified account")

// ask asks for a payout as package payout does: the answer to a key is that of its first request.
func (c *crowd) ask(ctx context.Context, db *DB, seller, key string, amount money.Amount) (payout.ID, error) {
	id := payout.ID(fmt.Sprintf("pyt_%016d", c.ids.Add(1)))
	var got payout.ID
	var refusal error
	err := db.Payouts().InGroup(ctx, ledger.Scope{Owner: seller, Key: key}, func(tx payout.ChangeTx) error {
		got, refusal = "", nil
		if key != "" {
			isNew, err := tx.SaveIdempotency(ctx, seller, key, payout.Idempotency{Fingerprint: fingerprint(amount), Payout: id}, noon)
			if err != nil {
				return err
			}
			if !isNew {
				got, err = c.replay(ctx, tx, seller, key, amount)
				return err
			}
		}
		err := reserve(ctx, tx, payout.Payout{
			ID: id, Seller: seller, Amount: amount, State: payout.Waiting, Rail: "IMPS",
			RequestedAt: noon, ArriveAt: noon, DueAt: noon,
		})
		got = id
		if key != "" && errors.Is(err, ledger.ErrInsufficient) {
			got, refusal = "", err
			return tx.SaveIdempotencyRefusal(ctx, seller, key, "insufficient")
		}
		return err
	})
	return got, errors.Join(err, refusal)
}

func fingerprint(amount money.Amount) string { return fmt.Sprintf("request %d ", amount) }

func (c *crowd) replay(ctx context.Context, tx payout.RequestTx, seller, key string, amount money.Amount) (payout.ID, error) {
	first, err := tx.Idempotency(ctx, seller, key)
	switch {
	case err != nil:
		return "", err
	case first.Fingerprint != fingerprint(amount):
		return "", payout.ErrKeyReused
	case first.Refusal != "":
		return "", errors.New(first.Refusal)
	}
	p, err := tx.Payout(ctx, first.Payout)
	return p.ID, err
}

func reserve(ctx context.Context, tx payout.RequestTx, p payout.Payout) error {
	account, err := tx.AccountToPay(ctx, p.Seller)
	if errors.Is(err, bank.ErrNone) || (err == nil && account.Status != bank.StatusVerified) {
		return errUnverified
	}
	if err != nil {
		return err
	}
	p.BankAccountID = account.ID
	err = post(ctx, tx, p.Seller, ledger.PayoutRequested, string(p.ID), payout.Payout{ID: p.ID}, p, ledger.ReservePayout(p.Amount))
	if err != nil {
		return err
	}
	return tx.InsertPayout(ctx, p)
}

// inOneGroup runs all of the functions, each of which makes one request, so that one group serves them:
// they queue up while the writer is kept busy; then queued is called, and the writer let go.
func (c *crowd) inOneGroup(queued func(), fns ...func()) {
	c.Helper()
	w := c.handles[0].units
	begun, release := make(chan struct{}), make(chan struct{})
	var callers sync.WaitGroup
	callers.Go(func() {
		_ = c.handles[0].Payouts().InGroup(context.Background(), ledger.Scope{Owner: "nobody"}, func(payout.ChangeTx) error {
			close(begun)
			<-release
			return nil
		})
	})
	<-begun
	for _, fn := range fns {
		callers.Go(fn)
	}
	for len(w.queue.jobs) < len(fns) {
		time.Sleep(time.Millisecond)
	}
	queued()
	close(release)
	callers.Wait()
}

func (c *crowd) wantAvailable(seller string, want money.Amount) {
	c.Helper()
	b, err := c.handles[0].Balance(c.Context(), seller)
	if err != nil || b.Available != want {
		c.Errorf("%s has %d available, error %v; want %d", seller, b.Available, err, want)
	}
}

func (c *crowd) wantCleanLedger() {
	c.Helper()
	report, err := c.handles[0].Audit(c.Context(), c.keys)
	if err != nil {
		c.Fatal(err)
	}
	for _, f := range report.Findings {
		for _, violation := range f.Violations {
			c.Errorf("%s: %s", f.Name, violation)
		}
	}
}

func TestInGroup_EveryKindOfRequest(t *testing.T) {
	c := newCrowd(t, 1)
	ctx, db := t.Context(), c.handles[0]
	c.seller("asha", 300, bank.StatusVerified)
	c.seller("bina", 1000, bank.StatusVerified)
	c.seller("chand", 1000, bank.StatusUnverified)
	c.seller("devi", 1000, "")
	c.seller("esha", 0, bank.StatusVerified)
	c.seller("fatima", 1000, bank.StatusVerified)
	before, err := c.ask(ctx, db, "fatima", "old", 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ask(ctx, db, "fatima", "old refusal", 5000); !errors.Is(err, ledger.ErrInsufficient) {
		t.Fatalf("asked for too much: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)

	var mu sync.Mutex
	answers := map[string][]string{}
	asking := func(ctx context.Context, name, seller, key string, amount money.Amount) func() {
		return func() {
			id, err := c.ask(ctx, db, seller, key, amount)
			answer := string(id)
			if err != nil {
				answer = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			answers[name] = append(answers[name], answer)
		}
	}
	c.inOneGroup(cancel,
		asking(ctx, "asha", "asha", "", 100), asking(ctx, "asha", "asha", "", 100),
		asking(ctx, "asha", "asha", "", 100), asking(ctx, "asha", "asha", "", 100),
		asking(ctx, "bina", "bina", "same", 200), asking(ctx, "bina", "bina", "same", 200), asking(ctx, "bina", "bina", "same", 200),
		asking(ctx, "unverified", "chand", "", 100),
		asking(ctx, "no account", "devi", "key", 100),
		asking(ctx, "no journal", "esha", "", 100),
		asking(ctx, "no journal, with key", "esha", "key", 100),
		asking(ctx, "repeated", "fatima", "old", 100),
		asking(ctx, "reused", "fatima", "old", 101),
		asking(ctx, "refused before", "fatima", "old refusal", 5000),
		asking(ctx, "nobody", "nobody at all", "", 100),
		func() {
			err := db.Payouts().InGroup(ctx, ledger.Scope{Owner: "bina"}, func(tx payout.ChangeTx) error {
				return errors.Join(reserve(ctx, tx, payout.Payout{ID: "pyt_gone", Seller: "bina", Amount: 300, DueAt: noon}), errors.New("changed its mind"))
			})
			if err == nil || !strings.Contains(err.Error(), "changed its mind") {
				t.Errorf("a closure that failed: %v", err)
			}
		},
		func() {
			err := db.Payouts().InGroup(ctx, ledger.Scope{Owner: "bina"}, func(payout.ChangeTx) error { panic("worse") })
			if err == nil || !strings.Contains(err.Error(), "worse") {
				t.Errorf("a closure that panicked: %v", err)
			}
		},
		func() {
			err := db.Payouts().InGroup(ctx, ledger.Scope{Owner: "bina"}, func(tx payout.ChangeTx) error {
				_, err := tx.AccountToPay(ctx, "fatima")
				return err
			})
			if err == nil {
				t.Error("a request read what belongs to another seller")
			}
		},
		asking(gone, "gone", "bina", "", 100),
	)

	count := func(name, want string) (n int) {
		for _, answer := range answers[name] {
			if strings.Contains(answer, want) {
				n++
			}
		}
		return n
	}
	for _, want := range []struct {
		name, answer string
		times        int
	}{
		{"asha", "pyt_", 3},
		{"asha", "too low", 1},
		{"bina", "pyt_", 3},
		{"unverified", errUnverified.Error(), 1},
		{"no account", errUnverified.Error(), 1},
		{"no journal", "too low", 1},
		{"no journal, with key", "too low", 1},
		{"repeated", string(before), 1},
		{"reused", payout.ErrKeyReused.Error(), 1},
		{"refused before", "insufficient", 1},
		{"nobody", errUnverified.Error(), 1},
		{"gone", "ended before it was begun", 1},
	} {
		if n := count(want.name, want.answer); n != want.times {
			t.Errorf("%s: %d answers with %q, want %d: %q", want.name, n, want.answer, want.times, answers[want.name])
		}
	}
	if b := answers["bina"]; len(b) == 3 && (b[0] != b[1] || b[1] != b[2]) {
		t.Errorf("one key was answered with %q", b)
	}
	c.wantAvailable("asha", 0)
	c.wantAvailable("bina", 800)
	c.wantAvailable("fatima", 900)
	if _, err := c.ask(ctx, db, "esha", "key", 100); err == nil || err.Error() != "insufficient" {
		t.Errorf("a refusal was not remembered: %v", err)
	}
	c.wantCleanLedger()
}

// One request of a group violates a constraint, which ends the group's whole transaction.
func TestInGroup_ConstraintViolated_OthersSucceed(t *testing.T) {
	c := newCrowd(t, 1)
	ctx, db := t.Context(), c.handles[0]
	c.seller("asha", 1000, bank.StatusVerified)
	c.seller("bina", 1000, bank.StatusVerified)
	var failed, done atomic.Int64
	fns := []func(){func() {
		err := db.Payouts().InGroup(ctx, ledger.Scope{Owner: "bina"}, func(tx payout.ChangeTx) error {
			return reserve(ctx, tx, payout.Payout{ID: "pyt_bad", Seller: "bina", Amount: 300, Fee: 400, Rail: "IMPS", State: payout.Waiting, RequestedAt: noon, ArriveAt: noon, DueAt: noon})
		})
		if err != nil && strings.Contains(err.Error(), "payouts_check") {
			failed.Add(1)
		}
	}}
	for range 5 {
		fns = append(fns, func() {
			if _, err := c.ask(ctx, db, "asha", "", 200); err != nil {
				t.Error(err)
			}
			done.Add(1)
		})
	}
	c.inOneGroup(func() {}, fns...)
	if failed.Load() != 1 || done.Load() != 5 {
		t.Errorf("%d failed and %d were done, want 1 and 5", failed.Load(), done.Load())
	}
	c.wantAvailable("asha", 0)
	c.wantAvailable("bina", 1000)
	c.wantCleanLedger()
}

// One request of a group has a key that PostgreSQL does not accept as text.
func TestInGroup_InvalidText_OthersSucceed(t *testing.T) {
	c := newCrowd(t, 1)
	ctx, db := t.Context(), c.handles[0]
	c.seller("asha", 1000, bank.StatusVerified)
	var failed, done atomic.Int64
	fns := []func(){func() {
		if _, err := c.ask(ctx, db, "asha", "\x00", 200); err != nil {
			failed.Add(1)
		}
	}}
	for range 5 {
		fns = append(fns, func() {
			if _, err := c.ask(ctx, db, "asha", "", 200); err != nil {
				t.Error(err)
			}
			done.Add(1)
		})
	}
	c.inOneGroup(func() {}, fns...)
	if failed.Load() != 1 || done.Load() != 5 {
		t.Errorf("%d failed and %d were done, want 1 and 5", failed.Load(), done.Load())
	}
	c.wantAvailable("asha", 0)
	c.wantCleanLedger()
}

// Three instances at once spend the same balances and use the same keys.
func TestInGroup_ThreeInstances_EachKeyOnce(t *testing.T) {
	c := newCrowd(t, 3)
	sellers := []string{"asha", "bina", "chand", "devi"}
	for _, s := range sellers {
		c.seller(s, 2000, bank.StatusVerified) // for 20 of 40 keys
	}
	var mu sync.Mutex
	answers := map[string]map[string]bool{}
	held := map[string]map[string]bool{}
	var callers sync.WaitGroup
	for _, db := range c.handles {
		for worker := range 8 {
			callers.Go(func() {
				for i := range 160 {
					seller, key := sellers[(i+worker)%len(sellers)], fmt.Sprintf("key %d", i/len(sellers))
					id, err := c.ask(t.Context(), db, seller, key, 100)
					answer := string(id)
					switch {
					case err == nil:
					case errors.Is(err, ledger.ErrInsufficient) || err.Error() == "insufficient":
						answer = "insufficient"
					default:
						t.Error(err)
						return
					}
					mu.Lock()
					if answers[seller+key] == nil {
						answers[seller+key] = map[string]bool{}
					}
					answers[seller+key][answer] = true
					if err == nil {
						if held[seller] == nil {
							held[seller] = map[string]bool{}
						}
						held[seller][answer] = true
					}
					mu.Unlock()
				}
			})
		}
	}
	callers.Wait()
	for key, different := range answers {
		if len(different) != 1 {
			t.Errorf("%s was answered with %v", key, different)
		}
	}
	for _, s := range sellers {
		if len(held[s]) != 20 {
			t.Errorf("%s got %d payouts, want 20", s, len(held[s]))
		}
		c.wantAvailable(s, 0)
	}
	c.wantCleanLedger()
	var deadlocks int
	if err := c.handles[0].queryOne(t.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`, nil, &deadlocks); err != nil {
		t.Fatal(err)
	}
	if deadlocks != 0 {
		t.Errorf("%d deadlocks among grouped requests, want none", deadlocks)
	}
}

// Every connection is cut again and again during requests, and each request is repeated under its key until it is
// answered.
func TestInGroup_ConnectionsCut_RepeatsSucceed(t *testing.T) {
	c := newCrowd(t, 2)
	c.seller("asha", 8000, bank.StatusVerified)
	c.seller("bina", 8000, bank.StatusVerified)
	stop, hasBegun := make(chan struct{}), make(chan struct{})
	var cutter sync.WaitGroup
	var begun sync.Once
	var answered atomic.Int64
	cuts := 0
	cutter.Go(func() {
		defer begun.Do(func() { close(hasBegun) })
		other := newCutter(t, c.handles[0])
		for before := int64(0); ; {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			// On a slow machine it takes longer to connect than to wait: without this no connection would live to carry an answer.
			now := answered.Load()
			if now == before {
				continue
			}
			before = now
			if cuts += other.cut(t); cuts > 0 {
				begun.Do(func() { close(hasBegun) })
			}
		}
	})
	var callers sync.WaitGroup
	for worker := range 16 {
		callers.Go(func() {
			seller := []string{"asha", "bina"}[worker%2]
			for i := range 10 {
				if i == 5 {
					<-hasBegun
				}
				key := fmt.Sprintf("%d of %d", i, worker)
				for range 200 {
					_, err := c.ask(t.Context(), c.handles[worker%2], seller, key, 100)
					if err == nil {
						answered.Add(1)
						break
					}
					if !errors.Is(err, errStorage) && !errors.Is(err, errOutcomeUnknown) {
						t.Errorf("an error that tells a caller nothing: %v", err)
						return
					}
				}
			}
		})
	}
	callers.Wait()
	close(stop)
	cutter.Wait()
	if answered.Load() != 160 || cuts == 0 {
		t.Errorf("%d requests were answered through %d cuts, want 160 and some", answered.Load(), cuts)
	}
	c.wantAvailable("asha", 0)
	c.wantAvailable("bina", 0)
	c.wantCleanLedger()
}

// cutter ends others' connections by way of one that it keeps.
type cutter struct{ line *postgresLine }

func newCutter(t *testing.T, db *DB) *cutter {
	t.Helper()
	line := &postgresLine{config: db.units.config}
	if err := line.dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(line.hangUp)
	return &cutter{line}
}

func (c *cutter) cut(t *testing.T) (n int) {
	t.Helper()
	err := c.line.conn.QueryRow(context.Background(), `SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&n)
	if err != nil {
		t.Error(err)
	}
	return n
}

// Connections of every kind are checked, also on a server that by default answers before a commit is durable.
func TestConnections_SynchronousCommitNeverOff(t *testing.T) {
	for server, want := range map[string]string{"off": "on", "on": "on", "remote_apply": "remote_apply"} {
		db, err := OpenPostgres(t.Context(), pgtest.New(t)+"&options=-csynchronous_commit%3D"+server)
		if err != nil {
			t.Fatal(err)
		}
		const question = `SELECT current_setting('synchronous_commit')`
		var written, read string
		err = errors.Join(
			db.Update(t.Context(), func(tx *Tx) error {
				_, err := tx.one(t.Context(), question, nil, &written)
				return err
			}),
			db.queryRow(t.Context(), question).Scan(&read),
			db.Close())
		if err != nil || written != want || read != want {
			t.Errorf("with %s on the server, writers have %q and readers %q, error %v; want %s", server, written, read, err, want)
		}
	}
}
