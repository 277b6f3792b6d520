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

// checkTotals fails with [ledger.ErrTampered] unless the service wrote an owner's row of totals, or there is neither a row nor an entry. It
// does not notice that a row is an old one.
func (db *DB) checkTotals(ctx context.Context, owner string, exists bool, head ledger.Head) error {
	if !exists {
		return db.checkNoEntries(ctx, owner)
	}
	keys, err := db.signer.get()
	if err == nil {
		err = head.Check(keys)
	}
	return err
}

// Balance is the owner's totals; zero for an owner without a journal. It fails with [ledger.ErrTampered] if their row is missing, or the service
// did not write it.
func (db *DB) Balance(ctx context.Context, owner string) (ledger.Balance, error) {
	var head ledger.Head
	exists, err := found(db.queryRow(ctx, selectHead, owner).Scan(headFields.dest(&head)...))
	if err == nil {
		err = db.checkTotals(ctx, owner, exists, head)
	}
	if err != nil {
		return ledger.Balance{}, err
	}
	return head.Balance, nil
}

// payoutView is one moment of the database, whose totals are compared with their entries.
type payoutView struct{ *Tx }

// Balance is [Tx.Balance]. It fails with [ledger.ErrTampered] unless the service wrote the owner's totals, and they count every entry.
func (v payoutView) Balance(ctx context.Context, owner string) (ledger.Balance, error) {
	keys, err := v.signer.get()
	if err != nil {
		return ledger.Balance{}, err
	}
	head, err := v.head(ctx, owner)
	if err != nil {
		return ledger.Balance{}, err
	}
	if err := head.Check(keys); err != nil {
		return ledger.Balance{}, err
	}
	var entry int64
	exists, err := v.one(ctx, entriesBehindTotals, []any{owner}, &entry)
	if exists {
		err = totalsTampered(owner, entry)
	}
	return head.Balance, err
}
