package dashboard

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"bursar/internal/ledger"
)

// audits runs the books' audit, one at a time, and keeps the last report.
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
	// Failed says that it came to no end, so nothing is known of the books.
	Failed bool
}

// Clean reports whether the books are known to be right.
func (a auditRun) Clean() bool { return !a.Failed && a.Report.Clean() }

// Took is how long it took.
func (a auditRun) Took() string {
	if d := a.Ended.Sub(a.Began); d < time.Minute {
		return d.Round(10 * time.Millisecond).String()
	}
	return span(a.Ended.Sub(a.Began))
}

// Broken counts the promises that are broken.
func (a auditRun) Broken() int {
	n := 0
	for _, f := range a.Report.Findings {
		if len(f.Violations) > 0 {
			n++
		}
	}
	return n
}

// Most is how many violations of one promise are listed at most.
func (auditRun) Most() int { return ledger.MaxViolations }

// booksView is how the last audit of this instance went.
type booksView struct {
	Running bool
	Began   time.Time
	Last    *auditRun // nil for none since the start
}

// Label says how the books are, as far as is known.
func (b booksView) Label() label {
	switch {
	case b.Running:
		return label{"Being audited", busy}
	case b.Last == nil:
		return label{"Not audited yet", neutral}
	case b.Last.Failed:
		return label{"Audit failed", bad}
	case !b.Last.Clean():
		return label{"Not right", bad}
	default:
		return label{"Right", good}
	}
}

// Kept and Broken are how a promise was found.
func (booksView) Kept() label { return label{"Kept", good} }

// Broken is a promise that does not hold.
func (booksView) Broken() label { return label{"Broken", bad} }

func (a *audits) view() booksView {
	a.mu.Lock()
	defer a.mu.Unlock()
	return booksView{a.running, a.began, a.last}
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

// audit checks the books for as long as that takes.
func (d *dashboard) audit(ctx context.Context) {
	report, err := safeAudit(ctx, d.o.Books)
	d.audits.end(d.o.Now(), report, err)
	switch {
	case err != nil:
		d.o.Logger.ErrorContext(ctx, "the audit came to no end", "error", err)
	case !report.Clean():
		d.o.Logger.ErrorContext(ctx, "the books are not right; see the dashboard, or run bursar audit")
	default:
		d.o.Logger.InfoContext(ctx, "the books are right")
	}
}

// safeAudit turns a panic into an error: a page must not end the service.
func safeAudit(ctx context.Context, books Books) (r ledger.Report, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("panic: %v\n%s", broken, debug.Stack())
		}
	}()
	return books.Audit(ctx)
}

// adminBooks shows how the last audit went.
func (d *dashboard) adminBooks(context.Context, *visit) (page, error) {
	shown := d.audits.view()
	p := show("admin-books", "Books", shown)
	p.live = shown.Running
	return p, nil
}

// adminAudit begins an audit, or joins the one that runs.
func (d *dashboard) adminAudit(context.Context, *visit) (page, error) {
	if d.audits.begin(d.o.Now()) {
		d.o.Background(d.audit)
	}
	return goTo(adminHome + "/books"), nil
}
