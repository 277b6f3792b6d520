package storetest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"bursar/internal/keyset"
)

var (
	keysOnce sync.Once
	keys     *keyset.Set
	errKeys  error
)

// Keys are the test's own, the same for every datastore of one test program, so that a copy of one opens with them.
func Keys(t testing.TB) *keyset.Set {
	t.Helper()
	keysOnce.Do(func() { keys, errKeys = newKeys(t) })
	if errKeys != nil {
		t.Fatal(errKeys)
	}
	return keys
}

// newKeys makes a key set that is read no more: its file is gone when the first test that asked for it ends.
func newKeys(t testing.TB) (*keyset.Set, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	if _, err := keyset.Open(t.Context(), keyset.File(path)); err != nil {
		return nil, err
	}
	document, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return keyset.FromJSON(document)
}
