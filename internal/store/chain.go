package store

import (
	"context"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/proof"
)

// chainBatch bounds how many transfers one transaction adds to a chain: it holds up their seller's requests.
const chainBatch = 500

// ChainsSince is when this database began to chain transfers. Checkpoints are signed, so that it can't be put
// later than the first of them.
func (db *DB) ChainsSince(ctx context.Context) (at time.Time, err error) {
	err = db.queryOne(ctx, selectChainsSince, nil, instant{&at})
	return at, err
}

const selectChainsSince = `SELECT MIN(at) FROM (SELECT applied_at AS at FROM schema_migrations WHERE name = '0005_chain.sql'
	UNION ALL SELECT at FROM checkpoints) AS beginnings`

// CatchUp adds to a chain the transfers that a binary without chains made, up to chainBatch of them, and
// returns how many it still lacks.
func (db *DB) CatchUp(ctx context.Context, seller string) (lacks int64, err error) {
	err = db.Update(ctx, func(tx *Tx) error {
		chain, transfers, err := tx.chainForUpdate(ctx, seller)
		if err != nil || chain.Number >= transfers {
			lacks = 0
			return err
		}
		first := chain
		err = tx.each(ctx, selectEntries, []any{seller, chain.Number, chainBatch}, func(r row) error {
			e, err := scanEntry(r)
			chain = chain.Add(e.At, e.Transfer)
			return err
		})
		if err == nil && chain.Number == first.Number {
			err = proof.ErrBroken
		}
		if err != nil {
			return err
		}
		lacks = transfers - chain.Number
		_, err = tx.exec(ctx, `UPDATE seller_balances SET head = $2, chained = $3 WHERE seller_id = $1`, seller, string(chain.Head), chain.Number)
		return err
	})
	return lacks, err
}

// chainForUpdate locks a seller's row, and finds where its chain stands: what is in the accounts now, less
// what the transfers after it moved.
func (tx *Tx) chainForUpdate(ctx context.Context, seller string) (chain ledger.Chain, transfers int64, err error) {
	now := ledger.Standing{}
	_, err = tx.one(ctx, `SELECT pending, available, in_transit, transfers, chained, head FROM seller_balances
		WHERE seller_id = $1`+tx.dialect.forUpdate("seller_balances"), []any{seller},
		&now.Pending, &now.Available, &now.InTransit, &transfers, &chain.Number, &chain.Head)
	if err != nil || chain.Number == transfers {
		return chain, transfers, err
	}
	if chain.Number <= 0 {
		return ledger.NewChain(seller), transfers, nil
	}
	var since ledger.Standing
	_, err = tx.one(ctx, `SELECT
		COALESCE(SUM(CASE debit WHEN 'seller:pending' THEN amount ELSE 0 END - CASE credit WHEN 'seller:pending' THEN amount ELSE 0 END), 0),
		COALESCE(SUM(CASE debit WHEN 'seller:available' THEN amount ELSE 0 END - CASE credit WHEN 'seller:available' THEN amount ELSE 0 END), 0),
		COALESCE(SUM(CASE debit WHEN 'seller:in_transit' THEN amount ELSE 0 END - CASE credit WHEN 'seller:in_transit' THEN amount ELSE 0 END), 0)
		FROM transfers WHERE seller_id = $1 AND number > $2`, []any{seller, chain.Number}, &since.Pending, &since.Available, &since.InTransit)
	chain.Standing = now.Plus(since)
	return chain, transfers, err
}

const selectEntries = `SELECT number, at, kind, debit, credit, amount, ref FROM transfers
	WHERE seller_id = $1 AND number > $2 ORDER BY number LIMIT $3 + 0`

func scanEntry(r row) (e ledger.Entry, err error) {
	err = r.Scan(&e.Number, instant{&e.At}, &e.Kind, &e.Debit, &e.Credit, &e.Amount, &e.Ref)
	return e, err
}

// EntriesAfter lists a seller's transfers above a number, in order, up to limit.
func (db *DB) EntriesAfter(ctx context.Context, seller string, number int64, limit int) ([]ledger.Entry, error) {
	var entries []ledger.Entry
	err := db.query(ctx, selectEntries, func(r row) error {
		e, err := scanEntry(r)
		entries = append(entries, e)
		return err
	}, seller, number, limit)
	return entries, err
}

// Period finds a seller's first transfer that is not before a period and the last that is not after it, among
// the first so many.
func (db *DB) Period(ctx context.Context, seller string, among int64, from, to time.Time) (first, last int64, err error) {
	err = db.queryOne(ctx, `SELECT COALESCE(MIN(CASE WHEN at >= $3 THEN number END), $2 + 1), COALESCE(MAX(CASE WHEN at < $4 THEN number END), 0)
		FROM transfers WHERE seller_id = $1 AND number <= $2`, []any{seller, among, micros(from), micros(to)}, &first, &last)
	return first, last, err
}
