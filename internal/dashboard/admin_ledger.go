package dashboard

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"bursar/internal/ledger"
)

// audits runs the ledger' audit, one at a time, and keeps the last report.
type audits struct {
	mu      sync.Mutex
	running bool
	began   time.Time
	last    *auditRun
}

// auditRun is an audit that has ended.
type auditRun struct {
	Began, Ended time.Time
	Report       ledger.Report
	// Failed says that it came to no end, so nothing is known of the ledger.
	Failed bool
}

// Clean reports whether the ledger is known to be right.
func (a auditRun) Clean() bool { return !a.Failed && a.Report.Clean() }

// Took is how long it took.
func (a auditRun) Took() string {
	if d := a.Ended.Sub(a.Began); d < time.Minute {
		return d.Round(10 * time.Millisecond).String()
	}
	return span(a.Ended.Sub(a.Began))
}

// Broken counts the checks that failed.
func (a auditRun) Broken() int {
	n := 0
	for _, f := range a.Report.Findings {
		if len(f.Violations) > 0 {
			n++
		}
	}
	return n
}

// Passed counts the checks that found nothing.
func (a auditRun) Passed() int { return len(a.Report.Findings) - a.Broken() }

// auditView is how the last audit of this instance went.
type auditView struct {
	Running bool
	Began   time.Time
	Last    *auditRun // nil for none since the start
}

// Label says how the ledger is, as far as is known.
func (b auditView) Label() label {
	switch {
	case b.Running:
		return label{"Audit running", busy}
	case b.Last == nil:
		return label{"Not audited yet", neutral}
	case b.Last.Failed:
		return label{"Audit failed", bad}
	case !b.Last.Clean():
		return label{"Not balanced", bad}
	default:
		return label{"Balanced", good}
	}
}

// checked is how a check of the audit ended.
func checked(f ledger.Finding) label {
	if len(f.Violations) > 0 {
		return label{"Failed", bad}
	}
	return label{"Passed", good}
}

func (a *audits) view() auditView {
	a.mu.Lock()
	defer a.mu.Unlock()
	return auditView{a.running, a.began, a.last}
}

// begin reports whether an audit is to be begun: no other one runs.
func (a *audits) begin(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running {
		return false
	}
	a.running, a.began = true, now
	return true
}

func (a *audits) end(now time.Time, r ledger.Report, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = &auditRun{Began: a.began, Ended: now, Report: r, Failed: err != nil}
	a.running = false
}

// audit checks the ledger for as long as that takes.
func (d *dashboard) audit(ctx context.Context) {
	report, err := safeAudit(ctx, d.o.Ledger)
	d.audits.end(d.o.Now(), report, err)
	switch {
	case err != nil:
		d.o.Logger.ErrorContext(ctx, "ledger audit not finished", "error", err)
	case !report.Clean():
		d.o.Logger.ErrorContext(ctx, "ledger audit found violations")
	default:
		d.o.Logger.InfoContext(ctx, "ledger audit passed")
	}
}

// safeAudit turns a panic into an error: a page must not end the service.
func safeAudit(ctx context.Context, audited Ledger) (r ledger.Report, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("panic: %v\n%s", broken, debug.Stack())
		}
	}()
	return audited.Audit(ctx)
}

// adminLedger shows how the last audit went.
func (d *dashboard) adminLedger(context.Context, *pageRequest) (page, error) {
	shown := d.audits.view()
	p := show("admin-ledger", "Ledger", shown)
	p.live = shown.Running
	return p, nil
}

// adminAudit begins an audit, or joins the one that runs.
func (d *dashboard) adminAudit(context.Context, *pageRequest) (page, error) {
	if d.audits.begin(d.o.Now()) {
		d.o.Background(d.audit)
	}
	return goTo(adminHome + "/ledger"), nil
}
