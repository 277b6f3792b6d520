package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlitecodes "modernc.org/sqlite/lib"

	"bursar/internal/payout"
)

// Pragmas of every connection. FULL makes each commit durable against power loss; in WAL, NORMAL
// does not. The log is checkpointed at 32 MiB: often enough to stay small, rarely enough that pages
// changed by many commits are written back once. The cache is 8 MB: after nearly each commit SQLite looks at
// every page of it, which takes longer than to read some pages again.
const pragmas = "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
	"&_pragma=foreign_keys(1)&_pragma=wal_autocheckpoint(8000)&_pragma=cache_size(-8000)&_pragma=temp_store(2)"

var sqliteDialect = dialect{
	ddl: func(s string) string {
		s = strings.ReplaceAll(s, "BIGINT", "INTEGER")
		return strings.NewReplacer(") /* clustered */;", ") STRICT, WITHOUT ROWID;", ") /* appended */;", ") STRICT;").Replace(s)
	},
	begin: []string{"BEGIN IMMEDIATE"},
	// One writer at a time: nothing that a transaction reads can change under it.
	forUpdate:  func(string) string { return "" },
	forShare:   func(string) string { return "" },
	skipLocked: "",

	historyOrder: "id",
	firstPage: func(_ dialect, statuses []payout.Status) string { // it reads ordered lists as one
		lists := make([]string, len(statuses))
		for i, status := range statuses {
			lists[i] = `SELECT ` + listColumns + `, ` + counted(statuses) + payoutFrom + `WHERE p.seller_id = $2 AND p.status = ` + literal(status)
		}
		return strings.Join(lists, ` UNION ALL `) + ` ORDER BY 1 DESC LIMIT $1 + 0` // by p.id
	},
	unsound:    `SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'`,
	selfActing: selfActingSQLite, definitions: definitionsSQLite,
	version: `SELECT sqlite_version()`, makeSchema: makeSchemaSQLite,
	// A context that can end costs a goroutine per statement, more than a read by key does.
	shortRead: func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithoutCancel(ctx), func() {}
	},
	lost:       func(error) bool { return false },
	unreadable: sqliteUnavailable,
	exists: func(err error) bool { // it has no code of its own
		e, ok := errors.AsType[*sqlite.Error](err)
		return ok && e.Code() == sqlitecodes.SQLITE_ERROR && strings.Contains(e.Error(), "already exists")
	},
	overflowed: func(err error) bool { // it has no code of its own
		e, ok := errors.AsType[*sqlite.Error](err)
		return ok && e.Code() == sqlitecodes.SQLITE_ERROR && strings.Contains(e.Error(), "integer overflow")
	},
}

// OpenSQLite opens the database in the file at path, creating and migrating it as needed.
func OpenSQLite(ctx context.Context, path string) (*DB, error) {
	db, err := openSQLite(ctx, path, func(dsn string) (*sql.DB, error) { return sql.Open("sqlite", dsn) })
	if err != nil {
		return nil, err
	}
	db.keyed = newRowReader(func() rowServer { return sqliteRows{db} })
	return db, nil
}

// OpenUnsyncedSQLite is OpenSQLite for simulations, whose processes die and whose machine does not:
// what was committed outlives the process, and may be lost with the machine. One thing happens at a time there, and
// the log stays short, since each start reads it, and there are many.
func OpenUnsyncedSQLite(ctx context.Context, path string) (*DB, error) {
	unsynced := strings.NewReplacer("synchronous(FULL)", "synchronous(OFF)", "wal_autocheckpoint(8000)", "wal_autocheckpoint(250)")
	db, err := openSQLite(ctx, path, func(dsn string) (*sql.DB, error) { return sql.Open("sqlite", unsynced.Replace(dsn)) })
	if err != nil {
		return nil, err
	}
	db.writer.(*groupWriter).oneAtATime = true
	return db, nil
}

// FailBefore has each statement of a SQLite database ask fail first, and not run where that is an error. It is for tests
// and simulations, and is set before the database is used.
func (db *DB) FailBefore(fail func(statement string) error) {
	db.fail, db.writer.(*groupWriter).conn.fail = fail, fail
}

