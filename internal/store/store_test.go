package store_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/pgtest"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

func TestSQLite(t *testing.T) {
	copies := 0
	paths := map[*store.DB]string{}
	raw := map[string]*sql.DB{}
	recorder := &store.Recorder{}
	open := func(t *testing.T, path string) *store.DB {
		t.Helper()
		db, err := recorder.OpenSQLite(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		paths[db] = path
		return db
	}
	engine := storetest.Engine{
		Trigger:   `CREATE TRIGGER undoing AFTER UPDATE ON payouts BEGIN SELECT 1; END`,
		NoTrigger: `DROP TRIGGER undoing`,
		SchemaChanges: []storetest.SchemaChange{{
			Change: `PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = REPLACE(sql, 'TEXT PRIMARY KEY', 'TEXT PRIMARY KEY ON CONFLICT REPLACE') WHERE name = 'payouts'`,
			Undo:   `PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = REPLACE(sql, ' ON CONFLICT REPLACE', '') WHERE name = 'payouts'`,
			Said:   "the table payouts is not as Bursar makes it",
		}, {
			Change: `DROP INDEX payouts_due`, Undo: `CREATE INDEX payouts_due ON payouts (due_at) WHERE due_at IS NOT NULL`, Said: "the index payouts_due is missing",
		}},
		Open: func(t *testing.T) *store.DB {
			t.Helper()
			return open(t, filepath.Join(t.TempDir(), "bursar.db"))
		},
		Tamper: func(t *testing.T, db *store.DB, statement string) *store.DB {
			t.Helper()
			copies++
			path := filepath.Join(t.TempDir(), fmt.Sprintf("copy%d.db", copies))
			if err := db.Backup(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			tamper(t, "sqlite", "file:"+path, statement) // without foreign keys
			return open(t, path)
		},
		Hands: func(t *testing.T, db *store.DB) func(string) {
			t.Helper()
			return hands(t, "sqlite", "file:"+paths[db]+"?_pragma=busy_timeout(5000)", "")
		},
		Columns: func(t *testing.T, db *store.DB, table string) []storetest.Column {
			t.Helper()
			return columns(t, "sqlite", "file:"+paths[db], table)
		},
		Rows: func(t *testing.T, db *store.DB, query string) []string {
			t.Helper()
			return rows(t, raw, "sqlite", "file:"+paths[db], query)
		},
	}
	storetest.Run(t, engine)
	t.Run("ARepairThatFails", func(t *testing.T) { storetest.RunFailingRepair(t, engine) })
	t.Run("AnInvariantThatFails", func(t *testing.T) {
		invariantsThatFail(t, open(t, filepath.Join(t.TempDir(), "bursar.db")),
			`SELECT '', '', 'a payout' || SUM(n) FROM (SELECT 9223372036854775807 AS n UNION ALL SELECT 1) AS most`)
	})
	t.Run("ReadinessFindsThatTheDiskIsWellAgain", func(t *testing.T) {
		db := open(t, filepath.Join(t.TempDir(), "bursar.db"))
		if !store.FailedToWrite(db, true) {
			t.Error("a full disk is not kept in mind")
		}
		if err := db.Ping(t.Context()); err != nil || store.FailedToWrite(db, false) {
			t.Errorf("after a write that went well the disk is still in trouble: %v", err)
		}
	})
	checkStatements(t, recorder, "postgres")
}

func TestPostgres(t *testing.T) {
	pgtest.ServerURL(t) // or skip
	urls := map[*store.DB]string{}
	raw := map[string]*sql.DB{}
	recorder := &store.Recorder{}
	open := func(t *testing.T, url string) *store.DB {
		t.Helper()
		db, err := recorder.OpenPostgres(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		urls[db] = url
		return db
	}
	storetest.Run(t, storetest.Engine{
		Trigger: `CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
			CREATE TRIGGER undoing AFTER UPDATE ON payouts FOR EACH ROW EXECUTE FUNCTION nothing()`,
		NoTrigger: `DROP TRIGGER undoing ON payouts`,
		SchemaChanges: []storetest.SchemaChange{
			{
				Change: `CREATE FUNCTION repeated(TEXT, BIGINT) RETURNS TEXT LANGUAGE sql AS 'SELECT repeat($1, $2::integer)'; CREATE FUNCTION sly(BIGINT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE AS 'SELECT TRUE'; ALTER TABLE payouts ADD CONSTRAINT sly CHECK (sly(amount))`,
				Undo:   `ALTER TABLE payouts DROP CONSTRAINT sly`, Said: "the check sly on payouts calls a function",
			},
			{
				Change: `ALTER TABLE payouts ADD CONSTRAINT sly CHECK (query_to_xml('SELECT 1', FALSE, TRUE, '') IS NOT NULL)`,
				Undo:   `ALTER TABLE payouts DROP CONSTRAINT sly`, Said: "the check sly on payouts calls a function",
			},
			{
				Change: `ALTER TABLE payouts ALTER COLUMN notes SET DEFAULT clock_timestamp()::text`,
				Undo:   `ALTER TABLE payouts ALTER COLUMN notes DROP DEFAULT`, Said: "a default of payouts calls a function",
			},
			{Change: `CREATE INDEX slow ON payouts (sly(amount))`, Undo: `DROP INDEX slow`, Said: "the index public.slow on payouts calls a function"},
			{
				Change: `CREATE TABLE follower (payout TEXT REFERENCES payouts (id) ON UPDATE CASCADE)`, Undo: `DROP TABLE follower`,
				Said: "the foreign key follower_payout_fkey of public.follower, which refers to payouts, is not Bursar's",
			},
			{
				Change: `CREATE DOMAIN sly_text AS TEXT CHECK (sly(LENGTH(VALUE)::bigint)); ALTER TABLE queued_events ALTER COLUMN type TYPE sly_text`,
				Undo:   `ALTER TABLE queued_events ALTER COLUMN type TYPE TEXT COLLATE "C"; DROP DOMAIN sly_text`, Said: "the type of queued_events.type is not PostgreSQL's",
			},
			{Change: `CREATE TABLE more () INHERITS (payouts)`, Undo: `DROP TABLE more`, Said: "the table public.more, which inherits from payouts, is not Bursar's"},
			{
				Change: `CREATE FUNCTION public.unnest(TEXT[]) RETURNS SETOF TEXT LANGUAGE sql AS 'SELECT pg_catalog.unnest($1)'`,
				Undo:   `DROP FUNCTION public.unnest(TEXT[])`, Said: "the function public.unnest(text[]), called like one of PostgreSQL, is not Bursar's", Acts: true,
			},
			{
				Change: `CREATE AGGREGATE public.count(TEXT) (SFUNC = int8inc_any, STYPE = BIGINT, INITCOND = '0')`,
				Undo:   `DROP AGGREGATE public.count(TEXT)`, Said: "the function public.count(text), called like one of PostgreSQL, is not Bursar's", Acts: true,
			},
			{ // the audit can't count with it
				Change: `CREATE FUNCTION public.count(TEXT) RETURNS BIGINT LANGUAGE sql AS 'SELECT 0::bigint'`,
				Undo:   `DROP FUNCTION public.count(TEXT)`, Said: "the function public.count(text), called like one of PostgreSQL, is not Bursar's", Acts: true,
			},
			{
				Change: `CREATE OPERATOR public.|| (LEFTARG = TEXT, RIGHTARG = BIGINT, FUNCTION = repeated)`,
				Undo:   `DROP OPERATOR public.|| (TEXT, BIGINT)`, Said: "the operator public.||(text,bigint), called like one of PostgreSQL, is not Bursar's", Acts: true,
			},
			{ // they would blind what looks for them
				Change: `CREATE FUNCTION older(OID, INTEGER) RETURNS BOOLEAN LANGUAGE sql AS 'SELECT FALSE'; CREATE OPERATOR public.>= (LEFTARG = OID, RIGHTARG = INTEGER, FUNCTION = older);
					CREATE FUNCTION is_it(OID, REGCLASS) RETURNS BOOLEAN LANGUAGE sql AS 'SELECT FALSE'; CREATE OPERATOR public.= (LEFTARG = OID, RIGHTARG = REGCLASS, FUNCTION = is_it)`,
				Undo: `DROP OPERATOR public.>= (OID, INTEGER); DROP OPERATOR public.= (OID, REGCLASS)`, Said: "the operator public.>=(oid,integer), called like one of PostgreSQL, is not Bursar's", Acts: true,
			},
			{
				Change: `CREATE DOMAIN hidden AS TEXT CHECK (sly(LENGTH(VALUE)::bigint)); CREATE INDEX slow ON queued_events ((type::hidden))`,
				Undo:   `DROP INDEX slow; DROP DOMAIN hidden`, Said: "the index public.slow on queued_events calls a function",
			},
			{Change: `CREATE STATISTICS slow ON (sly(amount)) FROM payouts`, Undo: `DROP STATISTICS slow`, Said: "the statistics slow of payouts call a function"},
			{
				Change: `ALTER TABLE earnings DISABLE TRIGGER ALL`, Undo: `ALTER TABLE earnings ENABLE TRIGGER ALL`,
				Said: "what checks the constraint earnings_seller_id_fkey of earnings is turned off",
			},
			{
				Change: `ALTER TABLE journals ALTER COLUMN available TYPE DOUBLE PRECISION`, Undo: `ALTER TABLE journals ALTER COLUMN available TYPE BIGINT`,
				Said: "the column journals.available is not as Bursar makes it",
			},
			{
				Change: `ALTER TABLE payouts ADD CONSTRAINT one EXCLUDE USING btree (seller_id WITH =)`, Undo: `ALTER TABLE payouts DROP CONSTRAINT one`,
				Said: "the constraint one of payouts is not Bursar's",
			},
			{
				Change: `ALTER TABLE settings DROP CONSTRAINT settings_pkey, ADD PRIMARY KEY (name) DEFERRABLE`, Undo: `ALTER TABLE settings DROP CONSTRAINT settings_pkey, ADD PRIMARY KEY (name)`,
				Said: "the constraint settings_pkey of settings is not as Bursar makes it",
			},
			{Change: `ALTER TABLE entries ADD COLUMN note TEXT`, Undo: `ALTER TABLE entries DROP COLUMN note`, Said: "the column entries.note is not Bursar's"},
			{Change: `ALTER TABLE entries SET UNLOGGED`, Undo: `ALTER TABLE entries SET LOGGED`, Said: "the table entries is not as Bursar makes it"},
			{Change: `DROP INDEX payouts_due`, Undo: `CREATE INDEX payouts_due ON payouts (due_at) WHERE due_at IS NOT NULL`, Said: "the index payouts_due is missing"},
		},
		Open: func(t *testing.T) *store.DB {
			t.Helper()
			url := pgtest.New(t)
			t.Cleanup(func() { wantNoDeadlock(t, url) })
			return open(t, url)
		},
		Tamper: func(t *testing.T, db *store.DB, statement string) *store.DB {
			t.Helper()
			url := pgtest.Copy(t, urls[db])
			tamper(t, "pgx", url, "SET session_replication_role = replica; "+statement) // without foreign keys
			return open(t, url)
		},
		Hands: func(t *testing.T, db *store.DB) func(string) {
			t.Helper()
			return hands(t, "pgx", urls[db], "SET session_replication_role = replica; ")
		},
		Columns: func(t *testing.T, db *store.DB, table string) []storetest.Column {
			t.Helper()
			return columns(t, "pgx", urls[db], table)
		},
		Waiting: `SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE NOT l.granted AND a.datname = current_database()`,
		Rows: func(t *testing.T, db *store.DB, query string) []string {
			t.Helper()
			return rows(t, raw, "pgx", urls[db], query)
		},
	})
	t.Run("AnInvariantThatFails", func(t *testing.T) {
		invariantsThatFail(t, open(t, pgtest.New(t)), `SELECT '', '', 'a payout' || (n + 1) FROM (SELECT CAST(9223372036854775807 AS BIGINT) AS n) AS most`)
	})
	checkStatements(t, recorder, "sqlite")
}

// invariantsThatFail has invariants that find NULL or a number that is too large, which the audit reports as violations. Any other
// trouble ends the audit. overflows is a query with such a number.
func invariantsThatFail(t *testing.T, db *store.DB, overflows string) {
	t.Helper()
	for query, want := range map[string]struct {
		found []string
		ends  bool
	}{
		`SELECT '', '', 'a payout' UNION ALL SELECT '', '', NULL ORDER BY 3 DESC`: {found: []string{"a payout", store.Nameless}},
		overflows:                                    {found: []string{store.TooLarge}},
		`SELECT '', '', 'a payout' WHERE 1 = 0`:      {},
		`SELECT '', '', 'a payout' FROM thin_air`:    {ends: true},
		`SELECT '', '', 'a payout' WHERE no_such(1)`: {ends: true},
	} {
		found, err := store.Check(t.Context(), db, query)
		if strings.HasSuffix(query, "DESC") { // engines differ in where nothing is sorted to
			slices.Sort(found)
			slices.Sort(want.found)
		}
		if !slices.Equal(found, want.found) || (err != nil) != want.ends {
			t.Errorf("%s finds %q and ends with %v, want %q", query, found, err, want.found)
		}
	}
}

// checkStatements holds the suite to running every statement of the package on this engine, unless the
// command line chose a part of the suite.
func checkStatements(t *testing.T, recorder *store.Recorder, otherEngine string) {
	t.Helper()
	if !t.Failed() && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		recorder.Check(t, otherEngine)
	}
}

// wantNoDeadlock fails if transactions ever waited for each other in a circle: one of them was undone
// then, and all of them waited for nothing. It has to be asked once the database is closed, because
// connections tell of it when they end.
func wantNoDeadlock(t *testing.T, url string) {
	t.Helper()
	raw, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	const question = `SELECT deadlocks, (SELECT COUNT(*) FROM pg_stat_activity a WHERE a.datid = d.datid AND pid <> pg_backend_pid())
		FROM pg_stat_database d WHERE datname = current_database()`
	deadlocks, connections := 0, 1
	for range 500 {
		if err := raw.QueryRowContext(context.WithoutCancel(t.Context()), question).Scan(&deadlocks, &connections); err != nil {
			t.Fatal(err)
		}
		if connections == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if deadlocks != 0 || connections != 0 {
		t.Errorf("%d deadlocks, want none; %d connections were left open", deadlocks, connections)
	}
}

// tamper runs a statement that must change something.
func tamper(t *testing.T, driver, address, statement string) {
	t.Helper()
	raw, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	result, err := raw.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s changed %d rows, %v", statement, n, err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
}

// hands runs statements on a database that is in use.
func hands(t *testing.T, driver, address, before string) func(statement string) {
	t.Helper()
	raw, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	return func(statement string) {
		t.Helper()
		if _, err := raw.ExecContext(t.Context(), before+statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// rows reads a query's rows, each as one text.
func rows(t *testing.T, open map[string]*sql.DB, driver, address, query string) []string {
	t.Helper()
	raw := open[address]
	if raw == nil {
		var err error
		if raw, err = sql.Open(driver, address); err != nil {
			t.Fatal(err)
		}
		open[address] = raw
		t.Cleanup(func() { delete(open, address); _ = raw.Close() })
	}
	found, err := raw.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer found.Close()
	names, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for found.Next() {
		row := make([]any, len(names))
		for i := range row {
			row[i] = new(any)
		}
		if err := found.Scan(row...); err != nil {
			t.Fatal(err)
		}
		for i := range row {
			row[i] = *row[i].(*any)
		}
		all = append(all, fmt.Sprintf("%q", row))
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func columns(t *testing.T, driver, address, table string) []storetest.Column {
	t.Helper()
	raw, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	rows, err := raw.QueryContext(t.Context(), "SELECT * FROM "+table+" LIMIT 0")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err = errors.Join(err, rows.Err()); err != nil {
		t.Fatal(err)
	}
	var all []storetest.Column
	for _, c := range types {
		all = append(all, storetest.Column{Name: c.Name(), IsNumber: strings.HasPrefix(c.DatabaseTypeName(), "INT")})
	}
	return all
}
