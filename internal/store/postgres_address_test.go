package store

import (
	"errors"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/pgtest"
)

// TestSetEmail_BesideARegistration has a user change to an address that a registration is just getting. The change waits, and then
// fails because the address is taken.
func TestSetEmail_BesideARegistration(t *testing.T) {
	db, err := OpenPostgres(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.UseKeys(testKeys(t))
	user := func(tx *Tx, id, email string) error {
		return tx.InsertUser(t.Context(), auth.User{ID: id, Email: email, Role: auth.Buyer, CreatedAt: time.Unix(1, 0)})
	}
	if err := db.Update(t.Context(), func(tx *Tx) error { return user(tx, "usr_a", "asha@example.com") }); err != nil {
		t.Fatal(err)
	}
	changed := make(chan error, 1)
	err = db.Update(t.Context(), func(tx *Tx) error {
		if err := user(tx, "usr_b", "new@example.com"); err != nil {
			return err
		}
		go func() {
			changed <- db.Update(t.Context(), func(tx *Tx) error { return tx.SetEmail(t.Context(), "usr_a", "new@example.com") })
		}()
		waits := false
		for try := 0; !waits && try < 10_000; try++ {
			err := db.queryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
			if err != nil {
				return err
			}
		}
		if !waits {
			t.Error("the change does not wait for the registration")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-changed; !errors.Is(err, auth.ErrEmailTaken) {
		t.Errorf("the change fails with %v, want %v", err, auth.ErrEmailTaken)
	}
}
