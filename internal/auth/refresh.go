package auth

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"bursar/internal/id"
)

const (
	refreshPrefix    = "brt_"
	sessionPrefix    = "ses_"
	refreshPurpose   = "bursar refresh token v2:"
	maxRefreshBytes  = 128
	refreshSeparator = "."
	refreshParts     = 4
)

// refreshToken is the token that stands for a user's session after counter refreshes: the session, the user,
// the counter and a MAC over them. It is always the same one, so a repeated refresh can be answered alike
// though no token is stored.
func (s *Service) refreshToken(session, user string, counter int64) string {
	name := strings.TrimPrefix(session, sessionPrefix) + refreshSeparator + strings.TrimPrefix(user, UserIDPrefix) +
		refreshSeparator + strconv.FormatInt(counter, 10)
	mac := s.o.Keys.RefreshMAC([]byte(refreshPurpose + name))
	return refreshPrefix + name + refreshSeparator + base64.RawURLEncoding.EncodeToString(mac)
}

// parseRefreshToken finds what a token of ours stands for, and reports whether it is ours.
func (s *Service) parseRefreshToken(token string) (session, user string, counter int64, ok bool) {
	parts := strings.Split(strings.TrimPrefix(token, refreshPrefix), refreshSeparator)
	if len(token) > maxRefreshBytes || len(parts) != refreshParts {
		return "", "", 0, false
	}
	session, user = sessionPrefix+parts[0], UserIDPrefix+parts[1]
	counter, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || counter < 0 || !id.Valid(sessionPrefix, session) || !id.Valid(UserIDPrefix, user) {
		return "", "", 0, false
	}
	return session, user, counter, hmac.Equal([]byte(token), []byte(s.refreshToken(session, user, counter)))
}

// Refresh exchanges a refresh token for a new access token and the next refresh token, or fails with
// [ErrRefresh]. Within the grace of its use, the same token again returns the same next one, even if
// that was used since: two tabs or a late retry end no session. Later, another party has a copy: the
// session ends, for both. The user has no more than id, e-mail and role.
func (s *Service) Refresh(ctx context.Context, refreshToken string) (SignIn, error) {
	session, user, counter, ours := s.parseRefreshToken(refreshToken)
	if !ours {
		return SignIn{}, ErrRefresh
	}
	now := s.o.Now()
	outcome := refreshed
	owner, advanced, err := s.o.Store.AdvanceSession(ctx, session, counter, now, now.Add(sessionIdle), s.o.RefreshGrace)
	if err == nil && !advanced {
		err = s.o.Store.InTx(ctx, func(tx Tx) (err error) {
			owner, outcome, err = s.refresh(ctx, tx, session, counter, now)
			return err
		})
	}
	if err != nil {
		return SignIn{}, err
	}
	if outcome != dead && owner != user { // the session was made another user's in the database
		s.tampered(ctx, tamperedSession, slog.String("session", session), slog.String("user", user))
		return SignIn{}, ErrRefresh
	}
	switch outcome {
	case refreshed:
		return s.renew(ctx, session, user, counter+1, now)
	case replayed:
		s.o.Logger.WarnContext(ctx, "refresh token reused; session ended",
			slog.String("user_id", user), slog.String("session", session))
		return SignIn{}, ErrRefresh
	default:
		return SignIn{}, ErrRefresh
	}
}

// renew makes the tokens of a session that was refreshed, unless the service did not write its user.
func (s *Service) renew(ctx context.Context, session, userID string, counter int64, now time.Time) (SignIn, error) {
	u, found, err := s.o.Store.UserByID(ctx, userID)
	if err = s.refuseTampered(ctx, err, ErrRefresh, tamperedUser, slog.String("user_id", userID)); err != nil {
		return SignIn{}, err
	}
	if !found || u.Suspended {
		return SignIn{}, ErrRefresh
	}
	return s.signInto(User{ID: u.ID, Email: u.Email, Role: u.Role}, session, counter, now)
}

// refreshOutcome is what became of a refresh. A replay is an outcome and not an error, because the
// end of the session must be committed.
type refreshOutcome int

const (
	dead refreshOutcome = iota
	refreshed
	replayed
)

// refresh advances the session if the token is its current one, and else decides what the token is.
func (s *Service) refresh(ctx context.Context, tx Tx, session string, counter int64, now time.Time) (owner string, outcome refreshOutcome, err error) {
	owner, advanced, err := tx.AdvanceSession(ctx, session, counter, now, now.Add(sessionIdle), s.o.RefreshGrace)
	if err != nil {
		return owner, dead, err
	}
	if advanced {
		return owner, refreshed, nil
	}
	stored, found, err := tx.Session(ctx, session)
	owner = stored.UserID
	switch {
	case err != nil:
		return owner, dead, err
	case !found || !stored.live(now):
		return owner, dead, nil
	case stored.inGrace(counter, s.o.RefreshGrace, now):
		return owner, refreshed, nil
	default:
		return owner, replayed, endCopied(ctx, tx, owner, session, now)
	}
}

// endCopied ends a session of whose token another party has a copy, and a change of the address that is not confirmed yet: the other party may have
// begun it.
func endCopied(ctx context.Context, tx Tx, userID, session string, now time.Time) error {
	if _, _, err := tx.UserForUpdate(ctx, userID); err != nil && !errors.Is(err, ErrTampered) {
		return err
	}
	if err := tx.EndSession(ctx, session, endedByReplay, now); err != nil {
		return err
	}
	return tx.DeleteMailTokens(ctx, userID, confirmEmail)
}

// inGrace reports whether the token of a counter was used less than grace ago. A use so far back that
// it is not on record counts as earlier: no honest client refreshes so often so fast.
func (s Session) inGrace(counter int64, grace time.Duration, now time.Time) bool {
	since := s.Counter - 1 - counter // refreshes after its own
	if grace == 0 || since < 0 || since >= int64(len(s.Refreshes)) {
		return false
	}
	return now.Sub(s.Refreshes[since]) < grace
}

func (s Session) live(now time.Time) bool {
	return s.EndedAt.IsZero() && now.Before(s.ExpiresAt)
}
