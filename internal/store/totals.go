package store

import (
	"context"
	"fmt"

	"bursar/internal/ledger"
)

// entriesBehindTotals finds an entry that an owner's row of totals does not count: the row is missing, or an old one. It is one
// statement, because an entry that another transaction commits between two would look like one without its row.
const entriesBehindTotals = `SELECT number FROM entries WHERE owner = $1
	AND number > COALESCE((SELECT number FROM journals WHERE owner = $1), 0) ORDER BY number LIMIT 1`

func totalsTampered(owner string, entry int64) error {
	return ledger.ErrTampered.Because(fmt.Errorf("the balance of %s does not count entry %d, or its row is missing", owner, entry))
}

// checkNoEntries fails with [ledger.ErrTampered] if an owner without a row of totals has entries.
func (db *DB) checkNoEntries(ctx context.Context, owner string) error {
	var entry int64
	exists, err := found(db.queryRow(ctx, entriesBehindTotals, owner).Scan(&entry))
	if exists {
		err = totalsTampered(owner, entry)
	}
	return err
}

// Balance is the owner's totals; zero for an owner without a journal. It fails with [ledger.ErrTampered] if their row is missing.
func (db *DB) Balance(ctx context.Context, owner string) (ledger.Balance, error) {
	var b ledger.Balance
	exists, err := found(db.queryRow(ctx, selectBalance, owner).Scan(balanceFields.dest(&b)...))
	if err == nil && !exists {
		err = db.checkNoEntries(ctx, owner)
	}
	return b, err
}

// payoutView is one moment of the database, whose totals are compared with their entries.
type payoutView struct{ *Tx }

// Balance is [Tx.Balance]. It fails with [ledger.ErrTampered] if the row of the totals is missing.
func (v payoutView) Balance(ctx context.Context, owner string) (ledger.Balance, error) {
	b, err := v.Tx.Balance(ctx, owner)
	if err == nil && v.absent[owner] {
		err = v.checkLastEntry(ctx, owner)
	}
	return b, err
}

// CheckBalance fails with [ledger.ErrTampered] unless the service wrote the owner's totals, and they count every entry.
func (v payoutView) CheckBalance(ctx context.Context, owner string) error {
	if err := v.Tx.CheckBalance(ctx, owner); err != nil {
		return err
	}
	return v.checkLastEntry(ctx, owner)
}

func (v payoutView) checkLastEntry(ctx context.Context, owner string) error {
	var entry int64
	exists, err := v.one(ctx, entriesBehindTotals, []any{owner}, &entry)
	if exists {
		err = totalsTampered(owner, entry)
	}
	return err
}
