package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/sale"
)

// SellerExists reports whether a user with that id may sell, and keeps the account from being deleted until the
// transaction ends.
func (tx *Tx) SellerExists(ctx context.Context, seller string) (bool, error) {
	var one int
	return tx.one(ctx, `SELECT 1 FROM users WHERE id = $1 AND role IN ('seller', 'admin')`+tx.dialect.forShare("users"), []any{seller}, &one)
}

// InsertSale adds s unless a row or a journal has its id already, and reports whether it did. A row that an attacker
// deleted must not earn its money again.
func (tx *Tx) InsertSale(ctx context.Context, s sale.Sale) (bool, error) {
	var one int
	known, err := tx.one(ctx, `SELECT 1 FROM entries WHERE subject = $1 LIMIT 1`, []any{sale.SubjectPrefix + s.ID}, &one)
	if err != nil || known {
		return false, err
	}
	return tx.write(ctx, saleTable.insertsMissing(tx.dialect, []sale.Sale{s}))
}

// listedSaleFields are those of a sale's row but for the seller, whose list it is.
var listedSaleFields = fields[sale.Sale]{
	asText("id", primaryKey, func(s *sale.Sale) *string { return &s.ID }),
	asNumber("amount", insertOnly, func(s *sale.Sale) *money.Amount { return &s.Amount }),
	asNumber("refunded", insertOnly, func(s *sale.Sale) *money.Amount { return &s.Refunded }),
	asText("month", insertOnly, func(s *sale.Sale) *string { return &s.Month }),
	asTime("occurred_at", insertOnly, func(s *sale.Sale) *time.Time { return &s.OccurredAt }),
	asTime("available_at", insertOnly, func(s *sale.Sale) *time.Time { return &s.AvailableAt }),
	orNull("released_at", insertOnly, func(s *sale.Sale) *time.Time { return &s.ReleasedAt }),
	asTime("created_at", insertOnly, func(s *sale.Sale) *time.Time { return &s.CreatedAt }),
	asText("fingerprint", insertOnly, func(s *sale.Sale) *string { return &s.Fingerprint }),
	{name: "due_at", isNull: true, role: insertOnly, value: func(s *sale.Sale) any {
		if s.Released() {
			return nil
		}
		return micros(s.AvailableAt)
	}},
}

var saleFields = slices.Concat(listedSaleFields, fields[sale.Sale]{asText("seller_id", insertOnly, func(s *sale.Sale) *string { return &s.Seller })})

var saleTable = &table[sale.Sale]{
	name: "sales", texts: &sync.Map{},
	columns: saleFields,
}

var refundTable = &table[sale.Refund]{
	name: "sale_refunds", texts: &sync.Map{},
	columns: []column[sale.Refund]{
		asText("sale_id", primaryKey, func(r *sale.Refund) *string { return &r.Sale }),
		asText("id", primaryKey, func(r *sale.Refund) *string { return &r.ID }),
		asNumber("amount", insertOnly, func(r *sale.Refund) *money.Amount { return &r.Amount }),
		asTime("at", insertOnly, func(r *sale.Refund) *time.Time { return &r.At }),
		asText("fingerprint", insertOnly, func(r *sale.Refund) *string { return &r.Fingerprint }),
	},
}

const selectRefunds = `SELECT sale_id, id, amount, at, fingerprint FROM sale_refunds`

func refundDest(r *sale.Refund, more ...any) []any {
	return append([]any{&r.Sale, &r.ID, &r.Amount, instant{&r.At}, &r.Fingerprint}, more...)
}

var selectSales = `SELECT ` + saleFields.names("") + ` FROM sales `

// SaleForUpdate finds a sale and keeps others from changing it until the transaction ends.
func (tx *Tx) SaleForUpdate(ctx context.Context, id string) (sale.Sale, error) {
	var s sale.Sale
	ok, err := tx.one(ctx, selectSales+`WHERE id = $1`+tx.dialect.forUpdate("sales"), []any{id}, saleFields.dest(&s)...)
	if err == nil && !ok {
		err = sale.ErrNotFound
	}
	return s, err
}

var salesPage = `SELECT ` + listedSaleFields.names("") + ` FROM sales WHERE seller_id = $1 ORDER BY occurred_at DESC, id DESC LIMIT $2 + 0 OFFSET $3`

// ListSales lists a page of a seller's sales, newest first. The total comes from the seller's counters,
// so that it costs the same however many there are.
func (db *DB) ListSales(ctx context.Context, seller string, offset, limit int) ([]sale.Sale, int64, error) {
	var total int64
	_, err := found(db.queryRow(ctx, `SELECT sales FROM journals WHERE owner = $1`, seller).Scan(&total))
	if err != nil || int64(offset) >= total {
		return nil, total, err
	}
	list := make([]sale.Sale, 0, limit)
	err = db.query(ctx, salesPage, []any{seller, limit, offset}, collect(&list, listedSaleFields.dest))
	for i := range list {
		list[i].Seller = seller
	}
	return list, total, err
}

// Earnings lists what a seller earned in each month that is on record, from one to another.
func (db *DB) Earnings(ctx context.Context, seller, from, to string) ([]sale.Month, error) {
	return readAll(ctx, db.query, `SELECT month, amount FROM earnings WHERE seller_id = $1 AND month BETWEEN $2 AND $3 ORDER BY month`,
		[]any{seller, from, to}, func(m *sale.Month, _ ...any) []any { return []any{&m.Month, &m.Earned} })
}

