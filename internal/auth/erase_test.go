package auth_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/mail"
	"bursar/internal/storetest"
)

func TestDeleteAccount(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	elsewhere, err := w.login(email, password, cafe)
	if err != nil {
		t.Fatal(err)
	}
	p := w.principal(in)
	wantErr(t, w.DeleteAccount(t.Context(), p, "not-my-password", home), auth.ErrWrongPassword)
	w.wantAlive(in)
	if err := w.DeleteAccount(t.Context(), p, password, home); err != nil {
		t.Fatal(err)
	}
	w.wantDead(in)
	w.wantDead(elsewhere)
	_, err = w.login(email, password, home)
	wantErr(t, err, auth.ErrCredentials)
	if again := w.register(); again.User.ID == in.User.ID {
		t.Error("the address stands for the deleted user")
	}
	u, err := w.FindUser(t.Context(), in.User.ID)
	if err != nil || !u.Deleted() {
		t.Errorf("%+v, %v", u, err)
	}
	if auth.CheckEmail(u.Email) == "" {
		t.Errorf("%q can be registered", u.Email)
	}
}

// Wrong guesses count as those at sign-in, so a stolen session is no licence to guess.
func TestDeleteAccount_GuessesAreThrottled(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	for i := range 20 {
		wantErr(t, w.DeleteAccount(t.Context(), p, "a-guess-at-it", at(i)), auth.ErrWrongPassword)
	}
	wantThrottled(t, w.DeleteAccount(t.Context(), p, password, home))
}

// A thief who has the password moves the account, so that the owner learns nothing, and deletes it.
func TestDeleteAccount_FormerAddressHears(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	w.moveAccount(w.principal(in))
	if err := w.DeleteAccount(t.Context(), w.principal(in), password, den); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{email, thiefs} {
		if !slices.ContainsFunc(w.mailbox.To(to), func(d mail.Data) bool { return d.Kind() == mail.KindAccountDeleted }) {
			t.Errorf("%s got no mail about it", to)
		}
	}
}

// What undoes a change of the address has expired, or was changed outside the service. Its address hears nothing, and the account is deleted.
func TestDeleteAccount_DeadUndo_IsNotMailed(t *testing.T) {
	for name, end := range map[string]func(w *fixture){
		"expired": func(w *fixture) { w.clock.advance(mail.UndoLife + time.Hour) },
		"tampered": func(w *fixture) {
			w.place.ByHand(t, `UPDATE mail_tokens SET email = 'else@example.com' WHERE purpose = 'undo_email'`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.moveAccount(w.principal(w.register()))
			end(w)
			now, err := w.login(thiefs, password, den)
			wantErr(t, err, nil)
			wantErr(t, w.DeleteAccount(t.Context(), w.principal(now), password, den), nil)
			if all := mailed[mail.AccountDeleted](w); len(all) > 0 {
				t.Errorf("mailed to the former address: %+v", all)
			}
		})
	}
}

// A user who signs in through a provider proves it by a fresh sign-in, and their identity is a stranger's afterwards.
func TestDeleteAccount_WithoutPassword(t *testing.T) {
	s := newStreet(t)
	first := s.mustArrive(asha())
	s.clock.advance(15 * time.Minute)
	wantErr(t, s.DeleteAccount(t.Context(), s.principal(first), "", home), auth.ErrStaleSignIn)
	again := s.mustArrive(asha())
	if err := s.DeleteAccount(t.Context(), s.principal(again), "", home); err != nil {
		t.Fatal(err)
	}
	s.wantDead(first)
	if stranger := s.mustArrive(asha()); stranger.User.ID == first.User.ID {
		t.Error("the identity leads to the deleted user")
	}
}

// TestDeleteAccount_StaysDeleted has an operator change the account.
func TestDeleteAccount_StaysDeleted(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	user, by := in.User.ID, decision.By{Operator: "asha"}
	if err := w.DeleteAccount(t.Context(), w.principal(in), password, home); err != nil {
		t.Fatal(err)
	}
	decided := func() int {
		list, err := w.db.Decisions(t.Context(), user, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := decided()
	_, _, role := w.SetRole(t.Context(), by, user, auth.Seller)
	_, _, suspended := w.SetSuspended(t.Context(), by, user, true)
	_, set := w.ResetPassword(t.Context(), by, user, nextPassword, true)
	reset := w.ResetUser(t.Context(), auth.Reset{UserID: user, Email: email, Role: auth.Seller, Password: nextPassword, Operator: "asha"})
	for what, err := range map[string]error{"the role": role, "the suspension": suspended, "the password": set, "all of it": reset} {
		if f := fault.From(err); f == nil || f.Code != "account_deleted" {
			t.Errorf("%s of a deleted account was set: %v", what, err)
		}
	}
	if after := decided(); after != before {
		t.Errorf("%d decisions about a deleted account were recorded", after-before)
	}
	if u, err := w.FindUser(t.Context(), user); err != nil || !u.Deleted() {
		t.Errorf("the account is %+v, %v", u, err)
	}
}

// Of any number of deletions beside sign-ins and changes of the password, one is made, and no session outlives it.
func TestDeleteAccount_BesideOthers(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	ins := make([]auth.SignIn, 4)
	var deleted, changed atomic.Int64
	var all sync.WaitGroup
	for i := range ins {
		all.Go(func() { ins[i], _ = w.login(email, password, at(i)) })
		all.Go(func() {
			switch err := w.DeleteAccount(t.Context(), p, password, home); {
			case err == nil:
				deleted.Add(1)
			case !errors.Is(err, auth.ErrToken) && !errors.Is(err, auth.ErrWrongPassword):
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		switch _, err := w.ChangePassword(t.Context(), p, password, nextPassword, home); {
		case err == nil:
			changed.Add(1)
		case !errors.Is(err, auth.ErrToken) && !errors.Is(err, auth.ErrWrongPassword):
			t.Error(err)
		}
	})
	all.Wait()
	if deleted.Load()+changed.Load() != 1 {
		t.Errorf("%d deletions and %d changes were made, want one of both", deleted.Load(), changed.Load())
	}
	for _, in := range ins {
		if in.Token != "" {
			w.wantDead(in)
		}
	}
}

func TestDeleteAccount_FailureIsNotSwallowed(t *testing.T) {
	t.Parallel()
	storetest.EachFailure(t, func(t *testing.T, place storetest.Place) storetest.Story {
		t.Helper()
		w := newFixtureAt(t, place)
		in := w.register()
		p := w.principal(in)
		return storetest.Story{
			Act: func() error { return w.DeleteAccount(t.Context(), p, password, home) },
			State: func() string {
				u, err := w.FindUser(t.Context(), in.User.ID)
				sessions, sessionsErr := w.Sessions(t.Context(), p)
				decisions, decisionsErr := w.db.Decisions(t.Context(), "", 10)
				if err := errors.Join(err, sessionsErr, decisionsErr); err != nil {
					t.Fatal(err)
				}
				return fmt.Sprint(u.Name, u.Email, u.Role, u.PasswordHash == "", len(sessions), len(decisions))
			},
		}
	})
}
