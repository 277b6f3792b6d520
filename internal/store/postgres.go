package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"bursar/internal/fault"
)

// Connections of one instance to PostgreSQL, unless its address says pool_max_conns. A few more serve
// payout requests and reads by key.
const defaultConnections = 20

// Time limits towards PostgreSQL. The hosts that are tried for a connection share its limit. A write that overruns its limit has an unknown outcome, so the limit
// is the client's: were it the server's, a COMMIT that waits for a standby would be cut short and yet
// answered with success.
const (
	connectTimeout = 5 * time.Second
	readTimeout    = 5 * time.Second
	writeTimeout   = 10 * time.Second
)

var postgresDialect = dialect{
	// As bytes, as SQLite compares: every instance locks rows in the same order whatever the server's locale.
	ddl: func(s string) string {
		s = strings.ReplaceAll(s, "TEXT", `TEXT COLLATE "C"`)
		return strings.ReplaceAll(s, "payouts (seller_id, status, id)", `payouts (seller_id, status, id COLLATE "POSIX")`)
	},
	// The same order by another name, which only this index has: a planner that could have the order from
	// the primary key as well would walk through everybody's payouts for those of one seller.
	historyOrder: `id COLLATE "POSIX"`,
	// One waits long for another who migrates, but briefly for a table: all requests wait behind that.
	begin: []string{
		"BEGIN", "SET LOCAL lock_timeout = '60s'", "SELECT pg_advisory_xact_lock(" + migrationLock + ")",
		"SET LOCAL lock_timeout = '3s'",
	},
	// Not FOR UPDATE: that would wait for a transaction that inserts a row that refers to this one, and no key ever changes.
	forUpdate:  func(table string) string { return " FOR NO KEY UPDATE OF " + table },
	forShare:   func(table string) string { return " FOR KEY SHARE OF " + table },
	skipLocked: " FOR NO KEY UPDATE SKIP LOCKED",
	arrays:     true,
	// Not a lock on the platform's row: those who share that let others in, and one who waits for it alone could wait for ever.
	sharePause: "SELECT pg_advisory_xact_lock_shared(" + pauseLock + ")",
	lockPause:  "SELECT pg_advisory_xact_lock(" + pauseLock + ")",
	snapshot:   sql.LevelRepeatableRead,
	readAll: []string{
		"SET LOCAL plan_cache_mode = auto", "SET LOCAL enable_seqscan = on", "SET LOCAL enable_hashjoin = on",
		"SET LOCAL enable_mergejoin = on", "SET LOCAL enable_material = on",
	},
	// The driver closes a connection whose query is given up, so a caller who goes away does not end it.
	shortRead: func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	},
	unreadable: postgresUnreadable,
	overflowed: func(err error) bool {
		e, ok := errors.AsType[*pgconn.PgError](err)
		return ok && e.Code == numericValueOutOfRange
	},
}

// numericValueOutOfRange is what a sum ends with that is too large for its type.
const numericValueOutOfRange = "22003"

// migrationLock and pauseLock are any numbers that others who share the database do not use.
const (
	migrationLock = "1651864179"
	pauseLock     = "1651864180"
)

// OpenPostgres opens the database at a URL, which may name several hosts, and migrates it as needed.
// Connections are made to the host that takes writes; after a failover they are made again to the one
// that then does. Errors never show the URL, which may hold a password.
func OpenPostgres(ctx context.Context, url string) (*DB, error) {
	config, connections, err := postgresConfig(url)
	if err != nil {
		return nil, err
	}
	return openPostgres(ctx, config, connections)
}

func openPostgres(ctx context.Context, config *pgx.ConnConfig, connections int) (*DB, error) {
	if err := migratePostgres(ctx, config); err != nil {
		return nil, fmt.Errorf("open the PostgreSQL database: %w", err)
	}
	writers := max(1, connections/2)
	keys := &signer{}
	writer := postgresWriter{newPostgresPool(config, writers), keys}
	reader := newPostgresPool(config, max(1, connections-writers))
	dialect := postgresDialect
	dialect.lost = func(err error) bool { return reader.forgetAfter(err) && !isTimeout(err) }
	rows := newRowReader(func() rowServer {
		return &rowLine{postgresLine{config: config}, func(err error) { // every request begins with such a read, so it is the first to know
			reader.forgetAfter(err)
			writer.pool.forgetAfter(err)
		}}
	})
	return &DB{
		dialect:    dialect,
		reader:     reader.DB,
		writer:     writer,
		signer:     keys,
		units:      newUnitWriter(config, keys, writer.update),
		statements: newStatementWriter(config, writer.update),
		rows:       rows,
		keyed:      rows,
	}, nil
}

// postgresPool keeps up to size connections.
type postgresPool struct {
	*sql.DB
	size int
}

func newPostgresPool(config *pgx.ConnConfig, size int) postgresPool {
	p := stdlib.OpenDB(*config)
	p.SetMaxOpenConns(size)
	p.SetMaxIdleConns(size)
	p.SetConnMaxIdleTime(5 * time.Minute)
	return postgresPool{p, size}
}

