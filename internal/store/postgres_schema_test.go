package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"bursar/internal/pgtest"
	"bursar/internal/store"
)

// noSetting changes nothing in an address.
const noSetting = "application_name=test"

// checkedPostgres opens a database, has statements run on it, and opens it again with a setting more in its address. It returns what the check of
// the schema says then.
func checkedPostgres(t *testing.T, statements, address string) error {
	t.Helper()
	url := pgtest.New(t)
	open := func(url string) *store.DB {
		db, err := store.OpenPostgres(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	open(url)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), statements); err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
	return open(url + "&" + address).CheckSchema(t.Context())
}

// What a search path puts before PostgreSQL's own or Bursar's tables is used in their place.
func TestCheckSchemaPostgres_SearchPath(t *testing.T) {
	for name, a := range map[string]struct{ statements, address, want string }{
		"pg_catalog last": {
			"SELECT 1", "search_path=public,pg_catalog", `the schema pg_catalog behind another one in the search_path ["public","pg_catalog"] is not Bursar's`,
		},
		"tables of two schemas": {
			"CREATE SCHEMA sly; CREATE TABLE sly.schema_migrations AS SELECT * FROM schema_migrations", "search_path=sly,public",
			"the table public.payouts, which is in another schema than schema_migrations, is not Bursar's",
		},
		"a function in an earlier schema": {
			"CREATE SCHEMA sly; CREATE FUNCTION sly.unnest(bigint[]) RETURNS SETOF bigint LANGUAGE sql AS 'SELECT pg_catalog.unnest($1)'", "search_path=sly,public",
			"the function sly.unnest(bigint[]), called like one of PostgreSQL, is not Bursar's",
		},
		"a function in a schema with capitals": {
			`CREATE SCHEMA "Sly"; CREATE FUNCTION "Sly".unnest(bigint[]) RETURNS SETOF bigint LANGUAGE sql AS 'SELECT pg_catalog.unnest($1)'`, "search_path=public,%22Sly%22",
			`the function "Sly".unnest(bigint[]), called like one of PostgreSQL, is not Bursar's`,
		},
		"a view in the place of a table": {
			"ALTER TABLE schema_migrations RENAME TO kept; CREATE VIEW schema_migrations AS TABLE kept", noSetting, "the table schema_migrations is not as Bursar makes it",
		},
		"views that hide a trigger": {
			`CREATE FUNCTION act() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER sly BEFORE UPDATE ON journals FOR EACH ROW EXECUTE FUNCTION act();
				CREATE VIEW public.pg_trigger AS TABLE pg_catalog.pg_trigger LIMIT 0; CREATE VIEW public.pg_proc AS TABLE pg_catalog.pg_proc LIMIT 0`, "search_path=public,pg_catalog",
			"the trigger sly on journals is not Bursar's",
		},
		"checks of foreign keys off": {"SELECT 1", "session_replication_role=replica", "session_replication_role is replica"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkedPostgres(t, a.statements, a.address)
			if !errors.As(err, new(store.SchemaError)) || !strings.Contains(err.Error(), a.want) {
				t.Errorf("the check says %v, want %s", err, a.want)
			}
		})
	}
}

// A schema that was put before Bursar's in the search path, such as one called like the role, gets no tables: Bursar would seem to be empty.
func TestOpenPostgres_EarlierSchema_GetsNoTables(t *testing.T) {
	url := pgtest.New(t)
	open := func() *store.DB {
		db, err := store.OpenPostgres(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	if _, err := open().Pin(t.Context(), "currency", "INR"); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var role string
	if err := conn.QueryRow(t.Context(), `SELECT current_user`).Scan(&role); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `CREATE SCHEMA `+pgx.Identifier{role}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	db := open()
	if err := db.CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
	var tables int
	if err := conn.QueryRow(t.Context(), `SELECT COUNT(*) FROM pg_tables WHERE schemaname = current_user`).Scan(&tables); err != nil || tables > 0 {
		t.Errorf("the schema of the role has %d tables, %v; want none", tables, err)
	}
	if pinned, err := db.Pin(t.Context(), "currency", "USD"); err != nil || pinned != "INR" {
		t.Errorf("the currency is %s, %v; want what was pinned before", pinned, err)
	}
}

// What an operator may add stands in nobody's way: tables, indexes, functions of other names, a schema of Bursar's own. Nor do few connections.
func TestCheckSchemaPostgres_Additions_AreLetBe(t *testing.T) {
	for name, a := range map[string]struct{ statements, address string }{
		"a table":              {"CREATE TABLE reports (payout TEXT, n BIGINT DEFAULT random())", noSetting},
		"an index":             {"CREATE INDEX reports ON payouts (amount)", noSetting},
		"statistics":           {"CREATE STATISTICS reports ON seller_id, status FROM payouts", noSetting},
		"a view":               {"CREATE VIEW reports AS SELECT id FROM payouts", noSetting},
		"a function":           {"CREATE FUNCTION reports(BIGINT) RETURNS BIGINT LANGUAGE sql AS 'SELECT $1'", noSetting},
		"a function elsewhere": {"CREATE SCHEMA other; CREATE FUNCTION other.unnest(TEXT[]) RETURNS BIGINT LANGUAGE sql AS 'SELECT 1'", noSetting},
		"a newer version":      {"ALTER TABLE users ADD COLUMN later BIGINT CHECK (later > 0); INSERT INTO schema_migrations VALUES ('9999_later.sql', 'x', 1)", noSetting},
		"two connections":      {"SELECT 1", "pool_max_conns=2"},
		"a schema of its own":  {"CREATE SCHEMA own", "search_path=own"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkedPostgres(t, a.statements, a.address); err != nil {
				t.Error(err)
			}
		})
	}
}

// Extensions have functions of PostgreSQL's names for types of their own.
func TestCheckSchemaPostgres_Extension_IsLetBe(t *testing.T) {
	url := pgtest.New(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var available bool
	if err := conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'citext')`).Scan(&available); err != nil || !available {
		t.Skipf("the server has no extension citext to try: %v", err)
	}
	if err := checkedPostgres(t, "CREATE EXTENSION citext", noSetting); err != nil {
		t.Error(err)
	}
}
