package main

import (
	"context"

	"bursar/internal/dashboard"
	"bursar/internal/store"
	"bursar/internal/work"
)

// health tells the pages how the work goes. Its loops are all there before anything is served.
type health struct {
	db    *store.DB
	loops []*work.Loop
}

// Loops are the work loops of this instance.
func (h *health) Loops() []dashboard.Loop {
	loops := make([]dashboard.Loop, 0, len(h.loops))
	for _, l := range h.loops {
		s := l.Status()
		loops = append(loops, dashboard.Loop{
			Name: l.Name, Steps: s.Steps, Failures: s.Failures,
			LastStepAt: s.LastStepAt, LastFailureAt: s.LastFailureAt, LastError: s.LastError,
		})
	}
	return loops
}

// Backlog is what is due in the whole service.
func (h *health) Backlog(ctx context.Context) (dashboard.Backlog, error) {
	w, err := h.db.Watch(ctx)
	return dashboard.Backlog(w), err
}
