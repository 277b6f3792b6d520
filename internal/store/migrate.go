package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"time"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

type migration struct {
	name     string
	body     string
	checksum string
}

// migrations lists the embedded files in order of their numbers.
func migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	all := make([]migration, 0, len(names))
	for _, name := range names {
		body, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(body)
		all = append(all, migration{name: path.Base(name), body: string(body), checksum: hex.EncodeToString(sum[:])})
	}
	return all, nil
}

// unknownMigrations are those of the applied ones that are not in the program.
func unknownMigrations(applied []string) ([]string, error) {
	known, err := migrations()
	return slices.DeleteFunc(applied, func(name string) bool {
		return slices.ContainsFunc(known, func(m migration) bool { return m.name == name })
	}), err
}

// ownTables are those that the migrations make.
func ownTables() (tables []string) {
	all, err := migrations()
	if err != nil {
		panic("store: " + err.Error()) // they are in the program
	}
	for _, m := range all {
		for _, made := range madeTable.FindAllStringSubmatch(m.body, -1) {
			tables = append(tables, made[1])
		}
	}
	return tables
}

var madeTable = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// migrate brings the schema up to date in one transaction under the engine's write lock, so that any
// number of processes may start at once and exactly one does the work. A migration that was applied
// may not have changed since; one that this binary does not know was applied by a newer binary, and
// is left alone, because every migration leaves the binary before it working.
func migrate(ctx context.Context, conn *sql.Conn, d dialect) error {
	if err := beginMigration(ctx, conn, d); err != nil {
		return fmt.Errorf("lock for migration: %w", err)
	}
	if err := applyMigrations(ctx, &Tx{dialect: d, conn: conn}); err != nil {
		_, rollback := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, rollback)
	}
	_, err := conn.ExecContext(ctx, "COMMIT")
	return err
}

func beginMigration(ctx context.Context, conn *sql.Conn, d dialect) error {
	for _, statement := range d.begin {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func applyMigrations(ctx context.Context, tx *Tx) error {
	const table = `CREATE TABLE IF NOT EXISTS schema_migrations (
		name TEXT PRIMARY KEY, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)`
	if _, err := tx.exec(ctx, tx.dialect.ddl(table)); err != nil {
		return fmt.Errorf("make the table of migrations: %w", err)
	}
	all, err := migrations()
	if err != nil {
		return err
	}
	for _, m := range all {
		var applied string
		done, err := tx.one(ctx, `SELECT checksum FROM schema_migrations WHERE name = $1`, []any{m.name}, &applied)
		switch {
		case err != nil:
			return err
		case done && applied != m.checksum:
			return fmt.Errorf("migration %s was changed after it was applied to this database; restore the file, and put the change into a new one", m.name)
		case done:
			continue
		}
		if _, err := tx.exec(ctx, tx.dialect.ddl(m.body)); err != nil {
			if tx.dialect.exists(err) {
				err = fmt.Errorf("%w; the record of the schema (the table schema_migrations) was changed outside Bursar: restore a backup. Or the database is another program's: use one of Bursar's own", err)
			}
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
		if _, err := tx.exec(ctx, `INSERT INTO schema_migrations (name, checksum, applied_at) VALUES ($1, $2, $3)`,
			m.name, m.checksum, micros(time.Now())); err != nil {
			return err
		}
	}
	return nil
}
