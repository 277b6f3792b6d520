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
