package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/store"
)

var signedInAt = time.Date(2027, 3, 1, 12, 0, 0, 123456000, time.UTC)

func newUser(id string) auth.User {
	return auth.User{
		ID: id, Name: "Asha", Email: id + "@Example.com", Role: auth.Seller, Verified: true, PasswordHash: "hash",
		Profile: auth.Profile{Avatar: "https://a.example/1.png", Bio: "lane", Website: "https://a.example"}, CreatedAt: signedInAt,
	}
}

func newSession(id, user string) auth.Session {
	return auth.Session{
		ID: id, UserID: user, CreatedAt: signedInAt,
		ExpiresAt: signedInAt.Add(time.Hour), CapAt: signedInAt.Add(3 * time.Hour),
	}
}

func testUsers(_ *testing.T, b *bench) {
	want := newUser("usr_1")
	b.update(func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), want) })

	got, found, err := b.db.UserByEmail(b.ctx(), "usr_1@example.com")
	if err != nil || !found {
		b.Fatal(found, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Error(diff)
	}
	got, stats, found, err := b.db.UserWithStats(b.ctx(), "usr_1")
	if err != nil || !found || stats != (auth.Stats{}) {
		b.Fatal(stats, found, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Error(diff)
	}
	if _, found, err := b.db.UserByEmail(b.ctx(), "usr_1@Example.com"); found || err != nil {
		b.Errorf("found by what is not the key: %v, %v", found, err)
	}
	if _, _, found, err := b.db.UserWithStats(b.ctx(), "usr_2"); found || err != nil {
		b.Errorf("found a user who is not there: %v, %v", found, err)
	}
}

func testStats(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.sell("s1", seller, 700)
	b.update(func(tx *store.Tx) error {
		buyer := newUser("usr_b")
		buyer.Role = auth.Buyer
		if err := tx.InsertUser(b.ctx(), buyer); err != nil {
			return err
		}
		for id, want := range map[string]bool{seller: true, buyer.ID: false, "usr_nobody": false} {
			sells, err := tx.SetProductsListed(b.ctx(), id, 3)
			if err != nil || sells != want {
				b.Errorf("products of %s: %v, %v; want %v", id, sells, err, want)
			}
		}
		return nil
	})
	_, stats, _, err := b.db.UserWithStats(b.ctx(), seller)
	b.must(err)
	if want := (auth.Stats{TotalSales: 1, TotalEarnings: 700, ProductsListed: 3}); stats != want {
		b.Errorf("stats %+v, want %+v", stats, want)
	}
}

func testTakenEmails(_ *testing.T, b *bench) {
	b.update(func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), newUser("usr_1")) })
	twin := newUser("usr_2")
	twin.Email = "USR_1@example.com"
	b.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(b.ctx(), twin); !errors.Is(err, auth.ErrEmailTaken) {
			b.Errorf("error = %v, want %v", err, auth.ErrEmailTaken)
		}
		return tx.InsertUser(b.ctx(), newUser("usr_3")) // the transaction goes on
	})
	if _, found, err := b.db.UserByEmail(b.ctx(), "usr_3@example.com"); !found || err != nil {
		b.Error(found, err)
	}
}

func testEmailsAtOnce(_ *testing.T, b *bench) {
	var made, taken atomic.Int64
	b.atOnce(8, func(i int) error {
		u := newUser(fmt.Sprintf("usr_%d", i))
		u.Email = "asha@example.com"
		err := b.db.Update(b.ctx(), func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), u) })
		if err == nil {
			made.Add(1)
		}
		if errors.Is(err, auth.ErrEmailTaken) {
			taken.Add(1)
			return nil
		}
		return err
	})
	if made.Load() != 1 || taken.Load() != 7 {
		b.Errorf("of eight users with one address %d were made and %d refused, want 1 and 7", made.Load(), taken.Load())
	}
}

