package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/pquerna/otp/totp"

	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/limits"
	"bursar/internal/mail"
)

// FactorKind is what a second factor is.
type FactorKind string

// Kinds of factors. The recovery codes of a user are one factor, which is there while another is.
const (
	FactorTOTP     FactorKind = "totp"    // RFC 6238: an app that shows six digits, others every 30 seconds
	FactorPasskey  FactorKind = "passkey" // WebAuthn: a key pair that a device or a password manager keeps
	FactorRecovery FactorKind = "recovery"
)

// Factor is a second factor of a user.
type Factor struct {
	ID     string // prefix "fac_"
	UserID string
	Kind   FactorKind
	// Name is what the user calls it; it may be empty.
	Name string
	// Secret is encrypted; of recovery codes it is the hashes of those that are left, separated by blanks. Of a passkey that is not
	// confirmed it is empty.
	Secret string
	// Counter is the time step of the last code that was taken, so that no code is taken twice. Of a passkey it is the signature
	// counter, which is zero for ever where a key is on many devices.
	Counter   int64
	CreatedAt time.Time
	// ConfirmedAt is when the user proved that the factor works; zero before, when it protects nothing.
	ConfirmedAt time.Time
}

// Confirmed reports whether the factor is asked for at sign-in.
func (f Factor) Confirmed() bool { return !f.ConfirmedAt.IsZero() }

// What changes of factors fail with.
var (
	ErrFactorNotFound  = fault.New(fault.NotFound, "factor_not_found", "You have no second factor with this id.")
	ErrFactorConfirmed = fault.New(fault.Refused, "factor_confirmed", "This second factor is confirmed already.")
	ErrTooManyFactors  = fault.New(fault.Refused, "too_many_factors", "You have as many second factors as there may be. Remove one first.")
	ErrFactorCode      = fault.New(fault.Refused, "wrong_code", "This code is wrong, was used already, or is too old. Enter the one that is shown now.")
)

const (
	factorPrefix = "fac_"
	maxApps      = 5 // each is one more code that a guess may meet
	maxPasskeys  = 10
	totpPeriod   = 30
	// A code of the step before or after is taken too: clocks differ.
	totpSkew = 1

	recoveryCodes = 10
	// 80 random bits in base32.
	recoveryCodeBytes = 10
)

// maxFactorName bounds what a user calls a factor, in characters.
const maxFactorName = 50

// CheckFactorName returns what is wrong with the name of a factor, or "".
func CheckFactorName(name string) string {
	if utf8.RuneCountInString(name) > maxFactorName || strings.ContainsFunc(name, limits.IsControl) {
		return fmt.Sprintf("must be at most %d characters, none of them control characters", maxFactorName)
	}
	return ""
}

func secretContext(f Factor) string { return "factors|secret|" + f.ID + "|" + f.UserID }

// NewFactor is a factor that is to be confirmed. Secret and URI are shown this once.
type NewFactor struct {
	Factor
	Secret, URI string
}

// AddFactor begins an authenticator app's enrolment. It protects nothing before it is confirmed. It fails with
// [ErrTooManyFactors], with [ErrToken], or with [ErrStepUp] if there is no proof for factor.add, and the user has a factor already or
// signed in a while ago; without a password, with [ErrStaleSignIn].
func (s *Service) AddFactor(ctx context.Context, p Principal, name string) (NewFactor, error) {
	user, _, err := s.Me(ctx, p)
	if err != nil {
		return NewFactor{}, err
	}
	key, err := totp.Generate(totp.GenerateOpts{Issuer: s.host(), AccountName: user.Email, Period: totpPeriod, SecretSize: 20})
	if err != nil {
		return NewFactor{}, fmt.Errorf("make a secret: %w", err)
	}
	f := s.newFactor(user, FactorTOTP, name)
	if f.Secret, err = s.o.Encrypter.Encrypt(key.Secret(), secretContext(f)); err != nil {
		return NewFactor{}, fmt.Errorf("encrypt a secret: %w", err)
	}
	_, err = s.enrol(ctx, p, f)
	return NewFactor{f, key.Secret(), key.URL()}, err
}

func (s *Service) newFactor(user User, kind FactorKind, name string) Factor {
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	return Factor{ID: id.New(factorPrefix, now), UserID: user.ID, Kind: kind, Name: name, CreatedAt: now}
}

