package app

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"bursar/internal/keyset"
	"bursar/internal/storetest"
)

// TestNobodySaysByHandThatARowIsOlderThanSeals changes since when a database is sealed.
func TestNobodySaysByHandThatARowIsOlderThanSeals(t *testing.T) {
	keys, err := keyset.Open(t.Context(), keyset.File(filepath.Join(t.TempDir(), "keys.json")))
	if err != nil {
		t.Fatal(err)
	}
	const (
		older   = `UPDATE schema_migrations SET applied_at = applied_at - 3600000000 WHERE name < '0008'`
		forward = `UPDATE schema_migrations SET applied_at = applied_at + 86400000000000 WHERE name = '0008_seals.sql'`
	)
	sealed := func(t *testing.T, place storetest.Place) {
		t.Helper()
		db := place.Open(t)
		seals := storetest.Seals(t)
		own, err := seals.Make("bka_1")
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		place.ByHand(t, `INSERT INTO users VALUES ('usr_1', '', '', '', '', 'seller', 0, 0, '', '', '', 0, 0)`)
		place.ByHand(t, `INSERT INTO bank_accounts VALUES ('bka_1', 'usr_1', 1, '', '', '', '', 'verified', '', '', 0, '', '', 0, NULL, 1, 1, '`+own+`')`)
	}
	since := func(t *testing.T, place storetest.Place) time.Time {
		t.Helper()
		db := place.Open(t)
		seals, err := pinSeals(t.Context(), db, keys)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		return seals.Since
	}
	for name, hands := range map[string]func(*testing.T, storetest.Place){
		"moved on": func(t *testing.T, p storetest.Place) { t.Helper(); p.ByHand(t, forward) },
		"made up": func(t *testing.T, p storetest.Place) {
			t.Helper()
			p.ByHand(t, `UPDATE settings SET value = '9999999999999999 ' || value WHERE name = 'sealed_since'`)
		},
		"taken out": func(t *testing.T, p storetest.Place) {
			t.Helper()
			sealed(t, p)
			p.ByHand(t, `DELETE FROM settings`)
			p.ByHand(t, older)
			p.ByHand(t, forward)
		},
	} {
		t.Run(name, func(t *testing.T) {
			place := storetest.NewPlace(t)
			if since := since(t, place); !since.IsZero() {
				t.Errorf("a new database is sealed since %v", since)
			}
			hands(t, place)
			if since := since(t, place); !since.IsZero() {
				t.Errorf("it is sealed since %v, want ever", since)
			}
		})
	}
	t.Run("an older database", func(t *testing.T) {
		place := storetest.NewPlace(t)
		if err := place.Open(t).Close(); err != nil {
			t.Fatal(err)
		}
		place.ByHand(t, older)
		first := since(t, place)
		if until := time.Until(first); until < 23*time.Hour || until > 25*time.Hour {
			t.Errorf("it is sealed from %v on, want a day after the upgrade", first)
		}
		sealed(t, place)
		place.ByHand(t, forward)
		if again := since(t, place); !again.Equal(first) {
			t.Errorf("it is sealed from %v on, want %v", again, first)
		}
	})
}
