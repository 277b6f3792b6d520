package store_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bursar/internal/pgtest"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

func TestSQLite(t *testing.T) {
	copies := 0
	paths := map[*store.DB]string{}
	recorder := &store.Recorder{}
	open := func(t *testing.T, path string) *store.DB {
		t.Helper()
		db, err := recorder.OpenSQLite(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		paths[db] = path
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
		Hands: func(t *testing.T, db *store.DB) func(string) {
			t.Helper()
			return hands(t, "sqlite", "file:"+paths[db]+"?_pragma=busy_timeout(5000)", "")
		},
		Columns: func(t *testing.T, db *store.DB, table string) []storetest.Column {
			t.Helper()
			return columns(t, "sqlite", "file:"+paths[db], table)
		},
	})
	t.Run("ReadinessFindsThatTheDiskIsWellAgain", func(t *testing.T) {
		db := open(t, filepath.Join(t.TempDir(), "bursar.db"))
		if !store.FailedToWrite(db, true) {
			t.Error("a full disk is not kept in mind")
		}
		if err := db.Ping(t.Context()); err != nil || store.FailedToWrite(db, false) {
			t.Errorf("after a write that went well the disk is still in trouble: %v", err)
		}
	})
	checkStatements(t, recorder, "postgres")
}

func TestPostgres(t *testing.T) {
	pgtest.ServerURL(t) // or skip
	urls := map[*store.DB]string{}
	recorder := &store.Recorder{}
	open := func(t *testing.T, url string) *store.DB {
		t.Helper()
		db, err := recorder.OpenPostgres(t.Context(), url)
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
			url := pgtest.New(t)
			t.Cleanup(func() { wantNoDeadlock(t, url) })
			return open(t, url)
		},
		Tamper: func(t *testing.T, db *store.DB, statement string) *store.DB {
			t.Helper()
			url := pgtest.Copy(t, urls[db])
			tamper(t, "pgx", url, "SET session_replication_role = replica; "+statement) // without foreign keys
			return open(t, url)
		},
		Hands: func(t *testing.T, db *store.DB) func(string) {
			t.Helper()
			return hands(t, "pgx", urls[db], "SET session_replication_role = replica; ")
		},
		Columns: func(t *testing.T, db *store.DB, table string) []storetest.Column {
			t.Helper()
			return columns(t, "pgx", urls[db], table)
		},
	})
	checkStatements(t, recorder, "sqlite")
}

// checkStatements holds the suite to running every statement of the package on this engine, unless the
// command line chose a part of the suite.
func checkStatements(t *testing.T, recorder *store.Recorder, otherEngine string) {
	t.Helper()
	if !t.Failed() && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		recorder.Check(t, otherEngine)
	}
}

// wantNoDeadlock fails if transactions ever waited for each other in a circle: one of them was undone
// then, and all of them waited for nothing. It has to be asked once the database is closed, because
// connections tell of it when they end.
func wantNoDeadlock(t *testing.T, url string) {
	t.Helper()
	raw, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	const question = `SELECT deadlocks, (SELECT COUNT(*) FROM pg_stat_activity a WHERE a.datid = d.datid AND pid <> pg_backend_pid())
		FROM pg_stat_database d WHERE datname = current_database()`
	deadlocks, connections := 0, 1
	for range 500 {
		if err := raw.QueryRowContext(context.WithoutCancel(t.Context()), question).Scan(&deadlocks, &connections); err != nil {
			t.Fatal(err)
		}
		if connections == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if deadlocks != 0 || connections != 0 {
		t.Errorf("%d deadlocks, want none; %d connections were left open", deadlocks, connections)
	}
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

// hands runs statements on a database that is in use.
func hands(t *testing.T, driver, address, before string) func(statement string) {
	t.Helper()
	raw, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	return func(statement string) {
		t.Helper()
		if _, err := raw.ExecContext(t.Context(), before+statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

func columns(t *testing.T, driver, address, table string) []storetest.Column {
	t.Helper()
	raw, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	rows, err := raw.QueryContext(t.Context(), "SELECT * FROM "+table+" LIMIT 0") //nolint:unqueryvet // which there are is the question
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err = errors.Join(err, rows.Err()); err != nil {
		t.Fatal(err)
	}
	var all []storetest.Column
	for _, c := range types {
		all = append(all, storetest.Column{Name: c.Name(), IsNumber: strings.HasPrefix(c.DatabaseTypeName(), "INT")})
	}
	return all
}
