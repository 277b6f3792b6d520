package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// SchemaError says what is in the database that Bursar did not make, or not there that it made. A trigger, a rule or a policy undoes what
// Bursar writes, in Bursar's own transaction and with rows that Bursar wrote: no MAC shows it. The migrations make none.
type SchemaError struct{ Changes []string }

func (e SchemaError) Error() string {
	return "the database's schema was changed outside Bursar: " + strings.Join(e.Changes, "; ") +
		". Find out who did that; drop what was added, make what is missing or restore a backup, and run \"bursar audit\""
}

// CheckSchema fails with [SchemaError] if a trigger or its like could undo what is written, or a key is not unique that must be.
func (db *DB) CheckSchema(ctx context.Context) error {
	changes, err := schemaChanges(ctx, db.dialect, db.texts)
	if err == nil && len(changes) > 0 {
		err = SchemaError{changes}
	}
	return err
}

// texts collects the one column of a query.
func (db *DB) texts(ctx context.Context, query string) (list []string, err error) {
	err = db.query(ctx, query, collect(&list, itself))
	return list, err
}

// schemaChanges lists what of the schema is not as the migrations make it.
func schemaChanges(ctx context.Context, d dialect, texts func(context.Context, string) ([]string, error)) ([]string, error) {
	changes, err := texts(ctx, d.selfActing)
	for i := range changes {
		changes[i] += " is not Bursar's"
	}
	if err != nil {
		return nil, err
	}
	are, err := texts(ctx, d.uniqueKeys)
	if err != nil {
		return nil, err
	}
	must, err := madeKeys(ctx)
	for _, key := range must {
		if !slices.Contains(are, key) {
			changes = append(changes, "nothing keeps "+key+" unique")
		}
	}
	return changes, err
}

// madeKeys lists the unique keys that the migrations make, from an empty database of their own.
func madeKeys(ctx context.Context) (keys []string, err error) {
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
	if err := migrate(ctx, conn, sqliteDialect); err != nil {
		return nil, fmt.Errorf("make a schema to compare with: %w", err)
	}
	rows, err := conn.QueryContext(ctx, uniqueKeysSQLite)
	if err != nil {
		return nil, err
	}
	return keys, eachRow(rows, collect(&keys, itself))
}

// CheckTriggers fails with [SchemaError] if a trigger or its like could undo what is written.
func (tx *Tx) CheckTriggers(ctx context.Context) error {
	var changes []string
	err := tx.each(ctx, tx.dialect.selfActing, nil, collect(&changes, itself))
	if err == nil && len(changes) > 0 {
		err = SchemaError{changes}
	}
	return err
}
