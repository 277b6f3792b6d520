//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgresFloor has two group writers with a connection each. A writer takes all requests that wait (no timer, at most
// 256), locks their sellers' balances in order, decides in memory, and writes the group with one UNNEST statement per
// table: keys, balances, payouts, entries, jobs. A group takes two round trips.
type postgresFloor struct {
	queue chan *floorRequest
	pool  *pgxpool.Pool
}

var postgresFloorSchema = []string{
	`CREATE TABLE sellers (id TEXT PRIMARY KEY, name TEXT, email TEXT, role TEXT, created_at BIGINT)`,
	`CREATE TABLE sessions (id TEXT PRIMARY KEY, seller TEXT, expires_at BIGINT)`,
	`CREATE TABLE balances (seller TEXT PRIMARY KEY, available BIGINT, in_transit BIGINT)`,
	`CREATE TABLE idempotency_keys (seller TEXT, key TEXT, payout TEXT, at BIGINT, PRIMARY KEY (seller, key))`,
	`CREATE TABLE payouts (id TEXT PRIMARY KEY, seller TEXT, amount BIGINT, notes TEXT, state TEXT, at BIGINT)`,
	`CREATE INDEX payouts_of_seller ON payouts (seller, id)`,
	`CREATE TABLE entries (payout TEXT, account TEXT, amount BIGINT, at BIGINT, PRIMARY KEY (payout, account))`,
	`CREATE TABLE jobs (payout TEXT PRIMARY KEY, due_at BIGINT)`,
}

func newPostgresFloor(b *testing.B, url string, sellers int) *postgresFloor {
	b.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = 16
	// The planner takes empty tables for small ones, and would scan them for as long as nobody analyses them.
	for _, name := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"} {
		config.ConnConfig.RuntimeParams[name] = "off"
	}
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	fill := append(slices.Clone(postgresFloorSchema),
		fmt.Sprintf(`INSERT INTO sellers SELECT 'usr_' || lpad(i::text, 24, '0'), 'Asha Rao', 'seller' || i || '@example.com', 'seller', 0
			FROM generate_series(0, %d) AS i`, sellers-1),
		fmt.Sprintf(`INSERT INTO sessions SELECT 'ses_' || lpad(i::text, 24, '0'), 'usr_' || lpad(i::text, 24, '0'), 0
			FROM generate_series(0, %d) AS i`, sellers-1),
		fmt.Sprintf(`INSERT INTO balances SELECT id, %d, 0 FROM sellers`, floorEarned),
		fmt.Sprintf(`INSERT INTO payouts SELECT 'pyt_0000' || lpad(n::text, 15, '0') || right(id, 5), id, 50000, 'rent', 'waiting', 0
			FROM sellers, generate_series(0, %d) AS n`, floorHistory-1),
		`ANALYZE`)
	for _, statement := range fill {
		if _, err := pool.Exec(b.Context(), statement); err != nil {
			b.Fatal(err)
		}
	}
	s := &postgresFloor{queue: make(chan *floorRequest, maxInGroup), pool: pool}
	var writers sync.WaitGroup
	for range 2 {
		conn, err := pool.Acquire(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		writers.Go(func() {
			defer conn.Release()
			for group := takeGroup(s.queue); len(group) > 0; group = takeGroup(s.queue) {
				err := commitGroup(context.Background(), conn.Conn(), group)
				for _, r := range group {
					r.answer <- err
				}
			}
		})
	}
	b.Cleanup(func() { // before the pool is closed
		close(s.queue)
		writers.Wait()
	})
	return s
}

func (s *postgresFloor) request(r *floorRequest) error {
	s.queue <- r
	return <-r.answer
}

