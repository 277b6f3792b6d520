package store

import (
	"context"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/payout"
)

// What is rare is found by the small index that holds nothing else. MATERIALIZED keeps a planner from
// walking through the whole table in the order of the ids instead.
const (
	discrepancyIDs    = `WITH wanted AS MATERIALIZED (SELECT id FROM payouts WHERE discrepancy <> '') `
	withoutGatewayIDs = `WITH wanted AS MATERIALIZED (SELECT id FROM payouts WHERE reason_code = '` + payout.CodeNoGateway + `') `
	isLate            = `due_at <= $2 AND status = 'processing' AND arrive_at < $1
		AND state <> 'manual_review' AND discrepancy = '' AND reason_code <> '` + payout.CodeNoGateway + `'`
	// referredIDs are found one reference at a time, each by its index.
	referredIDs = `WITH wanted AS MATERIALIZED (
		SELECT id FROM payouts WHERE id = $2
		UNION SELECT id FROM payouts WHERE gateway_id = $2 AND gateway_id <> ''
		UNION SELECT id FROM payouts WHERE utr = $2 AND utr <> '') `
)

// unclear is payout.UnresolvedStates as SQL.
var unclear = quoted(payout.UnresolvedStates)

var (
	unclearIDs    = `WITH wanted AS MATERIALIZED (SELECT id FROM payouts WHERE state IN (` + unclear + `)) `
	wantedPayouts = selectPayouts + `WHERE p.id IN (SELECT id FROM wanted ORDER BY id `
	oldestWanted  = wantedPayouts + `LIMIT $1 + 0) ORDER BY p.id`
	newestWanted  = wantedPayouts + `DESC LIMIT $1 + 0) ORDER BY p.id DESC`
	// latePayouts are those under way that should have arrived by $1, and that no other list has. Each has a next step before $2,
	// so that the many that are paid and watched for longer are not looked at.
	latePayouts = `WITH wanted AS MATERIALIZED (SELECT id FROM payouts WHERE ` + isLate + `) ` + wantedPayouts + `LIMIT $3 + 0) ORDER BY p.id`
)

// UnresolvedPayouts lists those that are unknown or in review, oldest first.
func (db *DB) UnresolvedPayouts(ctx context.Context, limit int) ([]payout.Payout, error) {
	return db.payouts(ctx, unclearIDs+oldestWanted, limit)
}

// PayoutsWithDiscrepancy lists payouts with a discrepancy, oldest first.
func (db *DB) PayoutsWithDiscrepancy(ctx context.Context, limit int) ([]payout.Payout, error) {
	return db.payouts(ctx, discrepancyIDs+oldestWanted, limit)
}

// PayoutsWithoutGateway lists those that wait because their gateway is not configured, oldest first.
func (db *DB) PayoutsWithoutGateway(ctx context.Context, limit int) ([]payout.Payout, error) {
	return db.payouts(ctx, withoutGatewayIDs+oldestWanted, limit)
}

// stepWithin is longer than any wait for the next step of a payout under way.
const stepWithin = 8 * time.Hour

// LatePayouts lists those that should have arrived by now, are still under way and need attention for nothing else, oldest first.
func (db *DB) LatePayouts(ctx context.Context, now time.Time, limit int) ([]payout.Payout, error) {
	return db.payouts(ctx, latePayouts, micros(now), micros(now.Add(stepWithin)), limit)
}

// SearchPayouts finds the payouts whose id, gateway's id or UTR is the query, newest first.
func (db *DB) SearchPayouts(ctx context.Context, query string, limit int) ([]payout.Payout, error) {
	return db.payouts(ctx, referredIDs+newestWanted, limit, query)
}

func (db *DB) payouts(ctx context.Context, query string, args ...any) ([]payout.Payout, error) {
	return readAll(ctx, db.query, query, args, payoutDest)
}

const (
	selectOpenTransfers = `SELECT gateway, gateway_id, reference, seller_id, amount, currency, progress, utr, made_at, found_at, why
	FROM unmatched_transfers WHERE resolved = 0`
	openUnmatchedTransfers = selectOpenTransfers + ` ORDER BY found_at, gateway, gateway_id LIMIT $1 + 0`
)

// OpenUnmatchedTransfers lists unmatched transfers that no admin has resolved, the first found first.
func (db *DB) OpenUnmatchedTransfers(ctx context.Context, limit int) ([]payout.UnmatchedTransfer, error) {
	return db.unmatchedTransfers(ctx, openUnmatchedTransfers, limit)
}

const (
	oldestUnmatched  = `SELECT MIN(COALESCE(made_at, found_at)) FROM unmatched_transfers WHERE resolved = 0 AND gateway = $1 AND why = $2`
	unmatchedSellers = `SELECT DISTINCT seller_id FROM unmatched_transfers WHERE resolved = 0 AND seller_id <> '' LIMIT $1 + 0`
	namesSeller      = `SELECT 1 FROM unmatched_transfers WHERE resolved = 0 AND seller_id = $1 LIMIT 1`
)

// OldestUnmatched is when the oldest of a gateway's open unmatched transfers that are so for a reason was made or found; zero without one.
func (db *DB) OldestUnmatched(ctx context.Context, at gateway.Name, why string) (oldest time.Time, err error) {
	err = db.queryRow(ctx, oldestUnmatched, string(at), why).Scan(instant{&oldest})
	return oldest, err
}

// UnmatchedSellers lists the sellers whom open unmatched transfers name, up to limit.
func (db *DB) UnmatchedSellers(ctx context.Context, limit int) ([]string, error) {
	return readAll(ctx, db.query, unmatchedSellers, []any{limit}, itself[string])
}

// OpenUnmatchedTransfer finds an unmatched transfer that no admin has resolved.
func (db *DB) OpenUnmatchedTransfer(ctx context.Context, at gateway.Name, gatewayID string) (u payout.UnmatchedTransfer, found bool, err error) {
	list, err := db.unmatchedTransfers(ctx, selectOpenTransfers+` AND gateway = $1 AND gateway_id = $2`, string(at), gatewayID)
	if err != nil || len(list) == 0 {
		return u, false, err
	}
	return list[0], true, nil
}

func (db *DB) unmatchedTransfers(ctx context.Context, query string, args ...any) ([]payout.UnmatchedTransfer, error) {
	return readAll(ctx, db.query, query, args, func(u *payout.UnmatchedTransfer, _ ...any) []any {
		t := &u.Transfer
		return []any{
			&u.Gateway, &t.GatewayID, &t.Reference, &t.Order.Seller, &t.Amount, &t.Currency, &t.Progress, &t.UTR, instant{&t.MadeAt}, instant{&u.FoundAt}, &u.Why,
		}
	})
}
