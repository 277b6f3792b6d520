package auth

import (
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

// Login signs a user in. It fails with [ErrCredentials], which does not tell an unknown user from a
// wrong password or a suspended account, with [ErrThrottled], or with [ErrBusy].
func (s *Service) Login(ctx context.Context, c Credentials) (SignIn, error) {
	leave, err := s.passwords.enter()
	if err != nil {
		return SignIn{}, err
	}
	defer leave()

	user, _, err := s.o.Store.UserByEmail(ctx, EmailKey(c.Email))
	changed := errors.Is(err, ErrTampered)
	if err != nil && !changed {
		return SignIn{}, err
	}
	if changed {
		s.tampered(ctx, tamperedUser, slog.String("user", user.ID))
	}
	attempt, err := s.countAttempt(ctx, user.ID, c)
	if err != nil {
		return SignIn{}, err
	}
	if attempt.refused() {
		s.logRefusal(ctx, user, c, "throttled")
		return SignIn{}, attempt.wrong()
	}
	right, stale, err := s.passwords.verify(ctx, user.PasswordHash, c.Password)
	if err != nil {
		return SignIn{}, err
	}
	if !right || user.Suspended || changed {
		s.logRefusal(ctx, user, c, "wrong credentials or suspended")
		return SignIn{}, attempt.wrong()
	}
	var rehashed string
	if stale {
		rehashed, err = s.passwords.hash(ctx, c.Password)
		if err != nil {
			return SignIn{}, err
		}
	}
	return s.admit(ctx, user, rehashed, attempt, c.Device)
}

// admit starts a session for a user whose password was right, unless the user changed meanwhile.
func (s *Service) admit(ctx context.Context, user User, rehashed string, a attempt, device Device) (SignIn, error) {
	now := s.o.Now()
	session := newSession(user.ID, now, device)
	signIn, err := s.signInto(user, session.ID, session.Counter, now)
	if err != nil {
		return SignIn{}, err
	}
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		unchanged, err := tx.UserUnchanged(ctx, user.ID, user.PasswordHash)
		if err != nil {
			return err
		}
		if !unchanged {
			return ErrCredentials
		}
		if rehashed != "" {
			if _, err := tx.SetPasswordHash(ctx, user.ID, user.PasswordHash, rehashed); err != nil {
				return err
			}
		}
		if err := a.forgive(ctx, tx); err != nil {
			return err
		}
		return startSession(ctx, tx, session, device)
	})
	if err != nil {
		return SignIn{}, err
	}
	s.o.Logger.InfoContext(ctx, "signed in", slog.String("user_id", user.ID), slog.String("address", device.Address))
	return signIn, nil
}

// logRefusal tells the operator why a sign-in failed, which the caller is not told. The address that
// was tried is left out where no user has it: people type passwords into the wrong field.
func (s *Service) logRefusal(ctx context.Context, user User, c Credentials, why string) {
	s.o.Logger.InfoContext(ctx, "sign-in refused", slog.String("user_id", user.ID),
		slog.String("address", c.Device.Address), slog.String("reason", why))
}