// enrol adds a factor that is to be confirmed, and returns those that are. It fails as [Service.AddFactor] does.
func (s *Service) enrol(ctx context.Context, p Principal, f Factor) (confirmed []Factor, err error) {
	if problem := CheckFactorName(f.Name); problem != "" {
		return nil, fault.Field("name", problem)
	}
	most := maxApps
	if f.Kind == FactorPasskey {
		most = maxPasskeys
	}
	err = s.changeFactors(ctx, p, func(tx Tx, user User, all []Factor) error {
		if err := s.mayAddWayIn(ctx, tx, p, user, all, ActionAddFactor); err != nil {
			return err
		}
		same := 0
		confirmed = nil
		for _, other := range all {
			if other.Confirmed() {
				confirmed = append(confirmed, other)
				if other.Kind == f.Kind {
					same++
				}
			} else if err := tx.DeleteFactor(ctx, other); err != nil { // its enrolment was given up
				return err
			}
		}
		if same >= most {
			return ErrTooManyFactors
		}
		return tx.InsertFactor(ctx, f)
	})
	return confirmed, err
}

// mayAddWayIn keeps a stolen session from adding a way in that stays, as a second factor or another e-mail address is: the user has
// to have proved who they are, a short time ago or for this. It fails with [ErrStepUp] or [ErrStaleSignIn].
func (s *Service) mayAddWayIn(ctx context.Context, tx Tx, p Principal, user User, all []Factor, a Action, to ...string) error {
	if hasFactor(all) {
		return s.useProof(ctx, tx, p, all, a, to...)
	}
	session, _, err := tx.Session(ctx, p.Session)
	if err != nil || isFresh(session.AuthenticatedAt, s.o.Now()) {
		return err
	}
	if user.PasswordHash == "" {
		return stale(session)
	}
	return s.useProof(ctx, tx, p, all, a, to...)
}

// host is how authenticator apps name the service.
func (s *Service) host() string {
	_, host, _ := strings.Cut(s.o.Issuer, "://")
	return host
}

// changeFactors runs a change of the user's factors while nobody else changes them, if the session that asks is alive.
func (s *Service) changeFactors(ctx context.Context, p Principal, change func(tx Tx, user User, all []Factor) error) error {
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		user, err := s.userOfSession(ctx, tx, p)
		if err != nil {
			return err
		}
		all, err := s.factorsOf(ctx, tx, user.ID)
		if err != nil {
			return err
		}
		return change(tx, user, all)
	})
}

// factorsOf lists a user's factors. It alerts the operator of one that was changed outside the service.
func (s *Service) factorsOf(ctx context.Context, tx ProofTx, userID string) ([]Factor, error) {
	all, err := tx.Factors(ctx, userID)
	if errors.Is(err, ErrTampered) {
		s.tampered(ctx, tamperedFactor, slog.String("user_id", userID))
	}
	return all, err
}

// ConfirmFactor puts an authenticator app into use, if code is one of its codes. With the first factor the user gets recovery codes,
// which are shown this once. It fails with [ErrFactorNotFound], [ErrFactorConfirmed], [ErrFactorCode], [ErrThrottled] or [ErrToken].
func (s *Service) ConfirmFactor(ctx context.Context, p Principal, factor, code string, from Device) (codes []string, err error) {
	return s.confirmFactor(ctx, p, FactorTOTP, factor, from, func(_ User, f Factor, _ []Factor) (Factor, error) {
		step, right, err := s.checkTOTP(f, code, s.o.Now())
		if err == nil && !right {
			err = ErrFactorCode
		}
		f.Counter = step
		return f, err
	})
}

