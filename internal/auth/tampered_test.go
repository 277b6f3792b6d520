package auth_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/storetest"
)

// TestTamperedUser has somebody who knows one password and can write to the database. Whatever they make of another
// account, nobody signs in to it.
func TestTamperedUser(t *testing.T) {
	const set = `UPDATE users SET %s WHERE email = '` + email + `'`
	const mallorys = `(SELECT %[1]s FROM users WHERE email = 'mallory@example.com')`
	for name, change := range map[string]string{
		"password": fmt.Sprintf(set, fmt.Sprintf(`password_hash = `+mallorys, "password_hash")),
		"password and MAC": fmt.Sprintf(set, fmt.Sprintf(`password_hash = `+mallorys, "password_hash")+
			fmt.Sprintf(`, mac = `+mallorys, "mac")),
		"no hash":       fmt.Sprintf(set, `password_hash = 'nonsense'`),
		"role":          fmt.Sprintf(set, `role = 'admin'`),
		"verification":  fmt.Sprintf(set, `verified = 1`),
		"e-mail":        fmt.Sprintf(set, `email = 'mallory@example.org'`),
		"e-mail's key":  fmt.Sprintf(set, `email_key = 'mallory@example.org'`),
		"no longer MAC": fmt.Sprintf(set, `mac = ''`),
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			s := newStreet(t, func(o *auth.Options) { o.Tampered = func(kind string) { told = append(told, kind) } })
			mallory, err := s.Register(t.Context(), auth.Registration{Name: "Mallory", Email: "mallory@example.com", Password: "mallory's own", Role: auth.Seller, Device: den})
			if err != nil {
				t.Fatal(err)
			}
			in := s.register()
			by := s.admin("office")
			s.place.ByHand(t, change)
			_, err = s.Authenticate(t.Context(), in.Token)
			wantErr(t, err, auth.ErrToken)
			if !slices.Equal(told, []string{"user"}) {
				t.Errorf("the alerts are of %v", told)
			}
			for _, address := range []string{email, "mallory@example.org"} {
				for _, password := range []string{password, "mallory's own"} {
					_, err = s.login(address, password, den)
					wantErr(t, err, auth.ErrCredentials)
				}
			}
			address := email
			if name == "e-mail's key" { // which finds the account
				address = "mallory@example.org"
			}
			_, err = s.arrive(auth.Identity{Issuer: "https://a.example", Subject: "1", Email: address, EmailVerified: true})
			wantErr(t, err, auth.ErrSuspended)
			wantErr(t, s.SetAccess(t.Context(), by, in.User.ID, auth.Seller, false), auth.ErrTampered)
			s.wantAlive(mallory)

			err = s.ResetUser(t.Context(), auth.Reset{UserID: in.User.ID, Email: email, Role: auth.Seller, Password: "a-new-password", Operator: "asha"})
			wantErr(t, err, nil)
			s.wantDead(in)
			in, err = s.login(email, "a-new-password", home)
			if err != nil || in.User.Role != auth.Seller || in.User.Verified {
				t.Fatalf("after the reset: %+v, %v", in.User, err)
			}
			s.wantAlive(in)
			s.wantAudit("")
		})
	}
}

