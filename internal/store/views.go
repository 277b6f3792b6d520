package store

import (
	"context"
	"database/sql"
	"errors"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// Each domain sees the database as its own Store. Reads are methods of DB; only the type of the
// transaction's closure differs.

// Auth is the database as auth sees it.
func (db *DB) Auth() auth.Store { return authStore{db} }

// Bank is the database as bank sees it.
func (db *DB) Bank() bank.Store { return bankStore{db} }

// Sales is the database as sale sees it.
func (db *DB) Sales() sale.Store { return saleStore{db} }

// Payouts is the database as payout sees it.
func (db *DB) Payouts() payout.Store { return payoutStore{db} }

type (
	authStore   struct{ *DB }
	bankStore   struct{ *DB }
	saleStore   struct{ *DB }
	payoutStore struct{ *DB }
)

func (s authStore) InTx(ctx context.Context, fn func(auth.Tx) error) error {
	return s.Update(ctx, func(tx *Tx) error { return fn(tx) })
}

func (s bankStore) InTx(ctx context.Context, fn func(bank.Tx) error) error {
	return s.Update(ctx, func(tx *Tx) error { return fn(tx) })
}

func (s saleStore) InTx(ctx context.Context, fn func(sale.Tx) error) error {
	return s.Update(ctx, func(tx *Tx) error { return fn(tx) })
}

func (s payoutStore) InTx(ctx context.Context, fn func(payout.Tx) error) error {
	return s.Update(ctx, func(tx *Tx) error { return fn(tx) })
}

// InGroup serves changes of payouts in units of work. A change that relies on much of a journal is served once more after that was read.
func (s payoutStore) InGroup(ctx context.Context, scope ledger.Scope, fn func(payout.ChangeTx) error) error {
	change := unitJob{job[payout.ChangeTx]{ctx: ctx, fn: fn}, scope, false}
	err := s.serve(change)
	long, isLong := errors.AsType[*longTailError](err)
	if !isLong {
		return err
	}
	if err := s.readAhead(ctx, long); err != nil {
		return err
	}
	change.isRepeat = true
	return s.serve(change)
}

// serve serves one change in a unit.
func (s payoutStore) serve(change unitJob) error {
	change.answer = make(chan error, 1)
	if s.units != nil {
		return s.units.do(&change)
	}
	return s.writer.(*groupWriter).do(&sqliteJob{job: job[*Tx]{ctx: change.ctx, answer: change.answer}, change: &change})
}

// View has fn read one moment of the database. It takes no lock, so it waits for no write and keeps none waiting.
func (s payoutStore) View(ctx context.Context, fn func(payout.View) error) error {
	return s.view(ctx, func(tx *Tx) error { return fn(payoutView{tx}) })
}

// view runs fn, which only reads, on one moment of the database.
func (db *DB) view(ctx context.Context, fn func(*Tx) error) error {
	ctx, end := db.dialect.shortRead(ctx)
	defer end()
	moment, err := db.beginView(ctx)
	if err != nil {
		return db.dialect.unreadable(err)
	}
	defer func() { _ = moment.Rollback() }() // it only read
	tx := &Tx{dialect: db.dialect.withoutLocks(), conn: viewed{moment, db.fail}, signer: db.signer}
	return db.dialect.unreadable(tx.run(fn))
}

// beginView begins a transaction whose reads all see the same moment.
func (db *DB) beginView(ctx context.Context) (*sql.Tx, error) {
	options := &sql.TxOptions{ReadOnly: true, Isolation: db.dialect.snapshot}
	tx, err := db.reader.BeginTx(ctx, options)
	for try := 1; try < maxTries && db.dialect.lost(err); try++ { // every connection of a pool may be stale
		tx, err = db.reader.BeginTx(ctx, options)
	}
	return tx, err
}

// viewed runs the statements of a view.
type viewed struct {
	*sql.Tx
	fail func(statement string) error // see [DB.FailBefore]
}

func (v viewed) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if v.fail != nil {
		if err := v.fail(query); err != nil {
			return nil, err
		}
	}
	return v.Tx.ExecContext(ctx, query, args...)
}

func (v viewed) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if v.fail != nil {
		if err := v.fail(query); err != nil {
			return nil, err
		}
	}
	return v.Tx.QueryContext(ctx, query, args...)
}
