package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/ledger"
)

// serviceKeyMessage is what the MAC of a service key covers.
func serviceKeyMessage(k auth.ServiceKey) []byte {
	return rowMessage("service key", k.ID, k.Name, k.Hash, string(k.Scopes), strconv.FormatInt(micros(k.CreatedAt), 10),
		instantText(k.ExpiresAt), instantText(k.RevokedAt), strconv.FormatInt(k.Rotations, 10))
}

// instantText is an instant in a message; empty for none.
func instantText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(micros(t), 10)
}

// rotatedKeyMessage is what the MAC of what a service key was covers. With the count of rotations, a row that a later rotation
// deleted is not accepted when it is put back.
func rotatedKeyMessage(r auth.RotatedServiceKey, rotations int64) []byte {
	return rowMessage("rotated service key", r.Hash, r.KeyID, strconv.FormatInt(micros(r.Until), 10), strconv.FormatInt(rotations, 10))
}

// serviceKeyColumns also count the entries that say that a key was created, revoked or rotated, because its row may be an old
// copy, or its entries deleted.
const serviceKeyColumns = `k.id, k.name, k.hash, k.scopes, k.created_at, k.expires_at, k.revoked_at, k.rotations, k.used_on, k.mac,
	(SELECT COUNT(*) FROM entries e WHERE e.subject = k.id AND e.type = 'service_key.created'),
	(SELECT COUNT(*) FROM entries e WHERE e.subject = k.id AND e.type = 'service_key.revoked'),
	(SELECT COUNT(*) FROM entries e WHERE e.subject = k.id AND e.type = 'service_key.rotated'),
	(SELECT MAX(r.until) FROM rotated_service_keys r WHERE r.key_id = k.id)`

const selectServiceKeys = `SELECT ` + serviceKeyColumns + ` FROM service_keys k`

// storedServiceKey has the serviceKeyColumns.
type storedServiceKey struct {
	auth.ServiceKey
	mac string
	// These count the entries that say so.
	created, revoked, rotated int64
}

func (k *storedServiceKey) dest() []any {
	return []any{
		&k.ID, &k.Name, &k.Hash, &k.Scopes,
		instant{&k.CreatedAt},
		instant{&k.ExpiresAt},
		instant{&k.RevokedAt},
		&k.Rotations, &k.UsedOn, &k.mac,
		&k.created, &k.revoked, &k.rotated,
		instant{&k.RotatedUntil},
	}
}

// problem says why the row is not what the service wrote, or nothing. Without keys it checks no MAC.
func (k *storedServiceKey) problem(keys ledger.Keys) string {
	switch {
	case keys != nil && !ledger.CheckMAC(keys, k.mac, serviceKeyMessage(k.ServiceKey)):
		return "was not written by the service"
	case k.RevokedAt.IsZero() && k.created == 0:
		return "is not in the journal"
	case k.RevokedAt.IsZero() && k.revoked > 0:
		return "was revoked, and its row says that it was not"
	case k.RevokedAt.IsZero() && k.Rotations != k.rotated: // revoking ends it, whichever secret the row has
		return "was rotated, and its row is not the one of that time"
	default:
		return ""
	}
}

// checked is the key, marked if its row is not what the service wrote.
func (k *storedServiceKey) checked(s *signer) (auth.ServiceKey, error) {
	keys, err := s.get()
	if err == nil {
		k.Tampered = k.problem(keys)
	}
	return k.ServiceKey, err
}

// ServiceKey finds a key by its hash, if there is one, or by one that it had before a rotation and that is accepted after now.
func (db *DB) ServiceKey(ctx context.Context, hash string, now time.Time) (auth.ServiceKey, bool, error) {
	var k storedServiceKey
	ok, err := found(db.queryRow(ctx, selectServiceKeys+` WHERE k.hash = $1`, hash).Scan(k.dest()...))
	if err == nil && !ok {
		return db.rotatedServiceKey(ctx, hash, now)
	}
	if err != nil {
		return auth.ServiceKey{}, false, err
	}
	key, err := k.checked(db.signer)
	return key, true, err
}