func testSessions(_ *testing.T, b *bench) {
	b.update(func(tx *store.Tx) error {
		for _, id := range []string{"1", "2", "3", "4"} {
			if err := tx.InsertUser(b.ctx(), newUser("usr_"+id)); err != nil {
				return err
			}
			if err := tx.InsertSession(b.ctx(), newSession("ses_"+id, "usr_"+id)); err != nil {
				return err
			}
		}
		if err := tx.EndSession(b.ctx(), "ses_2", "logout", signedInAt); err != nil {
			return err
		}
		if err := tx.EndUserSessions(b.ctx(), "usr_3", "", "suspended", signedInAt); err != nil {
			return err
		}
		_, err := tx.SetUserAccess(b.ctx(), "usr_4", auth.Seller, true)
		return err
	})
	b.update(func(tx *store.Tx) error {
		for _, tt := range []struct {
			session, user string
			want          bool
		}{{"ses_1", "usr_1", true}, {"ses_1", "usr_2", false}, {"ses_2", "usr_2", false}, {"ses_3", "usr_3", false}, {"ses_5", "usr_1", false}} {
			if lives, err := tx.SessionLives(b.ctx(), tt.session, tt.user); err != nil || lives != tt.want {
				b.Errorf("%s of %s lives: %t, %v", tt.session, tt.user, lives, err)
			}
		}
		return nil
	})
	unproven := newSession("ses_unproven", "usr_1")
	unproven.AuthenticatedAt = time.Unix(0, 0).UTC()
	b.update(func(tx *store.Tx) error {
		if err := errors.Join(tx.InsertSession(b.ctx(), unproven), tx.EndUnprovenSessions(b.ctx(), "usr_2", "role_changed", signedInAt)); err != nil {
			return err
		}
		others, err := tx.SessionLives(b.ctx(), unproven.ID, "usr_1")
		err = errors.Join(err, tx.EndUnprovenSessions(b.ctx(), "usr_1", "role_changed", signedInAt))
		its, err2 := tx.SessionLives(b.ctx(), unproven.ID, "usr_1")
		proven, err3 := tx.SessionLives(b.ctx(), "ses_1", "usr_1")
		if !others || its || !proven {
			b.Errorf("after another user's: %t, after its own: %t; one that was proven: %t", others, its, proven)
		}
		return errors.Join(err, err2, err3)
	})
	hour := signedInAt.Add(time.Hour)
	tests := map[string]struct {
		session string
		at      time.Time
		want    bool
	}{
		"live":                 {"ses_1", signedInAt, true},
		"live until it ends":   {"ses_1", hour.Add(-time.Microsecond), true},
		"expired":              {"ses_1", hour, false},
		"ended":                {"ses_2", signedInAt, false},
		"ended with others":    {"ses_3", signedInAt, false},
		"of a suspended user":  {"ses_4", signedInAt, false},
		"never made":           {"ses_5", signedInAt, false},
		"an injected sentence": {"' OR 1=1 --", signedInAt, false},
	}
	for name, tt := range tests {
		b.Run(name, func(t *testing.T) {
			want := auth.Principal{UserID: "usr_1", Email: "usr_1@Example.com", Role: auth.Seller, Session: "ses_1", Verified: true}
			check := func(where string, p auth.Principal, live bool, err error) {
				t.Helper()
				if err != nil || live != tt.want || live && p != want {
					t.Errorf("%s: %+v, live = %v, %v; want %v", where, p, live, err, tt.want)
				}
			}
			p, live, err := b.db.LiveSession(b.ctx(), tt.session, tt.at)
			check("by itself", p, live, err)
			b.update(func(tx *store.Tx) error {
				p, live, err := tx.LiveSession(b.ctx(), tt.session, tt.at)
				check("in a transaction", p, live, err)
				return nil
			})
			err = b.db.Payouts().InGroup(b.ctx(), ledger.Scope{Owner: "usr_1", Session: tt.session}, func(tx payout.ChangeTx) error {
				p, live, err := tx.(auth.SessionTx).LiveSession(b.ctx(), tt.session, tt.at) //nolint:forcetypeassert // the store's has it
				check("in a unit of work", p, live, err)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// testDecidedAdmin makes a user an admin and a seller again, and puts the admin's row back without the later decision.
func testDecidedAdmin(_ *testing.T, b *bench) {
	set := func(role auth.Role) {
		b.update(func(tx *store.Tx) error {
			_, err := tx.SetUserAccess(b.ctx(), "usr_1", role, false)
			by := decision.By{Operator: "asha", Note: auth.AccessNote(role, false, "")}
			return errors.Join(err, ledger.RecordDecision(b.ctx(), tx, decision.New(by, decision.ChangeAccess, "usr_1", "usr_1", signedInAt)))
		})
	}
	b.update(func(tx *store.Tx) error {
		return errors.Join(tx.InsertUser(b.ctx(), newUser("usr_1")), tx.InsertSession(b.ctx(), newSession("ses_1", "usr_1")))
	})
	set(auth.Admin)
	if p, live, err := b.db.LiveSession(b.ctx(), "ses_1", signedInAt); err != nil || !live || p.Role != auth.Admin {
		b.Fatalf("the admin is %+v, %t, %v", p, live, err)
	}
	hands := b.engine.Hands(b.T, b.db)
	hands(`CREATE TABLE old_users AS SELECT * FROM users`) //nolint:unqueryvet // all of it
	set(auth.Seller)
	hands(`UPDATE users SET (role, mac) = (SELECT o.role, o.mac FROM old_users o WHERE o.id = users.id)`)
	if _, _, err := b.db.LiveSession(b.ctx(), "ses_1", signedInAt); !errors.Is(err, auth.ErrTampered) {
		b.Errorf("with the row of before the decision: %v", err)
	}
	report, err := b.db.Audit(b.ctx(), b.keys)
	b.must(err)
	i := slices.IndexFunc(report.Findings, func(f ledger.Finding) bool { return f.Name == "users-are-ours" })
	if found := report.Findings[i].Violations; len(found) != 1 || !strings.Contains(found[0].Problem, "the user is admin, and was not made so by the last decision") {
		b.Errorf("with the row of before the decision the audit finds %v", found)
	}
	hands(`DELETE FROM entries WHERE number = 2`)
	if _, _, err := b.db.LiveSession(b.ctx(), "ses_1", signedInAt); !errors.Is(err, auth.ErrTampered) {
		b.Errorf("without the decision: %v", err)
	}
	hands(`DELETE FROM entries; DELETE FROM journals`)
	if _, _, err := b.db.LiveSession(b.ctx(), "ses_1", signedInAt); !errors.Is(err, auth.ErrTampered) || !strings.Contains(err.Error(), "this process knows entry 2") {
		b.Errorf("without the journal: %v", err)
	}
}

func testAdvanceOnce(_ *testing.T, b *bench) {
	b.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(b.ctx(), newUser("usr_1")); err != nil {
			return err
		}
		return tx.InsertSession(b.ctx(), newSession("ses_1", "usr_1"))
	})
	var won atomic.Int64
	b.atOnce(40, func(int) error {
		user, through, err := b.db.Auth().AdvanceSession(b.ctx(), "ses_1", 0, signedInAt, signedInAt.Add(2*time.Hour), time.Second)
		if through {
			won.Add(1)
		}
		if through && user != "usr_1" {
			b.Errorf("the session is of %q", user)
		}
		return err
	})
	if won.Load() != 1 {
		b.Errorf("%d got through, want 1", won.Load())
	}
}

func testAdvance(_ *testing.T, b *bench) {
	start := newSession("ses_1", "usr_1")
	start.AuthenticatedAt = signedInAt.Add(time.Second)
	b.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(b.ctx(), newUser("usr_1")); err != nil {
			return err
		}
		return tx.InsertSession(b.ctx(), start)
	})
	at := signedInAt.Add(time.Minute)
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
		b.update(func(tx *store.Tx) error {
			user, ok, err := tx.AdvanceSession(b.ctx(), "ses_1", step.counter, step.now, step.until, time.Second)
			if err != nil || ok != step.want {
				b.Errorf("%s: %v, %v; want %v", step.name, ok, err, step.want)
			}
			if ok && user != "usr_1" {
				b.Errorf("%s: the session is of %q", step.name, user)
			}
			got, _, err := tx.Session(b.ctx(), "ses_1")
			if !got.ExpiresAt.Equal(step.expires) {
				b.Errorf("%s: expires at %v, want %v", step.name, got.ExpiresAt, step.expires)
			}
			if !got.AuthenticatedAt.Equal(start.AuthenticatedAt) {
				b.Errorf("%s: authenticated at %v, want %v", step.name, got.AuthenticatedAt, start.AuthenticatedAt)
			}
			return err
		})
	}
}

func testRefreshes(_ *testing.T, b *bench) {
	b.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(b.ctx(), newUser("usr_1")); err != nil {
			return err
		}
		return tx.InsertSession(b.ctx(), newSession("ses_1", "usr_1"))
	})
	const grace, kept = 10 * time.Second, 32
	now := signedInAt
	var counter int64
	var want []time.Time
	refresh := func(pause time.Duration) {
		b.Helper()
		now = now.Add(pause)
		b.update(func(tx *store.Tx) error {
			if _, ok, err := tx.AdvanceSession(b.ctx(), "ses_1", counter, now, now.Add(time.Hour), grace); err != nil || !ok {
				return fmt.Errorf("refresh %d: %v, %w", counter, ok, err)
			}
			counter++
			got, _, err := tx.Session(b.ctx(), "ses_1")
			if diff := cmp.Diff(want, got.Refreshes); diff != "" {
				b.Errorf("refresh %d: %s", counter, diff)
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

	unreadable := b.with(b.engine.Tamper(b.T, b.db, `UPDATE sessions SET refreshes = 'no instant at all'`))
	if all, err := unreadable.db.LiveSessions(b.ctx(), "usr_1", now, 10); err == nil {
		b.Errorf("refreshes that can't be read are listed: %+v", all)
	}
}

func testUserUnchanged(_ *testing.T, b *bench) {
	b.update(func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), newUser("usr_1")) })
	want := func(hash string, want bool) {
		b.Helper()
		b.update(func(tx *store.Tx) error {
			got, err := tx.UserUnchanged(b.ctx(), "usr_1", hash)
			if got != want {
				b.Errorf("unchanged with %q = %v, want %v", hash, got, want)
			}
			return err
		})
	}
	want("hash", true)
	replace := func(old string, want bool) {
		b.Helper()
		b.update(func(tx *store.Tx) error {
			replaced, err := tx.SetPasswordHash(b.ctx(), "usr_1", old, "newer")
			if replaced != want {
				b.Errorf("%q was replaced: %v, want %v", old, replaced, want)
			}
			return err
		})
	}
	replace("another", false)
	want("hash", true)
	replace("hash", true)
	want("hash", false)
	want("newer", true)
	b.update(func(tx *store.Tx) error {
		_, err := tx.SetUserAccess(b.ctx(), "usr_1", auth.Seller, true)
		return err
	})
	want("newer", false)
}

