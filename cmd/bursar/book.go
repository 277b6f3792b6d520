package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"bursar/internal/config"
	"bursar/internal/keyset"
	"bursar/internal/store"
)

// book is the data that all commands work on: the database, and the key set that belongs to it.
type book struct {
	db   *store.DB
	keys *keyset.Set
	// issuer is whom tokens name as their maker.
	issuer string
}

// openBook opens the data, makes it where there is none yet, and refuses a currency or a key set
// that is not the one it was made with.
func openBook(ctx context.Context, cfg config.Config) (*book, error) {
	keys, err := openKeys(cfg)
	if err != nil {
		return nil, err
	}
	db, err := store.OpenSQLite(ctx, cfg.Database)
	if err != nil {
		return nil, err
	}
	b := &book{db: db, keys: keys}
	if err := errors.Join(b.checkCurrency(ctx, cfg), b.checkKeys(ctx, cfg), b.nameIssuer(ctx, cfg)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return b, nil
}

// nameIssuer takes the public address for the tokens' issuer, or, where none is set, the first
// address that these books were served on: tokens outlive a change of port, and hold on every instance.
func (b *book) nameIssuer(ctx context.Context, cfg config.Config) (err error) {
	b.issuer = cfg.BaseURL
	if b.issuer == "" {
		b.issuer, err = b.db.Pin(ctx, "token_issuer", cfg.Origin())
	}
	return err
}

// Close finishes the writes under way.
func (b *book) Close() error { return b.db.Close() }

func openKeys(cfg config.Config) (*keyset.Set, error) {
	if cfg.Keys != "" {
		return keyset.FromJSON([]byte(cfg.Keys))
	}
	return keyset.Open(cfg.KeysFile)
}

// keysPlace names where the key set is kept.
func keysPlace(cfg config.Config) string {
	if cfg.Keys != "" {
		return "BURSAR_KEYS"
	}
	return cfg.KeysFile
}

// checkCurrency pins the currency: the ledger counts its minor units.
func (b *book) checkCurrency(ctx context.Context, cfg config.Config) error {
	pinned, err := b.db.Pin(ctx, "currency", cfg.Currency.Code())
	if err == nil && pinned != cfg.Currency.Code() {
		err = fmt.Errorf("the database %s counts %s and BURSAR_CURRENCY is %s; set it to %[2]s, or begin a new database",
			cfg.Database, pinned, cfg.Currency)
	}
	return err
}

// checkKeys pins the key set, so that one that was lost is noticed before anything needs it.
func (b *book) checkKeys(ctx context.Context, cfg config.Config) error {
	pinned, err := b.db.Pin(ctx, "key_set", b.keys.Fingerprint())
	if err == nil && pinned != b.keys.Fingerprint() {
		err = fmt.Errorf("the key set (%s) is not the one that the database %s was written with, so the bank account numbers in it can't be read; put the right key set back from where you keep a copy",
			keysPlace(cfg), cfg.Database)
	}
	return err
}

// openExisting opens a database to look at, and makes none.
func openExisting(ctx context.Context, cfg config.Config) (*store.DB, error) {
	if _, err := os.Stat(cfg.Database); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no database at %s; set BURSAR_DATA_DIR (--data-dir) to where the service keeps its data", cfg.Database)
	}
	return store.OpenSQLite(ctx, cfg.Database)
}

// quiet is the log of commands that tell what they did themselves.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