// confirmFactor puts a factor into use, as prove returns it.
func (s *Service) confirmFactor(
	ctx context.Context, p Principal, kind FactorKind, factor string, from Device, prove func(user User, f Factor, all []Factor) (Factor, error),
) (codes []string, err error) {
	user, _, err := s.Me(ctx, p)
	if err != nil {
		return nil, err
	}
	a, err := s.countCode(ctx, s.codeTry(user, from, p.Session))
	if err != nil {
		return nil, err
	}
	err = s.changeFactors(ctx, p, func(tx Tx, user User, all []Factor) error {
		now := s.o.Now().UTC().Truncate(time.Microsecond) // with the user locked, so that it is after an earlier change
		codes = nil
		i := slices.IndexFunc(all, func(f Factor) bool { return f.ID == factor && f.Kind == kind })
		if i < 0 {
			return ErrFactorNotFound
		}
		was := all[i]
		if was.Confirmed() {
			return ErrFactorConfirmed
		}
		if !isFresh(was.CreatedAt, now) { // the sign-in or the proof with which it was begun is not fresh any more
			return ErrFactorNotFound
		}
		f, err := prove(user, was, all)
		if err != nil {
			return err
		}
		f.ConfirmedAt = now
		if saved, err := tx.SaveFactor(ctx, was, f); err != nil || !saved {
			return orElse(err, ErrFactorConfirmed)
		}
		if !hasFactor(all) {
			recovery := Factor{ID: id.New(factorPrefix, now), UserID: user.ID, Kind: FactorRecovery, CreatedAt: now, ConfirmedAt: now}
			codes, recovery.Secret = newRecoveryCodes()
			if err := tx.InsertFactor(ctx, recovery); err != nil {
				return err
			}
		}
		if err := tx.DeleteMailTokens(ctx, user.ID, confirmEmail); err != nil { // from now on a change needs a proof
			return err
		}
		if err := a.forgive(ctx, tx); err != nil {
			return err
		}
		if hasFactor(all) {
			return s.notifyFactor(ctx, tx, user, ledger.AccountFactorAdded, f, from, time.Time{})
		}
		return s.notifyFirstFactor(ctx, tx, user, f, from)
	})
	if err != nil {
		return nil, err
	}
	s.o.Logger.InfoContext(ctx, "second factor added", slog.String("user_id", user.ID), slog.String("factor", factor), slog.String("kind", string(kind)))
	return codes, nil
}

// RemoveFactor takes a factor out of use, and with the last one the recovery codes. Payouts are on hold afterwards. It fails
// with [ErrFactorNotFound], with [ErrStepUp] without a proof for factor.remove of this factor, or with [ErrToken].
func (s *Service) RemoveFactor(ctx context.Context, p Principal, factor string, from Device) error {
	err := s.changeFactors(ctx, p, func(tx Tx, user User, all []Factor) error {
		i := slices.IndexFunc(all, func(f Factor) bool { return f.ID == factor && f.Kind != FactorRecovery })
		if i < 0 {
			return ErrFactorNotFound
		}
		removed := all[i]
		if !removed.Confirmed() {
			return tx.DeleteFactor(ctx, removed)
		}
		if err := s.requireProof(ctx, tx, p, all, ActionRemoveFactor, factor); err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(all), func(f Factor) bool { return f.ID == factor || f.Kind == FactorRecovery || !f.Confirmed() })
		for _, f := range all {
			if f.ID == factor || len(left) == 0 && f.Kind == FactorRecovery {
				if err := tx.DeleteFactor(ctx, f); err != nil {
					return err
				}
			}
		}
		until, err := s.holdPayouts(ctx, tx, user, ledger.HoldFactorRemoved)
		if err != nil {
			return err
		}
		return s.notifyFactor(ctx, tx, user, ledger.AccountFactorRemoved, removed, from, until)
	})
	if err == nil {
		s.o.Logger.InfoContext(ctx, "second factor removed", slog.String("user_id", p.UserID), slog.String("factor", factor))
	}
	return err
}

// CheckUndoFactor fails with [ErrMailToken] unless a token removes a user's factors.
func (s *Service) CheckUndoFactor(ctx context.Context, token string) error {
	_, err := s.mailToken(ctx, token, UndoFactor)
	return err
}

// UndoFactors removes all second factors of the user whose first one was mailed with a token, and ends all sessions. Payouts are on
// hold afterwards. It fails with [ErrMailToken].
func (s *Service) UndoFactors(ctx context.Context, token string, from Device) error {
	t, err := s.mailToken(ctx, token, UndoFactor)
	if err != nil {
		return err
	}
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		u, err := s.useMailToken(ctx, tx, t)
		if err != nil {
			return err
		}
		if err := tx.DeleteMailTokens(ctx, u.ID, UndoFactor); err != nil {
			return err
		}
		if err := s.endSessions(ctx, tx, u.ID, "", endedByUndoFactor); err != nil {
			return err
		}
		if err := s.removeFactorsSince(ctx, tx, u, time.Time{}, from); err != nil { // the journal is locked last
			return err
		}
		until, err := s.holdPayouts(ctx, tx, u, ledger.HoldFactorRemoved)
		if err != nil {
			return err
		}
		_, err = s.o.Mails.Queue(ctx, tx, mail.Mail{User: u.ID, Data: mail.FactorChanged{
			Origin: from.origin(s.o.Now()), All: true, HoldUntil: until,
		}})
		return err
	})
	if err == nil {
		s.o.Logger.WarnContext(ctx, "second factors removed by the mailed link", slog.String("user_id", t.UserID))
	}
	return err
}