// testSignInBesideSuspension lets sign-ins race a suspension. Whichever is first, none may be left: the
// user does not change between the look at it and the session that rests on that.
func testSignInBesideSuspension(_ *testing.T, b *bench) {
	for round := range 10 {
		id := fmt.Sprintf("usr_%d", round)
		b.update(func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), newUser(id)) })
		b.atOnce(4, func(i int) error {
			return b.db.Update(b.ctx(), func(tx *store.Tx) error {
				if i == 0 {
					if _, err := tx.SetUserAccess(b.ctx(), id, auth.Seller, true); err != nil {
						return err
					}
					return tx.EndUserSessions(b.ctx(), id, "", "suspended", signedInAt)
				}
				unchanged, err := tx.UserUnchanged(b.ctx(), id, "hash")
				if err != nil || !unchanged {
					return err
				}
				return tx.InsertSession(b.ctx(), newSession(fmt.Sprintf("ses_%d_%d", round, i), id))
			})
		})
		b.update(func(tx *store.Tx) error {
			for i := range 4 {
				s, found, err := tx.Session(b.ctx(), fmt.Sprintf("ses_%d_%d", round, i))
				if err != nil || (found && s.EndedAt.IsZero()) {
					b.Errorf("a session outlived its user's suspension, %v", err)
				}
			}
			return nil
		})
	}
}

