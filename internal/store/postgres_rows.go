package store

import (
	"context"
	"database/sql"
	"slices"

	"github.com/jackc/pgx/v5"
)

// rowLine is one reader's connection to PostgreSQL.
type rowLine struct {
	postgresLine
	// failed is called with errors that may be those of a lost connection.
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
	slices.SortStableFunc(group, byQuery)
	for left := group; len(left) > 0; {
		together, r := asked(left), left[0]
		left = left[len(together):]
		if r.byKey {
			in, args := postgresDialect.oneOf(nil, keysOf(together))
			b.Queue(r.query+in, args...).Query(func(rows pgx.Rows) error {
				err := scanEach(rows, lastOf(rows), together)
				if err == nil {
					answered += len(together)
				}
				return err
			})
			continue
		}
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

// lastOf tells the last column of the row that rows are at.
func lastOf(rows pgx.Rows) func() (string, error) {
	return func() (string, error) {
		values := rows.RawValues()
		return string(values[len(values)-1]), nil
	}
}

// scanOnly scans the first row.
func scanOnly(rows pgx.Rows, dest []any) error {
	if !rows.Next() {
		return sql.ErrNoRows
	}
	return rows.Scan(dest...)
}
