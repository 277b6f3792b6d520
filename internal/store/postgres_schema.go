package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"bursar/internal/ledger"
)

// The queries of the schema are run with PostgreSQL's own schema as the only one in the search path, since a function, an operator or a view in
// another one could take the place of what they name. Their argument is the list of schemas in the usual path, in which statements find
// Bursar's tables. What reads and sets the path names each function with its schema.
const (
	onlyOwnPostgres = `SELECT pg_catalog.concat_ws(E'\n', pg_catalog.array_to_json(pg_catalog.current_schemas(false)), pg_catalog.current_setting('search_path'),
		pg_catalog.set_config('search_path', 'pg_catalog', true))`
	usualPostgres = `SELECT pg_catalog.set_config('search_path', $1, true)`
	// inSchemas begins each query: own is the schema of Bursar's tables.
	inSchemas = `WITH schemas AS (SELECT n.oid, s.place FROM json_array_elements_text($1::text::json) WITH ORDINALITY AS s (name, place) JOIN pg_namespace n ON n.nspname = s.name),
		own AS (SELECT s.oid FROM schemas s JOIN pg_class m ON m.relnamespace = s.oid AND m.relname = 'schema_migrations' ORDER BY s.place LIMIT 1)
	`
)

// selfActingPostgres names Bursar's tables one by one. A function or an operator beside PostgreSQL's own that fits a statement's types better is
// called in its place. What was made since the database was has an id from 16384.
var selfActingPostgres = inSchemas + `SELECT 'the trigger ' || t.tgname || ' on ' || c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
		WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND` + ownTable() + `
	UNION ALL SELECT 'the rule ' || w.rulename || ' on ' || c.relname FROM pg_rewrite w JOIN pg_class c ON c.oid = w.ev_class
		WHERE w.ev_enabled <> 'D' AND` + ownTable() + `
	UNION ALL SELECT 'the row level security of ' || c.relname FROM pg_class c WHERE row_security_active(c.oid) AND` + ownTable() + `
	UNION ALL SELECT 'the table ' || seen.oid::regclass || ', which is in another schema than schema_migrations,'
		FROM (SELECT DISTINCT ON (c.relname) c.oid, c.relnamespace FROM schemas s JOIN pg_class c ON c.relnamespace = s.oid
			WHERE c.relname IN ` + ownNames() + ` ORDER BY c.relname, s.place) AS seen WHERE seen.relnamespace <> (SELECT oid FROM own)
	UNION ALL SELECT 'the function ' || f.oid::regprocedure || ', called like one of PostgreSQL,' FROM pg_proc f JOIN pg_language l ON l.oid = f.prolang
		WHERE f.oid >= 16384 AND (l.lanname NOT IN ('c', 'internal') OR f.prokind = 'a') AND f.pronamespace IN (SELECT oid FROM schemas)
			AND EXISTS (SELECT 1 FROM pg_proc o WHERE o.proname = f.proname AND o.pronamespace = 'pg_catalog'::regnamespace) AND ` + notExtensions(`f.oid`, `f.proargtypes::oid[]`) + `
	UNION ALL SELECT 'the operator ' || p.oid::regoperator || ', called like one of PostgreSQL,' FROM pg_operator p
		JOIN pg_proc f ON f.oid = p.oprcode JOIN pg_language l ON l.oid = f.prolang
		WHERE p.oid >= 16384 AND l.lanname <> 'c' AND p.oprnamespace IN (SELECT oid FROM schemas)
			AND EXISTS (SELECT 1 FROM pg_operator o WHERE o.oprname = p.oprname AND o.oprnamespace = 'pg_catalog'::regnamespace) AND ` + notExtensions(`p.oid`, `ARRAY[p.oprleft, p.oprright]`) + `
	UNION ALL SELECT 'the schema pg_catalog behind another one in the search_path ' || $1::text
		FROM schemas WHERE place > 1 AND oid = 'pg_catalog'::regnamespace`

// notExtensions is a condition that a function or an operator, or a type that it takes, is no extension's: what extensions such as citext do for
// their own types is never called for Bursar's. (Functions in C or of the server only a superuser can make, or an extension.)
func notExtensions(object, types string) string {
	return `(NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = ` + object + ` AND d.deptype = 'e')
				OR NOT EXISTS (SELECT 1 FROM pg_type y WHERE y.oid = ANY(` + types + `) AND y.typnamespace <> 'pg_catalog'::regnamespace))`
}

