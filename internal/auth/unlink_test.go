package auth_test

import (
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// linkedStreet has a seller with a password and a confirmed address, to whom provider A is linked. It returns the sign-in of each.
func linkedStreet(t *testing.T) (s *street, byPassword, byProvider auth.SignIn) {
	t.Helper()
	s = newStreet(t)
	byPassword = s.register()
	s.verify(byPassword.User)
	return s, byPassword, s.mustArrive(asha())
}

// linked counts the identities of a user.
func (s *street) linked(user string) int {
	s.t.Helper()
	all, err := s.Identities(s.t.Context(), user)
	if err != nil {
		s.t.Fatal(err)
	}
	return len(all)
}

// arriveFrom signs in as who through provider A, in a browser that is signed in already.
func (s *street) arriveFrom(in auth.SignIn, who auth.Identity) (auth.SignIn, error) {
	s.t.Helper()
	s.a.answer(who, nil)
	r := s.begin(auth.ProviderA, auth.Seller)
	r.Presented = in.Token
	return s.finish(r)
}

func TestLinkedIdentity_IsMailed(t *testing.T) {
	s, in, _ := linkedStreet(t)
	got := lastMailed[mail.IdentityChanged](s.fixture, 1)
	if !got.Added || got.Provider != "Scripted" || got.Address != home.Address || got.At.IsZero() {
		t.Errorf("mailed %+v", got)
	}
	s.mustArrive(asha()) // as one that is linked
	lastMailed[mail.IdentityChanged](s.fixture, 1)
	s.wantEvents(in.User.ID, ledger.AccountIdentityLinked)
}

func TestLinkedIdentity_AfterSecondStep_IsMailed(t *testing.T) {
	s := newStreet(t)
	in := s.register()
	s.verify(in.User)
	_, _, code := s.enrol(s.principal(in))
	_, err := s.arrive(asha())
	step := auth.SecondStep{Challenge: s.challengeOf(err), SecondProof: auth.SecondProof{Code: code()}, Device: home}
	if len(mailed[mail.IdentityChanged](s.fixture)) > 0 {
		t.Error("it is mailed before it is linked")
	}
	_, err = s.LoginFactor(t.Context(), step)
	wantErr(t, err, nil)
	if got := lastMailed[mail.IdentityChanged](s.fixture, 1); !got.Added {
		t.Errorf("mailed %+v", got)
	}
}

func TestUnlinkIdentity(t *testing.T) {
	s, in, linked := linkedStreet(t)
	ctx, p := t.Context(), s.principal(in)
	all, err := s.Identities(ctx, in.User.ID)
	if err != nil || len(all) != 1 || all[0].Provider != auth.ProviderA {
		t.Fatalf("linked are %+v, %v", all, err)
	}
	elsewhere, err := s.login(email, password, cafe)
	wantErr(t, err, nil)
	wantErr(t, s.UnlinkIdentity(ctx, p, auth.ProviderA, "", home), errPasswordRequired(t))
	wantErr(t, s.UnlinkIdentity(ctx, p, auth.ProviderA, "not-my-password", home), auth.ErrWrongPassword)
	for _, none := range []auth.ProviderID{auth.ProviderB, "provider-c", ""} {
		wantErr(t, s.UnlinkIdentity(ctx, p, none, password, home), auth.ErrIdentityNotFound)
	}
	s.wantAlive(linked)

	s.clock.advance(time.Second) // mails of one instant are in no order
	wantErr(t, s.UnlinkIdentity(ctx, p, auth.ProviderA, password, home), nil)
	s.wantAlive(in)
	s.wantDead(linked)
	s.wantDead(elsewhere)
	if n := s.linked(in.User.ID); n != 0 {
		t.Errorf("%d identities are linked", n)
	}
	if got := lastMailed[mail.IdentityChanged](s.fixture, 2); got.Added || got.Provider != "Scripted" || got.Address != home.Address {
		t.Errorf("mailed %+v", got)
	}
	s.wantEvents(in.User.ID, ledger.AccountIdentityUnlinked, ledger.AccountIdentityLinked)
	if events, err := s.SecurityEvents(ctx, in.User.ID, 0, 1); err != nil || events[0].Provider != "https://a.example" || events[0].Address != home.Address {
		t.Errorf("the event is %+v, %v", events, err)
	}
	wantErr(t, s.UnlinkIdentity(ctx, p, auth.ProviderA, password, home), auth.ErrIdentityNotFound)
	_, err = s.arrive(asha())
	wantErr(t, err, auth.ErrIdentityUnlinked)
}

// errPasswordRequired is what a user with a password who sends none is answered with.
func errPasswordRequired(t *testing.T) error {
	t.Helper()
	w := newFixture(t)
	return w.DeleteAccount(t.Context(), w.principal(w.register()), "", home)
}

// Wrong guesses count as those at sign-in.
func TestUnlinkIdentity_GuessesAreThrottled(t *testing.T) {
	s, in, _ := linkedStreet(t)
	p := s.principal(in)
	for i := range 20 {
		wantErr(t, s.UnlinkIdentity(t.Context(), p, auth.ProviderA, "a-guess-at-it", at(i)), auth.ErrWrongPassword)
	}
	wantThrottled(t, s.UnlinkIdentity(t.Context(), p, auth.ProviderA, password, home))
	if n := s.linked(in.User.ID); n != 1 {
		t.Errorf("%d identities are linked", n)
	}
}

// A user with a second factor needs a proof, which is for one provider.
func TestUnlinkIdentity_SecondFactor_NeedsProof(t *testing.T) {
	s, in, _ := linkedStreet(t)
	ctx, p := t.Context(), s.principal(in)
	_, _, code := s.enrol(p)
	wantErr(t, s.UnlinkIdentity(ctx, p, auth.ProviderA, password, home), auth.ErrStepUp)
	proveFor := func(a auth.Action, bound ...string) auth.Principal {
		t.Helper()
		proven := p
		var err error
		proven.Proof, _, err = s.StepUp(ctx, p, auth.StepUp{Action: a, Bound: bound, SecondProof: auth.SecondProof{Code: code()}, Device: home})
		wantErr(t, err, nil)
		return proven
	}
	wantErr(t, s.UnlinkIdentity(ctx, proveFor(auth.ActionDeleteAccount), auth.ProviderA, "", home), auth.ErrStepUp)
	wantErr(t, s.UnlinkIdentity(ctx, proveFor(auth.ActionUnlinkIdentity, "provider-b"), auth.ProviderA, "", home), auth.ErrStepUp)
	_, err := s.arrive(asha())
	begun := s.challengeOf(err)
	wantErr(t, s.UnlinkIdentity(ctx, proveFor(auth.ActionUnlinkIdentity, "provider-a"), auth.ProviderA, "", home), nil)
	if n := s.linked(in.User.ID); n != 0 {
		t.Errorf("%d identities are linked", n)
	}
	_, err = s.LoginFactor(ctx, auth.SecondStep{Challenge: begun, SecondProof: auth.SecondProof{Code: code()}, Device: home})
	wantErr(t, err, auth.ErrChallenge) // it began by what was unlinked since
	_, err = s.arrive(asha())          // the second factor proves more than the address
	_, err = s.LoginFactor(ctx, auth.SecondStep{Challenge: s.challengeOf(err), SecondProof: auth.SecondProof{Code: code()}, Device: home})
	wantErr(t, err, nil)
	if n := s.linked(in.User.ID); n != 1 {
		t.Errorf("%d identities are linked", n)
	}
}

// A user without a password needs another way to sign in, and a fresh sign-in.
func TestUnlinkIdentity_LastWayIn(t *testing.T) {
	s := newStreet(t)
	ctx, in := t.Context(), s.mustArrive(asha())
	wantErr(t, s.UnlinkIdentity(ctx, s.principal(in), auth.ProviderA, "", home), auth.ErrLastWayIn)
	second := asha()
	second.Subject = "8" // another account at the same provider goes with it
	s.mustArrive(second)
	gone := asha()
	gone.Issuer = "https://gone.example" // a provider that is not set up any more lets nobody in
	s.mustArrive(gone)
	wantErr(t, s.UnlinkIdentity(ctx, s.principal(in), auth.ProviderA, "", home), auth.ErrLastWayIn)
	s.wantAlive(in)

	atB := asha()
	atB.Issuer = "https://b.example"
	s.b.answer(atB, nil)
	byB, err := s.finish(s.begin(auth.ProviderB, auth.Seller))
	wantErr(t, err, nil)
	s.clock.advance(15 * time.Minute)
	wantErr(t, s.UnlinkIdentity(ctx, s.principal(byB), auth.ProviderA, "", home), auth.ErrStaleSignIn)
	byB, err = s.finish(s.begin(auth.ProviderB, auth.Seller))
	wantErr(t, err, nil)
	wantErr(t, s.UnlinkIdentity(ctx, s.principal(byB), auth.ProviderA, "", home), nil)
	if n := s.linked(in.User.ID); n != 2 {
		t.Errorf("%d identities are linked, want those of B and of the one that is gone", n)
	}
	wantErr(t, s.UnlinkIdentity(ctx, s.principal(byB), auth.ProviderB, "", home), auth.ErrLastWayIn)
	_, err = s.ChangePassword(ctx, s.principal(byB), "", password, home)
	wantErr(t, err, nil)
	wantErr(t, s.UnlinkIdentity(ctx, s.principal(byB), auth.ProviderB, password, home), nil)
}

// A provider that was unlinked still knows the address. It is linked again only for a user who signed in another way a short time ago.
func TestUnlinkedIdentity_IsNotLinkedByAddressAlone(t *testing.T) {
	s, in, _ := linkedStreet(t)
	wantErr(t, s.UnlinkIdentity(t.Context(), s.principal(in), auth.ProviderA, password, home), nil)
	thief := asha()
	thief.Subject = "another"
	for _, who := range []auth.Identity{asha(), thief} {
		_, err := s.arrive(who)
		wantErr(t, err, auth.ErrIdentityUnlinked)
	}
	other, err := s.Register(t.Context(), auth.Registration{Name: "Mallory", Email: "mallory@example.com", Password: password, Role: auth.Seller, Device: den})
	wantErr(t, err, nil)
	_, err = s.arriveFrom(other, asha())
	wantErr(t, err, auth.ErrIdentityUnlinked)
	s.clock.advance(15 * time.Minute)
	_, err = s.arriveFrom(in, asha())
	wantErr(t, err, auth.ErrIdentityUnlinked)
	if n := s.linked(in.User.ID); n != 0 {
		t.Fatalf("%d identities are linked", n)
	}

	again, err := s.login(email, password, home)
	wantErr(t, err, nil)
	back, err := s.arriveFrom(again, asha())
	if err != nil || back.User.ID != in.User.ID || s.linked(in.User.ID) != 1 {
		t.Errorf("linked again: %+v, %v", back.User, err)
	}
	s.mustArrive(asha())
}

// The journal was changed outside the service. The sessions end all the same.
func TestUnlinkIdentity_TamperedTotals_EndsSessions(t *testing.T) {
	s, in, linked := linkedStreet(t)
	s.place.ByHand(t, `UPDATE journals SET available = available + 100 WHERE owner = '`+in.User.ID+`'`)
	wantErr(t, s.UnlinkIdentity(t.Context(), s.principal(in), auth.ProviderA, password, home), ledger.ErrTampered)
	s.wantDead(linked)
	s.wantAlive(in)
}

// A seller once signed in through the provider of a former employer. They move to an address of their own, set another password and end all
// other sessions, and then have the operator set a password.
func TestResetPassword_RemoveFactors_UnlinksProviders(t *testing.T) {
	for _, remove := range []bool{false, true} {
		s, in, _ := linkedStreet(t)
		ctx, p := t.Context(), s.principal(in)
		wantErr(t, s.ChangeEmail(ctx, p, "asha.new@example.net", home), nil)
		for _, d := range s.mailbox.To("asha.new@example.net") {
			if m, ok := d.(mail.ConfirmEmail); ok {
				wantErr(t, s.ConfirmEmailChange(ctx, m.Token, home), nil)
			}
		}
		_, err := s.ChangePassword(ctx, p, password, "another fine phrase", home)
		wantErr(t, err, nil)
		wantErr(t, s.EndOtherSessions(ctx, p, home), nil)
		_, err = s.ResetPassword(ctx, decision.By{Operator: "ops", Note: "The owner called."}, in.User.ID, "the third fine phrase", remove)
		wantErr(t, err, nil)
		if _, err := s.arrive(asha()); (err != nil) != remove {
			t.Errorf("remove factors: %t, and the provider's account is answered with %v", remove, err)
		}
		events, err := s.SecurityEvents(ctx, in.User.ID, 0, 100)
		wantErr(t, err, nil)
		unlinked := 0
		for _, e := range events {
			if e.Type == ledger.AccountIdentityUnlinked && e.Provider == "https://a.example" {
				unlinked++
			}
		}
		if (unlinked == 1) != remove || unlinked > 1 {
			t.Errorf("remove factors: %t, and %d events say that a provider was unlinked", remove, unlinked)
		}
	}
}

// After an operator has unlinked all, the address alone links none. Payouts are on hold, as the provider was a way in.
func TestResetPassword_RemoveFactors_LinksNothingByAddress(t *testing.T) {
	s := newStreet(t, func(o *auth.Options) { o.CoolDown = 72 * time.Hour })
	in := s.mustArrive(asha())
	_, err := s.ResetPassword(t.Context(), decision.By{Operator: "ops", Note: "The owner called."}, in.User.ID, password, true)
	wantErr(t, err, nil)
	_, err = s.arrive(asha())
	wantErr(t, err, auth.ErrIdentityUnlinked)
	s.wantEvents(in.User.ID, ledger.AdminDecided, ledger.PayoutsOnHold, ledger.AccountIdentityUnlinked)
}
