package storetest

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/pgtest"
	"bursar/internal/store"
)

// Variable names the environment variable that chooses the engine of [NewPlace]: sqlite, which is the
// default, or postgres.
const Variable = "BURSAR_TEST_ENGINE"

// template names the environment variable with the URL of a database on PostgreSQL to copy, which saves
// each test the migrations.
const template = "BURSAR_TEST_TEMPLATE"

const postgres = "postgres"

// Place is where a database is kept. It may be opened more than once, as several instances do.
type Place struct {
	// Path is SQLite's file; "" with another engine.
	Path string
	url  string
	// failing is asked before each statement. Such a database is not synced.
	failing func(statement string) error
}

// NewPlace is an empty place that is gone when the test ends.
func NewPlace(t testing.TB) Place {
	t.Helper()
	migrated := os.Getenv(template)
	switch {
	case os.Getenv(Variable) != postgres:
		return Place{Path: newFile(t)}
	case migrated != "":
		return Place{url: pgtest.Reused(t, migrated)}
	default:
		return Place{url: pgtest.New(t)}
	}
}

// newFile is a database of SQLite without rows. It is copied, which takes a tenth of the time of the migrations.
func newFile(t testing.TB) string {
	t.Helper()
	migrated, err := migratedFile()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bursar.db")
	if err := os.WriteFile(path, migrated, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var migratedFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "bursar")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "bursar.db")
	db, err := store.OpenUnsyncedSQLite(context.Background(), path)
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// Open opens the database there with the test's [Keys], until the test ends.
func (p Place) Open(t testing.TB) *store.DB {
	t.Helper()
	open, at := store.OpenSQLite, p.Path
	if p.url != "" {
		open, at = store.OpenPostgres, p.url
	}
	if p.failing != nil {
		open = store.OpenUnsyncedSQLite
	}
	db, err := open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	db.UseKeys(Keys(t))
	if p.failing != nil {
		db.FailBefore(p.failing)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Copy is another place, with what is kept here now. On PostgreSQL it ends the connections to this one.
func (p Place) Copy(t testing.TB) Place {
	t.Helper()
	if p.url != "" {
		return Place{url: pgtest.Copy(t, p.url)}
	}
	copied := Place{Path: filepath.Join(t.TempDir(), "bursar.db"), failing: p.failing}
	db := p.Open(t)
	if err := errors.Join(db.Backup(t.Context(), copied.Path), db.Close()); err != nil {
		t.Fatal(err)
	}
	return copied
}

// ByHand changes what is kept there, as nobody may.
func (p Place) ByHand(t testing.TB, statement string, args ...any) {
	t.Helper()
	driver, at := "sqlite", "file:"+p.Path+"?_pragma=busy_timeout(5000)"
	if p.url != "" {
		driver, at = "pgx", p.url
	}
	db, err := sql.Open(driver, at)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), statement, args...)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// HideFromIndex takes the entries of a condition out of an index of SQLite's that finds entries by what they are about. The definition of the
// index says nothing of it. The test is skipped on PostgreSQL, where only a superuser can do that.
func (p Place) HideFromIndex(t testing.TB, where string) {
	t.Helper()
	if p.Path == "" {
		t.Skip("PostgreSQL keeps its indexes")
	}
	for _, index := range []struct{ name, definition, and string }{
		{"entries_about", "CREATE INDEX entries_about ON entries (subject, owner, number)", " WHERE "},
		{"entries_of_accounts", "CREATE INDEX entries_of_accounts ON entries (owner, number) WHERE type = 'bank_account.added'", " AND "},
	} {
		p.ByHand(t, `BEGIN IMMEDIATE; DROP INDEX `+index.name+`; `+index.definition+index.and+`NOT (`+where+`); PRAGMA writable_schema = ON;
			UPDATE sqlite_master SET sql = '`+strings.ReplaceAll(index.definition, "'", "''")+`' WHERE name = '`+index.name+`'; COMMIT`)
	}
}

// OnPostgres runs the other tests of its package once more, on PostgreSQL and with fewer cases of the
// random ones. To run one of them alone: BURSAR_TEST_ENGINE=postgres go test -run …
func OnPostgres(t *testing.T) {
	t.Helper()
	skipIfChosen(t)
	arguments := []string{"-test.skip=^" + t.Name() + "$"}
	if flag.Lookup("rapid.checks") != nil {
		arguments = append(arguments, fewerChecks)
	}
	onPostgres(t, ".", os.Args[0], arguments...)
}

// OnPostgresOf is OnPostgres for the tests of the package in another directory, some of which are random.
func OnPostgresOf(t *testing.T, dir string) {
	t.Helper()
	skipIfChosen(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, file := range files { // so that go test keeps no result after one of them has changed
		_, statErr := os.Stat(file)
		err = errors.Join(err, statErr)
	}
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "other.test")
	compile := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, ".")
	compile.Dir = dir
	if output, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("compile the tests in %s: %v\n%s", dir, err, output)
	}
	onPostgres(t, dir, program, fewerChecks)
}

const fewerChecks = "-rapid.checks=20" // a fifth of which are tried where tests are short

func skipIfChosen(t *testing.T) {
	t.Helper()
	if os.Getenv(Variable) != "" {
		t.Skip("the engine is chosen")
	}
}

// onPostgres runs a program of tests, in the directory of its package.
func onPostgres(t *testing.T, dir, program string, arguments ...string) {
	t.Helper()
	migrated := Place{url: pgtest.New(t)}
	if err := migrated.Open(t).Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pgtest.DropReused(t, migrated.url) })
	arguments = append(arguments, "-test.short")
	if deadline, ok := t.Deadline(); ok {
		arguments = append(arguments, "-test.timeout="+time.Until(deadline).String())
	}
	tests := exec.CommandContext(t.Context(), program, arguments...)
	tests.Dir = dir
	tests.Env = append(os.Environ(), Variable+"="+postgres, template+"="+migrated.url, pgtest.Variable+"="+pgtest.ServerURL(t))
	if output, err := tests.CombinedOutput(); err != nil {
		t.Errorf("on PostgreSQL: %v\n%s", err, output)
	}
}
