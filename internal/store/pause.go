package store

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// Payouts are paused for everyone while those of the platform are frozen. platformHead is where the platform's journal
// stands, by its row and by its entries, the hash of its entry $1, and whether it lacks the newest checkpoint's entry: one row, whatever is missing.
var platformHead = `SELECT COALESCE((SELECT k.hash FROM entries k WHERE k.owner = 'platform' AND k.number = $1), ''), COALESCE(newest, 0), (SELECT COUNT(*) FROM checkpoint_journals c WHERE c.seller_id = 'platform' AND ` + lacksCheckpoint + `),
	COALESCE(number, 0), COALESCE(hash, ''), COALESCE(mac, ''), COALESCE(` +
	strings.ReplaceAll(balanceColumns, ", ", ", 0), COALESCE(") + `, 0)
	FROM (SELECT MAX(number) AS newest FROM entries WHERE owner = 'platform') AS e LEFT JOIN journals ON owner = 'platform'`

// paused reads a row of platformHead. tampered is [ledger.ErrTampered] unless the service wrote what is there, and it goes on to the place that
// the process knew before it read the row.
func paused(keys ledger.Keys, known journalEnd, r *row) (head ledger.Head, tampered error) {
	head = ledger.NewHead(decision.Platform)
	var newest, lacking int64
	var hash, there ledger.Hash
	r.Scan(append([]any{&there, &newest, &lacking, &head.Number, &hash, &head.MAC}, balanceFields.dest(&head.Balance)...)...)
	if head.Number > 0 {
		head.Hash = hash
	}
	err := head.Check(keys)
	if err == nil && newest != head.Number {
		err = ledger.ErrTampered.Because(fmt.Errorf("the balance of %s is that after entry %d, and there are entries up to %d", head.Owner, head.Number, newest))
	}
	if err == nil {
		err = known.check(head.Owner, head.Number, there)
	}
	if err == nil && lacking > 0 {
		err = endCutOff(head.Owner, "the newest checkpoint has an entry")
	}
	return head, err
}

// PayoutsPaused reports whether payouts are paused for everyone.
func (db *DB) PayoutsPaused(ctx context.Context) (is bool, err error) {
	keys, err := db.signer.get()
	if err != nil {
		return false, err
	}
	var head ledger.Head
	var tampered error
	known := db.tails.end(decision.Platform)
	err = db.query(ctx, platformHead, []any{known.number}, func(r *row) { head, tampered = paused(keys, known, r) })
	if err = cmp.Or(err, tampered); err == nil {
		db.tails.whole(head)
	}
	return head.Frozen, err
}

// PayoutsPaused is [DB.PayoutsPaused], and stays so until the transaction ends.
func (tx *Tx) PayoutsPaused(ctx context.Context) (is bool, err error) {
	keys, err := tx.signer.get()
	if err != nil {
		return false, err
	}
	if err := tx.lock(ctx, tx.dialect.sharePause); err != nil {
		return false, err
	}
	var head ledger.Head // not kept in mind: the transaction may have written it, and be undone
	var tampered error   // no statement has failed, so the transaction goes on
	known := tx.tails.end(decision.Platform)
	err = tx.each(ctx, platformHead, []any{known.number}, func(r *row) { head, tampered = paused(keys, known, r) })
	return head.Frozen, cmp.Or(err, tampered)
}

// LockPause waits for the changes that have asked PayoutsPaused about a payout, and lets none ask until the transaction ends.
func (tx *Tx) LockPause(ctx context.Context) error { return tx.lock(ctx, tx.dialect.lockPause) }

// lock runs a statement that takes a lock, where the engine needs one.
func (tx *Tx) lock(ctx context.Context, statement string) error {
	if statement == "" {
		return nil
	}
	return tx.each(ctx, statement, nil, func(*row) {})
}

// RescheduleStopped makes the next step due now of each payout that waits because payouts were frozen or paused, of all
// sellers where seller is "", and returns how many.
func (tx *Tx) RescheduleStopped(ctx context.Context, seller string, now time.Time) (int64, error) {
	return tx.exec(ctx, `UPDATE payouts SET due_at = $2 WHERE reason_code = '`+payout.CodeStopped+`' AND ($1 = '' OR seller_id = $1)
		AND state = 'waiting' AND due_at > $2`, seller, micros(now))
}

// unpaidWithDiscrepancy is the oldest payout with a discrepancy whose amount seller $1 has again.
const unpaidWithDiscrepancy = discrepancyIDs + `SELECT id FROM payouts WHERE id IN (SELECT id FROM wanted) AND seller_id = $1
	AND state IN ('failed', 'cancelled', 'returned') ORDER BY id LIMIT 1`

// UnpaidWithDiscrepancy is the seller's oldest payout that failed, was cancelled or returned, and has a discrepancy; "" without one.
func (tx *Tx) UnpaidWithDiscrepancy(ctx context.Context, seller string) (id payout.ID, err error) {
	err = tx.each(ctx, unpaidWithDiscrepancy, []any{seller}, func(r *row) { r.Scan(&id) })
	return id, err
}
