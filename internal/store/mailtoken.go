package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"bursar/internal/auth"
)

const mailedColumns = `hash, purpose, email, user_id, code, tries, name, role, password_hash, address, agent, created_at, expires_at, mac`

// storedMailToken is a token with its MAC, which covers all but the count of wrong codes: an old copy of a row has the MAC
// of its time, so a MAC would not keep the count from being set back.
type storedMailToken struct {
	auth.MailToken
	mac string
}

func (t *storedMailToken) dest() []any {
	return []any{
		&t.Hash, &t.Purpose, &t.Email, &t.UserID, &t.Code, &t.Tries, &t.Name, &t.Role, &t.PasswordHash, &t.From.Address, &t.From.Agent,
		instant{&t.CreatedAt},
		instant{&t.ExpiresAt},
		&t.mac,
	}
}

func (t *storedMailToken) message() []byte {
	return rowMessage("mail token", t.Hash, string(t.Purpose), t.Email, t.UserID, t.Code, t.Name, string(t.Role), t.PasswordHash,
		t.From.Address, t.From.Agent, strconv.FormatInt(micros(t.CreatedAt), 10), strconv.FormatInt(micros(t.ExpiresAt), 10))
}

// MailToken finds a token that has not expired. It fails with [auth.ErrTampered] if the service did not write it, and
// returns it all the same.
func (db *DB) MailToken(ctx context.Context, hash string, purpose auth.MailPurpose, now time.Time) (auth.MailToken, bool, error) {
	var t storedMailToken
	ok, err := found(db.queryRow(ctx, `SELECT `+mailedColumns+` FROM mail_tokens WHERE hash = $1 AND purpose = $2 AND expires_at > $3`,
		hash, string(purpose), micros(now)).Scan(t.dest()...))
	if err == nil && ok {
		err = db.signer.checkRow(t.mac, t.message())
	}
	return t.MailToken, ok, err
}

// InsertMailToken adds a token. It takes the place of the user's other tokens of its purpose, unless they belong to
// another registration, or undo a change.
func (tx *Tx) InsertMailToken(ctx context.Context, t auth.MailToken) error {
	if !t.Another() && !t.Undoes() {
		if _, err := tx.exec(ctx, `DELETE FROM mail_tokens WHERE user_id = $1 AND purpose = $2 AND password_hash = ''`, t.UserID, string(t.Purpose)); err != nil {
			return err
		}
	}
	reserves := ""
	if t.Purpose == auth.UndoEmailChange {
		reserves = auth.EmailKey(t.Email)
	}
	stored := storedMailToken{MailToken: t}
	_, err := tx.execSigned(ctx, stored.message(), `INSERT INTO mail_tokens (reserves, `+mailedColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		nullText(reserves), t.Hash, string(t.Purpose), t.Email, t.UserID, t.Code, t.Tries, t.Name, string(t.Role), t.PasswordHash, t.From.Address, t.From.Agent,
		micros(t.CreatedAt), micros(t.ExpiresAt))
	return err
}

// mayHaveEmail fails with [auth.ErrEmailTaken] if another user has an address, and with [auth.ErrEmailReserved] while another user can
// get it back. A token that expired counts until it is swept.
func (tx *Tx) mayHaveEmail(ctx context.Context, userID, email string) error {
	var one int
	taken, err := tx.one(ctx, `SELECT 1 FROM users WHERE email_key = $1 AND id <> $2`, []any{auth.EmailKey(email), userID}, &one)
	if err == nil && taken {
		err = auth.ErrEmailTaken
	}
	if err != nil {
		return err
	}
	return tx.CheckReserved(ctx, userID, email)
}

// CheckReserved fails with [auth.ErrEmailReserved] while a mailed link can give an address back to a user other than userID.
func (tx *Tx) CheckReserved(ctx context.Context, userID, email string) error {
	var one int
	reserved, err := tx.one(ctx, `SELECT 1 FROM mail_tokens WHERE reserves = $1 AND user_id <> $2 LIMIT 1`, []any{auth.EmailKey(email), userID}, &one)
	if err == nil && reserved {
		err = auth.ErrEmailReserved
	}
	return err
}

// CodeToken finds the token of a user's own registration, which has a code. It fails with [auth.ErrTampered] if the
// service did not write it.
func (tx *Tx) CodeToken(ctx context.Context, userID string, now time.Time) (auth.MailToken, bool, error) {
	var t storedMailToken
	ok, err := tx.one(ctx, `SELECT `+mailedColumns+` FROM mail_tokens
		WHERE user_id = $1 AND purpose = 'verify_email' AND password_hash = '' AND code <> '' AND expires_at > $2`,
		[]any{userID, micros(now)}, t.dest()...)
	if err == nil && ok {
		err = tx.signer.checkRow(t.mac, t.message())
	}
	return t.MailToken, ok, err
}

