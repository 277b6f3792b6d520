package app

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"bursar/internal/health"
	"bursar/internal/store"
	"bursar/internal/work"
)

// healthOf tells operators how the work goes. Its loops are all there before anything is served.
type healthOf struct {
	version string
	db      *store.DB
	loops   []*work.Loop
	started time.Time
}

// Instance tells of this process.
func (h *healthOf) Instance() health.Instance {
	i := health.Instance{Version: h.version, StartedAt: h.started}
	pools := h.db.Stats().Pools
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		p := pools[name]
		i.Pools = append(i.Pools, health.Pool{
			Name: name, InUse: p.InUse, Max: p.MaxOpenConnections, Waits: p.WaitCount, Waited: p.WaitDuration.Round(time.Millisecond),
		})
	}
	return i
}

// Loops are the work loops of this instance.
func (h *healthOf) Loops() []health.Loop {
	loops := make([]health.Loop, 0, len(h.loops))
	for _, l := range h.loops {
		s := l.Status()
		loops = append(loops, health.Loop{
			Name: l.Name, Every: l.Every, Steps: s.Steps, Failures: s.Failures,
			LastPollAt: s.LastPollAt, LastStepAt: s.LastStepAt, LastFailureAt: s.LastFailureAt, LastError: s.LastError,
		})
	}
	return loops
}

// Backlog is what is due in the whole service.
func (h *healthOf) Backlog(ctx context.Context) (health.Backlog, error) {
	w, err := h.db.Watch(ctx, time.Now())
	if err != nil {
		return health.Backlog{}, err
	}
	kinds, err := h.db.OpenKinds(ctx)
	differences := int64(0)
	for _, n := range kinds {
		differences += n
	}
	return health.Backlog{
		Late: w.Late, LateSince: w.LateSince,
		Unknown: w.Unknown, ManualReview: w.ManualReview, Discrepancies: w.Discrepancies, UnmatchedTransfers: w.UnmatchedTransfers, AccountsInReview: w.AccountsInReview, Differences: differences, WebhooksDisabled: w.WebhooksDisabled,
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
