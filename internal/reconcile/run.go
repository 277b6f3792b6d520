package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"bursar/internal/money"
	"bursar/internal/payout"
)

// Reconcile reads the statement of a period, compares it with the ledger and notes what differs. Days that
// were read whole before are read again only where again is set. It is safe to repeat and to break off; it
// fails with [ErrBusy] while another instance reconciles, and with [ErrNoStatement].
func (s *Service) Reconcile(ctx context.Context, p Period, again bool) (r Result, err error) {
	if !s.o.Statement.Capabilities().Statement {
		return Result{}, ErrNoStatement
	}
	err = s.inTurn(ctx, func(ctx context.Context) error {
		r, err = s.reconcile(ctx, p, again, false)
		return err
	})
	return r, err
}

func (s *Service) reconcile(ctx context.Context, p Period, again, daily bool) (Result, error) {
	if err := s.readDays(ctx, p, again); err != nil {
		return Result{}, err
	}
	if err := s.reachBack(ctx, p); err != nil {
		return Result{}, err
	}
	read, err := s.coverageOf(ctx, p)
	if err != nil {
		return Result{}, err
	}
	c, err := s.compare(ctx, p, read)
	if err != nil {
		return Result{}, fmt.Errorf("compare the statement with the ledger: %w", err)
	}
	if err := s.note(ctx, c.found, nil); err != nil {
		return Result{}, err
	}
	if err := s.recheckOpen(ctx, read, c); err != nil {
		return Result{}, err
	}
	if err := s.reschedule(ctx, c.found); err != nil {
		return Result{}, err
	}
	if c.result.Differences, err = s.asNoted(ctx, c.found); err != nil {
		return Result{}, err
	}
	for _, d := range c.result.Differences {
		if d.Open() {
			c.result.Open++
		}
	}
	now := s.o.Now()
	run := Run{ID: s.o.IDs.New("rec_", now), Gateway: s.at(), Period: p, Daily: daily, EndedAt: now, Result: c.result}
	if err := s.o.Store.KeepRun(ctx, run); err != nil {
		return Result{}, fmt.Errorf("keep the result: %w", err)
	}
	s.logResult(ctx, c.result)
	return c.result, nil
}

// logResult logs the outcome.
func (s *Service) logResult(ctx context.Context, r Result) {
	level := slog.LevelInfo
	if r.Open > 0 || r.Sums.Rest() != 0 {
		level = slog.LevelWarn
	}
	s.o.Logger.Log(ctx, level, "reconciliation finished",
		slog.String("gateway", string(s.at())), slog.Time("from", r.Period.From), slog.Time("to", r.Period.To), slog.Int("lines", r.Lines), slog.Int("payouts", r.Payouts),
		slog.Int("differences", r.Open), slog.Int64("rest", int64(r.Sums.Rest())))
}

// longestReachBack bounds how many days before a period are read for payouts that were ordered before it.
const longestReachBack = 10

// reachBack reads the days before the period in which the gateway may have taken money for payouts that it
// touches, and whose debit was not read yet.
func (s *Service) reachBack(ctx context.Context, p Period) error {
	from, err := s.firstOrder(ctx, p)
	if err != nil || from.IsZero() {
		return err
	}
	if least := s.midnight(p.From, -longestReachBack); from.Before(least) {
		from = least
	}
	return s.readDays(ctx, Period{from, s.midnight(p.From, 0)}, false)
}

