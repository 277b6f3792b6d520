package auth

import (
	"context"
	"errors"
	"log/slog"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
)

// Reset is what an operator says of an account that was changed in the database: all that a MAC covers. What the stored
// row says of it is not believed.
type Reset struct {
	UserID   string
	Email    string
	Role     Role
	Password string
	// Operator is who does it, for the record.
	Operator string
}

// ResetUser gives an account a new password, the e-mail address and the role that the operator says. It is not suspended
// then, and its address is not verified; its sessions, its factors and its ways to sign in through a provider end, and its
// payouts are on hold for the cool-down. It fails with a
// fault that names the fields at fault, with [ErrUserNotFound], with a fault if the user deleted the account, or with [ErrEmailTaken].
func (s *Service) ResetUser(ctx context.Context, r Reset) error {
	problems := s.problems(Registration{Name: "Any name", Email: r.Email, Password: r.Password})
	if r.Role != Buyer && r.Role != Seller && r.Role != Admin {
		problems["role"] = "must be buyer, seller or admin"
	}
	if len(problems) > 0 {
		return fault.Fields(fault.Invalid, problems)
	}
	hash, err := s.passwords.hash(ctx, r.Password)
	if err != nil {
		return err
	}
	now := s.o.Now()
	by := decision.By{Operator: r.Operator, Note: AccessNote(r.Role, false, "The account was reset.")}
	user := User{ID: r.UserID, Email: r.Email, Role: r.Role, PasswordHash: hash}
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		switch was, _, err := tx.UserForUpdate(ctx, user.ID); {
		case err == nil && was.Deleted():
			return errDeleted
		case err != nil && !errors.Is(err, ErrTampered):
			return err
		}
		if err := tx.ResetUser(ctx, user); err != nil {
			return err
		}
		if err := s.endSessions(ctx, tx, user.ID, "", endedByReset); err != nil {
			return err
		}
		if err := tx.RemoveIdentities(ctx, user.ID); err != nil {
			return err
		}
		// Rows that were deleted outside the service are recorded as removed too.
		if _, err := tx.ClearFactors(ctx, user.ID); err != nil {
			return err
		}
		if err := s.record(ctx, tx, user.ID, ledger.AccountFactorsCleared, Device{}); err != nil {
			return err
		}
		if err := tx.DeleteMailTokens(ctx, user.ID, allPurposes); err != nil {
			return err
		}
		// The operator may have been talked into it, as with a password that is set.
		if _, err := s.holdPayoutsBy(ctx, tx, ledger.ActorOperator+r.Operator, user, ledger.HoldPasswordReset); err != nil {
			return err
		}
		return ledger.RecordDecision(ctx, tx, decision.New(by, decision.ChangeAccess, user.ID, user.ID, now))
	})
	if err == nil {
		s.o.Logger.InfoContext(ctx, "account reset", slog.String("user", user.ID), slog.String("role", string(user.Role)))
	}
	return err
}
