package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
)

// What passkeys fail with.
var (
	ErrPasskey = fault.New(fault.Refused, "invalid_passkey",
		"This passkey is not one of this account, or it did not answer what was asked, or too late. Try again.")
	ErrNoPasskeys = fault.New(fault.Refused, "passkeys_unavailable",
		"Browsers offer no passkeys at this address. The service needs a public https address with a name.")
	ErrPasskeyKnown = fault.New(fault.Refused, "passkey_known", "You have added this passkey already.")
)

// passkeyUse is what an answer of a passkey is for. Its challenge is bound to it, so an answer is good for nothing else.
type passkeyUse []string

var passkeyToSignIn = passkeyUse{"sign-in"}

func passkeyToRegister(p Principal, factor string) passkeyUse {
	return passkeyUse{"register", p.UserID, p.Session, factor}
}

func (use passkeyUse) context() string { return "bursar passkey challenge v1|" + bound(use) }

// passkeyChallenge is in the challenge that a passkey signs, encrypted. Nothing of it is stored before it comes back.
type passkeyChallenge struct {
	Nonce string    `json:"n"`
	At    time.Time `json:"t"`
}

func (s *Service) newPasskeyChallenge(use passkeyUse) ([]byte, error) {
	encrypted, err := s.encryptJSON(passkeyChallenge{id.Random(nonceDigits), s.o.Now()}, use.context())
	return []byte(encrypted), err
}

// openPasskeyChallenge reads a challenge as a browser has it. It fails with [ErrPasskey] unless it was made for this use, a short
// time ago.
func (s *Service) openPasskeyChallenge(encoded string, use passkeyUse) (c passkeyChallenge, err error) {
	encrypted, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return c, ErrPasskey.Because(err)
	}
	err = s.decryptJSON(string(encrypted), use.context(), &c)
	if err == nil && !s.o.Now().Before(c.At.Add(ChallengeLife)) {
		err = errors.New("the challenge is too old")
	}
	if err != nil {
		return c, ErrPasskey.Because(err)
	}
	return c, nil
}

// use notes that a challenge was answered. It fails with [ErrPasskey] if it was before.
func (c passkeyChallenge) use(ctx context.Context, tx Tx) error {
	first, err := useOnce(ctx, tx, "passkey:"+c.Nonce, c.At.Add(ChallengeLife))
	if err == nil && !first {
		err = ErrPasskey.Because(errors.New("the challenge was answered before"))
	}
	return err
}

// OffersPasskeys reports whether browsers have passkeys for the service.
func (s *Service) OffersPasskeys() bool { return s.passkeys != nil }

// NewPasskey is a passkey that is to be made. Options are for navigator.credentials.create.
type NewPasskey struct {
	Factor
	Options json.RawMessage
}

// AddPasskey begins a passkey. It fails with [ErrNoPasskeys], or as [Service.AddFactor] does.
func (s *Service) AddPasskey(ctx context.Context, p Principal, name string) (NewPasskey, error) {
	if s.passkeys == nil {
		return NewPasskey{}, ErrNoPasskeys
	}
	user, _, err := s.Me(ctx, p)
	if err != nil {
		return NewPasskey{}, err
	}
	f := s.newFactor(user, FactorPasskey, name)
	confirmed, err := s.enrol(ctx, p, f)
	if err != nil {
		return NewPasskey{}, err
	}
	registered, err := s.passkeyKeys(confirmed)
	if err != nil {
		return NewPasskey{}, err
	}
	challenge, err := s.newPasskeyChallenge(passkeyToRegister(p, f.ID))
	if err != nil {
		return NewPasskey{}, err
	}
	options, err := s.passkeys.creationOptions(challenge, user, registered)
	return NewPasskey{f, options}, err
}

