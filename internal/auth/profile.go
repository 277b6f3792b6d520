package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/limits"
)

// Limits of a profile.
const (
	maxBioRunes = 500
	maxURLBytes = 2048
)

// Changes of a profile are recorded so often at once, and then one more each time that a day's share has passed.
const (
	profileEventsADay = 20
	profileEventCost  = 24 * time.Hour / profileEventsADay
)

// SetProfile changes a user's name and profile, or fails with a fault that names the fields at fault, or with [ErrToken].
func (s *Service) SetProfile(ctx context.Context, p Principal, change ProfileChange, from Device) error {
	problems := map[string]string{}
	check := func(field string, value *string, check func(string) string) {
		if value == nil {
			return
		}
		if problem := check(*value); problem != "" {
			problems[field] = problem
		}
	}
	check("name", change.Name, CheckName)
	check("bio", change.Bio, checkBio)
	check("website", change.Website, func(s string) string { return checkAddress(s, "http", "https") })
	check("avatar", change.Avatar, func(s string) string { return checkAddress(s, "https") })
	if len(problems) > 0 {
		return fault.Fields(fault.Invalid, problems)
	}
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		user, err := s.userOfSession(ctx, tx, p)
		if err != nil || !change.changes(user) {
			return err
		}
		if err := tx.SetProfile(ctx, p.UserID, change); err != nil {
			return err
		}
		_, counted, err := tx.TakeThrottle(ctx, "profile_event|"+p.UserID, s.o.Now(), profileEventCost, profileEventsADay*profileEventCost)
		if err != nil || !counted {
			return err
		}
		return s.record(ctx, tx, p.UserID, ledger.AccountProfileChanged, from)
	})
}

// changes reports whether anything of a user would be another.
func (c ProfileChange) changes(u User) bool {
	differs := func(next *string, now string) bool { return next != nil && *next != now }
	return differs(c.Name, u.Name) || differs(c.Avatar, u.Profile.Avatar) || differs(c.Bio, u.Profile.Bio) || differs(c.Website, u.Profile.Website)
}

// checkBio returns what is wrong with a user's bio, or "".
func checkBio(bio string) string { return limits.Prose(bio, maxBioRunes) }

// checkAddress returns what is wrong with an address on the web that may be empty, or "".
func checkAddress(address string, schemes ...string) string {
	if address == "" {
		return ""
	}
	if len(address) > maxURLBytes {
		return "must be at most 2048 bytes"
	}
	unprintable := func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }
	u, err := url.Parse(address)
	if err != nil || !slices.Contains(schemes, u.Scheme) || u.Hostname() == "" || u.User != nil ||
		!utf8.ValidString(address) || strings.ContainsFunc(address, unprintable) {
		return "must be empty, or an address such as https://example.com/page"
	}
	return ""
}

// maxSessionsShown bounds how many sessions are listed.
const maxSessionsShown = 100

// Sessions lists the user's sessions that are alive, newest first.
func (s *Service) Sessions(ctx context.Context, p Principal) ([]SessionInfo, error) {
	return s.o.Store.LiveSessions(ctx, p.UserID, s.o.Now(), maxSessionsShown)
}

// EndSession ends one session of the user's own that has not ended, or fails with [ErrNoSession] or [ErrToken]. A change of the
// address that is not confirmed ends too: a thief may have begun it there.
func (s *Service) EndSession(ctx context.Context, p Principal, session string, from Device) error {
	if !id.Valid(sessionPrefix, session) {
		return ErrNoSession
	}
	return s.endAndRecord(ctx, p.UserID, from, func(tx Tx) (bool, error) {
		if err := s.LockSession(ctx, tx, p); err != nil {
			return false, err
		}
		if err := tx.DeleteMailTokens(ctx, p.UserID, confirmEmail); err != nil {
			return false, err
		}
		ended, err := tx.EndSessionOf(ctx, p.UserID, session, endedByUser, s.o.Now())
		if err == nil && !ended {
			err = ErrNoSession
		}
		return true, err
	})
}

// endAndRecord ends sessions in one transaction with their record, where end reports that there is something to record. If the
// user's journal was tampered with, they end without it: who has the session of a thief must not wait for a repair.
func (s *Service) endAndRecord(ctx context.Context, userID string, from Device, end func(Tx) (bool, error)) error {
	err := s.o.Store.InTx(ctx, func(tx Tx) error {
		ended, err := end(tx)
		if err != nil || !ended {
			return err
		}
		return s.record(ctx, tx, userID, ledger.AccountSessionsEnded, from)
	})
	if !errors.Is(err, ledger.ErrTampered) {
		return err
	}
	s.o.Logger.ErrorContext(ctx, "sessions end without a record", slog.String("user_id", userID), slog.Any("error", err))
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		_, err := end(tx)
		return err
	})
}

// endAnyway ends a user's sessions, but for the one to keep, where a change failed that ends them: because the user's journal was tampered with,
// it can't be recorded. The rest of the change waits for a repair. It returns err, or in its place what tells the caller so.
func (s *Service) endAnyway(ctx context.Context, userID, keep, reason string, err error) error {
	if !errors.Is(err, ledger.ErrTampered) {
		return err
	}
	s.o.Logger.ErrorContext(ctx, "sessions end without a record", slog.String("user_id", userID), slog.Any("error", err))
	ended := s.o.Store.InTx(ctx, func(tx Tx) error {
		if _, _, err := tx.UserForUpdate(ctx, userID); err != nil {
			return err
		}
		return s.endSessions(ctx, tx, userID, keep, reason)
	})
	if ended != nil {
		s.o.Logger.ErrorContext(ctx, "sessions not ended", slog.String("user_id", userID), slog.Any("error", ended))
		return err
	}
	return errUnrecorded.Because(err)
}

var errUnrecorded = ledger.ErrTampered.WithMessage("The records of this account were changed outside the service, so this can't be recorded, and was not done. " +
	"The sessions that it would end have ended.")

// EndOtherSessions ends all of the user's sessions but the one that asks.
func (s *Service) EndOtherSessions(ctx context.Context, p Principal, from Device) error {
	const two = 2 // the one that asks, and another
	alive, err := s.o.Store.LiveSessions(ctx, p.UserID, s.o.Now(), two)
	if err != nil {
		return err
	}
	return s.endAndRecord(ctx, p.UserID, from, func(tx Tx) (bool, error) {
		if err := s.LockSession(ctx, tx, p); err != nil {
			return false, err
		}
		return len(alive) == two, s.endSessions(ctx, tx, p.UserID, p.Session, endedByUser)
	})
}

// Renew makes a new access token for a session that is alive. The session ends when it would have.
func (s *Service) Renew(p Principal) (string, error) { return s.tokens.sign(p, s.o.Now()) }
