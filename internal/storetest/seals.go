package storetest

import (
	"path/filepath"
	"testing"
	"time"

	"bursar/internal/keyset"
	"bursar/internal/seal"
)

// Seals are made with keys of the test's own.
func Seals(t testing.TB) seal.Seals {
	t.Helper()
	keys, err := keyset.Open(t.Context(), keyset.File(filepath.Join(t.TempDir(), "keys.json")))
	if err != nil {
		t.Fatal(err)
	}
	return seal.Seals{Keys: keys}
}

// wantUnsealed checks that the audit misses the seal of so many bank accounts and payouts, and the head of so many histories;
// the store makes none itself.
func (b *bench) wantUnsealed(accounts, payouts, unheard int) {
	b.Helper()
	findings, err := b.db.AuditSeals(b.ctx(), Seals(b))
	b.must(err)
	numbers, rows, histories := findings[0], findings[1], findings[2]
	if len(numbers.Violations) != accounts || len(rows.Violations) != accounts+payouts || len(histories.Violations) != unheard {
		b.Errorf("without a seal are %q and %q, want %d bank accounts and %d payouts; without a head are the histories %q, want %d",
			numbers.Violations, rows.Violations, accounts, payouts, histories.Violations, unheard)
	}
}

func testSealedSince(t *testing.T, b *bench) {
	t.Helper()
	if has, err := b.db.HasSeals(b.ctx()); err != nil || has {
		t.Errorf("a new database has seals: %t, %v", has, err)
	}
	b.seller("usr_a")
	b.nameAtGateway("bka_usr_a", "", "fa_1", true)
	if has, err := b.db.HasSeals(b.ctx()); err != nil || !has {
		t.Errorf("a database with a sealed account has seals: %t, %v", has, err)
	}
	if since, err := b.db.SealedSince(b.ctx()); err != nil || !since.IsZero() {
		t.Errorf("a new database is sealed since %v, %v, want ever", since, err)
	}
	older := b.engine.Tamper(t, b.db, `UPDATE schema_migrations SET applied_at = CASE name WHEN '0008_seals.sql' THEN 3600000000 ELSE 0 END`)
	want := time.Unix(0, 0).Add(25 * time.Hour)
	if since, err := older.SealedSince(b.ctx()); err != nil || !since.Equal(want) {
		t.Errorf("an older database is sealed since %v, %v, want %v", since, err, want)
	}
}
