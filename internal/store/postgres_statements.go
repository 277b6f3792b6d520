package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// statementWriter runs single statements on PostgreSQL in groups, each group in one round trip and one commit. It is for
// compare-and-sets of one row: a group whose connection was lost runs again, and what it has changed already it then does
// not find as it was.
type statementWriter struct {
	config  *pgx.ConnConfig
	queue   queue[*statementJob]
	writers sync.WaitGroup
	// alone runs one statement in a transaction of its own, when its group could not be committed.
	alone func(ctx context.Context, fn func(*Tx) error) error
}

// statementJob is a statement that waits for its group.
type statementJob struct {
	ctx context.Context //nolint:containedctx // it waits its turn
	// row names the row that it changes: groups lock rows in one order.
	row    string
	sql    string
	args   []any
	dest   []any
	found  bool
	answer chan error
}

func newStatementWriter(config *pgx.ConnConfig, alone func(context.Context, func(*Tx) error) error) *statementWriter {
	w := &statementWriter{config: config, queue: newQueue[*statementJob](), alone: alone}
	w.writers.Go(w.run)
	return w
}

// one runs a statement that returns the row that it changed, and reports whether there was one.
func (w *statementWriter) one(ctx context.Context, row, sql string, args []any, dest ...any) (bool, error) {
	j := &statementJob{ctx: ctx, row: row, sql: sql, args: args, dest: dest, answer: make(chan error, 1)}
	if err := w.queue.put(ctx, j); err != nil {
		return false, err
	}
	err := <-j.answer
	return j.found, err
}

// Close finishes what is queued.
func (w *statementWriter) Close() error {
	w.queue.close()
	w.writers.Wait()
	return nil
}

func (w *statementWriter) run() {
	line := &postgresLine{config: w.config}
	defer line.hangUp()
	group := w.queue.take(make([]*statementJob, 0, maxGroup))
	for ; len(group) > 0; group = w.queue.take(group) {
		slices.SortFunc(group, func(a, b *statementJob) int { return strings.Compare(a.row, b.row) })
		w.commit(line, group)
	}
}

func (w *statementWriter) commit(line *postgresLine, group []*statementJob) {
	err := retried(context.Background(), func(ctx context.Context) (bool, error) {
		err := runStatements(ctx, line, group)
		if err != nil {
			line.reset(ctx)
		}
		return false, err
	})
	if errors.Is(err, errServeAlone) {
		for _, j := range group {
			w.writers.Go(func() { // the next group does not wait for it
				j.answer <- w.alone(j.ctx, func(tx *Tx) (err error) {
					j.found, err = tx.one(j.ctx, j.sql, j.args, j.dest...)
					return err
				})
			})
		}
		return
	}
	for _, j := range group {
		j.answer <- err
	}
}

// runStatements runs a group in one transaction.
func runStatements(ctx context.Context, line *postgresLine, group []*statementJob) error {
	if err := line.dial(ctx); err != nil {
		return err
	}
	b := &pgx.Batch{}
	beginGroup(b)
	for _, j := range group {
		b.Queue(j.sql, j.args...).Query(func(rows pgx.Rows) (err error) {
			if j.found = rows.Next(); j.found {
				err = rows.Scan(j.dest...)
			}
			return errors.Join(err, rows.Err())
		})
	}
	b.Queue("COMMIT")
	err := line.conn.SendBatch(ctx, b).Close()
	if err != nil && !line.conn.IsClosed() && line.conn.PgConn().TxStatus() == 'E' && !isMetOthers(err) {
		return fmt.Errorf("%w: %w", errServeAlone, err)
	}
	return err
}