// ConfirmPasskey puts a passkey into use, by what navigator.credentials.create answered. It fails with [ErrPasskey],
// [ErrPasskeyKnown] or [ErrNoPasskeys], or as [Service.ConfirmFactor] does.
func (s *Service) ConfirmPasskey(ctx context.Context, p Principal, factor string, answer []byte, from Device) (codes []string, err error) {
	if s.passkeys == nil {
		return nil, ErrNoPasskeys
	}
	made, err := parseAttestation(answer)
	if err != nil {
		return nil, notAnAnswer("attestation", err)
	}
	return s.confirmFactor(ctx, p, FactorPasskey, factor, from, func(user User, f Factor, all []Factor) (Factor, error) {
		if _, err := s.openPasskeyChallenge(made.challenge, passkeyToRegister(p, f.ID)); err != nil {
			return f, err
		}
		key, counter, err := s.passkeys.register(made, user)
		if err != nil {
			return f, ErrPasskey.Because(err)
		}
		registered, err := s.passkeyKeys(all)
		if err != nil {
			return f, err
		}
		if slices.ContainsFunc(registered, func(k passkeyKey) bool { return k.is(key.ID) }) {
			return f, ErrPasskeyKnown
		}
		f.Counter = counter
		f.Secret, err = s.encryptJSON(key, secretContext(f))
		return f, err
	})
}

// notAnAnswer says that a field is not what a browser answers.
func notAnAnswer(field string, cause error) error {
	return fault.Fields(fault.Invalid, map[string]string{field: "must be what the browser answered, as JSON"}).Because(cause)
}