func openSQLite(ctx context.Context, path string, pool func(dsn string) (*sql.DB, error)) (*DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the database: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory; name a file, as in sqlite:%s", path, filepath.Join(path, "bursar.db"))
	}
	if err := createPrivate(path); err != nil {
		return nil, fmt.Errorf("open or make the database: %w", err)
	}
	if err := checkLog(path); err != nil {
		return nil, err
	}
	file := "file:" + (&url.URL{Path: path}).EscapedPath()
	w, err := openWriter(ctx, func() (*sql.DB, error) { return pool(file + "?_txlock=immediate&" + pragmas) })
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, sqliteLocked(err))
	}
	reader, err := pool(file + "?_pragma=query_only(1)&" + pragmas)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	readers := max(4, 2*runtime.GOMAXPROCS(0))
	reader.SetMaxOpenConns(readers)
	reader.SetMaxIdleConns(readers)
	return &DB{dialect: sqliteDialect, reader: reader, writer: w, signer: w.signer, tails: w.tails}, nil
}

// openWriter opens the database for writing. SQLite does not wait for others where two who open a new database, or the
// last one who closes it and the next one, are in each other's way: then it is tried again, as long as it would wait.
func openWriter(ctx context.Context, pool func() (*sql.DB, error)) (*groupWriter, error) {
	trying, stop := context.WithTimeout(ctx, busyTimeout)
	defer stop()
	for ; ; time.Sleep(10 * time.Millisecond) {
		writer, err := pool()
		if err != nil {
			return nil, err
		}
		w, err := newGroupWriter(ctx, writer)
		if e, ok := errors.AsType[*sqlite.Error](err); !ok || e.Code()&0xff != sqlitecodes.SQLITE_BUSY || trying.Err() != nil {
			return w, err
		}
	}
}

// busyTimeout is how long SQLite waits for another process's lock; pragmas say the same.
const busyTimeout = 5 * time.Second

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

// groupWriter is SQLite's one writer: it commits what waits in groups.
type groupWriter struct {
	pool   *sql.DB
	conn   *preparedConn
	queue  queue[*sqliteJob]
	done   chan struct{}
	signer *signer
	tails  *tailCache
	// trouble is the error of the last commit, if it failed because of the disk.
	trouble atomic.Pointer[error]
	// oneAtATime says that nobody writes beside another: each commits in their own turn.
	oneAtATime bool
}

func newGroupWriter(ctx context.Context, pool *sql.DB) (*groupWriter, error) {
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	if err := migrate(ctx, conn, sqliteDialect); err != nil {
		return nil, errors.Join(err, conn.Close(), pool.Close())
	}
	w := &groupWriter{
		pool:   pool,
		conn:   &preparedConn{conn: conn, statements: map[string]*sql.Stmt{}},
		queue:  newQueue[*sqliteJob](),
		done:   make(chan struct{}),
		signer: &signer{},
		tails:  &tailCache{},
	}
	go w.run()
	return w, nil
}

// sqliteJob is a closure that waits for its turn: a change for a unit of work, or one that runs its own statements.
type sqliteJob struct {
	job[*Tx]
	change *unitJob
}

// alone is the job with its own statements.
func (j *sqliteJob) alone() *sqliteJob {
	if j.change == nil {
		return j
	}
	own := &sqliteJob{job: j.job}
	own.fn = func(tx *Tx) error { return j.change.fn(tx) }
	return own
}

func (w *groupWriter) update(ctx context.Context, fn func(*Tx) error) error {
	return w.do(&sqliteJob{job: job[*Tx]{ctx: ctx, fn: fn, answer: make(chan error, 1)}})
}

func (w *groupWriter) updateSlowly(ctx context.Context, fn func(*Tx) error) error {
	return w.update(ctx, fn)
}

func (w *groupWriter) do(j *sqliteJob) error {
	if w.oneAtATime {
		if err := w.commitInTurn([]*sqliteJob{j}); err != nil {
			return err
		}
		return <-j.answer
	}
	if err := w.queue.put(j.ctx, j); err != nil {
		return err
	}
	return <-j.answer // even if ctx ends: the closure may be running, and its outcome is the answer
}

// commitInTurn commits a group without waking anybody for it.
func (w *groupWriter) commitInTurn(group []*sqliteJob) error {
	w.queue.closing.Lock()
	defer w.queue.closing.Unlock()
	if w.queue.closed {
		return errClosed
	}
	w.commit(group)
	return nil
}

// Close finishes what is queued, then closes the database.
func (w *groupWriter) Close() error {
	w.queue.close()
	<-w.done
	return errors.Join(w.conn.Close(), w.pool.Close())
}

