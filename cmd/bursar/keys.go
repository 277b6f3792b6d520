package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"bursar/internal/app"
)

type keysCmd struct {
	Rotate       keysRotateCmd `cmd:"" help:"Sign new tokens with a new key."`
	Export       keysExportCmd `cmd:"" help:"Print the key set, to keep it elsewhere."`
	ForgetStored keysForgetCmd `cmd:"" help:"Delete the key set that the database keeps, once it is kept elsewhere."`
}

type keysRotateCmd struct {
	After time.Duration `help:"When the new key begins to sign; until then it only verifies." default:"0s" placeholder:"DURATION"`
}

func (keysRotateCmd) Help() string {
	return "Tokens signed with the key before stay valid until they expire, so nobody is signed out. A running server notices by itself. " +
		"If each machine has a key file of its own, copy the file to the others before the new key signs.\n\n" +
		examples("bursar keys rotate", "bursar keys rotate --after 10m")
}

// Run adds a signing key.
func (c keysRotateCmd) Run(ctx context.Context, e *env) error {
	if c.After < 0 || c.After > maxRotateAfter {
		return fmt.Errorf("--after: give a time from 0s to %s", maxRotateAfter)
	}
	_, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	if err := datastore.Keys().Rotate(ctx, time.Now(), c.After); err != nil {
		return err
	}
	kid, _ := datastore.Keys().SigningKey()
	if c.After > 0 {
		_, err = fmt.Fprintf(e.out, "In %s, new tokens are signed with the new key; until then with key %s.\n", c.After, kid)
		return err
	}
	_, err = fmt.Fprintf(e.out, "New tokens are signed with key %s.\n", kid)
	return err
}

const maxRotateAfter = 24 * time.Hour

type keysExportCmd struct{}

func (keysExportCmd) Help() string {
	return "What is printed opens every bank account number and signs anybody in: it belongs in a secret store. Instances are given it as BURSAR_KEYS, or in a file that BURSAR_KEYS_FILE names.\n\n" +
		examples("(umask 077; bursar keys export >/etc/bursar/keys.json)", "bursar keys export | vault kv put secret/bursar keys=-")
}

// Run prints the document and nothing else.
func (keysExportCmd) Run(ctx context.Context, e *env) error {
	_, datastore, err := e.open(ctx, app.OpenDatastore)
	if err != nil {
		return err
	}
	defer datastore.Close()
	_, err = e.out.Write(datastore.Keys().Document())
	return err
}

type keysForgetCmd struct{}

func (keysForgetCmd) Help() string {
	return "First give the set that \"bursar keys export\" prints to every instance, as BURSAR_KEYS or BURSAR_KEYS_FILE, and restart them. " +
		"The set that is given here must hold every key of the one that is deleted. Backups made before still hold the keys.\n\n" +
		examples("BURSAR_KEYS_FILE=/etc/bursar/keys.json bursar keys forget-stored")
}

// Run deletes the database's copy of the keys in use.
func (keysForgetCmd) Run(ctx context.Context, e *env) error {
	cfg, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	if datastore.KeepsKeys() {
		return errors.New("the key set is kept nowhere but in the database; keep what \"bursar keys export\" prints, and set BURSAR_KEYS or BURSAR_KEYS_FILE to it first")
	}
	stored := datastore.DB().KeySet()
	document, err := stored.Read(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintf(e.out, "The database %s keeps no key set.\n", cfg.Database)
		return err
	}
	if err != nil {
		return err
	}
	if err := datastore.Keys().Covers(document); err != nil {
		return fmt.Errorf("the key set given (%s) can't take the place of the one in the database: %w; export that one again", datastore.KeysPlace(), err)
	}
	forgotten, err := stored.Forget(ctx, document)
	if err != nil {
		return err
	}
	if !forgotten {
		return errors.New("the key set in the database was changed just now; export it again")
	}
	_, err = fmt.Fprintf(e.out, "The key set is kept in %s alone.\n", datastore.KeysPlace())
	return err
}
