package keyset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

const (
	ownerOnly    = 0o600
	others       = 0o077
	maxFileBytes = 1 << 20
)

// File is a source: the path of a file that only its owner may read.
type File string

// String is the path.
func (f File) String() string { return string(f) }

// Read refuses a file that others than its owner may read.
func (f File) Read(context.Context) ([]byte, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return nil, fmt.Errorf("read the key set: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the key set: %w", err)
	}
	// Windows has no such bits; there the directory's access list says who may read.
	if mode := info.Mode().Perm(); mode&others != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("the key set %s may be read by others than its owner (mode %#o); run: chmod 600 %s", f, mode, f)
	}
	document, err := io.ReadAll(io.LimitReader(file, maxFileBytes))
	if err != nil {
		return nil, fmt.Errorf("read the key set: %w", err)
	}
	return document, nil
}

// Create makes the file, which appears whole or not at all.
func (f File) Create(_ context.Context, document []byte) error {
	path := string(f)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the key set: %w", err)
	}
	file, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp") // mode 0600
	if err != nil {
		return fmt.Errorf("make the key set: %w", err)
	}
	defer os.Remove(file.Name()) // after the link, the other name stays
	if err := write(file, document); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the key set: %w", err)
	}
	return syncDir(dir)
}

// Replace puts a new file in the place of the old one, for the same owner. The new one's name is also the lock: of two at
// once, one is refused.
func (f File) Replace(ctx context.Context, last, next []byte) (bool, error) {
	path := string(f)
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_EXCL|os.O_WRONLY, ownerOnly) //nolint:gosec // the path is the operator's own
	if errors.Is(err, fs.ErrExist) {
		return false, fmt.Errorf("the key set is being changed by another process; if there is none, remove %s.new and try again", path)
	}
	if errors.Is(err, fs.ErrPermission) {
		return false, fmt.Errorf("change the key set: this user may make no files in its directory; run this as root: %w", err)
	}
	if err != nil {
		return false, fmt.Errorf("change the key set: %w", err)
	}
	now, err := f.Read(ctx)
	if err != nil || !bytes.Equal(now, last) {
		return false, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	info, err := os.Stat(path)
	if err == nil {
		err = giveTo(file, info)
	}
	if err = errors.Join(err, write(file, next)); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return false, errors.Join(fmt.Errorf("change the key set: %w", err), os.Remove(file.Name()))
	}
	return true, syncDir(filepath.Dir(path))
}

// write makes a document durable in file and closes it.
func write(file *os.File, document []byte) error {
	_, err := file.Write(document)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write the key set: %w", err)
	}
	return nil
}

// syncDir makes a file's new name durable. Windows does so by itself, and can't be asked to.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir) //nolint:gosec // the path is the operator's own
	if err != nil {
		return fmt.Errorf("make the key set durable: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
