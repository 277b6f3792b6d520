package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/store"
)

func newIdentity(subject string) auth.Identity {
	return auth.Identity{Issuer: "https://a.example", Subject: subject, Email: "asha@example.com"}
}

func testIdentities(_ *testing.T, b *bench) {
	link := func(user string, i auth.Identity, at time.Time, want bool) {
		b.Helper()
		b.update(func(tx *store.Tx) error {
			linked, err := tx.AddIdentity(b.ctx(), user, i, at)
			if linked != want {
				b.Errorf("%s linked to %s: %v, want %v", i.Subject, user, linked, want)
			}
			return err
		})
	}
	find := func(issuer, subject, want string) {
		b.Helper()
		b.update(func(tx *store.Tx) error {
			u, found, err := tx.UserByIdentity(b.ctx(), issuer, subject)
			if found != (want != "") || (found && u.ID != want) {
				b.Errorf("%s of %s is %q, %v; want %q", subject, issuer, u.ID, found, want)
			}
			return err
		})
	}
	b.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(b.ctx(), newUser("usr_1")); err != nil {
			return err
		}
		return tx.InsertUser(b.ctx(), newUser("usr_2"))
	})
	elsewhere := auth.Identity{Issuer: "https://b.example", Subject: "7"}
	link("usr_1", newIdentity("7"), signedInAt, true)
	link("usr_2", newIdentity("7"), signedInAt, false)
	link("usr_1", newIdentity("8"), signedInAt.Add(time.Second), true)
	link("usr_2", elsewhere, signedInAt, true) // the same subject of another issuer is another user
	find("https://a.example", "7", "usr_1")
	find("https://b.example", "7", "usr_2")
	find("https://a.example", "9", "")
	find("https://a.example/", "7", "")

	want := []auth.LinkedIdentity{
		{Issuer: "https://a.example", Subject: "7", Email: "asha@example.com", Since: signedInAt},
		{Issuer: "https://a.example", Subject: "8", Email: "asha@example.com", Since: signedInAt.Add(time.Second)},
	}
	got, err := b.db.Identities(b.ctx(), "usr_1")
	b.must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		b.Error(diff)
	}
	b.update(func(tx *store.Tx) error {
		if err := tx.RemoveIdentitiesOf(b.ctx(), "usr_1", "https://b.example"); err != nil {
			return err
		}
		left, err := tx.Identities(b.ctx(), "usr_1")
		if diff := cmp.Diff(want, left); diff != "" {
			b.Error(diff)
		}
		return err
	})
	find("https://b.example", "7", "usr_2") // it is another user's
	b.update(func(tx *store.Tx) error {
		return tx.RemoveIdentitiesSince(b.ctx(), "usr_1", signedInAt.Add(time.Second))
	})
	find("https://a.example", "7", "usr_1")
	find("https://a.example", "8", "")
	find("https://b.example", "7", "usr_2")
	b.update(func(tx *store.Tx) error { return tx.RemoveIdentities(b.ctx(), "usr_1") })
	find("https://a.example", "7", "")
	find("https://b.example", "7", "usr_2")
	link("usr_2", newIdentity("7"), signedInAt, true)
	b.update(func(tx *store.Tx) error { return tx.RemoveIdentitiesOf(b.ctx(), "usr_2", "https://b.example") })
	find("https://a.example", "7", "usr_2")
	find("https://b.example", "7", "")
}

func testUsedSignIns(_ *testing.T, b *bench) {
	var first atomic.Int64
	b.atOnce(20, func(int) error {
		var unused bool
		err := b.db.Update(b.ctx(), func(tx *store.Tx) (err error) {
			unused, err = tx.UseSignIn(b.ctx(), "flow", signedInAt)
			return err
		})
		if unused {
			first.Add(1)
		}
		return err
	})
	if first.Load() != 1 {
		b.Errorf("%d of 20 were the first", first.Load())
	}
	b.update(func(tx *store.Tx) error {
		unused, err := tx.UseSignIn(b.ctx(), "another", signedInAt.Add(time.Hour))
		if !unused {
			b.Error("another sign-in was used")
		}
		return err
	})
	sweep := func(now time.Time, want int64) {
		b.Helper()
		b.update(func(tx *store.Tx) error {
			n, err := tx.Sweep(b.ctx(), now, signedInAt, signedInAt, 5)
			if n != want {
				b.Errorf("swept %d, want %d", n, want)
			}
			return err
		})
	}
	sweep(signedInAt, 0)
	sweep(signedInAt.Add(time.Microsecond), 1)
	sweep(signedInAt.Add(2*time.Hour), 1)
}

