package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/id"
	"bursar/internal/ledger"
)

// serviceKeyMessage is what the MAC of a service key covers.
func serviceKeyMessage(k auth.ServiceKey) []byte {
	revoked := ""
	if !k.RevokedAt.IsZero() {
		revoked = strconv.FormatInt(micros(k.RevokedAt), 10)
	}
	return rowMessage("service key", k.ID, k.Name, k.Hash, strconv.FormatInt(micros(k.CreatedAt), 10), revoked)
}

// selectServiceKeys also counts the entries that say that a key was revoked, because its row may be an old copy.
const selectServiceKeys = `SELECT k.id, k.name, k.hash, k.created_at, k.revoked_at, k.used_on, k.mac,
	(SELECT COUNT(*) FROM entries e WHERE e.subject = k.id AND e.type = 'service_key.revoked') FROM service_keys k`

// storedServiceKey is a row of selectServiceKeys.
type storedServiceKey struct {
	auth.ServiceKey
	mac         string
	revocations int64
}

func (k *storedServiceKey) dest() []any {
	return []any{&k.ID, &k.Name, &k.Hash, instant{&k.CreatedAt}, instant{&k.RevokedAt}, &k.UsedOn, &k.mac, &k.revocations}
}

// problem says why the row is not what the service wrote, or nothing. Without keys it checks no MAC.
func (k *storedServiceKey) problem(keys ledger.Keys) string {
	switch {
	case keys != nil && !ledger.CheckMAC(keys, k.mac, serviceKeyMessage(k.ServiceKey)):
		return "was not written by the service"
	case k.RevokedAt.IsZero() && k.revocations > 0:
		return "was revoked, and its row says that it was not"
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

// ServiceKey finds a key by its hash, if there is one.
func (db *DB) ServiceKey(ctx context.Context, hash string) (auth.ServiceKey, bool, error) {
	var k storedServiceKey
	ok, err := found(db.queryRow(ctx, selectServiceKeys+` WHERE k.hash = $1`, hash).Scan(k.dest()...))
	if err != nil || !ok {
		return auth.ServiceKey{}, false, err
	}
	key, err := k.checked(db.signer)
	return key, true, err
}

// ServiceKeys lists all keys, the oldest first.
func (db *DB) ServiceKeys(ctx context.Context) ([]auth.ServiceKey, error) {
	var all []auth.ServiceKey
	err := db.query(ctx, selectServiceKeys+` ORDER BY k.id`, func(r row) error {
		var k storedServiceKey
		if err := r.Scan(k.dest()...); err != nil {
			return err
		}
		key, err := k.checked(db.signer)
		all = append(all, key)
		return err
	})
	return all, err
}

// ServiceKeyForUpdate finds a key by its id or its name, if there is one, and keeps it so until the transaction ends.
func (tx *Tx) ServiceKeyForUpdate(ctx context.Context, idOrName string) (auth.ServiceKey, bool, error) {
	column := "name"
	if id.Valid(auth.ServiceKeyPrefix, idOrName) {
		column = "id"
	}
	var k storedServiceKey
	ok, err := tx.one(ctx, selectServiceKeys+` WHERE k.`+column+` = $1`+tx.dialect.forUpdate("k"), []any{idOrName}, k.dest()...)
	if err != nil || !ok {
		return auth.ServiceKey{}, false, err
	}
	key, err := k.checked(tx.signer)
	return key, true, err
}

// InsertServiceKey adds a key unless its name is taken, with an entry that says who made it. It reports whether it did.
func (tx *Tx) InsertServiceKey(ctx context.Context, k auth.ServiceKey, actor string) (bool, error) {
	mac, err := tx.signer.mac(serviceKeyMessage(k))
	if err != nil {
		return false, err
	}
	inserted, err := tx.execOne(ctx, `INSERT INTO service_keys (id, name, hash, created_at, revoked_at, used_on, mac)
		VALUES ($1, $2, $3, $4, NULL, '', $5) ON CONFLICT (name) DO NOTHING`,
		k.ID, k.Name, k.Hash, micros(k.CreatedAt), mac)
	if err != nil || !inserted {
		return false, err
	}
	return true, tx.recordServiceKey(ctx, ledger.ServiceKeyCreated, k, actor, k.CreatedAt)
}

// RevokeServiceKey stores that a key was revoked at its RevokedAt, with an entry that says who did it.
func (tx *Tx) RevokeServiceKey(ctx context.Context, k auth.ServiceKey, actor string) error {
	mac, err := tx.signer.mac(serviceKeyMessage(k))
	if err != nil {
		return err
	}
	if _, err := tx.exec(ctx, `UPDATE service_keys SET revoked_at = $2, mac = $3 WHERE id = $1`,
		k.ID, micros(k.RevokedAt), mac); err != nil {
		return err
	}
	return tx.recordServiceKey(ctx, ledger.ServiceKeyRevoked, k, actor, k.RevokedAt)
}

func (tx *Tx) recordServiceKey(ctx context.Context, t ledger.Type, k auth.ServiceKey, actor string, now time.Time) error {
	data, err := ledger.Facts("name", k.Name)
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

// serviceKeys holds every service key against its MAC, and against the entries that revoke keys.
func (a *auditor) serviceKeys() ledger.Finding {
	f := ledger.Finding{Name: "service-keys-are-ours", Promise: "Each service key is as the service wrote it, and one that was revoked stays revoked."}
	a.all(selectServiceKeys+` ORDER BY k.id`, func(r row) error {
		var k storedServiceKey
		if err := r.Scan(k.dest()...); err != nil {
			return err
		}
		if problem := k.problem(a.keys); problem != "" {
			note(&f, ledger.Violation{Subject: "service key " + k.ID, Problem: fmt.Sprintf("%q %s", k.Name, problem)}, "Revoke it with \"bursar apikey revoke\"")
		}
		return nil
	})
	return f
}
