package store

import (
	"context"
	"time"

	"bursar/internal/auth"
	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/payout"
)

var newestSent = selectPayouts + `WHERE p.gateway = $1 AND p.sent_at IS NOT NULL ORDER BY p.id DESC LIMIT $2 + 0`

// NewestSent lists the newest of the payouts that were sent through a gateway, newest first, up to limit.
func (db *DB) NewestSent(ctx context.Context, at gateway.Name, limit int) ([]payout.Payout, error) {
	return db.payouts(ctx, newestSent, string(at), limit)
}

// LastSent finds the newest payout that was sent through any gateway, if there is one.
func (db *DB) LastSent(ctx context.Context) (p payout.Payout, found bool, err error) {
	list, err := db.payouts(ctx, selectPayouts+`WHERE p.sent_at IS NOT NULL ORDER BY p.id DESC LIMIT 1`)
	if err != nil || len(list) == 0 {
		return p, false, err
	}
	return list[0], true, nil
}

// FirstUserAt is when the first user came here; zero if there is none. One that was imported came when the id was made, and registered elsewhere
// long before.
func (db *DB) FirstUserAt(ctx context.Context) (at time.Time, err error) {
	var user string
	err = db.queryOne(ctx, `SELECT id, created_at FROM users ORDER BY id LIMIT 1`, nil, &user, instant{&at})
	if made := id.Time(auth.UserIDPrefix, user); made.After(at) {
		at = made
	}
	return at, err
}

// MayHaveTaken reports whether a gateway has taken a payout, or may have. What it turned away does not count.
func (db *DB) MayHaveTaken(ctx context.Context, at gateway.Name) (bool, error) {
	var one int
	return found(db.queryRow(ctx, `SELECT 1 FROM payouts WHERE gateway = $1 AND (gateway_id <> '' OR status = 'processing' AND state <> 'waiting'
		OR sent_at IS NOT NULL AND reason_code = 'refunded') LIMIT 1`, string(at)).Scan(&one))
}

// isRecorded fits payouts p that their seller's journal knows. An attacker may put journals back to before a payout was asked for, and leave
// its row, with an entry about it in another journal.
const isRecorded = ` AND EXISTS (SELECT 1 FROM entries e WHERE e.subject = p.id AND e.owner = p.seller_id)`

// PayoutsByID finds those of ids that their sellers' journals know. It does not check who wrote those.
func (db *DB) PayoutsByID(ctx context.Context, ids []payout.ID) (map[payout.ID]payout.Payout, error) {
	found := make(map[payout.ID]payout.Payout, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	in, args := db.dialect.oneOf(nil, texts(ids))
	list, err := db.payouts(ctx, selectPayouts+`WHERE p.id `+in+isRecorded, args...)
	for _, p := range list {
		found[p.ID] = p
	}
	return found, err
}

// UserExists reports whether there is such a user, whatever their role.
func (db *DB) UserExists(ctx context.Context, id string) (bool, error) {
	var one int
	return found(db.queryRow(ctx, `SELECT 1 FROM users WHERE id = $1`, id).Scan(&one))
}

// UnsentPayouts lists a seller's payouts that the gateway is not known to have, and locks them.
func (tx *Tx) UnsentPayouts(ctx context.Context, seller string) ([]payout.Payout, error) {
	return readAll(ctx, tx.each, selectPayouts+`WHERE p.seller_id = $1 AND p.status = 'processing'
		AND p.state IN ('waiting', 'submitting', 'unknown') ORDER BY p.id`+tx.dialect.forUpdate("p"), []any{seller}, payoutDest)
}

// RecordUnmatchedTransfer stores an unmatched transfer and reports whether it is new. One that is there and that nobody has resolved gets
// the reason of now.
func (tx *Tx) RecordUnmatchedTransfer(ctx context.Context, s payout.UnmatchedTransfer) (bool, error) {
	t := s.Transfer
	isNew, err := tx.execOne(ctx, `INSERT INTO unmatched_transfers (gateway, gateway_id, reference, seller_id, amount, currency, progress, utr, made_at, found_at, why, resolved)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0) ON CONFLICT (gateway, gateway_id) DO NOTHING`,
		string(s.Gateway), t.GatewayID, t.Reference, t.Order.Seller, int64(t.Amount), t.Currency, string(t.Progress), t.UTR, nullMicros(t.MadeAt), micros(s.FoundAt), s.Why)
	if err != nil || isNew {
		return isNew, err
	}
	_, err = tx.exec(ctx, `UPDATE unmatched_transfers SET why = $3 WHERE gateway = $1 AND gateway_id = $2 AND resolved = 0 AND why <> $3`,
		string(s.Gateway), t.GatewayID, s.Why)
	return false, err
}

// ForgetUnmatchedTransfer takes an unmatched transfer that nobody has resolved off the list.
func (tx *Tx) ForgetUnmatchedTransfer(ctx context.Context, at gateway.Name, gatewayID string) error {
	_, err := tx.exec(ctx, `DELETE FROM unmatched_transfers WHERE gateway = $1 AND gateway_id = $2 AND resolved = 0`, string(at), gatewayID)
	return err
}

// ResolveUnmatchedTransfer marks an unmatched transfer as resolved.
func (tx *Tx) ResolveUnmatchedTransfer(ctx context.Context, at gateway.Name, gatewayID string) (bool, error) {
	return tx.execOne(ctx, `UPDATE unmatched_transfers SET resolved = 1 WHERE gateway = $1 AND gateway_id = $2 AND resolved = 0`, string(at), gatewayID)
}