// PendingByDay sums what is left of a seller's pending sales by the day on which they become available.
// Where days begin is worked out by the caller, because engines do not agree on zones.
func (db *DB) PendingByDay(ctx context.Context, seller string, days []time.Time) ([]sale.Release, error) {
	args := []any{seller, int64(0)} // the first day has no beginning
	for _, next := range days[1:] {
		args = append(args, micros(next))
	}
	var list []sale.Release
	err := db.query(ctx, pendingByDay(len(days)-1), args, func(r *row) {
		var day int
		var release sale.Release
		r.Scan(&day, &release.Amount, &release.Sales)
		release.Day = days[day]
		list = append(list, release)
	})
	return list, err
}

// pendingByDay is the statement for so many days, each of which ends where the next begins.
func pendingByDay(days int) string {
	ranges := make([]string, days)
	for i := range ranges {
		ranges[i] = fmt.Sprintf(`(%d, CAST($%d AS BIGINT), CAST($%d AS BIGINT))`, i, i+2, i+3)
	}
	return `WITH days (number, since, until) AS (VALUES ` + strings.Join(ranges, ", ") + `)
		SELECT d.number, CAST(SUM(s.amount - s.refunded) AS BIGINT), COUNT(*) FROM days d JOIN sales s
		ON s.seller_id = $1 AND s.released_at IS NULL AND s.available_at >= d.since AND s.available_at < d.until
		WHERE s.refunded < s.amount GROUP BY d.number ORDER BY d.number`
}

// adjustmentEntries are entriesAboutColumns of a seller's adjustments.
var adjustmentEntries = entriesAboutColumns + ` WHERE e.owner = $1 AND e.number < $2 AND e.type = 'balance.adjusted' ORDER BY e.number DESC LIMIT $3 + 0`

// AdjustmentEntries lists the entries of a seller's adjustments numbered below before, newest first; before 0 begins at the
// newest. It fails with [ledger.ErrTampered] if the service did not write all of it.
func (db *DB) AdjustmentEntries(ctx context.Context, seller string, before int64, limit int) ([]ledger.Entry, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	return db.signer.checkedEntries(ctx, db.query, adjustmentEntries, seller, before, limit)
}

// MarkReleased records the release of a pending sale, and reports whether it was pending.
func (tx *Tx) MarkReleased(ctx context.Context, id string, at time.Time) (bool, error) {
	return tx.execOne(ctx, `UPDATE sales SET released_at = $2, due_at = NULL WHERE id = $1 AND released_at IS NULL`, id, micros(at))
}

// PostponeRelease puts the release of a sale off.
func (tx *Tx) PostponeRelease(ctx context.Context, id string, until time.Time) error {
	_, err := tx.exec(ctx, `UPDATE sales SET due_at = $2 WHERE id = $1 AND released_at IS NULL`, id, micros(until))
	return err
}

// AddRefunded adds to a sale's refunded amount if no more than the sale is refunded in all.
func (tx *Tx) AddRefunded(ctx context.Context, id string, amount money.Amount) (bool, error) {
	return tx.execOne(ctx, `UPDATE sales SET refunded = refunded + $2 WHERE id = $1 AND refunded + $2 <= amount`, id, int64(amount))
}

// InsertRefund adds r.
func (tx *Tx) InsertRefund(ctx context.Context, r sale.Refund) error {
	_, err := tx.write(ctx, refundTable.inserts(tx.dialect, []sale.Refund{r}))
	return err
}

// Refund finds a refund of a sale, if it is there.
func (tx *Tx) Refund(ctx context.Context, saleID, id string) (sale.Refund, bool, error) {
	r := sale.Refund{Sale: saleID, ID: id}
	ok, err := tx.one(ctx, `SELECT amount, at, fingerprint FROM sale_refunds WHERE sale_id = $1 AND id = $2`,
		[]any{saleID, id}, &r.Amount, instant{&r.At}, &r.Fingerprint)
	return r, ok, err
}

// AddEarnings adds to what the seller earned in a month. It fails with [ledger.ErrTampered] if that is more than the service lets a seller
// earn: adding to it could overflow.
func (tx *Tx) AddEarnings(ctx context.Context, seller, month string, amount money.Amount) error {
	added, err := tx.execOne(ctx, `INSERT INTO earnings (seller_id, month, amount) VALUES ($1, $2, $3)
		ON CONFLICT (seller_id, month) DO UPDATE SET amount = earnings.amount + excluded.amount WHERE earnings.amount BETWEEN -CAST($4 AS BIGINT) AND CAST($4 AS BIGINT)`,
		seller, month, int64(amount), int64(ledger.MaxTotal))
	if err == nil && !added {
		err = tx.fail(ledger.ErrTampered.Because(fmt.Errorf("the earnings of %s in %s are more than a seller can have", seller, month)))
	}
	return err
}

// DueSales lists pending sales whose holding period is over, and keeps others from releasing them: those longest
// due, in the order of their sellers, because the balances are locked in that order everywhere.
func (tx *Tx) DueSales(ctx context.Context, now time.Time, limit int) ([]string, error) {
	return readAll(ctx, tx.each, `WITH due AS MATERIALIZED (
			SELECT id, seller_id FROM sales WHERE due_at <= $1 AND released_at IS NULL
			ORDER BY due_at LIMIT $2 + 0`+tx.dialect.skipLocked+`)
		SELECT id FROM due ORDER BY seller_id, id`, []any{micros(now), limit}, itself[string])
}