// commitGroup makes a group of payouts durable. An insufficient balance ends the benchmark.
func commitGroup(ctx context.Context, conn *pgx.Conn, group []*floorRequest) error {
	sellers := make([]string, len(group))
	for i, r := range group {
		sellers[i] = r.seller
	}
	slices.Sort(sellers)
	sellers = slices.Compact(sellers)
	available := make(map[string]int64, len(sellers))
	begin := &pgx.Batch{}
	begin.Queue(`BEGIN`)
	begin.Queue(`SELECT seller, available FROM balances WHERE seller = ANY($1::text[]) ORDER BY seller FOR NO KEY UPDATE`, sellers).
		Query(func(rows pgx.Rows) error {
			var seller string
			var balance int64
			_, err := pgx.ForEachRow(rows, []any{&seller, &balance}, func() error {
				available[seller] = balance
				return nil
			})
			return err
		})
	if err := conn.SendBatch(ctx, begin).Close(); err != nil {
		return err
	}
	g := decideGroup(group, available)
	if g == nil {
		_, undo := conn.Exec(ctx, `ROLLBACK`)
		return errors.Join(errFloorInsufficient, undo)
	}
	after, moved := make([]int64, len(sellers)), make([]int64, len(sellers))
	for i, seller := range sellers {
		after[i], moved[i] = available[seller], g.moved[seller]
	}
	write := &pgx.Batch{}
	write.Queue(`INSERT INTO idempotency_keys SELECT seller, key, payout, at
		FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS k (seller, key, payout, at)`, g.sellers, g.keys, g.payouts, g.at)
	write.Queue(`UPDATE balances SET available = m.available, in_transit = in_transit + m.moved
		FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS m (seller, available, moved) WHERE balances.seller = m.seller`, sellers, after, moved)
	write.Queue(`INSERT INTO payouts SELECT id, seller, amount, notes, 'waiting', at
		FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[]) AS p (id, seller, amount, notes, at)`,
		g.payouts, g.sellers, g.amounts, g.notes, g.at)
	write.Queue(`INSERT INTO entries SELECT payout, account, amount, at
		FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS e (payout, account, amount, at)`,
		g.entryPayouts, g.entryAccounts, g.entryAmounts, g.entryAt)
	write.Queue(`INSERT INTO jobs SELECT payout, due_at FROM unnest($1::text[], $2::bigint[]) AS j (payout, due_at)`, g.payouts, g.at)
	write.Queue(`COMMIT`)
	return conn.SendBatch(ctx, write).Close()
}

// floorGroup is the columns of a group's rows.
type floorGroup struct {
	sellers, keys, payouts, notes []string
	amounts, at                   []int64
	entryPayouts, entryAccounts   []string
	entryAmounts, entryAt         []int64
	moved                         map[string]int64
}

// decideGroup takes each payout off its seller's available balance. It returns nil if one does not suffice.
func decideGroup(group []*floorRequest, available map[string]int64) *floorGroup {
	g := &floorGroup{moved: make(map[string]int64, len(available))}
	for _, r := range group {
		if available[r.seller] < r.amount {
			return nil
		}
		available[r.seller] -= r.amount
		g.moved[r.seller] += r.amount
		g.sellers, g.keys, g.payouts, g.notes = append(g.sellers, r.seller), append(g.keys, r.key), append(g.payouts, r.payout), append(g.notes, r.notes)
		g.amounts, g.at = append(g.amounts, r.amount), append(g.at, r.at)
		g.entryPayouts, g.entryAccounts = append(g.entryPayouts, r.payout, r.payout), append(g.entryAccounts, "available", "in_transit")
		g.entryAmounts, g.entryAt = append(g.entryAmounts, -r.amount, r.amount), append(g.entryAt, r.at, r.at)
	}
	return g
}

func (s *postgresFloor) session(ctx context.Context, id string) (seller string, err error) {
	var expires int64
	err = s.pool.QueryRow(ctx, `SELECT seller, expires_at FROM sessions WHERE id = $1`, id).Scan(&seller, &expires)
	return seller, err
}

func (s *postgresFloor) user(ctx context.Context, seller string) error {
	var name, email, role string
	var created int64
	return s.pool.QueryRow(ctx, `SELECT name, email, role, created_at FROM sellers WHERE id = $1`, seller).Scan(&name, &email, &role, &created)
}

func (s *postgresFloor) balance(ctx context.Context, seller string) error {
	var available, inTransit int64
	return s.pool.QueryRow(ctx, `SELECT available, in_transit FROM balances WHERE seller = $1`, seller).Scan(&available, &inTransit)
}

func (s *postgresFloor) history(ctx context.Context, seller string) error {
	rows, err := s.pool.Query(ctx, `SELECT id, amount, notes, state, at FROM payouts WHERE seller = $1 ORDER BY id DESC LIMIT 10`, seller)
	if err != nil {
		return err
	}
	var id, notes, state string
	var amount, at int64
	_, err = pgx.ForEachRow(rows, []any{&id, &amount, &notes, &state, &at}, func() error { return nil })
	return err
}
