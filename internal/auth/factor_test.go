package auth_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/storetest"
)

// enrol adds an authenticator app. The code that it returns is another one each time, because each is taken once.
func (w *fixture) enrol(p auth.Principal) (id string, recovery []string, code func() string) {
	w.t.Helper()
	f, err := w.AddFactor(w.t.Context(), p, "")
	if err != nil {
		w.t.Fatal(err)
	}
	code = func() string {
		w.t.Helper()
		w.clock.advance(30 * time.Second)
		c, err := totp.GenerateCode(f.Secret, w.clock.Now())
		if err != nil {
			w.t.Fatal(err)
		}
		return c
	}
	if recovery, err = w.ConfirmFactor(w.t.Context(), p, f.ID, code(), home); err != nil {
		w.t.Fatal(err)
	}
	return f.ID, recovery, code
}

// challengeOf is what a sign-in that needs a second proof fails with.
func (w *fixture) challengeOf(err error) string {
	w.t.Helper()
	wantErr(w.t, err, auth.ErrSecondFactor)
	return fault.From(err).Details["challenge"]
}

func (w *fixture) prove(p auth.Principal, a auth.Action, code string) auth.Principal {
	w.t.Helper()
	var err error
	if p.Proof, _, err = w.StepUp(w.t.Context(), p, auth.StepUp{Action: a, SecondProof: auth.SecondProof{Code: code}, Device: home}); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// atOnce counts how many of some that begin together succeed, and wants the others to fail as refusals.
func atOnce(t *testing.T, n int, do func() error) (succeeded int64) {
	t.Helper()
	var all sync.WaitGroup
	var good atomic.Int64
	for range n {
		all.Go(func() {
			err := do()
			if err == nil {
				good.Add(1)
			} else if fault.From(err) == nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return good.Load()
}

func TestLoginFactor_OfManyAtOnceOneSucceeds(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	_, recovery, code := w.enrol(p)
	_, err := w.login(email, password, home)
	step := auth.SecondStep{Challenge: w.challengeOf(err), SecondProof: auth.SecondProof{Code: code()}, Device: home}
	if n := atOnce(t, 4, func() error { _, err := w.LoginFactor(t.Context(), step); return err }); n != 1 {
		t.Errorf("a challenge was taken %d times", n)
	}
	var challenges []string // so that the code alone tells them apart
	for range 4 {
		_, err := w.login(email, password, home)
		challenges = append(challenges, w.challengeOf(err))
	}
	var next atomic.Int64
	if n := atOnce(t, 4, func() error {
		_, err := w.LoginFactor(t.Context(), auth.SecondStep{Challenge: challenges[next.Add(1)-1], SecondProof: auth.SecondProof{RecoveryCode: recovery[0]}, Device: home})
		return err
	}); n != 1 {
		t.Errorf("a recovery code was taken %d times", n)
	}
}

func TestRequireProof_OnceAndWithACode(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	early := p
	var err error
	early.Proof, _, err = w.StepUp(t.Context(), p, auth.StepUp{Action: auth.ActionAddFactor, Password: password, Device: home})
	if err != nil {
		t.Fatal(err)
	}
	_, _, code := w.enrol(p)
	_, err = w.AddFactor(t.Context(), early, "") // a proof by the password from before there was a factor
	wantErr(t, err, auth.ErrStepUp)
	proven := w.prove(p, auth.ActionAddFactor, code())
	if n := atOnce(t, 4, func() error { _, err := w.AddFactor(t.Context(), proven, ""); return err }); n != 1 {
		t.Errorf("a proof was taken %d times", n)
	}
	_, err = w.AddFactor(t.Context(), proven, "")
	wantErr(t, err, auth.ErrStepUp)
}

func TestRequireProof_OfAnotherSession_Refused(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	factor, _, code := w.enrol(p)
	_, err := w.login(email, password, home)
	in, err := w.LoginFactor(t.Context(), auth.SecondStep{Challenge: w.challengeOf(err), SecondProof: auth.SecondProof{Code: code()}, Device: home})
	wantErr(t, err, nil)
	other := w.principal(in)
	proof, _, err := w.StepUp(t.Context(), p, auth.StepUp{Action: auth.ActionRemoveFactor, Bound: []string{factor}, SecondProof: auth.SecondProof{Code: code()}, Device: home})
	wantErr(t, err, nil)
	other.Proof, p.Proof = proof, proof
	wantErr(t, w.RemoveFactor(t.Context(), other, factor, home), auth.ErrStepUp)
	wantErr(t, w.RemoveFactor(t.Context(), p, factor, home), nil)
}

func TestRemoveFactor_PutsPayoutsOnHold(t *testing.T) {
	w := newStreet(t, func(o *auth.Options) { o.CoolDown = 72 * time.Hour })
	in := w.squat() // registers as a seller
	p := w.principal(in)
	factor, _, code := w.enrol(p)
	var err error
	p.Proof, _, err = w.StepUp(t.Context(), p, auth.StepUp{Action: auth.ActionRemoveFactor, Bound: []string{factor}, SecondProof: auth.SecondProof{Code: code()}, Device: home})
	wantErr(t, err, nil)
	wantErr(t, w.RemoveFactor(t.Context(), p, factor, home), nil)
	w.wantEvents(in.User.ID, ledger.AccountFactorRemoved, ledger.PayoutsOnHold, ledger.AccountFactorAdded)
}

// TestAuthenticate_SessionChangedByHand_Refused changes what the MAC of a session covers.
func TestAuthenticate_SessionChangedByHand_Refused(t *testing.T) {
	for name, change := range map[string]string{
		"when they signed in": `UPDATE sessions SET authenticated_at = authenticated_at + 1`,
		"how they signed in":  `UPDATE sessions SET methods = 'passkey'`,
		"since when":          `UPDATE sessions SET created_at = created_at + 1`,
		"until when at most":  `UPDATE sessions SET cap_at = cap_at + 1`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixtureAt(t, storetest.NewPlace(t))
			in := w.register()
			w.place.ByHand(t, change)
			_, err := w.Authenticate(t.Context(), in.Token)
			wantErr(t, err, auth.ErrToken)
		})
	}
}

// TestAddFactor_SessionChangedByHand_NothingAdded makes an old session look like a fresh one.
func TestAddFactor_SessionChangedByHand_NothingAdded(t *testing.T) {
	for name, change := range map[string]string{
		"when they signed in": `UPDATE sessions SET authenticated_at = authenticated_at + 900000000`,
		"how they signed in":  `UPDATE sessions SET methods = 'passkey'`,
		"until when at most":  `UPDATE sessions SET cap_at = cap_at + 900000000`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixtureAt(t, storetest.NewPlace(t))
			p := w.principal(w.register())
			w.clock.advance(15 * time.Minute)
			w.place.ByHand(t, change)
			_, err := w.AddFactor(t.Context(), p, "")
			wantErr(t, err, auth.ErrTampered)
		})
	}
}

