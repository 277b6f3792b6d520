package store

import (
	"context"
	"fmt"
	"io/fs"
)

// KeySet is the document of the key set in the database, for instances that share nothing else. It is
// a source of package keyset.
type KeySet struct{ db *DB }

// KeySet returns the place of the key set in the database.
func (db *DB) KeySet() KeySet { return KeySet{db} }

// Names in the settings.
const (
	keySetDocument    = "key_set_document"
	keySetFingerprint = "key_set" // of the keys that the account numbers are encrypted with
)

// String names the place to people.
func (KeySet) String() string { return "in the database" }

// PinFingerprint keeps the fingerprint of the keys that the database is written with. It returns the
// one that is kept.
func (k KeySet) PinFingerprint(ctx context.Context, fingerprint string) (string, error) {
	return k.db.Pin(ctx, keySetFingerprint, fingerprint)
}

// PinnedFingerprint is that of the keys that the database was written with, if it was.
func (k KeySet) PinnedFingerprint(ctx context.Context) (fingerprint string, isPinned bool, err error) {
	return k.db.Pinned(ctx, keySetFingerprint)
}

// Read returns the document, or an error that is [fs.ErrNotExist].
func (k KeySet) Read(ctx context.Context) ([]byte, error) {
	document, isKept, err := k.db.Pinned(ctx, keySetDocument)
	if err == nil && !isKept {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("read the key set in the database: %w", err)
	}
	return []byte(document), nil
}

// Create keeps a first document, unless there is one, or the database was written with keys that are
// kept elsewhere.
func (k KeySet) Create(ctx context.Context, document []byte) error {
	return k.db.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, `INSERT INTO settings (name, value)
			SELECT CAST($1 AS TEXT), CAST($2 AS TEXT) WHERE NOT EXISTS (SELECT 1 FROM settings WHERE name = $3)
			ON CONFLICT (name) DO NOTHING`, keySetDocument, string(document), keySetFingerprint)
		return err
	})
}

// Replace keeps next in the place of last, and reports whether last was still there.
func (k KeySet) Replace(ctx context.Context, last, next []byte) (replaced bool, err error) {
	err = k.db.Update(ctx, func(tx *Tx) error {
		replaced, err = tx.execOne(ctx, `UPDATE settings SET value = $3 WHERE name = $1 AND value = $2`,
			keySetDocument, string(last), string(next))
		return err
	})
	return replaced, err
}

// Forget removes the document if it is still last, and reports whether it was. The fingerprint stays.
func (k KeySet) Forget(ctx context.Context, last []byte) (forgotten bool, err error) {
	err = k.db.Update(ctx, func(tx *Tx) error {
		forgotten, err = tx.execOne(ctx, `DELETE FROM settings WHERE name = $1 AND value = $2`, keySetDocument, string(last))
		return err
	})
	return forgotten, err
}