// A bucket is compared with a plain list of the instants at which each counted attempt is returned.
func testThrottleModel(_ *testing.T, b *bench) {
	const cost, burst = 90 * time.Second, 10
	run := 0
	rapid.Check(b.T, func(r *rapid.T) {
		run++
		bucket := fmt.Sprintf("account:%d", run)
		now := signedInAt
		var fullUntil time.Time // when the last counted attempt is returned
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
			err := b.db.Update(b.ctx(), func(tx *store.Tx) error {
				virtual, counted, err := tx.TakeThrottle(b.ctx(), bucket, now, cost, burst*cost)
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
				err := b.db.Update(b.ctx(), func(tx *store.Tx) error { return tx.RefundThrottle(b.ctx(), bucket, cost) })
				if err != nil {
					r.Fatal(err)
				}
			}
		}
	})
}

func testThrottleAtOnce(_ *testing.T, b *bench) {
	const cost, burst = time.Minute, 10
	var counted atomic.Int64
	b.atOnce(40, func(int) error {
		var taken bool
		err := b.db.Update(b.ctx(), func(tx *store.Tx) (err error) {
			_, taken, err = tx.TakeThrottle(b.ctx(), "account", signedInAt, cost, burst*cost)
			return err
		})
		if taken {
			counted.Add(1)
		}
		return err
	})
	if counted.Load() != burst {
		b.Errorf("%d attempts of 40 at once were counted, want %d", counted.Load(), burst)
	}
	at, err := b.db.ThrottledAt(b.ctx(), []string{"nobody's", "account", "another"})
	if err != nil || len(at) != 1 || !at["account"].Equal(signedInAt.Add(burst*cost)) {
		b.Errorf("read: %v, %v", at, err)
	}
	b.update(func(tx *store.Tx) error {
		if err := tx.ForgetThrottle(b.ctx(), "account"); err != nil {
			return err
		}
		virtual, taken, err := tx.TakeThrottle(b.ctx(), "account", signedInAt, cost, burst*cost)
		if !taken || !virtual.Equal(signedInAt.Add(cost)) {
			b.Errorf("after the bucket was emptied: %v up to %v", taken, virtual)
		}
		return err
	})
}

