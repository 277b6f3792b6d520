package auth

import (
	"context"
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

// Access is what an admin decides about a user: their role, and whether they are suspended.
type Access struct {
	Role      Role
	Suspended bool
}

// Access is what the user's is.
func (u User) Access() Access { return Access{u.Role, u.Suspended} }

// SetAccess gives a user a role, and suspends them or lets them in again, as an admin decided, which is
// recorded with it. It holds from the user's next request on; a suspension ends their sessions. It fails
// with a fault that names the field at fault, with [ErrUserNotFound], or with [ErrLastAdmin].
func (s *Service) SetAccess(ctx context.Context, by decision.By, userID string, role Role, suspended bool) error {
	return s.decideAccess(ctx, by, userID, func(Access) (Access, error) { return Access{role, suspended}, nil })
}

// ReplaceAccess is [Service.SetAccess] for an admin who has seen what the access was. It fails with [ErrAccessMoved] too, if it is
// another one by now.
func (s *Service) ReplaceAccess(ctx context.Context, by decision.By, userID string, seen, to Access) error {
	return s.decideAccess(ctx, by, userID, func(is Access) (Access, error) {
		if is != seen {
			return is, ErrAccessMoved
		}
		return to, nil
	})
}

// decideAccess is changeAccess for an admin, for whom a user who deleted the account is none.
func (s *Service) decideAccess(ctx context.Context, by decision.By, userID string, change func(Access) (Access, error)) error {
	_, _, err := s.changeAccess(ctx, by, userID, change)
	if errors.Is(err, ErrUserNotFound) || errors.Is(err, errDeleted) {
		return ErrUserNotFound
	}
	return err
}

// errUnchanged means that an operator asked for what a user's access is already.
var errUnchanged = errors.New("the access is that already")

// changeAccess changes a user's access in one transaction, to what change makes of what it is. If change fails with errUnchanged,
// nothing is recorded. It returns the user as they are now, and whether anything was recorded.
func (s *Service) changeAccess(ctx context.Context, by decision.By, userID string, change func(Access) (Access, error)) (user User, changed bool, err error) {
	if err := by.CheckNote(); err != nil {
		return User{}, false, err
	}
	now := s.o.Now()
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		admins, err := tx.Admins(ctx) // locked before the user, so that of two who demote each other at once one stays
		if err != nil {
			return err
		}
		if user, err = userToChange(ctx, tx, userID); err != nil {
			return err
		}
		to, err := change(user.Access())
		if err == nil && to.Role != Buyer && to.Role != Seller && to.Role != Admin {
			err = fault.Field("role", "must be buyer, seller or admin")
		}
		if err != nil {
			return err
		}
		if user.Role, user.Suspended = to.Role, to.Suspended; slices.Equal(admins, []string{userID}) && to != (Access{Role: Admin}) {
			return ErrLastAdmin
		}
		if _, err := tx.SetUserAccess(ctx, userID, to.Role, to.Suspended); err != nil {
			return err
		}
		if err := s.endWithoutAccess(ctx, tx, userID, to.Role, to.Suspended); err != nil {
			return err
		}
		record := by
		record.Note = AccessNote(to.Role, to.Suspended, by.Note)
		return ledger.RecordDecision(ctx, tx, decision.New(record, decision.ChangeAccess, userID, userID, now))
	})
	if errors.Is(err, errUnchanged) {
		return user, false, nil
	}
	if user.Suspended {
		err = s.endAnyway(ctx, userID, "", endedBySuspension, err)
	}
	if err != nil {
		return User{}, false, err
	}
	s.o.Logger.InfoContext(ctx, "access changed", slog.String("user_id", userID),
		slog.String("role", string(user.Role)), slog.Bool("suspended", user.Suspended), slog.String("by", by.Admin))
	return user, true, nil
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
		said, err := ledger.DecisionOf(e)
		if e.Type != ledger.AdminDecided || err != nil || said.Action != decision.ChangeAccess {
			continue
		}
		if !decidesSuspended(said.Note) {
			break
		}
		since = e.At
	}
	return since, nil
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
	if id.Valid(UserIDPrefix, query) {
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
