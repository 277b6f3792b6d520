package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func openTemp(t testing.TB) *DB {
	t.Helper()
	db, err := OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "a directory with spaces & signs?", "bursar.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func put(ctx context.Context, name, value string) func(*Tx) error {
	return func(tx *Tx) error {
		_, err := tx.exec(ctx, `INSERT INTO settings (name, value) VALUES ($1, $2)`, name, value)
		return err
	}
}

func names(t testing.TB, db *DB) []string {
	t.Helper()
	var all []string
	err := db.query(t.Context(), `SELECT name FROM settings ORDER BY name`, nil, collect(&all, itself))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// together runs closures in one group: they queue up behind a closure that waits for all of them.
func together(t *testing.T, db *DB, fns []func(*Tx) error) []error {
	t.Helper()
	w := db.writer.(*groupWriter)
	begun, release := make(chan struct{}), make(chan struct{})
	var blocker sync.WaitGroup
	blocker.Go(func() {
		_ = db.Update(t.Context(), func(*Tx) error { close(begun); <-release; return nil })
	})
	<-begun
	errs := make([]error, len(fns))
	var callers sync.WaitGroup
	for i, fn := range fns {
		callers.Go(func() { errs[i] = db.Update(t.Context(), fn) })
	}
	for len(w.queue.jobs) < len(fns) {
		time.Sleep(time.Millisecond)
	}
	close(release)
	callers.Wait()
	blocker.Wait()
	return errs
}

func TestUpdate_SomeOfGroupFail_OthersCommit(t *testing.T) {
	db := openTemp(t)
	ctx := t.Context()
	broken := errors.New("changed its mind")
	errs := together(t, db, []func(*Tx) error{
		put(ctx, "a", "1"),
		func(tx *Tx) error { return errors.Join(put(ctx, "b", "1")(tx), broken) },
		put(ctx, "c", "1"),
		func(tx *Tx) error {
			if err := put(ctx, "d", "1")(tx); err != nil {
				return err
			}
			panic("worse")
		},
		func(*Tx) error { return broken }, // wrote nothing
		put(ctx, "a", "2"),                // breaks a constraint, whichever comes second
		put(ctx, "e", "1"),
	})
	if !errors.Is(errs[1], broken) || !errors.Is(errs[4], broken) {
		t.Errorf("errors of the failed closures: %v, %v", errs[1], errs[4])
	}
	if errs[3] == nil || !strings.Contains(errs[3].Error(), "worse") {
		t.Errorf("error of the closure that panicked: %v", errs[3])
	}
	if (errs[0] == nil) == (errs[5] == nil) {
		t.Errorf("of two rows under one key, want exactly one refused: %v, %v", errs[0], errs[5])
	}
	if errs[2] != nil || errs[6] != nil {
		t.Errorf("bystanders failed: %v, %v", errs[2], errs[6])
	}
	if got := strings.Join(names(t, db), " "); got != "a c e" {
		t.Errorf("stored %q, want %q", got, "a c e")
	}
}

func TestWritesAreSerial(t *testing.T) {
	db := openTemp(t)
	ctx := t.Context()
	if err := db.Update(ctx, put(ctx, "n", "0")); err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 200 {
		callers.Go(func() {
			err := db.Update(ctx, func(tx *Tx) error {
				var n int
				if _, err := tx.one(ctx, `SELECT value FROM settings WHERE name = 'n'`, nil, &n); err != nil {
					return err
				}
				_, err := tx.exec(ctx, `UPDATE settings SET value = $1 WHERE name = 'n'`, fmt.Sprint(n+1))
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	var n int
	if err := db.queryRow(ctx, `SELECT value FROM settings WHERE name = 'n'`).Scan(&n); err != nil || n != 200 {
		t.Errorf("counted to %d, error %v; want 200", n, err)
	}
}

// TestUpdate_NoRowChanged_DiskStaysInTrouble commits after a write that failed. Only rows that were written show that the disk is well.
func TestUpdate_NoRowChanged_DiskStaysInTrouble(t *testing.T) {
	db := openTemp(t)
	ctx := t.Context()
	FailedToWrite(db, true)
	err := db.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, `UPDATE settings SET value = '2' WHERE name = 'none'`)
		return err
	})
	if err != nil || !FailedToWrite(db, false) {
		t.Errorf("after an update of no row, the disk counts as well: %v", err)
	}
	if err := db.Update(ctx, put(ctx, "n", "1")); err != nil || FailedToWrite(db, false) {
		t.Errorf("after an insert, the disk is still in trouble: %v", err)
	}
}

func TestUpdate_ContextEnded_NotRun(t *testing.T) {
	db := openTemp(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Update(ctx, put(ctx, "late", "1")); !errors.Is(err, errNotBegun) {
		t.Errorf("error %v, want errNotBegun", err)
	}
	if got := names(t, db); len(got) != 0 {
		t.Errorf("stored %v, want nothing", got)
	}
}

// TestUpdate_ContextEndsInQueue_NotRun has the caller go while the writer is at work on another's closure.
func TestUpdate_ContextEndsInQueue_NotRun(t *testing.T) {
	db := openTemp(t)
	w := db.writer.(*groupWriter)
	ctx, cancel := context.WithCancel(t.Context())
	late := &sqliteJob{job: job[*Tx]{ctx: ctx, fn: put(ctx, "late", "1"), answer: make(chan error, 1)}}
	err := db.Update(t.Context(), func(*Tx) error {
		defer cancel()
		return w.queue.put(ctx, late)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-late.answer; !errors.Is(err, errNotBegun) {
		t.Errorf("error %v, want errNotBegun", err)
	}
	if got := names(t, db); len(got) != 0 {
		t.Errorf("stored %v, want nothing", got)
	}
}

// TestQueue_ContextEnded_TakesNothing puts jobs of a caller who has gone into a queue that has room for them.
func TestQueue_ContextEnded_TakesNothing(t *testing.T) {
	q := newQueue[int]()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 100 {
		if err := q.put(ctx, i); !errors.Is(err, errNotBegun) {
			t.Fatalf("error %v, want errNotBegun", err)
		}
	}
	if n := len(q.jobs); n != 0 {
		t.Errorf("%d jobs wait, want none", n)
	}
}

func TestUpdate_Closed_ReturnsErrClosed(t *testing.T) {
	db := openTemp(t)
	ctx := t.Context()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(ctx, put(ctx, "late", "1")); !errors.Is(err, errClosed) {
		t.Errorf("error %v, want errClosed", err)
	}
}

func TestReadersCanNotWrite(t *testing.T) {
	db := openTemp(t)
	if _, err := db.reader.ExecContext(t.Context(), `INSERT INTO settings (name, value) VALUES ('a', 'b')`); err == nil {
		t.Error("a connection for reading wrote")
	}
}

// TestOpenSQLite_NoPlace_SaysWhy names a place where nobody can make a file. SQLite would say less, or make one that others can read.
func TestOpenSQLite_NoPlace_SaysWhy(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("there is no /proc, where even root makes no file")
	}
	_, err := OpenSQLite(t.Context(), "/proc/bursar.db")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "open or make the database") {
		t.Errorf("it is opened with %v", err)
	}
}

func TestOpenSQLite_PragmasOnEveryConnection(t *testing.T) {
	db := openTemp(t)
	want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000"}
	for pragma, value := range want {
		var got string
		if err := db.queryRow(t.Context(), `PRAGMA `+pragma).Scan(&got); err != nil || got != value {
			t.Errorf("a reader has %s = %q, %v; want %q", pragma, got, err, value)
		}
		err := db.Update(t.Context(), func(tx *Tx) error {
			_, err := tx.one(t.Context(), `PRAGMA `+pragma, nil, &got)
			return err
		})
		if err != nil || got != value {
			t.Errorf("the writer has %s = %q, %v; want %q", pragma, got, err, value)
		}
	}
}

func TestOpenSQLite_Concurrent_MigratesOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bursar.db")
	var openers sync.WaitGroup
	for range 8 {
		openers.Go(func() {
			db, err := OpenSQLite(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	openers.Wait()
	db, err := OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	var applied int
	if err := db.queryRow(t.Context(), `SELECT COUNT(*) FROM schema_migrations`).Scan(&applied); err != nil || applied != len(all) {
		t.Errorf("%d migrations applied, error %v; want %d", applied, err, len(all))
	}
}

func TestFiles_OwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no file modes; the directory's access list rules")
	}
	path := filepath.Join(t.TempDir(), "bursar.db") // in a directory that was there before
	db, err := OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 2 { // the database, and its log at least
		t.Fatal(files, err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("%s has mode %o, want 600", filepath.Base(file), got)
		}
	}
}

func TestOpenSQLite_ChangedMigration_Refused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bursar.db")
	db, err := OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(t.Context(), func(tx *Tx) error {
		_, err := tx.exec(t.Context(), `UPDATE schema_migrations SET checksum = 'other'`)
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSQLite(t.Context(), path); err == nil || !strings.Contains(err.Error(), "was changed after it was applied") {
		t.Errorf("error %v, want one that names the changed migration", err)
	}
}

func TestBackupIsACopyThatOpens(t *testing.T) {
	db := openTemp(t)
	ctx := t.Context()
	if err := db.Update(ctx, put(ctx, "a", "1")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := db.Backup(ctx, path); err != nil {
		t.Fatal(err)
	}
	copied, err := OpenSQLite(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if got := strings.Join(names(t, copied), " "); got != "a" {
		t.Errorf("the copy holds %q, want %q", got, "a")
	}
	if err := db.Backup(ctx, path); err == nil {
		t.Error("a backup overwrote a file")
	}
}
