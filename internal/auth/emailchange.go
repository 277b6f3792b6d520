package auth

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// undoMargin is how far the clocks of two instances may differ: what was added so long before a change is undone with it.
const undoMargin = time.Minute

// Why sessions ended.
const (
	endedByUndo       = "email_change_undone"
	endedByUndoFactor = "factors_undone"
)

// ChangeEmail mails a link to a new address of the user's. The address is the account's once the link is confirmed. An address
// that is taken gets a notice, and the caller the same answer. It fails with a fault that names the field, with [ErrStepUp] unless
// the user has a proof for email.change of this address, or no second factor and signed in a short time ago, with [ErrStaleSignIn]
// if they have no password to prove by either, or with [ErrToken].
func (s *Service) ChangeEmail(ctx context.Context, p Principal, email string, from Device) error {
	if problem := CheckEmail(email); problem != "" {
		return fault.Field("email", problem)
	}
	now := s.o.Now()
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		u, err := s.userOfSession(ctx, tx, p)
		if err != nil {
			return err
		}
		if EmailKey(email) == EmailKey(u.Email) {
			return fault.Field("email", "is your e-mail address already")
		}
		session, _, err := tx.Session(ctx, p.Session)
		if err != nil {
			return err
		}
		if session.AuthenticatedAt.Equal(notProven) {
			return errNotProven
		}
		all, err := s.factorsOf(ctx, tx, u.ID)
		if err != nil {
			return err
		}
		if err := s.mayAddWayIn(ctx, tx, p, u, all, ActionChangeEmail, EmailKey(email)); err != nil {
			return err
		}
		text, t := newMailToken(confirmEmail, u.ID, from, now, mail.ConfirmLife)
		t.Email = email
		owner, taken, err := s.o.Store.UserByEmail(ctx, EmailKey(email))
		if errors.Is(err, ErrTampered) {
			return nil
		}
		if err != nil {
			return err
		}
		if taken {
			_, err := s.o.Mails.Queue(ctx, tx, mail.Mail{User: owner.ID, To: owner.Email, Data: mail.AccountExists{Request: t.request()}})
			return err
		}
		return s.queueToken(ctx, tx, t, mail.Mail{User: u.ID, To: email, Data: mail.ConfirmEmail{Request: t.request(), Token: text}})
	})
}

// CheckEmailToken fails with [ErrMailToken] unless a token confirms, or with undo undoes, a change of the address. It returns
// the address that the account would get.
func (s *Service) CheckEmailToken(ctx context.Context, token string, undo bool) (email string, err error) {
	t, err := s.mailToken(ctx, token, emailPurpose(undo))
	return t.Email, err
}

func emailPurpose(undo bool) MailPurpose {
	if undo {
		return UndoEmailChange
	}
	return confirmEmail
}

// ConfirmEmailChange makes a new address the account's. Payouts are on hold afterwards. The old address gets a notice, with a
// link that undoes the change if it was confirmed. It fails with [ErrMailToken].
func (s *Service) ConfirmEmailChange(ctx context.Context, token string, from Device) error {
	t, err := s.mailToken(ctx, token, confirmEmail)
	if err != nil {
		return err
	}
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		now := s.o.Now()
		u, err := s.useMailToken(ctx, tx, t)
		if err != nil {
			return err
		}
		if err := s.moveTo(ctx, tx, u, t.Email); err != nil {
			return err
		}
		until, err := s.holdPayouts(ctx, tx, u, ledger.HoldEmailChanged)
		if err != nil {
			return err
		}
		if err := s.record(ctx, tx, u.ID, ledger.AccountEmailChanged, from); err != nil {
			return err
		}
		if !u.Verified {
			// The address may be another person's, who keeps no link that removes factors.
			if err := tx.DeleteMailTokens(ctx, u.ID, UndoFactor); err != nil {
				return err
			}
			request := MailToken{CreatedAt: now, From: from}.request()
			_, err := s.o.Mails.Queue(ctx, tx, mail.Mail{To: u.Email, Data: mail.EmailChanged{Request: request, HoldUntil: until}})
			return err
		}
		text, undo := newMailToken(UndoEmailChange, u.ID, from, now, mail.UndoLife)
		undo.Email = u.Email
		earlier, err := tx.MailTokens(ctx, u.ID, UndoEmailChange)
		if err != nil {
			return err
		}
		if n := len(earlier); n > 0 && !undo.CreatedAt.After(earlier[n-1].CreatedAt) { // another instance's clock was ahead, and the order counts
			undo.CreatedAt = earlier[n-1].CreatedAt.Add(time.Microsecond)
		}
		return s.queueToken(ctx, tx, undo, mail.Mail{To: u.Email, Data: mail.EmailChanged{Request: undo.request(), Now: t.Email, Token: text, HoldUntil: until}})
	})
	if err == nil {
		s.o.Logger.InfoContext(ctx, "e-mail address changed", slog.String("user_id", t.UserID))
	}
	return err
}