// passkeyKeys are those of the passkeys among a user's factors that are confirmed.
func (s *Service) passkeyKeys(all []Factor) ([]passkeyKey, error) {
	var keys []passkeyKey
	for _, f := range all {
		if f.Kind != FactorPasskey || !f.Confirmed() {
			continue
		}
		key, err := s.passkeyKey(f)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (s *Service) passkeyKey(f Factor) (key passkeyKey, err error) {
	err = s.decryptJSON(f.Secret, secretContext(f), &key)
	if err != nil {
		err = fmt.Errorf("second factor %s can't be decrypted: %w", f.ID, err)
	}
	return key, err
}

// assertionOptions are for navigator.credentials.get, or nil for a user without passkeys.
func (s *Service) assertionOptions(all []Factor, use passkeyUse) (json.RawMessage, error) {
	if s.passkeys == nil {
		return nil, nil
	}
	keys, err := s.passkeyKeys(all)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	challenge, err := s.newPasskeyChallenge(use)
	if err != nil {
		return nil, err
	}
	return s.passkeys.requestOptions(challenge, keys)
}

// checkAssertion finds the passkey among a user's factors that made an assertion, and returns it as it was and as it is to be saved.
// A refusal is the security event to record: of a passkey that may be cloned it comes with the factor, else with none and its cause.
func (s *Service) checkAssertion(user User, all []Factor, a assertion) (was, is Factor, refused ledger.Type, cause, err error) {
	for _, f := range all {
		if f.Kind != FactorPasskey || !f.Confirmed() {
			continue
		}
		key, err := s.passkeyKey(f)
		if err != nil {
			return was, is, "", nil, err
		}
		if !key.is(a.key) {
			continue
		}
		counter, cloned, err := s.passkeys.verify(a, user, key, f.Counter)
		switch {
		case err != nil:
			return was, is, ledger.AccountPasskeyRefused, err, nil
		case cloned:
			return f, f, ledger.AccountPasskeyCloned, nil, nil
		}
		is = f
		is.Counter = counter
		return f, is, "", nil, nil
	}
	return was, is, ledger.AccountPasskeyRefused, errors.New("the user has no such passkey"), nil
}

// usePasskey uses up an answer of a passkey. If it is wrong, refused is the security event to record.
func (s *Service) usePasskey(ctx context.Context, tx Tx, user User, all []Factor, answer []byte, use passkeyUse) (refused ledger.Type, err error) {
	if s.passkeys == nil {
		return "", ErrNoPasskeys
	}
	a, err := parseAssertion(answer)
	if err != nil {
		return "", notAnAnswer("assertion", err)
	}
	challenge, err := s.openPasskeyChallenge(a.challenge, use)
	if err != nil {
		return "", err
	}
	was, is, refused, cause, err := s.checkAssertion(user, all, a)
	if err != nil {
		return "", err
	}
	if refused == "" || refused == ledger.AccountPasskeyCloned { // an answer that is sent once more is no clone's
		if err := challenge.use(ctx, tx); err != nil {
			return "", err
		}
	}
	if refused != "" {
		s.o.Logger.InfoContext(ctx, "passkey refused", slog.String("user_id", user.ID), slog.Any("cause", cause))
		return refused, nil
	}
	if saved, err := tx.SaveFactor(ctx, was, is); err != nil || !saved {
		return "", orElse(err, ErrPasskey)
	}
	return "", nil
}

// PasskeyOptions are for navigator.credentials.get, to sign in with a passkey alone. They are the same for everybody but for
// their challenge. It fails with [ErrNoPasskeys].
func (s *Service) PasskeyOptions() (json.RawMessage, error) {
	if s.passkeys == nil {
		return nil, ErrNoPasskeys
	}
	challenge, err := s.newPasskeyChallenge(passkeyToSignIn)
	if err != nil {
		return nil, err
	}
	return s.passkeys.requestOptions(challenge, nil)
}

// LoginPasskey signs a user in by a passkey alone. The passkey verified who holds it, so it counts as two factors. It fails with
// [ErrSignInPasskey], which does not tell an unknown user from a wrong signature or a suspended account, with [ErrNoPasskeys] or
// with [ErrThrottled].
func (s *Service) LoginPasskey(ctx context.Context, answer []byte, from Device) (SignIn, error) {
	if s.passkeys == nil {
		return SignIn{}, ErrNoPasskeys
	}
	t := try{action: passkeySignIn, address: from.site()}
	attempt, err := s.countCode(ctx, t)
	if err != nil {
		return SignIn{}, err
	}
	in, err := s.loginPasskey(ctx, answer, from, attempt)
	switch {
	case err == nil:
		s.o.Tried(string(t.action), outcomeRight)
		s.o.Logger.InfoContext(ctx, "signed in", slog.String("user_id", in.User.ID), slog.String("address", from.Address), slog.Bool("passkey", true))
	case errors.Is(err, ErrPasskey):
		s.o.Tried(string(t.action), outcomeWrong)
		s.o.Logger.InfoContext(ctx, "sign-in refused", slog.String("address", from.Address), slog.Bool("passkey", true), slog.Any("cause", errors.Unwrap(err)))
		err = ErrSignInPasskey
	}
	return in, err
}

// loginPasskey fails with [ErrPasskey] and the cause.
func (s *Service) loginPasskey(ctx context.Context, answer []byte, from Device, tried attempt) (SignIn, error) {
	a, err := parseAssertion(answer)
	if err != nil {
		return SignIn{}, notAnAnswer("assertion", err)
	}
	challenge, err := s.openPasskeyChallenge(a.challenge, passkeyToSignIn)
	if err != nil {
		return SignIn{}, err
	}
	user, found, err := s.o.Store.UserByID(ctx, a.user)
	if err = s.refuseTampered(ctx, err, ErrPasskey, tamperedUser, slog.String("user_id", user.ID)); err != nil {
		return SignIn{}, err
	}
	if !found || user.Suspended {
		return SignIn{}, ErrPasskey.Because(errors.New("there is no such user, or it is suspended"))
	}
	now := s.o.Now()
	session := newSession(user.ID, now, from, MethodPasskey)
	signIn, err := s.signInto(user, session.ID, session.Counter, now)
	if err != nil {
		return SignIn{}, err
	}
	if signIn.DeviceToken, err = s.deviceToken(user, s.recognize(user, from, now), now); err != nil {
		return SignIn{}, err
	}
	var refusal error
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		refusal = nil
		if unchanged, err := tx.UserUnchanged(ctx, user.ID, user.PasswordHash); err != nil || !unchanged {
			return orElse(err, ErrPasskey.Because(errUserChanged))
		}
		all, err := s.factorsOf(ctx, tx, user.ID)
		if err != nil {
			return err
		}
		was, is, refused, cause, err := s.checkAssertion(user, all, a)
		if err == nil && (refused == "" || refused == ledger.AccountPasskeyCloned) { // an answer that is sent once more is no clone's
			err = challenge.use(ctx, tx)
		}
		switch {
		case err != nil:
			return err
		case refused == ledger.AccountPasskeyCloned: // is committed: the owner of the account sees it
			refusal = ErrPasskey.Because(errors.New("the passkey may be cloned: its counter did not grow"))
			return s.record(ctx, tx, user.ID, refused, from, "for", "sign-in", "factor", was.ID)
		case refused != "": // anybody can send this, so it is no event of the user's
			return ErrPasskey.Because(cause)
		}
		if saved, err := tx.SaveFactor(ctx, was, is); err != nil || !saved {
			return orElse(err, ErrPasskey)
		}
		if err := tried.forgive(ctx, tx); err != nil {
			return err
		}
		return tx.InsertSession(ctx, session)
	})
	if err = orElse(err, refusal); err != nil {
		return SignIn{}, err
	}
	return signIn, nil
}