// TestTamperedUser_OldRow puts back the row of a user from before an admin's decision, with its session.
func TestTamperedUser_OldRow(t *testing.T) {
	for name, tt := range map[string]struct {
		was, is   auth.Role
		suspended bool
	}{
		"admin demoted":    {auth.Admin, auth.Buyer, false},
		"admin suspended":  {auth.Admin, auth.Admin, true},
		"seller suspended": {auth.Seller, auth.Seller, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStreet(t, func(*auth.Options) {})
			by := s.admin("office")
			user := s.register().User.ID
			wantErr(t, s.SetAccess(t.Context(), by, user, tt.was, false), nil)
			in, err := s.login(email, password, home)
			wantErr(t, err, nil)
			s.place.ByHand(t, `CREATE TABLE old_users AS SELECT * FROM users`)
			s.place.ByHand(t, `CREATE TABLE old_sessions AS SELECT * FROM sessions`)
			wantErr(t, s.SetAccess(t.Context(), by, user, tt.is, tt.suspended), nil)

			s.place.ByHand(t, `UPDATE users SET (role, suspended, mac) = (SELECT o.role, o.suspended, o.mac FROM old_users o WHERE o.id = users.id)`)
			s.place.ByHand(t, `UPDATE sessions SET (ended_at, end_reason) = (SELECT o.ended_at, o.end_reason FROM old_sessions o WHERE o.id = sessions.id)`)
			_, err = s.login(email, password, home)
			wantErr(t, err, auth.ErrCredentials)
			if tt.was == auth.Admin {
				_, err = s.Authenticate(t.Context(), in.Token)
				wantErr(t, err, auth.ErrToken)
			}
			_, err = s.Refresh(t.Context(), in.RefreshToken)
			wantErr(t, err, auth.ErrRefresh)
			_, err = s.FindUser(t.Context(), user)
			wantErr(t, err, auth.ErrTampered)
			all, err := s.db.Users(t.Context(), auth.UserFilter{Role: tt.was}, "", 10)
			wantErr(t, err, nil)
			if !slices.ContainsFunc(all, func(u auth.ListedUser) bool { return u.ID == user && u.Tampered }) {
				t.Errorf("the list of users does not say that one was tampered with: %+v", all)
			}
			_, err = s.arrive(auth.Identity{Issuer: "https://a.example", Subject: "1", Email: email, EmailVerified: true})
			wantErr(t, err, auth.ErrSuspended)
			wantErr(t, s.SetAccess(t.Context(), by, user, auth.Admin, false), auth.ErrTampered)

			wantErr(t, s.ResetUser(t.Context(), auth.Reset{UserID: user, Email: email, Role: auth.Seller, Password: nextPassword, Operator: "asha"}), nil)
			if _, err := s.login(email, nextPassword, home); err != nil {
				t.Errorf("after the reset: %v", err)
			}
		})
	}
}

// TestTamperedUser_DecisionGone puts back the row of a former admin, and takes away what was decided since.
func TestTamperedUser_DecisionGone(t *testing.T) {
	for name, statement := range map[string]string{
		"edited":       `UPDATE entries SET data = REPLACE(data, 'Now buyer', 'Now admin') WHERE type = 'admin.decided'`,
		"deleted":      `DELETE FROM entries WHERE data LIKE '%Now buyer%'`,
		"another type": `UPDATE entries SET type = 'admin.decide' WHERE data LIKE '%Now buyer%'`,
		"all deleted":  `DELETE FROM entries WHERE type = 'admin.decided'`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStreet(t, func(*auth.Options) {})
			by := s.admin("office")
			user := s.register().User.ID
			wantErr(t, s.SetAccess(t.Context(), by, user, auth.Admin, false), nil)
			in, err := s.login(email, password, home)
			wantErr(t, err, nil)
			if _, err := s.Authenticate(t.Context(), in.Token); err != nil {
				t.Fatalf("an admin's token: %v", err)
			}
			s.place.ByHand(t, `CREATE TABLE old_users AS SELECT * FROM users`)
			wantErr(t, s.SetAccess(t.Context(), by, user, auth.Buyer, false), nil)
			s.place.ByHand(t, `UPDATE users SET (role, suspended, mac) = (SELECT o.role, o.suspended, o.mac FROM old_users o WHERE o.id = users.id)`)
			s.place.ByHand(t, statement)
			if in, err = s.login(email, password, home); err == nil {
				_, err = s.Authenticate(t.Context(), in.Token)
				wantErr(t, err, auth.ErrToken)
			}
		})
	}
}

