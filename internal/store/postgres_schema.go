package store

import "strings"

// What [DB.CheckSchema] asks PostgreSQL, of Bursar's tables alone, wherever its statements find them.
const (
	uniqueKeysPostgres = `SELECT t.relname || ' (' || (SELECT string_agg(a.attname, ', ' ORDER BY k.place)
			FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place) JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number) || ')'
			|| CASE WHEN i.indpred IS NULL THEN '' ELSE ' in part' END
		FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
		WHERE i.indisunique AND i.indisvalid AND i.indexprs IS NULL AND t.relkind = 'r' AND t.relnamespace = ` + ownSchema
	ownSchema = `(SELECT relnamespace FROM pg_class WHERE oid = to_regclass('schema_migrations'))`
)

// selfActingPostgres names Bursar's tables one by one.
var selfActingPostgres = `SELECT 'the trigger ' || t.tgname || ' on ' || c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
		WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND` + ownTable() + `
	UNION ALL SELECT 'the rule ' || w.rulename || ' on ' || c.relname FROM pg_rewrite w JOIN pg_class c ON c.oid = w.ev_class
		WHERE w.ev_enabled <> 'D' AND` + ownTable() + `
	UNION ALL SELECT 'the row level security of ' || c.relname FROM pg_class c WHERE row_security_active(c.oid) AND` + ownTable()

// changedPostgres finds tables that add their rows to Bursar's or change with them, and functions that act where a row is written. Those that Bursar's own
// checks, defaults and indexes call are PostgreSQL's, and immutable.
var changedPostgres = `SELECT 'the table ' || i.inhrelid::regclass || ', which inherits from ' || c.relname || ', is not Bursar''s'
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
		WHERE ` + callsFunction(`pg_class`, `x.indexrelid`, `NULL::text`) + ` AND` + ownTable()

// callsFunction is a condition that an object of a catalog calls a function or an operator that is not PostgreSQL's, or one that is
// not immutable, such as those that run a statement. An index can't call those.
func callsFunction(catalog, object, expression string) string {
	return `(EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = '` + catalog + `'::regclass AND d.objid = ` + object + `
				AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass))
			OR EXISTS (SELECT 1 FROM regexp_matches(` + expression + `::text, ':funcid ([0-9]+)', 'g') AS called (ids) JOIN pg_proc f ON f.oid = ids[1]::oid
				WHERE f.provolatile <> 'i'))`
}

// ownTable is a condition that c is one of Bursar's tables.
func ownTable() string {
	var tables []string
	for _, name := range ownTables() {
		tables = append(tables, `'`+name+`'`)
	}
	return ` c.relnamespace = ` + ownSchema + ` AND c.relname IN (` + strings.Join(tables, `, `) + `)`
}
