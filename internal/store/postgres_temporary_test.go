package store

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"bursar/internal/pgtest"
)

// The error names the privilege that a role lacks which may make no temporary tables.
func TestMakeSchemaPostgres_NoTemporaryTables_SaysSo(t *testing.T) {
	url := pgtest.New(t)
	owner, err := OpenPostgres(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database()); END $$;
		GRANT ALL ON SCHEMA public TO pg_monitor; GRANT ALL ON ALL TABLES IN SCHEMA public TO pg_monitor`); err != nil {
		t.Fatal(err)
	}
	other, err := OpenPostgres(t.Context(), url+"&role=pg_monitor") // a role that every server has
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := makeSchemaPostgres(t.Context(), other); err == nil || !strings.Contains(err.Error(), "GRANT TEMPORARY ON DATABASE") {
		t.Errorf("without temporary tables the error is %v", err)
	}
}