// TestTakeOver_AfterDecision lets the owner of an address in, whatever was decided about the account before.
func TestTakeOver_AfterDecision(t *testing.T) {
	s := newStreet(t, func(*auth.Options) {})
	user, by := s.squat().User.ID, s.admin("office")
	wantErr(t, s.SetAccess(t.Context(), by, user, auth.Seller, true), nil)
	wantErr(t, s.SetAccess(t.Context(), by, user, auth.Seller, false), nil)
	wantErr(t, s.VerifyEmail(t.Context(), s.registerAgain(nextPassword, 1)), nil) // as a buyer
	if _, err := s.login(email, nextPassword, home); err != nil {
		t.Errorf("the owner's password: %v", err)
	}
	wantErr(t, s.SetAccess(t.Context(), by, user, auth.Seller, false), nil)
	s.wantAudit("")
}

func TestResetUser_PutsPayoutsOnHold(t *testing.T) {
	s := newStreet(t, func(o *auth.Options) { o.CoolDown = 72 * time.Hour })
	seller := s.squat()
	until := s.clock.Now().Add(72 * time.Hour)
	err := s.ResetUser(t.Context(), auth.Reset{UserID: seller.User.ID, Email: seller.User.Email, Role: auth.Seller, Password: nextPassword, Operator: "asha"})
	if err != nil {
		t.Fatal(err)
	}
	balance, err := s.db.Balance(t.Context(), seller.User.ID)
	if err != nil || !balance.Hold(s.clock.Now()).Equal(until) {
		t.Errorf("on hold until %v, %v; want %v", balance.Hold(s.clock.Now()), err, until)
	}
}

func TestResetUser_Refused(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	w.admin("office")
	reset := auth.Reset{UserID: in.User.ID, Email: email, Role: auth.Seller, Password: "a-new-password", Operator: "asha"}
	unknown, taken := reset, reset
	unknown.UserID, unknown.Email = "usr_nobody", "nobody@example.com"
	wantErr(t, w.ResetUser(t.Context(), unknown), auth.ErrUserNotFound)
	taken.Email = "office@bursar.example"
	wantErr(t, w.ResetUser(t.Context(), taken), auth.ErrEmailTaken)
	for _, bad := range []auth.Reset{{Email: "x", Role: auth.Seller, Password: password}, {Email: email, Role: "owner", Password: password}, {Email: email, Role: auth.Seller, Password: "short"}} {
		if err := w.ResetUser(t.Context(), bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	w.wantAlive(in)
}

// TestTamperedIdentity lets a provider's user in to somebody else's account.
func TestTamperedIdentity(t *testing.T) {
	for name, change := range map[string]string{
		"inserted": `INSERT INTO identities (issuer, subject, user_id, email, created_at, mac)
			SELECT 'https://a.example', 'mallory', (SELECT id FROM users WHERE email = '` + email + `'), '', 0, mac FROM identities`,
		"moved": `UPDATE identities SET user_id = (SELECT id FROM users WHERE email = '` + email + `')`,
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			s := newStreet(t, func(o *auth.Options) { o.Tampered = func(kind string) { told = append(told, kind) } })
			s.register()
			mallory := auth.Identity{Issuer: "https://a.example", Subject: "666", Email: "mallory@example.com", EmailVerified: true}
			s.mustArrive(mallory)
			s.place.ByHand(t, change)
			if name == "inserted" {
				mallory.Subject = "mallory"
			}
			_, err := s.arrive(mallory)
			wantErr(t, err, auth.ErrSuspended)
			if !slices.Equal(told, []string{"identity"}) {
				t.Errorf("the alerts are of %v", told)
			}
		})
	}
}

// TestTamperedSession makes a session another user's, whose holder has tokens of their own for it.
func TestTamperedSession(t *testing.T) {
	var told []string
	w := newFixture(t, func(o *auth.Options) { o.Tampered = func(kind string) { told = append(told, kind) } })
	victim := w.register()
	mallory, err := w.Register(t.Context(), auth.Registration{Name: "Mallory", Email: "mallory@example.com", Password: "mallory's own", Role: auth.Seller, Device: den})
	if err != nil {
		t.Fatal(err)
	}
	w.place.ByHand(t, `UPDATE sessions SET user_id = '`+victim.User.ID+`'`)
	w.wantDead(mallory)
	if !slices.Equal(told, []string{"session", "session"}) {
		t.Errorf("the alerts are of %v", told)
	}
	w.wantAlive(victim)
}

