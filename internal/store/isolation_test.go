package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/pgtest"
	"bursar/internal/sale"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

// What PostgreSQL does to transactions that meet, made to happen on purpose: each of these waits for the
// other at a point where the two must meet. That the suite's transactions seldom do is tested there.

// meeting is a database with one seller, some due sales and some due payouts.
type meeting struct {
	*testing.T
	db  *store.DB
	url string
}

var morning = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

func newMeeting(t *testing.T, settings ...string) *meeting {
	t.Helper()
	url := pgtest.New(t) + strings.Join(settings, "")
	db, err := store.OpenPostgres(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.UseKeys(storetest.Keys(t))
	m := &meeting{T: t, db: db, url: url}
	m.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(t.Context(), auth.User{ID: "usr_a", Name: "Asha", Email: "a@example.com", Role: auth.Seller, CreatedAt: morning}); err != nil {
			return err
		}
		_, err := tx.InsertBankAccount(t.Context(), bank.Account{ID: "bka_a", Seller: "usr_a", Current: true, Status: bank.StatusVerified, CreatedAt: morning})
		return err
	})
	for i := range 8 {
		m.update(func(tx *store.Tx) error { return addDue(t.Context(), tx, i) })
	}
	return m
}

// addDue adds a sale that was released, and one that is due, and a payout of the former, which is due too.
func addDue(ctx context.Context, tx *store.Tx, i int) error {
	for _, id := range []string{"released", "due"} {
		_, err := tx.InsertSale(ctx, sale.Sale{
			ID: fmt.Sprintf("%s %d", id, i), Seller: "usr_a", Amount: 100, Month: "2026-11", OccurredAt: morning, AvailableAt: morning, CreatedAt: morning,
		})
		if err != nil {
			return err
		}
	}
	ref := fmt.Sprintf("released %d", i)
	if _, err := tx.MarkReleased(ctx, ref, morning); err != nil {
		return err
	}
	p := payout.Payout{
		ID: payout.ID(fmt.Sprintf("pyt_%d", i)), Seller: "usr_a", BankAccountID: "bka_a", Amount: 100,
		State: payout.Waiting, RequestedAt: morning, ArriveAt: morning, DueAt: morning,
	}
	for _, step := range []ledger.Posting{
		{Type: ledger.SaleRecorded, Subject: "sale:" + ref, Moved: ledger.Sale(100)},
		{Type: ledger.SaleReleased, Subject: "sale:" + ref, Moved: ledger.ReleaseSale(100)},
		{Type: ledger.PayoutRequested, Subject: string(p.ID), Moved: ledger.ReservePayout(100)},
	} {
		step.Owner, step.At, step.Actor, step.Data = "usr_a", morning, "system", "{}"
		if _, err := tx.Append(ctx, step); err != nil {
			return err
		}
	}
	return tx.InsertPayout(ctx, p)
}

func (m *meeting) update(fn func(*store.Tx) error) {
	m.Helper()
	if err := m.db.Update(m.Context(), fn); err != nil {
		m.Error(err)
	}
}

// try counts one more try of a payout, under its lock.
func (m *meeting) try(tx *store.Tx, id payout.ID) error {
	p, err := tx.PayoutForUpdate(m.Context(), id)
	if err != nil {
		return err
	}
	p.Tries++
	_, err = tx.UpdatePayout(m.Context(), p.State, p)
	return err
}

func (m *meeting) wantTries(want int, ids ...payout.ID) {
	m.Helper()
	for _, id := range ids {
		if p, err := m.db.Payout(m.Context(), id); err != nil || p.Tries != want {
			m.Errorf("%s was tried %d times, %v; want %d", id, p.Tries, err, want)
		}
	}
}

func TestUpdate_Deadlock_Retried(t *testing.T) {
	m := newMeeting(t)
	var attempts [2]int
	first, second := make(chan struct{}), make(chan struct{})
	inOrder := func(i int, from, to payout.ID, mine chan<- struct{}, others <-chan struct{}) {
		m.update(func(tx *store.Tx) error {
			attempts[i]++
			if err := m.try(tx, from); err != nil {
				return err
			}
			if attempts[i] == 1 {
				close(mine)
				<-others
			}
			return m.try(tx, to)
		})
	}
	var both sync.WaitGroup
	both.Go(func() { inOrder(0, "pyt_0", "pyt_1", first, second) })
	both.Go(func() { inOrder(1, "pyt_1", "pyt_0", second, first) })
	both.Wait()
	if attempts[0]+attempts[1] < 3 { // it may meet the other one again
		t.Errorf("they were attempted %v times, want one of them again", attempts)
	}
	m.wantTries(2, "pyt_0", "pyt_1")
}

func TestUpdate_SerializationFailure_Retried(t *testing.T) {
	m := newMeeting(t, "&default_transaction_isolation=serializable")
	attempts := 0
	m.update(func(tx *store.Tx) error {
		attempts++
		if _, err := tx.Payout(m.Context(), "pyt_1"); err != nil { // this fixes what the transaction sees
			return err
		}
		if attempts == 1 {
			m.update(func(other *store.Tx) error { return m.try(other, "pyt_0") })
		}
		return m.try(tx, "pyt_0")
	})
	if attempts != 2 {
		t.Errorf("it was attempted %d times, want 2", attempts)
	}
	m.wantTries(2, "pyt_0")
}

