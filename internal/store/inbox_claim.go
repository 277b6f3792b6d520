package store

import (
	"context"
	"time"

	"bursar/internal/inbox"
)

// Inbox is the database as the inbox sees it.
func (db *DB) Inbox() inbox.Store { return inboxStore{db} }

type inboxStore struct{ *DB }

// Claims lists those made after a moment. There are few: those that have expired are deleted with the next.
func (s inboxStore) Claims(ctx context.Context, after time.Time) ([]inbox.Claim, error) {
	return readAll(ctx, s.query, `SELECT subject, admin_id, at FROM claims WHERE at > $1 ORDER BY subject`, []any{micros(after)},
		func(c *inbox.Claim, _ ...any) []any { return []any{&c.Subject, &c.Admin, instant{&c.At}} })
}

// Claim makes a claim unless another admin's that was made after expired is there, and returns the one that then is there.
func (s inboxStore) Claim(ctx context.Context, c inbox.Claim, expired time.Time) (inbox.Claim, error) {
	is := inbox.Claim{Subject: c.Subject}
	err := s.Update(ctx, func(tx *Tx) error {
		if _, err := tx.exec(ctx, `DELETE FROM claims WHERE at <= $1`, micros(expired)); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `INSERT INTO claims (subject, admin_id, at) VALUES ($1, $2, $3)
			ON CONFLICT (subject) DO UPDATE SET at = $3 WHERE claims.admin_id = $2`, c.Subject, c.Admin, micros(c.At)); err != nil {
			return err
		}
		_, err := tx.one(ctx, `SELECT admin_id, at FROM claims WHERE subject = $1`, []any{c.Subject}, &is.Admin, instant{&is.At})
		return err
	})
	return is, err
}

// Release ends an admin's claim, and reports whether there was one.
func (s inboxStore) Release(ctx context.Context, subject, admin string) (released bool, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		released, err = tx.execOne(ctx, `DELETE FROM claims WHERE subject = $1 AND admin_id = $2`, subject, admin)
		return err
	})
	return released, err
}
