package auth

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bursar/internal/id"
)

const (
	// sessionIdle is how long a session lasts without a refresh, and sessionCap how long at most.
	sessionIdle = 30 * 24 * time.Hour
	sessionCap  = 90 * 24 * time.Hour
)

// Why sessions end, as it is stored.
const (
	endedByLogout     = "logout"
	endedByReplay     = "refresh_token_replayed"
	endedBySuspension = "suspended"
	endedByUser       = "ended_by_user" // from another session
	endedByPassword   = "password_changed"
	endedByForgotten  = "password_reset" // by a mailed link
	endedByTakeOver   = "taken_over"
	endedByUnlink     = "identity_unlinked"
	endedByReset      = "account_reset"
	endedByNewSignIn  = "signed_in_anew" // in the same browser
	endedByKey        = "key_revoked"    // the service key whose link opened it
	endedByRole       = "role_changed"   // a link opened it, and the user is no seller any more
)

// Methods of signing in, as sessions record them.
const (
	MethodPassword = "pwd" // RFC 8176
	MethodProvider = "provider"
	MethodCode     = "otp" // RFC 8176: a code of an app, or a recovery code
	MethodPasskey  = "webauthn"
	MethodLink     = "link" // that a server of the marketplace asked for; the user proved nothing
)

// newSession makes a session for a user who signs in now.
func newSession(userID string, now time.Time, from Device, methods ...string) Session {
	return Session{
		ID: id.New(sessionPrefix, now), UserID: userID,
		CreatedAt: now, ExpiresAt: now.Add(sessionIdle), CapAt: now.Add(sessionCap),
		Agent: printable(from.Agent, maxAgentBytes), Address: printable(from.Address, maxAddressBytes), Methods: methods, AuthenticatedAt: now,
	}
}

// signInto makes the tokens of u's session at a count of refreshes. It stores nothing.
func (s *Service) signInto(u User, session string, counter int64, now time.Time) (SignIn, error) {
	token, err := s.tokens.sign(Principal{UserID: u.ID, Email: u.Email, Role: u.Role, Session: session}, now)
	if err != nil {
		return SignIn{}, err
	}
	return SignIn{User: u, Token: token, RefreshToken: s.refreshToken(session, u.ID, counter), ExpiresIn: tokenLife}, nil
}

// ErrSessionChanged is why an [ErrTampered] is about a session and not about its user.
var ErrSessionChanged = errors.New("the session is not as the service wrote it")

// ReadToken finds the user and the session that an access token names, or fails with [ErrToken]. It does not read the session, which
// may have ended; [Service.ConfirmSeller] does.
func (s *Service) ReadToken(token string) (Principal, error) {
	v, err := s.tokens.check(token, s.o.Now())
	return Principal{UserID: v.user, Session: v.session}, err
}

// SessionTx reads a session in a transaction.
type SessionTx interface {
	// LiveSession is as the store's, but does not ask the journal what was decided about an admin.
	LiveSession(ctx context.Context, session string, now time.Time) (Principal, bool, error)
}

// ErrUnconfirmed says that the session's row alone does not let the caller in: [Service.Authenticate] has to decide.
var ErrUnconfirmed = errors.New("the session is not that of a seller who may request payouts, as far as one row tells")

// ConfirmSeller confirms, in the transaction of a request for a payout, that p's session is alive and that of a seller who may make it.
// It fails with [ErrUnconfirmed] for everyone else. Admins are among them, because their access is held against the journal.
func (s *Service) ConfirmSeller(ctx context.Context, tx SessionTx, p Principal) error {
	found, live, err := tx.LiveSession(ctx, p.Session, s.o.Now())
	if err != nil {
		return errors.Join(ErrUnconfirmed, err)
	}
	if !live || found.UserID != p.UserID || found.Role != Seller || s.CheckMayRequestPayout(found) != nil {
		return ErrUnconfirmed
	}
	return nil
}

// Authenticate finds who holds an access token, or fails with [ErrToken]. It reads the session each
// time, so an end of the session, a suspension or a changed role holds from the next request on.
func (s *Service) Authenticate(ctx context.Context, token string) (Principal, error) {
	now := s.o.Now()
	v, err := s.tokens.check(token, now)
	if err != nil {
		return Principal{}, err
	}
	p, live, err := s.o.Store.LiveSession(ctx, v.session, now)
	switch {
	case errors.Is(err, ErrSessionChanged), err == nil && live && p.UserID != v.user:
		s.tampered(ctx, tamperedSession, slog.String("session", v.session), slog.String("user", v.user))
		return Principal{}, ErrToken
	case errors.Is(err, ErrTampered):
		s.tampered(ctx, tamperedUser, slog.String("user", p.UserID))
		return Principal{}, ErrToken
	case err != nil:
		return Principal{}, err
	case !live:
		return Principal{}, ErrToken
	}
	return p, nil
}

// Logout ends the session that p's token belongs to, and with it all tokens that came of it.
func (s *Service) Logout(ctx context.Context, p Principal) error {
	err := s.o.Store.InTx(ctx, func(tx Tx) error {
		return tx.EndSession(ctx, p.Session, endedByLogout, s.o.Now())
	})
	if err == nil {
		s.o.Logger.InfoContext(ctx, "signed out", slog.String("user_id", p.UserID))
	}
	return err
}

// How long what no longer matters is kept, and how much one sweep deletes of each.
const (
	deadSessionsKept = 7 * 24 * time.Hour // after their cap
	sweepBatch       = 500
)

// Sweep deletes sessions long past their cap, empty throttle buckets, sign-ins through a provider that are too old to
// come back, mailed tokens that have expired, and links that expired long ago, a batch of each at most. It returns how many
// rows that was.
func (s *Service) Sweep(ctx context.Context) (deleted int64, err error) {
	err = s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		now := s.o.Now()
		deleted, err = tx.Sweep(ctx, now, now.Add(-deadSessionsKept), now.Add(-LinkSessionLife), sweepBatch)
		return err
	})
	return deleted, err
}
