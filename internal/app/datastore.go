package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"bursar/internal/config"
	"bursar/internal/keyset"
	"bursar/internal/store"
)

// Datastore is the data that all commands work on: the database, and the key set that belongs to it.
type Datastore struct {
	cfg  config.Config
	db   *store.DB
	keys *keyset.Set
	// issuer is whom tokens name as their maker.
	issuer string
}

// OpenDatastore opens the datastore, makes it where there is none yet, and refuses a currency or a key set
// that is not the one it was made with.
func OpenDatastore(ctx context.Context, cfg config.Config) (b *Datastore, err error) {
	var undo cleanup
	defer func() { err = undo.unless(err) }()

	db, err := openStore(ctx, cfg.Database)
	if err != nil {
		return nil, err
	}
	undo.add(db.Close)
	b = &Datastore{cfg: cfg, db: db}
	if b.keys, err = b.openKeys(ctx, keyset.Open); err != nil {
		return nil, err
	}
	if err := errors.Join(b.checkCurrency(ctx, cfg), b.checkKeys(ctx, cfg), b.nameIssuer(ctx, cfg)); err != nil {
		return nil, err
	}
	db.UseKeys(b.keys) // after they were checked: entries with another key's MAC would never be believed again
	return b, nil
}

// OpenExisting opens a datastore as OpenDatastore does, and makes none.
func OpenExisting(ctx context.Context, cfg config.Config) (*Datastore, error) {
	db, err := openExisting(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return OpenDatastore(ctx, cfg)
}

// Inspect opens an existing datastore without its key set: OpenKeys opens that, where it is needed. It pins and
// makes nothing.
func Inspect(ctx context.Context, cfg config.Config) (*Datastore, error) {
	db, err := openExisting(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Datastore{cfg: cfg, db: db}, nil
}

// OpenKeys opens the key set of a datastore that was opened to be inspected. It makes none, and refuses one that the database
// was not written with.
func (b *Datastore) OpenKeys(ctx context.Context) error {
	keys, err := b.openKeys(ctx, keyset.OpenExisting)
	if err == nil {
		err = b.checkWrittenWith(ctx, keys)
	}
	if err == nil {
		b.keys = keys
	}
	return err
}

// DB is the database.
func (b *Datastore) DB() *store.DB { return b.db }

// Keys is the key set, and nil before OpenKeys where the datastore was opened to be inspected.
func (b *Datastore) Keys() *keyset.Set { return b.keys }

// Issuer is the issuer of access tokens.
func (b *Datastore) Issuer() string { return b.issuer }

// openStore opens the database with the engine that it belongs to.
func openStore(ctx context.Context, d config.Database) (*store.DB, error) {
	if d.Postgres != "" {
		return store.OpenPostgres(ctx, d.Postgres)
	}
	db, err := store.OpenSQLite(ctx, d.SQLite)
	if err != nil {
		err = errors.Join(err, checkDirectory(filepath.Dir(d.SQLite)))
	}
	return db, err
}

// openExisting opens a database to look at, and makes none.
func openExisting(ctx context.Context, cfg config.Config) (*store.DB, error) {
	if path := cfg.Database.SQLite; path != "" {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no database at %s; set BURSAR_DATA_DIR (--data-dir) to where the service keeps its data, or BURSAR_DATABASE_URL", path)
		}
	}
	db, err := openStore(ctx, cfg.Database)
	if err != nil {
		return nil, err
	}
	isEmpty, err := db.IsEmpty(ctx)
	if err == nil && isEmpty {
		err = fmt.Errorf("nothing was ever kept in %s; set BURSAR_DATABASE_URL to the database that the service uses", cfg.Database)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// nameIssuer takes the public address for the tokens' issuer, or, where none is set, the first
// address that this database was served on: tokens outlive a change of port, and hold on every instance.
func (b *Datastore) nameIssuer(ctx context.Context, cfg config.Config) (err error) {
	b.issuer = cfg.BaseURL
	if b.issuer == "" {
		b.issuer, err = b.db.Pin(ctx, "token_issuer", cfg.Origin())
	}
	return err
}

// Close finishes the writes under way, and closes the database.
func (b *Datastore) Close() error { return b.db.Close() }

// checkCurrency pins the currency: the ledger counts its minor units. The row of the currency has no MAC. The newest
// checkpoint tells whether it was changed or deleted.
func (b *Datastore) checkCurrency(ctx context.Context, cfg config.Config) error {
	own := cfg.Currency.Code()
	pinned, isPinned, err := b.db.Pinned(ctx, store.CurrencySetting)
	if err != nil || pinned == own {
		return err
	}
	last, _, err := b.db.LastCheckpoint(ctx)
	if err != nil {
		return err
	}
	if !isPinned {
		if last.Number > 0 && last.Currency != own {
			return fmt.Errorf("the database %s lacks the record of its currency, its newest checkpoint counts %s, and BURSAR_CURRENCY is %s; set it to %[2]s",
				cfg.Database, last.Currency, own)
		}
		if pinned, err = b.db.Pin(ctx, store.CurrencySetting, own); err != nil || pinned == own {
			return err
		}
	}
	if last.Currency == own {
		return fmt.Errorf("the database %s counts %s, and BURSAR_CURRENCY is %s, as in the newest checkpoint: the database was changed outside Bursar; run \"bursar audit\", and "+restoreCurrency,
			cfg.Database, pinned, own)
	}
	if last.Number > 0 && last.Currency == pinned {
		return fmt.Errorf("the database %s counts %s, as its newest checkpoint does, and BURSAR_CURRENCY is %s; set it to %[2]s, or begin a new database",
			cfg.Database, pinned, own)
	}
	return fmt.Errorf("the database %s counts %s and BURSAR_CURRENCY is %s. If you did not change BURSAR_CURRENCY, the database was changed outside Bursar: run \"bursar audit\", and "+restoreCurrency+
		". Otherwise set BURSAR_CURRENCY to %[2]s, or begin a new database", cfg.Database, pinned, own)
}

const restoreCurrency = `restore the row "currency" of the table settings from a backup`

// openKeys opens the key set where it is kept. open says what happens where there is none. A database that was written with a key
// set gets no other one.
func (b *Datastore) openKeys(ctx context.Context, open func(context.Context, keyset.Source) (*keyset.Set, error)) (*keyset.Set, error) {
	cfg := b.cfg
	if cfg.Keys != "" {
		return keyset.FromJSON([]byte(cfg.Keys))
	}
	_, isWritten, err := b.db.KeySet().PinnedFingerprint(ctx)
	if err == nil && !isWritten {
		isWritten, err = b.db.HoldsRecords(ctx)
	}
	if err != nil {
		return nil, err
	}
	if isWritten {
		open = keyset.OpenExisting
	}
	if cfg.KeysFile != "" {
		keys, err := open(ctx, keyset.File(cfg.KeysFile))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no key set at %s, where that of the database %s should be; set BURSAR_KEYS_FILE to its file, or BURSAR_KEYS to the key set itself", cfg.KeysFile, cfg.Database)
		}
		return keys, err
	}
	keys, err := open(ctx, b.db.KeySet())
	if errors.Is(err, fs.ErrNotExist) { // it was taken out of the database
		return openOwnKeys(ctx, cfg, b.db)
	}
	return keys, err
}

// openOwnKeys opens the file in the data directory, if it holds the keys that the database was written with.
func openOwnKeys(ctx context.Context, cfg config.Config, db *store.DB) (*keyset.Set, error) {
	pinned, _, err := db.KeySet().PinnedFingerprint(ctx)
	if err != nil {
		return nil, err
	}
	path := OwnKeysFile(cfg)
	if _, err := os.Stat(path); err == nil {
		keys, err := keyset.Open(ctx, keyset.File(path))
		if err != nil || keys.Fingerprint() == pinned {
			return keys, err
		}
		if written, _, err := db.WrittenWith(ctx, keys); err != nil || written { // the pinned one was changed or deleted
			return keys, err
		}
	}
	return nil, fmt.Errorf("the database %s was written with a key set that is kept elsewhere; set BURSAR_KEYS to it, or BURSAR_KEYS_FILE to its file", cfg.Database)
}

// OwnKeysFile is where a data directory holds a key set.
func OwnKeysFile(cfg config.Config) string { return filepath.Join(cfg.DataDir, "keys.json") }

// KeysPlace names where the key set is kept.
func (b *Datastore) KeysPlace() string { return placeOf(b.keys) }

func placeOf(keys *keyset.Set) string {
	if source := keys.Source(); source != nil {
		return source.String()
	}
	return "BURSAR_KEYS"
}

// KeepsKeys reports whether the database keeps the key set too.
func (b *Datastore) KeepsKeys() bool {
	_, inDatabase := b.keys.Source().(store.KeySet)
	return inDatabase
}

// checkKeys pins the key set: bank account numbers are encrypted with it.
func (b *Datastore) checkKeys(ctx context.Context, cfg config.Config) error {
	if err := b.checkWrittenWith(ctx, b.keys); err != nil {
		return err
	}
	pinned, err := b.db.KeySet().PinFingerprint(ctx, b.keys.Fingerprint())
	if err == nil && pinned != b.keys.Fingerprint() {
		err = wrongKeys(cfg, b.keys)
	}
	return err
}

// checkWrittenWith refuses a key set that the database was not written with. Nothing authenticates the pinned fingerprint, so the
// journals tell whether that was changed.
func (b *Datastore) checkWrittenWith(ctx context.Context, keys *keyset.Set) error {
	pinned, isPinned, err := b.db.KeySet().PinnedFingerprint(ctx)
	if err != nil || pinned == keys.Fingerprint() {
		return err
	}
	written, hasJournals, err := b.db.WrittenWith(ctx, keys)
	switch {
	case err != nil:
		return err
	case !isPinned && (written || !hasJournals):
		return nil
	case written:
		return fmt.Errorf("the database %s was written with this key set (%s), and the row \"key_set\" of its table settings says otherwise: that row was changed outside Bursar; "+
			"delete the row, start again, and run \"bursar audit\" to see what else was changed", b.cfg.Database, placeOf(keys))
	default:
		return wrongKeys(b.cfg, keys)
	}
}

func wrongKeys(cfg config.Config, keys *keyset.Set) error {
	return fmt.Errorf("the key set (%s) is not the one that the database %s was written with, so the bank account numbers in it can't be read; put the right key set back from where you keep a copy",
		placeOf(keys), cfg.Database)
}

// quiet is the log of what a command does, which tells itself what it did.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
