package sandbox

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlitecodes "modernc.org/sqlite/lib"
)

//go:embed schema.sql
var schema string

// records keep everything that must outlive the process, in one SQLite file. A commit outlives the
// process, and not always the machine: this is a test double. Read outside a transaction, records show
// what is committed.
type records struct {
	*statements
	reader *sql.DB

	writing sync.Mutex // held by the one transaction
	writer  *sql.DB
	conn    *sql.Conn
	inTx    *statements

	temporary string // directory to remove on close
	lastSeq   atomic.Int64
}

const (
	maxReaders = 8

	pragmas = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)" +
		"&_pragma=wal_autocheckpoint(8000)&_pragma=cache_size(-16000)"
)

// openRecords opens the file at path. An empty path is a temporary file that ends with the records.
func openRecords(ctx context.Context, path string, now time.Time) (*records, error) {
	r := &records{}
	if path == "" {
		dir, err := os.MkdirTemp("", "bursar-sandbox-")
		if err != nil {
			return nil, err
		}
		r.temporary, path = dir, filepath.Join(dir, "sandbox.db")
	}
	if err := r.open(ctx, path, now); err != nil {
		return nil, errors.Join(unopened(path, err), r.close())
	}
	return r, nil
}

// unopened names the file that can't be opened, and says what to do about one that SQLite can't make sense of.
func unopened(path string, err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		if code := e.Code() & 0xff; code == sqlitecodes.SQLITE_NOTADB || code == sqlitecodes.SQLITE_CORRUPT {
			return fmt.Errorf("the sandbox's records in %s are damaged: %w; they tell of no real money: move the file, and those beside it that end in -wal and -shm, to another place and start again",
				path, err)
		}
	}
	return fmt.Errorf("open the sandbox's records in %s: %w", path, err)
}

func (r *records) open(ctx context.Context, path string, now time.Time) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// SQLite would let others read a file that it makes. Its log and index get the mode of the database.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600) //nolint:gosec // the operator names the file
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + pragmas
	if r.writer, err = sql.Open("sqlite", dsn); err != nil {
		return err
	}
	if r.conn, err = r.writer.Conn(ctx); err != nil {
		return err
	}
	if _, err := r.conn.ExecContext(ctx, schema); err != nil {
		return err
	}
	if r.reader, err = sql.Open("sqlite", dsn+"&_pragma=query_only(1)"); err != nil {
		return err
	}
	r.reader.SetMaxOpenConns(maxReaders)
	r.reader.SetMaxIdleConns(maxReaders)
	r.statements = &statements{on: r.reader}
	r.inTx = &statements{on: r.conn}
	return r.startNumbers(now)
}

// startNumbers begins numbering rows at the present microsecond, so that a new sandbox does not give
// out the ids of an earlier one.
func (r *records) startNumbers(now time.Time) error {
	var most int64
	err := r.row(`SELECT max(
		(SELECT coalesce(max(seq), 0) FROM contacts), (SELECT coalesce(max(seq), 0) FROM fund_accounts),
		(SELECT coalesce(max(seq), 0) FROM validations), (SELECT coalesce(max(seq), 0) FROM payouts),
		(SELECT coalesce(max(seq), 0) FROM transactions), (SELECT coalesce(max(seq), 0) FROM events))`).Scan(&most)
	r.lastSeq.Store(max(most, now.UnixMicro()))
	return err
}

func (r *records) newSeq() int64 { return r.lastSeq.Add(1) }

// update runs fn in a transaction and returns once it is committed. When fn fails nothing of it
// remains.
func (r *records) update(fn func(*tx) error) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	t := &tx{statements: r.inTx}
	if err := t.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed {
			_ = t.exec(`ROLLBACK`) // SQLite may have ended it by itself, as on a full disk
		}
	}()
	if err := fn(t); err != nil {
		return err
	}
	err := t.exec(`COMMIT`)
	committed = err == nil
	return err
}

func (r *records) close() error {
	var err error
	if r.conn != nil {
		err = r.conn.Close()
	}
	if r.writer != nil {
		err = errors.Join(err, r.writer.Close())
	}
	if r.reader != nil {
		err = errors.Join(err, r.reader.Close())
	}
	if r.temporary != "" {
		err = errors.Join(err, os.RemoveAll(r.temporary))
	}
	return err
}

// tx is the transaction that writes.
type tx struct {
	*statements
	// balance of our account, once it was read.
	balance *int64
}

// queryer reads: either what is committed, or what a transaction sees.
type queryer interface {
	row(query string, args ...any) scanner
	each(query string, scan func(scanner) error, args ...any) error
}

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

type failedRow struct{ err error }

func (f failedRow) Scan(...any) error { return f.err }

// statements prepares each statement once.
type statements struct {
	on interface {
		PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	}
	prepared sync.Map // query → *sql.Stmt
}

func (s *statements) prepare(query string) (*sql.Stmt, error) {
	if stmt, ok := s.prepared.Load(query); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := s.on.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	if first, taken := s.prepared.LoadOrStore(query, stmt); taken {
		return first.(*sql.Stmt), stmt.Close()
	}
	return stmt, nil
}

func (s *statements) exec(query string, args ...any) error {
	stmt, err := s.prepare(query)
	if err != nil {
		return err
	}
	_, err = stmt.ExecContext(context.Background(), args...)
	return err
}

func (s *statements) row(query string, args ...any) scanner {
	stmt, err := s.prepare(query)
	if err != nil {
		return failedRow{err}
	}
	return stmt.QueryRowContext(context.Background(), args...)
}

func (s *statements) each(query string, scan func(scanner) error, args ...any) error {
	stmt, err := s.prepare(query)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// found turns "no rows" into false.
func found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// micros stores an instant, and never as NULL.
func micros(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	us := t.UnixMicro()
	return &us
}
