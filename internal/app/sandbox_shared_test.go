package app

import (
	"path/filepath"
	"testing"
)

// TestSandboxPlace_Check refuses a place that no instance could have pinned.
func TestSandboxPlace_Check(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	own := sandboxPlace{"127.0.0.1:18000", filepath.Join(dir, "sandbox.db")}
	everywhere := sandboxPlace{"0.0.0.0:18000", own.File}
	for name, tt := range map[string]struct {
		place, own sandboxPlace
		isOurs     bool
	}{
		"its own":                       {own, own, true},
		"another instance's":            {sandboxPlace{"127.0.0.1:18001", filepath.Join(other, "sandbox.db")}, own, true},
		"by the name of this machine":   {sandboxPlace{"localhost:18001", own.File}, own, true},
		"open to the network, as asked": {everywhere, everywhere, true},
		"open to the network":           {everywhere, own, false},
		"another machine":               {sandboxPlace{"203.0.113.9:18000", own.File}, own, false},
		"no address":                    {sandboxPlace{"", own.File}, own, false},
		"another file":                  {sandboxPlace{own.Address, filepath.Join(other, "authorized_keys")}, own, false},
		"in a folder that is not there": {sandboxPlace{own.Address, filepath.Join(other, "new", "sandbox.db")}, own, false},
	} {
		if err := tt.place.check(tt.own); (err == nil) != tt.isOurs {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := readPlace("garbage"); err == nil {
		t.Error("garbage is a place")
	}
}
