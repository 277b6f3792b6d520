package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
)

// Action is what a proof permits.
type Action string

// The actions that need a proof when the user has a second factor.
const (
	ActionReplaceAccount Action = "bank_account.replace" // bound to the account's number and IFSC
	ActionChangePassword Action = "password.change"
	ActionAddFactor      Action = "factor.add"
	ActionRemoveFactor   Action = "factor.remove" // bound to the factor's id
	ActionChangeEmail    Action = "email.change"  // bound to the new address, by [EmailKey]
	ActionDeleteAccount  Action = "account.delete"
	ActionUnlinkIdentity Action = "identity.unlink" // bound to the provider
)

// ActionRequestPayout needs a proof of every user. It is bound to the amount and the bank account, as package payout says.
const ActionRequestPayout Action = "payout.request"

// ErrStepUp asks for a fresh proof of who the user is.
var ErrStepUp = fault.New(fault.Unauthenticated, "step_up_required",
	"Confirm that it is you: get a proof from POST /api/auth/step-up, and send it as the header Step-Up.")

// stepUpRequired is [ErrStepUp] with what a proof can be made of, of which the options of a passkey are for this action alone.
func (s *Service) stepUpRequired(p Principal, all []Factor, a Action, to []string) (err error) {
	f := *ErrStepUp
	f.Details = map[string]string{"methods": "password"}
	if hasFactor(all) {
		if f.Details, err = s.methodDetails(all, stepUpUse(p, a, to)); err != nil {
			return err
		}
	}
	return &f
}

// stepUpUse is what a passkey signs for, so that what is signed is what is done.
func stepUpUse(p Principal, a Action, to []string) passkeyUse {
	return passkeyUse{"step-up", p.UserID, p.Session, string(a), bound(to)}
}

// ProofLife is how long a proof may be used.
const ProofLife = 5 * time.Minute

const proofPurpose = "bursar step-up v1"

// proof permits one action of one session, once. It is encrypted and given to the client.
type proof struct {
	User    string `json:"u"`
	Session string `json:"s"`
	Action  Action `json:"a"`
	Bound   string `json:"b"`
	// ByCode says that it was made with a second factor, not with the password.
	ByCode bool      `json:"c"`
	Nonce  string    `json:"n"`
	Until  time.Time `json:"t"`
}

// bound is a hash of what an action is for.
func bound(to []string) string {
	var text strings.Builder
	for _, part := range to {
		text.WriteString(strconv.Itoa(len(part)) + ":" + part + " ")
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:])
}

// StepUp asks for a proof. A user with a second factor proves who they are by it, others by their password, and one without a
// password by having signed in a short time ago.
type StepUp struct {
	Action Action
	// Bound is what the action is for, in the order that the action's comment names.
	Bound    []string
	Password string
	SecondProof
	Device Device
}

// StepUp makes a proof that permits one action, for what it is bound to, once. It fails with a fault that names the field
// at fault, with [ErrStepUp] if a user with a second factor has nothing to prove by, or with [ErrFactorCode], [ErrPasskey], [ErrWrongPassword],
// [ErrStaleSignIn], [ErrThrottled], [ErrBusy] or [ErrToken].
func (s *Service) StepUp(ctx context.Context, p Principal, r StepUp) (encrypted string, until time.Time, err error) {
	user, _, err := s.Me(ctx, p)
	if err != nil {
		return "", time.Time{}, err
	}
	all, err := s.o.Store.FactorsOf(ctx, user.ID)
	if err != nil {
		return "", time.Time{}, err
	}
	byCode := hasFactor(all)
	switch {
	case byCode && r.Password == "" && r.Empty():
		err = s.stepUpRequired(p, all, r.Action, r.Bound)
	case byCode:
		err = s.proveByCode(ctx, p, user, r)
	case user.PasswordHash != "":
		err = s.proveByPassword(ctx, user, p, r)
	default:
		err = s.proveBySignIn(ctx, p)
	}
	if err != nil {
		return "", time.Time{}, err
	}
	until = s.o.Now().Add(ProofLife)
	encrypted, err = s.encryptJSON(proof{user.ID, p.Session, r.Action, bound(r.Bound), byCode, id.Random(nonceDigits), until}, proofPurpose)
	return encrypted, until, err
}

