package auth_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// changeFault is what a change of the password failed with.
func changeFault(_ string, err error) *fault.Error { return fault.From(err) }

const nextPassword = "monsoon-17-terrace"

func TestChangePassword_EndsOtherSessions(t *testing.T) {
	w := newFixture(t)
	elsewhere := w.register()
	in, err := w.login(email, password, home)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.ChangePassword(t.Context(), w.principal(in), password, nextPassword, home); err != nil {
		t.Fatal(err)
	}
	w.wantAlive(in)
	w.wantDead(elsewhere)
	_, err = w.login(email, password, home)
	wantErr(t, err, auth.ErrCredentials)
	if _, err := w.login(email, nextPassword, home); err != nil {
		t.Errorf("the new password: %v", err)
	}
}

func TestChangePassword_ForgetsOtherDevices(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	there, err := w.login(email, password, cafe)
	if err != nil {
		t.Fatal(err)
	}
	token, err := w.ChangePassword(t.Context(), w.principal(in), password, nextPassword, known(in, home))
	if err != nil {
		t.Fatal(err)
	}
	w.fail(email, attacker)
	for name, device := range map[string]auth.Device{"another": known(there, attacker), "this one, with its old token": known(in, attacker)} {
		_, err = w.login(email, nextPassword, device)
		if wantThrottled(t, err); t.Failed() {
			t.Error(name)
		}
	}
	if _, err := w.login(email, nextPassword, auth.Device{Address: attacker.Address, Tokens: []string{token}}); err != nil {
		t.Errorf("the device that changed it: %v", err)
	}
}

func TestChangePasswordRefusals(t *testing.T) {
	w := newFixture(t, func(o *auth.Options) { o.PasswordBlocklist = true })
	in := w.register()
	p := w.principal(in)
	tests := map[string]struct{ current, next, field string }{
		"a wrong one":         {"not-my-password", nextPassword, "currentPassword"},
		"none":                {"", nextPassword, "currentPassword"},
		"a short one":         {password, "1234567", "newPassword"},
		"a common one":        {password, "password123", "newPassword"},
		"the e-mail address":  {password, email, "newPassword"},
		"a short one, wrong":  {"not-my-password", "1234567", "newPassword"},
		"of 1025 bytes":       {password, string(make([]byte, 1025)), "newPassword"},
		"the hash of no user": {"$argon2id$v=19$m=8,t=1,p=1$AAAA$AAAA", nextPassword, "currentPassword"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := changeFault(w.ChangePassword(t.Context(), p, test.current, test.next, home))
			if f == nil || len(f.Details) != 1 || f.Details[test.field] == "" {
				t.Errorf("error %v, want one about %s", f, test.field)
			}
		})
	}
	w.wantAlive(in)
	if _, err := w.login(email, password, home); err != nil {
		t.Errorf("the old password: %v", err)
	}
}

func TestChangePassword_GuessesAreThrottled(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	p := w.principal(in)
	thief := auth.Device{Address: "198.51.100.66"} // with a stolen token, from as many addresses as they like
	for i := range 20 {
		_, err := w.ChangePassword(t.Context(), p, "a-guess-at-it", nextPassword, at(i))
		wantErr(t, err, auth.ErrWrongPassword)
	}
	_, err := w.ChangePassword(t.Context(), p, password, nextPassword, thief)
	wantThrottled(t, err)
	// The guesses locked out neither the owner's device nor a sign-in.
	if _, err := w.login(email, password, thief); err != nil {
		t.Errorf("a sign-in: %v", err)
	}
	if _, err := w.ChangePassword(t.Context(), p, password, nextPassword, known(in, home)); err != nil {
		t.Errorf("the owner's device: %v", err)
	}
}

func TestChangePassword_NotStoppedByGuessesAtSignIn(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	for i := range 50 {
		_, _ = w.login(email, "not-the-password", at(i))
	}
	_, err := w.login(email, password, home)
	wantThrottled(t, err)
	if _, err := w.ChangePassword(t.Context(), p, password, nextPassword, home); err != nil {
		t.Errorf("the session of the owner: %v", err)
	}
}

// Each of these comes between the check of the current password and the change of it.
func TestChangePassword_BesideOthers(t *testing.T) {
	for name, test := range map[string]struct {
		first func(*fixture, auth.Principal) error
		want  error
	}{
		"another change by the same session": {func(w *fixture, p auth.Principal) error {
			_, err := w.ChangePassword(w.t.Context(), p, password, "another-new-password", home)
			return err
		}, auth.ErrWrongPassword},
		"another change by another session": {func(w *fixture, _ auth.Principal) error {
			in, err := w.login(email, password, cafe)
			if err != nil {
				return err
			}
			_, err = w.ChangePassword(w.t.Context(), w.principal(in), password, "another-new-password", home)
			return err
		}, auth.ErrToken},
		"a sign-in that replaces the hash": {func(w *fixture, _ auth.Principal) error {
			standard := w.again(func(o *auth.Options) { o.CheapHashes = false })
			_, err := standard.Login(w.t.Context(), auth.Credentials{Email: email, Password: password, Device: cafe})
			return err
		}, nil},
		"a sign-out": {func(w *fixture, p auth.Principal) error { return w.Logout(w.t.Context(), p) }, auth.ErrToken},
		"a suspension": {func(w *fixture, p auth.Principal) error {
			return w.SetAccess(w.t.Context(), w.admin("Ada"), p.UserID, p.Role, true)
		}, auth.ErrToken},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			p := w.principal(w.register())
			once := sync.OnceFunc(func() {
				if err := test.first(w, p); err != nil {
					t.Error(err)
				}
			})
			late := w.again(func(o *auth.Options) {
				o.Throttle = false
				o.Store = meanwhile{o.Store, once}
			})
			_, err := late.ChangePassword(t.Context(), p, password, nextPassword, home)
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if _, err := w.login(email, nextPassword, home); (err == nil) != (test.want == nil) {
				t.Errorf("a sign-in with the new password: %v", err)
			}
		})
	}
}

