package store

import (
	"context"
	"errors"

	"bursar/internal/auth"
)

// UserByID finds a user by id, if there is one. It fails with [auth.ErrTampered] as [DB.UserByEmail] does.
func (db *DB) UserByID(ctx context.Context, id string) (auth.User, bool, error) {
	return db.userBy(ctx, "id", id)
}

// UserByExternalID finds a user by what another system calls them, if there is one. It fails with [auth.ErrTampered]
// as [DB.UserByEmail] does.
func (db *DB) UserByExternalID(ctx context.Context, externalID string) (auth.User, bool, error) {
	return db.userBy(ctx, "external_id", externalID)
}

func (db *DB) userBy(ctx context.Context, column, value string) (auth.User, bool, error) {
	var u storedUser
	ok, err := found(db.queryRow(ctx, selectUser+`WHERE u.`+column+` = $1`, value).Scan(append(u.dest(), &u.decided)...))
	if err == nil && ok {
		err = db.signer.checkUser(&u)
	}
	return u.User, ok, err
}

// Users lists users after one, in the order of their ids, up to limit.
func (db *DB) Users(ctx context.Context, f auth.UserFilter, after string, limit int) ([]auth.ListedUser, error) {
	var all []auth.ListedUser
	err := db.query(ctx, selectUser+`WHERE u.id > $1
		AND (CAST($2 AS TEXT) = '' OR u.role = $2) AND (CAST($3 AS BIGINT) = 0 OR u.suspended = 1) ORDER BY u.id LIMIT $4 + 0`,
		[]any{after, string(f.Role), flag(f.Suspended), limit}, func(r *row) {
			var u storedUser
			r.Scan(append(u.dest(), &u.decided)...)
			err := db.signer.checkUser(&u)
			tampered := errors.Is(err, auth.ErrTampered)
			if !tampered {
				r.fail(err)
			}
			all = append(all, auth.ListedUser{User: u.User, Tampered: tampered})
		})
	return all, err
}

// UserForUpdate finds a user by id, and locks them until the transaction ends. It fails with [auth.ErrTampered] as
// [DB.UserByEmail] does.
func (tx *Tx) UserForUpdate(ctx context.Context, id string) (auth.User, bool, error) {
	return tx.user(ctx, `WHERE u.id = $1`+tx.dialect.forUpdate("u"), id)
}

// ImportedUsers finds the users who have one of the external ids or one of the keys of e-mail addresses.
func (tx *Tx) ImportedUsers(ctx context.Context, externalIDs, emailKeys []string) ([]auth.Imported, error) {
	var all []auth.Imported
	for column, list := range map[string][]string{"external_id": externalIDs, "email_key": emailKeys} {
		if len(list) == 0 {
			continue
		}
		condition, args := tx.dialect.oneOf(nil, list)
		err := tx.each(ctx, `SELECT `+userColumns+`, u.imported_as FROM users u WHERE u.`+column+` `+condition, args, func(r *row) {
			var u storedUser
			var fingerprint string
			r.Scan(append(u.dest(), &fingerprint)...)
			all = append(all, auth.Imported{User: u.User, Fingerprint: fingerprint})
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// InsertImported adds a user, and reports whether nobody had the e-mail address or the external id before. It fails with
// [auth.ErrEmailReserved].
func (tx *Tx) InsertImported(ctx context.Context, i auth.Imported) (bool, error) {
	return tx.insertUser(ctx, i, "")
}

// nullText stores an empty text as NULL.
func nullText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// passwordDecoy is the setting that holds it.
const passwordDecoy = "password_decoy"

// PasswordDecoy returns what [Tx.SetPasswordDecoy] stored, or "".
func (db *DB) PasswordDecoy(ctx context.Context) (string, error) {
	decoy, _, err := db.Pinned(ctx, passwordDecoy)
	return decoy, err
}

// PasswordDecoy is [DB.PasswordDecoy] within a transaction.
func (tx *Tx) PasswordDecoy(ctx context.Context) (decoy string, err error) {
	_, err = tx.one(ctx, selectSetting, []any{passwordDecoy}, &decoy)
	return decoy, err
}

// SetPasswordDecoy stores a hash that costs as much to check as the costliest that was imported.
func (tx *Tx) SetPasswordDecoy(ctx context.Context, decoy string) error {
	_, err := tx.exec(ctx, `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
		passwordDecoy, decoy)
	return err
}
