package store

import (
	"context"
	"database/sql"
	"strings"
	"sync"
)

// rowReader reads single rows by key. Whatever is asked for while one group is read goes with the next, so that many
// callers share the cost of a round trip to a server, or of a statement and a transaction on SQLite. Every request reads
// its session this way.
type rowReader struct {
	queue   queue[*rowRead]
	readers sync.WaitGroup
}

// rowReaders is how many groups are read at once.
const rowReaders = 2

// rowServer reads the rows of one group after the other, and answers every read.
type rowServer interface {
	serve(group []*rowRead)
	// hangUp ends its connection, if it has one of its own.
	hangUp()
}

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

func newRowReader(newServer func() rowServer) *rowReader {
	r := &rowReader{queue: newQueue[*rowRead]()}
	for range rowReaders {
		r.readers.Go(func() { r.run(newServer()) })
	}
	return r
}

func (r *rowReader) row(ctx context.Context, query string, args []any) scanner {
	return &rowRead{reader: r, ctx: ctx, query: query, args: args, answer: make(chan error, 1)}
}

func (r *rowReader) rowOf(ctx context.Context, query, key string) scanner {
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

func (r *rowReader) run(server rowServer) {
	defer server.hangUp()
	group := r.queue.take(make([]*rowRead, 0, maxGroup))
	for ; len(group) > 0; group = r.queue.take(group) {
		server.serve(group)
	}
}

// asked is the reads of a group that begin it and ask the same query of many keys, of a group in the order of its queries.
func asked(group []*rowRead) []*rowRead {
	n := 1
	for n < len(group) && group[0].byKey && group[n].query == group[0].query {
		n++
	}
	return group[:n]
}

func byQuery(a, b *rowRead) int { return strings.Compare(a.query, b.query) }

func keysOf(reads []*rowRead) []string {
	keys := make([]string, len(reads))
	for i, r := range reads {
		keys[i] = r.key
	}
	return distinct(keys)
}

// foundRows is what a statement found.
type foundRows interface {
	scanner
	Next() bool
	Err() error
}

// scanEach answers reads of one query, each with the row of its key. If it fails, none is answered. key tells the key of
// the row that rows are at.
func scanEach(rows foundRows, key func() (string, error), reads []*rowRead) error {
	outcomes := make([]error, len(reads))
	for i := range outcomes {
		outcomes[i] = sql.ErrNoRows
	}
	for rows.Next() {
		at, err := key()
		if err != nil {
			return err
		}
		for i, r := range reads {
			if r.key == at {
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