func (s *Service) proveByCode(ctx context.Context, p Principal, user User, r StepUp) error {
	if r.Empty() {
		return fault.Field("code", "is needed, or recoveryCode or assertion: you have a second factor")
	}
	a, err := s.countCode(ctx, s.codeTry(user, r.Device, p.Session))
	if err != nil {
		return err
	}
	wrong := false
	err = s.changeFactors(ctx, p, func(tx Tx, user User, all []Factor) error {
		kind, refused, err := s.useFactor(ctx, tx, user, all, r.SecondProof, stepUpUse(p, r.Action, r.Bound))
		wrong = refused != ""
		switch {
		case err != nil:
			return err
		case wrong: // is committed: the owner of the account sees it
			return s.record(ctx, tx, user.ID, refused, r.Device, "for", r.Action)
		case kind == FactorRecovery:
			if err := s.record(ctx, tx, user.ID, ledger.AccountRecoveryCodeUsed, r.Device); err != nil {
				return err
			}
		}
		return a.forgive(ctx, tx)
	})
	switch {
	case err != nil || !wrong:
		return err
	case r.Assertion != nil:
		return ErrPasskey
	default:
		return ErrFactorCode
	}
}

func (s *Service) proveByPassword(ctx context.Context, user User, p Principal, r StepUp) error {
	if r.Password == "" {
		return fault.Field("password", "must be your password")
	}
	known := s.recognize(user, r.Device, s.o.Now())
	if known == "" {
		known = p.Session
	}
	t := try{action: guessPassword, account: user.ID, device: known, address: r.Device.site()}
	a, leave, err := s.begin(ctx, t)
	if err != nil {
		return err
	}
	defer leave()
	right, _, err := s.passwords.verify(ctx, user.PasswordHash, r.Password)
	if err != nil {
		return err
	}
	if !right {
		s.o.Tried(string(t.action), outcomeWrong)
		return wrongPassword("password")
	}
	return s.o.Store.InTx(ctx, func(tx Tx) error { return a.forgive(ctx, tx) })
}

// proveBySignIn is for a user who signs in through a provider alone.
func (s *Service) proveBySignIn(ctx context.Context, p Principal) error {
	err := s.o.Store.InTx(ctx, func(tx Tx) error { return s.mayChange(ctx, tx, p, "", s.o.Now()) })
	if errors.Is(err, errUserChanged) { // has a password by now
		err = ErrBusy.After(busyRetry).Because(err)
	}
	return err
}

// changeProven carries out a change of the account in one transaction once the user has proven who they are: by the password, to which a
// user with a second factor adds a proof for the action, or by the proof alone. A user without a password has to have signed in a short
// time ago. It fails with [ErrStepUp], [ErrWrongPassword], [ErrStaleSignIn], [ErrThrottled], [ErrBusy], with a fault that names the
// password, with [ErrToken] if the session ended meanwhile, or as the change does.
func (s *Service) changeProven(
	ctx context.Context, p Principal, password string, from Device, a Action, to []string, change func(tx Tx) error,
) error {
	if password == "" && p.Proof != "" {
		return s.o.Store.InTx(ctx, func(tx Tx) error {
			if err := s.UseProof(ctx, tx, p, a, to...); err != nil {
				return err
			}
			return change(tx)
		})
	}
	user, _, err := s.Me(ctx, p)
	if err != nil {
		return err
	}
	if user.PasswordHash != "" && password == "" {
		return fault.Fields(fault.Malformed, map[string]string{fieldPassword: "is required"})
	}
	t := try{
		action: guessPassword, account: user.ID,
		device: cmp.Or(s.recognize(user, from, s.o.Now()), p.Session), address: from.site(),
	}
	counted, leave, err := s.begin(ctx, t)
	if err != nil {
		return err
	}
	defer leave()
	for range maxChecks {
		if err := s.checkCurrent(ctx, user, password, t, fieldPassword); err != nil {
			return err
		}
		err = s.o.Store.InTx(ctx, func(tx Tx) error {
			if err := s.mayChange(ctx, tx, p, user.PasswordHash, s.o.Now()); err != nil {
				return err
			}
			if err := s.RequireProof(ctx, tx, p, a, to...); err != nil {
				return err
			}
			if err := counted.forgive(ctx, tx); err != nil {
				return err
			}
			return change(tx)
		})
		if !errors.Is(err, errUserChanged) {
			break
		}
		// A sign-in may have replaced the hash with one of today's cost; else the password is another now.
		if user, _, err = s.Me(ctx, p); err != nil {
			return err
		}
		err = ErrBusy.After(busyRetry).Because(errUserChanged)
	}
	if err == nil {
		s.o.Tried(string(t.action), outcomeRight)
	}
	return err
}

