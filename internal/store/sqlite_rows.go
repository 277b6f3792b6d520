package store

import (
	"context"
	"database/sql"
	"slices"
)

// sqliteRows reads the rows of many keys with one statement. By itself each would begin a transaction, and read the
// pages that have changed since, for one row.
type sqliteRows struct{ db *DB }

func (s sqliteRows) serve(group []*rowRead) {
	slices.SortStableFunc(group, byQuery)
	for left := group; len(left) > 0; {
		together := asked(left)
		left = left[len(together):]
		if err := s.read(together); err != nil {
			for _, r := range together {
				r.answer <- s.db.dialect.unreadable(err)
			}
		}
	}
}

// read answers all reads of one query, or none.
func (s sqliteRows) read(reads []*rowRead) error {
	in, args := s.db.dialect.oneOf(nil, keysOf(reads))
	rows, err := s.db.queryRows(context.Background(), reads[0].query+in, args)
	if err != nil {
		return err
	}
	defer rows.Close()
	return scanEach(rows, lastColumn(rows, len(reads[0].dest)), reads)
}

// lastColumn tells the last of so many columns of the row that rows are at.
func lastColumn(rows *sql.Rows, columns int) func() (string, error) {
	var key string
	dest := make([]any, columns)
	for i := range dest {
		dest[i] = ignored{}
	}
	dest[columns-1] = &key
	return func() (string, error) {
		err := rows.Scan(dest...)
		return key, err
	}
}

// ignored scans a column that nobody asks for.
type ignored struct{}

func (ignored) Scan(any) error { return nil }

// hangUp leaves the connections to their pool.
func (sqliteRows) hangUp() {}