// changedPostgres finds tables that add their rows to Bursar's or change with them, and functions that act where a row is written. Those that Bursar's own
// checks, defaults and indexes call are PostgreSQL's, and immutable.
var changedPostgres = inSchemas + `SELECT 'the table ' || i.inhrelid::regclass || ', which inherits from ' || c.relname || ', is not Bursar''s'
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent WHERE` + ownTable() + `
	UNION ALL SELECT 'the foreign key ' || k.conname || ' of ' || k.conrelid::regclass || ', which refers to ' || c.relname || ', is not Bursar''s'
		FROM pg_constraint k JOIN pg_class c ON c.oid = k.confrelid
		WHERE k.contype = 'f' AND (k.confupdtype <> 'a' OR k.confdeltype <> 'a' OR k.conrelid NOT IN (SELECT c.oid FROM pg_class c WHERE` + ownTable() + `)) AND` + ownTable() + `
	UNION ALL SELECT 'the type of ' || c.relname || '.' || a.attname || ' is not PostgreSQL''s' FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		JOIN pg_type y ON y.oid = a.atttypid WHERE a.attnum > 0 AND y.typnamespace <> 'pg_catalog'::regnamespace AND` + ownTable() + `
	UNION ALL SELECT 'the check ' || k.conname || ' on ' || c.relname || ' calls a function' FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
		WHERE k.contype = 'c' AND ` + callsFunction(`pg_constraint`, `k.oid`, `k.conbin`) + ` AND` + ownTable() + `
	UNION ALL SELECT 'a default of ' || c.relname || ' calls a function' FROM pg_attrdef a JOIN pg_class c ON c.oid = a.adrelid
		WHERE ` + callsFunction(`pg_attrdef`, `a.oid`, `a.adbin`) + ` AND` + ownTable() + `
	UNION ALL SELECT 'the index ' || x.indexrelid::regclass || ' on ' || c.relname || ' calls a function' FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid
		WHERE ` + callsFunction(`pg_class`, `x.indexrelid`, `NULL::text`) + ` AND` + ownTable() + `
	UNION ALL SELECT 'the statistics ' || s.stxname || ' of ' || c.relname || ' call a function' FROM pg_statistic_ext s JOIN pg_class c ON c.oid = s.stxrelid
		WHERE ` + callsFunction(`pg_statistic_ext`, `s.oid`, `NULL::text`) + ` AND` + ownTable() + `
	UNION ALL SELECT 'what checks the constraint ' || k.conname || ' of ' || c.relname || ' is turned off' FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
		WHERE EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgconstraint = k.oid AND t.tgenabled <> 'O') AND` + ownTable() + `
	UNION ALL SELECT 'session_replication_role is ' || current_setting('session_replication_role') || ', which turns off what checks foreign keys'
		WHERE current_setting('session_replication_role') <> 'origin'`

// definitionsPostgres lists tables, columns, constraints, and indexes that no constraint has. The tables to compare with are temporary. Casts and
// parentheses are left out, because a dump may write them otherwise.
var definitionsPostgres = inSchemas + `SELECT 'the table ' || c.relname || chr(10) || c.relkind::text || replace(c.relpersistence::text, 't', 'p') FROM pg_class c WHERE` + ownTable() + `
	UNION ALL SELECT 'the column ' || c.relname || '.' || a.attname || chr(10) || concat_ws(' ', format_type(a.atttypid, a.atttypmod),
			(SELECT o.collname FROM pg_collation o WHERE o.oid = a.attcollation), a.attnotnull, a.attidentity, a.attgenerated, ` + plainExpression(`pg_get_expr(e.adbin, e.adrelid)`) + `)
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
		WHERE a.attnum > 0 AND NOT a.attisdropped AND` + ownTable() + `
	UNION ALL SELECT 'the constraint ' || k.conname || ' of ' || c.relname || chr(10) || ` + plainExpression(`CASE k.contype WHEN 'f' THEN replace(pg_get_constraintdef(k.oid), c.relnamespace::regnamespace || '.', '') ELSE pg_get_constraintdef(k.oid) END`) + `
		FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE k.contype IN ('c', 'f', 'p', 'u', 'x') AND` + ownTable() + `
	UNION ALL SELECT 'the index ' || x.relname || chr(10) || i.indisunique || i.indisvalid || ` + plainExpression(`substring(pg_get_indexdef(x.oid) FROM ' USING .*')`) + `
		FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid
		WHERE NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = x.oid AND k.conrelid = c.oid) AND` + ownTable()

// plainExpression leaves out casts to the types of Bursar's columns, and parentheses.
func plainExpression(sql string) string {
	return `regexp_replace(` + sql + `, '::(text|bigint|integer)|[()]', '', 'g')`
}

// makeSchemaPostgres lists the definitions of temporary tables that the migrations make, and drops those again.
func makeSchemaPostgres(ctx context.Context, db *DB) (made []string, err error) {
	err = ledger.DryRun(db.writer.update)(ctx, func(tx *Tx) error {
		if _, err := tx.exec(ctx, `SET LOCAL search_path = pg_temp`); err != nil {
			return err
		}
		if err := applyMigrations(ctx, tx); err != nil {
			return err
		}
		var schemas string
		if _, err := tx.one(ctx, `SELECT json_build_array(nspname)::text FROM pg_namespace WHERE oid = pg_my_temp_schema()`, nil, &schemas); err != nil {
			return err
		}
		return tx.each(ctx, definitionsPostgres, []any{schemas}, collect(&made, itself))
	})
	if denied, ok := errors.AsType[*pgconn.PgError](err); ok && denied.Code == insufficientPrivilege {
		err = fmt.Errorf("%w; let Bursar's role make temporary tables: GRANT TEMPORARY ON DATABASE the_database TO the_role", err)
	}
	return made, err
}

// insufficientPrivilege is what a statement ends with that the role may not run.
const insufficientPrivilege = "42501"

// callsFunction is a condition that an object of a catalog calls a function or an operator that is not PostgreSQL's, or one that is
// not immutable, such as those that run a statement. An index can't call those.
func callsFunction(catalog, object, expression string) string {
	return `(EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = '` + catalog + `'::regclass AND d.objid = ` + object + `
				AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass, 'pg_type'::regclass))
			OR EXISTS (SELECT 1 FROM regexp_matches(` + expression + `::text, ':funcid ([0-9]+)', 'g') AS called (ids) JOIN pg_proc f ON f.oid = ids[1]::oid
				WHERE f.provolatile <> 'i'))`
}

// ownTable is a condition that c is one of Bursar's tables.
func ownTable() string {
	return ` c.relnamespace = (SELECT oid FROM own) AND c.relname IN ` + ownNames()
}

func ownNames() string {
	tables := []string{`'schema_migrations'`}
	for _, name := range ownTables() {
		tables = append(tables, `'`+name+`'`)
	}
	return `(` + strings.Join(tables, `, `) + `)`
}
