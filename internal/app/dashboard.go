package app

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"bursar/internal/dashboard"
	"bursar/internal/store"
	"bursar/internal/work"
)

// health tells the pages how the work goes. Its loops are all there before anything is served.
type health struct {
	version string
	db      *store.DB
	loops   []*work.Loop
	started time.Time
}

// Instance tells of this process.
func (h *health) Instance() dashboard.Instance {
	i := dashboard.Instance{Version: h.version, StartedAt: h.started}
	pools := h.db.Stats().Pools
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		p := pools[name]
		i.Pools = append(i.Pools, dashboard.Pool{
			Name: name, InUse: p.InUse, Max: p.MaxOpenConnections, Waits: p.WaitCount, Waited: p.WaitDuration.Round(time.Millisecond),
		})
	}
	return i
}

// Loops are the work loops of this instance.
func (h *health) Loops() []dashboard.Loop {
	loops := make([]dashboard.Loop, 0, len(h.loops))
	for _, l := range h.loops {
		s := l.Status()
		loops = append(loops, dashboard.Loop{
			Name: l.Name, Every: l.Every, Steps: s.Steps, Failures: s.Failures,
			LastPollAt: s.LastPollAt, LastStepAt: s.LastStepAt, LastFailureAt: s.LastFailureAt, LastError: s.LastError,
		})
	}
	return loops
}

// Backlog is what is due in the whole service.
func (h *health) Backlog(ctx context.Context) (dashboard.Backlog, error) {
	w, err := h.db.Watch(ctx, time.Now())
	if err != nil {
		return dashboard.Backlog{}, err
	}
	kinds, err := h.db.OpenKinds(ctx)
	differences := int64(0)
	for _, n := range kinds {
		differences += n
	}
	return dashboard.Backlog{
		Late: w.Late, LateSince: w.LateSince,
		Unknown: w.Unknown, ManualReview: w.ManualReview, Discrepancies: w.Discrepancies, UnmatchedTransfers: w.UnmatchedTransfers, AccountsInReview: w.AccountsInReview, Differences: differences,
		PayoutDue: w.PayoutDue, AccountDue: w.AccountDue, SaleDue: w.SaleDue, MailDue: w.MailDue,
	}, err
}

// newBackground makes a way to run what a request begins and does not wait for, and the stage that ends it.
// It has to be stopped after everything that starts audits.
func newBackground() (begin func(func(context.Context)), run stage) {
	running, stop := context.WithCancel(context.Background())
	var jobs sync.WaitGroup
	begin = func(job func(context.Context)) { jobs.Go(func() { job(running) }) }
	run = func(ctx context.Context) error {
		<-ctx.Done()
		stop()
		jobs.Wait()
		return nil
	}
	return begin, run
}