// wantAudit wants the audit to find just what has that name; "" for nothing.
func (w *fixture) wantAudit(name string) {
	w.t.Helper()
	report, err := w.db.Audit(w.t.Context(), storetest.Keys(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range report.Findings {
		if (f.Name == name) != (len(f.Violations) > 0) {
			w.t.Errorf("%s finds %v; want %q to be found", f.Name, f.Lines(), name)
		}
	}
}

// TestTamperedUser_DeletedAccountPutBack puts back the row of a user who deleted the account.
func TestTamperedUser_DeletedAccountPutBack(t *testing.T) {
	s := newStreet(t, func(*auth.Options) {})
	in := s.register()
	s.place.ByHand(t, `CREATE TABLE old_users AS SELECT * FROM users`)
	wantErr(t, s.DeleteAccount(t.Context(), s.principal(in), password, home), nil)
	s.wantAudit("")
	wantErr(t, s.SetAccess(t.Context(), s.admin("office"), in.User.ID, auth.Buyer, false), auth.ErrUserNotFound) // it would record another decision
	s.place.ByHand(t, `DELETE FROM users WHERE id = '`+in.User.ID+`'; INSERT INTO users SELECT * FROM old_users`)
	_, err := s.login(email, password, home)
	wantErr(t, err, auth.ErrCredentials)
	s.wantAudit("users-are-ours")
}

// TestTamperedTotals_AccessEnds changes one number of a user's row of totals, so that nothing can be recorded of them. A session that a
// thief has ends all the same.
func TestTamperedTotals_AccessEnds(t *testing.T) {
	by := decision.By{Operator: "asha", Note: "A thief is at it."}
	for name, tt := range map[string]struct {
		end  func(s *street, owner auth.Principal, thief string) error
		want error
	}{
		"one session": {func(s *street, p auth.Principal, thief string) error {
			return s.EndSession(t.Context(), p, thief, home)
		}, nil},
		"all other ones": {func(s *street, p auth.Principal, _ string) error { return s.EndOtherSessions(t.Context(), p, home) }, nil},
		"another password": {func(s *street, p auth.Principal, _ string) error {
			_, err := s.ChangePassword(t.Context(), p, password, nextPassword, home)
			return err
		}, ledger.ErrTampered},
		"a suspension": {func(s *street, p auth.Principal, _ string) error {
			return s.SetAccess(t.Context(), by, p.UserID, auth.Seller, true)
		}, ledger.ErrTampered},
		"an operator's suspension": {func(s *street, p auth.Principal, _ string) error {
			_, _, err := s.SetSuspended(t.Context(), by, p.UserID, true)
			return err
		}, ledger.ErrTampered},
		"a forgotten password": {func(s *street, _ auth.Principal, _ string) error {
			return s.SetForgottenPassword(t.Context(), s.forgot(1), nextPassword, home)
		}, ledger.ErrTampered},
		"an operator's password": {func(s *street, p auth.Principal, _ string) error {
			_, err := s.ResetPassword(t.Context(), by, p.UserID, nextPassword, false)
			return err
		}, ledger.ErrTampered},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStreet(t)
			owner := s.register()
			thief, err := s.login(email, password, den)
			wantErr(t, err, nil)
			bio := "Sells mugs."
			wantErr(t, s.SetProfile(t.Context(), s.principal(owner), auth.ProfileChange{Bio: &bio}, home), nil) // which the journal begins with
			s.place.ByHand(t, `UPDATE journals SET earned = earned + 1`)
			wantErr(t, tt.end(s, s.principal(owner), s.principal(thief).Session), tt.want)
			s.wantDead(thief)
		})
	}
}
