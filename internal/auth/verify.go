package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// endedByOwner is why sessions end of a registration that another one with the same address replaces.
const endedByOwner = "address_confirmed_by_owner"

// ErrEmailNotVerified refuses a payout request where [Options.RequireVerifiedEmail] is set.
var ErrEmailNotVerified = fault.New(fault.Forbidden, "email_not_verified", "Confirm your e-mail address before you request a payout. Use the link or the code that was mailed to you, or ask for another.")

// CheckMayRequestPayout fails with [ErrEmailNotVerified] where the operator asks for verified addresses and the user's is not.
func (s *Service) CheckMayRequestPayout(p Principal) error {
	if s.o.RequireVerifiedEmail && !p.Verified {
		return ErrEmailNotVerified
	}
	return nil
}

// mailVerification mails a user what confirms their own registration. The first mail comes with the registration.
func (s *Service) mailVerification(ctx context.Context, tx Tx, u User, from Device, now time.Time, first bool) error {
	text, t := newMailToken(verifyEmail, u.ID, from, now, mail.VerificationLife)
	code, err := newCode()
	if err != nil {
		return err
	}
	if t.Code, err = s.o.Encrypter.Encrypt(code, codeContext(t.Hash)); err != nil {
		return err
	}
	return s.queueToken(ctx, tx, t, mail.Mail{
		User: u.ID, To: u.Email, First: first,
		Data: mail.VerifyEmail{Request: t.request(), RegisteredAt: u.CreatedAt, Name: nameInMail(u.Name), Token: text, Code: code},
	})
}

// mailRegisteredAgain answers a registration with an address that is taken. The owner of a verified account gets a notice. An
// account that was never verified and that the marketplace did not make may be another person's: the mail lets the owner of the address have it with the
// password that was entered now, and ends the access of the person who registered first.
func (s *Service) mailRegisteredAgain(ctx context.Context, tx Tx, again User, from Device) error {
	u, found, err := tx.UserByEmail(ctx, EmailKey(again.Email))
	if errors.Is(err, ErrTampered) {
		s.tampered(ctx, tamperedUser, slog.String("user_id", u.ID))
		return nil
	}
	if err != nil || !found || u.Suspended {
		return err
	}
	text, t := newMailToken(verifyEmail, u.ID, from, again.CreatedAt, mail.VerificationLife)
	// An account that the marketplace made takes no password of a registrant, who may be waiting for its owner's careless click.
	if u.Verified || u.Role == Admin || u.ExternalID != "" {
		_, err := s.o.Mails.Queue(ctx, tx, mail.Mail{User: u.ID, To: u.Email, Data: mail.AccountExists{Request: t.request()}})
		return err
	}
	t.Name, t.Role, t.PasswordHash = again.Name, again.Role, again.PasswordHash
	return s.queueToken(ctx, tx, t, mail.Mail{
		User: u.ID, To: u.Email, Data: mail.RegisteredAgain{Request: t.request(), Name: nameInMail(again.Name), Token: text},
	})
}

// Pending is a registration that waits to be confirmed.
type Pending struct {
	Name, Email  string
	RegisteredAt time.Time
	// From is the device that asked for the mail.
	From Device
	// Another says that confirming it ends an earlier registration with the same address.
	Another bool
}

// PendingRegistration finds the registration that a mailed token belongs to, or fails with [ErrMailToken]. It uses nothing
// up.
func (s *Service) PendingRegistration(ctx context.Context, token string) (Pending, error) {
	t, err := s.mailToken(ctx, token, verifyEmail)
	if err != nil {
		return Pending{}, err
	}
	u, _, found, err := s.o.Store.UserWithStats(ctx, t.UserID)
	if err != nil {
		return Pending{}, err
	}
	if !found || u.Suspended || u.Verified {
		return Pending{}, ErrMailToken
	}
	p := Pending{Name: u.Name, Email: u.Email, RegisteredAt: u.CreatedAt, From: t.From, Another: t.Another()}
	if t.Another() {
		p.Name, p.RegisteredAt = t.Name, t.CreatedAt
	}
	return p, nil
}