// Two make an owner's first entry at once, where there is no row yet that could be locked. The second waits for the
// first, and goes on from what that has left: a journal with its entry, or none.
func TestFirstEntriesAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		fails bool
		want  int64
	}{"both succeed": {false, 2}, "the first fails": {true, 1}} {
		t.Run(name, func(t *testing.T) {
			m := newMeeting(t)
			ctx := t.Context()
			sell := func(tx *store.Tx, id string) error {
				_, err := tx.Append(ctx, ledger.Posting{
					Owner: "usr_new", At: morning, Type: ledger.SaleRecorded, Subject: id, Actor: "system", Data: "{}", Moved: ledger.Sale(100),
				})
				return err
			}
			attempts := 0
			changedMind := errors.New("changed its mind")
			var second sync.WaitGroup
			err := m.db.Update(ctx, func(tx *store.Tx) error {
				if err := sell(tx, "first"); err != nil {
					return err
				}
				read := make(chan struct{})
				second.Go(func() {
					m.update(func(tx *store.Tx) error {
						if attempts++; attempts == 1 {
							close(read)
						}
						return sell(tx, "second")
					})
				})
				<-read
				m.waitForLock()
				if tt.fails {
					return changedMind
				}
				return nil
			})
			second.Wait()
			if tt.fails != errors.Is(err, changedMind) {
				t.Errorf("the first ends with %v", err)
			}
			if want := int(tt.want); attempts != want { // who waited for a row that is there now begins again
				t.Errorf("the second was attempted %d times, want %d", attempts, want)
			}
			at := ledger.NewHead("usr_new")
			entries, err := m.db.EntriesAfter(ctx, "usr_new", 0, 10)
			if err != nil || int64(len(entries)) != tt.want {
				t.Fatalf("there are %d entries, %v; want %d", len(entries), err, tt.want)
			}
			for _, e := range entries {
				if at, err = at.Follow(storetest.Keys(t), e); err != nil {
					t.Error(err)
				}
			}
			if balance, err := m.db.Balance(ctx, "usr_new"); err != nil || balance != at.Balance {
				t.Errorf("the balance is %+v, %v; the journal leads to %+v", balance, err, at.Balance)
			}
		})
	}
}

// waitForLock waits until some transaction waits for another one.
func (m *meeting) waitForLock() {
	m.Helper()
	raw, err := sql.Open("pgx", m.url)
	if err != nil {
		m.Error(err)
		return
	}
	defer raw.Close()
	for range 1000 {
		var waiting int
		err := raw.QueryRowContext(m.Context(), `SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			m.Error(err)
		}
		if err != nil || waiting > 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	m.Error("nobody waits")
}

// While one worker takes what is due, another one skips it and takes the rest; neither waits.
func TestDueRows_Concurrent_SkipLocked(t *testing.T) {
	m := newMeeting(t)
	ctx := t.Context()
	m.update(func(tx *store.Tx) error {
		for i := range 8 {
			s := bank.Account{ID: bank.ID(fmt.Sprintf("bka_%d", i)), Seller: fmt.Sprintf("usr_%d", i), DueAt: morning, CreatedAt: morning, Status: bank.StatusUnverified}
			u := auth.User{ID: s.Seller, Name: "Asha", Email: s.Seller + "@example.com", Role: auth.Seller, CreatedAt: morning}
			if err := tx.InsertUser(ctx, u); err != nil {
				return err
			}
			if _, err := tx.InsertBankAccount(ctx, s); err != nil {
				return err
			}
			if _, err := tx.SaveIdempotency(ctx, u.ID, "key", payout.Idempotency{}, morning); err != nil {
				return err
			}
			if _, err := tx.SaveEvent(ctx, "razorpayx", u.ID, morning); err != nil {
				return err
			}
			if err := tx.InsertSession(ctx, auth.Session{ID: u.ID, UserID: u.ID, CreatedAt: morning, ExpiresAt: morning, CapAt: morning}); err != nil {
				return err
			}
		}
		return nil
	})
	later := morning.Add(time.Minute)
	deleted := func(n int64, err error) ([]string, error) { return make([]string, n), err }
	for name, tt := range map[string]struct {
		take func(*store.Tx) ([]string, error)
		each int // how many one takes at a time
	}{
		"payouts": {func(tx *store.Tx) ([]string, error) {
			ids, err := tx.LeaseDuePayouts(ctx, morning, later, 4)
			return texts(ids), err
		}, 4},
		"verifications": {func(tx *store.Tx) ([]string, error) {
			ids, err := tx.LeaseDueVerifications(ctx, morning, later, 4)
			return texts(ids), err
		}, 4},
		"sales":           {func(tx *store.Tx) ([]string, error) { return tx.DueSales(ctx, morning, 4) }, 4},
		"keys and events": {func(tx *store.Tx) ([]string, error) { return deleted(tx.Forget(ctx, later, later, 4)) }, 8},
		"sessions of old": {func(tx *store.Tx) ([]string, error) { return deleted(tx.Sweep(ctx, morning, later, morning, 4)) }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			var one, other, none []string
			m.update(func(tx *store.Tx) (err error) {
				if one, err = tt.take(tx); err != nil {
					return err
				}
				return m.db.Update(ctx, func(beside *store.Tx) (err error) {
					if other, err = tt.take(beside); err != nil {
						return err
					}
					return m.db.Update(ctx, func(third *store.Tx) (err error) {
						none, err = tt.take(third)
						return err
					})
				})
			})
			if len(one) != tt.each || len(other) != tt.each || len(none) != 0 {
				t.Errorf("they took %d, %d and %d, want %d, %d and none", len(one), len(other), len(none), tt.each, tt.each)
			}
			for _, id := range other {
				if id != "" && slices.Contains(one, id) {
					t.Errorf("both took %s", id)
				}
			}
		})
	}
}

func texts[T ~string](ids []T) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = string(id)
	}
	return all
}
