package app

import (
	"log/slog"
	"testing"
	"time"

	"bursar/internal/config"
	"bursar/internal/dashboard"
	"bursar/internal/telemetry"
)

// TestNewWork_EveryLoopHasWords keeps raw names of loops off the pages.
func TestNewWork_EveryLoopHasWords(t *testing.T) {
	h := &healthOf{}
	newWork(config.Config{CheckpointEvery: time.Hour}, Services{}, &Datastore{}, h, telemetry.NewMetrics(), slog.New(slog.DiscardHandler))
	if len(h.loops) < 10 {
		t.Errorf("%d loops", len(h.loops))
	}
	for _, l := range h.loops {
		if dashboard.LoopWords(l.Name) == "" {
			t.Errorf("the health page calls the loop %q by its raw name", l.Name)
		}
	}
}
