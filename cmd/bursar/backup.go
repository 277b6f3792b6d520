package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

type backupCmd struct {
	File string `arg:"" help:"File to make. It must not exist."`
}

func (backupCmd) Help() string {
	return "The copy is consistent, and is taken while the service runs. To go back to it, stop the service and put the file in the database's place.\n\n" +
		examples("bursar backup /var/backups/bursar-$(date +%F).db")
}

// Run copies the database to a new file that nobody else may read.
func (c backupCmd) Run(ctx context.Context, e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	db, err := openExisting(ctx, cfg)
	if err != nil {
		return err
	}
	defer db.Close()
	file, err := os.OpenFile(c.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already; name a new file for the backup", c.File)
	}
	if err != nil {
		return fmt.Errorf("make the backup: %w", err)
	}
	if err := file.Close(); err != nil {
		return err
	}
	progress := progressOn(e.err)
	progress("Copying the database")
	err = db.Backup(ctx, c.File)
	progress("")
	if err != nil {
		return errors.Join(fmt.Errorf("make the backup: %w", err), os.Remove(c.File))
	}
	fmt.Fprintf(e.err, "Keep a copy of the key set (%s) too, in another place: without it, the account numbers in the backup can't be read.\n", keysPlace(cfg))
	_, err = fmt.Fprintln(e.out, c.File)
	return err
}

type migrateCmd struct{}

func (migrateCmd) Help() string {
	return "serve does this by itself; it is for those who want to do it beforehand. Old and new versions of the service both work on the result.\n\n" +
		examples("bursar migrate")
}

// Run opens the database, which brings it up to date.
func (migrateCmd) Run(ctx context.Context, e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	book, err := openBook(ctx, cfg)
	if err != nil {
		return err
	}
	if err := book.Close(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "The database %s is up to date.\n", cfg.Database)
	return err
}
