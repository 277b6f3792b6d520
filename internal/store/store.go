// Package store keeps everything durable: one set of portable SQL behind the ports of the domains.
//
// There are three ways to write. [DB.Update] gives a closure a transaction. Changes of payouts share one with those that
// wait beside them: InGroup of [DB.Payouts], see unit.go. On PostgreSQL a refresh is a single statement in a group, see
// postgres_statements.go. A closure may run more than once, so it must touch nothing but the database; an answer is given
// only after the commit is durable. Reads go to connections of their own and never wait for a write.
//
// A LIMIT is written as $n + 0: SQLite plans a statement again, each time that it is run, if a parameter alone
// is its LIMIT, and that costs more than to run it.
//
// What engines do differently is in [dialect] and in the engine's own file; every statement is
// written once. See docs/adr/0002-one-portable-store.md.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"bursar/internal/fault"
)

// DB is an open database. It is safe for concurrent use.
type DB struct {
	dialect dialect
	reader  *sql.DB
	writer  writer
	// units groups changes of payouts where the writer does not group everything.
	units *unitWriter
	// statements groups single statements where the writer does not group everything.
	statements *statementWriter
	// rows reads single rows together where that is cheaper.
	rows *rowReader
	// keyed reads the rows of many keys together, unless nothing happens beside another.
	keyed *rowReader
	// signer has the keys of the journal, and tails what this process knows of the ends of journals.
	signer       *signer
	tails        *tailCache
	checkedHeads checkedHeads

	prepareds sync.Map                     // query text → *sql.Stmt on the reader
	fail      func(statement string) error // see [DB.FailBefore]
}

// writer runs closures in durable transactions.
type writer interface {
	update(ctx context.Context, fn func(*Tx) error) error
	// updateSlowly is update for what may take minutes.
	updateSlowly(ctx context.Context, fn func(*Tx) error) error
	// ready fails if nothing can be written, as far as that is known.
	ready(ctx context.Context) error
	io.Closer
}

// Update runs fn in a transaction and returns once its effects are durable. When fn fails, nothing
// of it remains and its error is returned. Update fails with a fault of kind Unavailable when the
// database can't be written to; then nothing is promised, and a repeat must be safe.
func (db *DB) Update(ctx context.Context, fn func(*Tx) error) error {
	return db.writer.update(ctx, fn)
}

// Ping reports whether the database answers and, if it could not be written to, whether it can again.
func (db *DB) Ping(ctx context.Context) error {
	var one int
	if err := db.queryRow(ctx, `SELECT 1`).Scan(&one); err != nil {
		return err
	}
	return db.writer.ready(ctx)
}

// Close waits for writes under way and closes the database. Later writes fail.
func (db *DB) Close() error {
	var err error
	if db.units != nil {
		err = errors.Join(db.units.Close(), db.statements.Close())
	}
	if db.keyed != nil {
		err = errors.Join(err, db.keyed.Close())
	}
	err = errors.Join(err, db.writer.Close())
	db.prepareds.Range(func(_, stmt any) bool {
		err = errors.Join(err, stmt.(*sql.Stmt).Close())
		return true
	})
	return errors.Join(err, db.reader.Close())
}

// scanner is one row, or the error that took its place.
type scanner interface{ Scan(dest ...any) error }

// row is one of the rows that a statement found. It keeps the first error of reading it, so that a closure that reads rows has
// none to hand on: the function that runs the closure fails with it.
type row struct {
	from scanner
	err  error
}

// Scan reads the row's columns. If it fails, dest is not what is stored, and what is made of it is not used.
func (r *row) Scan(dest ...any) { r.fail(r.from.Scan(dest...)) }

// fail makes err the row's error, unless it has one.
func (r *row) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// failedRow is the error that took a row's place.
type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// queryRow reads one row by its key. Its Scan must be called.
func (db *DB) queryRow(ctx context.Context, query string, args ...any) scanner {
	if db.rows != nil {
		return db.rows.row(ctx, query, args)
	}
	stmt, err := db.prepared(ctx, query)
	if err != nil {
		return failedRow{err}
	}
	return readableRow{stmt.QueryRowContext(context.WithoutCancel(ctx), args...), db.dialect.unreadable}
}

