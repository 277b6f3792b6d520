package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A trigger, a rule or a policy undoes what Bursar writes, in Bursar's own transaction and with rows that Bursar wrote: no MAC shows it.
// The migrations make none. PostgreSQL is asked about Bursar's tables alone, wherever its statements find them.
const (
	selfActingSQLite = `SELECT 'the trigger ' || name || ' on ' || tbl_name FROM sqlite_master WHERE type = 'trigger'`
	uniqueKeysSQLite = `SELECT m.name || ' (' || (SELECT group_concat(c.name, ', ' ORDER BY c.seqno) FROM pragma_index_info(i.name) c) || ')'
			|| CASE WHEN i.partial = 1 THEN ' in part' ELSE '' END
		FROM sqlite_master m JOIN pragma_index_list(m.name) i WHERE m.type = 'table' AND i."unique" = 1`
	uniqueKeysPostgres = `SELECT t.relname || ' (' || (SELECT string_agg(a.attname, ', ' ORDER BY k.place)
			FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place) JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number) || ')'
			|| CASE WHEN i.indpred IS NULL THEN '' ELSE ' in part' END
		FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
		WHERE i.indisunique AND i.indisvalid AND i.indexprs IS NULL AND t.relkind = 'r' AND t.relnamespace = ` + ownSchema
	ownSchema = `(SELECT relnamespace FROM pg_class WHERE oid = to_regclass('schema_migrations'))`
)

// selfActingPostgres names Bursar's tables one by one.
var selfActingPostgres = func() string {
	var tables []string
	for _, name := range ownTables() {
		tables = append(tables, `'`+name+`'`)
	}
	own := ` c.relnamespace = ` + ownSchema + ` AND c.relname IN (` + strings.Join(tables, `, `) + `)`
	return `SELECT 'the trigger ' || t.tgname || ' on ' || c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
			WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND` + own + `
		UNION ALL SELECT 'the rule ' || w.rulename || ' on ' || c.relname FROM pg_rewrite w JOIN pg_class c ON c.oid = w.ev_class
			WHERE w.ev_enabled <> 'D' AND` + own + `
		UNION ALL SELECT 'the row level security of ' || c.relname FROM pg_class c WHERE row_security_active(c.oid) AND` + own
}()

// ownTables are those that the migrations make.
func ownTables() (tables []string) {
	all, err := migrations()
	if err != nil {
		panic("store: " + err.Error()) // they are in the program
	}
	for _, m := range all {
		for _, made := range madeTable.FindAllStringSubmatch(m.body, -1) {
			tables = append(tables, made[1])
		}
	}
	return tables
}

var madeTable = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// SchemaError says what is in the database that Bursar did not make, or not there that it made.
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
