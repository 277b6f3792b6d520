package auth_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"bursar/internal/auth"
)

func TestLogout_EndsOnlyItsSession(t *testing.T) {
	w := newFixture(t)
	first := w.register()
	second := w.refresh(first.RefreshToken)
	elsewhere, err := w.login(email, password, auth.Device{Address: "198.51.100.9"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Authenticate(t.Context(), second.Token)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second does nothing
		if err := w.Logout(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	w.wantDead(first)
	w.wantDead(second)
	w.wantAlive(elsewhere)
}

func TestLogout_AppliesAcrossInstancesAndRestart(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	p, err := w.Authenticate(t.Context(), in.Token)
	if err != nil {
		t.Fatal(err)
	}
	otherDB := w.place.Open(t)
	other := w.again(func(o *auth.Options) { o.Store = otherDB.Auth() })
	if _, err := other.Authenticate(t.Context(), in.Token); err != nil { // and now it remembers the signature
		t.Fatal(err)
	}
	if err := w.Logout(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	_, err = other.Authenticate(t.Context(), in.Token)
	wantErr(t, err, auth.ErrToken)

	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	restarted := w.again(func(o *auth.Options) { o.Store = w.place.Open(t).Auth() })
	_, err = restarted.Authenticate(t.Context(), in.Token)
	wantErr(t, err, auth.ErrToken)
	_, err = restarted.Refresh(t.Context(), in.RefreshToken)
	wantErr(t, err, auth.ErrRefresh)
}

func TestSetAccess_AppliesFromNextRequest(t *testing.T) {
	w := newFixture(t)
	by := w.admin("Ada")
	in := w.register()
	role := func() auth.Role {
		p, err := w.Authenticate(t.Context(), in.Token)
		if err != nil {
			t.Fatal(err)
		}
		return p.Role
	}
	if got := role(); got != auth.Seller {
		t.Fatalf("role = %s", got)
	}
	if err := w.SetAccess(t.Context(), by, in.User.ID, auth.Buyer, false); err != nil {
		t.Fatal(err)
	}
	if got := role(); got != auth.Buyer {
		t.Errorf("role = %s, want buyer with the token of a seller", got)
	}
	if err := w.SetAccess(t.Context(), by, in.User.ID, auth.Seller, true); err != nil {
		t.Fatal(err)
	}
	_, err := w.Authenticate(t.Context(), in.Token)
	wantErr(t, err, auth.ErrToken)
	if err := w.SetAccess(t.Context(), by, in.User.ID, auth.Seller, false); err != nil {
		t.Fatal(err)
	}
	w.wantDead(in) // what a suspension ended stays ended
	again, err := w.login(email, password, home)
	if err != nil {
		t.Fatal(err)
	}
	w.wantAlive(again)

	wantErr(t, w.SetAccess(t.Context(), by, "usr_nobody", auth.Seller, false), auth.ErrUserNotFound)
	if err := w.SetAccess(t.Context(), by, in.User.ID, "owner", false); err == nil {
		t.Error("a role that is none was given")
	}
}

func TestProductsListed(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	if err := w.SetProductsListed(t.Context(), in.User.ID, 42); err != nil {
		t.Fatal(err)
	}
	_, stats, err := w.Me(t.Context(), auth.Principal{UserID: in.User.ID})
	if err != nil || stats.ProductsListed != 42 {
		t.Errorf("stats = %+v, %v", stats, err)
	}
	buyer, err := w.Register(t.Context(), auth.Registration{Name: "Ravi", Email: "ravi@example.com", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, w.SetProductsListed(t.Context(), buyer.User.ID, 1), auth.ErrSellerNotFound)
	wantErr(t, w.SetProductsListed(t.Context(), "usr_nobody", 1), auth.ErrSellerNotFound)
	if err := w.SetProductsListed(t.Context(), in.User.ID, -1); err == nil {
		t.Error("a negative number was taken")
	}
}

func TestSweepLeavesWhatMatters(t *testing.T) {
	w := newFixture(t)
	idle := w.register()
	w.clock.advance(80 * 24 * time.Hour)
	live, err := w.login(email, password, home)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.login(email, "wrong-password", auth.Device{Address: "198.51.100.9"})
	wantErr(t, err, auth.ErrCredentials)
	w.clock.advance(17*24*time.Hour + time.Second) // the first session's ninety days ended seven days ago
	if n, err := w.Sweep(t.Context()); err != nil || n != 10 {
		t.Errorf("swept %d rows (%v), want one session, one mailed token and eight empty buckets", n, err)
	}
	w.wantDead(idle)
	w.refresh(live.RefreshToken)
	if n, err := w.Sweep(t.Context()); err != nil || n != 0 {
		t.Errorf("the next sweep deleted %d rows (%v), want none", n, err)
	}
}

// oneSession is a transaction in which every session is alive, and of the same user.
type oneSession struct{ auth.Principal }

func (o oneSession) LiveSession(context.Context, string, time.Time) (auth.Principal, bool, error) {
	return o.Principal, true, nil
}

// TestConfirmSeller confirms nobody in a session of another user, and no admin.
func TestConfirmSeller(t *testing.T) {
	w := newFixture(t)
	asha := auth.Principal{UserID: "usr_asha", Session: "ses_1", Role: auth.Seller}
	for name, test := range map[string]struct {
		found auth.Principal
		want  error
	}{
		"their own":       {asha, nil},
		"another user's":  {auth.Principal{UserID: "usr_bina", Session: "ses_1", Role: auth.Seller}, auth.ErrUnconfirmed},
		"an admin's":      {auth.Principal{UserID: "usr_asha", Session: "ses_1", Role: auth.Admin}, auth.ErrUnconfirmed},
		"that of a buyer": {auth.Principal{UserID: "usr_asha", Session: "ses_1", Role: auth.Buyer}, auth.ErrUnconfirmed},
	} {
		if err := w.ConfirmSeller(t.Context(), oneSession{test.found}, asha); !errors.Is(err, test.want) {
			t.Errorf("a session that is %s: %v, want %v", name, err, test.want)
		}
	}
}
