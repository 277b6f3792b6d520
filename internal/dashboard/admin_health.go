package dashboard

import (
	"context"
	"time"

	"bursar/internal/health"
)

// healthView is how the work goes.
type healthView struct {
	health.Instance
	Loops             []loopRow
	Backlog           health.Backlog
	Due               []dueRow
	Waiting           []waiting
	StartupReconciled bool
}

// loopRow is a work loop as operators see it.
type loopRow struct {
	health.Loop
	now time.Time
}

// Does says what a loop does, in words. A name without any is shown as it is.
func (l loopRow) Does() string {
	if words := LoopWords(l.Name); words != "" {
		return words
	}
	return l.Name
}

// LoopWords says what the loop of a name does, or "".
func LoopWords(name string) string {
	return map[string]string{
		"payouts": "Payouts", "reversals": "Returned payouts", "bank_accounts": "Bank accounts", "sales": "Releasing sales", "events": "Numbering events", "webhooks": "Webhooks", "sweep_webhooks": "Cleaning up webhooks", "mails": "Mails", "mail_requests": "Mail requests", "sweep_mails": "Cleaning up mails", "watch": "Metrics",
		"checkpoints": "Ledger checkpoints", "reconcile": "Reconciliation", "sweep_sign_in": "Cleaning up sign-ins", "sweep_payouts": "Cleaning up requests",
	}[name]
}

// Label says how a loop does.
func (l loopRow) Label() label {
	switch l.State(l.now) {
	case health.NotStarted:
		return label{"Not started", neutral}
	case health.Stalled:
		return label{"Stalled", bad}
	case health.Retrying:
		return label{"Retrying", busy}
	default:
		return label{"Working", good}
	}
}

// dueRow is since when something has been due.
type dueRow struct {
	What string
	Due  time.Time
}

func (d *dashboard) loopRows() []loopRow {
	var rows []loopRow
	for _, l := range d.o.Health.Loops() {
		rows = append(rows, loopRow{l, d.o.Now()})
	}
	return rows
}

// adminHealth shows the loops of this instance, and what is due in the whole service.
func (d *dashboard) adminHealth(ctx context.Context, _ *pageRequest) (page, error) {
	backlog, err := d.o.Health.Backlog(ctx)
	if err != nil {
		return page{}, err
	}
	return show("admin-health", "Health", healthView{
		Instance: d.o.Health.Instance(), Loops: d.loopRows(), Backlog: backlog, Waiting: waitingOf(backlog, d.o.Now()),
		Due:               []dueRow{{"Payouts", backlog.PayoutDue}, {"Bank accounts", backlog.AccountDue}, {"Sales to release", backlog.SaleDue}, {"Mails", backlog.MailDue}},
		StartupReconciled: d.o.Payouts.StartupReconciled(),
	}), nil
}