func testSweep(_ *testing.T, b *bench) {
	const dead = 7
	cutoff := newSession("", "").CapAt.Add(time.Microsecond)
	b.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(b.ctx(), newUser("usr_1")); err != nil {
			return err
		}
		for i := range dead {
			if err := tx.InsertSession(b.ctx(), newSession(fmt.Sprintf("ses_%d", i), "usr_1")); err != nil {
				return err
			}
			if _, _, err := tx.TakeThrottle(b.ctx(), fmt.Sprint("bucket", i), signedInAt, time.Minute, time.Hour); err != nil {
				return err
			}
		}
		later := newSession("ses_live", "usr_1")
		later.CapAt = cutoff
		if err := tx.InsertSession(b.ctx(), later); err != nil {
			return err
		}
		_, _, err := tx.TakeThrottle(b.ctx(), "live", signedInAt, 2*time.Hour, 2*time.Hour)
		return err
	})
	for i, want := range []int64{10, 4, 0} { // 7 sessions and 7 buckets, five of each at a time
		b.update(func(tx *store.Tx) error {
			n, err := tx.Sweep(b.ctx(), signedInAt.Add(time.Hour), cutoff, cutoff, 5)
			if n != want {
				b.Errorf("sweep %d deleted %d rows, want %d", i, n, want)
			}
			return err
		})
	}
	b.update(func(tx *store.Tx) error {
		_, found, err := tx.Session(b.ctx(), "ses_live")
		if !found || err != nil {
			return fmt.Errorf("the live session: %v, %w", found, err)
		}
		_, counted, err := tx.TakeThrottle(b.ctx(), "live", signedInAt, time.Minute, 2*time.Hour)
		if counted || err != nil {
			return fmt.Errorf("the full bucket took one more: %v, %w", counted, err)
		}
		return nil
	})
}
