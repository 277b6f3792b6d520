package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/money"
)

const balanceColumns = `pending, available, in_transit, earned, withdrawn, sales, processing, completed, failed, cancelled`

// balanceDest lists where balanceColumns are scanned to.
func balanceDest(b *ledger.Balance) []any {
	c := &b.Counts
	return []any{
		&b.Pending, &b.Available, &b.InTransit, &b.Earned, &b.Withdrawn,
		&c.Sales, &c.Processing, &c.Completed, &c.Failed, &c.Cancelled,
	}
}

// MoveBalance checks the floors in the statement that moves the row: pending and in transit never
// fall below zero, and available only where it may or where the change does not lower it. The same statement
// moves the chain, unless it is behind.
func (tx *Tx) MoveBalance(ctx context.Context, seller string, ch ledger.Change, links []ledger.Link, mayOverdraw bool) (int64, error) {
	if int64(len(links)) != ch.Transfers {
		return 0, fmt.Errorf("%d transfers of %s with %d links", ch.Transfers, seller, len(links))
	}
	args := []any{
		seller, int64(ch.Pending), int64(ch.Available), int64(ch.InTransit), int64(ch.Earned), int64(ch.Withdrawn),
		ch.Counts.Sales, ch.Counts.Processing, ch.Counts.Completed, ch.Counts.Failed, ch.Counts.Cancelled,
		ch.Transfers, flag(mayOverdraw),
	}
	for i, l := range links {
		if args = append(args, l.Line); i < len(links)-1 {
			args = append(args, int64(l.Moved.Pending), int64(l.Moved.Available), int64(l.Moved.InTransit))
		}
	}
	var transfers int64
	moved, err := tx.one(ctx, tx.dialect.moves[len(links)], args, &transfers)
	if err == nil && !moved {
		err = ledger.ErrInsufficient
	}
	return transfers, err
}

// moves is the statements that move a balance, by how many transfers do so.
type moves [ledger.MaxTransfers + 1]string

// newMoves writes them for an engine that has nextHead for [ledger.EntryHash] and [ledger.Hash.Next] of expressions.
func newMoves(nextHead func(head, number, pending, available, inTransit, line string) string) (m moves) {
	between := "head" // after all transfers but the last, whose standing is the one that the row will have
	for links := range m {
		head, line := between, 10+4*links
		if links > 0 {
			text := fmt.Sprintf("CAST($%d AS TEXT)", line)
			head = nextHead(between, "transfers + $12", "pending + $2", "available + $3", "in_transit + $4", text)
			between = nextHead(between, fmt.Sprintf("transfers + %d", links), fmt.Sprintf("pending + $%d", line+1),
				fmt.Sprintf("available + $%d", line+2), fmt.Sprintf("in_transit + $%d", line+3), text)
		}
		m[links] = `UPDATE seller_balances SET
			pending = pending + $2, available = available + $3, in_transit = in_transit + $4,
			earned = earned + $5, withdrawn = withdrawn + $6, sales = sales + $7,
			processing = processing + $8, completed = completed + $9, failed = failed + $10,
			cancelled = cancelled + $11, transfers = transfers + $12,
			head = CASE WHEN chained = transfers THEN ` + head + ` ELSE head END,
			chained = CASE WHEN chained = transfers THEN transfers + $12 ELSE chained END
			WHERE seller_id = $1 AND pending + $2 >= 0 AND in_transit + $4 >= 0
			AND (CAST($3 AS BIGINT) >= 0 OR available + $3 >= 0 OR $13 = 1)
			RETURNING transfers`
	}
	return m
}

// InsertTransfers adds to the seller's book.
func (tx *Tx) InsertTransfers(ctx context.Context, seller string, at time.Time, first int64, transfers []ledger.Transfer) error {
	for i, t := range transfers {
		_, err := tx.exec(ctx, `INSERT INTO transfers (seller_id, number, at, kind, debit, credit, amount, ref)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			seller, first+int64(i), micros(at), string(t.Kind), string(t.Debit), string(t.Credit), int64(t.Amount), t.Ref)
		if err != nil {
			return err
		}
	}
	return nil
}

// OpenBook makes the seller's row of totals if it is not there yet.
func (tx *Tx) OpenBook(ctx context.Context, seller string) error {
	_, err := tx.exec(ctx, `INSERT INTO seller_balances
		(seller_id, `+balanceColumns+`, transfers, chained, head) VALUES ($1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, $2)
		ON CONFLICT (seller_id) DO NOTHING`, seller, string(ledger.NewChain(seller).Head))
	return err
}

// Available is the seller's available balance; zero for a seller without a book.
func (tx *Tx) Available(ctx context.Context, seller string) (money.Amount, error) {
	var available money.Amount
	_, err := tx.one(ctx, `SELECT available FROM seller_balances WHERE seller_id = $1`, []any{seller}, &available)
	return available, err
}

const entriesPage = `SELECT number, at, kind, debit, credit, amount, ref FROM transfers
	WHERE seller_id = $1 AND number < $2 ORDER BY number DESC LIMIT $3 + 0`

// Entries lists a seller's transfers numbered below before, newest first; before 0 begins at the newest.
func (db *DB) Entries(ctx context.Context, seller string, before int64, limit int) ([]ledger.Entry, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	var list []ledger.Entry
	err := db.query(ctx, entriesPage, func(r row) error {
		var e ledger.Entry
		err := r.Scan(&e.Number, instant{&e.At}, &e.Kind, &e.Debit, &e.Credit, &e.Amount, &e.Ref)
		list = append(list, e)
		return err
	}, seller, before, limit)
	return list, err
}

// Balance is the seller's totals; zeros for a seller without a book.
func (db *DB) Balance(ctx context.Context, seller string) (ledger.Balance, error) {
	var b ledger.Balance
	_, err := found(db.queryRow(ctx, `SELECT `+balanceColumns+` FROM seller_balances WHERE seller_id = $1`, seller).Scan(balanceDest(&b)...))
	return b, err
}