// moveTo gives the account another address. What was mailed to the one before permits nothing any more.
func (s *Service) moveTo(ctx context.Context, tx Tx, u User, email string) error {
	err := tx.SetEmail(ctx, u.ID, email)
	if errors.Is(err, ErrEmailTaken) || errors.Is(err, ErrEmailReserved) {
		return ErrMailToken.Because(err)
	}
	if err != nil {
		return err
	}
	return endMailTokens(ctx, tx, u.ID)
}

// endMailTokens ends what was mailed to a user, but for what undoes a change: a thief who has made it and sets a new password must
// not end that.
func endMailTokens(ctx context.Context, tx Tx, userID string) error {
	for _, purpose := range []MailPurpose{verifyEmail, resetPassword, confirmEmail} {
		if err := tx.DeleteMailTokens(ctx, userID, purpose); err != nil {
			return err
		}
	}
	return nil
}

// reasonUndone is for the seller whose change of the address was undone.
const reasonUndone = "This bank account was registered after a change of your e-mail address that was undone. If it is yours, register it again."

// UndoEmailChange gives the account its former address back, ends all its sessions and removes its password: a thief who changed the address may know it.
// A link that sets another one is mailed. Second factors and providers that were added since are removed, and bank accounts that were registered since are
// rejected. Payouts are on hold afterwards. It fails with [ErrMailToken].
func (s *Service) UndoEmailChange(ctx context.Context, token string, from Device) error {
	t, err := s.mailToken(ctx, token, UndoEmailChange)
	if err != nil {
		return err
	}
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		u, err := s.useMailToken(ctx, tx, t)
		if err != nil {
			return err
		}
		if err := s.moveTo(ctx, tx, u, t.Email); err != nil {
			return err
		}
		// An undo ends those of later changes. A thief who has changed the address twice must not end the owner's with the second one's.
		if err := tx.DeleteMailTokensSince(ctx, u.ID, UndoEmailChange, t.CreatedAt); err != nil {
			return err
		}
		if err := s.endSessions(ctx, tx, u.ID, "", endedByUndo); err != nil {
			return err
		}
		// A thief who had changed the address would come back by the password, known to them or set by them, through a provider, by a factor or by the
		// link mailed about it. What was mailed about another bank account went to the thief.
		if err := s.endPassword(ctx, tx, u, t.Email, from); err != nil {
			return err
		}
		since := t.CreatedAt.Add(-undoMargin)
		if t.CreatedAt.After(s.o.Now()) { // by a clock that was wrong: nothing says what was before the change
			since = s.o.Now().Add(-mail.UndoLife)
		}
		if err := tx.RemoveIdentitiesSince(ctx, u.ID, since); err != nil {
			return err
		}
		if err := tx.DeleteMailTokensSince(ctx, u.ID, UndoFactor, since); err != nil {
			return err
		}
		if err := tx.RejectBankAccountsSince(ctx, u.ID, reasonUndone, since, s.o.Now()); err != nil {
			return err
		}
		if err := s.removeFactorsSince(ctx, tx, u, since, from); err != nil { // the journal is locked last
			return err
		}
		if _, err := s.holdPayouts(ctx, tx, u, ledger.HoldEmailChanged); err != nil {
			return err
		}
		return s.record(ctx, tx, u.ID, ledger.AccountEmailChangeUndone, from)
	})
	if err = s.endAnyway(ctx, t.UserID, "", endedByUndo, err); err == nil {
		s.o.Logger.WarnContext(ctx, "change of an e-mail address undone", slog.String("user_id", t.UserID))
	}
	return err
}

// endPassword removes a user's password, if there is one, and mails a link that sets another one: a user with a provider could ask for none, and a thief may
// have asked for as many as are mailed in a day.
func (s *Service) endPassword(ctx context.Context, tx Tx, u User, to string, from Device) error {
	if _, err := tx.SetPasswordHash(ctx, u.ID, u.PasswordHash, ""); err != nil {
		return err
	}
	text, link := newMailToken(resetPassword, u.ID, from, s.o.Now(), mail.ResetLife)
	return s.queueToken(ctx, tx, link, mail.Mail{User: u.ID, To: to, Data: mail.ResetPassword{Request: link.request(), Token: text}, Once: true})
}
