package store

import (
	"strings"
	"testing"

	"bursar/internal/pgtest"
)

// What is hashed is the text as it was given. Another encoding of the connection, which a role or an address may set, would scramble it.
func TestOpenPostgres_ConnectionEncoding(t *testing.T) {
	const name = "Müller, आशा"
	url := pgtest.New(t)
	for i, setting := range []string{"", "&client_encoding=LATIN1", "&client_encoding=SQL_ASCII"} {
		db, err := OpenPostgres(t.Context(), url+setting)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := db.Pin(t.Context(), "name", name)
		if err != nil || kept != name {
			t.Errorf("opened as %q, the database has %q, %v", setting, kept, err)
		}
		if i == 0 {
			at, err := db.reader.ExecContext(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET client_encoding = LATIN1', current_database()); END $$`)
			if err != nil {
				t.Errorf("the role's setting: %v, %v", at, err)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A database of another encoding is refused.
func TestOpenPostgres_DatabaseEncoding(t *testing.T) {
	_, err := OpenPostgres(t.Context(), pgtest.NewEncoded(t, "LATIN1"))
	if err == nil || !strings.Contains(err.Error(), "its encoding is LATIN1") || !strings.Contains(err.Error(), "ENCODING 'UTF8'") {
		t.Errorf("it is opened with %v", err)
	}
}