// Of any number of changes at once one is made, and the password is its own.
func TestChangePassword_ManyAtOnce(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	var changed atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_, err := w.ChangePassword(t.Context(), p, password, fmt.Sprint("a-new-password-", i), home)
			if err == nil {
				changed.Add(1)
			} else if !errors.Is(err, auth.ErrWrongPassword) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	works := 0
	for i := range 8 {
		if _, err := w.login(email, fmt.Sprint("a-new-password-", i), at(i)); err == nil {
			works++
		}
	}
	if changed.Load() != 1 || works != 1 {
		t.Errorf("%d changes were made, and %d new passwords work", changed.Load(), works)
	}
}

// A sign-in with the old password that runs beside the change either comes before it, and ends with it, or fails.
func TestChangePassword_BesideSignIns(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	ins := make([]auth.SignIn, 8)
	var wg sync.WaitGroup
	for i := range ins {
		wg.Go(func() { ins[i], _ = w.login(email, password, at(i)) })
	}
	wg.Go(func() {
		if _, err := w.ChangePassword(t.Context(), p, password, nextPassword, home); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	for _, in := range ins {
		if in.Token != "" {
			w.wantDead(in)
		}
	}
	if sessions, err := w.Sessions(t.Context(), p); err != nil || len(sessions) != 1 || sessions[0].ID != p.Session {
		t.Errorf("sessions %+v, %v", sessions, err)
	}
}

func TestChangePassword_TellsTheOwner(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	from := auth.Device{Address: "198.51.100.4", Agent: "Firefox/130 (Linux)\r\nhttps://evil.example"}
	if _, err := w.ChangePassword(t.Context(), p, "wrong-password", "another-password-9", from); err == nil {
		t.Fatal("a wrong password was taken")
	}
	if notices := of[mail.PasswordChanged](w.mailbox.To(email)); len(notices) != 0 {
		t.Fatalf("a change that was refused was told: %+v", notices)
	}
	if _, err := w.ChangePassword(t.Context(), p, password, "another-password-9", from); err != nil {
		t.Fatal(err)
	}
	want := []mail.PasswordChanged{{Origin: mail.Origin{At: w.clock.Now(), Address: "198.51.100.4", Agent: "Firefox on Linux"}}}
	if diff := cmp.Diff(want, of[mail.PasswordChanged](w.mailbox.To(email))); diff != "" {
		t.Error(diff)
	}
	events, err := w.SecurityEvents(t.Context(), p.UserID, 0, 10)
	recorded := []auth.SecurityEvent{{
		Number: 1, At: w.clock.Now(), Type: ledger.AccountPasswordChanged, By: "user", Address: "198.51.100.4", Agent: "Firefox/130 (Linux)https://evil.example",
	}}
	if diff := cmp.Diff(recorded, events); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestSecurityEvents_InPages(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	admin := decision.By{Admin: "usr_ada", Note: "Ticket 812."}
	current := password
	for i := range 3 {
		next := fmt.Sprint("another-password-", i)
		if _, err := w.ChangePassword(t.Context(), p, current, next, auth.Device{Address: fmt.Sprint("198.51.100.", i)}); err != nil {
			t.Fatal(err)
		}
		current = next
	}
	if err := w.SetAccess(t.Context(), admin, p.UserID, auth.Seller, false); err != nil {
		t.Fatal(err)
	}
	var got []string
	before := int64(0)
	for range 3 {
		page, err := w.SecurityEvents(t.Context(), p.UserID, before, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			got = append(got, fmt.Sprintf("%d %s %s %s %s", e.Number, e.Type, e.Action, e.By, e.Address))
			before = e.Number
		}
	}
	want := []string{
		"4 admin.decided change_access admin ", "3 account.password_changed  user 198.51.100.2",
		"2 account.password_changed  user 198.51.100.1", "1 account.password_changed  user 198.51.100.0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if others, err := w.SecurityEvents(t.Context(), "usr_other", 0, 10); err != nil || len(others) > 0 {
		t.Errorf("another user's events are %+v, %v", others, err)
	}
	w.place.ByHand(t, `DELETE FROM entries WHERE number = 1; UPDATE entries SET actor = 'user:usr_eve' WHERE number = 2`)
	if events, err := w.SecurityEvents(t.Context(), p.UserID, 0, 10); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("of a journal that was changed: %+v, %v", events, err)
	}
}

// of lists the mails of one kind.
func of[D mail.Data](all []mail.Data) []D {
	var found []D
	for _, d := range all {
		if one, is := d.(D); is {
			found = append(found, one)
		}
	}
	return found
}
