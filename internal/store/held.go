package store

import "context"

// HeldPayouts counts the payouts that wait for a person. It looks only at sellers with a payout under
// way, so it may be asked often.
func (db *DB) HeldPayouts(ctx context.Context) (int64, error) {
	var n int64
	err := db.queryOne(ctx, `SELECT COUNT(*) FROM seller_balances b
		JOIN payouts p ON p.seller_id = b.seller_id AND p.status = 'processing'
		WHERE b.processing > 0 AND p.state = 'held'`, nil, &n)
	return n, err
}
