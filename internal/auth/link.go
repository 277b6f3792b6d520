package auth

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"bursar/internal/fault"
	"bursar/internal/id"
)

// SessionLink opens a session of a seller once, for the marketplace's server that asked for it.
type SessionLink struct {
	// Hash is the SHA-256 of the token, which is not stored.
	Hash, UserID string
	// KeyID is the service key that asked. When it ends, so do the link and the session.
	KeyID     string
	ExpiresAt time.Time
	// Session is the one that the link opened; empty while it is unused.
	Session string
}

const (
	// LinkLife is how long a link can be opened, and LinkSessionLife how long the session then lasts at most.
	LinkLife        = time.Minute
	LinkSessionLife = time.Hour

	linkTokenDigits = 32 // 190 random bits
)

// ErrLink is all that a link which opens nothing is answered with.
var ErrLink = fault.New(fault.Unauthenticated, "invalid_link", "This link was used already, or is too old. Go back to the marketplace and open it again.")

// errNotProven is for a session that a link opened. What it asks for needs the user's own sign-in.
var errNotProven = ErrStaleSignIn.WithMessage("You came by a link of the marketplace, so this can't be changed now. Sign in yourself first: \"Forgot your password?\" mails you a link to set a password.")

// notProven is when the user of a session that a link opened proved who they are: never.
var notProven = time.Unix(0, 0).UTC()

// stale is what a session is answered with whose sign-in proves too little.
func stale(s Session) error {
	if s.AuthenticatedAt.Equal(notProven) {
		return errNotProven
	}
	return ErrStaleSignIn
}

// CreateSessionLink makes a link for a seller, as a service key asked, and returns its token, which is shown once. It fails with
// [ErrServiceKey] if the key ended since the request was let in: an attacker who has a leaked key asks until it is rotated.
func (s *Service) CreateSessionLink(ctx context.Context, key ServiceKey, sellerID string) (token string, expiresAt time.Time, err error) {
	token = id.Random(linkTokenDigits)
	link := SessionLink{
		Hash: hashToken(token), UserID: sellerID, KeyID: key.ID, ExpiresAt: s.o.Now().UTC().Truncate(time.Microsecond).Add(LinkLife),
	}
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		if err := s.keepKey(ctx, tx, key); err != nil {
			return err
		}
		return tx.InsertSessionLink(ctx, link)
	})
	return token, link.ExpiresAt, err
}

// keepKey keeps a key accepted until the transaction ends. It fails with [ErrServiceKey] if the key was revoked since, or rotated without a grace.
func (s *Service) keepKey(ctx context.Context, tx Tx, key ServiceKey) error {
	stored, found, err := tx.ServiceKeyForUpdate(ctx, key.ID)
	switch {
	case err != nil:
		return err
	case !found || stored.Status(s.o.Now()) != "active":
		return ErrServiceKey
	case stored.Hash == key.Hash:
		return nil
	}
	before, err := tx.RotatedServiceKeys(ctx, stored)
	isAccepted := slices.ContainsFunc(before, func(r RotatedServiceKey) bool { return r.Hash == key.Hash && r.Until.After(s.o.Now()) })
	if err == nil && !isAccepted {
		err = ErrServiceKey
	}
	return err
}

// OpenSessionLink signs a seller in by the token of a link, once. presented is the browser's access token, whose session ends. It
// fails with [ErrLink], also for a seller who is suspended or has another role by now, and for a service key that ended.
//
// The session counts as one whose user never proved who they are: so it can't set a password, add a factor or change the address.
func (s *Service) OpenSessionLink(ctx context.Context, token, presented string, from Device) (SignIn, error) {
	before, err := s.Authenticate(ctx, presented)
	if err != nil && !errors.Is(err, ErrToken) {
		return SignIn{}, err
	}
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	var user User
	var session Session
	var keyID string
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		link, found, err := tx.SessionLink(ctx, hashToken(token))
		if err == nil && !found {
			err = ErrLink
		}
		if err != nil {
			return err
		}
		keyID = link.KeyID
		var ends time.Time
		if user, ends, err = s.sellerOfLink(ctx, tx, link, now); err != nil {
			return err
		}
		session = newSession(user.ID, now, from, MethodLink)
		session.AuthenticatedAt = notProven
		session.ExpiresAt, session.CapAt = ends, ends
		used, err := tx.UseSessionLink(ctx, link.Hash, session.ID, now)
		if err == nil && !used {
			err = ErrLink
		}
		if err != nil {
			return err
		}
		if before.Session != "" {
			if err := tx.EndSession(ctx, before.Session, endedByNewSignIn, now); err != nil {
				return err
			}
		}
		return tx.InsertSession(ctx, session)
	})
	if err = s.refuseTampered(ctx, err, ErrLink, tamperedSessionLink, slog.String("user_id", user.ID)); err != nil {
		return SignIn{}, err
	}
	signIn, err := s.signInto(user, session.ID, session.Counter, now)
	signIn.ExpiresIn = session.ExpiresAt.Sub(now)
	s.o.Logger.InfoContext(ctx, "signed in", slog.String("user_id", user.ID), slog.String("method", MethodLink), slog.String("key_id", keyID))
	return signIn, err
}

// sellerOfLink finds the seller of a link whose service key is still accepted, and when the session has to end: the key may
// expire before. It keeps both so until the transaction ends: to suspend the one or to revoke the other then finds the session.
func (s *Service) sellerOfLink(ctx context.Context, tx Tx, link SessionLink, now time.Time) (user User, ends time.Time, err error) {
	user, found, err := tx.UserForUpdate(ctx, link.UserID)
	if err != nil {
		return user, ends, err
	}
	key, known, err := tx.ServiceKeyForUpdate(ctx, link.KeyID)
	if err != nil {
		return user, ends, err
	}
	if !found || user.Suspended || user.Role != Seller || !known || key.Status(now) != "active" {
		return user, ends, ErrLink
	}
	if ends = now.Add(LinkSessionLife); !key.ExpiresAt.IsZero() && key.ExpiresAt.Before(ends) {
		ends = key.ExpiresAt
	}
	return user, ends, nil
}

// endLinksOfKey ends the links of a service key, which was locked, and the sessions that they opened.
func endLinksOfKey(ctx context.Context, tx Tx, keyID string, now time.Time) error {
	if err := tx.DeleteUnusedLinksOfKey(ctx, keyID); err != nil {
		return err
	}
	sessions, err := tx.SessionsOfKey(ctx, keyID)
	for _, session := range sessions {
		if err == nil {
			err = tx.EndSession(ctx, session, endedByKey, now)
		}
	}
	return err
}
