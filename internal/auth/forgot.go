package auth

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// MailRequest asks for a link to reset a password. A job answers it, so that the request takes as long for an address
// that no user has.
type MailRequest struct {
	ID    string // prefix "mrq_"
	Email string // encrypted
	From  Device
	At    time.Time
}

const mailRequestPrefix = "mrq_"

func mailRequestContext(id string) string { return "mail_requests|email|" + id }

// ForgotPassword has a link mailed to an address that sets another password, or a mail that says that its user signs in
// through a provider. It does the same work for an address that no user has, so its answer and its time say nothing.
func (s *Service) ForgotPassword(ctx context.Context, email string, from Device) error {
	if CheckEmail(email) != "" {
		return nil
	}
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	r := MailRequest{ID: id.New(mailRequestPrefix, now), At: now, From: from.shown()}
	var err error
	if r.Email, err = s.o.Encrypter.Encrypt(email, mailRequestContext(r.ID)); err != nil {
		return err
	}
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		if s.o.Throttle {
			wait, err := take(ctx, tx, now, try{action: askForMail, address: from.site()}.buckets())
			if err != nil {
				return err
			}
			if wait > 0 {
				s.o.Logger.WarnContext(ctx, "mail request dropped", slog.String("address", from.Address), slog.String("reason", "limit reached"))
				return nil
			}
		}
		return tx.InsertMailRequest(ctx, r)
	})
}

// AnswerMailRequest answers the oldest request for a mail, and returns how many it answered: one, or none where there is
// none. The request, the token and the mail change in one transaction, so that a crash repeats all or nothing.
func (s *Service) AnswerMailRequest(ctx context.Context) (answered int, err error) {
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		answered = 0
		r, found, err := tx.TakeMailRequest(ctx)
		if err != nil || !found {
			return err
		}
		answered = 1
		email, err := s.o.Encrypter.Decrypt(r.Email, mailRequestContext(r.ID))
		if err != nil {
			s.o.Logger.ErrorContext(ctx, "mail request dropped", slog.Any("error", err))
			return nil
		}
		now := s.o.Now()
		u, found, err := tx.UserByEmail(ctx, EmailKey(email))
		switch {
		case errors.Is(err, ErrTampered):
			s.tampered(ctx, tamperedUser, slog.String("user_id", u.ID))
			return nil
		case err != nil:
			return err
		case !found || u.Suspended || now.Sub(r.At) >= mail.ResetLife:
			return nil
		default:
			return s.mailReset(ctx, tx, u, r, now)
		}
	})
	return answered, err
}

// mailReset answers a request for another password.
func (s *Service) mailReset(ctx context.Context, tx Tx, u User, r MailRequest, now time.Time) error {
	request := mail.Request{Origin: r.From.origin(r.At)}
	if u.PasswordHash == "" {
		linked, err := tx.Identities(ctx, u.ID)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(linked, s.isSetUp) {
			_, err := s.o.Mails.Queue(ctx, tx, mail.Mail{User: u.ID, To: u.Email, Data: mail.PasswordAtProvider{Request: request}})
			return err
		}
	}
	text, t := newMailToken(resetPassword, u.ID, r.From, now, mail.ResetLife)
	return s.queueToken(ctx, tx, t, mail.Mail{User: u.ID, To: u.Email, Data: mail.ResetPassword{Request: request, Token: text}})
}

// fieldPassword is the field that a fault of [Service.SetForgottenPassword], [Service.DeleteAccount] or [Service.UnlinkIdentity] names.
const fieldPassword = "password"

// CheckResetToken fails with [ErrMailToken] unless a mailed token permits to set a password. It uses nothing up.
func (s *Service) CheckResetToken(ctx context.Context, token string) error {
	_, err := s.mailToken(ctx, token, resetPassword)
	return err
}

// SetForgottenPassword sets the password of the user that a mailed token belongs to, and ends all their sessions and devices. The
// token proves that the address is theirs. If that was not proven before, nothing of before lives on; only an admin keeps their second
// factors. It fails with [ErrMailToken], with a fault that names the password, with [ErrThrottled] or with [ErrBusy].
func (s *Service) SetForgottenPassword(ctx context.Context, token, password string, from Device) error {
	if problem := CheckPassword(password); problem != "" {
		return fault.Field(fieldPassword, problem)
	}
	t, err := s.mailToken(ctx, token, resetPassword) // a token that permits nothing costs no hash
	if err != nil {
		return err
	}
	user, _, found, err := s.o.Store.UserWithStats(ctx, t.UserID)
	if err != nil {
		return err
	}
	if !found {
		return ErrMailToken
	}
	if problem := s.newPasswordProblem(password, user); problem != "" {
		return fault.Field(fieldPassword, problem)
	}
	_, leave, err := s.begin(ctx, try{action: useReset, address: from.site()})
	if err != nil {
		return err
	}
	defer leave()
	hash, err := s.passwords.hash(ctx, password)
	if err != nil {
		return err
	}
	err = s.o.Store.InTx(ctx, func(tx Tx) error { return s.reset(ctx, tx, t, hash, from) })
	if err = s.endAnyway(ctx, t.UserID, "", endedByForgotten, err); err == nil {
		s.o.Logger.InfoContext(ctx, "password reset", slog.String("user_id", t.UserID), slog.String("address", from.Address))
	}
	return err
}

func (s *Service) reset(ctx context.Context, tx Tx, t MailToken, hash string, from Device) error {
	now := s.o.Now()
	u, err := s.useMailToken(ctx, tx, t)
	if err != nil {
		return err
	}
	event := ledger.AccountPasswordReset
	var holdUntil time.Time
	// An admin's account is nobody's to take over with a mailbox alone: it keeps its second factors, though no operator's admin is asked
	// to confirm an address.
	if u.Verified || u.Role == Admin {
		if err = s.replaceForgotten(ctx, tx, u, hash); err == nil {
			holdUntil, err = s.holdPayouts(ctx, tx, u, ledger.HoldPasswordReset)
		}
	} else {
		event, u.PasswordHash, u.Name = ledger.AccountTakenOver, hash, nameOf(Identity{Email: u.Email})
		err = s.giveToOwner(ctx, tx, u, from, endedByForgotten, now)
	}
	if err == nil {
		err = s.record(ctx, tx, u.ID, event, from)
	}
	if err != nil {
		return err
	}
	_, err = s.o.Mails.Queue(ctx, tx, mail.Mail{User: u.ID, To: u.Email, Data: mail.PasswordChanged{
		Origin: from.origin(now), Reset: true, HoldUntil: holdUntil,
	}})
	return err
}

// replaceForgotten replaces the password of a user who was locked, whose address is confirmed with it, and ends all their sessions and
// tokens. No device is known with another password. Providers and bank accounts of before the address was confirmed may be another
// person's, and end.
func (s *Service) replaceForgotten(ctx context.Context, tx Tx, u User, hash string) error {
	if _, err := tx.SetPasswordHash(ctx, u.ID, u.PasswordHash, hash); err != nil {
		return err
	}
	if !u.Verified {
		if err := errors.Join(tx.RemoveIdentities(ctx, u.ID), tx.RejectBankAccounts(ctx, u.ID, reasonRegisterAgain, s.o.Now()), tx.VerifyUser(ctx, u.ID)); err != nil {
			return err
		}
	}
	if err := s.endSessions(ctx, tx, u.ID, "", endedByForgotten); err != nil {
		return err
	}
	return endMailTokens(ctx, tx, u.ID)
}