// rotatedServiceKey reads both rows at one moment: another rotation between two statements would look like a forged row.
func (db *DB) rotatedServiceKey(ctx context.Context, hash string, now time.Time) (auth.ServiceKey, bool, error) {
	var r storedRotatedKey
	var k storedServiceKey
	ok, err := found(db.queryRow(ctx, `SELECT `+rotatedKeyColumns+`, `+serviceKeyColumns+`
		FROM rotated_service_keys r JOIN service_keys k ON k.id = r.key_id WHERE r.hash = $1 AND r.until > $2`,
		hash, micros(now)).Scan(append(r.dest(), k.dest()...)...))
	if err != nil || !ok {
		return auth.ServiceKey{}, false, err
	}
	key, err := k.checked(db.signer)
	if err == nil && key.Tampered == "" {
		keys, _ := db.signer.get() // which checked has just got
		key.Tampered = r.problem(keys, key.Rotations)
	}
	return key, true, err
}

const rotatedKeyColumns = `r.hash, r.key_id, r.until, r.mac`

const selectRotatedKeys = `SELECT ` + rotatedKeyColumns + ` FROM rotated_service_keys r`

// storedRotatedKey has the rotatedKeyColumns.
type storedRotatedKey struct {
	auth.RotatedServiceKey
	mac string
}

func (r *storedRotatedKey) dest() []any { return []any{&r.Hash, &r.KeyID, instant{&r.Until}, &r.mac} }

// problem says why the row is not what the service wrote at the key's last rotation, or nothing. Without keys it checks no MAC.
func (r *storedRotatedKey) problem(keys ledger.Keys, rotations int64) string {
	if keys != nil && !ledger.CheckMAC(keys, r.mac, rotatedKeyMessage(r.RotatedServiceKey, rotations)) {
		return "has an earlier secret that was not written by the service, or that a later rotation ended"
	}
	return ""
}

// ServiceKeys lists all keys, the oldest first.
func (db *DB) ServiceKeys(ctx context.Context) ([]auth.ServiceKey, error) {
	var all []auth.ServiceKey
	err := db.query(ctx, selectServiceKeys+` ORDER BY k.id`, nil, func(r *row) {
		var k storedServiceKey
		r.Scan(k.dest()...)
		key, err := k.checked(db.signer)
		r.fail(err)
		all = append(all, key)
	})
	return all, err
}

// ServiceKeyForUpdate finds a key by its id, or else by its name, if there is one, and keeps it so until the transaction ends.
func (tx *Tx) ServiceKeyForUpdate(ctx context.Context, idOrName string) (auth.ServiceKey, bool, error) {
	// A statement that waits for a row sees its new values beside the entries of before, so the row is locked first.
	var keyID string
	ok, err := tx.one(ctx, `SELECT id FROM service_keys WHERE id = $1 OR name = $1 ORDER BY id <> $1 LIMIT 1`+tx.dialect.forUpdate("service_keys"), []any{idOrName}, &keyID)
	if err != nil || !ok {
		return auth.ServiceKey{}, false, err
	}
	var k storedServiceKey
	ok, err = tx.one(ctx, selectServiceKeys+` WHERE k.id = $1`, []any{keyID}, k.dest()...)
	if err != nil || !ok {
		return auth.ServiceKey{}, false, err
	}
	key, err := k.checked(tx.signer)
	return key, true, err
}

// InsertServiceKey adds a key unless its name is taken, with an entry that says who made it. It reports whether it did.
func (tx *Tx) InsertServiceKey(ctx context.Context, k auth.ServiceKey, actor string) (bool, error) {
	inserted, err := tx.execSigned(ctx, serviceKeyMessage(k), `INSERT INTO service_keys (id, name, hash, scopes, created_at, expires_at, revoked_at, rotations, used_on, mac)
		VALUES ($1, $2, $3, $4, $5, $6, NULL, 0, '', $7) ON CONFLICT (name) DO NOTHING`,
		k.ID, k.Name, k.Hash, string(k.Scopes), micros(k.CreatedAt), nullMicros(k.ExpiresAt))
	if err != nil || !inserted {
		return false, err
	}
	return true, tx.recordServiceKey(ctx, ledger.ServiceKeyCreated, k, actor, k.CreatedAt)
}

// RotatedServiceKeys lists what a key was before it was rotated, and fails with [auth.ErrTampered] unless the service wrote it.
func (tx *Tx) RotatedServiceKeys(ctx context.Context, k auth.ServiceKey) ([]auth.RotatedServiceKey, error) {
	var all []auth.RotatedServiceKey
	err := tx.each(ctx, selectRotatedKeys+` WHERE r.key_id = $1 ORDER BY r.hash`, []any{k.ID}, func(row *row) {
		var r storedRotatedKey
		row.Scan(r.dest()...)
		all = append(all, r.RotatedServiceKey)
		row.fail(tx.signer.checkRow(r.mac, rotatedKeyMessage(r.RotatedServiceKey, k.Rotations)))
	})
	return all, err
}