func testTakeOver(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.update(func(tx *store.Tx) error {
		u, found, err := tx.UserByEmail(b.ctx(), "usr_a@example.com")
		if err != nil || !found || u.ID != seller || u.Verified {
			return fmt.Errorf("%+v, %v, %w", u, found, err)
		}
		if _, found, err := tx.UserByEmail(b.ctx(), "usr_b@example.com"); found || err != nil {
			return fmt.Errorf("found a user without an owner: %w", err)
		}
		if _, err := tx.SetPasswordHash(b.ctx(), seller, "", "theirs"); err != nil {
			return err
		}
		return tx.TakeUserOver(b.ctx(), seller, auth.Seller, "")
	})
	u, _, err := b.db.UserByEmail(b.ctx(), "usr_a@example.com")
	if err != nil || !u.Verified || u.PasswordHash != "" {
		b.Errorf("user %+v, %v", u, err)
	}
}

// testRejectedBankAccount has a verification under way end after its account was rejected.
func testRejectedBankAccount(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	fresh := bank.Account{
		ID: "bka_new", Seller: seller, Holder: "Asha Rao", IFSC: "HDFC0000053", Last4: "1234",
		Status: bank.StatusUnverified, NameScore: -1, DueAt: b.now, CreatedAt: b.now, Current: true,
	}
	b.update(func(tx *store.Tx) error {
		if err := b.addAccount(tx, fresh); err != nil {
			return err
		}
		for range 2 { // the second changes nothing
			if err := tx.RejectBankAccounts(b.ctx(), seller, "Register it again.", b.now); err != nil {
				return err
			}
		}
		return nil
	})
	b.update(func(tx *store.Tx) error {
		verified := fresh
		verified.Status, verified.VerifiedAt = bank.StatusVerified, b.now
		saved, err := tx.SaveVerification(b.ctx(), fresh, verified)
		if saved {
			b.Error("the verification undid the rejection")
		}
		if err != nil {
			return err
		}
		due, err := tx.LeaseDueVerifications(b.ctx(), b.now, b.now.Add(time.Minute), 10)
		if len(due) > 0 {
			b.Errorf("due are %v", due)
		}
		return err
	})
	if a, err := b.db.BankAccount(b.ctx(), seller); !errors.Is(err, bank.ErrNone) {
		b.Errorf("the current account is %+v, %v", a, err)
	}
	got, err := b.db.BankAccountByID(b.ctx(), fresh.ID)
	if err != nil || got.Status != bank.StatusRejected || got.Reason != "Register it again." || !got.VerifiedAt.IsZero() {
		b.Errorf("account %+v, %v", got, err)
	}
	former, err := b.db.BankAccountByID(b.ctx(), bank.ID("bka_"+seller)) // a payout to it may wait
	if err != nil || former.Status != bank.StatusRejected || former.Reason != "Register it again." {
		b.Errorf("the account before it: %+v, %v", former, err)
	}
	b.wantCleanAudit()
}

// testSignInBesideTakeOver lets sign-ins by an identity race its removal. Whichever is first, none may
// be left: an identity does not go between the look at it and the session that rests on that.
func testSignInBesideTakeOver(_ *testing.T, b *bench) {
	for round := range 10 {
		user, subject := fmt.Sprintf("usr_%d", round), fmt.Sprint("subject ", round)
		b.update(func(tx *store.Tx) error {
			if err := tx.InsertUser(b.ctx(), newUser(user)); err != nil {
				return err
			}
			_, err := tx.AddIdentity(b.ctx(), user, newIdentity(subject), signedInAt)
			return err
		})
		b.atOnce(4, func(i int) error {
			return b.db.Update(b.ctx(), func(tx *store.Tx) error {
				if i == 0 {
					u, _, err := tx.UserByEmail(b.ctx(), user+"@example.com")
					if err != nil {
						return err
					}
					if err := tx.RemoveIdentities(b.ctx(), u.ID); err != nil {
						return err
					}
					return tx.EndUserSessions(b.ctx(), u.ID, "", "taken_over", signedInAt)
				}
				u, found, err := tx.UserByIdentity(b.ctx(), "https://a.example", subject)
				if err != nil || !found {
					return err
				}
				return tx.InsertSession(b.ctx(), newSession(fmt.Sprintf("ses_%d_%d", round, i), u.ID))
			})
		})
		live, err := b.db.LiveSessions(b.ctx(), user, signedInAt, 10)
		if err != nil || len(live) > 0 {
			b.Errorf("sessions %+v outlived the identity they came of, %v", live, err)
		}
	}
}

