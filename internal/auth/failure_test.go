package auth_test

import (
	"errors"
	"fmt"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/mail"
	"bursar/internal/storetest"
)

// TestOperator_FailureIsNotSwallowed fails each statement of an import and of what an operator decides.
func TestOperator_FailureIsNotSwallowed(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(w *fixture, user string) (any, error){
		"import": func(w *fixture, _ string) (any, error) {
			results, err := w.NewImport(byOperator, auth.ImportOptions{}).Add(t.Context(), []auth.ImportLine{
				{ExternalID: "1", Email: "bela@example.com", Name: "Bela Shah", PasswordHash: bcrypted},
				{ExternalID: "2", Email: email, Name: "Asha"},
				{Email: email, Name: "Asha", Role: auth.Seller},
			})
			var outcomes []auth.ImportOutcome
			for _, r := range results {
				outcomes = append(outcomes, r.Outcome)
			}
			return outcomes, err
		},
		"set role": func(w *fixture, user string) (any, error) {
			u, changed, err := w.SetRole(t.Context(), byOperator, user, auth.Buyer)
			return fmt.Sprint(u.Role, changed), err
		},
		"suspend": func(w *fixture, user string) (any, error) {
			u, changed, err := w.SetSuspended(t.Context(), byOperator, user, true)
			return fmt.Sprint(u.Suspended, changed), err
		},
		"set password": func(w *fixture, user string) (any, error) {
			_, err := w.ResetPassword(t.Context(), byOperator, user, "a-new-lane-43", false)
			return nil, err
		},
		"find": func(w *fixture, user string) (any, error) {
			byID, err := w.FindUser(t.Context(), user)
			_, none := w.FindUser(t.Context(), "ext:17")
			if errors.Is(none, auth.ErrUserNotFound) {
				none = nil
			}
			return byID.Email, errors.Join(err, none, w.EachUser(t.Context(), auth.UserFilter{}, func(auth.ListedUser) error { return nil }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachFailure(t, func(t *testing.T, place storetest.Place) storetest.Story {
				t.Helper()
				w := newFixtureAt(t, place)
				user := w.register().User.ID
				var read any
				return storetest.Story{
					Act: func() (err error) { read, err = act(w, user); return err },
					State: func() string {
						u, err := w.FindUser(t.Context(), user)
						decisions, decisionsErr := w.db.Decisions(t.Context(), "", 10)
						decoy, decoyErr := w.db.PasswordDecoy(t.Context())
						sessions, sessionsErr := w.Sessions(t.Context(), auth.Principal{UserID: user})
						users := 0
						listErr := w.EachUser(t.Context(), auth.UserFilter{}, func(auth.ListedUser) error { users++; return nil })
						if err := errors.Join(err, decisionsErr, decoyErr, sessionsErr, listErr); err != nil {
							t.Fatal(err)
						}
						return fmt.Sprint(u.Role, u.Suspended, len(decisions), decoy, len(sessions), users, read)
					},
				}
			})
		})
	}
}

// TestMailed_FailureIsNotSwallowed fails each statement of what mails lead to. Nothing is done by halves.
func TestMailed_FailureIsNotSwallowed(t *testing.T) {
	t.Parallel()
	again := auth.Registration{Name: "Asha Rao", Email: email, Password: nextPassword, Device: home}
	for name, prepare := range map[string]func(w *fixture, in auth.SignIn) func() error{
		"register": func(w *fixture, _ auth.SignIn) func() error {
			return func() error {
				_, err := w.Register(t.Context(), auth.Registration{Name: "Ravi", Email: "ravi@example.com", Password: password, Device: home})
				return err
			}
		},
		"register again": func(w *fixture, _ auth.SignIn) func() error {
			return func() error {
				_, err := w.Register(t.Context(), again)
				if errors.Is(err, auth.ErrEmailTaken) {
					return nil
				}
				return err
			}
		},
		"confirm": func(w *fixture, _ auth.SignIn) func() error {
			token := lastMailed[mail.VerifyEmail](w, 1).Token
			return func() error { return w.VerifyEmail(t.Context(), token) }
		},
		"confirm another registration": func(w *fixture, _ auth.SignIn) func() error {
			token := w.registerAgain(nextPassword, 1)
			return func() error { return w.VerifyEmail(t.Context(), token) }
		},
		"confirm by code": func(w *fixture, in auth.SignIn) func() error {
			p, code := w.principal(in), lastMailed[mail.VerifyEmail](w, 1).Code
			return func() error { return w.VerifyEmailByCode(t.Context(), p, code) }
		},
		"enter a wrong code": func(w *fixture, in auth.SignIn) func() error {
			p := w.principal(in)
			return func() error {
				err := w.VerifyEmailByCode(t.Context(), p, "00000000")
				if errors.Is(err, auth.ErrCode) {
					return nil
				}
				return err
			}
		},
		"send again": func(w *fixture, in auth.SignIn) func() error {
			p := w.principal(in)
			return func() error { return w.ResendVerification(t.Context(), p, home) }
		},
		"forget the password": func(w *fixture, _ auth.SignIn) func() error {
			return func() error { return w.ForgotPassword(t.Context(), email, home) }
		},
		"answer": func(w *fixture, _ auth.SignIn) func() error {
			wantErr(t, w.ForgotPassword(t.Context(), email, home), nil)
			return func() error {
				_, err := w.AnswerMailRequest(t.Context())
				return err
			}
		},
		"reset": func(w *fixture, _ auth.SignIn) func() error {
			token := w.forgot(1)
			return func() error { return w.SetForgottenPassword(t.Context(), token, nextPassword, home) }
		},
		"reset a verified one's": func(w *fixture, _ auth.SignIn) func() error {
			wantErr(t, w.VerifyEmail(t.Context(), lastMailed[mail.VerifyEmail](w, 1).Token), nil)
			token := w.forgot(1)
			return func() error { return w.SetForgottenPassword(t.Context(), token, nextPassword, home) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachFailure(t, func(t *testing.T, place storetest.Place) storetest.Story {
				t.Helper()
				w := newFixtureAt(t, place)
				in := w.register()
				act := prepare(w, in)
				mails := func() int {
					rows, err := w.mailbox.Latest(t.Context(), 100)
					if err != nil {
						t.Fatal(err)
					}
					return len(rows)
				}
				return storetest.Story{
					Act: act,
					State: func() string {
						u, err := w.FindUser(t.Context(), in.User.ID)
						sessions, sessionsErr := w.Sessions(t.Context(), auth.Principal{UserID: in.User.ID})
						users := 0
						listErr := w.EachUser(t.Context(), auth.UserFilter{}, func(auth.ListedUser) error { users++; return nil })
						if err := errors.Join(err, sessionsErr, listErr); err != nil {
							t.Fatal(err)
						}
						return fmt.Sprint(u.Verified, u.Name, u.Role, len(sessions), users, mails())
					},
				}
			})
		})
	}
}
