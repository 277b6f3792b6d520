// Package work runs what is due.
//
// Work is not queued: a row that needs a next step says when, in a due_at column, so the row and the
// queue can't part. A [Loop] leases due rows, does each one's step outside any transaction, and
// leaves it to the step's own compare-and-set to record the result. A crash leaves the lease to run
// out. Any number of loops may run beside each other, in one process or many.
package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Loop takes what is due and does it, until its context ends.
type Loop struct {
	// Name tells loops apart in logs and metrics.
	Name string
	// Every is how long the loop rests when nothing is due.
	Every time.Duration
	// Workers is how many steps run at once.
	Workers int
	// StepTimeout bounds the time from the lease of a step to its end. Leases are longer, so that a step that hangs, or that waits
	// for a worker, has given up before anybody else takes it up.
	StepTimeout time.Duration
	// Take leases up to limit things that are due and returns a step for each.
	Take func(ctx context.Context, limit int) ([]Step, error)
	// Done is called for each step that ended, with its error. A Take that failed counts as a step.
	Done   func(loop string, took time.Duration, err error)
	Logger *slog.Logger
	Now    func() time.Time

	tally  tally
	failed failures
}

// Step does what is next for one thing that is due.
type Step func(ctx context.Context) error

// Run works until ctx ends, waits for the steps under way, and returns nil. Errors of steps are
// logged; the row stays due and is taken again.
func (l *Loop) Run(ctx context.Context) error {
	if l.Name == "" || l.Every <= 0 || l.Workers <= 0 || l.StepTimeout <= 0 || l.Take == nil || l.Done == nil || l.Logger == nil || l.Now == nil {
		return errors.New("work: a loop needs all its parts")
	}
	steps := make(chan leased)
	var workers sync.WaitGroup
	for range l.Workers {
		workers.Go(func() {
			for step := range steps {
				l.do(ctx, step)
			}
		})
	}
	l.feed(ctx, steps)
	close(steps)
	workers.Wait()
	return nil
}

// feed hands out what is due, as fast as the workers take it.
func (l *Loop) feed(ctx context.Context, steps chan<- leased) {
	var failing outage
	for ctx.Err() == nil {
		began := l.Now()
		var due []Step
		err := Safely(ctx, func(ctx context.Context) (err error) {
			due, err = l.Take(ctx, l.Workers)
			return err
		})
		if ctx.Err() == nil {
			l.logOutage(ctx, &failing, err)
			l.tally.polled(l.Now(), err)
			if err != nil {
				l.Done(l.Name, l.Now().Sub(began), err)
			}
		}
		if err != nil {
			due = nil // a lease that was not recorded is none
		}
		for _, step := range due {
			select {
			case steps <- leased{step, began.Add(l.StepTimeout)}:
			case <-ctx.Done():
				return // the leases of the rest run out
			}
		}
		if len(due) == l.Workers {
			continue // there is probably more
		}
		select {
		case <-time.After(l.Every):
		case <-ctx.Done():
		}
	}
}

// outage is a row of failures to take what is due.
type outage struct {
	failures      int
	since, logged time.Time
}

// logEvery is how often an outage is logged while it lasts. A loop tries several times a second.
const logEvery = 10 * time.Second

// logOutage logs when an outage begins, now and then while it lasts, and when it is over.
func (l *Loop) logOutage(ctx context.Context, o *outage, err error) {
	now := l.Now()
	if err == nil {
		if o.failures > 0 {
			l.Logger.InfoContext(ctx, "due work can be leased again", slog.String("loop", l.Name),
				slog.Int("failures", o.failures), slog.String("after", now.Sub(o.since).Round(time.Millisecond).String()))
		}
		*o = outage{}
		return
	}
	if o.failures == 0 {
		o.since = now
	}
	o.failures++
	if o.failures == 1 || now.Sub(o.logged) >= logEvery {
		o.logged = now
		l.Logger.ErrorContext(ctx, "due work not leased", slog.String("loop", l.Name), slog.Int("failures", o.failures), slog.Any("error", err))
	}
}

// errWaited is the end of a step that did not begin.
var errWaited = errors.New("it waited too long for a worker; it is taken up again when its lease has run out")

// leased is a step and when it has to be over.
type leased struct {
	step Step
	end  time.Time
}

// do lets a step that has begun come to its end when the loop stops: cutting off a transfer that is
// being sent would leave its outcome unknown for no reason. A step that waited for a worker for more than a quarter of its time
// does not begin, because it could be cut off: another worker takes it once its lease has run out.
func (l *Loop) do(ctx context.Context, due leased) {
	start := l.Now()
	left := due.end.Sub(start)
	err := errWaited
	if left >= l.StepTimeout*3/4 {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
		defer cancel()
		err = Safely(bounded, due.step)
	}
	l.tally.stepped(l.Now(), err)
	l.Done(l.Name, l.Now().Sub(start), err)
	if err == nil || ctx.Err() != nil {
		return
	}
	if suppressed, due := l.failed.admit(l.Now()); due {
		l.Logger.WarnContext(ctx, "step failed", slog.String("loop", l.Name), slog.Any("error", err), slog.Int("suppressed", suppressed))
	}
}

// loggedFailures is how many failures of steps are logged within logEvery: in an outage all fail.
const loggedFailures = 10

// failures counts those of steps.
type failures struct {
	mu                 sync.Mutex
	since              time.Time
	logged, suppressed int
}

// admit reports whether a failure is logged, and how many were suppressed since the last one.
func (f *failures) admit(now time.Time) (suppressed int, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.since) >= logEvery {
		f.since, f.logged = now, 0
	}
	if f.logged == loggedFailures {
		f.suppressed++
		return 0, false
	}
	f.logged++
	suppressed, f.suppressed = f.suppressed, 0
	return suppressed, true
}

// Safely turns a panic into an error: one bad row must not end the work on all others.
func Safely(ctx context.Context, step Step) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return step(ctx)
}

// Each makes a loop's Take of a service's LeaseDue and Step.
func Each[ID any](take func(context.Context, int) ([]ID, error), step func(context.Context, ID) error) func(context.Context, int) ([]Step, error) {
	return func(ctx context.Context, limit int) ([]Step, error) {
		ids, err := take(ctx, limit)
		steps := make([]Step, len(ids))
		for i, id := range ids {
			steps[i] = func(ctx context.Context) error { return step(ctx, id) }
		}
		return steps, err
	}
}

// Batch makes a loop's Take of a call that does a batch of work and returns how much it did: it is
// due all the time, and called again at once while there is work.
func Batch[N int | int64](do func(context.Context) (N, error)) func(context.Context, int) ([]Step, error) {
	return func(ctx context.Context, _ int) ([]Step, error) {
		for ctx.Err() == nil {
			if n, err := do(ctx); err != nil || n == 0 {
				return nil, err
			}
		}
		return nil, nil
	}
}
