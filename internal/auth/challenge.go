package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
)

// What a sign-in in two steps fails with.
var (
	// ErrSecondFactor answers a first proof that was right. Its details have the challenge that the second proof answers.
	ErrSecondFactor  = fault.New(fault.Unauthenticated, "second_factor_required", "Confirm with your second factor to finish signing in.")
	ErrChallenge     = fault.New(fault.Unauthenticated, "invalid_challenge", "This sign-in took too long, or was finished already. Sign in again.")
	ErrSignInCode    = fault.New(fault.Unauthenticated, "wrong_code", ErrFactorCode.Message)
	ErrSignInPasskey = fault.New(fault.Unauthenticated, "invalid_passkey", ErrPasskey.Message)
)

// ChallengeLife is how long a user may take to answer a challenge.
const ChallengeLife = 5 * time.Minute

const challengePurpose = "bursar sign-in challenge v1"

// challenge is a sign-in whose first proof was right. It is encrypted and given to the client; nothing of it is stored.
type challenge struct {
	User string `json:"u"`
	// Password binds it to the present password hash, so that a change of the password ends it.
	Password string    `json:"p"`
	Method   string    `json:"m"`
	Nonce    string    `json:"n"`
	At       time.Time `json:"t"`
	// Identity is the one of a sign-in through a provider: it ends with the link. ToLink says that the identity may sign in to the account from now
	// on, once the second proof is there.
	Identity *challengeIdentity `json:"l,omitempty"`
	ToLink   bool               `json:"k,omitempty"`
}

type challengeIdentity struct {
	Issuer  string `json:"i"`
	Subject string `json:"s"`
	Email   string `json:"e"`
}

const nonceDigits = 22 // of base 62, so about 128 bits

func passwordBinding(hash string) string {
	sum := sha256.Sum256([]byte("bursar password binding v1\n" + hash))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// challenge asks for the second proof, as a failure of the sign-in. Its details have what the proof can be made of.
func (s *Service) challenge(user User, method string, all []Factor, who *Identity, toLink bool) error {
	c := challenge{User: user.ID, Password: passwordBinding(user.PasswordHash), Method: method, Nonce: id.Random(nonceDigits), At: s.o.Now(), ToLink: toLink}
	if who != nil {
		c.Identity = &challengeIdentity{who.Issuer, who.Subject, who.Email}
	}
	encrypted, err := s.encryptJSON(c, challengePurpose)
	if err != nil {
		return err
	}
	f := *ErrSecondFactor
	f.Details, err = s.methodDetails(all, c.passkeyUse())
	if err != nil {
		return err
	}
	f.Details["challenge"] = encrypted
	return &f
}

// passkeyUse is what a passkey that answers the challenge signs for.
func (c challenge) passkeyUse() passkeyUse { return passkeyUse{"second step", c.User, c.Nonce} }

// methodDetails says what a second proof can be made of. The options of a passkey are JSON in a text, as details are texts.
func (s *Service) methodDetails(all []Factor, use passkeyUse) (map[string]string, error) {
	details := map[string]string{"methods": strings.Join(methods(all), " ")}
	options, err := s.assertionOptions(all, use)
	if err != nil {
		return nil, err
	}
	if options != nil {
		details["options"] = string(options)
	}
	return details, nil
}

// methods lists what a second proof can be made of.
func methods(all []Factor) []string {
	var names []string
	for _, m := range []struct {
		kind FactorKind
		name string
	}{{FactorTOTP, "totp"}, {FactorPasskey, "passkey"}, {FactorRecovery, "recovery_code"}} {
		if slices.ContainsFunc(all, func(f Factor) bool { return f.Kind == m.kind && f.Confirmed() }) {
			names = append(names, m.name)
		}
	}
	return names
}

// SecondStepMethods says what can answer a challenge: a code of an app, and the passkeys that its options name, if there are any.
// It fails with [ErrChallenge].
func (s *Service) SecondStepMethods(ctx context.Context, encrypted string) (byApp bool, options json.RawMessage, err error) {
	c, err := s.openChallenge(encrypted)
	if err != nil {
		return false, nil, err
	}
	all, err := s.o.Store.FactorsOf(ctx, c.User)
	if err != nil {
		return false, nil, err
	}
	options, err = s.assertionOptions(all, c.passkeyUse())
	return slices.Contains(methods(all), "totp"), options, err
}

// openChallenge fails with [ErrChallenge].
func (s *Service) openChallenge(encrypted string) (c challenge, err error) {
	err = s.decryptJSON(encrypted, challengePurpose, &c)
	if err != nil || !s.o.Now().Before(c.At.Add(ChallengeLife)) {
		return c, ErrChallenge
	}
	return c, nil
}

// SecondStep answers a challenge.
type SecondStep struct {
	Challenge string
	SecondProof
	Device Device
}

// LoginFactor ends a sign-in in two steps. It fails with [ErrChallenge], [ErrSignInCode], [ErrSignInPasskey] or [ErrThrottled].
func (s *Service) LoginFactor(ctx context.Context, r SecondStep) (SignIn, error) {
	c, err := s.openChallenge(r.Challenge)
	if err != nil {
		return SignIn{}, err
	}
	user, found, err := s.o.Store.UserByID(ctx, c.User)
	if err = s.refuseTampered(ctx, err, ErrChallenge, tamperedUser, slog.String("user_id", user.ID)); err != nil {
		return SignIn{}, err
	}
	if !found || user.Suspended || passwordBinding(user.PasswordHash) != c.Password {
		return SignIn{}, ErrChallenge
	}
	t := s.codeTry(user, r.Device, "")
	t.challenge = c.Nonce
	a, err := s.countCode(ctx, t)
	if err != nil {
		return SignIn{}, err
	}
	now := s.o.Now()
	method, refusal := MethodCode, ErrSignInCode
	if r.Assertion != nil {
		method, refusal = MethodPasskey, ErrSignInPasskey
	}
	session := newSession(user.ID, now, r.Device, c.Method, method)
	signIn, err := s.signInto(user, session.ID, session.Counter, now)
	if err != nil {
		return SignIn{}, err
	}
	if signIn.DeviceToken, err = s.deviceToken(user, t.device, now); err != nil {
		return SignIn{}, err
	}
	wrong := false
	err = s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		wrong, err = s.answer(ctx, tx, user, c, r)
		if err != nil || wrong {
			return err
		}
		if err := a.forgive(ctx, tx); err != nil {
			return err
		}
		return tx.InsertSession(ctx, session)
	})
	if err == nil && wrong {
		s.o.Tried(string(t.action), outcomeWrong)
		s.o.Logger.InfoContext(ctx, "sign-in refused", slog.String("user_id", user.ID), slog.String("address", r.Device.Address), slog.Bool("second_factor", true))
		err = refusal
	}
	if errors.Is(err, ErrPasskey) {
		err = refusal.Because(errors.Unwrap(err))
	}
	if err != nil {
		return SignIn{}, err
	}
	s.o.Tried(string(t.action), outcomeRight)
	s.o.Logger.InfoContext(ctx, "signed in", slog.String("user_id", user.ID), slog.String("address", r.Device.Address), slog.Bool("second_factor", true))
	return signIn, nil
}

