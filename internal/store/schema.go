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

// schemaChanges lists what of the schema is not as the migrations make it. On PostgreSQL that is what could act by itself, and no more.
func schemaChanges(ctx context.Context, d dialect, texts func(context.Context, string) ([]string, error)) ([]string, error) {
	changes, err := texts(ctx, d.selfActing)
	for i := range changes {
		changes[i] += " is not Bursar's"
	}
	if err != nil {
		return nil, err
	}
	made, err := makeSchema(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := texts(ctx, d.uniqueKeys)
	if err != nil {
		return nil, err
	}
	for _, key := range made.uniqueKeys {
		if !slices.Contains(keys, key) {
			changes = append(changes, "nothing keeps "+key+" unique")
		}
	}
	if d.changed != "" {
		more, err := texts(ctx, d.changed)
		return append(changes, more...), err
	}
	tables, err := texts(ctx, d.definitions)
	for _, table := range made.tables {
		if !slices.ContainsFunc(tables, func(t string) bool { return plainDefinition(t) == plainDefinition(table) }) {
			name, _, _ := strings.Cut(table, "\n")
			changes = append(changes, "the table "+name+" is not as Bursar makes it")
		}
	}
	return changes, err
}

// plainDefinition leaves out comments and how a definition is set.
func plainDefinition(sql string) string {
	var plain []string
	for line := range strings.Lines(sql) {
		code, _, _ := strings.Cut(line, "--")
		plain = append(plain, strings.Fields(code)...)
	}
	return strings.Join(plain, " ")
}

// madeSchema is what the migrations make on SQLite: the unique keys, and the tables with their definitions.
type madeSchema struct{ uniqueKeys, tables []string }

// makeSchema makes it in an empty database of its own.
func makeSchema(ctx context.Context) (made madeSchema, err error) {
	pool, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := migrate(ctx, conn, sqliteDialect); err != nil {
		return made, fmt.Errorf("make a schema to compare with: %w", err)
	}
	for query, list := range map[string]*[]string{uniqueKeysSQLite: &made.uniqueKeys, definitionsSQLite: &made.tables} {
		rows, err := conn.QueryContext(ctx, query)
		if err == nil {
			err = eachRow(rows, collect(list, itself))
		}
		if err != nil {
			return made, err
		}
	}
	return made, nil
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
