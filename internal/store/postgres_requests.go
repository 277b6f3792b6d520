package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"bursar/internal/payout"
)

// requestWriter serves payout requests on PostgreSQL in groups, because a transaction each would cost
// seven round trips, and one seller's requests would wait for each other's commits. A group locks its
// sellers' balances in order, decides in memory what package payout decides for each request, and
// writes everything with a few statements over arrays. The measurements are in
// docs/adr/0010-grouped-requests.md.
type requestWriter struct {
	config  *pgx.ConnConfig
	queue   queue[*requestJob]
	writers sync.WaitGroup
	// alone serves one request in a transaction of its own, when its group could not be committed.
	alone func(ctx context.Context, fn func(*Tx) error) error
}

// requestWriters is how many groups are under way at once: while one commits, the next is decided.
const requestWriters = 2

// requestLine is one writer's connection.
type requestLine struct{ postgresLine }

type requestJob struct {
	job[payout.RequestTx]
	caller payout.RequestCaller
}

func newRequestWriter(config *pgx.ConnConfig, alone func(context.Context, func(*Tx) error) error) *requestWriter {
	config = config.Copy()
	config.RuntimeParams["lock_timeout"] = "1s" // briefer than a request by itself waits
	w := &requestWriter{config: config, queue: newQueue[*requestJob](), alone: alone}
	for range requestWriters {
		w.writers.Go(w.run)
	}
	return w
}

func (w *requestWriter) do(ctx context.Context, c payout.RequestCaller, fn func(payout.RequestTx) error) error {
	j := &requestJob{job[payout.RequestTx]{ctx: ctx, fn: fn, answer: make(chan error, 1)}, c}
	if err := w.queue.put(ctx, j); err != nil {
		return err
	}
	return <-j.answer
}

// Close finishes what is queued.
func (w *requestWriter) Close() error {
	w.queue.close()
	w.writers.Wait()
	return nil
}

func (w *requestWriter) run() {
	line := &requestLine{postgresLine{config: w.config}}
	defer line.hangUp()
	group := w.queue.take(make([]*requestJob, 0, maxGroup))
	for ; len(group) > 0; group = w.queue.take(group) {
		w.commit(line, group)
	}
}

// commit serves a group and answers each request once it is durable. A group that can't be written,
// because one of its rows is impossible or somebody else just used one of its keys, is served one by one.
func (w *requestWriter) commit(line *requestLine, group []*requestJob) {
	outcomes := make([]error, len(group))
	err := retried(context.Background(), func(ctx context.Context) (bool, error) {
		committing, err := line.transact(ctx, group, outcomes)
		if isLockTimeout(err) { // one seller's balance is held up, and the others need not wait for it
			err = fmt.Errorf("%w: %w", errSpoiled, err)
		}
		if err != nil {
			line.reset(ctx)
		}
		return committing, err
	})
	if errors.Is(err, errSpoiled) {
		apart := slices.Clone(group)
		w.writers.Go(func() { w.commitEach(apart) }) // the next group does not wait for them
		return
	}
	for i, j := range group {
		j.answer <- errors.Join(err, outcomes[i])
	}
}

func (w *requestWriter) commitEach(group []*requestJob) {
	var all sync.WaitGroup
	for _, j := range group {
		all.Go(func() {
			j.answer <- w.alone(j.ctx, func(tx *Tx) error { return j.fn(tx) })
		})
	}
	all.Wait()
}

// transact decides a group in two round trips. It sets each request's own outcome, and returns an
// error that takes the place of all of them; committing says that the COMMIT was on its way.
func (l *requestLine) transact(ctx context.Context, group []*requestJob, outcomes []error) (committing bool, err error) {
	if err := l.dial(ctx); err != nil {
		return false, err
	}
	page, err := l.open(ctx, group)
	if err != nil {
		return false, err
	}
	for i, j := range group {
		outcomes[i] = page.serve(j)
	}
	return l.write(ctx, page)
}

// open begins a transaction, locks the group's balances in the order of their sellers, and reads what
// the decisions need. Each statement sees what was committed before it began, so the keys are read
// after the locks: whoever held those before has left its keys.
func (l *requestLine) open(ctx context.Context, group []*requestJob) (*requestPage, error) {
	page := newRequestPage(group)
	sellers := slices.Sorted(maps.Keys(page.sellers))
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(`SELECT seller_id, pending, available, in_transit, transfers, chained, head FROM seller_balances
		WHERE seller_id = ANY($1::text[]) ORDER BY seller_id FOR NO KEY UPDATE`, sellers).Query(page.scanBalances)
	b.Queue(`SELECT seller_id, id, holder, ifsc, last4, status FROM bank_accounts
		WHERE seller_id = ANY($1::text[]) AND is_current = 1`, sellers).Query(page.scanAccounts)
	if users, keys := keysOf(group); len(keys) > 0 {
		b.Queue(`SELECT k.user_id, k.key, k.fingerprint, k.payout_id, k.refusal
			FROM unnest($1::text[], $2::text[]) AS asked (user_id, key)
			JOIN idempotency_keys k ON k.user_id = asked.user_id AND k.key = asked.key`, users, keys).Query(page.scanKeys)
	}
	if err := l.conn.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("lock balances: %w", err)
	}
	if repeats := page.repeats(); len(repeats) > 0 {
		rows, err := l.conn.Query(ctx, `SELECT `+payoutColumns+payoutFrom+`WHERE p.id = ANY($1::text[])`, repeats)
		if err != nil {
			return nil, err
		}
		if err := page.scanPayouts(rows); err != nil {
			return nil, err
		}
	}
	return page, nil
}

func keysOf(group []*requestJob) (users, keys []string) {
	for _, j := range group {
		if j.caller.Key != "" {
			users, keys = append(users, j.caller.Seller), append(keys, j.caller.Key)
		}
	}
	return users, keys
}

// write writes what was decided, and commits. Each statement that could do less than it must divides by
// zero then, which keeps the COMMIT behind it in the pipeline from being reached.
func (l *requestLine) write(ctx context.Context, page *requestPage) (committing bool, err error) {
	b := &pgx.Batch{}
	page.writes.queue(b)
	b.Queue("COMMIT")
	err = l.conn.SendBatch(ctx, b).Close()
	if err == nil || l.conn.IsClosed() || l.conn.PgConn().TxStatus() != 'E' {
		return true, err
	}
	// The transaction is there still, and has failed, so the COMMIT was certainly not reached.
	if isMetOthers(err) {
		return false, err
	}
	return false, fmt.Errorf("%w: %w", errSpoiled, err)
}
