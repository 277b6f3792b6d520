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

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/pquerna/otp/totp"

	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// FactorKind is what a second factor is.
type FactorKind string

// Kinds of factors. The recovery codes of a user are one factor, which is there while another is.
const (
	FactorTOTP     FactorKind = "totp" // RFC 6238: an app that shows six digits, others every 30 seconds
	FactorRecovery FactorKind = "recovery"
)

// Factor is a second factor of a user.
type Factor struct {
	ID     string // prefix "fac_"
	UserID string
	Kind   FactorKind
	// Secret is encrypted; of recovery codes it is the hashes of those that are left, separated by blanks.
	Secret string
	// LastStep is the time step of the last code that was taken, so that no code is taken twice.
	LastStep  int64
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
	maxFactors   = 5
	totpPeriod   = 30
	// A code of the step before or after is taken too: clocks differ.
	totpSkew = 1

	recoveryCodes = 10
	// 80 random bits in base32.
	recoveryCodeBytes = 10
)

func secretContext(f Factor) string { return "factors|secret|" + f.ID + "|" + f.UserID }

// NewFactor is a factor that is to be confirmed. Secret and URI are shown this once.
type NewFactor struct {
	Factor
	Secret, URI string
}

// AddFactor begins an authenticator app's enrolment. It protects nothing before it is confirmed. It fails with
// [ErrTooManyFactors], with [ErrToken], or with [ErrStepUp] if there is no proof for factor.add, and the user has a factor already or
// signed in a while ago; without a password, with [ErrStaleSignIn].
func (s *Service) AddFactor(ctx context.Context, p Principal) (NewFactor, error) {
	user, _, err := s.Me(ctx, p)
	if err != nil {
		return NewFactor{}, err
	}
	key, err := totp.Generate(totp.GenerateOpts{Issuer: s.host(), AccountName: user.Email, Period: totpPeriod, SecretSize: 20})
	if err != nil {
		return NewFactor{}, fmt.Errorf("make a secret: %w", err)
	}
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	f := Factor{ID: id.New(factorPrefix, now), UserID: user.ID, Kind: FactorTOTP, CreatedAt: now}
	if f.Secret, err = s.o.Sealer.Seal(key.Secret(), secretContext(f)); err != nil {
		return NewFactor{}, fmt.Errorf("encrypt a secret: %w", err)
	}
	err = s.changeFactors(ctx, p, func(tx Tx, user User, all []Factor) error {
		if err := s.mayAddFactor(ctx, tx, p, user, all); err != nil {
			return err
		}
		confirmed := 0
		for _, other := range all {
			if other.Confirmed() {
				confirmed++
			} else if err := tx.DeleteFactor(ctx, other); err != nil { // its enrolment was given up
				return err
			}
		}
		if confirmed > maxFactors {
			return ErrTooManyFactors
		}
		return tx.InsertFactor(ctx, f)
	})
	return NewFactor{f, key.Secret(), key.URL()}, err
}

