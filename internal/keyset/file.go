package keyset

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

const (
	ownerOnly    = 0o600
	others       = 0o077
	maxFileBytes = 1 << 20
)

// stamp tells one version of a file from another.
type stamp struct {
	modified time.Time
	size     int64
}

func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.ModTime(), info.Size()}, nil
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func readFile(path string) (*keys, stamp, error) {
	d, seen, err := readDocument(path)
	if err != nil {
		return nil, seen, err
	}
	k, err := prepare(d)
	return k, seen, err
}

// readDocument also returns the stamp of a file that can't be used, so that it is not read again
// until it changes.
func readDocument(path string) (document, stamp, error) {
	file, err := os.Open(path) //nolint:gosec // the path is the operator's own
	if err != nil {
		return document{}, stamp{}, fmt.Errorf("read the key set: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return document{}, stamp{}, fmt.Errorf("read the key set: %w", err)
	}
	seen := stamp{info.ModTime(), info.Size()}
	// Windows has no such bits; there the directory's access list says who may read.
	if mode := info.Mode().Perm(); mode&others != 0 && runtime.GOOS != "windows" {
		return document{}, seen, fmt.Errorf("the key set %s may be read by others than its owner (mode %#o); run: chmod 600 %s", path, mode, path)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes))
	if err != nil {
		return document{}, seen, fmt.Errorf("read the key set: %w", err)
	}
	d, err := decode(data)
	if err != nil {
		return document{}, seen, fmt.Errorf("the key set %s can't be used: %w", path, err)
	}
	return d, seen, nil
}

// create puts a document in a file that must not be there yet. The file appears whole or not at all;
// that another process was faster is no error.
func create(path string, d document) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the key set: %w", err)
	}
	file, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp") // mode 0600
	if err != nil {
		return fmt.Errorf("make the key set: %w", err)
	}
	defer os.Remove(file.Name()) // after the link, the other name stays
	if err := write(file, d); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the key set: %w", err)
	}
	return syncDir(dir)
}

// replace changes the document in a file. The new version's name is also the lock: of two at once,
// one is refused.
func replace(path string, change func(document) document) error {
	next := path + ".new"
	file, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, ownerOnly) //nolint:gosec // the path is the operator's own
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the key set is being changed by another process; if there is none, remove %s and try again", next)
	}
	if err != nil {
		return fmt.Errorf("change the key set: %w", err)
	}
	if err := publish(file, path, change); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return syncDir(filepath.Dir(path))
}

// publish writes the changed document to next and gives it the name path.
func publish(next *os.File, path string, change func(document) document) error {
	d, _, err := readDocument(path)
	if err != nil {
		return errors.Join(err, next.Close())
	}
	if err := write(next, change(d)); err != nil {
		return err
	}
	if err := os.Rename(next.Name(), path); err != nil {
		return fmt.Errorf("change the key set: %w", err)
	}
	return nil
}

// write makes d durable in file and closes it.
func write(file *os.File, d document) error {
	data, err := encode(d)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	_, err = file.Write(data)
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
