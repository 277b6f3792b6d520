//go:build unix

package e2e

import (
	"context"
	"database/sql"
	"errors"
	"testing"
)

// sqliteFloor has one writer goroutine, which commits all requests that wait in one transaction: no timer, at most 256.
// Each request takes seven executions of plain prepared statements: insert the idempotency key, update the balance if
// it suffices, insert the payout, insert two entries, insert the job.
type sqliteFloor struct {
	queue  chan *floorRequest
	writer *sql.DB
	write  floorStatements
	// Reads have connections of their own.
	readSession, readUser, readBalance, readHistory *sql.Stmt
}

type floorStatements struct{ begin, commit, rollback, key, balance, payout, entry, job *sql.Stmt }

// sqliteFloorPragmas are those of the service where they bear on speed.
const sqliteFloorPragmas = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
	"&_pragma=wal_autocheckpoint(8000)&_pragma=cache_size(-8000)&_pragma=temp_store(2)"

var sqliteFloorSchema = []string{
	`CREATE TABLE sellers (id TEXT PRIMARY KEY, name TEXT, email TEXT, role TEXT, created_at INTEGER) STRICT, WITHOUT ROWID`,
	`CREATE TABLE sessions (id TEXT PRIMARY KEY, seller TEXT, expires_at INTEGER) STRICT, WITHOUT ROWID`,
	`CREATE TABLE balances (seller TEXT PRIMARY KEY, available INTEGER, in_transit INTEGER) STRICT, WITHOUT ROWID`,
	`CREATE TABLE idempotency_keys (seller TEXT, key TEXT, payout TEXT, at INTEGER, PRIMARY KEY (seller, key)) STRICT, WITHOUT ROWID`,
	`CREATE TABLE payouts (id TEXT PRIMARY KEY, seller TEXT, amount INTEGER, notes TEXT, state TEXT, at INTEGER) STRICT, WITHOUT ROWID`,
	`CREATE INDEX payouts_of_seller ON payouts (seller, id)`,
	`CREATE TABLE entries (payout TEXT, account TEXT, amount INTEGER, at INTEGER, PRIMARY KEY (payout, account)) STRICT, WITHOUT ROWID`,
	`CREATE TABLE jobs (payout TEXT PRIMARY KEY, due_at INTEGER) STRICT, WITHOUT ROWID`,
}

func newSQLiteFloor(b *testing.B, path string, sellers int) *sqliteFloor {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	writer, err := sql.Open("sqlite", "file:"+path+sqliteFloorPragmas)
	must(err)
	writer.SetMaxOpenConns(1)
	for _, statement := range sqliteFloorSchema {
		_, err := writer.ExecContext(b.Context(), statement)
		must(err)
	}
	must(fillSQLiteFloor(b.Context(), writer, sellers))
	reader, err := sql.Open("sqlite", "file:"+path+sqliteFloorPragmas+"&_pragma=query_only(1)")
	must(err)
	reader.SetMaxOpenConns(4)
	reader.SetMaxIdleConns(4)
	prepare := func(db *sql.DB, query string) *sql.Stmt {
		b.Helper()
		statement, err := db.PrepareContext(b.Context(), query)
		must(err)
		return statement
	}
	s := &sqliteFloor{
		queue: make(chan *floorRequest, maxInGroup), writer: writer,
		write: floorStatements{
			begin: prepare(writer, `BEGIN IMMEDIATE`), commit: prepare(writer, `COMMIT`), rollback: prepare(writer, `ROLLBACK`),
			key:     prepare(writer, `INSERT INTO idempotency_keys VALUES ($1, $2, $3, $4)`),
			balance: prepare(writer, `UPDATE balances SET available = available - $2, in_transit = in_transit + $2 WHERE seller = $1 AND available >= $2`),
			payout:  prepare(writer, `INSERT INTO payouts VALUES ($1, $2, $3, $4, 'waiting', $5)`),
			entry:   prepare(writer, `INSERT INTO entries VALUES ($1, $2, $3, $4)`),
			job:     prepare(writer, `INSERT INTO jobs VALUES ($1, $2)`),
		},
		readSession: prepare(reader, `SELECT seller, expires_at FROM sessions WHERE id = $1`),
		readUser:    prepare(reader, `SELECT name, email, role, created_at FROM sellers WHERE id = $1`),
		readBalance: prepare(reader, `SELECT available, in_transit FROM balances WHERE seller = $1`),
		readHistory: prepare(reader, `SELECT id, amount, notes, state, at FROM payouts WHERE seller = $1 ORDER BY id DESC LIMIT 10`),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for group := takeGroup(s.queue); len(group) > 0; group = takeGroup(s.queue) {
			err := s.commit(group)
			for _, r := range group {
				r.answer <- err
			}
		}
	}()
	b.Cleanup(func() {
		close(s.queue)
		<-done
		_ = reader.Close()
		_ = writer.Close()
	})
	return s
}

