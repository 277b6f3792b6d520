package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bursar/internal/auth"
	"bursar/internal/store"
)

func openAuth(t *testing.T) (*store.DB, auth.Store) {
	t.Helper()
	db, err := store.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "bursar.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, db.Auth()
}

func inTx(t *testing.T, s auth.Store, fn func(auth.Tx) error) {
	t.Helper()
	if err := s.InTx(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

var signInTime = time.Date(2027, 3, 1, 12, 0, 0, 123456000, time.UTC)

func newUser(id string) auth.User {
	return auth.User{
		ID: id, Name: "Asha", Email: id + "@Example.com", Role: auth.Seller, Verified: true, PasswordHash: "hash",
		Profile: auth.Profile{Avatar: "https://a.example/1.png", Bio: "lane", Website: "https://a.example"}, CreatedAt: signInTime,
	}
}

func newSession(id, user string) auth.Session {
	return auth.Session{
		ID: id, UserID: user, CreatedAt: signInTime,
		ExpiresAt: signInTime.Add(time.Hour), CapAt: signInTime.Add(3 * time.Hour),
	}
}

func TestUsersAreReadAsTheyWereWritten(t *testing.T) {
	_, s := openAuth(t)
	want := newUser("usr_1")
	inTx(t, s, func(tx auth.Tx) error { return tx.InsertUser(t.Context(), want) })

	got, found, err := s.UserByEmail(t.Context(), "usr_1@example.com")
	if err != nil || !found {
		t.Fatal(found, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got, stats, found, err := s.UserWithStats(t.Context(), "usr_1")
	if err != nil || !found || stats != (auth.Stats{}) {
		t.Fatal(stats, found, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, found, err := s.UserByEmail(t.Context(), "usr_1@Example.com"); found || err != nil {
		t.Errorf("found by what is not the key: %v, %v", found, err)
	}
}

func TestATakenEmailSpoilsNobodysTransaction(t *testing.T) {
	_, s := openAuth(t)
	inTx(t, s, func(tx auth.Tx) error { return tx.InsertUser(t.Context(), newUser("usr_1")) })
	twin := newUser("usr_2")
	twin.Email = "USR_1@example.com"
	inTx(t, s, func(tx auth.Tx) error {
		if err := tx.InsertUser(t.Context(), twin); !errors.Is(err, auth.ErrEmailTaken) {
			t.Errorf("error = %v, want %v", err, auth.ErrEmailTaken)
		}
		return tx.InsertUser(t.Context(), newUser("usr_3")) // the transaction goes on
	})
	if _, found, err := s.UserByEmail(t.Context(), "usr_3@example.com"); !found || err != nil {
		t.Error(found, err)
	}
}

func TestSessionsLiveUntilTheyEndExpireOrTheirUserIsSuspended(t *testing.T) {
	_, s := openAuth(t)
	inTx(t, s, func(tx auth.Tx) error {
		for _, id := range []string{"1", "2", "3", "4"} {
			if err := tx.InsertUser(t.Context(), newUser("usr_"+id)); err != nil {
				return err
			}
			if err := tx.InsertSession(t.Context(), newSession("ses_"+id, "usr_"+id)); err != nil {
				return err
			}
		}
		if err := tx.EndSession(t.Context(), "ses_2", "logout", signInTime); err != nil {
			return err
		}
		if err := tx.EndUserSessions(t.Context(), "usr_3", "suspended", signInTime); err != nil {
			return err
		}
		_, err := tx.SetUserAccess(t.Context(), "usr_4", auth.Seller, true)
		return err
	})
	hour := signInTime.Add(time.Hour)
	tests := map[string]struct {
		session string
		at      time.Time
		want    bool
	}{
		"live":                 {"ses_1", signInTime, true},
		"live until it ends":   {"ses_1", hour.Add(-time.Microsecond), true},
		"expired":              {"ses_1", hour, false},
		"ended":                {"ses_2", signInTime, false},
		"ended with others":    {"ses_3", signInTime, false},
		"of a suspended user":  {"ses_4", signInTime, false},
		"never made":           {"ses_5", signInTime, false},
		"an injected sentence": {"' OR 1=1 --", signInTime, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, live, err := s.LiveSession(t.Context(), tt.session, tt.at)
			if err != nil || live != tt.want {
				t.Fatalf("live = %v, %v; want %v", live, err, tt.want)
			}
			want := auth.Principal{UserID: "usr_1", Email: "usr_1@Example.com", Role: auth.Seller, Session: "ses_1"}
			if live && p != want {
				t.Errorf("principal = %+v, want %+v", p, want)
			}
		})
	}
}

func TestAdvanceSessionLetsOneThrough(t *testing.T) {
	_, s := openAuth(t)
	inTx(t, s, func(tx auth.Tx) error {
		if err := tx.InsertUser(t.Context(), newUser("usr_1")); err != nil {
			return err
		}
		return tx.InsertSession(t.Context(), newSession("ses_1", "usr_1"))
	})
	var mu sync.Mutex
	won := 0
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			var through bool
			err := s.InTx(t.Context(), func(tx auth.Tx) (err error) {
				_, through, err = tx.AdvanceSession(t.Context(), "ses_1", 0, signInTime, signInTime.Add(2*time.Hour), time.Second)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if through {
				won++
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d got through, want 1", won)
	}
}

func TestAdvanceSessionExtendsUpToTheCap(t *testing.T) {
	_, s := openAuth(t)
	start := newSession("ses_1", "usr_1")
	inTx(t, s, func(tx auth.Tx) error {
		if err := tx.InsertUser(t.Context(), newUser("usr_1")); err != nil {
			return err
		}
		return tx.InsertSession(t.Context(), start)
	})
	at := signInTime.Add(time.Minute)
	steps := []struct {
		name    string
		counter int64
		now     time.Time
		until   time.Time
		want    bool
		expires time.Time
	}{
		{"extends", 0, at, at.Add(2 * time.Hour), true, at.Add(2 * time.Hour)},
		{"an old counter", 0, at, at.Add(3 * time.Hour), false, at.Add(2 * time.Hour)},
		{"a counter to come", 2, at, at.Add(3 * time.Hour), false, at.Add(2 * time.Hour)},
		{"stops at the cap", 1, at, at.Add(100 * time.Hour), true, start.CapAt},
		{"expired", 2, start.CapAt, start.CapAt.Add(time.Hour), false, start.CapAt},
	}
	for _, step := range steps {
		inTx(t, s, func(tx auth.Tx) error {
			p, ok, err := tx.AdvanceSession(t.Context(), "ses_1", step.counter, step.now, step.until, time.Second)
			if err != nil || ok != step.want {
				t.Errorf("%s: %v, %v; want %v", step.name, ok, err, step.want)
			}
			if ok && (p.UserID != "usr_1" || p.Role != auth.Seller) {
				t.Errorf("%s: principal = %+v", step.name, p)
			}
			got, _, _, err := tx.Session(t.Context(), "ses_1")
			if !got.ExpiresAt.Equal(step.expires) {
				t.Errorf("%s: expires at %v, want %v", step.name, got.ExpiresAt, step.expires)
			}
			return err
		})
	}
}

func TestRefreshesStayOnRecordWhileTheyAreQuick(t *testing.T) {
	_, s := openAuth(t)
	inTx(t, s, func(tx auth.Tx) error {
		if err := tx.InsertUser(t.Context(), newUser("usr_1")); err != nil {
			return err
		}
		return tx.InsertSession(t.Context(), newSession("ses_1", "usr_1"))
	})
	const grace, kept = 10 * time.Second, 32
	now := signInTime
	var counter int64
	var want []time.Time
	refresh := func(pause time.Duration) {
		t.Helper()
		now = now.Add(pause)
		inTx(t, s, func(tx auth.Tx) error {
			if _, ok, err := tx.AdvanceSession(t.Context(), "ses_1", counter, now, now.Add(time.Hour), grace); err != nil || !ok {
				return fmt.Errorf("refresh %d: %v, %w", counter, ok, err)
			}
			counter++
			got, _, _, err := tx.Session(t.Context(), "ses_1")
			if diff := cmp.Diff(want, got.Refreshes); diff != "" {
				t.Errorf("refresh %d: %s", counter, diff)
			}
			return err
		})
	}
	for _, pause := range []time.Duration{0, time.Microsecond, 0, grace - time.Microsecond} {
		want = append([]time.Time{now.Add(pause)}, want...)
		refresh(pause)
	}
	const pause = grace + time.Microsecond
	want = []time.Time{now.Add(pause)}
	refresh(pause) // a new run
	for range kept + 3 {
		want = append([]time.Time{now.Add(time.Second)}, want...)
		want = want[:min(len(want), kept)]
		refresh(time.Second)
	}
}

func TestUserUnchanged(t *testing.T) {
	_, s := openAuth(t)
	inTx(t, s, func(tx auth.Tx) error { return tx.InsertUser(t.Context(), newUser("usr_1")) })
	want := func(hash string, want bool) {
		t.Helper()
		inTx(t, s, func(tx auth.Tx) error {
			got, err := tx.UserUnchanged(t.Context(), "usr_1", hash)
			if got != want {
				t.Errorf("unchanged with %q = %v, want %v", hash, got, want)
			}
			return err
		})
	}
	want("hash", true)
	inTx(t, s, func(tx auth.Tx) error { return tx.SetPasswordHash(t.Context(), "usr_1", "another", "newer") })
	want("hash", true)
	inTx(t, s, func(tx auth.Tx) error { return tx.SetPasswordHash(t.Context(), "usr_1", "hash", "newer") })
	want("hash", false)
	want("newer", true)
	inTx(t, s, func(tx auth.Tx) error {
		_, err := tx.SetUserAccess(t.Context(), "usr_1", auth.Seller, true)
		return err
	})
	want("newer", false)
}

// A bucket is compared with a plain list of the instants at which each counted attempt is given back.
func TestTheThrottleCountsLikeItsModel(t *testing.T) {
	const cost, burst = 90 * time.Second, 10
	_, s := openAuth(t)
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		bucket := fmt.Sprintf("account:%d", run)
		now := signInTime
		var fullUntil time.Time // when the last attempt counted is given back
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*cost/time.Microsecond)).Draw(r, "pause")) * time.Microsecond)
			next := now
			if fullUntil.After(now) {
				next = fullUntil
			}
			next = next.Add(cost)
			want := !next.After(now.Add(burst * cost))
			if want {
				fullUntil = next
			}
			err := s.InTx(t.Context(), func(tx auth.Tx) error {
				virtual, counted, err := tx.TakeThrottle(t.Context(), bucket, now, cost, burst*cost)
				if counted != want || !virtual.Equal(fullUntil) {
					r.Errorf("counted %v at %v, want %v at %v", counted, virtual, want, fullUntil)
				}
				return err
			})
			if err != nil {
				r.Fatal(err)
			}
			if want && rapid.Bool().Draw(r, "refund") {
				fullUntil = fullUntil.Add(-cost)
				err := s.InTx(t.Context(), func(tx auth.Tx) error { return tx.RefundThrottle(t.Context(), bucket, cost) })
				if err != nil {
					r.Fatal(err)
				}
			}
		}
	})
}

