//go:build linux || darwin

package pgtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// throwAway are the settings of a server whose data nobody wants back, for many tests at once.
// Deadlocks are looked for soon, because some tests make them.
var throwAway = map[string]string{
	"fsync":              "off",
	"synchronous_commit": "off",
	"full_page_writes":   "off",
	"wal_level":          "minimal",
	"max_wal_senders":    "0",
	"autovacuum":         "off",
	"max_wal_size":       "256MB",
	"deadlock_timeout":   "150ms",
}

// runServer returns the URL of the test run's server, and starts it for the first who asks.
func runServer() (string, error) {
	owner, err := runOwner()
	if err != nil {
		return "", err
	}
	started := ""
	err = locked(memory(), func(base string) error {
		dir, err := home(base, owner)
		if err != nil {
			return err
		}
		ready := filepath.Join(dir, "url")
		kept, err := os.ReadFile(ready)
		if started = string(kept); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s, err := newServer(filepath.Join(dir, "run"), throwAway)
		if err != nil {
			return err
		}
		if err := s.startAnywhere(); err != nil {
			return err
		}
		started = s.url("postgres").String()
		return os.WriteFile(ready, []byte(started), 0o600)
	})
	return started, err
}