// TestFactor_FailureIsNotSwallowed fails each statement of adding a second factor and of signing in with it. The database's failure is not called
// the user's mistake.
func TestFactor_FailureIsNotSwallowed(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w *fixture, p auth.Principal) func() error{
		"confirm": func(w *fixture, p auth.Principal) func() error {
			f, err := w.AddFactor(t.Context(), p, "")
			wantErr(t, err, nil)
			code, err := totp.GenerateCode(f.Secret, w.clock.Now())
			wantErr(t, err, nil)
			return func() error {
				_, err := w.ConfirmFactor(t.Context(), p, f.ID, code, home)
				return err
			}
		},
		"sign in": func(w *fixture, p auth.Principal) func() error {
			_, _, code := w.enrol(p)
			_, err := w.login(email, password, home)
			challenge, c := w.challengeOf(err), code()
			return func() error {
				_, err := w.LoginFactor(t.Context(), auth.SecondStep{Challenge: challenge, SecondProof: auth.SecondProof{Code: c}, Device: home})
				return err
			}
		},
		"step up": func(w *fixture, p auth.Principal) func() error {
			_, _, code := w.enrol(p)
			c := code()
			return func() error {
				_, _, err := w.StepUp(t.Context(), p, auth.StepUp{Action: auth.ActionAddFactor, SecondProof: auth.SecondProof{Code: c}, Device: home})
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachFailure(t, func(t *testing.T, place storetest.Place) storetest.Story {
				t.Helper()
				w := newFixtureAt(t, place)
				p := w.principal(w.register())
				act := begin(w, p)
				return storetest.Story{
					Act: func() error {
						err := act()
						if refusal := fault.From(err); refusal != nil && refusal.Kind != fault.Unavailable {
							t.Errorf("a failure of the database is %v", err)
						}
						return err
					},
					State: func() string {
						factors, codes, err := w.Factors(t.Context(), p)
						sessions, sessionsErr := w.Sessions(t.Context(), p)
						if err := errors.Join(err, sessionsErr); err != nil {
							t.Fatal(err)
						}
						return fmt.Sprint(len(factors), codes, len(sessions))
					},
				}
			})
		})
	}
}

