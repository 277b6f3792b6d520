package auth_test

import (
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/mail"
)

const thiefs = "thief@evil.example"

// moveAccount gives the account that was just registered another address, as p, and returns the token that undoes it.
func (w *fixture) moveAccount(p auth.Principal) (undo string) {
	w.t.Helper()
	wantErr(w.t, w.VerifyEmail(w.t.Context(), lastMailed[mail.VerifyEmail](w, 1).Token), nil)
	wantErr(w.t, w.ChangeEmail(w.t.Context(), p, thiefs, den), nil)
	var confirm string
	for _, d := range w.mailbox.To(thiefs) {
		if m, ok := d.(mail.ConfirmEmail); ok {
			confirm = m.Token
		}
	}
	wantErr(w.t, w.ConfirmEmailChange(w.t.Context(), confirm, den), nil)
	return lastMailed[mail.EmailChanged](w, 1).Token
}

// The thief of a session moves the account, and then wants the former address for another account, so that the owner's link is of no use.
func TestEmailChange_FormerAddressIsReserved(t *testing.T) {
	s := newStreet(t)
	in := s.squat()
	undo := s.moveAccount(s.principal(in))
	ctx := t.Context()

	_, err := s.Register(ctx, auth.Registration{Name: "Asha", Email: "ASHA" + email[len("asha"):], Password: nextPassword, Device: den})
	wantErr(t, err, auth.ErrEmailReserved)
	_, err = s.CreateUser(ctx, auth.Registration{Name: "Asha", Email: email, Password: nextPassword, Role: auth.Seller})
	wantErr(t, err, auth.ErrEmailReserved)
	_, err = s.arrive(asha())
	wantErr(t, err, auth.ErrEmailReserved)
	_, _, err = s.CreateSeller(ctx, auth.NewSeller{ExternalID: "shop-7", Name: "Asha", Email: email}, "key_1")
	wantErr(t, err, auth.ErrSellerEmailTaken)
	for _, dryRun := range []bool{true, false} {
		wantSaid(t, s.add(auth.ImportOptions{DryRun: dryRun}, auth.ImportLine{Email: email, Name: "Asha"}), "failed email")
	}
	other := s.admin("Ada")
	wantErr(t, s.ResetUser(ctx, auth.Reset{UserID: other.Admin, Email: email, Role: auth.Admin, Password: nextPassword, Operator: "asha"}), auth.ErrEmailReserved)

	wantErr(t, s.UndoEmailChange(ctx, undo, home), nil)
	s.wantDead(in)
	_, err = s.Register(ctx, auth.Registration{Name: "Mallory", Email: thiefs, Password: nextPassword, Device: den})
	wantErr(t, err, nil) // the other address was never the owner's
}

// confirmTo gives an account another address, as p, and returns the token that undoes it, from the mail to the former one.
func (w *fixture) confirmTo(p auth.Principal, from, to string) (undo string) {
	w.t.Helper()
	wantErr(w.t, w.ChangeEmail(w.t.Context(), p, to, den), nil)
	for _, d := range w.mailbox.To(to) {
		if m, ok := d.(mail.ConfirmEmail); ok {
			wantErr(w.t, w.ConfirmEmailChange(w.t.Context(), m.Token, den), nil)
		}
	}
	for _, d := range w.mailbox.To(from) {
		if m, ok := d.(mail.EmailChanged); ok {
			undo = m.Token
		}
	}
	return undo
}

// A thief moves the account twice and undoes the second move, on an instance whose clock is behind the first one's. The owner's link stays good, and
// ends the thief's.
func TestUndoEmailChange_EndsLaterOnesAlone(t *testing.T) {
	s := newStreet(t)
	in := s.squat()
	owners := s.moveAccount(s.principal(in))
	s.clock.advance(-2 * time.Minute)
	behind, err := s.login(thiefs, password, den)
	wantErr(t, err, nil)
	thiefs2 := s.confirmTo(s.principal(behind), thiefs, "second@evil.example")
	wantErr(t, s.UndoEmailChange(t.Context(), thiefs2, den), nil)
	_, err = s.Register(t.Context(), auth.Registration{Name: "Mallory", Email: email, Password: nextPassword, Device: den})
	wantErr(t, err, auth.ErrEmailReserved)
	s.setByLink(thiefs, nextPassword)
	thief, err := s.login(thiefs, nextPassword, den)
	wantErr(t, err, nil)
	s.clock.advance(2 * time.Minute) // a mail of a kind goes to an address once a minute
	third := s.confirmTo(s.principal(thief), thiefs, "third@evil.example")
	wantErr(t, s.UndoEmailChange(t.Context(), owners, home), nil)
	wantErr(t, s.UndoEmailChange(t.Context(), third, den), auth.ErrMailToken)
	if u := s.user(); u.ID != in.User.ID {
		t.Errorf("the address is of %+v", u)
	}
}

// The team suspends a stolen account. Its owner takes the address back all the same, and stays suspended.
func TestUndoEmailChange_Suspended(t *testing.T) {
	s := newStreet(t)
	in := s.squat()
	undo := s.moveAccount(s.principal(in))
	wantErr(t, s.SetAccess(t.Context(), s.admin("office"), in.User.ID, auth.Seller, true), nil)
	wantErr(t, s.UndoEmailChange(t.Context(), undo, home), nil)
	if u := s.user(); u.ID != in.User.ID || !u.Suspended {
		t.Errorf("the address is of %+v", u)
	}
}