// ProofTx is what using a proof asks of a transaction.
type ProofTx interface {
	// UseSignIn notes that something was used, and reports whether it is the first time.
	UseSignIn(ctx context.Context, what string, keepUntil time.Time) (bool, error)
	// Factors lists a user's factors, the oldest first. It fails with [ErrTampered] unless the service wrote them.
	Factors(ctx context.Context, userID string) ([]Factor, error)
}

// RequireProof uses up the proof of a session for an action, in the transaction that carries the action out, if the user has
// a second factor. It fails with [ErrStepUp].
func (s *Service) RequireProof(ctx context.Context, tx ProofTx, p Principal, a Action, to ...string) error {
	all, err := s.factorsOf(ctx, tx, p.UserID)
	if err != nil {
		return err
	}
	return s.requireProof(ctx, tx, p, all, a, to...)
}

func (s *Service) requireProof(ctx context.Context, tx ProofTx, p Principal, all []Factor, a Action, to ...string) error {
	if !hasFactor(all) {
		return nil
	}
	return s.useProof(ctx, tx, p, all, a, to...)
}

// LockSession keeps a session alive, and its user as they are, until the transaction ends. It fails with [ErrToken].
func (s *Service) LockSession(ctx context.Context, tx Tx, p Principal) error {
	_, err := s.userOfSession(ctx, tx, p)
	return err
}

// UseProof uses up the proof of a session for an action that every user proves, in the transaction that carries the action out.
// The session stays alive until that ends. It fails with [ErrStepUp] or [ErrToken].
func (s *Service) UseProof(ctx context.Context, tx Tx, p Principal, a Action, to ...string) error {
	user, err := s.userOfSession(ctx, tx, p)
	if err != nil {
		return err
	}
	all, err := s.factorsOf(ctx, tx, user.ID)
	if err != nil {
		return err
	}
	err = s.useProof(ctx, tx, p, all, a, to...)
	if f := fault.From(err); errors.Is(err, ErrStepUp) && !hasFactor(all) && user.PasswordHash == "" {
		f.Details["methods"] = "sign_in"
	}
	return err
}

// useProof uses up a proof, which has to be made with a second factor if there is one among all.
func (s *Service) useProof(ctx context.Context, tx ProofTx, p Principal, all []Factor, a Action, to ...string) error {
	var given proof
	err := s.decryptJSON(p.Proof, proofPurpose, &given)
	if err != nil || hasFactor(all) && !given.ByCode || given.User != p.UserID || given.Session != p.Session || given.Action != a || given.Bound != bound(to) || !s.o.Now().Before(given.Until) {
		return s.stepUpRequired(p, all, a, to)
	}
	first, err := useOnce(ctx, tx, "proof:"+given.Nonce, given.Until)
	if err == nil && !first {
		err = s.stepUpRequired(p, all, a, to)
	}
	return err
}