// forgetAfter reports whether an error says that a connection was lost, and closes those that are kept
// if so: after a failover all are lost, and where the old server hangs, each would cost a caller's patience.
func (p postgresPool) forgetAfter(err error) bool {
	if !isLost(err) {
		return false
	}
	p.SetMaxIdleConns(0)
	p.SetMaxIdleConns(p.size)
	return true
}

// postgresConfig reads a URL, and sets what our transactions rely on whatever the server's defaults are.
func postgresConfig(url string) (*pgx.ConnConfig, int, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, 0, errors.New("the address of the PostgreSQL database can't be read; write postgres://USER:PASSWORD@HOST:5432/DATABASE, or HOST1:5432,HOST2:5432 for several hosts")
	}
	connections := defaultConnections
	if text, given := config.RuntimeParams["pool_max_conns"]; given {
		if connections, err = strconv.Atoi(text); err != nil || connections < 2 {
			return nil, 0, fmt.Errorf("pool_max_conns=%s in the address of the PostgreSQL database must be a number of connections, at least 2", text)
		}
		delete(config.RuntimeParams, "pool_max_conns")
	}
	if config.ValidateConnect == nil {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	// Of several hosts, the first may hang; there must be time left for the others.
	most := connectTimeout / time.Duration(countHosts(config))
	if config.ConnectTimeout == 0 || config.ConnectTimeout > most {
		config.ConnectTimeout = most
	}
	config.DialFunc = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	config.AfterConnect = insistOnDurability
	for name, value := range map[string]string{
		"default_transaction_isolation":       "read committed",
		"statement_timeout":                   "0",
		"lock_timeout":                        "8s",
		"idle_in_transaction_session_timeout": "30s",
		// Our statements find rows by key and read pages from the ends of indexes. A planner that sees small
		// tables, or a limit that it does not know, would rather read whole ones; and it would plan again each
		// time, which costs more than the reading. The audit reads everything, and undoes this for itself.
		"plan_cache_mode":  "force_generic_plan",
		"enable_seqscan":   "off",
		"enable_hashjoin":  "off",
		"enable_mergejoin": "off",
		"enable_material":  "off",
		"jit":              "off",
	} {
		if _, given := config.RuntimeParams[name]; !given {
			config.RuntimeParams[name] = value
		}
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "bursar"
	}
	return config, connections, nil
}

func countHosts(config *pgx.ConnConfig) int {
	hosts := map[string]bool{net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))): true}
	for _, other := range config.Fallbacks { // the same host may be there twice, with TLS and without
		hosts[net.JoinHostPort(other.Host, strconv.Itoa(int(other.Port)))] = true
	}
	return len(hosts)
}

// insistOnDurability turns on what a server may have turned off: an answer is given only after its commit
// is durable. What asks for more than that, such as remote_apply, stays.
func insistOnDurability(ctx context.Context, conn *pgconn.PgConn) error {
	return conn.Exec(ctx, durabilityOn).Close()
}

const durabilityOn = `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`

func migratePostgres(ctx context.Context, config *pgx.ConnConfig) error {
	pool := stdlib.OpenDB(*config)
	defer pool.Close()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return cannotConnect(err)
	}
	defer conn.Close()
	return migrate(ctx, conn, postgresDialect)
}

// cannotConnect tells why there is no connection, without the address.
func cannotConnect(err error) error {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fmt.Errorf("the server refused: %s (%s)", refused.Message, refused.Code)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return fmt.Errorf("no server answers there that takes writes: %w", errors.Unwrap(err))
	}
	return err
}

// postgresLine is a connection that one goroutine keeps, made when it is first needed and again when it
// was lost.
type postgresLine struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn
}

func (l *postgresLine) dial(ctx context.Context) (err error) {
	if l.conn == nil || l.conn.IsClosed() {
		l.conn, err = pgx.ConnectConfig(ctx, l.config)
	}
	return err
}

// reset makes the connection fit for the next transaction, or gives it up.
func (l *postgresLine) reset(ctx context.Context) {
	if l.conn == nil || l.conn.IsClosed() || l.conn.PgConn().TxStatus() == 'I' {
		return
	}
	if _, err := l.conn.Exec(ctx, "ROLLBACK"); err != nil {
		l.hangUp()
	}
}

func (l *postgresLine) hangUp() {
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	_ = l.conn.Close(ctx) // there is nothing to be done about it
	l.conn = nil
}

// postgresWriter runs each closure in a transaction of its own. READ COMMITTED is enough, because every
// change is a conditional statement or follows a lock, and locks are taken in one order: what is keyed
// by the caller, then payouts and sales, then balances by seller.
type postgresWriter struct {
	pool   postgresPool
	signer *signer
}

// maxTries bounds how often a transaction is begun again after it met others.
const maxTries = 8

