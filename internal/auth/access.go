package auth

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
)

// SetAccess gives a user a role, and suspends them or lets them in again, as an admin decided, which is
// recorded with it. It holds from the user's next request on; a suspension ends their sessions. It fails
// with a fault that names the field at fault, with [ErrUserNotFound], or with [ErrLastAdmin].
func (s *Service) SetAccess(ctx context.Context, by decision.By, userID string, role Role, suspended bool) error {
	if role != Buyer && role != Seller && role != Admin {
		return fault.Field("role", "must be buyer, seller or admin")
	}
	if err := by.CheckNote(); err != nil {
		return err
	}
	now := s.o.Now()
	by.Note = AccessNote(role, suspended, by.Note)
	record := decision.New(by, decision.ChangeAccess, userID, userID, now)
	err := s.o.Store.InTx(ctx, func(tx Tx) error {
		if err := keepAnAdmin(ctx, tx, userID, role, suspended); err != nil {
			return err
		}
		found, err := tx.SetUserAccess(ctx, userID, role, suspended)
		if err != nil {
			return err
		}
		if !found {
			return ErrUserNotFound
		}
		if err := s.endWithoutAccess(ctx, tx, userID, role, suspended); err != nil {
			return err
		}
		return ledger.RecordDecision(ctx, tx, record)
	})
	if suspended {
		err = s.endAnyway(ctx, userID, "", endedBySuspension, err)
	}
	if err != nil {
		return err
	}
	s.o.Logger.InfoContext(ctx, "access changed", slog.String("user_id", userID),
		slog.String("role", string(role)), slog.Bool("suspended", suspended), slog.String("by", by.Admin))
	return nil
}

// endWithoutAccess ends what a user's new role and suspension no longer allow: all sessions of a suspended user, and of one who
// is no seller the links of the marketplace and the sessions that they opened, since nobody proved to be that user.
func (s *Service) endWithoutAccess(ctx context.Context, tx Tx, userID string, role Role, suspended bool) error {
	switch {
	case suspended:
		return s.endSessions(ctx, tx, userID, "", endedBySuspension)
	case role != Seller:
		err := tx.DeleteUnusedSessionLinks(ctx, userID)
		if err == nil {
			err = tx.EndUnprovenSessions(ctx, userID, endedByRole, s.o.Now())
		}
		return err
	}
	return nil
}

// AccessNote says in the record what the access became, before why.
func AccessNote(role Role, suspended bool, why string) string {
	what := "Now " + string(role)
	if suspended {
		what += suspendedMark
	}
	return strings.TrimSpace(what + ". " + why)
}

const suspendedMark = ", suspended"

// decidesSuspended reports whether a note of [AccessNote] says that the user is suspended.
func decidesSuspended(note string) bool {
	what, _, _ := strings.Cut(note, ".")
	return strings.HasSuffix(what, suspendedMark)
}

// decisionsRead bounds how many entries about a suspended user are read: they can't sign in, so that few follow the suspension.
const decisionsRead = 100

// SuspendedSince is when a user who is suspended was suspended; zero where the journal does not say, as of a user who was
// imported so.
func (s *Service) SuspendedSince(ctx context.Context, userID string) (since time.Time, err error) {
	entries, err := s.o.Store.EntriesAboutBefore(ctx, userID, userID, 0, decisionsRead)
	if errors.Is(err, ledger.ErrTampered) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	for _, e := range entries { // the newest first
		var said struct {
			Action decision.Action `json:"action"`
			Note   string          `json:"note"`
		}
		if e.Type != ledger.AdminDecided || json.Unmarshal([]byte(e.Data), &said) != nil || said.Action != decision.ChangeAccess {
			continue
		}
		if !decidesSuspended(said.Note) {
			break
		}
		since = e.At
	}
	return since, nil
}

// keepAnAdmin fails if the change would leave nobody to undo it. All admins are locked, so that two who
// demote each other at once are not both let through.
func keepAnAdmin(ctx context.Context, tx Tx, userID string, role Role, suspended bool) error {
	if role == Admin && !suspended {
		return nil
	}
	admins, err := tx.Admins(ctx)
	if err == nil && slices.Equal(admins, []string{userID}) {
		err = ErrLastAdmin
	}
	return err
}

// User finds a user for an admin, with the figures to show, or fails with [ErrUserNotFound].
func (s *Service) User(ctx context.Context, id string) (User, Stats, error) {
	user, stats, found, err := s.o.Store.UserWithStats(ctx, id)
	if err == nil && !found {
		err = ErrUserNotFound
	}
	return user, stats, err
}

// maxFound bounds how many users are listed at once.
const maxFound = 100

// FindUsers lists users for an admin, up to limit: the one whose id the query is, or those whose e-mail
// address begins with it, in the order of addresses.
func (s *Service) FindUsers(ctx context.Context, query string, limit int) ([]User, error) {
	query = strings.TrimSpace(query)
	if id.Valid(userPrefix, query) {
		user, _, found, err := s.o.Store.UserWithStats(ctx, query)
		if err != nil || !found {
			return nil, err
		}
		return []User{user}, nil
	}
	key := EmailKey(query)
	if len(key) > maxEmailBytes || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return nil, nil // no address begins like that
	}
	return s.o.Store.FindUsers(ctx, key, min(max(limit, 1), maxFound))
}
