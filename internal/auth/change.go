package auth

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// The fields that a fault of [Service.ChangePassword] names.
const (
	fieldCurrent = "currentPassword"
	fieldNext    = "newPassword"
)

// freshSignIn is how long after signing in a user without a password may set one: a token that was
// stolen must not become a way in that stays.
const freshSignIn = 15 * time.Minute

// isFresh reports whether a user proved who they are a short time ago. A time to come is of a clock that was wrong.
func isFresh(at, now time.Time) bool { return now.Sub(at).Abs() < freshSignIn }

// ChangePassword replaces the user's password, ends all their other sessions and makes every device but
// this one unknown, which gets the token that is returned. A user without a password sets the first, soon after
// signing in; current is then ignored. It fails with a fault that names the fields at fault, with
// [ErrWrongPassword], [ErrThrottled], [ErrBusy], [ErrStaleSignIn], or with [ErrToken] if the session ended meanwhile.
func (s *Service) ChangePassword(ctx context.Context, p Principal, current, next string, from Device) (deviceToken string, err error) {
	user, _, err := s.Me(ctx, p)
	if err != nil {
		return "", err
	}
	if problem := s.newPasswordProblem(next, user); problem != "" {
		return "", fault.Field(fieldNext, problem)
	}
	if user.PasswordHash != "" && current == "" {
		return "", fault.Fields(fault.Malformed, map[string]string{fieldCurrent: "is required"})
	}
	known := s.recognize(user, from, s.o.Now())
	t := try{action: guessPassword, account: user.ID, device: cmp.Or(known, p.Session), address: from.site()}
	a, leave, err := s.begin(ctx, t)
	if err != nil {
		return "", err
	}
	defer leave()
	for range maxChecks {
		if err := s.checkCurrent(ctx, user, current, t, fieldCurrent); err != nil {
			return "", err
		}
		user.PasswordHash, err = s.replacePassword(ctx, p, user.PasswordHash, next, a, from)
		if !errors.Is(err, errUserChanged) {
			break
		}
		// A sign-in may have replaced the hash with one of today's cost; else the password is another now.
		if user, _, err = s.Me(ctx, p); err != nil {
			return "", err
		}
		err = ErrBusy.After(busyRetry).Because(errUserChanged)
	}
	if err != nil {
		return "", err
	}
	s.o.Tried(string(t.action), outcomeRight)
	s.o.Logger.InfoContext(ctx, "password changed", slog.String("user_id", user.ID), slog.String("address", from.Address))
	return s.deviceToken(user, known, s.o.Now())
}

// replacePassword stores a new password in the place of the old hash, and returns the new hash.
func (s *Service) replacePassword(ctx context.Context, p Principal, old, next string, a attempt, from Device) (string, error) {
	hash, err := s.passwords.hash(ctx, next)
	if err != nil {
		return "", err
	}
	err = s.o.Store.InTx(ctx, func(tx Tx) error { return s.setPassword(ctx, tx, p, old, hash, a, from) })
	return hash, s.endAnyway(ctx, p.UserID, p.Session, endedByPassword, err)
}

// newPasswordProblem returns what is wrong with a user's new password, or "".
func (s *Service) newPasswordProblem(next string, user User) string {
	if problem := CheckPassword(next); problem != "" {
		return problem
	}
	return s.common.check(next, user.Name, user.Email)
}

// checkCurrent fails unless current, which is what the field holds, is the user's password, or the user has none.
func (s *Service) checkCurrent(ctx context.Context, user User, current string, t try, field string) error {
	if user.PasswordHash == "" {
		return nil
	}
	right, _, err := s.passwords.verify(ctx, user.PasswordHash, current)
	if err != nil || right {
		return err
	}
	s.o.Tried(string(t.action), outcomeWrong)
	return wrongPassword(field)
}

// wrongPassword says which field holds a wrong password of the user who is signed in.
func wrongPassword(field string) error {
	f := *ErrWrongPassword
	f.Details = map[string]string{field: "is wrong"}
	return &f
}

// mayChange fails with [ErrToken] unless the session that asks is still alive, with [errUserChanged] if the user's hash is
// not the one that was checked, or with [ErrStaleSignIn] if there was none to check and the sign-in is not fresh. The
// user is locked before the session is looked at: ending all sessions of a user locks them too.
func (s *Service) mayChange(ctx context.Context, tx Tx, p Principal, checked string, now time.Time) error {
	unchanged, err := tx.UserUnchanged(ctx, p.UserID, checked)
	if err != nil {
		return err
	}
	session, found, err := tx.Session(ctx, p.Session)
	switch {
	case err != nil:
		return err
	case !found || !session.live(now) || session.UserID != p.UserID:
		return ErrToken
	case !unchanged:
		return errUserChanged
	case checked == "" && !isFresh(session.AuthenticatedAt, now):
		return stale(session)
	}
	return nil
}

// setPassword replaces the hash, if [Service.mayChange] allows it.
func (s *Service) setPassword(ctx context.Context, tx Tx, p Principal, old, hash string, a attempt, from Device) error {
	now := s.o.Now()
	if err := s.mayChange(ctx, tx, p, old, now); err != nil {
		return err
	}
	if err := s.RequireProof(ctx, tx, p, ActionChangePassword); err != nil {
		return err
	}
	if _, err := tx.SetPasswordHash(ctx, p.UserID, old, hash); err != nil {
		return err
	}
	if err := s.endSessions(ctx, tx, p.UserID, p.Session, endedByPassword); err != nil {
		return err
	}
	if err := a.forgive(ctx, tx); err != nil {
		return err
	}
	if err := s.record(ctx, tx, p.UserID, ledger.AccountPasswordChanged, from); err != nil {
		return err
	}
	_, err := s.o.Mails.Queue(ctx, tx, mail.Mail{User: p.UserID, Data: mail.PasswordChanged{
		Origin: from.origin(now), First: old == "",
	}})
	return err
}