// VerifyEmail confirms the registration that a mailed token belongs to. The registration that made the account is
// confirmed as it is. Another one takes the account over: its password is the account's from now on, and nothing of the
// earlier registration lives on. It fails with [ErrMailToken].
func (s *Service) VerifyEmail(ctx context.Context, token string) error {
	t, err := s.mailToken(ctx, token, verifyEmail)
	if err != nil {
		return err
	}
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		u, err := s.useMailToken(ctx, tx, t)
		if err == nil && u.Verified {
			err = ErrMailToken
		}
		if err != nil {
			return err
		}
		return s.confirm(ctx, tx, u, t)
	})
	if err == nil {
		s.o.Logger.InfoContext(ctx, "e-mail verified", slog.String("user_id", t.UserID), slog.Bool("took_over", t.Another()))
	}
	return err
}

// confirm records that a user's address is theirs, of the registration that t belongs to. Tokens of all others end. The event
// says which device asked for the mail.
func (s *Service) confirm(ctx context.Context, tx Tx, u User, t MailToken) error {
	if !t.Another() {
		if err := tx.VerifyUser(ctx, u.ID); err != nil {
			return err
		}
		if err := tx.DeleteMailTokens(ctx, u.ID, verifyEmail); err != nil {
			return err
		}
		return s.record(ctx, tx, u.ID, ledger.AccountEmailVerified, t.From)
	}
	if u.Role == Admin { // who was made one since
		return ErrMailToken
	}
	u.Role, u.PasswordHash, u.Name = t.Role, t.PasswordHash, t.Name
	if err := s.giveToOwner(ctx, tx, u, t.From, endedByOwner, s.o.Now()); err != nil {
		return err
	}
	return s.record(ctx, tx, u.ID, ledger.AccountTakenOver, t.From)
}

// VerifyEmailByCode confirms the registration of the user who is asking, with the code that was mailed to them. It fails
// with [ErrCode], also for a right one after five wrong ones, or with [ErrToken] if the session ended meanwhile. The code of a
// user who is verified already is not looked at.
func (s *Service) VerifyEmailByCode(ctx context.Context, p Principal, code string) error {
	now := s.o.Now()
	var outcome error
	err := s.o.Store.InTx(ctx, func(tx Tx) error {
		outcome = nil
		u, err := s.userOfSession(ctx, tx, p)
		if err != nil || u.Verified {
			return err
		}
		t, found, err := tx.CodeToken(ctx, u.ID, now)
		if err = s.refuseTampered(ctx, err, ErrCode, tamperedMailToken, slog.String("user_id", u.ID)); err != nil {
			return err
		}
		if !found || t.Tries >= maxCodeTries {
			return ErrCode
		}
		right, err := s.o.Encrypter.Decrypt(t.Code, codeContext(t.Hash))
		if err != nil {
			return err
		}
		if subtle.ConstantTimeCompare([]byte(right), []byte(code)) != 1 {
			outcome = ErrCode
			return tx.CountWrongCode(ctx, t.Hash) // and is committed
		}
		return s.confirm(ctx, tx, u, t)
	})
	if err == nil {
		err = outcome
	}
	if err == nil {
		s.o.Logger.InfoContext(ctx, "e-mail verified", slog.String("user_id", p.UserID), slog.Bool("took_over", false))
	}
	return err
}

// userOfSession finds the user of a session that is alive, and keeps both as they are until the transaction ends. It fails
// with [ErrToken].
func (s *Service) userOfSession(ctx context.Context, tx Tx, p Principal) (User, error) {
	u, found, err := tx.UserForUpdate(ctx, p.UserID)
	if err = s.refuseTampered(ctx, err, ErrToken, tamperedUser, slog.String("user_id", p.UserID)); err != nil {
		return User{}, err
	}
	session, alive, err := tx.Session(ctx, p.Session)
	if err != nil {
		return User{}, err
	}
	if !found || u.Suspended || !alive || !session.live(s.o.Now()) || session.UserID != p.UserID {
		return User{}, ErrToken
	}
	return u, nil
}

// ResendVerification mails the user who is asking another link and code, if their address is not verified. The earlier
// ones end then; over a limit there is no mail, and they stay.
func (s *Service) ResendVerification(ctx context.Context, p Principal, from Device) error {
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		u, err := s.userOfSession(ctx, tx, p)
		if err != nil || u.Verified {
			return err
		}
		return s.mailVerification(ctx, tx, u, from, s.o.Now(), false)
	})
}
