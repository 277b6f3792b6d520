package store

import (
	"context"
	"database/sql"
	"errors"
)

// What [DB.CheckSchema] asks SQLite.
const (
	// SQLite also runs a trigger whose kind was written outside the service, in capitals. It opens no database with one under a kind in this list.
	selfActingSQLite = `SELECT 'the trigger ' || name || ' on ' || tbl_name FROM sqlite_master WHERE type NOT IN ('table', 'index', 'view')`
	// The index of a key that a table's own statement makes has no statement.
	definitionsSQLite = `SELECT 'the ' || type || ' ' || name || char(10) || sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL`
)

// makeSchemaSQLite lists the definitions of an empty database in memory.
func makeSchemaSQLite(ctx context.Context, db *DB) (made []string, err error) {
	pool, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := migrate(ctx, conn, db.dialect); err != nil {
		return nil, err
	}
	rows, err := conn.QueryContext(ctx, db.dialect.definitions)
	if err != nil {
		return nil, err
	}
	return made, eachRow(rows, collect(&made, itself))
}