// CountWrongCode counts a wrong code against a token.
func (tx *Tx) CountWrongCode(ctx context.Context, hash string) error {
	_, err := tx.exec(ctx, `UPDATE mail_tokens SET tries = tries + 1 WHERE hash = $1`, hash)
	return err
}

// UseMailToken deletes a token that has not expired, and reports whether it was there: of any number at once, one uses it.
func (tx *Tx) UseMailToken(ctx context.Context, hash string, now time.Time) (bool, error) {
	return tx.execOne(ctx, `DELETE FROM mail_tokens WHERE hash = $1 AND expires_at > $2`, hash, micros(now))
}

// DeleteMailTokens deletes the tokens of a user: those of one purpose, or all for "".
func (tx *Tx) DeleteMailTokens(ctx context.Context, userID string, purpose auth.MailPurpose) error {
	_, err := tx.exec(ctx, `DELETE FROM mail_tokens WHERE user_id = $1 AND ($2 = '' OR purpose = $2)`, userID, string(purpose))
	return err
}

// DeleteMailTokensSince deletes the tokens of a user for one purpose that were made at an instant or later.
func (tx *Tx) DeleteMailTokensSince(ctx context.Context, userID string, purpose auth.MailPurpose, since time.Time) error {
	_, err := tx.exec(ctx, `DELETE FROM mail_tokens WHERE user_id = $1 AND purpose = $2 AND created_at >= $3`, userID, string(purpose), micros(since))
	return err
}

// MailTokens lists a user's tokens for a purpose that the service wrote, the oldest first, those too that have expired and are not yet swept.
func (tx *Tx) MailTokens(ctx context.Context, userID string, purpose auth.MailPurpose) ([]auth.MailToken, error) {
	var all []auth.MailToken
	err := tx.each(ctx, `SELECT `+mailedColumns+` FROM mail_tokens WHERE user_id = $1 AND purpose = $2 ORDER BY created_at`,
		[]any{userID, string(purpose)}, func(r *row) {
			var t storedMailToken
			r.Scan(t.dest()...)
			if err := tx.signer.checkRow(t.mac, t.message()); err == nil {
				all = append(all, t.MailToken)
			} else if !errors.Is(err, auth.ErrTampered) {
				r.fail(err)
			}
		})
	return all, err
}

// VerifyUser records that a user's address is theirs.
func (tx *Tx) VerifyUser(ctx context.Context, userID string) error {
	_, err := tx.changeUser(ctx, userID, func(u *auth.User) bool {
		u.Verified = true
		return true
	})
	return err
}

// SetEmail replaces a user's e-mail address by one that is known to be theirs, or fails with [auth.ErrEmailTaken] or [auth.ErrEmailReserved].
func (tx *Tx) SetEmail(ctx context.Context, userID, email string) error {
	if err := tx.mayHaveEmail(ctx, userID, email); err != nil {
		return err
	}
	_, err := tx.changeUser(ctx, userID, func(u *auth.User) bool {
		u.Email, u.Verified = email, true
		return true
	})
	return err
}

// HasIdentity reports whether a user can sign in through a provider.
func (tx *Tx) HasIdentity(ctx context.Context, userID string) (bool, error) {
	var one int
	return tx.one(ctx, `SELECT 1 FROM identities WHERE user_id = $1 LIMIT 1`, []any{userID}, &one)
}

// InsertMailRequest adds a request.
func (tx *Tx) InsertMailRequest(ctx context.Context, r auth.MailRequest) error {
	_, err := tx.exec(ctx, `INSERT INTO mail_requests (id, email, address, agent, at) VALUES ($1, $2, $3, $4, $5)`,
		r.ID, r.Email, r.From.Address, r.From.Agent, micros(r.At))
	return err
}

// TakeMailRequest takes out the oldest request that no other transaction is taking, if there is one.
func (tx *Tx) TakeMailRequest(ctx context.Context) (auth.MailRequest, bool, error) {
	var r auth.MailRequest
	ok, err := tx.one(ctx, `DELETE FROM mail_requests WHERE id = (SELECT id FROM mail_requests ORDER BY id LIMIT 1`+tx.dialect.skipLocked+`)
		RETURNING id, email, address, agent, at`, nil,
		&r.ID, &r.Email, &r.From.Address, &r.From.Agent, instant{&r.At})
	return r, ok, err
}
