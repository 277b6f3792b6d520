package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// SchemaError says what is in the database that Bursar did not make, or not there that it made. A trigger, a rule or a policy undoes what
// Bursar writes, in Bursar's own transaction and with rows that Bursar wrote: no MAC shows it. The migrations make none.
type SchemaError struct{ Changes []string }

func (e SchemaError) Error() string {
	return "the database's schema was changed outside Bursar: " + strings.Join(e.Changes, "; ") +
		". Find out who did that; drop what was added, make what is missing or restore a backup, and run \"bursar audit\""
}

// CheckSchema fails with [SchemaError] if a trigger or its like could undo what is written, or a table is not as the migrations make it.
// What a newer version has added is let be, so that this one can take its place.
func (db *DB) CheckSchema(ctx context.Context) error {
	tx, err := db.beginView(ctx)
	if err != nil {
		return db.dialect.unreadable(err)
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	changes, err := db.schemaChanges(ctx, func(ctx context.Context, query string, args ...any) (list []string, _ error) {
		rows, err := viewed{tx, db.fail}.QueryContext(ctx, query, args...)
		if err == nil {
			err = eachRow(rows, collect(&list, itself))
		}
		return list, db.dialect.unreadable(err)
	})
	if err == nil && len(changes) > 0 {
		err = SchemaError{changes}
	}
	return err
}

// textReader reads the one column of a query, always in one transaction.
type textReader func(ctx context.Context, query string, args ...any) ([]string, error)

// amongOwn runs check with the argument of a dialect's queries of the schema, while names are looked up among the engine's own alone.
func (d dialect) amongOwn(ctx context.Context, read textReader, check func(args ...any) error) error {
	if d.onlyOwn == "" {
		return check()
	}
	found, err := read(ctx, d.onlyOwn)
	if err != nil {
		return err
	}
	schemas, path, _ := strings.Cut(found[0], "\n")
	if err := check(schemas); err != nil {
		return err
	}
	_, err = read(ctx, d.usual, path[:strings.LastIndexByte(path, '\n')])
	return err
}

// schemaChanges lists what of the schema is not Bursar's, or not as the migrations make it.
func (db *DB) schemaChanges(ctx context.Context, read textReader) (changes []string, err error) {
	d := db.dialect
	var definitions []string
	err = d.amongOwn(ctx, read, func(args ...any) error {
		acting, err := read(ctx, d.selfActing, args...)
		if err != nil {
			return err
		}
		for _, a := range acting {
			changes = append(changes, a+" is not Bursar's")
		}
		if d.changed != "" {
			more, err := read(ctx, d.changed, args...)
			if err != nil {
				return err
			}
			changes = append(changes, more...)
		}
		definitions, err = read(ctx, d.definitions, args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	applied, err := read(ctx, `SELECT name FROM schema_migrations ORDER BY name`)
	if err != nil {
		return nil, err
	}
	newer, err := unknownMigrations(applied)
	if err != nil {
		return nil, err
	}
	version, err := read(ctx, d.version)
	if err != nil {
		return nil, err
	}
	made, err := db.madeSchema(ctx, version[0])
	if err != nil {
		return nil, fmt.Errorf("make a schema to compare with: %w", err)
	}
	return append(changes, compareDefinitions(definitions, made, len(newer) > 0)...), nil
}

// madeSchemas are what the migrations make, by the version of the engine: nothing else changes it.
var madeSchemas sync.Map

func (db *DB) madeSchema(ctx context.Context, version string) ([]string, error) {
	if made, isMade := madeSchemas.Load(version); isMade {
		return made.([]string), nil
	}
	made, err := db.dialect.makeSchema(ctx, db)
	if err == nil {
		madeSchemas.Store(version, made)
	}
	return made, err
}

// compareDefinitions says what is not as it was made. Of what was added it names columns and constraints, which may refuse what Bursar
// writes. An operator may add tables and indexes, and a newer version columns and constraints as well: a table that is defined as a whole
// is not compared then.
func compareDefinitions(definitions, made []string, byNewer bool) (changes []string) {
	there, own := byName(definitions), byName(made)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		switch definition, isThere := there[name]; {
		case !isThere:
			changes = append(changes, name+" is missing")
		case definition != own[name] && !(byNewer && strings.HasPrefix(definition, "CREATE TABLE ")):
			changes = append(changes, name+" is not as Bursar makes it")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		_, isOwn := own[name]
		if !isOwn && !byNewer && (strings.HasPrefix(name, "the column ") || strings.HasPrefix(name, "the constraint ")) {
			changes = append(changes, name+" is not Bursar's")
		}
	}
	return changes
}

// byName splits each definition from its name.
func byName(definitions []string) map[string]string {
	split := make(map[string]string, len(definitions))
	for _, d := range definitions {
		name, definition, _ := strings.Cut(d, "\n")
		split[name] = plainDefinition(definition)
	}
	return split
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

// CheckTriggers fails with [SchemaError] if a trigger or its like could undo what is written.
func (tx *Tx) CheckTriggers(ctx context.Context) error {
	read := func(ctx context.Context, query string, args ...any) (list []string, err error) {
		err = tx.each(ctx, query, args, collect(&list, itself))
		return list, err
	}
	var changes []string
	err := tx.dialect.amongOwn(ctx, read, func(args ...any) (err error) {
		changes, err = read(ctx, tx.dialect.selfActing, args...)
		return err
	})
	if err == nil && len(changes) > 0 {
		err = SchemaError{changes}
	}
	return err
}
