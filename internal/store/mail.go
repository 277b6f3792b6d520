package store

import (
	"context"
	"errors"
	"time"

	"bursar/internal/auth"
	"bursar/internal/mail"
)

// mailStore is the database as package mail sees it.
type mailStore struct{ *DB }

// Mails is the database as package mail sees it.
func (db *DB) Mails() mail.Store { return mailStore{db} }

func (s mailStore) InTx(ctx context.Context, fn func(mail.JobTx) error) error {
	return s.Update(ctx, func(tx *Tx) error { return fn(tx) })
}

const mailColumns = `id, kind, user_id, masked, state, tries, last_error, created_at, give_up_at, due_at, ended_at`

func mailDest(m *mail.Row, more ...any) []any {
	return append([]any{
		&m.ID, &m.Kind, &m.User, &m.Masked, &m.State, &m.Tries, &m.LastError,
		instant{&m.CreatedAt},
		instant{&m.GiveUpAt},
		instant{&m.DueAt},
		instant{&m.EndedAt},
	}, more...)
}

// Mail finds a mail by its id.
func (db *DB) Mail(ctx context.Context, id string) (mail.Row, bool, error) {
	var m mail.Row
	ok, err := found(db.queryRow(ctx, `SELECT `+mailColumns+`, content FROM mails WHERE id = $1`, id).Scan(mailDest(&m, &m.Content)...))
	return m, ok, err
}

// LatestMails lists mails, newest first, without their content.
func (db *DB) LatestMails(ctx context.Context, limit int) ([]mail.Row, error) {
	return readAll(ctx, db.query, `SELECT `+mailColumns+` FROM mails ORDER BY id DESC LIMIT $1 + 0`, []any{limit}, mailDest)
}

// AddressOf finds a user's e-mail address, if there is such a user. It fails with [mail.ErrAddressTampered] if the row is
// not what the service wrote.
func (tx *Tx) AddressOf(ctx context.Context, userID string) (string, bool, error) {
	var u storedUser
	found, err := tx.one(ctx, selectUser+`WHERE u.id = $1`, []any{userID}, append(u.dest(), &u.decided)...)
	if err == nil && found {
		err = tx.signer.checkUser(&u)
	}
	if errors.Is(err, auth.ErrTampered) {
		return "", found, mail.ErrAddressTampered
	}
	return u.Email, found, err
}

// InsertMail adds a mail that is due.
func (tx *Tx) InsertMail(ctx context.Context, m mail.Row) error {
	_, err := tx.exec(ctx, `INSERT INTO mails
		(id, kind, user_id, masked, content, state, tries, last_error, created_at, give_up_at, due_at, ended_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, NULL)`,
		m.ID, string(m.Kind), m.User, m.Masked, m.Content, string(m.State), m.Tries, m.LastError,
		micros(m.CreatedAt), micros(m.GiveUpAt), micros(m.DueAt))
	return err
}

// LeaseDueMails leases mails that are due, the longest due first, and counts a try of each.
func (tx *Tx) LeaseDueMails(ctx context.Context, now, until time.Time, limit int) ([]string, error) {
	return readAll(ctx, tx.each, `WITH due AS MATERIALIZED (
			SELECT id FROM mails WHERE due_at <= $1 ORDER BY due_at LIMIT $3 + 0`+tx.dialect.skipLocked+`)
		UPDATE mails SET due_at = $2, tries = tries + 1 WHERE id IN (SELECT id FROM due) RETURNING id`,
		[]any{micros(now), micros(until), limit}, itself[string])
}

// EndMail takes a queued mail to its end and erases its content. It reports whether the mail was queued.
func (tx *Tx) EndMail(ctx context.Context, id string, to mail.State, lastError string, now time.Time) (bool, error) {
	return tx.execOne(ctx, `UPDATE mails SET state = $2, content = '', last_error = $3, due_at = NULL, ended_at = $4
		WHERE id = $1 AND state = 'queued'`, id, string(to), lastError, micros(now))
}

// DeferMail makes a queued mail due later, if it was not leased again since it had so many tries.
func (tx *Tx) DeferMail(ctx context.Context, id string, tries int64, due time.Time, lastError string) (bool, error) {
	return tx.execOne(ctx, `UPDATE mails SET due_at = $3, last_error = $4 WHERE id = $1 AND tries = $2 AND state = 'queued'`,
		id, tries, micros(due), lastError)
}

// SweepMails deletes up to limit mails that ended before a time, and returns how many.
func (tx *Tx) SweepMails(ctx context.Context, before time.Time, limit int) (int64, error) {
	return tx.exec(ctx, `DELETE FROM mails WHERE id IN
		(SELECT id FROM mails WHERE ended_at < $1 ORDER BY ended_at LIMIT $2 + 0`+tx.dialect.skipLocked+`)`, micros(before), limit)
}