// An address is free again once no link can give it back.
func TestEmailChange_FormerAddressIsFreeAfterAWeek(t *testing.T) {
	s := newStreet(t)
	in := s.squat()
	s.moveAccount(s.principal(in))
	again := auth.Registration{Name: "Asha", Email: email, Password: nextPassword, Device: home}
	s.clock.advance(mail.UndoLife - time.Minute)
	_, err := s.Sweep(t.Context())
	wantErr(t, err, nil)
	_, err = s.Register(t.Context(), again)
	wantErr(t, err, auth.ErrEmailReserved)
	s.clock.advance(2 * time.Minute)
	_, err = s.Sweep(t.Context())
	wantErr(t, err, nil)
	_, err = s.Register(t.Context(), again)
	wantErr(t, err, nil)
}

// A session that was stolen long after its sign-in gives the account no other address, which would be a way in that stays.
func TestChangeEmail_OldSession_NeedsThePassword(t *testing.T) {
	f := newFixture(t)
	in := f.register()
	wantErr(t, f.VerifyEmail(t.Context(), lastMailed[mail.VerifyEmail](f, 1).Token), nil)
	f.clock.advance(20 * time.Minute)
	p := f.principal(f.refresh(in.RefreshToken))
	wantErr(t, f.ChangeEmail(t.Context(), p, thiefs, den), auth.ErrStepUp)
	if mails := f.mailbox.To(thiefs); len(mails) != 0 {
		t.Errorf("mailed %T; want nothing", mails)
	}
	for to, want := range map[string]error{"another@evil.example": auth.ErrStepUp, thiefs: nil} {
		proof, _, err := f.StepUp(t.Context(), p, auth.StepUp{Action: auth.ActionChangeEmail, Bound: []string{auth.EmailKey(to)}, Password: password, Device: den})
		wantErr(t, err, nil)
		p.Proof = proof
		wantErr(t, f.ChangeEmail(t.Context(), p, thiefs, den), want)
	}
	if mails := f.mailbox.To(thiefs); len(mails) != 1 {
		t.Errorf("mailed %T; want one", mails)
	}
}

// Who has no password signs in again.
func TestChangeEmail_OldProviderSession_SignsInAgain(t *testing.T) {
	s := newStreet(t)
	in := s.mustArrive(asha())
	s.clock.advance(20 * time.Minute)
	wantErr(t, s.ChangeEmail(t.Context(), s.principal(s.refresh(in.RefreshToken)), thiefs, den), auth.ErrStaleSignIn)
	wantErr(t, s.ChangeEmail(t.Context(), s.principal(s.mustArrive(asha())), thiefs, den), nil)
}

// A request with a key that leaked was let in just before the key was rotated without a grace, and makes its link just after.
func TestSessionLink_KeyRotatedMeanwhile_NoLink(t *testing.T) {
	s := newStreet(t)
	secret, _ := s.serviceKey("shop")
	seller := s.squat().User.ID
	leaked, err := s.AuthenticateService(t.Context(), secret)
	wantErr(t, err, nil)
	_, _, err = s.RotateServiceKey(t.Context(), "shop", time.Hour, "operator:asha")
	wantErr(t, err, nil)
	_, _, err = s.CreateSessionLink(t.Context(), leaked, seller) // it is accepted for another hour
	wantErr(t, err, nil)
	_, fresh, err := s.RotateServiceKey(t.Context(), "shop", 0, "operator:asha")
	wantErr(t, err, nil)
	_, _, err = s.CreateSessionLink(t.Context(), leaked, seller)
	wantErr(t, err, auth.ErrServiceKey)
	_, _, err = s.CreateSessionLink(t.Context(), fresh, seller)
	wantErr(t, err, nil)
	_, err = s.RevokeServiceKey(t.Context(), "shop", "operator:asha")
	wantErr(t, err, nil)
	_, _, err = s.CreateSessionLink(t.Context(), fresh, seller)
	wantErr(t, err, auth.ErrServiceKey)
}

// An operator resets an account. A link that the marketplace made before opens it no more.
func TestOpenSessionLink_EndsTheBrowsersSession(t *testing.T) {
	s := newStreet(t)
	_, key := s.serviceKey("shop")
	before := s.squat()
	elsewhere, err := s.login(email, password, den)
	wantErr(t, err, nil)
	token, _, err := s.CreateSessionLink(t.Context(), key, before.User.ID)
	wantErr(t, err, nil)
	opened, err := s.OpenSessionLink(t.Context(), token, before.Token, home)
	wantErr(t, err, nil)
	s.wantDead(before)
	s.wantAlive(elsewhere)
	s.wantAlive(opened)
}

func TestResetUser_EndsSessionLinks(t *testing.T) {
	s := newStreet(t)
	_, key := s.serviceKey("shop")
	seller := s.squat().User.ID
	token, _, err := s.CreateSessionLink(t.Context(), key, seller)
	wantErr(t, err, nil)
	wantErr(t, s.ResetUser(t.Context(), auth.Reset{UserID: seller, Email: email, Role: auth.Seller, Password: nextPassword, Operator: "asha"}), nil)
	_, err = s.OpenSessionLink(t.Context(), token, "", den)
	wantErr(t, err, auth.ErrLink)
}