// RotateServiceKey stores the key's new hash and all that it was before and that is still accepted, with an entry that
// says who did it.
func (tx *Tx) RotateServiceKey(ctx context.Context, k auth.ServiceKey, before []auth.RotatedServiceKey, now time.Time, actor string) error {
	if _, err := tx.execSigned(ctx, serviceKeyMessage(k), `UPDATE service_keys SET hash = $2, rotations = $3, mac = $4 WHERE id = $1`, k.ID, k.Hash, k.Rotations); err != nil {
		return err
	}
	if _, err := tx.exec(ctx, `DELETE FROM rotated_service_keys WHERE key_id = $1`, k.ID); err != nil {
		return err
	}
	for _, r := range before {
		_, err := tx.execSigned(ctx, rotatedKeyMessage(r, k.Rotations), `INSERT INTO rotated_service_keys (hash, key_id, until, mac) VALUES ($1, $2, $3, $4)`,
			r.Hash, r.KeyID, micros(r.Until))
		if err != nil {
			return err
		}
	}
	return tx.recordServiceKey(ctx, ledger.ServiceKeyRotated, k, actor, now)
}

// RevokeServiceKey stores that a key was revoked at its RevokedAt, with an entry that says who did it.
func (tx *Tx) RevokeServiceKey(ctx context.Context, k auth.ServiceKey, actor string) error {
	if _, err := tx.execSigned(ctx, serviceKeyMessage(k), `UPDATE service_keys SET revoked_at = $2, mac = $3 WHERE id = $1`,
		k.ID, micros(k.RevokedAt)); err != nil {
		return err
	}
	return tx.recordServiceKey(ctx, ledger.ServiceKeyRevoked, k, actor, k.RevokedAt)
}

func (tx *Tx) recordServiceKey(ctx context.Context, t ledger.Type, k auth.ServiceKey, actor string, now time.Time) error {
	data, err := ledger.Facts("name", k.Name, "scopes", string(k.Scopes))
	if err == nil {
		_, err = tx.Append(ctx, ledger.Posting{Owner: decision.Platform, At: now, Type: t, Subject: k.ID, Actor: actor, Data: data})
	}
	return err
}

// MarkServiceKeyUsed stores the day of a key's last use, unless a later one is stored.
func (tx *Tx) MarkServiceKeyUsed(ctx context.Context, keyID, day string) error {
	_, err := tx.exec(ctx, `UPDATE service_keys SET used_on = $2 WHERE id = $1 AND used_on < $2`, keyID, day)
	return err
}

const (
	revokeIt = "Revoke it with \"bursar apikey revoke\""
	// The key itself is as it was, so it need not be revoked.
	deleteRotated = "It is refused, and the key itself is as it was. Delete this row of the table rotated_service_keys, and find out who changed it"
)

// serviceKeys holds every service key against its MAC, and against the entries that revoke keys.
func (a *auditor) serviceKeys() ledger.Finding {
	f := ledger.Finding{Name: "service-keys-are-ours", Promise: "Each service key is as the service wrote it, and one that was revoked stays revoked."}
	a.all(selectServiceKeys+` ORDER BY k.id`, func(r *row) {
		var k storedServiceKey
		r.Scan(k.dest()...)
		if problem := k.problem(a.keys); problem != "" {
			note(&f, ledger.Violation{Subject: "service key " + k.ID, Problem: fmt.Sprintf("%q %s", k.Name, problem)}, revokeIt)
		}
	})
	a.all(`SELECT r.hash, r.key_id, r.until, r.mac, k.rotations FROM rotated_service_keys r
		JOIN service_keys k ON k.id = r.key_id WHERE k.revoked_at IS NULL ORDER BY r.hash`, func(row *row) {
		var r storedRotatedKey
		var rotations int64
		row.Scan(append(r.dest(), &rotations)...)
		if problem := r.problem(a.keys, rotations); problem != "" {
			note(&f, ledger.Violation{Subject: "service key " + r.KeyID, Problem: problem}, deleteRotated)
		}
	})
	return f
}
