package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"bursar/internal/pgtest"
)

// TestMigrate_SchemaRecordDeleted_SaysSo deletes the record of what was migrated, on both engines.
func TestMigrate_SchemaRecordDeleted_SaysSo(t *testing.T) {
	refuses := func(t *testing.T, open func(context.Context) (*DB, error)) {
		t.Helper()
		db, err := open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(t.Context(), func(tx *Tx) error {
			_, err := tx.exec(t.Context(), `DELETE FROM schema_migrations`)
			return err
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t.Context()); err == nil || !strings.Contains(err.Error(), "(the table schema_migrations) was changed outside Bursar: restore a backup") {
			t.Errorf("err = %v, want one that says that the record was changed", err)
		}
	}
	t.Run("SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "bursar.db")
		refuses(t, func(ctx context.Context) (*DB, error) { return OpenSQLite(ctx, path) })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := pgtest.New(t)
		refuses(t, func(ctx context.Context) (*DB, error) { return OpenPostgres(ctx, url) })
	})
}
