package store_test

import (
	"context"
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
)

// What PostgreSQL does to transactions that meet, made to happen on purpose: each of these waits for the
// other at a point where the two must meet. That the suite's transactions seldom do is tested there.

// meeting is a database with one seller, some due sales and some due payouts.
type meeting struct {
	*testing.T
	db *store.DB
}

var morning = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

func newMeeting(t *testing.T, settings ...string) *meeting {
	t.Helper()
	db, err := store.OpenPostgres(t.Context(), pgtest.New(t)+strings.Join(settings, ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	m := &meeting{T: t, db: db}
	m.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(t.Context(), auth.User{ID: "usr_a", Name: "Asha", Email: "a@example.com", Role: auth.Seller, CreatedAt: morning}); err != nil {
			return err
		}
		if err := tx.ReplaceBankAccount(t.Context(), bank.Account{ID: "bka_a", Seller: "usr_a", Status: bank.StatusVerified, CreatedAt: morning}); err != nil {
			return err
		}
		return tx.OpenBook(t.Context(), "usr_a")
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
	transfers := slices.Concat(ledger.Sale(ref, 100), ledger.ReleaseSale(ref, 100), ledger.HoldPayout(string(p.ID), 100))
	if err := ledger.Post(ctx, tx, ledger.Posting{Seller: "usr_a", At: morning, Transfers: transfers}); err != nil {
		return err
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
	_, err = tx.MovePayout(m.Context(), p.State, p, morning)
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

func TestADeadlockIsUndoneAndTriedAgain(t *testing.T) {
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

func TestASerializationFailureIsTriedAgain(t *testing.T) {
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

// While one takes what is due, another passes over that and takes the rest; nobody waits.
func TestWorkersPassOverWhatOthersAreTaking(t *testing.T) {
	m := newMeeting(t)
	ctx := t.Context()
	m.update(func(tx *store.Tx) error {
		for i := range 8 {
			s := bank.Account{ID: bank.ID(fmt.Sprintf("bka_%d", i)), Seller: fmt.Sprintf("usr_%d", i), DueAt: morning, CreatedAt: morning, Status: bank.StatusUnverified}
			u := auth.User{ID: s.Seller, Name: "Asha", Email: s.Seller + "@example.com", Role: auth.Seller, CreatedAt: morning}
			if err := tx.InsertUser(ctx, u); err != nil {
				return err
			}
			if err := tx.ReplaceBankAccount(ctx, s); err != nil {
				return err
			}
			if _, err := tx.Remember(ctx, u.ID, "key", payout.Remembered{}, morning); err != nil {
				return err
			}
			if _, err := tx.RememberEvent(ctx, u.ID, morning); err != nil {
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
			ids, err := tx.TakeDuePayouts(ctx, morning, later, 4)
			return texts(ids), err
		}, 4},
		"verifications": {func(tx *store.Tx) ([]string, error) {
			ids, err := tx.TakeDueVerifications(ctx, morning, later, 4)
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