// TestAddFactor_NotByAStolenSession has a thief with an old session add a way in that would stay.
func TestAddFactor_NotByAStolenSession(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	w.clock.advance(15 * time.Minute)
	_, err := w.AddFactor(t.Context(), p, "")
	wantErr(t, err, auth.ErrStepUp)
	p.Proof, _, err = w.StepUp(t.Context(), p, auth.StepUp{Action: auth.ActionAddFactor, Password: password, Device: home})
	wantErr(t, err, nil)
	_, err = w.AddFactor(t.Context(), p, "")
	wantErr(t, err, nil)
}

// An operator's admin is not asked to confirm the address. A mailbox alone still opens no account of an admin.
func TestForgottenPassword_OperatorsAdmin_KeepsFactors(t *testing.T) {
	w := newFixture(t)
	_, err := w.CreateUser(t.Context(), auth.Registration{Name: "Asha Rao", Email: email, Password: password, Role: auth.Admin})
	wantErr(t, err, nil)
	in, err := w.login(email, password, home)
	wantErr(t, err, nil)
	_, _, code := w.enrol(w.principal(in))
	w.addBankAccount(bank.Account{
		ID: "bka_1", Seller: in.User.ID, Holder: "Asha Rao", IFSC: "HDFC0000053", Last4: "6666", Status: bank.StatusVerified, Current: true,
		NameScore: -1, CreatedAt: w.clock.Now(), VerifiedAt: w.clock.Now(),
	})
	wantErr(t, w.SetForgottenPassword(t.Context(), w.forgot(1), nextPassword, home), nil)
	w.wantDead(in)
	if a, err := w.db.BankAccountByID(t.Context(), "bka_1"); err != nil || a.Status != bank.StatusRejected {
		t.Errorf("a bank account of before the address was confirmed is %s, %v", a.Status, err)
	}
	_, err = w.login(email, nextPassword, home)
	challenge := w.challengeOf(err)
	in, err = w.LoginFactor(t.Context(), auth.SecondStep{Challenge: challenge, SecondProof: auth.SecondProof{Code: code()}, Device: home})
	wantErr(t, err, nil)
	if in.User.Role != auth.Admin || !in.User.Verified {
		t.Errorf("after the reset they are %+v, want an admin with a confirmed address", in.User)
	}
}

func TestFactors_StayWithAMailedPasswordAndGoWithATakeOver(t *testing.T) {
	w := newFixture(t, func(o *auth.Options) { o.CoolDown = 72 * time.Hour })
	in := w.register()
	_, _, code := w.enrol(w.principal(in))
	verify := lastMailed[mail.VerifyEmail](w, 1)
	wantErr(t, w.VerifyEmail(t.Context(), verify.Token), nil)
	wantErr(t, w.SetForgottenPassword(t.Context(), w.forgot(1), nextPassword, home), nil)
	_, err := w.login(email, nextPassword, home)
	challenge := w.challengeOf(err)
	if _, err := w.LoginFactor(t.Context(), auth.SecondStep{Challenge: challenge, SecondProof: auth.SecondProof{Code: code()}, Device: home}); err != nil {
		t.Errorf("after a reset, with the app: %v", err)
	}
	w.wantEvents(in.User.ID, ledger.AccountPasswordReset, ledger.PayoutsOnHold, ledger.AccountEmailVerified, ledger.AccountFactorAdded)

	s := newStreet(t)
	squatter := s.squat()
	s.enrol(s.principal(squatter))
	if owner := s.mustArrive(asha()); owner.User.ID != squatter.User.ID {
		t.Errorf("the owner got %+v", owner.User)
	}
	if left, _, err := s.Factors(t.Context(), s.principal(s.mustArrive(asha()))); err != nil || len(left) > 0 {
		t.Errorf("of the registrant's factors are left %+v, %v", left, err)
	}
	if report, err := s.db.Audit(t.Context(), storetest.Keys(t)); err != nil || !report.Clean() {
		t.Errorf("the audit finds %+v, %v", report.Findings, err)
	}
}

// TestSignInThroughAProvider_AsksForTheSecondFactor keeps a provider from being a way around it.
func TestSignInThroughAProvider_AsksForTheSecondFactor(t *testing.T) {
	s := newStreet(t)
	in := s.mustArrive(asha())
	_, _, code := s.enrol(s.principal(in))
	_, err := s.arrive(asha())
	challenge := s.challengeOf(err)
	again, err := s.LoginFactor(t.Context(), auth.SecondStep{Challenge: challenge, SecondProof: auth.SecondProof{Code: code()}, Device: home})
	if err != nil || again.User.ID != in.User.ID {
		t.Errorf("with the app: %+v, %v", again.User, err)
	}
	sessions, err := s.Sessions(t.Context(), s.principal(again))
	if err != nil || len(sessions) != 2 || fmt.Sprint(sessions[0].Methods) != "[provider otp]" {
		t.Errorf("the sessions are %+v, %v", sessions, err)
	}
}

