package auth

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bursar/internal/fault"
)

// Limits of a profile.
const (
	maxBioRunes = 500
	maxURLBytes = 2048
)

// SetProfile changes a user's name and profile, or fails with a fault that names the fields at fault.
func (s *Service) SetProfile(ctx context.Context, p Principal, change ProfileChange) error {
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
	return s.o.Store.InTx(ctx, func(tx Tx) error { return tx.SetProfile(ctx, p.UserID, change) })
}

// checkBio returns what is wrong with a user's bio, or "".
func checkBio(bio string) string {
	control := func(c rune) bool { return isControl(c) && c != '\n' && c != '\r' && c != '\t' }
	switch {
	case utf8.RuneCountInString(bio) > maxBioRunes:
		return "must be at most 500 characters"
	case !utf8.ValidString(bio) || strings.ContainsFunc(bio, control):
		return "must not contain control characters"
	default:
		return ""
	}
}

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

// EndSession ends one session of the user's own that has not ended, or fails with [ErrNoSession].
func (s *Service) EndSession(ctx context.Context, p Principal, session string) error {
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		ended, err := tx.EndSessionOf(ctx, p.UserID, session, endedByUser, s.o.Now())
		if err == nil && !ended {
			err = ErrNoSession
		}
		return err
	})
}

// EndOtherSessions ends all of the user's sessions but the one that asks.
func (s *Service) EndOtherSessions(ctx context.Context, p Principal) error {
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		return tx.EndUserSessions(ctx, p.UserID, p.Session, endedByUser, s.o.Now())
	})
}

// Identities lists a user's ways to sign in through a provider, the oldest first.
func (s *Service) Identities(ctx context.Context, userID string) ([]LinkedIdentity, error) {
	return s.o.Store.Identities(ctx, userID)
}

// Renew makes a new access token for a session that is alive. The session ends when it would have.
func (s *Service) Renew(p Principal) (string, error) { return s.tokens.sign(p, s.o.Now()) }
