package health

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"bursar/internal/ledger"
)

// Audits runs the audit of the ledger, one at a time, and keeps the last result. Its fields are set before it is used.
type Audits struct {
	// Run checks the ledger.
	Run func(context.Context) (ledger.Report, error)
	// Background runs what a request begins and does not wait for.
	Background func(func(context.Context))
	Now        func() time.Time
	Logger     *slog.Logger

	mu    sync.Mutex
	state AuditState
}

// Audit is an audit that has ended.
type Audit struct {
	Began, Ended time.Time
	Report       ledger.Report
	// Failed says that it did not finish, so nothing is known of the ledger.
	Failed bool
}

// Clean reports whether the ledger is known to be right.
func (a Audit) Clean() bool { return !a.Failed && a.Report.Clean() }

// Broken counts the checks that failed.
func (a Audit) Broken() int {
	n := 0
	for _, f := range a.Report.Findings {
		if len(f.Violations) > 0 {
			n++
		}
	}
	return n
}

// Passed counts the checks that found nothing.
func (a Audit) Passed() int { return len(a.Report.Findings) - a.Broken() }

// AuditState is whether an audit runs, since when, and the last result.
type AuditState struct {
	Running bool
	Began   time.Time
	Last    *Audit // nil for none since the start
}

// State tells how the last audit went.
func (a *Audits) State() AuditState {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// Begin starts an audit in the background, unless one runs, and tells how it is.
func (a *Audits) Begin() AuditState {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.state.Running {
		a.state.Running, a.state.Began = true, a.Now()
		a.Background(a.audit)
	}
	return a.state
}

// audit checks the ledger for as long as that takes.
func (a *Audits) audit(ctx context.Context) {
	report, err := a.safely(ctx)
	a.end(report, err)
	switch {
	case err != nil:
		a.Logger.ErrorContext(ctx, "ledger audit not finished", slog.Any("error", err))
	case !report.Clean():
		a.Logger.ErrorContext(ctx, "ledger audit found violations")
	default:
		a.Logger.InfoContext(ctx, "ledger audit passed")
	}
}

func (a *Audits) end(r ledger.Report, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state = AuditState{Began: a.state.Began, Last: &Audit{Began: a.state.Began, Ended: a.Now(), Report: r, Failed: err != nil}}
}

// safely turns a panic into an error: an audit must not end the service.
func (a *Audits) safely(ctx context.Context) (r ledger.Report, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("panic: %v\n%s", broken, debug.Stack())
		}
	}()
	return a.Run(ctx)
}