func (w *groupWriter) run() {
	defer close(w.done)
	group := w.queue.take(make([]*sqliteJob, 0, maxGroup))
	for ; len(group) > 0; group = w.queue.take(group) {
		w.commit(group)
	}
}

// commit runs a group in one transaction and answers each job once it is durable. If the group can't be served together, as when a
// closure fails after it wrote, all is undone and each job runs in a transaction of its own.
func (w *groupWriter) commit(group []*sqliteJob) {
	outcomes, err := w.transact(group)
	if errors.Is(err, errServeAlone) {
		for _, j := range group {
			outcome, err := w.transact([]*sqliteJob{j.alone()})
			j.answer <- cmp.Or(err, outcome[0])
		}
		return
	}
	for i, j := range group {
		j.answer <- cmp.Or(err, outcomes[i])
	}
}

// transact returns each job's own outcome, and an error that takes the place of all of them.
func (w *groupWriter) transact(group []*sqliteJob) ([]error, error) {
	outcomes := make([]error, len(group))
	if err := w.conn.do("BEGIN IMMEDIATE"); err != nil {
		w.rollback() // in case the transaction before could not be ended
		err = sqliteUnavailable(err)
		w.note(err, false)
		return outcomes, err
	}
	u, wrote, err := w.changes(group, outcomes)
	if err != nil { // it may be one change's trouble, which its own statements tell better
		w.rollback()
		return outcomes, errServeAlone
	}
	var appended []unitJournal
	for i, j := range group {
		if j.change != nil {
			continue
		}
		tx := &Tx{dialect: sqliteDialect, conn: w.conn, signer: w.signer, tails: w.tails}
		outcomes[i] = call(&j.job, tx)
		wrote = wrote || tx.wrote
		if outcomes[i] == nil {
			appended = append(appended, tx.appended...)
		}
		if outcomes[i] == nil || !tx.wrote {
			continue
		}
		w.rollback()
		if len(group) > 1 {
			return outcomes, errServeAlone
		}
		w.note(outcomes[i], false)
		return outcomes, nil
	}
	if err := w.conn.do("COMMIT"); err != nil {
		w.rollback()
		err = sqliteUncommitted(err)
		w.note(err, false)
		return outcomes, err
	}
	if u != nil {
		u.keepTails()
	}
	w.tails.wroteAll(appended)
	w.note(nil, wrote)
	return outcomes, nil
}

// changes serves the group's changes in one unit of work, before anything else of the group. The unit is nil for a group
// without changes. An error takes the place of all outcomes.
func (w *groupWriter) changes(group []*sqliteJob, outcomes []error) (u *unit, wrote bool, err error) {
	var changes []*unitJob
	for _, j := range group {
		if j.change != nil {
			changes = append(changes, j.change)
		}
	}
	if len(changes) == 0 {
		return nil, false, nil
	}
	keys, err := w.signer.get()
	if err != nil {
		return nil, false, err
	}
	u = newUnit(keys, w.tails, len(changes))
	if err := w.read(u.loads(sqliteDialect, changes)); err != nil {
		return u, false, err
	}
	if err := w.read(u.followUps(sqliteDialect, changes)); err != nil {
		return u, false, err
	}
	u.checkTails()
	for i, j := range group {
		if j.change != nil {
			outcomes[i] = u.serve(j.change)
		}
	}
	writes := u.writeStatements(sqliteDialect)
	for _, write := range writes {
		result, err := w.conn.ExecContext(context.Background(), write.sql, write.args...)
		if err != nil {
			return u, true, err
		}
		if n, err := result.RowsAffected(); err != nil || n != write.rows {
			return u, true, errors.Join(err, fmt.Errorf("%d rows were written, and %d should have been: %s", n, write.rows, write.sql))
		}
	}
	return u, len(writes) > 0, nil
}

