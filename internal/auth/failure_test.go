package auth_test

import (
	"errors"
	"fmt"
	"testing"

	"bursar/internal/auth"
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
			_, err := w.ResetPassword(t.Context(), byOperator, user, "a-new-lane-43")
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