// rowOf is [DB.queryRow] of a query that many may ask at a time, each of another key: it ends in what the key is compared
// with, and selects the key last.
func (db *DB) rowOf(ctx context.Context, query, key string) scanner {
	if db.keyed != nil {
		return db.keyed.rowOf(ctx, query, key)
	}
	return db.queryRow(ctx, query+`= $1`, key)
}

// readableRow says what an error of its reading means.
type readableRow struct {
	scanner
	unreadable func(error) error
}

func (r readableRow) Scan(dest ...any) error { return r.unreadable(r.scanner.Scan(dest...)) }

// queryOne reads one row that may take longer to find. Where there is none, dest stays as it is.
func (db *DB) queryOne(ctx context.Context, query string, args []any, dest ...any) error {
	return db.query(ctx, query, args, func(r *row) { r.Scan(dest...) })
}

// queryFunc is [DB.query] or [Tx.each], for what reads the same with both.
type queryFunc func(ctx context.Context, query string, args []any, scan func(*row)) error

// query reads rows, handing each to scan.
func (db *DB) query(ctx context.Context, query string, args []any, scan func(*row)) error {
	ctx, end := db.dialect.shortRead(ctx)
	defer end()
	rows, err := db.queryRows(ctx, query, args)
	for try := 1; try < maxTries && db.dialect.lost(err); try++ { // every connection of a pool may be stale
		rows, err = db.queryRows(ctx, query, args)
	}
	if err != nil {
		return db.dialect.unreadable(err)
	}
	return db.dialect.unreadable(eachRow(rows, scan))
}

func (db *DB) queryRows(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	if db.rows != nil { // the driver keeps its statements prepared
		return db.reader.QueryContext(ctx, query, args...)
	}
	stmt, err := db.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

func (db *DB) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if db.fail != nil {
		if err := db.fail(query); err != nil {
			return nil, err
		}
	}
	if stmt, ok := db.prepareds.Load(query); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := db.reader.PrepareContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	if first, taken := db.prepareds.LoadOrStore(query, stmt); taken {
		return first.(*sql.Stmt), stmt.Close()
	}
	return stmt, nil
}

// collect scans each row to an element of a list.
func collect[R any](list *[]R, dest func(row *R, more ...any) []any) func(*row) {
	return func(r *row) {
		var one R
		r.Scan(dest(&one)...)
		*list = append(*list, one)
	}
}

// readAll collects what a query finds.
func readAll[R any](ctx context.Context, read queryFunc, query string, args []any, dest func(row *R, more ...any) []any) (list []R, err error) {
	err = read(ctx, query, args, collect(&list, dest))
	return list, err
}

// itself is where a row of one column is scanned to.
func itself[R any](row *R, more ...any) []any { return append([]any{row}, more...) }

// eachRow hands rows to scan, and closes them.
func eachRow(rows *sql.Rows, scan func(*row)) error {
	defer rows.Close()
	return scanRows(rows, scan)
}

// scanRows hands rows to scan, up to the first that can't be read.
func scanRows(rows foundRows, scan func(*row)) error {
	r := &row{from: rows}
	for rows.Next() {
		if scan(r); r.err != nil {
			return r.err
		}
	}
	return rows.Err()
}

// Tx is one transaction. It satisfies every domain's Tx port.
type Tx struct {
	dialect dialect
	conn    conn
	signer  *signer
	tails   *tailCache // nil for a view of one moment
	// appended are where journals stood before this closure appended to them, and after.
	appended []unitJournal
	// wrote says that undoing this closure alone needs more than forgetting it.
	wrote bool
	// broken is the first statement's error. Some errors end the engine's whole transaction, so after
	// one nothing more may be run, and nothing of the closure may be kept, whatever it returns.
	broken error
	// absent are the owners whose journals were not there when this closure asked. There was no row to lock.
	absent map[string]bool
	reads  crossRead
}

// conn runs statements within a transaction.
type conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// exec runs a statement and returns how many rows it changed.
func (tx *Tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	if tx.broken != nil {
		return 0, tx.swallowed()
	}
	result, err := tx.conn.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, tx.fail(err)
	}
	n, err := result.RowsAffected()
	if n > 0 {
		tx.wrote = true
	}
	return n, err
}

