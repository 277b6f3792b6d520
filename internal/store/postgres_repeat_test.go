package store

import (
	"context"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/pgtest"
)

// A transaction that repeats the answer of an earlier one writes to the log, if only a lock, and so has an id:
// PostgreSQL waits for the standby with it. What the earlier one committed may not have reached the standby when its
// answer was lost.
func TestReplay_HasTransactionID(t *testing.T) {
	db, err := OpenPostgres(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.UseKeys(testKeys(t))
	ctx, now := t.Context(), time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	update := func(fn func(*Tx) error) {
		t.Helper()
		if err := db.Update(ctx, fn); err != nil {
			t.Fatal(err)
		}
	}
	update(func(tx *Tx) error {
		if _, err := tx.SaveIdempotency(ctx, "usr_a", "key", payout.Idempotency{Payout: "pyt_a"}, now); err != nil {
			return err
		}
		if err := tx.InsertUser(ctx, auth.User{ID: "usr_a", Name: "Asha", Email: "asha@example.com", Role: auth.Seller, CreatedAt: now}); err != nil {
			return err
		}
		return tx.InsertSession(ctx, auth.Session{ID: "ses_a", UserID: "usr_a", CreatedAt: now, ExpiresAt: now.Add(time.Hour), CapAt: now.Add(time.Hour)})
	})
	for name, repeat := range map[string]func(*Tx) error{
		"a call under a key": func(tx *Tx) error {
			if isNew, err := tx.SaveIdempotency(ctx, "usr_a", "key", payout.Idempotency{}, now); isNew || err != nil {
				t.Errorf("the key is new: %t, %v", isNew, err)
			}
			m, err := tx.Idempotency(ctx, "usr_a", "key")
			if m.Payout != "pyt_a" {
				t.Errorf("the key stands for %+v", m)
			}
			return err
		},
		"a refresh": func(tx *Tx) error {
			_, found, err := tx.Session(ctx, "ses_a")
			if !found {
				t.Error("there is no session")
			}
			return err
		},
	} {
		update(func(tx *Tx) error {
			if err := repeat(tx); err != nil {
				return err
			}
			if !hasNumber(ctx, t, tx) {
				t.Errorf("%s: the transaction that repeats its answer is one that only reads", name)
			}
			return nil
		})
	}
	update(func(tx *Tx) error {
		var one int
		if _, err := tx.one(ctx, `SELECT 1`, nil, &one); err != nil || hasNumber(ctx, t, tx) {
			t.Errorf("a transaction that only reads has a number (%v): this test can't fail", err)
		}
		return nil
	})
}

func hasNumber(ctx context.Context, t *testing.T, tx *Tx) (has bool) {
	t.Helper()
	if _, err := tx.one(ctx, `SELECT pg_current_xact_id_if_assigned() IS NOT NULL`, nil, &has); err != nil {
		t.Fatal(err)
	}
	return has
}

// TestCheckNewest_BesideTheFirstEntry has a journal's first entry appear between the two reads of a check, when there was no row to lock.
// That is no tampering: the transaction decides again.
func TestCheckNewest_BesideTheFirstEntry(t *testing.T) {
	db, err := OpenPostgres(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.UseKeys(testKeys(t))
	tries := 0
	err = db.Update(t.Context(), func(tx *Tx) error {
		a, err := tx.head(t.Context(), "usr_a")
		if err != nil {
			return err
		}
		if tries++; tries == 1 {
			if err := db.Update(t.Context(), func(other *Tx) error {
				_, err := other.Append(t.Context(), ledger.Posting{
					Owner: "usr_a", At: time.Unix(1, 0), Type: ledger.AccountProfileChanged, Subject: "first", Actor: "system", Data: "{}",
				})
				return err
			}); err != nil {
				return err
			}
		}
		return tx.checkNewest(t.Context(), "usr_a", a)
	})
	if err != nil || tries != 2 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}
