package dashboard

import (
	"context"
	"time"
)

// healthView is how the work goes.
type healthView struct {
	Instance
	Loops             []loopRow
	Backlog           Backlog
	Due               []dueRow
	Waiting           []waiting
	StartupReconciled bool
}

// loopRow is a work loop as operators see it.
type loopRow struct {
	Loop
	now time.Time
}

const (
	// loopSlack is how much longer than thrice its rest a loop may be silent: its steps take their time.
	loopSlack = time.Minute
	// loopRecent is how long a failure is news.
	loopRecent = 5 * time.Minute
)

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
		"payouts": "Payouts", "returns": "Returned payouts", "bank_accounts": "Bank accounts", "sales": "Releasing sales", "events": "Numbering events", "webhooks": "Webhooks", "sweep_webhooks": "Cleaning up webhooks", "mails": "Mails", "mail_requests": "Mail requests", "sweep_mails": "Cleaning up mails", "watch": "Metrics",
		"checkpoints": "Ledger checkpoints", "reconcile": "Reconciliation", "sweep_sign_in": "Cleaning up sign-ins", "sweep_payouts": "Cleaning up requests",
	}[name]
}

// Label says how a loop does. Steps that fail are taken again, and some are bound to: a payout that is
// unknown fails at each look.
func (l loopRow) Label() label {
	failedNow := !l.LastFailureAt.IsZero() && l.now.Sub(l.LastFailureAt) < loopRecent
	switch {
	case l.LastPollAt.IsZero() && l.LastFailureAt.IsZero():
		return label{"Not started", neutral}
	case l.LastPollAt.IsZero() || l.now.Sub(l.LastPollAt) > 3*l.Every+loopSlack:
		return label{"Stalled", bad}
	case failedNow:
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
