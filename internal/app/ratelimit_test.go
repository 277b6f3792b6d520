package app

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"bursar/internal/config"
	"bursar/internal/store"
)

// TestTurns_SharedByInstances calls turns through two handles on one database, as two instances do.
func TestTurns_SharedByInstances(t *testing.T) {
	limited := configured{name: config.Sandbox, rate: 50}
	path := filepath.Join(t.TempDir(), "bursar.db")
	var all sync.WaitGroup
	began := time.Now()
	for range 2 {
		db, err := store.OpenSQLite(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		turn := limited.turns(db)
		for range 10 {
			all.Go(func() {
				if err := turn(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if took := time.Since(began); took < 19*20*time.Millisecond {
		t.Errorf("20 turns at 50 a second took %s, want at least 380ms", took)
	}
	limited.rate = 0.01
	db, err := store.OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_ = limited.turns(db)(t.Context())
	if err := limited.turns(db)(t.Context()); err == nil {
		t.Error("a turn in a hundred seconds was waited for")
	}
}