// fillSQLiteFloor adds the sellers, each with a session, a balance and a short history.
func fillSQLiteFloor(ctx context.Context, db *sql.DB, sellers int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for i := range sellers {
		seller := floorSeller(i)
		_, err = tx.ExecContext(ctx, `INSERT INTO sellers VALUES ($1, 'Asha Rao', 'seller' || $1 || '@example.com', 'seller', 0)`, seller)
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO sessions VALUES ($1, $2, 0)`, floorSession(i), seller)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO balances VALUES ($1, $2, 0)`, seller, floorEarned)
		}
		for n := 0; err == nil && n < floorHistory; n++ {
			_, err = tx.ExecContext(ctx, `INSERT INTO payouts VALUES ($1, $2, 50000, 'rent', 'waiting', 0)`, floorPayout(i, n), seller)
		}
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

func (s *sqliteFloor) request(r *floorRequest) error {
	s.queue <- r
	return <-r.answer
}

// commit makes a group of payouts durable. An insufficient balance ends the benchmark, so all are undone.
func (s *sqliteFloor) commit(group []*floorRequest) error {
	w := s.write
	if _, err := w.begin.Exec(); err != nil {
		return err
	}
	for _, r := range group {
		if err := w.one(r); err != nil {
			_, undo := w.rollback.Exec()
			return errors.Join(err, undo)
		}
	}
	_, err := w.commit.Exec()
	return err
}

func (w floorStatements) one(r *floorRequest) error {
	if _, err := w.key.Exec(r.seller, r.key, r.payout, r.at); err != nil {
		return err
	}
	result, err := w.balance.Exec(r.seller, r.amount)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errFloorInsufficient)
	}
	if _, err := w.payout.Exec(r.payout, r.seller, r.amount, r.notes, r.at); err != nil {
		return err
	}
	if _, err := w.entry.Exec(r.payout, "available", -r.amount, r.at); err != nil {
		return err
	}
	if _, err := w.entry.Exec(r.payout, "in_transit", r.amount, r.at); err != nil {
		return err
	}
	_, err = w.job.Exec(r.payout, r.at)
	return err
}

func (s *sqliteFloor) session(ctx context.Context, id string) (seller string, err error) {
	var expires int64
	err = s.readSession.QueryRowContext(ctx, id).Scan(&seller, &expires)
	return seller, err
}

func (s *sqliteFloor) user(ctx context.Context, seller string) error {
	var name, email, role string
	var created int64
	return s.readUser.QueryRowContext(ctx, seller).Scan(&name, &email, &role, &created)
}

func (s *sqliteFloor) balance(ctx context.Context, seller string) error {
	var available, inTransit int64
	return s.readBalance.QueryRowContext(ctx, seller).Scan(&available, &inTransit)
}

func (s *sqliteFloor) history(ctx context.Context, seller string) error {
	rows, err := s.readHistory.QueryContext(ctx, seller)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, notes, state string
		var amount, at int64
		if err := rows.Scan(&id, &amount, &notes, &state, &at); err != nil {
			return err
		}
	}
	return rows.Err()
}
