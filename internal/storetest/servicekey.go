package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/store"
)

// serviceKey is a key of which only the id says anything.
func (b *bench) serviceKey(id string) auth.ServiceKey {
	return auth.ServiceKey{ID: id, Name: "name of " + id, Hash: "hash of " + id, Scopes: "sales:write", CreatedAt: b.now}
}

// insertKey adds a service key with that id.
func (b *bench) insertKey(tx *store.Tx, id string) error {
	inserted, err := tx.InsertServiceKey(b.ctx(), b.serviceKey(id), "operator:asha")
	if err == nil && !inserted {
		err = fmt.Errorf("the name of %s is taken", id)
	}
	return err
}

// serviceKeyID makes an id of the length that ids have.
func serviceKeyID(end string) string {
	return auth.ServiceKeyPrefix + strings.Repeat("0", 24-len(end)) + end
}

func (b *bench) wantKey(hash string, want auth.ServiceKey) {
	b.Helper()
	if got, found, err := b.db.ServiceKey(b.ctx(), hash, b.now); got != want || !found || err != nil {
		b.Errorf("%s: %+v, %t, %v; want %+v", hash, got, found, err, want)
	}
}

func testServiceKeys(_ *testing.T, b *bench) {
	first, second := b.serviceKey(serviceKeyID("1")), b.serviceKey(serviceKeyID("2"))
	b.update(func(tx *store.Tx) error { return b.insertKey(tx, first.ID) })
	b.update(func(tx *store.Tx) error { return b.insertKey(tx, second.ID) })
	b.update(func(tx *store.Tx) error {
		again := b.serviceKey(serviceKeyID("3"))
		again.Name = first.Name
		if inserted, err := tx.InsertServiceKey(b.ctx(), again, "operator:asha"); inserted || err != nil {
			return fmt.Errorf("a name was given twice: %t, %w", inserted, err)
		}
		return nil
	})
	b.wantKey(first.Hash, first)
	if _, found, err := b.db.ServiceKey(b.ctx(), "other", b.now); found || err != nil {
		b.Errorf("a key that is not there was found: %v", err)
	}
	b.update(func(tx *store.Tx) error {
		for _, day := range []string{"2026-11-21", "2026-11-20"} { // another instance has an earlier day
			if err := tx.MarkServiceKeyUsed(b.ctx(), first.ID, day); err != nil {
				return err
			}
		}
		return nil
	})
	first.UsedOn = "2026-11-21"
	b.wantKey(first.Hash, first)

	for _, idOrName := range []string{second.ID, second.Name} {
		b.update(func(tx *store.Tx) error {
			if got, found, err := tx.ServiceKeyForUpdate(b.ctx(), idOrName); got != second || !found || err != nil {
				return fmt.Errorf("%s: %+v, %t, %w", idOrName, got, found, err)
			}
			return nil
		})
	}
	b.rotateServiceKey(&second)
	second.RevokedAt = b.now.Add(time.Hour)
	b.update(func(tx *store.Tx) error { return tx.RevokeServiceKey(b.ctx(), second, "operator:bela") })
	b.wantKey(second.Hash, second)
	if all, err := b.db.ServiceKeys(b.ctx()); err != nil || len(all) != 2 || all[0] != first || all[1] != second {
		b.Errorf("the list is %+v, %v", all, err)
	}
	entries, err := b.db.EntriesAbout(b.ctx(), decision.Platform, second.ID)
	if err != nil || len(entries) != 3 || entries[0].Type != ledger.ServiceKeyCreated || entries[0].Actor != "operator:asha" ||
		entries[1].Type != ledger.ServiceKeyRotated || entries[2].Type != ledger.ServiceKeyRevoked || entries[2].Actor != "operator:bela" {
		b.Errorf("the journal says %+v, %v", entries, err)
	}
	b.wantCleanAudit()
}

// rotateServiceKey gives a key a new hash, and finds it by the one before for an hour.
func (b *bench) rotateServiceKey(k *auth.ServiceKey) {
	b.Helper()
	was := auth.RotatedServiceKey{Hash: k.Hash, KeyID: k.ID, Until: b.now.Add(time.Hour)}
	k.Hash, k.Rotations, k.RotatedUntil = "another "+k.Hash, k.Rotations+1, was.Until
	b.update(func(tx *store.Tx) error {
		return tx.RotateServiceKey(b.ctx(), *k, []auth.RotatedServiceKey{was}, b.now, "operator:bela")
	})
	b.wantKey(k.Hash, *k)
	b.wantKey(was.Hash, *k)
	if _, found, err := b.db.ServiceKey(b.ctx(), was.Hash, was.Until); found || err != nil {
		b.Errorf("after its grace a key was found: %v", err)
	}
	b.update(func(tx *store.Tx) error {
		if got, err := tx.RotatedServiceKeys(b.ctx(), *k); err != nil || len(got) != 1 || got[0] != was {
			return fmt.Errorf("what the key was is %+v, %w", got, err)
		}
		return nil
	})
}

