package app

import (
	"path/filepath"
	"testing"
)

// TestSandboxPlace_Trusted refuses a place that no instance could have pinned, and makes no folder.
func TestSandboxPlace_Trusted(t *testing.T) {
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
	} {
		if place, err := tt.place.trusted(tt.own); (err == nil) != tt.isOurs || place != tt.place {
			t.Errorf("%s: %+v, %v", name, place, err)
		}
	}
	elsewhere := sandboxPlace{own.Address, filepath.Join(other, "new", "sandbox.db")}
	if place, err := elsewhere.trusted(own); err != nil || place != own {
		t.Errorf("in a folder that is not there the place is %+v, %v", place, err)
	}
	if _, err := readPlace("garbage"); err == nil {
		t.Error("garbage is a place")
	}
}
