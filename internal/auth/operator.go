package auth

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// UserStore finds users for the operator. It fails with [ErrTampered] if the service did not write the user.
type UserStore interface {
	UserByID(ctx context.Context, id string) (User, bool, error)
	UserByExternalID(ctx context.Context, externalID string) (User, bool, error)
	// Users lists users after the one with that id, in the order of their ids, up to limit.
	Users(ctx context.Context, f UserFilter, after string, limit int) ([]ListedUser, error)
	// PasswordDecoy is the hash that [ImportTx.SetPasswordDecoy] stored last; empty for none.
	PasswordDecoy(ctx context.Context) (string, error)
}

// UserFilter says which users are listed. Its zero value lists all.
type UserFilter struct {
	Role Role
	// Suspended leaves out those who are not.
	Suspended bool
}

// ListedUser is a user as an operator sees them in a list.
type ListedUser struct {
	User
	// Tampered says that the user was changed outside the service.
	Tampered bool
}

// externalPrefix marks an external id where any name of a user may stand.
const externalPrefix = "ext:"

// errNoSuchUser is for an operator, who names a user in one of three ways.
var errNoSuchUser = ErrUserNotFound.WithMessage(
	"There is no such user. Name one by id (usr_…), by e-mail address, or by ext: and the external id; bursar user list shows all.")

// userToChange finds and locks a user for an operator. It fails with [ErrTampered], and with a fault if there is no such user, or if they
// deleted the account.
func userToChange(ctx context.Context, tx Tx, userID string) (User, error) {
	user, found, err := tx.UserForUpdate(ctx, userID)
	switch {
	case err == nil && !found:
		err = errNoSuchUser
	case err == nil && user.Deleted():
		err = errDeleted
	}
	return user, err
}

var errDeleted = fault.New(fault.Refused, "account_deleted", "The user deleted this account, so nobody can change it. They can register again.")

// FindUser finds a user by id, by e-mail address, or by "ext:" and the external id.
func (s *Service) FindUser(ctx context.Context, name string) (User, error) {
	var user User
	var found bool
	var err error
	externalID, isExternal := strings.CutPrefix(name, externalPrefix)
	switch {
	case isExternal:
		user, found, err = s.o.Store.UserByExternalID(ctx, externalID)
	case id.Valid(UserIDPrefix, name):
		user, found, err = s.o.Store.UserByID(ctx, name)
	default:
		user, found, err = s.o.Store.UserByEmail(ctx, EmailKey(name))
	}
	if err == nil && !found {
		err = errNoSuchUser
	}
	return user, err
}

// usersPage is how many users are read at once.
const usersPage = 500

// EachUser calls fn with each user, in the order of ids, until fn fails.
func (s *Service) EachUser(ctx context.Context, f UserFilter, fn func(ListedUser) error) error {
	for after := ""; ; {
		page, err := s.o.Store.Users(ctx, f, after, usersPage)
		if err != nil {
			return err
		}
		for _, user := range page {
			if err := fn(user); err != nil {
				return err
			}
			after = user.ID
		}
		if len(page) < usersPage {
			return nil
		}
	}
}

// SetRole gives a user a role, as an operator decided, and leaves their suspension as it is. It returns the user as
// they are now, and whether anything changed. It fails as [Service.SetAccess] does.
func (s *Service) SetRole(ctx context.Context, by decision.By, userID string, role Role) (User, bool, error) {
	return s.changeAccess(ctx, by, userID, func(is Access) (Access, error) {
		if is.Role == role {
			return is, errUnchanged
		}
		return Access{role, is.Suspended}, nil
	})
}

// SetSuspended suspends a user or lets them in again, as an operator decided, and leaves their role as it is. It
// returns the user as they are now, and whether anything changed. It fails as [Service.SetAccess] does.
func (s *Service) SetSuspended(ctx context.Context, by decision.By, userID string, suspended bool) (User, bool, error) {
	return s.changeAccess(ctx, by, userID, func(is Access) (Access, error) {
		if is.Suspended == suspended {
			return is, errUnchanged
		}
		return Access{is.Role, suspended}, nil
	})
}

// ResetPassword gives a user another password, as an operator decided, and tells them by mail. It ends all their
// sessions; no device is known to the account then, and payouts are on hold. With removeFactors it removes all second factors
// and unlinks all providers too, for a user who lost them or whom a thief gave one. It fails with a fault that names the field at fault, with
// [ErrUserNotFound], or with [ErrTampered].
func (s *Service) ResetPassword(ctx context.Context, by decision.By, userID, password string, removeFactors bool) (User, error) {
	if err := by.CheckNote(); err != nil {
		return User{}, err
	}
	user, found, err := s.o.Store.UserByID(ctx, userID)
	if err == nil && !found {
		err = errNoSuchUser
	}
	if err != nil {
		return User{}, err
	}
	if problem := s.newPasswordProblem(password, user); problem != "" {
		return User{}, fault.Field("password", problem)
	}
	hash, err := s.passwords.hash(ctx, password)
	if err != nil {
		return User{}, err
	}
	now := s.o.Now()
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		if user, err = userToChange(ctx, tx, userID); err != nil {
			return err
		}
		if _, err := tx.SetPasswordHash(ctx, userID, user.PasswordHash, hash); err != nil {
			return err
		}
		if err := s.endSessions(ctx, tx, userID, "", endedByPassword); err != nil {
			return err
		}
		linked, err := tx.Identities(ctx, userID)
		if err != nil {
			return err
		}
		if removeFactors {
			if err := s.clearWaysIn(ctx, tx, userID, linked); err != nil {
				return err
			}
		}
		until, err := s.holdAfterReset(ctx, tx, by, user, len(linked) > 0)
		if err != nil {
			return err
		}
		notice := mail.PasswordChanged{Origin: mail.Origin{At: now}, First: user.PasswordHash == "", HoldUntil: until}
		if _, err := s.o.Mails.Queue(ctx, tx, mail.Mail{User: userID, Data: notice}); err != nil {
			return err
		}
		return ledger.RecordDecision(ctx, tx, decision.New(by, decision.SetPassword, userID, userID, now))
	})
	if err = s.endAnyway(ctx, userID, "", endedByPassword, err); err != nil {
		return User{}, err
	}
	s.o.Logger.InfoContext(ctx, "password set", slog.String("user_id", user.ID), slog.String("by", by.Operator))
	return user, nil
}

// holdAfterReset puts payouts on hold, because the operator may have been talked into it. The first way to sign in takes nobody's
// account. isLinked says whether a provider was another.
func (s *Service) holdAfterReset(ctx context.Context, tx Tx, by decision.By, user User, isLinked bool) (time.Time, error) {
	if user.PasswordHash == "" && !isLinked { // unless an undone change of the address removed what there was
		undone, err := tx.NewestOfType(ctx, user.ID, user.ID, ledger.AccountEmailChangeUndone)
		if err != nil || undone.IsZero() {
			return time.Time{}, err
		}
	}
	return s.holdPayoutsBy(ctx, tx, ledger.ActorOperator+by.Operator, user, ledger.HoldPasswordReset)
}
