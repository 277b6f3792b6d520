package auth

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
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
}

// Failures of a deletion.
var (
	ErrMoneyLeft = fault.New(fault.Conflict, "money_left",
		"Your account has money, expects money, owes money or has a payout under way. Withdraw or settle it first, then delete the account.")
	ErrAdminAccount = fault.New(fault.Conflict, "admin_account",
		"An admin's account can't be deleted. Another admin changes your role first.")
)

// What stands in the place of what a deletion removes.
const (
	deletedName   = "Deleted user"
	deletedReason = "The account was deleted."
)

// deletedEmail is no e-mail address, so that nobody can register it.
func deletedEmail(userID string) string { return "deleted " + userID }

// Deleted reports whether the user deleted the account.
func (u User) Deleted() bool { return u.Email == deletedEmail(u.ID) }

// DeleteAccount removes who the user is: name, e-mail address, profile, password, sessions, ways to sign in, external id
// and the numbers of bank accounts. The journal stays, and with it payouts and sales under the user's id. It fails
// with [ErrMoneyLeft], [ErrAdminAccount], [ErrWrongPassword], [ErrThrottled], [ErrBusy], or with [ErrToken] if the
// session ended meanwhile. A user without a password has to have signed in a short time ago, or it fails with
// [ErrStaleSignIn].
func (s *Service) DeleteAccount(ctx context.Context, p Principal, password string, from Device) error {
	user, _, err := s.Me(ctx, p)
	if err != nil {
		return err
	}
	if user.PasswordHash != "" && password == "" {
		return fault.Fields(fault.Malformed, map[string]string{fieldPassword: "is required"})
	}
	t := try{
		action: guessPassword, account: user.ID,
		device: cmp.Or(s.recognize(user, from, s.o.Now()), p.Session), address: from.site(),
	}
	a, leave, err := s.begin(ctx, t)
	if err != nil {
		return err
	}
	defer leave()
	for range maxChecks {
		if err := s.checkCurrent(ctx, user, password, t, fieldPassword); err != nil {
			return err
		}
		err = s.o.Store.InTx(ctx, func(tx Tx) error { return s.erase(ctx, tx, p, user.PasswordHash, a) })
		if !errors.Is(err, errUserChanged) {
			break
		}
		if user, _, err = s.Me(ctx, p); err != nil {
			return err
		}
		err = ErrBusy.After(busyRetry).Because(errUserChanged)
	}
	if err != nil {
		return err
	}
	s.o.Tried(string(t.action), outcomeRight)
	s.o.Logger.InfoContext(ctx, "account deleted", slog.String("user_id", p.UserID))
	return nil
}

// erase deletes the account if its password is still that of the hash and the session that asks is alive.
func (s *Service) erase(ctx context.Context, tx Tx, p Principal, hash string, a attempt) error {
	now := s.o.Now()
	if err := s.mayChange(ctx, tx, p, hash, now); err != nil {
		return err
	}
	user, found, err := tx.UserForUpdate(ctx, p.UserID)
	switch {
	case err != nil:
		return err
	case !found:
		return ErrToken
	case user.Role == Admin:
		return ErrAdminAccount
	}
	if err := s.RequireProof(ctx, tx, p, ActionDeleteAccount); err != nil {
		return err
	}
	by := decision.By{User: user.ID, Note: accessNote(Buyer, false, deletedReason)}
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
		func() error { return a.forgive(ctx, tx) },
		func() error { return tx.EraseBankAccounts(ctx, user.ID, deletedReason, now) },
		func() error { return s.clearFactors(ctx, tx, user.ID, Device{}) },
		func() error {
			return tx.RecordDecision(ctx, decision.New(by, decision.ChangeAccess, user.ID, user.ID, now))
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
	return err
}
