package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/pgtest"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

// All connections of a database in use end, as in a failover. Later calls do not fail: nothing was being committed, so
// everything can be tried again.
func TestConnections_Lost_Replaced(t *testing.T) {
	url := pgtest.New(t)
	db, err := store.OpenPostgres(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.UseKeys(storetest.Keys(t))
	const many = 20 // as many as are kept, or more
	write := func() error {
		return db.Payouts().InTx(t.Context(), func(tx payout.Tx) error {
			_, err := tx.SaveEvent(t.Context(), "razorpayx", "event", time.Unix(1, 0))
			return err
		})
	}
	request := func() error {
		return db.Payouts().InGroup(t.Context(), ledger.Scope{Owner: "usr_a"}, func(payout.ChangeTx) error { return nil })
	}
	list := func() error {
		_, _, err := db.Payouts().ListPayouts(t.Context(), payout.Filter{Limit: 1})
		return err
	}
	row := func() error { return db.Ping(t.Context()) }
	for round := range 2 {
		var callers sync.WaitGroup
		for range many {
			for _, call := range []func() error{write, request, list, row} {
				callers.Go(func() {
					if err := call(); err != nil {
						t.Error(err)
					}
				})
			}
		}
		callers.Wait()
		endOthers(t, url)
		for name, call := range map[string]func() error{"write": write, "request": request, "list": list, "row": row} {
			for range many {
				if err := call(); err != nil {
					t.Errorf("round %d: a %s after the connections were lost: %v", round, name, err)
				}
			}
		}
	}
}

// endOthers ends all other connections to a database, and waits for that.
func endOthers(t *testing.T, url string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	const others = ` FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
	left := 0
	if err := conn.QueryRow(ctx, `SELECT COUNT(pg_terminate_backend(pid))`+others).Scan(&left); err != nil || left < 4 {
		t.Fatalf("%d connections were ended, %v", left, err)
	}
	for range 1000 {
		if err := conn.QueryRow(ctx, `SELECT COUNT(*)`+others).Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%d connections do not end", left)
}
