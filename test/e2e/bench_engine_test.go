//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"bursar/internal/pgtest"
)

// engine makes fresh databases of one kind. What they acknowledge is durable.
type engine struct {
	name     string
	database func(b *testing.B) string
}

var onSQLite = engine{"sqlite", func(b *testing.B) string {
	b.Helper()
	return "sqlite:" + filepath.Join(b.TempDir(), "bursar.db")
}}

// onEachEngine runs a benchmark on SQLite, and on a PostgreSQL server of its own where there is PostgreSQL.
func onEachEngine(b *testing.B, run func(*testing.B, engine)) {
	b.Helper()
	b.Run(onSQLite.name, func(b *testing.B) { run(b, onSQLite) })
	b.Run("postgres", func(b *testing.B) {
		server := pgtest.StartServer(b, pgtest.Options{})
		run(b, engine{"postgres", func(b *testing.B) string {
			b.Helper()
			return server.Database(b)
		}})
	})
}

// payoutScript is the transaction of a payout's request without us: the statements that a transaction
// of its own would take. A colon would name a variable even within quotes.
const payoutScript = `\set n random(0, %d)
\set id random(1, 1000000000000000000)
BEGIN;
SELECT a.id AS account, a.seller_id AS seller FROM bench_sellers s
	JOIN bank_accounts a ON a.seller_id = s.id AND a.is_current = 1 WHERE s.n = :n \gset
UPDATE seller_balances SET available = available - 50000, in_transit = in_transit + 50000, processing = processing + 1,
	transfers = transfers + 1 WHERE seller_id = :seller AND available >= 50000 RETURNING transfers AS number \gset
INSERT INTO transfers (seller_id, number, at, kind, debit, credit, amount, ref)
	VALUES (:seller, :number, 0, 'payout_hold', 'seller' || chr(58) || 'available', 'seller' || chr(58) || 'in_transit', 50000, 'pyt_' || :id);
INSERT INTO payouts (id, seller_id, bank_account_id, amount, fee, notes, mode, state, status, requested_at, arrive_at, due_at,
	tries, order_body, gateway_id, progress, utr, reason_code, reason, contradiction)
	VALUES ('pyt_' || :id, :seller, :account, 50000, 0, 'rent', 'IMPS', 'waiting', 'processing', 0, 0, 0, 0, '', '', '', '', '', '', '');
COMMIT;
`

// pgbench makes as many payouts as the benchmark asks for with PostgreSQL's own tool, without HTTP.
func (h *hall) pgbench(b *testing.B, clients int) {
	b.Helper()
	pgbench, err := exec.LookPath("pgbench")
	if err != nil {
		b.Skip("pgbench is not on the PATH")
	}
	pool, err := pgxpool.New(b.Context(), h.database.Postgres)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(b.Context(), `CREATE TABLE IF NOT EXISTS bench_sellers AS
		SELECT row_number() OVER (ORDER BY seller_id) - 1 AS n, seller_id AS id FROM seller_balances`); err != nil {
		b.Fatal(err)
	}
	script := filepath.Join(b.TempDir(), "payout.sql")
	if err := os.WriteFile(script, fmt.Appendf(nil, payoutScript, len(h.sellers)-1), 0o600); err != nil {
		b.Fatal(err)
	}
	each := max(1, b.N/clients)
	out, err := exec.CommandContext(b.Context(), pgbench, "--no-vacuum", "--protocol=prepared", "--client="+strconv.Itoa(clients),
		"--jobs=2", "--transactions="+strconv.Itoa(each), "--file="+script, h.database.Postgres).CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	found := regexp.MustCompile(`tps = ([0-9.]+) `).FindSubmatch(out)
	if found == nil {
		b.Fatalf("pgbench said no rate: %s", out)
	}
	perSecond, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(1e9/perSecond, "ns/op") // without the time to connect
}

// pooled is a bare handler that reads one row through the driver's own pool.
func (h *hall) pooled(b *testing.B) string {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), h.database.Postgres)
	if err != nil {
		b.Fatal(err)
	}
	answer := bytes.Repeat([]byte("x"), 205)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var pending, available, inTransit int64
		err := pool.QueryRow(r.Context(), `SELECT pending, available, in_transit FROM seller_balances WHERE seller_id = $1`,
			h.sellers[0].User.ID).Scan(&pending, &available, &inTransit)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(answer)
	}))
	b.Cleanup(func() {
		server.Close()
		pool.Close()
	})
	return server.URL
}
