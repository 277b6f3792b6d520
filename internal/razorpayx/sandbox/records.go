package sandbox

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver
)

//go:embed schema.sql
var schema string

// records keep everything that must outlive the process, in one SQLite file. Whatever waits while
// one transaction commits shares the next one, so that thousands of payouts a second cost hundreds
// of commits. A commit outlives the process, and not always the machine: this is a test double.
type records struct {
	temporary string // directory to remove on close
	reader    *sql.DB
	pool      *sql.DB
	conn      *sql.Conn
	queue     chan *write
	done      chan struct{}

	closing sync.RWMutex
	closed  bool

	readStatements  sync.Map // query → *sql.Stmt
	writeStatements map[string]*sql.Stmt
	lastSeq         atomic.Int64
}

// write is a closure that waits for its turn.
type write struct {
	fn   func(*tx) error
	done chan error
}

const (
	maxWaiting = 4096
	maxGroup   = 256
	maxReaders = 8

	pragmas = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)" +
		"&_pragma=wal_autocheckpoint(8000)&_pragma=cache_size(-16000)"
)

// openRecords opens the file at path. An empty path is a temporary file that ends with the records.
func openRecords(ctx context.Context, path string, now time.Time) (*records, error) {
	r := &records{
		queue:           make(chan *write, maxWaiting),
		done:            make(chan struct{}),
		writeStatements: map[string]*sql.Stmt{},
	}
	if path == "" {
		dir, err := os.MkdirTemp("", "bursar-sandbox-")
		if err != nil {
			return nil, err
		}
		r.temporary, path = dir, filepath.Join(dir, "sandbox.db")
	}
	if err := r.open(ctx, path, now); err != nil {
		return nil, errors.Join(fmt.Errorf("open the sandbox's records: %w", err), r.release())
	}
	go r.writeAll()
	return r, nil
}

func (r *records) open(ctx context.Context, path string, now time.Time) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := createPrivate(path); err != nil {
		return err
	}
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + pragmas
	if r.pool, err = sql.Open("sqlite", dsn+"&_txlock=immediate"); err != nil {
		return err
	}
	r.pool.SetMaxOpenConns(1)
	if r.conn, err = r.pool.Conn(ctx); err != nil {
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
	return r.startNumbers(ctx, now)
}

