package config_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPostgresAddresses(t *testing.T) {
	for _, tt := range []struct {
		name        string
		url         string
		wantShown   string
		wantEnviron []string
	}{
		{
			"everything", "postgres://bursar:hush@db.example.com:5432/books?sslmode=verify-full&pool_max_conns=40",
			"postgres://db.example.com:5432/books",
			[]string{"PGDATABASE=books", "PGHOST=db.example.com", "PGPASSWORD=hush", "PGPORT=5432", "PGSSLMODE=verify-full", "PGUSER=bursar"},
		},
		{
			"several hosts", "postgresql://u:hush@h1:5432,h2,[::1]:5434/books?target_session_attrs=read-write",
			"postgres://h1:5432,h2,[::1]:5434/books",
			[]string{"PGDATABASE=books", "PGHOST=h1,h2,::1", "PGPASSWORD=hush", "PGPORT=5432,,5434", "PGTARGETSESSIONATTRS=read-write", "PGUSER=u"},
		},
		{
			"a socket", "postgres:///books?host=/run/postgresql&port=5433&user=u&password=hush",
			"postgres://%2Frun%2Fpostgresql:5433/books",
			[]string{"PGDATABASE=books", "PGHOST=/run/postgresql", "PGPASSWORD=hush", "PGPORT=5433", "PGUSER=u"},
		},
		{
			"an escaped password", "postgres://u:hu%40sh%2F:?@h/books",
			"postgres://h/books",
			[]string{"PGDATABASE=books", "PGHOST=h", "PGPASSWORD=hu@sh/:?", "PGUSER=u"},
		},
		{"nothing but defaults", "postgres://", "postgres:///", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := mustLoad(t, []string{"BURSAR_DATABASE_URL=" + tt.url})
			if c.Database.Postgres != tt.url || c.Database.SQLite != "" || c.KeysFile != "" {
				t.Errorf("PostgreSQL at %q, SQLite in %q, keys in %q", c.Database.Postgres, c.Database.SQLite, c.KeysFile)
			}
			if got := c.Database.String(); got != tt.wantShown {
				t.Errorf("shown as %s, want %s", got, tt.wantShown)
			}
			if printed := fmt.Sprintf("%v %+v %#v %s", c, c, c, c.Database); strings.Contains(printed, "hush") || strings.Contains(printed, "hu%") {
				t.Errorf("the password is printed: %s", printed)
			}
			environ := c.Database.Environ()
			slices.Sort(environ)
			if diff := cmp.Diff(tt.wantEnviron, environ); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDatabaseURL_ReadFromFile(t *testing.T) {
	const url = "postgres://u:hush@h/books"
	c := mustLoad(t, []string{"BURSAR_DATABASE_URL_FILE=" + file(t, url, "")})
	if c.Database.Postgres != url {
		t.Errorf("read %q, want %q", c.Database.Postgres, url)
	}
}

func TestDatabaseURL_Invalid_NotQuoted(t *testing.T) {
	for _, url := range []string{
		"postgres://u:hush@h:port/x", "postgres://u:hush@h:0/x", "postgres://u:hush@h:65536/x", "postgres://u:hush@h/x?hush",
		"postgres://u:hush%@h/x", "postgres://u:hu/sh@h/x", "postgres://u:1/hush@h/x", "postgres://u:hush@h/x%00", "postgres://u:hush@[::1/x:1",
	} {
		_, _, err := load(t, []string{"BURSAR_DATABASE_URL=" + url})
		if err == nil || !strings.Contains(err.Error(), "BURSAR_DATABASE_URL is not the address") {
			t.Errorf("%s: %v, want a problem", url, err)
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("the problem quotes the address: %v", err)
		}
	}
}

func TestKeysFile_DefaultsBesideDatabase(t *testing.T) {
	const postgres = "BURSAR_DATABASE_URL=postgres://h/books"
	for _, tt := range []struct {
		environ []string
		want    string
	}{
		{[]string{"BURSAR_DATA_DIR=d"}, filepath.Join("d", "keys.json")},
		{[]string{"BURSAR_DATABASE_URL=sqlite:x.db", "BURSAR_KEYS_FILE=k"}, "k"},
		{[]string{postgres, "BURSAR_DATA_DIR=d"}, ""},
		{[]string{postgres, "BURSAR_KEYS_FILE=k"}, "k"},
	} {
		if got := mustLoad(t, tt.environ).KeysFile; got != tt.want {
			t.Errorf("%v: keys in %q, want %q", tt.environ, got, tt.want)
		}
	}
}