// removeFactorsSince removes the factors that a user confirmed at an instant or later, and with the last one the recovery codes. The
// caller has locked the user.
func (s *Service) removeFactorsSince(ctx context.Context, tx Tx, user User, since time.Time, from Device) error {
	all, err := s.factorsOf(ctx, tx, user.ID)
	if err != nil {
		return err
	}
	stays := func(f Factor) bool { return f.Kind != FactorRecovery && f.Confirmed() && f.ConfirmedAt.Before(since) }
	last := !slices.ContainsFunc(all, stays)
	for _, f := range all {
		if stays(f) || f.Kind == FactorRecovery && !last {
			continue
		}
		if err := tx.DeleteFactor(ctx, f); err != nil {
			return err
		}
		if f.Kind == FactorRecovery || !f.Confirmed() {
			continue
		}
		if err := s.recordFactor(ctx, tx, user, ledger.AccountFactorRemoved, f, from); err != nil {
			return err
		}
	}
	return nil
}

// clearFactors removes all of a user's factors: they are another person's, or an operator resets the account.
func (s *Service) clearFactors(ctx context.Context, tx Tx, userID string, from Device) error {
	if cleared, err := tx.ClearFactors(ctx, userID); err != nil || !cleared {
		return err
	}
	return s.record(ctx, tx, userID, ledger.AccountFactorsCleared, from)
}

// holdPayouts puts a seller's payouts on hold after a change of the sign-in that the user made, and returns until when.
func (s *Service) holdPayouts(ctx context.Context, tx Tx, user User, why ledger.HoldReason) (time.Time, error) {
	return s.holdPayoutsBy(ctx, tx, ledger.ActorUser+user.ID, user, why)
}

func (s *Service) holdPayoutsBy(ctx context.Context, tx Tx, actor string, user User, why ledger.HoldReason) (time.Time, error) {
	if !user.Role.CanUsePayouts() {
		return time.Time{}, nil
	}
	return s.holdMoney(ctx, tx, actor, user.ID, why)
}

// holdMoney is holdPayoutsBy for a user who may be no seller at the moment.
func (s *Service) holdMoney(ctx context.Context, tx Tx, actor, userID string, why ledger.HoldReason) (time.Time, error) {
	if s.o.CoolDown == 0 {
		return time.Time{}, nil
	}
	now := s.o.Now()
	p, err := ledger.HoldPosting(userID, actor, why, now, now.Add(s.o.CoolDown))
	if err != nil {
		return time.Time{}, err
	}
	e, err := tx.Append(ctx, p)
	return e.After.Hold(now), err
}

// notifyFirstFactor records the user's first factor, and mails it with a link that removes it: no proof was asked for.
func (s *Service) notifyFirstFactor(ctx context.Context, tx Tx, user User, f Factor, from Device) error {
	if err := s.recordFactor(ctx, tx, user, ledger.AccountFactorAdded, f, from); err != nil {
		return err
	}
	text, t := newMailToken(UndoFactor, user.ID, from, s.o.Now(), mail.UndoLife)
	return s.queueToken(ctx, tx, t, mail.Mail{User: user.ID, Data: mail.FirstFactor{
		Request: t.request(), Passkey: f.Kind == FactorPasskey, Token: text,
	}})
}

func (s *Service) recordFactor(ctx context.Context, tx Tx, user User, what ledger.Type, f Factor, from Device) error {
	return s.record(ctx, tx, user.ID, what, from, "factor", f.ID, "kind", f.Kind)
}

// notifyFactor records a change of the user's factors, and mails it.
func (s *Service) notifyFactor(ctx context.Context, tx Tx, user User, what ledger.Type, f Factor, from Device, holdUntil time.Time) error {
	if err := s.recordFactor(ctx, tx, user, what, f, from); err != nil {
		return err
	}
	_, err := s.o.Mails.Queue(ctx, tx, mail.Mail{User: user.ID, Data: mail.FactorChanged{
		Origin: from.origin(s.o.Now()), Added: what == ledger.AccountFactorAdded, Passkey: f.Kind == FactorPasskey, HoldUntil: holdUntil,
	}})
	return err
}

