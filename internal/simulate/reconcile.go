package simulate

import (
	"time"

	"bursar/internal/payout"
	"bursar/internal/reconcile"
)

// newReconciling makes what compares the gateway's statement with the book.
func (on *instance) newReconciling(statement reconcile.Statement) (*reconcile.Service, error) {
	return reconcile.New(reconcile.Options{
		Store: on.db.Reconciling(), Statement: statement, Payouts: on.payouts, Currency: rupees(), Grace: 10 * time.Minute,
		Zone: indianTime, Now: on.now, Logger: on.m.logger(on.name), IDs: on.m.ids,
	})
}

// reconcileAll compares the gateway's statement of all the time with the book, once all is quiet.
func (m *market) reconcileAll() {
	on := m.anyInstance()
	if on == nil {
		return // which the judge tells
	}
	var r reconcile.Result
	err := errLost
	m.work(on, 0, "reconcile", func() {
		from, to := midnight(m.start), midnight(m.clock())
		r, err = on.reconciling.Reconcile(m.ctx, reconcile.Period{From: from, To: to}, false)
	})
	m.pass(m.now + 12*time.Hour)
	if m.violation != nil || !m.hold(statementAgrees, err == nil, "", "reconcile: %v", err) {
		return
	}
	m.hold(statementAgrees, r.Sums.Rest() == 0 && r.Sums.Gap() == 0, "", "nothing accounts for %d, and balances miss %d: %+v", r.Sums.Rest(), r.Sums.Gap(), r.Sums)
	for _, d := range r.Differences {
		m.hold(statementAgrees, !d.Open() || m.explains(d), string(d.Payout), "%s of %s: %s", d.Kind, d.Subject, d.Detail)
	}
}

// explains reports whether a fault is why the statement and the book differ: money was taken from the account by
// hand, or a person has to look at the payout.
func (m *market) explains(d reconcile.Difference) bool {
	w := m.model.payouts[d.Payout]
	switch {
	case d.Kind == reconcile.UnexplainedDebit:
		return m.o.Faults[broke]
	case w == nil:
		return false
	default:
		return w.state == payout.Held || w.last.Contradiction != ""
	}
}

// midnight is when the day of t began in India.
func midnight(t time.Time) time.Time {
	y, month, d := t.In(indianTime).Date()
	return time.Date(y, month, d, 0, 0, 0, 0, indianTime)
}
