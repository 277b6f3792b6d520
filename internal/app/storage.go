package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"bursar/internal/config"
)

// How often the database is probed for writes, and how often a lasting failure is logged.
const (
	storageEvery    = 2 * time.Second
	logStorageEvery = time.Minute
)

// watchStorage is the stage that tells operators when the disk takes no more writes, and when it does again. It
// also finds that out where no request does: then nobody writes.
func watchStorage(cfg config.Config, b *Datastore, logger *slog.Logger) stage {
	return func(ctx context.Context) error {
		var since, logged time.Time
		for wait(ctx, storageEvery) {
			err, now := b.db.Ping(ctx), time.Now()
			switch {
			case err == nil && !since.IsZero():
				logger.InfoContext(ctx, "database writable again", slog.String("after", now.Sub(since).Round(time.Second).String()))
				since, logged = time.Time{}, time.Time{}
			case err != nil && ctx.Err() == nil && now.Sub(logged) >= logStorageEvery:
				if since.IsZero() {
					since = now
				}
				logged = now
				logger.ErrorContext(ctx, "database not writable",
					slog.String("database", cfg.Database.String()), slog.Any("error", err))
			}
		}
		return nil
	}
}

// checkDirectory says what is wrong with the directory of a database that could not be opened, if anything is.
func checkDirectory(dir string) error {
	parent := dir
	for ; ; parent = filepath.Dir(parent) { // the nearest that is there: the others would be made in it
		if _, err := os.Stat(parent); !errors.Is(err, fs.ErrNotExist) || parent == filepath.Dir(parent) {
			break
		}
	}
	err := tryToWrite(parent)
	if err == nil {
		return nil
	}
	return fmt.Errorf("the directory %s can't be written to by user %d (%w): give it to that user, mount its file system for writing or make space on it, or set BURSAR_DATA_DIR (--data-dir) to another",
		dir, os.Getuid(), err)
}

// tryToWrite leaves nothing behind.
func tryToWrite(dir string) error {
	file, err := os.CreateTemp(dir, "bursar-*.tmp")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, os.Getpagesize()))
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}
