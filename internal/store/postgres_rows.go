package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// rowReader reads single rows by key on PostgreSQL. Whatever is asked for while one round trip is under
// way goes with the next, so that many readers share the cost of talking to the server. Every request
// reads its session this way.
type rowReader struct {
	config  *pgx.ConnConfig
	queue   queue[*rowRead]
	readers sync.WaitGroup
	// failed is called with errors that may be those of a lost connection.
	failed func(error)
}

// rowReaders is how many round trips are under way at once.
const rowReaders = 2

// rowRead is one row that is asked for. It is read when it is scanned.
type rowRead struct {
	reader *rowReader
	ctx    context.Context //nolint:containedctx // it waits its turn
	query  string
	args   []any
	// byKey says that the query is one of many keys: it ends in what a key is compared with, and selects the key last.
	byKey  bool
	key    string
	dest   []any
	answer chan error
}

func newRowReader(config *pgx.ConnConfig, failed func(error)) *rowReader {
	r := &rowReader{config: config, queue: newQueue[*rowRead](), failed: failed}
	for range rowReaders {
		r.readers.Go(r.run)
	}
	return r
}

func (r *rowReader) row(ctx context.Context, query string, args []any) row {
	return &rowRead{reader: r, ctx: ctx, query: query, args: args, answer: make(chan error, 1)}
}

func (r *rowReader) rowOf(ctx context.Context, query, key string) row {
	return &rowRead{reader: r, ctx: ctx, query: query, byKey: true, key: key, answer: make(chan error, 1)}
}

// Scan waits for the row.
func (r *rowRead) Scan(dest ...any) error {
	r.dest = dest
	if err := r.reader.queue.put(r.ctx, r); err != nil {
		return err
	}
	return <-r.answer
}

// Close finishes what is queued.
func (r *rowReader) Close() error {
	r.queue.close()
	r.readers.Wait()
	return nil
}

func (r *rowReader) run() {
	line := &rowLine{postgresLine{config: r.config}, r.failed}
	defer line.hangUp()
	group := r.queue.take(make([]*rowRead, 0, maxGroup))
	for ; len(group) > 0; group = r.queue.take(group) {
		line.serve(group)
	}
}

// rowLine is one reader's connection.
type rowLine struct {
	postgresLine
	failed func(error)
}

// serve answers every read of a group. After a lost connection all that were not answered are read once
// more, and after a failed statement, which ends the others behind it too, each is read by itself.
func (l *rowLine) serve(group []*rowRead) {
	left, err := l.read(group)
	l.failed(err)
	if isLost(err) && !isTimeout(err) {
		left, err = l.read(left)
	}
	if len(left) > 1 && !isLost(err) {
		for _, r := range left {
			if _, err := l.read([]*rowRead{r}); err != nil {
				r.answer <- postgresUnreadable(err)
			}
		}
		return
	}
	for _, r := range left {
		r.answer <- postgresUnreadable(err)
	}
}

// read reads rows in one round trip, and returns those that it could not answer with the reason.
func (l *rowLine) read(group []*rowRead) ([]*rowRead, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	if err := l.dial(ctx); err != nil {
		return group, err
	}
	answered := 0
	b := &pgx.Batch{}
	slices.SortStableFunc(group, func(a, b *rowRead) int { return strings.Compare(a.query, b.query) })
	for i := 0; i < len(group); {
		r, end := group[i], i+1
		if r.byKey {
			for end < len(group) && group[end].query == r.query {
				end++
			}
			together := group[i:end]
			i = end
			b.Queue(r.query+`= ANY($1::text[])`, keysOf(together)).Query(func(rows pgx.Rows) error {
				err := scanEach(rows, together)
				if err == nil {
					answered += len(together)
				}
				return err
			})
			continue
		}
		i = end
		b.Queue(r.query, r.args...).Query(func(rows pgx.Rows) error {
			err := scanOnly(rows, r.dest)
			if rows.Err() != nil {
				return rows.Err() // not this read's alone
			}
			answered++
			r.answer <- err
			return nil
		})
	}
	err := l.conn.SendBatch(ctx, b).Close()
	return group[answered:], err
}

func keysOf(reads []*rowRead) []string {
	keys := make([]string, len(reads))
	for i, r := range reads {
		keys[i] = r.key
	}
	return distinct(keys)
}

// scanEach answers reads of one query, each with the row of its key. If it fails, none is answered.
func scanEach(rows pgx.Rows, reads []*rowRead) error {
	outcomes := make([]error, len(reads))
	for i := range outcomes {
		outcomes[i] = sql.ErrNoRows
	}
	for rows.Next() {
		values := rows.RawValues()
		key := string(values[len(values)-1])
		for i, r := range reads {
			if r.key == key {
				outcomes[i] = rows.Scan(r.dest...)
			}
		}
	}
	if rows.Err() != nil {
		return rows.Err()
	}
	for i, r := range reads {
		r.answer <- outcomes[i]
	}
	return nil
}

// scanOnly scans the first row.
func scanOnly(rows pgx.Rows, dest []any) error {
	if !rows.Next() {
		return sql.ErrNoRows
	}
	return rows.Scan(dest...)
}