// Factors lists the user's factors, the oldest first, without their secrets, and how many recovery codes are left.
func (s *Service) Factors(ctx context.Context, p Principal) (factors []Factor, recoveryCodesLeft int, err error) {
	all, err := s.o.Store.FactorsOf(ctx, p.UserID)
	for _, f := range all {
		if f.Kind == FactorRecovery {
			recoveryCodesLeft = len(strings.Fields(f.Secret))
			continue
		}
		f.Secret = ""
		factors = append(factors, f)
	}
	return factors, recoveryCodesLeft, err
}

// hasFactor reports whether a second proof is asked for.
func hasFactor(all []Factor) bool { return slices.ContainsFunc(all, Factor.Confirmed) }

// SecondProof is what a user proves a second factor with: one of the three.
type SecondProof struct {
	Code, RecoveryCode string
	// Assertion is what navigator.credentials.get answered, as JSON.
	Assertion []byte
}

// Empty reports whether there is nothing to prove with.
func (given SecondProof) Empty() bool {
	return given.Code == "" && given.RecoveryCode == "" && given.Assertion == nil
}

// useFactor uses up a second proof. If it is wrong, refused is the security event to record. An assertion has to be for use. It fails
// with [ErrPasskey] for an assertion that answers another challenge, or one too late.
func (s *Service) useFactor(ctx context.Context, tx Tx, user User, all []Factor, given SecondProof, use passkeyUse) (kind FactorKind, refused ledger.Type, err error) {
	if given.Assertion != nil {
		refused, err = s.usePasskey(ctx, tx, user, all, given.Assertion, use)
		return FactorPasskey, refused, err
	}
	now := s.o.Now()
	for _, was := range all {
		f := was
		switch {
		case !f.Confirmed():
			continue
		case f.Kind == FactorTOTP && given.Code != "":
			step, right, err := s.checkTOTP(f, given.Code, now)
			if err != nil {
				return "", "", err
			}
			if !right {
				continue
			}
			f.Counter = step
		case f.Kind == FactorRecovery && given.RecoveryCode != "":
			left := strings.Fields(f.Secret)
			i := slices.Index(left, hashRecoveryCode(given.RecoveryCode)) // of 80 random bits, so timing tells nothing
			if i < 0 {
				continue
			}
			f.Secret = strings.Join(slices.Delete(left, i, i+1), " ")
		default:
			continue
		}
		saved, err := tx.SaveFactor(ctx, was, f)
		if err != nil || saved {
			return f.Kind, "", err
		}
	}
	return "", ledger.AccountCodeRefused, nil
}

// checkTOTP reports whether a code is one of now or of a step beside it, later than the last that was taken, and its step.
func (s *Service) checkTOTP(f Factor, code string, now time.Time) (step int64, right bool, err error) {
	secret, err := s.o.Encrypter.Decrypt(f.Secret, secretContext(f))
	if err != nil {
		return 0, false, fmt.Errorf("second factor %s can't be decrypted: %w", f.ID, err)
	}
	current := now.Unix() / totpPeriod
	for at := current - totpSkew; at <= current+totpSkew; at++ {
		want, err := hotp.GenerateCodeCustom(secret, uint64(at), hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
		if err != nil {
			return 0, false, fmt.Errorf("second factor %s: %w", f.ID, err)
		}
		if at > f.Counter && subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
			return at, true, nil
		}
	}
	return 0, false, nil
}

var recoveryEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// newRecoveryCodes makes recovery codes, and what is stored of them.
func newRecoveryCodes() (codes []string, stored string) {
	hashes := make([]string, recoveryCodes)
	codes = make([]string, recoveryCodes)
	for i := range codes {
		text := recoveryEncoding.EncodeToString(random(recoveryCodeBytes))
		codes[i] = strings.ToLower(text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:])
		hashes[i] = hashRecoveryCode(codes[i])
	}
	return codes, strings.Join(hashes, " ")
}

// hashRecoveryCode is what is stored of a code, however it is written.
func hashRecoveryCode(code string) string {
	plain := strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(code))
	sum := sha256.Sum256([]byte("bursar recovery code v1\n" + plain))
	return hex.EncodeToString(sum[:])
}
