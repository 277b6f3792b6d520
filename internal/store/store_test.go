package store_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"bursar/internal/pgtest"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

func TestSQLite(t *testing.T) {
	copies := 0
	open := func(t *testing.T, path string) *store.DB {
		t.Helper()
		db, err := store.OpenSQLite(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	storetest.Run(t, storetest.Engine{
		Open: func(t *testing.T) *store.DB {
			t.Helper()
			return open(t, filepath.Join(t.TempDir(), "bursar.db"))
		},
		Tamper: func(t *testing.T, db *store.DB, statement string) *store.DB {
			t.Helper()
			copies++
			path := filepath.Join(t.TempDir(), fmt.Sprintf("copy%d.db", copies))
			if err := db.Backup(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			tamper(t, "sqlite", "file:"+path, statement) // without foreign keys
			return open(t, path)
		},
	})
}

func TestPostgres(t *testing.T) {
	urls := map[*store.DB]string{}
	open := func(t *testing.T, url string) *store.DB {
		t.Helper()
		db, err := store.OpenPostgres(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		urls[db] = url
		return db
	}
	storetest.Run(t, storetest.Engine{
		Open: func(t *testing.T) *store.DB {
			t.Helper()
			return open(t, pgtest.New(t))
		},
		Tamper: func(t *testing.T, db *store.DB, statement string) *store.DB {
			t.Helper()
			url := pgtest.Copy(t, urls[db])
			tamper(t, "pgx", url, "SET session_replication_role = replica; "+statement) // without foreign keys
			return open(t, url)
		},
	})
}

// tamper runs a statement that must change something.
func tamper(t *testing.T, driver, address, statement string) {
	t.Helper()
	raw, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	result, err := raw.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s changed %d rows, %v", statement, n, err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
}