// answer uses up a challenge and a second proof. A wrong one is recorded, because the caller knows the password: that is to be
// committed.
func (s *Service) answer(ctx context.Context, tx Tx, user User, c challenge, r SecondStep) (wrong bool, err error) {
	if unchanged, err := tx.UserUnchanged(ctx, user.ID, user.PasswordHash); err != nil || !unchanged {
		return false, orElse(err, ErrChallenge)
	}
	all, err := s.factorsOf(ctx, tx, user.ID)
	if err != nil {
		return false, err
	}
	kind, refused, err := s.useFactor(ctx, tx, user, all, r.SecondProof, c.passkeyUse())
	if err != nil {
		return false, err
	}
	if refused != "" {
		return true, s.record(ctx, tx, user.ID, refused, r.Device, "for", "sign-in")
	}
	first, err := useOnce(ctx, tx, "challenge:"+c.Nonce, c.At.Add(ChallengeLife))
	if err != nil || !first {
		return false, orElse(err, ErrChallenge)
	}
	if kind == FactorRecovery {
		if err := s.record(ctx, tx, user.ID, ledger.AccountRecoveryCodeUsed, r.Device); err != nil {
			return false, err
		}
	}
	return false, s.answerByIdentity(ctx, tx, user, c, r.Device)
}

// answerByIdentity wants the identity of a challenge, if it has one, to be the user's still, and links it if it is to be linked. It fails with
// [ErrChallenge] if the account's address is another one by now, its user an admin, or the identity was unlinked or linked to another user meanwhile.
func (s *Service) answerByIdentity(ctx context.Context, tx Tx, user User, c challenge, from Device) error {
	if c.Identity == nil {
		return nil
	}
	who := *c.Identity
	owner, linked, err := tx.UserByIdentity(ctx, who.Issuer, who.Subject)
	if err = s.refuseTampered(ctx, err, ErrChallenge, tamperedIdentity, slog.String("user", owner.ID), slog.String("issuer", who.Issuer)); err != nil || linked && owner.ID == user.ID {
		return err
	}
	user, found, err := tx.UserForUpdate(ctx, user.ID)
	if err != nil {
		return err
	}
	if !c.ToLink || linked || !found || !user.Verified || user.Role == Admin || EmailKey(user.Email) != EmailKey(who.Email) {
		return ErrChallenge
	}
	added, err := tx.AddIdentity(ctx, user.ID, Identity{Issuer: who.Issuer, Subject: who.Subject, Email: who.Email}, s.o.Now())
	if err != nil || !added {
		return orElse(err, ErrChallenge)
	}
	return s.notifyIdentity(ctx, tx, user.ID, ledger.AccountIdentityLinked, who.Issuer, from)
}

// orElse is err, or what a condition that does not hold fails with.
func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// codeTry is an attempt at a code of the user's. In a live session it counts as one of a known device, so that nobody else can
// use its tries up.
func (s *Service) codeTry(user User, from Device, session string) try {
	return try{action: guessCode, account: user.ID, device: cmp.Or(s.recognize(user, from, s.o.Now()), session), address: from.site()}
}

// countCode counts an attempt at a code before the code is looked at, or fails with [ErrThrottled]. No place to hash is
// needed.
func (s *Service) countCode(ctx context.Context, t try) (attempt, error) {
	if err := s.refuseIfFull(ctx, t); err != nil {
		return attempt{}, err
	}
	return s.count(ctx, t)
}
