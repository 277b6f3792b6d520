//go:build unix

package e2e

import (
	"database/sql"
	"os"
	"strconv"
	"testing"
)

// historyVariable says how many payouts there are in BenchmarkLongHistory. The benchmark is skipped without it.
const historyVariable = "BURSAR_TEST_HISTORY"

// BenchmarkLongHistory requests payouts and reads where many are there already, beside a service where 10,000 are.
func BenchmarkLongHistory(b *testing.B) {
	const sellers, short = 128, 10_000
	long, err := strconv.Atoi(os.Getenv(historyVariable))
	if err != nil {
		b.Skipf("%s is not set to the number of payouts, as in %[1]s=1000000", historyVariable)
	}
	onEachEngine(b, func(b *testing.B, on engine) {
		few, many := newMarket(b, on, sellers), newMarket(b, on, sellers)
		few.fillHistory(b, short)
		many.fillHistory(b, long)
		b.Run("request", func(b *testing.B) { compare(b, 64, many.requests().named("long"), few.requests().named("short")) })
		for _, read := range []string{"balance", "history"} {
			path := "/api/payouts/" + read
			b.Run(read, func(b *testing.B) { compare(b, 16, many.reads(path).named("long"), few.reads(path).named("short")) })
		}
	})
}

// fillHistory writes completed payouts of the past straight into the table, the same number for each seller. They have
// no entries and no part in the balances, which the service would not believe: nothing here is ever audited.
func (m *market) fillHistory(b *testing.B, payouts int) {
	b.Helper()
	driver, source, tidy := "pgx", m.database.Postgres, `ANALYZE`
	if m.database.SQLite != "" { // the next commit is not to write back what was filled in
		driver, source, tidy = "sqlite", sqliteSource(m.database.SQLite), `PRAGMA wal_checkpoint(TRUNCATE)`
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	// Ids begin with their time and end like their seller's: pyt_0000, eight digits, and twelve of the seller.
	const fill = `WITH RECURSIVE numbers (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM numbers WHERE i < $2)
		INSERT INTO payouts (id, seller_id, bank_account_id, amount, fee, notes, rail, state, requested_at, status,
			arrive_at, processed_at, completed_at, tries, order_body, gateway_id, progress, utr, reason_code, reason, discrepancy, gateway)
		SELECT 'pyt_0000' || substr(CAST(100000000 + i AS TEXT), 2) || CAST($3 AS TEXT), $1, a.id, 50000, 0, 'rent', 'IMPS', 'completed', i, 'completed',
			i, i + 0, i, 0, '', 'pout_00000000000001', 'paid', 'HDFCN00000000001', '', '', '', 'sandbox'
		FROM numbers, bank_accounts a WHERE a.seller_id = $1 AND a.is_current = 1`
	for _, s := range m.sellers {
		seller := s.User.ID
		if _, err := db.ExecContext(b.Context(), fill, seller, payouts/len(m.sellers), seller[len(seller)-12:]); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := db.ExecContext(b.Context(), tidy); err != nil {
		b.Fatal(err)
	}
}
