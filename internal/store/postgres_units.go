package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
)

// unitWriter serves changes on PostgreSQL in units of work, in two or three round trips for each: what is loaded goes in one
// pipeline, what follows from it in the next, if anything does, and what is written in the last.
type unitWriter struct {
	config *pgx.ConnConfig
	queue  queue[*unitJob]
	// writers are the goroutine that serves groups, and one for each change that is served by itself.
	writers sync.WaitGroup
	// alone serves one change in a transaction of its own, when its group could not be committed.
	alone   func(ctx context.Context, fn func(*Tx) error) error
	macKeys *signer
	tails   *tailCache
}

// unitLine is the writer's connection.
type unitLine struct {
	postgresLine
	macKeys *signer
	tails   *tailCache
}

func newUnitWriter(config *pgx.ConnConfig, keys *signer, tails *tailCache, alone func(context.Context, func(*Tx) error) error) *unitWriter {
	w := &unitWriter{config: config, queue: newQueue[*unitJob](), alone: alone, macKeys: keys, tails: tails}
	w.writers.Go(w.run)
	return w
}

func (w *unitWriter) do(j *unitJob) error {
	if err := w.queue.put(j.ctx, j); err != nil {
		return err
	}
	return <-j.answer
}

// Close finishes what is queued.
func (w *unitWriter) Close() error {
	w.queue.close()
	w.writers.Wait()
	return nil
}

func (w *unitWriter) run() {
	line := &unitLine{postgresLine{config: w.config}, w.macKeys, w.tails}
	defer line.hangUp()
	group := w.queue.take(make([]*unitJob, 0, maxGroup))
	for ; len(group) > 0; group = w.queue.take(group) {
		w.commit(line, group)
	}
}

// commit serves a group and answers each change once it is durable. A group that can't be written, because one of its
// rows is impossible or another request just used one of its keys, is served one by one.
func (w *unitWriter) commit(line *unitLine, group []*unitJob) {
	outcomes := make([]error, len(group))
	err := retried(context.Background(), func(ctx context.Context) (bool, error) {
		committing, err := line.transact(ctx, group, outcomes)
		if isLockTimeout(err) { // one seller's journal is held up, and the others need not wait for it
			err = fmt.Errorf("%w: %w", errServeAlone, err)
		}
		if err != nil {
			line.reset(ctx)
		}
		return committing, err
	})
	if errors.Is(err, errServeAlone) {
		for _, j := range group {
			w.writers.Go(func() { // the next group does not wait for it
				j.answer <- w.alone(j.ctx, func(tx *Tx) error { return j.fn(tx) })
			})
		}
		return
	}
	for i, j := range group {
		j.answer <- cmp.Or(err, outcomes[i])
	}
}

// transact decides a group. It sets each change's own outcome, and returns an error that takes the place of all of
// them; committing says that the COMMIT was on its way.
func (l *unitLine) transact(ctx context.Context, group []*unitJob, outcomes []error) (committing bool, err error) {
	if err := l.dial(ctx); err != nil {
		return false, err
	}
	keys, err := l.macKeys.get()
	if err != nil {
		return false, err
	}
	u := newUnit(keys, l.tails, len(group))
	if err := l.read(ctx, true, u.loads(postgresDialect, group)); err != nil {
		return false, err
	}
	if more := u.followUps(postgresDialect, group); len(more) > 0 {
		if err := l.read(ctx, false, more); err != nil {
			return false, err
		}
	}
	u.checkTails()
	for i, j := range group {
		outcomes[i] = u.serve(j)
	}
	if committing, err = l.write(ctx, u.writeStatements(postgresDialect)); err == nil {
		u.keepTails()
	}
	return committing, err
}

// beginGroup begins the transaction of a group. A group waits less time for a lock than a single request does, because the whole queue
// waits with it. A statement sets this, not a parameter of the connection, because poolers may drop parameters.
func beginGroup(b *pgx.Batch) {
	b.Queue("BEGIN")
	b.Queue("SET LOCAL lock_timeout = '250ms'")
}

// read runs the statements that load a unit, in one round trip.
func (l *unitLine) read(ctx context.Context, begin bool, loads []load) error {
	b := &pgx.Batch{}
	if begin {
		beginGroup(b)
	}
	for _, load := range loads {
		b.Queue(load.sql, load.args...).Query(func(rows pgx.Rows) error {
			return scanRows(rows, load.scan)
		})
	}
	err := l.conn.SendBatch(ctx, b).Close()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("load a group of changes: %w", err)
	if !isLost(err) && !isMetOthers(err) { // what one of them names can't be read, and the others need not fail for it
		err = fmt.Errorf("%w: %w", errServeAlone, err)
	}
	return err
}

// write writes what was decided, and commits. A statement that could do less than it must divides by zero then, which
// keeps the COMMIT behind it in the pipeline from being reached.
func (l *unitLine) write(ctx context.Context, writes []write) (committing bool, err error) {
	b := &pgx.Batch{}
	for _, w := range writes {
		if w.isSure {
			b.Queue(w.sql, w.args...)
			continue
		}
		b.Queue(`WITH changed AS (`+w.sql+fmt.Sprintf(` RETURNING 1) SELECT 1 / (CASE COUNT(*) WHEN $%d THEN 1 ELSE 0 END) FROM changed`, len(w.args)+1),
			append(w.args, w.rows)...)
	}
	b.Queue("COMMIT")
	err = l.conn.SendBatch(ctx, b).Close()
	if err == nil || l.conn.IsClosed() || l.conn.PgConn().TxStatus() != 'E' {
		return true, err
	}
	// The transaction is there still, and has failed, so the COMMIT was certainly not reached.
	if isMetOthers(err) {
		return false, err
	}
	return false, fmt.Errorf("%w: %w", errServeAlone, err)
}