func (w postgresWriter) update(ctx context.Context, fn func(*Tx) error) error {
	return retried(ctx, func(ctx context.Context) (bool, error) {
		committing, err := w.transact(ctx, fn)
		w.pool.forgetAfter(err)
		return committing, err
	})
}

// updateSlowly waits for as long as the caller does, and is not tried again.
func (w postgresWriter) updateSlowly(ctx context.Context, fn func(*Tx) error) error {
	committing, err := w.transact(ctx, fn)
	if committing && err != nil && !isUndone(err) {
		return errOutcomeUnknown.Because(err)
	}
	return postgresUnavailable(err)
}

// ready says nothing: what is read is read from a server that takes writes.
func (postgresWriter) ready(context.Context) error { return nil }

func (w postgresWriter) Close() error { return w.pool.Close() }

// transact reports, beside its error, whether it was already committing when that came.
func (w postgresWriter) transact(ctx context.Context, fn func(*Tx) error) (committing bool, err error) {
	t, err := w.pool.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer t.Rollback() //nolint:errcheck // after a commit it does nothing, and otherwise the error is returned already
	if err := (&Tx{dialect: postgresDialect, conn: boundTx{t, ctx}, signer: w.signer}).run(fn); err != nil {
		return false, err
	}
	return true, t.Commit()
}

// boundTx runs statements for as long as their transaction has, whatever becomes of its caller.
type boundTx struct {
	tx  *sql.Tx
	ctx context.Context //nolint:containedctx // the transaction's
}

func (t boundTx) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	return t.tx.ExecContext(t.ctx, query, args...)
}

func (t boundTx) QueryContext(_ context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.tx.QueryContext(t.ctx, query, args...)
}

// retried runs an attempt at a transaction again when it was undone for meeting others (serialization
// failure, deadlock), or when its connection was lost before anything could be committed.
func retried(ctx context.Context, attempt func(context.Context) (committing bool, err error)) error {
	if ctx.Err() != nil {
		return errNotBegun.Because(ctx.Err())
	}
	for try := 1; ; try++ {
		// Not ended with ctx: a transaction under way has an outcome, and that is the answer.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		committing, err := attempt(bounded)
		cancel()
		switch {
		case err == nil:
			return nil
		case committing && !isUndone(err):
			return errOutcomeUnknown.Because(err)
		case try < maxTries && isMetOthers(err):
		case try < maxTries && isLost(err) && !isTimeout(err):
		default:
			return postgresUnavailable(err)
		}
		pause := time.Duration(rand.Int64N(int64(5*time.Millisecond) << min(try, 6)))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return postgresUnavailable(err)
		}
	}
}

var errOutcomeUnknown = fault.New(fault.Unavailable, "outcome_unknown",
	"The database's answer was lost, so it is not known whether this was done. Look before you repeat it, or repeat it with the same Idempotency-Key.")

// isMetOthers says that PostgreSQL undid a transaction because of another one beside it.
func isMetOthers(err error) bool {
	if errors.Is(err, errFirstEntryRaced) {
		return true
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01")
}

// isLockTimeout says that a row was locked for longer than we wait.
func isLockTimeout(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "55P03"
}

// isLost says that the connection is gone, or will be, so that nothing is known of what was under way.
func isLost(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		severity := cmp.Or(e.SeverityUnlocalized, e.Severity) // servers speak many languages
		return severity != "ERROR" || strings.HasPrefix(e.Code, "08")
	}
	if _, isFault := errors.AsType[*fault.Error](err); isFault {
		return false
	}
	_, isNet := errors.AsType[net.Error](err)
	_, isConnect := errors.AsType[*pgconn.ConnectError](err)
	return isNet || isConnect || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrTxDone) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, net.ErrClosed) || isTimeout(err)
}

// isUndone says that a COMMIT was answered, and with no.
func isUndone(err error) bool {
	_, answered := errors.AsType[*pgconn.PgError](err)
	return answered && !isLost(err) || errors.Is(err, pgx.ErrTxCommitRollback)
}

// isTimeout says that time ran out: a server that hangs is waited for once.
func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err)
}

// postgresUnreadable marks the errors of a read that a later try may not meet.
func postgresUnreadable(err error) error {
	if err == nil || !errors.Is(postgresUnavailable(err), errStorage) {
		return err
	}
	return errUnreadable.Because(err)
}

var errUnreadable = fault.New(fault.Unavailable, "database_unavailable", "The database does not answer. Try again in a moment.")

// postgresUnavailable marks the errors that a later try may not meet: no connection, a server that
// stops, starts or is a standby, too many clients, a full disk, a lock that was not to be had in time.
func postgresUnavailable(err error) error {
	if isLost(err) || isMetOthers(err) {
		return errStorage.Because(err)
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	switch {
	case strings.HasPrefix(e.Code, "53"), strings.HasPrefix(e.Code, "57"), strings.HasPrefix(e.Code, "58"),
		e.Code == "25006", e.Code == "55P03":
		return errStorage.Because(err)
	default:
		return err
	}
}
