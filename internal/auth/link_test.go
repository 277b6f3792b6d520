package auth_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

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

// TestSessionLink_EndMovedByHand_EndsAfterAnHour moves the end of a session that a link opened, which the MAC does not cover.
func TestSessionLink_EndMovedByHand_EndsAfterAnHour(t *testing.T) {
	w := newFixtureAt(t, storetest.NewPlace(t))
	_, key := w.serviceKey("shop")
	in := w.openLink(key)
	w.place.ByHand(t, `UPDATE sessions SET expires_at = expires_at + 36000000000`)
	w.clock.advance(auth.LinkSessionLife - time.Second)
	_, err := w.Authenticate(t.Context(), in.Token)
	wantErr(t, err, nil)
	w.clock.advance(time.Second)
	_, err = w.Authenticate(t.Context(), in.Token)
	wantErr(t, err, auth.ErrToken)
}

// TestSessionLink_KeyExpires_SessionEnds opens a session by a link of a service key that expires before the session would end.
func TestSessionLink_KeyExpires_SessionEnds(t *testing.T) {
	w := newFixture(t)
	_, key, err := w.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "shop", ExpiresAt: w.clock.Now().Add(auth.LinkSessionLife / 2)}, operator)
	wantErr(t, err, nil)
	in := w.openLink(key)
	w.clock.advance(auth.LinkSessionLife/2 - time.Second)
	_, err = w.Authenticate(t.Context(), in.Token)
	wantErr(t, err, nil)
	w.clock.advance(time.Second)
	_, err = w.Authenticate(t.Context(), in.Token)
	wantErr(t, err, auth.ErrToken)
}

// TestSessionLink_NotOpened_Ends has the service key rotated without a grace, or its seller's role changed and changed back, before a link is opened.
func TestSessionLink_NotOpened_Ends(t *testing.T) {
	for name, then := range map[string]func(*fixture, auth.ServiceKey, string){
		"rotated": func(w *fixture, key auth.ServiceKey, _ string) {
			_, _, err := w.RotateServiceKey(w.t.Context(), key.ID, 0, operator)
			wantErr(w.t, err, nil)
		},
		"another role": func(w *fixture, _ auth.ServiceKey, seller string) {
			by := w.admin("Ada")
			wantErr(w.t, w.SetAccess(w.t.Context(), by, seller, auth.Buyer, false), nil)
			wantErr(w.t, w.SetAccess(w.t.Context(), by, seller, auth.Seller, false), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			_, key := w.serviceKey("shop")
			seller, _, err := w.CreateSeller(t.Context(), auth.NewSeller{ExternalID: "17", Name: "Asha Rao", Email: email}, operator)
			wantErr(t, err, nil)
			token, _, err := w.CreateSessionLink(t.Context(), key, seller.ID)
			wantErr(t, err, nil)
			then(w, key, seller.ID)
			_, err = w.OpenSessionLink(t.Context(), token, "", home)
			wantErr(t, err, auth.ErrLink)
		})
	}
}

// openLink signs a new seller in by a link of a service key.
func (w *fixture) openLink(key auth.ServiceKey) auth.SignIn {
	w.t.Helper()
	seller, _, err := w.CreateSeller(w.t.Context(), auth.NewSeller{ExternalID: "17", Name: "Asha Rao", Email: email}, operator)
	wantErr(w.t, err, nil)
	token, _, err := w.CreateSessionLink(w.t.Context(), key, seller.ID)
	wantErr(w.t, err, nil)
	in, err := w.OpenSessionLink(w.t.Context(), token, "", home)
	wantErr(w.t, err, nil)
	return in
}
