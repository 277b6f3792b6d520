package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
	"bursar/internal/store"
)

// newFactor is a confirmed authenticator app.
func newFactor(id, user string) auth.Factor {
	at := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	return auth.Factor{ID: id, UserID: user, Kind: auth.FactorTOTP, Name: "My phone", Secret: "encrypted", Counter: 7, CreatedAt: at, ConfirmedAt: at.Add(time.Minute)}
}

func testFactors(_ *testing.T, b *bench) {
	b.update(func(tx *store.Tx) error {
		return errors.Join(tx.InsertUser(b.ctx(), newUser("usr_a")), tx.InsertUser(b.ctx(), newUser("usr_b")))
	})
	first, second, others := newFactor("fac_1", "usr_a"), newFactor("fac_2", "usr_a"), newFactor("fac_3", "usr_b")
	second.ConfirmedAt = time.Time{}
	want := func(user string, factors ...auth.Factor) {
		b.Helper()
		outside, err := b.db.FactorsOf(b.ctx(), user)
		b.must(err)
		var inside []auth.Factor
		b.update(func(tx *store.Tx) (err error) {
			inside, err = tx.Factors(b.ctx(), user)
			return err
		})
		if diff := cmp.Diff(factors, outside); diff != "" {
			b.Error(diff)
		}
		if diff := cmp.Diff(factors, inside); diff != "" {
			b.Error(diff)
		}
	}
	b.update(func(tx *store.Tx) error {
		return errors.Join(tx.InsertFactor(b.ctx(), first), tx.InsertFactor(b.ctx(), second), tx.InsertFactor(b.ctx(), others))
	})
	want("usr_a", first, second)
	was := second
	second.ConfirmedAt, second.Counter, second.Secret = first.ConfirmedAt, 8, "another"
	for i, want := range []bool{true, false} { // the second time it is not any more as it was
		b.update(func(tx *store.Tx) error {
			saved, err := tx.SaveFactor(b.ctx(), was, second)
			if saved != want {
				b.Errorf("time %d: saved is %t", i, saved)
			}
			return err
		})
	}
	want("usr_a", first, second)
	late := second
	late.Counter = 7 // one that another use has passed
	b.update(func(tx *store.Tx) error {
		saved, err := tx.SaveFactor(b.ctx(), late, second)
		if saved {
			b.Error("a counter that was passed is taken")
		}
		return err
	})
	b.update(func(tx *store.Tx) error {
		stolen := others
		stolen.UserID = "usr_a" // whose it is not
		return errors.Join(tx.DeleteFactor(b.ctx(), first), tx.DeleteFactor(b.ctx(), stolen))
	})
	want("usr_a", second)
	want("usr_b", others)
	for _, user := range []string{"usr_a", "usr_nobody"} {
		b.update(func(tx *store.Tx) error {
			cleared, err := tx.ClearFactors(b.ctx(), user)
			if cleared != (user == "usr_a") {
				b.Errorf("factors of %s were cleared: %t", user, cleared)
			}
			return err
		})
	}
	want("usr_a")
	want("usr_b", others)

	begun := newFactor("fac_4", "usr_a") // no journal says that it was added
	begun.ConfirmedAt = time.Time{}
	b.update(func(tx *store.Tx) error {
		return errors.Join(tx.DeleteFactor(b.ctx(), others), tx.InsertFactor(b.ctx(), begun))
	})
	b.wantCleanAudit()
	b.update(func(tx *store.Tx) error {
		return errors.Join(tx.DeleteFactor(b.ctx(), begun), tx.InsertFactor(b.ctx(), others))
	})

	forged := b.with(b.engine.Tamper(b.T, b.db, `UPDATE factors SET secret = 'of a thief'`))
	if _, err := forged.db.FactorsOf(b.ctx(), "usr_b"); !errors.Is(err, auth.ErrTampered) {
		b.Errorf("a forged second factor: %v", err)
	}
}
