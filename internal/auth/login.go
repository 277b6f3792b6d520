package auth

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
)

// Credentials are what a user signs in with.
type Credentials struct {
	Email    string
	Password string
	Device   Device
}

// errUserChanged says that a user changed after their password was checked.
var errUserChanged = errors.New("the user changed during the sign-in")

// maxChecks bounds how often a password is checked in one sign-in. The second check meets what made the first
// useless.
const maxChecks = 3

// Login signs a user in. It fails with [ErrCredentials], which does not tell an unknown user from a
// wrong password or a suspended account, with [ErrSecondFactor], [ErrThrottled], or [ErrBusy].
func (s *Service) Login(ctx context.Context, c Credentials) (SignIn, error) {
	began := s.o.Now()
	in, err := s.login(ctx, c)
	if errors.Is(err, ErrCredentials) { // the place among those who hash is free again
		s.evenOut(ctx, began)
	}
	return in, err
}

func (s *Service) login(ctx context.Context, c Credentials) (SignIn, error) {
	user, err := s.userToSignIn(ctx, c)
	if err != nil {
		return SignIn{}, err
	}
	t := try{
		action: guessPassword, account: cmp.Or(user.ID, EmailKey(c.Email)),
		device: s.recognize(user, c.Device, s.o.Now()), address: c.Device.site(),
	}
	a, leave, err := s.begin(ctx, t)
	if err != nil {
		return SignIn{}, err
	}
	defer leave()
	for range maxChecks {
		in, err := s.check(ctx, user, c, t, a)
		if !errors.Is(err, errUserChanged) {
			return in, err
		}
		// Another sign-in may have replaced the hash with one of today's cost; else the password is another now.
		now, err := s.userToSignIn(ctx, c)
		if err != nil {
			return SignIn{}, err
		}
		if now.ID != user.ID {
			return SignIn{}, ErrCredentials
		}
		user = now
	}
	return SignIn{}, ErrBusy.After(busyRetry).Because(errUserChanged)
}

// userToSignIn finds the user with the e-mail address. A user who was changed outside the service can't sign in, as
// a suspended one.
func (s *Service) userToSignIn(ctx context.Context, c Credentials) (User, error) {
	user, _, err := s.o.Store.UserByEmail(ctx, EmailKey(c.Email))
	if errors.Is(err, ErrTampered) {
		s.tampered(ctx, tamperedUser, slog.String("user", user.ID))
		user.Suspended, user.PasswordHash, err = true, "", nil // the stored hash may not parse
	}
	return user, err
}

// check signs the user in if the password is right. It fails with [errUserChanged] if the user is not any more
// as given.
func (s *Service) check(ctx context.Context, user User, c Credentials, t try, a attempt) (SignIn, error) {
	right, stale, err := s.passwords.verify(ctx, user.PasswordHash, c.Password)
	if err != nil {
		return SignIn{}, err
	}
	if !right || user.Suspended {
		s.o.Tried(string(t.action), outcomeWrong)
		// The e-mail address that was tried is not logged: people type passwords into the wrong field.
		s.o.Logger.InfoContext(ctx, "sign-in refused", slog.String("user_id", user.ID),
			slog.String("address", c.Device.Address), slog.Bool("suspended", user.Suspended))
		return SignIn{}, ErrCredentials
	}
	var rehashed string
	if stale {
		rehashed, err = s.passwords.hash(ctx, c.Password)
		if err != nil {
			return SignIn{}, err
		}
	}
	in, err := s.admit(ctx, user, rehashed, t.device, a, c.Device)
	if err == nil || errors.Is(err, ErrSecondFactor) {
		s.o.Tried(string(t.action), outcomeRight)
	}
	return in, err
}

// admit starts a session for a user whose password was right. It fails with [errUserChanged] if the user is not
// any more as given.
func (s *Service) admit(ctx context.Context, user User, rehashed, known string, a attempt, device Device) (SignIn, error) {
	now := s.o.Now()
	checked := user.PasswordHash
	user.PasswordHash = cmp.Or(rehashed, checked)
	session := newSession(user.ID, now, device, MethodPassword)
	signIn, err := s.signInto(user, session.ID, session.Counter, now)
	if err != nil {
		return SignIn{}, err
	}
	if signIn.DeviceToken, err = s.deviceToken(user, known, now); err != nil {
		return SignIn{}, err
	}
	second := false
	var factors []Factor
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		unchanged, err := tx.UserUnchanged(ctx, user.ID, checked)
		if err != nil {
			return err
		}
		if !unchanged {
			return errUserChanged
		}
		if rehashed != "" {
			if _, err := tx.SetPasswordHash(ctx, user.ID, checked, rehashed); err != nil {
				return err
			}
		}
		if err := a.forgive(ctx, tx); err != nil {
			return err
		}
		factors, err = s.factorsOf(ctx, tx, user.ID)
		if second = hasFactor(factors); err != nil || second {
			return err
		}
		return tx.InsertSession(ctx, session)
	})
	if err != nil {
		return SignIn{}, err
	}
	if second {
		return SignIn{}, s.challenge(user, MethodPassword, factors, nil, false)
	}
	s.o.Logger.InfoContext(ctx, "signed in", slog.String("user_id", user.ID), slog.String("address", device.Address))
	return signIn, nil
}
