package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"bursar/internal/app"
	"bursar/internal/config"
)

type backupCmd struct {
	File string `arg:"" help:"File to make. It must not exist."`
}

func (backupCmd) Help() string {
	return "The copy is consistent, and is taken while the service runs. To go back to it, stop the service first. " +
		"A SQLite database: put the file in its place, and remove the files beside it that end in -wal and -shm. " +
		"A PostgreSQL database, which is copied by pg_dump: restore the file into an empty database, and point BURSAR_DATABASE_URL at that.\n\n" +
		examples("bursar backup /var/backups/bursar-$(date +%F).db",
			"createdb restored && pg_restore --no-owner --exit-on-error --dbname=restored bursar.dump")
}

// Run copies the database to a new file that nobody else may read.
func (c backupCmd) Run(ctx context.Context, e *env) error {
	cfg, datastore, err := e.open(ctx, app.Inspect)
	if err != nil {
		return err
	}
	defer datastore.Close()
	file, err := os.OpenFile(c.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already; name a new file for the backup", c.File)
	}
	if err != nil {
		return fmt.Errorf("make the backup: %w", err)
	}
	progress := progressOn(e.err)
	progress("Copying the database")
	err = datastore.CopyDatabase(ctx, file)
	progress("")
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(fmt.Errorf("make the backup: %w", err), os.Remove(c.File))
	}
	advice, err := keysAdvice(ctx, cfg, datastore)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.err, advice)
	_, err = fmt.Fprintln(e.out, c.File)
	return err
}

// keysAdvice tells what becomes of the key set, without which a backup is of little use.
func keysAdvice(ctx context.Context, cfg config.Config, datastore *app.Datastore) (string, error) {
	place := app.OwnKeysFile(cfg)
	switch {
	case cfg.Keys != "":
		place = "BURSAR_KEYS"
	case cfg.KeysFile != "":
		place = cfg.KeysFile
	}
	_, err := datastore.DB().KeySet().Read(ctx)
	switch {
	case err == nil:
		return "The backup holds the key set too: a reader of the backup can read the bank account numbers in it. \"bursar keys export --help\" says how to keep the two apart.", nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("Keep a copy of the key set (%s) too, in another place: without it, the account numbers in the backup can't be read.", place), nil
	default:
		return "", err
	}
}

type migrateCmd struct{}

func (migrateCmd) Help() string {
	return "serve does this by itself; it is for those who want to do it beforehand. Old and new versions of the service both work on the result.\n\n" +
		examples("bursar migrate")
}

// Run opens the database, which brings it up to date.
func (migrateCmd) Run(ctx context.Context, e *env) error {
	cfg, datastore, err := e.open(ctx, app.OpenDatastore)
	if err != nil {
		return err
	}
	if err := datastore.Close(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "The database %s is up to date.\n", cfg.Database)
	return err
}
