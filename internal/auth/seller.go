package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/id"
)

// Failures of what the marketplace asks about its sellers.
var (
	ErrSellerConflict   = fault.New(fault.Conflict, "seller_conflict", "A user with this externalId was made with other values; details names each. A repeat must be identical.")
	ErrSellerEmailTaken = fault.New(fault.Conflict, "email_taken",
		"Another user has this e-mail address, so it can't be given to this seller. Use another address, or ask the operator who has it.")
	ErrSellerSuspended = fault.New(fault.Conflict, "seller_suspended", "This seller is suspended, so nothing is done on their behalf.")
)

// IsExternalID reports whether a name of a seller is "ext:" and an external id.
func IsExternalID(name string) bool { return strings.HasPrefix(name, externalPrefix) }

// CheckSellerName returns what is wrong with a name of a seller, which is an id of ours or "ext:" and an external id, or "".
func CheckSellerName(name string) string {
	if externalID, isExternal := strings.CutPrefix(name, externalPrefix); isExternal {
		if problem := CheckExternalID(externalID); problem != "" {
			return "must be ext: and an external id, which " + problem
		}
		return ""
	}
	if !id.Valid(UserIDPrefix, name) {
		return "must be an id such as usr_0TMv3kQx8hPq2Zb7Lr4Wd9Yc, or ext: and an external id"
	}
	return ""
}

// Seller finds a user who may be paid, by id, or by "ext:" and the external id. It fails with [ErrSellerNotFound], or with
// [ErrTampered] if the user was changed in the database: another user's external id must not lead to their money.
func (s *Service) Seller(ctx context.Context, name string) (User, error) {
	if CheckSellerName(name) != "" {
		return User{}, ErrSellerNotFound
	}
	user, err := s.FindUser(ctx, name)
	switch {
	case errors.Is(err, ErrTampered):
		s.tampered(ctx, tamperedUser, slog.String("user_id", user.ID))
		return User{}, err
	case errors.Is(err, ErrUserNotFound), err == nil && !user.Role.CanUsePayouts():
		return User{}, ErrSellerNotFound
	default:
		return user, err
	}
}

// Sellers lists sellers after the one with that id, in the order of ids, up to limit. Those who were changed outside the
// service are left out, and counted.
func (s *Service) Sellers(ctx context.Context, after string, limit int) ([]ListedUser, error) {
	return s.o.Store.Users(ctx, UserFilter{Role: Seller}, after, limit)
}

// NewSeller is a seller of the marketplace.
type NewSeller struct{ ExternalID, Name, Email string }

// CreateSeller makes a user of a seller whom the marketplace knows by an external id, as actor asked, and reports whether they
// are new. The user has no password until they set one by a mailed link, and their address counts as unproven. The same
// again changes nothing, also after the seller changed their name or address.
//
// It never gives an external id to a user who is there: that user need not be the marketplace's seller,
// and would be paid in their place. So it fails with [ErrSellerEmailTaken] then, with [ErrSellerConflict] for other values
// under the external id, or with a fault that names the fields at fault.
func (s *Service) CreateSeller(ctx context.Context, n NewSeller, actor string) (User, bool, error) {
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	line := (&Import{s: s}).check(ImportLine{ExternalID: n.ExternalID, Name: n.Name, Email: n.Email, Role: Seller}, now)
	if n.ExternalID == "" {
		line.problems["externalId"] = CheckExternalID("")
	}
	if len(line.problems) > 0 {
		return User{}, false, fault.Fields(fault.Invalid, line.problems)
	}
	created := false
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		created, err = createSeller(ctx, tx, line, now)
		return err
	})
	if err != nil {
		return User{}, false, err
	}
	user, err := s.Seller(ctx, externalPrefix+n.ExternalID)
	if err == nil && created {
		s.o.Logger.InfoContext(ctx, "seller created", slog.String("user_id", user.ID), slog.String("actor", actor))
	}
	return user, created, err
}

// createSeller makes a user of a line, unless they are there. It reports whether it did.
func createSeller(ctx context.Context, tx Tx, line checkedLine, now time.Time) (bool, error) {
	for range maxLooks {
		b := importBatch{tx: tx, now: now, byExternalID: map[string]Imported{}, byEmail: map[string]Imported{}}
		if err := b.load(ctx, []checkedLine{line}); err != nil {
			return false, err
		}
		if same, found := b.byExternalID[line.ExternalID]; found {
			return false, sameSeller(line.ImportLine, same)
		}
		if _, taken := b.byEmail[EmailKey(line.Email)]; taken {
			return false, ErrSellerEmailTaken
		}
		inserted, err := tx.InsertImported(ctx, imported(line.ImportLine, now))
		if errors.Is(err, ErrEmailReserved) {
			return false, ErrSellerEmailTaken.WithMessage("Another user had this e-mail address until a few days ago, and can get it back. Use another address, or try again a week later.")
		}
		if err != nil || inserted {
			return inserted, err
		}
	}
	return false, fmt.Errorf("make the seller %q: they are there, and are not found", line.ExternalID)
}

// sameSeller fails with [ErrSellerConflict] unless the user was made with these values or has them now.
func sameSeller(line ImportLine, user Imported) error {
	problems := differences(line, user)
	for _, notAsked := range []string{"emailVerified", "suspended"} {
		delete(problems, notAsked)
	}
	if len(problems) == 0 {
		return nil
	}
	conflict := ErrSellerConflict.WithMessage("%s", ErrSellerConflict.Message)
	conflict.Details = problems
	return conflict
}