// firstOrder is when the first of the payouts was ordered that were paid, returned or given up in the period, without
// a debit that was read; zero for none.
func (s *Service) firstOrder(ctx context.Context, p Period) (first time.Time, err error) {
	c := &comparison{s: s, p: p, recorded: map[payout.ID]money.Amount{}}
	if err := c.takeEntries(ctx); err != nil {
		return first, err
	}
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(c.recorded)), caseFiles) {
		if err := s.keepLease(ctx, errLeaseLost); err != nil {
			return first, err
		}
		all, err := s.caseFiles(ctx, batch, nil)
		if err != nil {
			return first, err
		}
		for _, d := range all {
			if at := begun(d.p); !d.endedUnsent() && !d.elsewhere() && !d.isTaken() && at.Before(p.From) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first, nil
}

// note writes down what was found, and what is gone.
func (s *Service) note(ctx context.Context, found, gone []Difference) error {
	const batch = 100
	now := s.o.Now()
	for len(found)+len(gone) > 0 {
		f, g := found[:min(batch, len(found))], gone[:min(batch, len(gone))]
		for i := range f {
			f[i].Gateway = s.at()
			f[i].ID, f[i].FirstSeen, f[i].LastSeen = idOf(f[i].Kind, f[i].Gateway, f[i].Subject), now, now
		}
		if err := s.o.Store.Found(ctx, f, g, now); err != nil {
			return fmt.Errorf("note what differs: %w", err)
		}
		found, gone = found[len(f):], gone[len(g):]
	}
	return nil
}

// asNoted is what was found with what is on record of it.
func (s *Service) asNoted(ctx context.Context, found []Difference) ([]Difference, error) {
	ids := make([]string, len(found))
	for i, d := range found {
		ids[i] = d.ID
	}
	var all []Difference
	for batch := range slices.Chunk(unique(ids), caseFiles) {
		noted, err := s.o.Store.Differences(ctx, batch)
		if err != nil {
			return nil, err
		}
		all = append(all, noted...)
	}
	return all, nil
}

// reschedule makes payouts due that the gateway may report a change of. The lines themselves are not
// believed.
func (s *Service) reschedule(ctx context.Context, found []Difference) error {
	var failed error
	for _, d := range found {
		if slices.Contains([]Kind{ReturnedAtGateway, RefundedButPaid, ReturnWithoutLine}, d.Kind) {
			_, err := s.o.Payouts.PollNow(ctx, d.Payout)
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// recheckOpen looks again at the open differences of this gateway's statement, with what was read already: some are gone, because
// the journal is up to date or the gateway corrected the statement. What a comparison just found, if there was one, is left.
func (s *Service) recheckOpen(ctx context.Context, read coverage, c *comparison) error {
	stays := map[string]bool{}
	var looked map[string]bool
	if c != nil {
		looked = c.balances.looked
		for _, d := range c.found {
			stays[d.ID] = true
		}
	}
	var last Difference
	for {
		if err := s.keepLease(ctx, errLeaseLost); err != nil {
			return err
		}
		open, err := s.o.Store.OpenDifferences(ctx, last, caseFiles)
		if err != nil || len(open) == 0 {
			return err
		}
		last = open[len(open)-1]
		open = slices.DeleteFunc(open, func(d Difference) bool { return d.Gateway != s.at() })
		r := review{s: s, open: open, read: read, looked: looked, stays: stays}
		for _, part := range []func(context.Context) error{r.payouts, r.unmatched, r.lines} {
			if err := part(ctx); err != nil {
				return err
			}
		}
		if err := s.note(ctx, r.found, r.gone()); err != nil {
			return err
		}
	}
}

// When the service works by itself.
const (
	// dailyAfter is how long after midnight the day before is read: what was recorded late is listed by then.
	dailyAfter = 3 * time.Hour
	// againDays is how many days before are read again with it, in case the gateway changes its mind.
	againDays = 2
	// pollEvery is how often the open differences are looked at again.
	pollEvery = 10 * time.Minute
	// retryFirst is the wait after a failure; it doubles up to maxRetry.
	retryFirst = time.Minute
	maxRetry   = time.Hour
)

// RunDue reconciles the days that are over and were not yet, and now and then looks again at what is open.
// It returns 0: there is nothing more to do then.
func (s *Service) RunDue(ctx context.Context) (int, error) {
	if !s.o.Statement.Capabilities().Statement {
		return 0, nil
	}
	pace, err := s.o.Store.Pace(ctx)
	if err != nil {
		return 0, err
	}
	now := s.o.Now()
	if wait := pace.DueAt.Sub(now); wait > 0 && wait <= maxRetry { // one that is longer was set by a clock that was wrong
		return 0, nil
	}
	days, err := s.dueDays(ctx)
	if err != nil || len(days) == 0 && now.Sub(pace.LookedAt).Abs() < pollEvery {
		return 0, err
	}
	err = s.inTurn(ctx, func(ctx context.Context) error {
		still, err := s.dueDays(ctx) // the holder before may have done them
		if err != nil || len(days) > 0 && len(still) == 0 {
			return err
		}
		return s.runDays(ctx, still)
	})
	switch {
	case errors.Is(err, ErrBusy):
		return 0, nil
	case err != nil && ctx.Err() != nil: // the service stops
		return 0, err
	case err != nil:
		pace.DueAt = now.Add(min(retryFirst<<min(pace.Failures, 10), maxRetry))
		pace.Failures++
	default:
		pace = Pace{LookedAt: s.o.Now()}
	}
	return 0, errors.Join(err, s.o.Store.SetPace(ctx, pace))
}

func (s *Service) runDays(ctx context.Context, days []Period) error {
	for _, day := range days {
		if _, err := s.reconcile(ctx, day, true, true); err != nil {
			return err
		}
	}
	if len(days) > 0 {
		return nil
	}
	read, err := s.wholeDays(ctx, s.midnight(s.o.Now(), -coverageDays), s.o.Now())
	if err != nil {
		return err
	}
	var whole coverage
	for _, d := range read {
		whole = whole.add(Period{d.From, d.To})
	}
	return s.recheckOpen(ctx, whole, nil)
}

// dueDays are the days to be reconciled by now: those since the last one that was, and those before it that
// are read again.
func (s *Service) dueDays(ctx context.Context) ([]Period, error) {
	now := s.o.Now()
	reached, err := s.o.Store.Reached(ctx, now)
	if err != nil {
		return nil, err
	}
	over := s.midnight(now, 0)
	if now.Sub(over) < dailyAfter {
		over = s.midnight(now, -1)
	}
	switch {
	case reached.IsZero():
		first, err := s.firstDue(ctx, over)
		return s.days(Period{first, over}), err
	case !reached.Before(over):
		return nil, nil
	default:
		return s.days(Period{s.midnight(reached, -againDays), over}), nil
	}
}

// firstDue is where a service begins that never reconciled a day to its end: with the day on which the gateway was first sent a payout,
// at most a month before over, and at the latest with the day before over. An outage may have begun soon after the first start, or the
// database was put back to before the first night.
func (s *Service) firstDue(ctx context.Context, over time.Time) (time.Time, error) {
	const month = 31
	sent, err := s.o.Store.FirstSent(ctx)
	dayBefore, first := s.midnight(over, -1), s.midnight(over, -month)
	switch {
	case err != nil, sent.IsZero(), sent.After(dayBefore):
		return dayBefore, err
	case sent.After(first):
		return s.midnight(sent, 0), nil
	default:
		return first, nil
	}
}
