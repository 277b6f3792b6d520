package store

import (
	"context"
	"strconv"
	"time"

	"bursar/internal/auth"
)

// sessionLinkMessage is what the MAC of a link covers: whom it signs in, who asked, and until when.
func sessionLinkMessage(l auth.SessionLink) []byte {
	return rowMessage("session link", l.Hash, l.UserID, l.KeyID, strconv.FormatInt(micros(l.ExpiresAt), 10))
}

// InsertSessionLink adds a link.
func (tx *Tx) InsertSessionLink(ctx context.Context, l auth.SessionLink) error {
	_, err := tx.execSigned(ctx, sessionLinkMessage(l), `INSERT INTO session_links (hash, user_id, key_id, expires_at, session_id, mac) VALUES ($1, $2, $3, $4, '', $5)`,
		l.Hash, l.UserID, l.KeyID, micros(l.ExpiresAt))
	return err
}

// SessionLink finds a link by its hash, if it is there. It fails with [auth.ErrTampered] if the service did not write it.
func (tx *Tx) SessionLink(ctx context.Context, hash string) (auth.SessionLink, bool, error) {
	var l auth.SessionLink
	var mac string
	ok, err := tx.one(ctx, `SELECT hash, user_id, key_id, expires_at, session_id, mac FROM session_links WHERE hash = $1`, []any{hash},
		&l.Hash, &l.UserID, &l.KeyID, instant{&l.ExpiresAt}, &l.Session, &mac)
	if err == nil && ok {
		err = tx.signer.checkRow(mac, sessionLinkMessage(l))
	}
	return l, ok, err
}

// UseSessionLink notes the session that a link opens, and reports whether the link was unused and has not expired: of any
// number at once, one uses it.
func (tx *Tx) UseSessionLink(ctx context.Context, hash, session string, now time.Time) (bool, error) {
	return tx.execOne(ctx, `UPDATE session_links SET session_id = $2 WHERE hash = $1 AND session_id = '' AND expires_at > $3`, hash, session, micros(now))
}

// DeleteUnusedSessionLinks deletes a user's links that opened nothing yet.
func (tx *Tx) DeleteUnusedSessionLinks(ctx context.Context, userID string) error {
	_, err := tx.exec(ctx, `DELETE FROM session_links WHERE user_id = $1 AND session_id = ''`, userID)
	return err
}

// DeleteUnusedLinksOfKey deletes a service key's links that opened nothing yet.
func (tx *Tx) DeleteUnusedLinksOfKey(ctx context.Context, keyID string) error {
	_, err := tx.exec(ctx, `DELETE FROM session_links WHERE key_id = $1 AND session_id = ''`, keyID)
	return err
}

// SessionsOfKey lists the sessions that links of a service key opened.
func (tx *Tx) SessionsOfKey(ctx context.Context, keyID string) ([]string, error) {
	return readAll(ctx, tx.each, `SELECT session_id FROM session_links WHERE key_id = $1 AND session_id <> '' ORDER BY session_id`, []any{keyID}, itself[string])
}
