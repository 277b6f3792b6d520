// Package pgtest gives tests real PostgreSQL databases, with nothing to set up.
//
// [New] makes an empty database on the server that the environment variable BURSAR_TEST_POSTGRES_URL
// names, or else on a throw-away server made from the machine's own PostgreSQL programs. One such
// server serves a whole `go test ./...`: the first test binary to ask starts it, and it ends with the
// go command, however that ends. It never waits for a disk.
//
// [StartServer] makes a durable server of the test's own, to be killed, started again, copied to a
// standby and failed over.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Variable names the environment variable that holds the URL of a server to use. Its user has to be
// allowed to create databases, and a superuser for the tests that break what a schema forbids.
const Variable = "BURSAR_TEST_POSTGRES_URL"

// errMissing says that there is no PostgreSQL on this machine, and what to do about it.
var errMissing = errors.New("this test needs PostgreSQL, and its programs initdb and postgres were not found: " +
	"install the server (the package postgresql on Debian and in Homebrew), or name one in " + Variable)

// New returns the URL of a fresh, empty database that is dropped when the test ends. Settings may be
// added to the URL as &name=value. Without PostgreSQL it skips the test; where the variable CI is set, it
// fails it.
func New(t testing.TB) string {
	t.Helper()
	return create(t, ServerURL(t), "template0") // nobody can be connected to template0, and so hold up a copy
}

// NewEncoded is [New], with a database of another encoding.
func NewEncoded(t testing.TB, encoding string) string {
	t.Helper()
	return create(t, ServerURL(t), "template0 ENCODING '"+encoding+"' LC_COLLATE 'C' LC_CTYPE 'C'")
}

// Copy returns the URL of a new database that holds what the one at the given URL holds, and is
// dropped when the test ends. It ends all connections to that one.
func Copy(t testing.TB, original string) string {
	t.Helper()
	name, server := nameIn(t, original), ServerURL(t)
	run(t, server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
	return create(t, server, name)
}

// copyFiles has the server copy a template's files, which takes a fifth of the time of writing each page to its log, as it does
// by itself since version 15. Older ones know nothing else, nor the word.
const copyFiles = " STRATEGY FILE_COPY"

// create makes a database that is like the template.
func create(t testing.TB, server, template string) string {
	t.Helper()
	name := "bursar_" + strings.ToLower(rand.Text())
	database, err := withDatabase(server, name)
	if err != nil {
		t.Fatal(err)
	}
	run(t, server, "CREATE DATABASE "+name+" TEMPLATE "+template+copyFiles)
	t.Cleanup(func() { run(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	return database
}

// ServerURL returns the URL of the server that databases are made on, or ends the test as [New] does.
func ServerURL(t testing.TB) string {
	t.Helper()
	if server := os.Getenv(Variable); server != "" {
		return server
	}
	server, err := runServer()
	if err != nil {
		refuse(t, err)
	}
	return server
}

// refuse ends a test that can't have PostgreSQL. A machine may lack it, but not one that checks a change.
func refuse(t testing.TB, err error) {
	t.Helper()
	ci := os.Getenv("CI")
	if errors.Is(err, errMissing) && (ci == "" || ci == "0" || ci == "false") {
		t.Skip(err)
	}
	t.Fatal(err)
}

// A template is waited for this often and long while others use it: connections that were ended take
// a moment to go.
const (
	maxTries = 50
	pause    = 100 * time.Millisecond
)

// run runs one statement on a connection of its own.
func run(t testing.TB, server, statement string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // what is made is dropped after the test's end
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}
	defer conn.Close(ctx)
	if major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), "."); len(major) == 2 && major < "15" {
		statement = strings.TrimSuffix(statement, copyFiles)
	}
	for try := 1; ; try++ {
		_, err := conn.Exec(ctx, statement)
		if err == nil {
			return
		}
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "55006" || try == maxTries {
			t.Fatalf("%s: %v", statement, err)
		}
		time.Sleep(pause)
	}
}

// withDatabase is a server's URL with the name of another database.
func withDatabase(server, name string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%s must be a URL: postgres://USER:PASSWORD@HOST:PORT/DATABASE", Variable)
	}
	u.Path = "/" + name
	if u.RawQuery == "" {
		u.RawQuery = "connect_timeout=10"
	}
	return u.String(), nil
}
