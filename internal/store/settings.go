package store

import (
	"context"
	"strings"
)

// CurrencySetting is the name under which the currency is pinned that the datastore counts.
const CurrencySetting = "currency"

// Pin keeps a fact about the whole database that must not change under it: the first value given
// for a name stays. It returns the value that is kept, which the caller compares with its own.
func (db *DB) Pin(ctx context.Context, name, value string) (string, error) {
	kept, isPinned, err := db.Pinned(ctx, name)
	if err != nil || isPinned {
		return kept, err
	}
	err = db.Update(ctx, func(tx *Tx) error {
		if _, err := tx.exec(ctx, `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, name, value); err != nil {
			return err
		}
		_, err := tx.one(ctx, selectSetting, []any{name}, &kept)
		return err
	})
	return kept, err
}

// Repin keeps another value for a name if it is still the one before, and reports whether it did.
func (db *DB) Repin(ctx context.Context, name, before, value string) (done bool, err error) {
	err = db.Update(ctx, func(tx *Tx) error {
		done, err = tx.execOne(ctx, `UPDATE settings SET value = $3 WHERE name = $1 AND value = $2`, name, before, value)
		return err
	})
	return done, err
}

// Pinned returns what is kept under a name, if anything is.
func (db *DB) Pinned(ctx context.Context, name string) (value string, isPinned bool, err error) {
	isPinned, err = found(db.queryRow(ctx, selectSetting, name).Scan(&value))
	return value, isPinned, err
}

// PinnedUnder returns what is kept under the names that begin with a prefix, by the rest of the name. The rest has to begin with a letter or a digit.
func (db *DB) PinnedUnder(ctx context.Context, prefix string) (map[string]string, error) {
	kept := map[string]string{}
	err := db.query(ctx, `SELECT name, value FROM settings WHERE name > $1 AND name < $2`, []any{prefix, prefix + "~"}, func(r *row) {
		var name, value string
		r.Scan(&name, &value)
		kept[strings.TrimPrefix(name, prefix)] = value
	})
	return kept, err
}

// IsEmpty reports whether nothing was ever kept in the database. It does not rely on one row, which may have been deleted.
func (db *DB) IsEmpty(ctx context.Context) (bool, error) {
	var one int
	holds, err := found(db.queryRow(ctx, `SELECT 1 FROM settings UNION ALL SELECT 1 FROM users UNION ALL SELECT 1 FROM entries LIMIT 1`).Scan(&one))
	return !holds, err
}

// HoldsRecords reports whether there are users or entries.
func (db *DB) HoldsRecords(ctx context.Context) (bool, error) {
	var one int
	return found(db.queryRow(ctx, `SELECT 1 FROM users UNION ALL SELECT 1 FROM entries LIMIT 1`).Scan(&one))
}

const selectSetting = `SELECT value FROM settings WHERE name = $1`
