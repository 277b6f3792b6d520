package auth_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/mail"
)

var byOperator = decision.By{Operator: "asha", Note: "Ticket 812."}

func TestSetSuspended(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	u, changed, err := w.SetSuspended(t.Context(), byOperator, in.User.ID, true)
	if err != nil || !changed || !u.Suspended || u.Role != auth.Seller {
		t.Fatalf("%+v, %v, %v", u, changed, err)
	}
	w.wantDead(in)
	_, err = w.login(email, password, home)
	wantErr(t, err, auth.ErrCredentials)
	if _, changed, err := w.SetSuspended(t.Context(), byOperator, in.User.ID, true); changed || err != nil {
		t.Errorf("again: %v, %v", changed, err)
	}
	if u, changed, err := w.SetSuspended(t.Context(), byOperator, in.User.ID, false); err != nil || !changed || u.Suspended {
		t.Errorf("restored: %+v, %v, %v", u, changed, err)
	}
	if _, err := w.login(email, password, home); err != nil {
		t.Errorf("after they were restored: %v", err)
	}
	w.wantDecisions(in.User.ID, "asha: change_access: Now seller. Ticket 812.", "asha: change_access: Now seller, suspended. Ticket 812.")
	_, _, err = w.SetSuspended(t.Context(), byOperator, "usr_nobody", true)
	wantErr(t, err, auth.ErrUserNotFound)
}

// wantDecisions fails unless these were decided about a user, newest first.
func (w *fixture) wantDecisions(about string, want ...string) {
	w.t.Helper()
	all, err := w.db.Decisions(w.t.Context(), about, 10)
	if err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, d := range all {
		if d.Admin != "" {
			w.t.Errorf("an admin decided: %+v", d)
		}
		got = append(got, d.Operator+": "+string(d.Action)+": "+d.Note)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("decisions %q, want %q", got, want)
	}
}

func TestSetRole(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	u, changed, err := w.SetRole(t.Context(), byOperator, in.User.ID, auth.Admin)
	if err != nil || !changed || u.Role != auth.Admin {
		t.Fatalf("%+v, %v, %v", u, changed, err)
	}
	if p := w.principal(in); p.Role != auth.Admin {
		t.Errorf("the next request is that of a %s", p.Role)
	}
	_, _, err = w.SetRole(t.Context(), byOperator, in.User.ID, auth.Buyer)
	wantErr(t, err, auth.ErrLastAdmin)
	_, _, err = w.SetSuspended(t.Context(), byOperator, in.User.ID, true)
	wantErr(t, err, auth.ErrLastAdmin)
	if _, changed, err := w.SetRole(t.Context(), byOperator, in.User.ID, auth.Admin); changed || err != nil {
		t.Errorf("the last admin can't stay one: %v, %v", changed, err)
	}
	w.admin("Ada")
	if _, _, err := w.SetRole(t.Context(), byOperator, in.User.ID, auth.Buyer); err != nil {
		t.Error(err)
	}
	if _, _, err := w.SetRole(t.Context(), byOperator, in.User.ID, "king"); fault.From(err) == nil || fault.From(err).Details["role"] == "" {
		t.Errorf("a role that there is not: %v", err)
	}
	w.wantDecisions(in.User.ID, "asha: change_access: Now buyer. Ticket 812.", "asha: change_access: Now admin. Ticket 812.")
}

// A role and a suspension that are changed at once are both changed.
func TestSetRole_beside_SetSuspended(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	for range 10 {
		var both sync.WaitGroup
		errs := make([]error, 2)
		both.Go(func() { _, _, errs[0] = w.SetRole(t.Context(), byOperator, in.User.ID, auth.Buyer) })
		both.Go(func() { _, _, errs[1] = w.SetSuspended(t.Context(), byOperator, in.User.ID, true) })
		both.Wait()
		u, _, err := w.User(t.Context(), in.User.ID)
		if err := errors.Join(errs[0], errs[1], err); err != nil {
			t.Fatal(err)
		}
		if u.Role != auth.Buyer || !u.Suspended {
			t.Fatalf("a %s, suspended: %v", u.Role, u.Suspended)
		}
		for _, err := range []error{
			second(w.SetRole(t.Context(), byOperator, in.User.ID, auth.Seller)), second(w.SetSuspended(t.Context(), byOperator, in.User.ID, false)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func second(_ auth.User, _ bool, err error) error { return err }

func TestResetPassword(t *testing.T) {
	w := newFixture(t, func(o *auth.Options) { o.PasswordBlocklist = true })
	in := w.register()
	const next = "a-new-lane-43"
	if _, err := w.ResetPassword(t.Context(), byOperator, in.User.ID, next, false); err != nil {
		t.Fatal(err)
	}
	w.wantDead(in)
	_, err := w.login(email, password, home)
	wantErr(t, err, auth.ErrCredentials)
	if _, err := w.login(email, next, home); err != nil {
		t.Errorf("the new password: %v", err)
	}
	for _, bad := range []string{"short", "password123", email} {
		if _, err := w.ResetPassword(t.Context(), byOperator, in.User.ID, bad, false); fault.From(err) == nil || fault.From(err).Details["password"] == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	_, err = w.ResetPassword(t.Context(), byOperator, "usr_nobody", next, false)
	wantErr(t, err, auth.ErrUserNotFound)
	w.wantDecisions(in.User.ID, "asha: set_password: Ticket 812.")
}

// A password that an operator sets puts a seller's payouts on hold, because the operator may have been talked into it.
func TestResetPassword_PutsPayoutsOnHold(t *testing.T) {
	s := newStreet(t, func(o *auth.Options) { o.CoolDown = 72 * time.Hour })
	seller := s.squat() // registers as a seller
	until := s.clock.Now().Add(72 * time.Hour)
	if _, err := s.ResetPassword(t.Context(), byOperator, seller.User.ID, nextPassword, false); err != nil {
		t.Fatal(err)
	}
	balance, err := s.db.Balance(t.Context(), seller.User.ID)
	if err != nil || !balance.Hold(s.clock.Now()).Equal(until) {
		t.Errorf("on hold until %v, %v; want %v", balance.Hold(s.clock.Now()), err, until)
	}
	if m := lastMailed[mail.PasswordChanged](s.fixture, 1); !m.HoldUntil.Equal(until) {
		t.Errorf("the mail says %+v", m)
	}
}

func TestFindUser(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	if _, err := w.NewImport(byOperator, auth.ImportOptions{}).Add(t.Context(), []auth.ImportLine{{ExternalID: "4711", Email: "bela@example.com", Name: "Bela"}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{in.User.ID: email, "ASHA@example.com": email, "ext:4711": "bela@example.com"} {
		u, err := w.FindUser(t.Context(), name)
		if err != nil || u.Email != want {
			t.Errorf("%s is %s, %v; want %s", name, u.Email, err, want)
		}
	}
	for _, name := range []string{"", "ext:", "ext:4712", "nobody@example.com", "usr_0000000000000000000000000"} {
		_, err := w.FindUser(t.Context(), name)
		wantErr(t, err, auth.ErrUserNotFound)
	}
}
