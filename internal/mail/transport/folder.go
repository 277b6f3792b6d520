package transport

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bursar/internal/mail"
)

// Folder keeps each message as a file, for development. Only its owner can read the files: they hold tokens.
type Folder struct{ Path string }

// Send writes m, in place of an earlier try.
func (f Folder) Send(_ context.Context, m mail.Message) error {
	if err := os.MkdirAll(f.Path, 0o700); err != nil {
		return err
	}
	draft, err := os.CreateTemp(f.Path, ".mail-*") // with 0600
	if err != nil {
		return err
	}
	_, err = draft.Write(m.Raw)
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), f.file(m.ID))
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}

// Read finds a message by its mail's id.
func (f Folder) Read(id string) ([]byte, bool, error) {
	if strings.ContainsFunc(id, func(c rune) bool { return !isPartOfID(c) }) {
		return nil, false, nil
	}
	raw, err := os.ReadFile(f.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return raw, err == nil, err
}

func isPartOfID(c rune) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func (f Folder) file(id string) string { return filepath.Join(f.Path, id+".eml") }
