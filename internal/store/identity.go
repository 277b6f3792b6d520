package store

import (
	"context"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/ledger"
)

const identitiesOf = `SELECT issuer, subject, email, created_at FROM identities WHERE user_id = $1 ORDER BY created_at, issuer, subject`

func identities(ctx context.Context, read queryFunc, userID string) ([]auth.LinkedIdentity, error) {
	return readAll(ctx, read, identitiesOf, []any{userID}, func(i *auth.LinkedIdentity, _ ...any) []any {
		return []any{&i.Issuer, &i.Subject, &i.Email, instant{&i.Since}}
	})
}

// Identities lists a user's ways to sign in through a provider, the oldest first.
func (db *DB) Identities(ctx context.Context, userID string) ([]auth.LinkedIdentity, error) {
	return identities(ctx, db.query, userID)
}

// Identities is [DB.Identities] as the transaction sees it. The caller that unlinks one has locked their user.
func (tx *Tx) Identities(ctx context.Context, userID string) ([]auth.LinkedIdentity, error) {
	return identities(ctx, tx.each, userID)
}

// UseSignIn notes that a sign-in came back, and reports whether it is the first time.
func (tx *Tx) UseSignIn(ctx context.Context, state string, expiresAt time.Time) (bool, error) {
	return tx.execOne(ctx, `INSERT INTO used_sign_ins (state, expires_at) VALUES ($1, $2) ON CONFLICT (state) DO NOTHING`,
		state, micros(expiresAt))
}

// UserByIdentity finds the user that an identity is linked to, if it is linked, and keeps both so until
// the transaction ends. Who unlinks an identity locks its user first. PostgreSQL waits for them here and
// then still has the identity as it was, so the link is looked at once more.
func (tx *Tx) UserByIdentity(ctx context.Context, issuer, subject string) (auth.User, bool, error) {
	u, found, err := tx.user(ctx, `WHERE u.id = (SELECT user_id FROM identities WHERE issuer = $1 AND subject = $2)`+tx.dialect.forUpdate("u"),
		issuer, subject)
	if err != nil || !found {
		return u, found, err
	}
	var mac string
	found, err = tx.one(ctx, `SELECT mac FROM identities WHERE issuer = $1 AND subject = $2 AND user_id = $3`, []any{issuer, subject, u.ID}, &mac)
	if err == nil && found {
		err = tx.signer.checkRow(mac, identityMessage(issuer, subject, u.ID))
	}
	return u, found, err
}

// UserByEmail finds a user by the key of an e-mail address, if there is one, and keeps it as it is
// until the transaction ends.
func (tx *Tx) UserByEmail(ctx context.Context, emailKey string) (auth.User, bool, error) {
	return tx.user(ctx, `WHERE u.email_key = $1`+tx.dialect.forUpdate("u"), emailKey)
}

// AddIdentity links an identity to a user, and reports whether it was linked to nobody before.
func (tx *Tx) AddIdentity(ctx context.Context, userID string, i auth.Identity, now time.Time) (bool, error) {
	return tx.execSigned(ctx, identityMessage(i.Issuer, i.Subject, userID), `INSERT INTO identities (issuer, subject, user_id, email, created_at, mac) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (issuer, subject) DO NOTHING`, i.Issuer, i.Subject, userID, i.Email, micros(now))
}

// RemoveIdentities unlinks all identities of a user.
func (tx *Tx) RemoveIdentities(ctx context.Context, userID string) error {
	_, err := tx.exec(ctx, `DELETE FROM identities WHERE user_id = $1`, userID)
	return err
}

const removeIdentitiesOf = `DELETE FROM identities WHERE user_id = $1 AND issuer = $2`

// RemoveIdentitiesOf unlinks the identities of a user at one issuer.
func (tx *Tx) RemoveIdentitiesOf(ctx context.Context, userID, issuer string) error {
	_, err := tx.exec(ctx, removeIdentitiesOf, userID, issuer)
	return err
}

// RemoveIdentitiesSince unlinks the identities of a user that were linked at an instant or later.
func (tx *Tx) RemoveIdentitiesSince(ctx context.Context, userID string, since time.Time) error {
	_, err := tx.exec(ctx, `DELETE FROM identities WHERE user_id = $1 AND created_at >= $2`, userID, micros(since))
	return err
}

// TakeUserOver makes a user verified, with another role and password hash.
func (tx *Tx) TakeUserOver(ctx context.Context, userID string, role auth.Role, passwordHash string) error {
	_, err := tx.changeUser(ctx, userID, func(u *auth.User) bool {
		u.Verified, u.Role, u.PasswordHash = true, role, passwordHash
		return true
	})
	return err
}

// RejectBankAccounts makes all bank accounts of a user former ones that are not paid to: those too that another has replaced, because
// payouts may wait that were requested while they were current. Nobody can decide about them any more, and a verification under way
// changes nothing.
func (tx *Tx) RejectBankAccounts(ctx context.Context, userID, reason string, now time.Time) error {
	return tx.RejectBankAccountsSince(ctx, userID, reason, time.Time{}, now)
}

// RejectBankAccountsSince is RejectBankAccounts of those that were registered at an instant or later.
func (tx *Tx) RejectBankAccountsSince(ctx context.Context, userID, reason string, since, now time.Time) error {
	return tx.endBankAccounts(ctx, userID, ledger.ActorSystem, since, now,
		func(a bank.Account) bank.Account { return a.Rejected(reason) })
}

// SessionLives reports whether a user's session has not ended, and keeps it so until the transaction ends.
func (tx *Tx) SessionLives(ctx context.Context, session, user string) (bool, error) {
	var one int
	return tx.one(ctx, `SELECT 1 FROM sessions WHERE id = $1 AND user_id = $2 AND ended_at IS NULL`+tx.dialect.forUpdate("sessions"),
		[]any{session, user}, &one)
}