// execOne is exec for a statement whose key admits one row: it reports whether that row was changed.
func (tx *Tx) execOne(ctx context.Context, query string, args ...any) (bool, error) {
	n, err := tx.exec(ctx, query, args...)
	return n == 1, err
}

// execSigned is execOne of a statement whose last argument is the MAC of what a row's message says.
func (tx *Tx) execSigned(ctx context.Context, message []byte, query string, args ...any) (bool, error) {
	mac, err := tx.signer.mac(message)
	if err != nil {
		return false, err
	}
	return tx.execOne(ctx, query, append(args, mac)...)
}

// one scans the only row of a query or of a RETURNING clause, and reports whether there was one.
func (tx *Tx) one(ctx context.Context, query string, args []any, dest ...any) (bool, error) {
	found := false
	err := tx.each(ctx, query, args, func(r *row) {
		found = true
		r.Scan(dest...)
	})
	return found, err
}

// each hands every row of a query or of a RETURNING clause to scan.
func (tx *Tx) each(ctx context.Context, query string, args []any, scan func(*row)) error {
	if tx.broken != nil {
		return tx.swallowed()
	}
	rows, err := tx.conn.QueryContext(ctx, query, args...)
	if err != nil {
		return tx.fail(err)
	}
	err = eachRow(rows, func(r *row) {
		tx.wrote = tx.wrote || changes(query)
		scan(r)
	})
	if err != nil {
		return tx.fail(err)
	}
	return nil
}

// run calls fn. One that panics fails, and so does one that swallowed a statement's error.
func (tx *Tx) run(fn func(*Tx) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			tx.wrote = true
			err = fmt.Errorf("panic in a transaction: %v\n%s", r, debug.Stack())
		}
	}()
	err = fn(tx)
	if err == nil && tx.broken != nil {
		err = tx.swallowed()
	}
	return err
}

// ErrSwallowed says that a closure went on after one of its statements had failed. Nothing of it is kept, and its code has a
// mistake.
var ErrSwallowed = errors.New("the error of a statement was swallowed")

func (tx *Tx) swallowed() error {
	if !errors.Is(tx.broken, ErrSwallowed) {
		tx.broken = errors.Join(tx.broken, ErrSwallowed)
	}
	return tx.broken
}

func (tx *Tx) fail(err error) error {
	tx.wrote, tx.broken = true, err
	return err
}

// changes reports whether a statement that returns rows also changes them.
func changes(query string) bool {
	for i := range len(query) {
		switch query[i] {
		case ' ', '\n', '\t':
		case 'S':
			return false
		default:
			return true
		}
	}
	return true
}

// That the storage is not available has several causes, which people read, and one code.
const storageUnavailable = "storage_unavailable"

var (
	errStorage = fault.New(fault.Unavailable, storageUnavailable, "The database can't be written to at the moment. Try again shortly.")
	errFull    = fault.New(fault.Unavailable, storageUnavailable,
		"The database's disk is full, and nothing was done. What is there can be read. Try again in a while; the operator has to make space.")
	errDisk = fault.New(fault.Unavailable, storageUnavailable,
		"The database's disk takes no writes, and nothing was done. What is there can be read. Try again in a while; the operator has to look at the disk.")
	errUnsynced = fault.New(fault.Unavailable, "outcome_unknown",
		"The database's disk failed, so it is not known whether this was done. Look before you repeat it, or repeat it with the same Idempotency-Key.")
	errNotBegun = fault.New(fault.Unavailable, "request_ended", "The request ended before it was begun.")
)

// found turns "no rows" into false.
func found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// micros is how instants are stored. The zero time has no place in a column that may not be NULL.
func micros(t time.Time) int64 { return t.UnixMicro() }

// nullMicros stores the zero time as NULL.
func nullMicros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// instant scans what micros and nullMicros store.
type instant struct{ at *time.Time }

func (i instant) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*i.at = time.Time{}
	case int64:
		*i.at = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("an instant stored as %T", src)
	}
	return nil
}

// flag is how booleans are bound: PostgreSQL takes no Go bool for a number.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// flagged scans what flag binds.
type flagged struct{ set *bool }

func (f flagged) Scan(src any) error {
	n, ok := src.(int64)
	if !ok {
		return fmt.Errorf("a flag stored as %T", src)
	}
	*f.set = n != 0
	return nil
}
