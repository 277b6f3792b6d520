package store

import (
	"context"
	"time"

	"bursar/internal/payout"
)

// paidByBank finds what was paid by the entries of the gateway's account, as ofCompleted does.
const paidByBank = `WITH wanted AS MATERIALIZED (SELECT subject AS id FROM entries WHERE gateway <> 0 AND type = 'payout.completed'
		AND at >= CAST($1 AS BIGINT) - 60000000 AND at <= CAST($2 AS BIGINT) + 60000000)
	SELECT substr(b.ifsc, 1, 4), COUNT(*), SUM(p.amount) FROM wanted JOIN payouts p ON p.id = wanted.id JOIN bank_accounts b ON b.id = p.bank_account_id
	WHERE p.completed_at >= $1 AND p.completed_at < $2 GROUP BY 1 ORDER BY 1`

// PaidByBank sums up what banks were paid from one moment to before another, returned since or not.
func (db *DB) PaidByBank(ctx context.Context, from, to time.Time) ([]payout.BankCount, error) {
	return readAll(ctx, db.query, paidByBank, []any{micros(from), micros(to)}, func(b *payout.BankCount, _ ...any) []any {
		return []any{&b.Bank, &b.Number, &b.Amount}
	})
}

// failedSince looks at the newest 100,000 that failed.
const failedSince = `WITH wanted AS MATERIALIZED (SELECT id FROM payouts WHERE status IN ('failed', 'cancelled') AND status = 'failed' ORDER BY id DESC LIMIT 100000)
	SELECT p.ended_at, substr(b.ifsc, 1, 4), p.reason_code, p.amount FROM wanted JOIN payouts p ON p.id = wanted.id
	JOIN bank_accounts b ON b.id = p.bank_account_id WHERE p.ended_at >= $1`

// FailedSince lists the payouts that failed or were returned from a moment on.
func (db *DB) FailedSince(ctx context.Context, from time.Time) ([]payout.FailedPayout, error) {
	return readAll(ctx, db.query, failedSince, []any{micros(from)}, func(p *payout.FailedPayout, _ ...any) []any {
		return []any{instant{&p.EndedAt}, &p.Bank, &p.Reason, &p.Amount}
	})
}

const (
	oldestOpen = `SELECT id, requested_at FROM payouts WHERE due_at <= $1 AND status = 'processing' ORDER BY requested_at, id LIMIT 1`
	allOpen    = `SELECT COALESCE(SUM(processing), 0), COALESCE(SUM(in_transit), 0) FROM journals`
)

// OpenPayouts sums up the payouts under way from the sellers' counters, and finds the oldest. Each has a next step soon.
func (db *DB) OpenPayouts(ctx context.Context, now time.Time) (payout.OpenPayouts, error) {
	var o payout.OpenPayouts
	if err := db.queryOne(ctx, allOpen, nil, &o.Number, &o.Amount); err != nil {
		return o, err
	}
	err := db.queryOne(ctx, oldestOpen, []any{micros(now.Add(stepWithin))}, &o.Oldest, instant{&o.Since})
	return o, err
}
