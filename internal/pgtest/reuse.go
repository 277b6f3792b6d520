package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// reused is a database that tests use one after another. To put its rows back takes a quarter of the time of making another one.
type reused struct {
	url, name string
	conn      *pgx.Conn // is kept: to connect is most of the work
	warm      *warm     // keeps the tests' connections; nil where they are not kept
	uses      int
}

// mostUses of a database: the rows that were deleted stay in its files, since the throw-away server cleans none up.
const mostUses = 20

// templates are the databases like a template, by its URL, and what is known of it.
var templates = struct {
	sync.Mutex
	of map[string]*template
}{of: map[string]*template{}}

type template struct {
	free []*reused
	// putBack are statements that make the rows of a database the template's.
	putBack string
	// schema changes whenever a table, an index, a function or the like is made, changed or dropped.
	schema string
}

// Reused returns the URL of a database that holds what the template holds, for one test. It may have been another test's: then the rows
// were put back, and the schema was as in the template. The template has to stay as it is, and its tables lie in the schema public.
func Reused(t testing.TB, original string) string {
	t.Helper()
	templates.Lock()
	defer templates.Unlock()
	of := templates.of[original]
	if of == nil {
		of = &template{}
		templates.of[original] = of
	}
	var db *reused
	if last := len(of.free) - 1; last >= 0 {
		db, of.free = of.free[last], of.free[:last]
	} else {
		db = copyToReuse(t, original, of)
	}
	db.uses++
	t.Cleanup(func() {
		if db.uses < mostUses && db.restore(context.WithoutCancel(t.Context()), of) {
			templates.Lock()
			defer templates.Unlock()
			of.free = append(of.free, db)
			return
		}
		_ = db.conn.Close(context.WithoutCancel(t.Context()))
		db.warm.drop(db.name)
		run(t, ServerURL(t), "DROP DATABASE "+db.name+" WITH (FORCE)")
	})
	return db.url
}

// DropReused drops the databases that tests have made from a template and that wait for the next test, in whatever process.
func DropReused(t testing.TB, original string) {
	t.Helper()
	templates.Lock()
	delete(templates.of, original)
	templates.Unlock()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, ServerURL(t))
	if err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT datname FROM pg_database WHERE starts_with(datname, $1)`, nameIn(t, original)+"_")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		run(t, ServerURL(t), "DROP DATABASE "+name+" WITH (FORCE)")
	}
}

// copyToReuse makes a database like the template. The first one tells what there is to know of the template.
func copyToReuse(t testing.TB, original string, of *template) *reused {
	t.Helper()
	server, name := ServerURL(t), nameIn(t, original)
	db := &reused{name: name + "_" + strings.ToLower(rand.Text())}
	var err error
	if db.url, err = withDatabase(server, db.name); err != nil {
		t.Fatal(err)
	}
	run(t, server, "CREATE DATABASE "+db.name+" TEMPLATE "+name+copyFiles)
	ctx := context.WithoutCancel(t.Context())
	if db.conn, err = pgx.Connect(ctx, db.url); err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}
	if db.url, db.warm, err = keepWarm(db.url); err != nil {
		t.Fatalf("keep connections to PostgreSQL: %v", err)
	}
	if of.schema == "" {
		if err := db.learn(ctx, of); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// schemaState counts the rows of the catalogs, and names the last transaction that wrote one of those that are there.
const schemaState = `SELECT concat_ws(' ', (SELECT (count(*), max(xmin::text::bigint)) FROM pg_class), (SELECT (count(*), max(xmin::text::bigint)) FROM pg_attribute),
	(SELECT (count(*), max(xmin::text::bigint)) FROM pg_depend), (SELECT (count(*), max(xmin::text::bigint)) FROM pg_proc),
	(SELECT (count(*), max(xmin::text::bigint)) FROM pg_trigger), (SELECT (count(*), max(xmin::text::bigint)) FROM pg_rewrite),
	(SELECT (count(*), max(xmin::text::bigint)) FROM pg_constraint), (SELECT (count(*), max(xmin::text::bigint)) FROM pg_index),
	(SELECT count(*) FROM pg_db_role_setting))`

// learn reads a database that is as the template is.
func (db *reused) learn(ctx context.Context, of *template) error {
	rows, err := db.conn.Query(ctx, `SELECT oid::regclass::text, relkind = 'S' FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')`)
	if err != nil {
		return err
	}
	var name string
	var isSequence bool
	var tables, restarts []string
	_, err = pgx.ForEachRow(rows, []any{&name, &isSequence}, func() error {
		if isSequence {
			restarts = append(restarts, "SELECT setval('"+name+"', 1, false)")
		} else {
			tables = append(tables, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	statements := []string{"BEGIN", "SET LOCAL session_replication_role = replica"} // which checks no foreign key
	for _, table := range tables {
		statements = append(statements, "DELETE FROM "+table)
		var insert string
		query := "SELECT format('INSERT INTO " + table + " OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::" + table + ", %L)', json_agg(r))" //nolint:unqueryvet // all of them
		err := db.conn.QueryRow(ctx, query+" FROM "+table+" AS r HAVING count(*) > 0").Scan(&insert)
		if errors.Is(err, pgx.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		statements = append(statements, insert)
	}
	of.putBack = strings.Join(append(append(statements, restarts...), "COMMIT"), ";\n")
	return db.conn.QueryRow(ctx, schemaState).Scan(&of.schema)
}

// restore makes the database what the template is, and says whether it is. Who is still connected is sent away, and waited for.
func (db *reused) restore(ctx context.Context, of *template) bool {
	others, kept := 1, db.warm.kept(db.name)
	for range 5000 {
		err := db.conn.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> ALL($1)`, kept).Scan(&others)
		if err != nil || others == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if others > 0 {
		return false
	}
	if _, err := db.conn.PgConn().Exec(ctx, of.putBack).ReadAll(); err != nil {
		return false
	}
	schema := ""
	err := db.conn.QueryRow(ctx, schemaState).Scan(&schema)
	return err == nil && schema == of.schema
}

func nameIn(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal("not the URL of a database")
	}
	return strings.TrimPrefix(u.Path, "/")
}
