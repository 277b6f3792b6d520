package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"time"
	"unicode"

	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/mail"
)

// MailPurpose is what a mailed token permits.
type MailPurpose string

// Purposes.
const (
	verifyEmail   MailPurpose = "verify_email"
	resetPassword MailPurpose = "reset_password"
	confirmEmail  MailPurpose = "confirm_email"
	// UndoEmailChange gives an account its former address back.
	UndoEmailChange MailPurpose = "undo_email"
	// UndoFactor removes all second factors of a user whose first one a thief may have added.
	UndoFactor MailPurpose = "undo_factor"

	// allPurposes stands for every purpose.
	allPurposes MailPurpose = ""
)

// MailToken is a token that was mailed. Its text is in the mail alone.
type MailToken struct {
	Hash    string
	Purpose MailPurpose
	UserID  string
	// Email is the address that the account gets by the token; empty for other purposes.
	Email string
	// Code may be entered in place of the token by the user who is signed in. It is encrypted; empty for none. Tries are the
	// wrong ones that were entered.
	Code  string
	Tries int64
	// Name, Role and PasswordHash are another registration's with the address of an account that was never verified: what
	// confirming it makes of the account. They are empty for the registration that made the account.
	Name         string
	Role         Role
	PasswordHash string
	// From is the device that asked for the mail, as it may be shown.
	From      Device
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Undoes reports whether the token undoes a change. Each change can be undone, so a later token ends no earlier one.
func (t MailToken) Undoes() bool { return t.Purpose == UndoEmailChange || t.Purpose == UndoFactor }

// Another reports whether the token is of another registration than the one that made the account.
func (t MailToken) Another() bool { return t.PasswordHash != "" }

// What a token or a code that permits nothing is answered with. An unknown, a used and an expired one get the same answer.
var (
	ErrMailToken = fault.New(fault.Refused, "invalid_token", "This link is invalid, was used already, or is too old. Ask for a new one.")
	ErrCode      = fault.New(fault.Refused, "invalid_code", "This code is wrong, was used already, or is too old. Ask for a new one if you can't find it.")
)

const (
	mailTokenDigits = 32 // 190 random bits
	codeDigits      = 8
	maxCodeTries    = 5
)

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// codeContext binds an encrypted code to its token.
func codeContext(hash string) string { return "mail_tokens|code|" + hash }

// newCode makes a code at random.
func newCode() (string, error) {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(codeDigits), nil)
	n, err := rand.Int(rand.Reader, limit)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%0*d", codeDigits, n), nil
}

// shown is what of a device a mail and a page may show.
func (d Device) shown() Device {
	return Device{Address: printable(d.Address, maxAddressBytes), Agent: printable(d.Agent, maxAgentBytes)}
}

// newMailToken makes a token for a user, and returns its text too.
func newMailToken(purpose MailPurpose, userID string, from Device, now time.Time, life time.Duration) (text string, t MailToken) {
	text = id.Random(mailTokenDigits)
	now = now.UTC().Truncate(time.Microsecond) // as it will be read back
	return text, MailToken{
		Hash: hashToken(text), Purpose: purpose, UserID: userID, From: from.shown(), CreatedAt: now, ExpiresAt: now.Add(life),
	}
}

// request is the request for a token, as its mail shows it.
func (t MailToken) request() mail.Request {
	return mail.Request{Origin: t.From.origin(t.CreatedAt)}
}

// mailToken finds a token that permits something, or fails with [ErrMailToken].
func (s *Service) mailToken(ctx context.Context, text string, purpose MailPurpose) (MailToken, error) {
	t, found, err := s.o.Store.MailToken(ctx, hashToken(text), purpose, s.o.Now())
	if err == nil && !found {
		err = ErrMailToken
	}
	if err = s.refuseTampered(ctx, err, ErrMailToken, tamperedMailToken, slog.String("user_id", t.UserID)); err != nil {
		return MailToken{}, err
	}
	return t, nil
}

// useMailToken uses a token up, and finds its user, who stays as they are until the transaction ends. It fails with
// [ErrMailToken]. The user is locked first, as by all that changes users.
func (s *Service) useMailToken(ctx context.Context, tx Tx, t MailToken) (User, error) {
	u, found, err := tx.UserForUpdate(ctx, t.UserID)
	if err = s.refuseTampered(ctx, err, ErrMailToken, tamperedUser, slog.String("user_id", t.UserID)); err != nil {
		return User{}, err
	}
	// A team that suspends a stolen account must not keep its owner from taking it back. That lets nobody in.
	if !found || u.Suspended && t.Purpose != UndoEmailChange {
		return User{}, ErrMailToken
	}
	used, err := tx.UseMailToken(ctx, t.Hash, s.o.Now())
	if err == nil && !used {
		err = ErrMailToken
	}
	return u, err
}

// endSessions ends the sessions of a user, who was locked, but for the one to keep, if any. What was asked for from them ends too:
// a link to set the password, and a change of the address that is not confirmed.
func (s *Service) endSessions(ctx context.Context, tx Tx, userID, keep, reason string) error {
	if err := tx.EndUserSessions(ctx, userID, keep, reason, s.o.Now()); err != nil {
		return err
	}
	if err := tx.DeleteUnusedSessionLinks(ctx, userID); err != nil {
		return err
	}
	for _, purpose := range []MailPurpose{resetPassword, confirmEmail} {
		if err := tx.DeleteMailTokens(ctx, userID, purpose); err != nil {
			return err
		}
	}
	return nil
}

// queueToken queues a mail and keeps its token, both or none: over a limit the token of an earlier mail stays.
func (s *Service) queueToken(ctx context.Context, tx Tx, t MailToken, m mail.Mail) error {
	queued, err := s.o.Mails.Queue(ctx, tx, m)
	if err != nil || !queued {
		return err
	}
	return tx.InsertMailToken(ctx, t)
}

// nameInMail is a name as a mail to an unproven address shows it. Anybody can register any address, so a name that could
// carry a message or an address of a site is left out.
func nameInMail(name string) string {
	for i, c := range name {
		after := name[i+len(string(c)):]
		switch {
		case unicode.IsLetter(c), unicode.IsMark(c), c == ' ', c == '-', c == '\'', c == '’':
		case c == '.' && (after == "" || after[0] == ' '):
		default:
			return ""
		}
	}
	if strings.Count(name, " ") > 3 {
		return ""
	}
	return name
}