// TestSignInThroughAProvider_LinksAfterTheSecondStep has a new identity with the address of an account that has a second factor.
// An attacker who controls the identity alone gets no link.
func TestSignInThroughAProvider_LinksAfterTheSecondStep(t *testing.T) {
	s := newStreet(t)
	in := s.register()
	s.verify(in.User)
	_, _, code := s.enrol(s.principal(in))
	links := func() int {
		t.Helper()
		all, err := s.Identities(t.Context(), in.User.ID)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	_, err := s.arrive(asha())
	challenge := s.challengeOf(err)
	answer := func(code string) error {
		_, err := s.LoginFactor(t.Context(), auth.SecondStep{Challenge: challenge, SecondProof: auth.SecondProof{Code: code}, Device: home})
		return err
	}
	wantErr(t, answer("000000"), auth.ErrSignInCode)
	if n := links(); n != 0 {
		t.Fatalf("%d identities are linked before the second step", n)
	}
	wantErr(t, answer(code()), nil)
	if n := links(); n != 1 {
		t.Errorf("%d identities are linked after it", n)
	}
	_, err = s.arrive(asha())
	challenge = s.challengeOf(err)
	wantErr(t, answer(code()), nil) // as one that is linked
	s.wantEvents(in.User.ID, ledger.AccountIdentityLinked, ledger.AccountCodeRefused, ledger.AccountFactorAdded)

	another := asha()
	another.Subject = "8"
	_, err = s.arrive(another)
	challenge = s.challengeOf(err)
	if err := s.SetAccess(t.Context(), decision.By{Admin: s.admin("Ada").Admin}, in.User.ID, auth.Admin, false); err != nil {
		t.Fatal(err)
	}
	wantErr(t, answer(code()), auth.ErrChallenge) // no further identity is linked to an admin
	if n := links(); n != 1 {
		t.Errorf("%d identities are linked to an admin", n)
	}
}

// An instance whose clock is ahead sweeps what was used. A proof and a challenge are good once all the same.
func TestUsedOnce_ClocksDiffer(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	_, recovery, code := w.enrol(p)
	proven := w.prove(p, auth.ActionAddFactor, code())
	_, err := w.AddFactor(t.Context(), proven, "first")
	wantErr(t, err, nil)
	_, err = w.login(email, password, home)
	step := auth.SecondStep{Challenge: w.challengeOf(err), SecondProof: auth.SecondProof{RecoveryCode: recovery[0]}, Device: home}
	_, err = w.LoginFactor(t.Context(), step)
	wantErr(t, err, nil)
	step.RecoveryCode = recovery[1]

	w.clock.advance(min(auth.ProofLife, auth.ChallengeLife) - 30*time.Second)
	ahead := w.again(func(o *auth.Options) { o.Now = func() time.Time { return w.clock.Now().Add(time.Minute) } })
	_, err = ahead.Sweep(t.Context())
	wantErr(t, err, nil)
	_, err = w.AddFactor(t.Context(), proven, "again")
	wantErr(t, err, auth.ErrStepUp)
	_, err = w.LoginFactor(t.Context(), step)
	wantErr(t, err, auth.ErrChallenge)
}

func TestLoginFactor_WrongCodesAreRecordedAndLimited(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	w.enrol(w.principal(in))
	wrong, limited := 0, 0
	for range 8 { // challenges of five tries, of 20 in all
		_, err := w.login(email, password, den)
		challenge := w.challengeOf(err)
		for range 5 {
			_, err := w.LoginFactor(t.Context(), auth.SecondStep{Challenge: challenge, SecondProof: auth.SecondProof{Code: "000000"}, Device: den})
			switch {
			case errors.Is(err, auth.ErrSignInCode):
				wrong++
			case errors.Is(err, auth.ErrThrottled):
				limited++
			default:
				t.Fatal(err)
			}
		}
	}
	if wrong != 10 || limited != 30 {
		t.Errorf("%d wrong codes were looked at and %d refused", wrong, limited)
	}
	events, err := w.SecurityEvents(t.Context(), in.User.ID, 0, 100)
	if err != nil || len(events) != wrong+1 || events[0].Type != ledger.AccountCodeRefused || events[0].Address != den.Address {
		t.Errorf("the user sees %+v, %v", events, err)
	}
}
