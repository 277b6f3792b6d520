package auth_test

import (
	"errors"
	"fmt"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/storetest"
)

// TestSessionLink_FailureIsNotSwallowed fails each statement of opening a link. The database's failure is not called the link's.
func TestSessionLink_FailureIsNotSwallowed(t *testing.T) {
	t.Parallel()
	storetest.EachFailure(t, func(t *testing.T, place storetest.Place) storetest.Story {
		t.Helper()
		w := newFixtureAt(t, place)
		_, key := w.serviceKey("shop")
		seller, _, err := w.CreateSeller(t.Context(), auth.NewSeller{ExternalID: "17", Name: "Asha Rao", Email: email}, operator)
		wantErr(t, err, nil)
		token, _, err := w.CreateSessionLink(t.Context(), key, seller.ID)
		wantErr(t, err, nil)
		return storetest.Story{
			Act: func() error {
				_, err := w.OpenSessionLink(t.Context(), token, "", home)
				if errors.Is(err, auth.ErrLink) {
					t.Errorf("a failure of the database is %v", err)
				}
				return err
			},
			State: func() string {
				sessions, err := w.Sessions(t.Context(), auth.Principal{UserID: seller.ID})
				wantErr(t, err, nil)
				return fmt.Sprint(len(sessions))
			},
		}
	})
}