func TestSweepIsBoundedAndLeavesWhatMatters(t *testing.T) {
	_, s := openAuth(t)
	const dead = 7
	cutoff := newSession("", "").CapAt.Add(time.Microsecond)
	inTx(t, s, func(tx auth.Tx) error {
		if err := tx.InsertUser(t.Context(), newUser("usr_1")); err != nil {
			return err
		}
		for i := range dead {
			if err := tx.InsertSession(t.Context(), newSession(fmt.Sprintf("ses_%d", i), "usr_1")); err != nil {
				return err
			}
			if _, _, err := tx.TakeThrottle(t.Context(), fmt.Sprint("bucket", i), signInTime, time.Minute, time.Hour); err != nil {
				return err
			}
			if err := tx.AddKnownDevice(t.Context(), "usr_1", fmt.Sprint("device", i), signInTime); err != nil {
				return err
			}
		}
		later := newSession("ses_live", "usr_1")
		later.CapAt = cutoff
		if err := tx.InsertSession(t.Context(), later); err != nil {
			return err
		}
		if _, _, err := tx.TakeThrottle(t.Context(), "live", signInTime, 2*time.Hour, 2*time.Hour); err != nil {
			return err
		}
		return tx.AddKnownDevice(t.Context(), "usr_1", "device0", signInTime.Add(time.Hour)) // seen again
	})
	for i, want := range []int64{15, 5, 0} { // 7 sessions, 7 buckets and 6 devices, five of each at a time
		inTx(t, s, func(tx auth.Tx) error {
			n, err := tx.Sweep(t.Context(), signInTime.Add(time.Hour), cutoff, signInTime.Add(time.Minute), 5)
			if n != want {
				t.Errorf("sweep %d deleted %d rows, want %d", i, n, want)
			}
			return err
		})
	}
	inTx(t, s, func(tx auth.Tx) error {
		_, _, found, err := tx.Session(t.Context(), "ses_live")
		if !found || err != nil {
			return fmt.Errorf("the live session: %v, %w", found, err)
		}
		known, err := tx.KnownDevice(t.Context(), "usr_1", "device0")
		if !known || err != nil {
			return fmt.Errorf("the device seen again: %v, %w", known, err)
		}
		_, counted, err := tx.TakeThrottle(t.Context(), "live", signInTime, time.Minute, 2*time.Hour)
		if counted || err != nil {
			return fmt.Errorf("the full bucket took one more: %v, %w", counted, err)
		}
		return nil
	})
}

func TestServiceKeysAreFoundByTheirHash(t *testing.T) {
	db, s := openAuth(t)
	inTx(t, s, func(tx auth.Tx) error {
		return tx.InsertServiceKey(t.Context(), "key_1", "marketplace", "hash", signInTime)
	})
	for hash, want := range map[string]bool{"hash": true, "other": false} {
		if got, err := db.ServiceKeyExists(t.Context(), hash); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", hash, got, err, want)
		}
	}
}