// testForgedServiceKeys puts rows into the database that the service did not write. None is a key that is accepted, and
// the audit names each. To revoke it leaves the ledger clean.
func testForgedServiceKeys(t *testing.T, b *bench) {
	t.Helper()
	b.seller("usr_a")
	active, revoked := b.serviceKey(serviceKeyID("1")), b.serviceKey(serviceKeyID("2"))
	b.update(func(tx *store.Tx) error { return b.insertKey(tx, active.ID) })
	b.update(func(tx *store.Tx) error { return b.insertKey(tx, revoked.ID) })
	b.engine.Hands(t, b.db)(`CREATE TABLE old_service_keys AS SELECT * FROM service_keys`) //nolint:unqueryvet // all of it
	revoked.RevokedAt = b.now.Add(time.Hour)
	b.update(func(tx *store.Tx) error { return tx.RevokeServiceKey(b.ctx(), revoked, "operator:asha") })
	rotated := b.serviceKey(serviceKeyID("3"))
	was := rotated.Hash
	b.update(func(tx *store.Tx) error { return b.insertKey(tx, rotated.ID) })
	b.engine.Hands(t, b.db)(`INSERT INTO old_service_keys SELECT * FROM service_keys WHERE id = '` + rotated.ID + `'`) //nolint:unqueryvet // all of it
	b.rotateServiceKey(&rotated)
	twice := b.serviceKey(serviceKeyID("4"))
	ended := twice.Hash
	b.update(func(tx *store.Tx) error { return b.insertKey(tx, twice.ID) })
	b.rotateServiceKey(&twice)
	b.engine.Hands(t, b.db)(`CREATE TABLE old_rotated_keys AS SELECT * FROM rotated_service_keys WHERE key_id = '` + twice.ID + `'`) //nolint:unqueryvet // all of it
	b.rotateServiceKey(&twice)
	b.wantCleanAudit()

	like := func(values string) string {
		return `INSERT INTO service_keys (id, name, hash, scopes, created_at, revoked_at, rotations, used_on, mac) SELECT ` + values + ` FROM service_keys WHERE id = '` + active.ID + `'`
	}
	set := func(what string, k auth.ServiceKey) string {
		return `UPDATE service_keys SET ` + what + ` WHERE id = '` + k.ID + `'`
	}
	before := func(what string) string {
		return `UPDATE rotated_service_keys SET ` + what + ` WHERE key_id = '` + rotated.ID + `'`
	}
	for name, tt := range map[string]struct{ sql, hash string }{
		"inserted":            {like(`'key_forged', 'forged', 'forged', scopes, created_at, NULL, 0, '', ''`), "forged"},
		"inserted with a MAC": {like(`'key_forged', 'forged', 'forged', scopes, created_at, NULL, 0, '', mac`), "forged"},
		"another hash":        {set(`hash = 'forged'`, active), "forged"},
		"another name":        {set(`name = 'forged'`, active), active.Hash},
		"another id":          {set(`id = 'key_forged'`, active), active.Hash},
		"another scope":       {set(`scopes = 'sales:write payouts:write'`, active), active.Hash},
		"an expiry":           {set(`expires_at = 1`, active), active.Hash},
		"before rotation":     {putBack("service_keys", `id = '`+rotated.ID+`'`), was},
		"accepted longer":     {before(`until = until + 1`), was},
		"of another key":      {before(`key_id = '` + active.ID + `'`), was},
		"ended by a rotation": {`INSERT INTO rotated_service_keys SELECT * FROM old_rotated_keys`, ended},
		"another secret":      {before(`hash = 'forged'`), "forged"},
		"another time":        {set(`created_at = created_at + 1`, active), active.Hash},
		"no longer revoked":   {set(`revoked_at = NULL`, revoked), revoked.Hash},
		"revoked later":       {set(`revoked_at = revoked_at + 1`, revoked), revoked.Hash},
		"put back":            {putBack("service_keys", `id = '`+revoked.ID+`'`), revoked.Hash},
	} {
		t.Run(name, func(t *testing.T) {
			copied := b.tampered()
			copied.hands(tt.sql)
			if found := copied.broken(); found["service-keys-are-ours"] == "" {
				t.Errorf("the audit finds %v", found)
			}
			k, found, err := copied.db.ServiceKey(copied.ctx(), tt.hash, b.now)
			if !found || err != nil || k.Tampered == "" {
				t.Fatalf("the key is %+v, %t, %v; want it marked", k, found, err)
			}
			k.RevokedAt = b.now.Add(2 * time.Hour)
			copied.update(func(tx *store.Tx) error { return tx.RevokeServiceKey(copied.ctx(), k, "operator:asha") })
			copied.wantCleanAudit()
		})
	}
}

// testResetUser writes users that the service did not write, and resets them.
func testResetUser(_ *testing.T, b *bench) {
	seller, other := b.seller("usr_a"), b.seller("usr_b")
	b.engine.Hands(b.T, b.db)(`UPDATE users SET role = 'admin', suspended = 1 WHERE id = 'usr_a'`)
	b.update(func(tx *store.Tx) error {
		_, err := tx.SetUserAccess(b.ctx(), seller, auth.Seller, false)
		if !errors.Is(err, auth.ErrTampered) {
			return fmt.Errorf("an admin changed the access: %w", err)
		}
		if err := tx.ResetUser(b.ctx(), auth.User{ID: seller, Email: "USR_B@example.com"}); !errors.Is(err, auth.ErrEmailTaken) {
			return fmt.Errorf("the address of %s was given away: %w", other, err)
		}
		if err := tx.ResetUser(b.ctx(), auth.User{ID: "usr_nobody", Email: "nobody@example.com", Role: auth.Buyer}); !errors.Is(err, auth.ErrUserNotFound) {
			return fmt.Errorf("nobody was reset: %w", err)
		}
		return tx.ResetUser(b.ctx(), auth.User{ID: seller, Email: "Asha@example.com", Role: auth.Seller, PasswordHash: "new"})
	})
	u, found, err := b.db.UserByEmail(b.ctx(), "asha@example.com")
	if err != nil || !found || u.ID != seller || u.Role != auth.Seller || u.Suspended || u.PasswordHash != "new" {
		b.Errorf("%+v, %t, %v", u, found, err)
	}
	b.wantCleanAudit()
}