func (w *groupWriter) read(loads []load) error {
	for _, load := range loads {
		rows, err := w.conn.QueryContext(context.Background(), load.sql, load.args...)
		if err == nil {
			err = eachRow(rows, load.scan)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// note keeps what the last writing said about the disk. Only what was written and kept says that all is well.
func (w *groupWriter) note(err error, wrote bool) {
	switch {
	case errors.Is(err, errStorage) || errors.Is(err, errUnsynced):
		w.trouble.Store(&err)
	case wrote && w.trouble.Load() != nil:
		w.trouble.Store(nil)
	}
}

// ready writes something that changes nothing, if the last writing failed because of the disk.
func (w *groupWriter) ready(ctx context.Context) error {
	if w.trouble.Load() == nil {
		return nil
	}
	err := w.update(ctx, func(tx *Tx) error {
		tx.wrote = true
		_, err := tx.conn.ExecContext(ctx, `PRAGMA user_version = 0`) // writes a page, as an update to the same values does not
		return err
	})
	if errors.Is(err, errUnsynced) { // nobody asked for this write
		err = errDisk.Because(err)
	}
	return err
}

// sqliteUncommitted is what a failed COMMIT means. After a failed fsync the commit is invisible, and the next one overwrites it. But
// if the process ends before that, the next start finds it whole, so its outcome is unknown.
func sqliteUncommitted(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == sqlitecodes.SQLITE_IOERR_FSYNC {
		return errUnsynced.Because(err)
	}
	return sqliteUnavailable(err)
}

// rollback ends the transaction; SQLite may already have ended it by itself, as on a full disk.
func (w *groupWriter) rollback() { _ = w.conn.do("ROLLBACK") }

// call runs a job's closure. One that panics fails, and takes nobody else's work with it.
func call(j *job[*Tx], tx *Tx) error {
	if err := j.ctx.Err(); err != nil {
		return errNotBegun.Because(err)
	}
	err := tx.run(j.fn)
	if _, ok := errors.AsType[*sqlite.Error](err); ok {
		return sqliteUnavailable(err)
	}
	return err
}

// sqliteUnavailable marks the errors that a later try may not meet: a lock held by another process, a full
// disk, a file system gone read-only.
func sqliteUnavailable(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlitecodes.SQLITE_FULL:
		return errFull.Because(err)
	case sqlitecodes.SQLITE_IOERR, sqlitecodes.SQLITE_READONLY, sqlitecodes.SQLITE_CANTOPEN:
		return errDisk.Because(err)
	case sqlitecodes.SQLITE_BUSY, sqlitecodes.SQLITE_LOCKED:
		return errStorage.Because(err)
	default:
		return sqliteDamaged(err)
	}
}

// sqliteLocked says what to do about a file that can't be opened, because another program has locked it or it is damaged.
func sqliteLocked(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == sqlitecodes.SQLITE_BUSY {
		return fmt.Errorf("another program holds the database's lock: %w; end that program, or wait until it is done, and try again", err)
	}
	return sqliteDamaged(err)
}

// sqliteDamaged says what to do about a file that SQLite can't make sense of. A table or column that is missing is damage too: the
// schema's version was checked when the file was opened.
func sqliteDamaged(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch code := e.Code() & 0xff; {
	case code == sqlitecodes.SQLITE_CORRUPT, code == sqlitecodes.SQLITE_NOTADB:
	case code == sqlitecodes.SQLITE_ERROR && (strings.Contains(e.Error(), "no such column") || strings.Contains(e.Error(), "no such table")):
	default:
		return err
	}
	return fmt.Errorf("the database is damaged: %w; stop the service, keep a copy of all the database's files, and restore a backup", err)
}

// preparedConn is one connection that keeps its statements prepared.
type preparedConn struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
	fail       func(statement string) error // see [DB.FailBefore]
}

func (c *preparedConn) prepared(query string) (*sql.Stmt, error) {
	if c.fail != nil {
		if err := c.fail(query); err != nil {
			return nil, err
		}
	}
	if stmt, ok := c.statements[query]; ok {
		return stmt, nil
	}
	stmt, err := c.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	c.statements[query] = stmt
	return stmt, nil
}

// ExecContext does not end with ctx: a group's transaction is not one caller's to interrupt.
func (c *preparedConn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(context.WithoutCancel(ctx), args...)
}

// QueryContext does not end with ctx either.
func (c *preparedConn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(context.WithoutCancel(ctx), args...)
}

func (c *preparedConn) do(query string) error {
	_, err := c.ExecContext(context.Background(), query)
	return err
}

func (c *preparedConn) Close() error {
	var err error
	for _, stmt := range c.statements {
		err = errors.Join(err, stmt.Close())
	}
	return errors.Join(err, c.conn.Close())
}

// Backup writes a consistent copy of the database to a new file at path while the service runs.
func (db *DB) Backup(ctx context.Context, path string) error {
	conn, err := db.reader.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `PRAGMA query_only = 0`); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, `VACUUM INTO $1`, path)
	_, restore := conn.ExecContext(context.WithoutCancel(ctx), `PRAGMA query_only = 1`)
	return errors.Join(err, restore)
}