func testListedSessions(_ *testing.T, b *bench) {
	hour := signedInAt.Add(time.Hour)
	b.update(func(tx *store.Tx) error {
		for _, user := range []string{"usr_1", "usr_2"} {
			if err := tx.InsertUser(b.ctx(), newUser(user)); err != nil {
				return err
			}
		}
		for i, user := range []string{"usr_1", "usr_1", "usr_2", "usr_1", "usr_1"} {
			s := newSession(fmt.Sprint("ses_", i), user)
			s.Agent, s.Address, s.Methods = fmt.Sprint("agent ", i), "203.0.113.7", []string{"pwd", "otp"}[:1+i%2]
			if err := tx.InsertSession(b.ctx(), s); err != nil {
				return err
			}
		}
		if _, _, err := tx.AdvanceSession(b.ctx(), "ses_1", 0, signedInAt.Add(time.Minute), hour, time.Second); err != nil {
			return err
		}
		for _, end := range []struct {
			user, session string
			want          bool
		}{{"usr_2", "ses_4", false}, {"usr_1", "ses_3", true}, {"usr_1", "ses_3", false}, {"usr_1", "ses_9", false}} {
			ended, err := tx.EndSessionOf(b.ctx(), end.user, end.session, "ended_by_user", signedInAt)
			if err != nil {
				return err
			}
			if ended != end.want {
				b.Errorf("%s ended %s: %v", end.user, end.session, ended)
			}
		}
		return nil
	})
	want := []auth.SessionInfo{
		{ID: "ses_4", CreatedAt: signedInAt, LastUsedAt: signedInAt, Agent: "agent 4", Address: "203.0.113.7", Methods: []string{"pwd"}},
		{ID: "ses_1", CreatedAt: signedInAt, LastUsedAt: signedInAt.Add(time.Minute), Agent: "agent 1", Address: "203.0.113.7", Methods: []string{"pwd", "otp"}},
		{ID: "ses_0", CreatedAt: signedInAt, LastUsedAt: signedInAt, Agent: "agent 0", Address: "203.0.113.7", Methods: []string{"pwd"}},
	}
	list := func(at time.Time, limit int, want []auth.SessionInfo) {
		b.Helper()
		got, err := b.db.LiveSessions(b.ctx(), "usr_1", at, limit)
		b.must(err)
		if diff := cmp.Diff(want, got); diff != "" {
			b.Error(diff)
		}
	}
	list(signedInAt, 10, want)
	list(signedInAt, 2, want[:2])
	list(hour, 10, nil)
	b.update(func(tx *store.Tx) error {
		return tx.EndUserSessions(b.ctx(), "usr_1", "ses_1", "ended_by_user", signedInAt)
	})
	list(signedInAt, 10, want[1:2])
}

func testFoundUsers(_ *testing.T, b *bench) {
	profile := auth.Profile{Avatar: "https://b.example/2.png", Bio: "two lines\nof it", Website: "https://b.example"}
	b.update(func(tx *store.Tx) error {
		for i, email := range []string{"ann@example.com", "ANN_E@example.com", "anne@example.com", "bo@example.com", "an@example.com"} {
			u := newUser(fmt.Sprint("usr_", i))
			u.Email = email
			if err := tx.InsertUser(b.ctx(), u); err != nil {
				return err
			}
		}
		if err := tx.SetProfile(b.ctx(), "usr_3", auth.ProfileChange{Name: new("Bo"), Website: &profile.Website}); err != nil {
			return err
		}
		return tx.SetProfile(b.ctx(), "usr_3", auth.ProfileChange{Avatar: &profile.Avatar, Bio: &profile.Bio})
	})
	for prefix, want := range map[string][]string{
		"ann":            {"usr_0", "usr_1", "usr_2"},
		"ann_":           {"usr_1"},
		"bo@example.com": {"usr_3"},
		"":               {"usr_4", "usr_0", "usr_1"},
		"c":              nil,
	} {
		users, err := b.db.FindUsers(b.ctx(), prefix, 3)
		b.must(err)
		var got []string
		for _, u := range users {
			got = append(got, u.ID)
			if u.ID == "usr_3" && (u.Name != "Bo" || u.Profile != profile) {
				b.Errorf("user %+v", u)
			}
		}
		if !slices.Equal(got, want) {
			b.Errorf("%q finds %v, want %v", prefix, got, want)
		}
	}
}

// testAdminsAtOnce has two admins take the role from each other.
func testAdminsAtOnce(_ *testing.T, b *bench) {
	ids := []string{"usr_1", "usr_2"}
	b.update(func(tx *store.Tx) error {
		for _, id := range append(ids, "usr_3") {
			if err := tx.InsertUser(b.ctx(), newUser(id)); err != nil {
				return err
			}
		}
		return nil
	})
	for range 10 {
		b.update(func(tx *store.Tx) error {
			for _, id := range ids {
				if _, err := tx.SetUserAccess(b.ctx(), id, auth.Admin, false); err != nil {
					return err
				}
			}
			_, err := tx.SetUserAccess(b.ctx(), "usr_3", auth.Admin, true) // a suspended one does not count
			return err
		})
		b.atOnce(2, func(i int) error {
			return b.db.Update(b.ctx(), func(tx *store.Tx) error {
				admins, err := tx.Admins(b.ctx())
				if err != nil || len(admins) < 2 {
					return err
				}
				_, err = tx.SetUserAccess(b.ctx(), ids[1-i], auth.Seller, false)
				return err
			})
		})
		b.update(func(tx *store.Tx) error {
			admins, err := tx.Admins(b.ctx())
			if len(admins) != 1 {
				b.Errorf("admins are %v, want one", admins)
			}
			return err
		})
	}
}