// mayAddFactor keeps a stolen session from adding a way in that stays: the user has to have proved who they are, a short time
// ago or for this.
func (s *Service) mayAddFactor(ctx context.Context, tx Tx, p Principal, user User, all []Factor) error {
	if hasFactor(all) {
		return s.requireProof(ctx, tx, p, all, ActionAddFactor)
	}
	session, _, _, err := tx.Session(ctx, p.Session)
	if err != nil || s.o.Now().Sub(session.AuthenticatedAt) < freshSignIn {
		return err
	}
	if user.PasswordHash == "" {
		return ErrStaleSignIn
	}
	return s.useProof(ctx, tx, p, false, ActionAddFactor)
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

// ConfirmFactor puts a factor into use, if code is one of its codes. With the first one the user gets recovery codes, which are shown this
// once. It fails with [ErrFactorNotFound], [ErrFactorConfirmed], [ErrFactorCode], [ErrThrottled] or [ErrToken].
func (s *Service) ConfirmFactor(ctx context.Context, p Principal, factor, code string, from Device) (codes []string, err error) {
	user, _, err := s.Me(ctx, p)
	if err != nil {
		return nil, err
	}
	a, err := s.countCode(ctx, s.codeTry(user, from, p.Session))
	if err != nil {
		return nil, err
	}
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	err = s.changeFactors(ctx, p, func(tx Tx, user User, all []Factor) error {
		codes = nil
		i := slices.IndexFunc(all, func(f Factor) bool { return f.ID == factor && f.Kind == FactorTOTP })
		if i < 0 {
			return ErrFactorNotFound
		}
		f := all[i]
		if f.Confirmed() {
			return ErrFactorConfirmed
		}
		step, right, err := s.checkTOTP(f, code, now)
		if err != nil {
			return err
		}
		if !right {
			return ErrFactorCode
		}
		f.LastStep, f.ConfirmedAt = step, now
		if err := tx.SaveFactor(ctx, f); err != nil {
			return err
		}
		if !slices.ContainsFunc(all, Factor.Confirmed) {
			recovery := Factor{ID: id.New(factorPrefix, now), UserID: user.ID, Kind: FactorRecovery, CreatedAt: now, ConfirmedAt: now}
			codes, recovery.Secret = newRecoveryCodes()
			if err := tx.InsertFactor(ctx, recovery); err != nil {
				return err
			}
		}
		if err := a.forgive(ctx, tx); err != nil {
			return err
		}
		return s.tellFactor(ctx, tx, user, ledger.AccountFactorAdded, f, from, time.Time{})
	})
	if err != nil {
		return nil, err
	}
	s.o.Logger.InfoContext(ctx, "second factor added", slog.String("user_id", user.ID), slog.String("factor", factor))
	return codes, nil
}

// RemoveFactor takes a factor out of use, and with the last one the recovery codes. Payouts are on hold afterwards. It fails
// with [ErrFactorNotFound], with [ErrStepUp] without a proof for factor.remove of this factor, or with [ErrToken].
func (s *Service) RemoveFactor(ctx context.Context, p Principal, factor string, from Device) error {
	err := s.changeFactors(ctx, p, func(tx Tx, user User, all []Factor) error {
		i := slices.IndexFunc(all, func(f Factor) bool { return f.ID == factor && f.Kind == FactorTOTP })
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
		return s.tellFactor(ctx, tx, user, ledger.AccountFactorRemoved, removed, from, until)
	})
	if err == nil {
		s.o.Logger.InfoContext(ctx, "second factor removed", slog.String("user_id", p.UserID), slog.String("factor", factor))
	}
	return err
}

// clearFactors removes all of a user's factors: they are another person's, or an operator resets the account.
func (s *Service) clearFactors(ctx context.Context, tx Tx, userID string, from Device) error {
	if cleared, err := tx.ClearFactors(ctx, userID); err != nil || !cleared {
		return err
	}
	return s.record(ctx, tx, userID, ledger.AccountFactorsCleared, from)
}

// holdPayouts puts a seller's payouts on hold after a change of the sign-in, and returns until when.
func (s *Service) holdPayouts(ctx context.Context, tx Tx, user User, why ledger.HoldReason) (time.Time, error) {
	if s.o.CoolDown == 0 || !user.Role.CanUsePayouts() {
		return time.Time{}, nil
	}
	now := s.o.Now()
	p, err := ledger.HoldPosting(user.ID, actorUser+user.ID, why, now, now.Add(s.o.CoolDown))
	if err != nil {
		return time.Time{}, err
	}
	e, err := tx.Append(ctx, p)
	return e.After.Hold(now), err
}

// tellFactor records a change of the user's factors, and mails it.
func (s *Service) tellFactor(ctx context.Context, tx Tx, user User, what ledger.Type, f Factor, from Device, holdUntil time.Time) error {
	if err := s.record(ctx, tx, user.ID, what, from, "factor", f.ID, "kind", f.Kind); err != nil {
		return err
	}
	_, err := s.o.Mails.Queue(ctx, tx, mail.Mail{User: user.ID, Data: mail.FactorChanged{
		At: s.o.Now(), Added: what == ledger.AccountFactorAdded, HoldUntil: holdUntil,
		Address: printable(from.Address, maxAddressBytes), Agent: printable(from.Agent, maxAgentBytes),
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

// useCode reports whether a code of an app, or a recovery code, proves who the user is, and uses it up.
func useCode(ctx context.Context, tx Tx, s *Service, all []Factor, code, recoveryCode string) (kind FactorKind, right bool, err error) {
	now := s.o.Now()
	for _, f := range all {
		if !f.Confirmed() {
			continue
		}
		switch {
		case f.Kind == FactorTOTP && code != "":
			step, isRight, err := s.checkTOTP(f, code, now)
			if err != nil {
				return "", false, err
			}
			if isRight {
				f.LastStep = step
				return f.Kind, true, tx.SaveFactor(ctx, f)
			}
		case f.Kind == FactorRecovery && recoveryCode != "":
			left := strings.Fields(f.Secret)
			if i := slices.Index(left, hashRecoveryCode(recoveryCode)); i >= 0 { // of 80 random bits, so timing tells nothing
				f.Secret = strings.Join(slices.Delete(left, i, i+1), " ")
				return f.Kind, true, tx.SaveFactor(ctx, f)
			}
		}
	}
	return "", false, nil
}

// checkTOTP reports whether a code is one of now or of a step beside it, later than the last that was taken, and its step.
func (s *Service) checkTOTP(f Factor, code string, now time.Time) (step int64, right bool, err error) {
	secret, err := s.o.Sealer.Open(f.Secret, secretContext(f))
	if err != nil {
		return 0, false, fmt.Errorf("second factor %s can't be decrypted: %w", f.ID, err)
	}
	current := now.Unix() / totpPeriod
	for at := current - totpSkew; at <= current+totpSkew; at++ {
		want, err := hotp.GenerateCodeCustom(secret, uint64(at), hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
		if err != nil {
			return 0, false, fmt.Errorf("second factor %s: %w", f.ID, err)
		}
		if at > f.LastStep && subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
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
