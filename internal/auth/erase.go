package auth

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// EraseTx is what the deletion of an account asks of a store transaction.
type EraseTx interface {
	// DeleteSessions deletes all sessions of a user, those that have ended too.
	DeleteSessions(ctx context.Context, userID string) error
	// EraseBankAccounts deletes the numbers of a user's bank accounts, which can't be paid to any more.
	EraseBankAccounts(ctx context.Context, userID, reason string, now time.Time) error
	// HasMoney reports whether a user has, expects or owes money, or has a payout under way, and keeps it so until the
	// transaction ends.
	HasMoney(ctx context.Context, userID string) (bool, error)
	// HasOpenCase reports whether a user's payouts are frozen, one whose amount the user has again has a discrepancy, or an unmatched
	// transfer names the user, so that the team may still have to correct the balance.
	HasOpenCase(ctx context.Context, userID string) (bool, error)
}

// Failures of a deletion.
var (
	ErrMoneyLeft = fault.New(fault.Conflict, "money_left",
		"Your account has money, expects money, owes money or has a payout under way. Withdraw or settle it first, then delete the account.")
	ErrCaseOpen = fault.New(fault.Conflict, "case_open",
		"Our team is looking at a payout of yours, and may have to correct your balance. You can delete the account once that is over.")
	ErrAdminAccount = fault.New(fault.Conflict, "admin_account",
		"An admin's account can't be deleted. Another admin changes your role first.")
)

// What stands in the place of what a deletion removes.
const (
	deletedName   = "Deleted user"
	deletedReason = "The account was deleted."
	// deletedRole is what a deletion decides. No row has that role, so an old row of the account is refused.
	deletedRole Role = "deleted"
)

// deletedEmail is no e-mail address, so that nobody can register it.
func deletedEmail(userID string) string { return "deleted " + userID }

// Deleted reports whether the user deleted the account.
func (u User) Deleted() bool { return u.Email == deletedEmail(u.ID) }

// DeleteAccount removes who the user is: name, e-mail address, profile, password, sessions, ways to sign in, external id
// and the numbers of bank accounts. The journal stays, and with it payouts and sales under the user's id. It fails
// with [ErrMoneyLeft], [ErrCaseOpen], [ErrAdminAccount], [ErrWrongPassword], [ErrThrottled], [ErrBusy], or with [ErrToken] if the
// session ended meanwhile. A user without a password has to have signed in a short time ago, or it fails with
// [ErrStaleSignIn]. A proof for account.delete takes the place of the password, or it fails with [ErrStepUp].
func (s *Service) DeleteAccount(ctx context.Context, p Principal, password string, from Device) error {
	err := s.changeProven(ctx, p, password, from, ActionDeleteAccount, nil, func(tx Tx) error { return s.erase(ctx, tx, p, from) })
	if err == nil {
		s.o.Logger.InfoContext(ctx, "account deleted", slog.String("user_id", p.UserID))
	}
	return err
}

// erase deletes the account of a user who has proven who they are.
func (s *Service) erase(ctx context.Context, tx Tx, p Principal, from Device) error {
	now := s.o.Now()
	user, found, err := tx.UserForUpdate(ctx, p.UserID)
	switch {
	case err != nil:
		return err
	case !found:
		return ErrToken
	case user.Role == Admin:
		return ErrAdminAccount
	}
	// It may not have been the user, but a thief who has moved the account. So its former address gets a mail as well, for as long as its owner could undo the move.
	addresses := []string{user.Email}
	moves, err := tx.MailTokens(ctx, user.ID, UndoEmailChange)
	if err != nil {
		return err
	}
	for _, move := range moves {
		if now.Before(move.ExpiresAt) && !slices.Contains(addresses, move.Email) {
			addresses = append(addresses, move.Email)
		}
	}
	by := decision.By{User: user.ID, Note: AccessNote(deletedRole, false, "")}
	none := ""
	for _, step := range []func() error{
		func() error { return tx.RemoveIdentities(ctx, user.ID) },
		func() error { return tx.DeleteSessions(ctx, user.ID) },
		func() error { return tx.DeleteMailTokens(ctx, user.ID, allPurposes) },
		func() error { return tx.ResetUser(ctx, User{ID: user.ID, Email: deletedEmail(user.ID), Role: Buyer}) },
		func() error {
			name := deletedName
			return tx.SetProfile(ctx, user.ID, ProfileChange{Name: &name, Avatar: &none, Bio: &none, Website: &none})
		},
		func() error { return tx.EraseBankAccounts(ctx, user.ID, deletedReason, now) },
		func() error { return s.clearFactors(ctx, tx, user.ID, Device{}) },
		func() error { return s.record(ctx, tx, user.ID, ledger.AccountDeleted, Device{}) }, // without what identifies a person
		func() error {
			return ledger.RecordDecision(ctx, tx, decision.New(by, decision.ChangeAccess, user.ID, user.ID, now))
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	// Journals are locked last. Money that comes before this is seen, and money that comes later finds no seller.
	left, err := tx.HasMoney(ctx, user.ID)
	if err == nil && left {
		err = ErrMoneyLeft
	}
	if err != nil {
		return err
	}
	if left, err = tx.HasOpenCase(ctx, user.ID); err == nil && left {
		err = ErrCaseOpen
	}
	if err != nil {
		return err
	}
	notice := mail.AccountDeleted{Origin: from.origin(now)}
	for _, to := range addresses {
		if _, err := s.o.Mails.Queue(ctx, tx, mail.Mail{To: to, Data: notice}); err != nil {
			return err
		}
	}
	return nil
}