// createPrivate makes an empty file for its owner's eyes alone, unless there is one: SQLite would let
// others read it. Its log and index get the mode of the database.
func createPrivate(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the operator names the file
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// startNumbers begins numbering rows at the present microsecond, so that a new sandbox does not give
// out the ids of an earlier one.
func (r *records) startNumbers(ctx context.Context, now time.Time) error {
	var most int64
	err := r.conn.QueryRowContext(ctx, `SELECT max(
		(SELECT coalesce(max(seq), 0) FROM contacts), (SELECT coalesce(max(seq), 0) FROM fund_accounts),
		(SELECT coalesce(max(seq), 0) FROM validations), (SELECT coalesce(max(seq), 0) FROM payouts),
		(SELECT coalesce(max(seq), 0) FROM transactions), (SELECT coalesce(max(seq), 0) FROM events))`).Scan(&most)
	r.lastSeq.Store(max(most, now.UnixMicro()))
	return err
}

func (r *records) newSeq() int64 { return r.lastSeq.Add(1) }

var errClosed = errors.New("sandbox: closed")

// update runs fn in a transaction and returns once it is committed. When fn fails nothing of it
// remains. It may run more than once, so it must set what it captures anew each time.
func (r *records) update(fn func(*tx) error) error {
	w := &write{fn, make(chan error, 1)}
	r.closing.RLock()
	if r.closed {
		r.closing.RUnlock()
		return errClosed
	}
	r.queue <- w
	r.closing.RUnlock()
	return <-w.done
}

func (r *records) writeAll() {
	defer close(r.done)
	group := make([]*write, 0, maxGroup)
	for first := range r.queue {
		group = append(group[:0], first)
		for len(group) < maxGroup && len(r.queue) > 0 {
			group = append(group, <-r.queue)
		}
		r.commit(group)
	}
}

// commit runs a group in one transaction. If one of several fails, each runs in its own.
func (r *records) commit(group []*write) {
	err := r.transact(group)
	if err == nil || len(group) == 1 {
		for _, w := range group {
			w.done <- err
		}
		return
	}
	for _, w := range group {
		w.done <- r.transact([]*write{w})
	}
}

func (r *records) transact(group []*write) error {
	t := &tx{records: r}
	if err := t.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	for _, w := range group {
		if err := w.fn(t); err != nil {
			t.undo()
			return err
		}
	}
	err := t.exec(`COMMIT`)
	if err != nil {
		t.undo()
	}
	return err
}

// undo ends the transaction. SQLite may have ended it by itself, as on a full disk.
func (t *tx) undo() { _ = t.exec(`ROLLBACK`) }

// close finishes what waits and closes the file.
func (r *records) close() error {
	r.closing.Lock()
	if !r.closed {
		r.closed = true
		close(r.queue)
	}
	r.closing.Unlock()
	<-r.done
	return r.release()
}

func (r *records) release() error {
	var err error
	if r.conn != nil {
		for _, stmt := range r.writeStatements {
			err = errors.Join(err, stmt.Close())
		}
		err = errors.Join(err, r.conn.Close())
	}
	if r.pool != nil {
		err = errors.Join(err, r.pool.Close())
	}
	if r.reader != nil {
		err = errors.Join(err, r.reader.Close())
	}
	if r.temporary != "" {
		err = errors.Join(err, os.RemoveAll(r.temporary))
	}
	return err
}

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

type failedRow struct{ err error }

func (f failedRow) Scan(...any) error { return f.err }

// queryer reads: either what is committed, or what a transaction sees.
type queryer interface {
	row(query string, args ...any) scanner
	each(query string, scan func(scanner) error, args ...any) error
}

func (r *records) row(query string, args ...any) scanner {
	stmt, err := r.prepared(query)
	if err != nil {
		return failedRow{err}
	}
	return stmt.QueryRowContext(context.Background(), args...)
}

func (r *records) each(query string, scan func(scanner) error, args ...any) error {
	stmt, err := r.prepared(query)
	if err != nil {
		return err
	}
	return scanAll(stmt, scan, args)
}

func (r *records) prepared(query string) (*sql.Stmt, error) {
	if stmt, ok := r.readStatements.Load(query); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := r.reader.PrepareContext(context.Background(), query) //nolint:gosec // built of constants; values are bound
	if err != nil {
		return nil, err
	}
	if first, taken := r.readStatements.LoadOrStore(query, stmt); taken {
		return first.(*sql.Stmt), stmt.Close()
	}
	return stmt, nil
}

func scanAll(stmt *sql.Stmt, scan func(scanner) error, args []any) error {
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

// tx is a transaction of the one writer.
type tx struct {
	records *records
	// balance of our account, once it was read.
	balance *int64
}

func (t *tx) prepared(query string) (*sql.Stmt, error) {
	if stmt, ok := t.records.writeStatements[query]; ok {
		return stmt, nil
	}
	stmt, err := t.records.conn.PrepareContext(context.Background(), query)
	if err == nil {
		t.records.writeStatements[query] = stmt
	}
	return stmt, err
}

// exec runs a statement.
func (t *tx) exec(query string, args ...any) error {
	stmt, err := t.prepared(query)
	if err != nil {
		return err
	}
	_, err = stmt.ExecContext(context.Background(), args...)
	return err
}

func (t *tx) row(query string, args ...any) scanner {
	stmt, err := t.prepared(query)
	if err != nil {
		return failedRow{err}
	}
	return stmt.QueryRowContext(context.Background(), args...)
}

func (t *tx) each(query string, scan func(scanner) error, args ...any) error {
	stmt, err := t.prepared(query)
	if err != nil {
		return err
	}
	return scanAll(stmt, scan, args)
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
