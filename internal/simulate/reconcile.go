package simulate

import (
	"slices"
	"strings"
	"time"

	port "bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
)

// newReconciling makes what compares a gateway's statement with the ledger.
func (on *instance) newReconciling(at port.Name) (*reconcile.Service, error) {
	statement, err := on.router.Named(at)
	if err != nil {
		return nil, err
	}
	return reconcile.New(reconcile.Options{
		Store: on.db.Reconciling(statement.Name()), Statement: statement, Payouts: on.payouts, Currency: rupees(), GracePeriod: gracePeriod,
		Zone: indianTime, Now: on.now, Logger: on.m.logger(on.name), IDs: on.m.ids,
	})
}

// reconcileAll compares the statement of each gateway of all the time with the ledger, once all is quiet.
func (m *market) reconcileAll() {
	on := m.anyInstance()
	if on == nil {
		return // which the judge tells
	}
	m.checkNights(on)
	open := map[string]bool{}
	for _, g := range m.gateways.all {
		if g.capabilities().Statement {
			m.reconcileAt(on, g, open)
		}
	}
	kinds, err := on.db.OpenKinds(m.ctx)
	waiting := 0
	for _, n := range kinds {
		waiting += int(n)
	}
	m.assert(statementAgrees, m.violation != nil || err == nil && waiting == len(open), "", "%d differences were found and are open, and %v wait for a person (error %v)", len(open), kinds, err)
	m.assert(statementAgrees, m.violation != nil || m.tally.faults[broke] == 0 || kinds[reconcile.UnexplainedDebit] > 0, "", "money was taken from the account by hand, and no difference is found: %v", kinds)
}

// reconcileAt compares a gateway's statement with the ledger, and adds the ids of the differences that are open.
func (m *market) reconcileAt(on *instance, g *gateway, open map[string]bool) {
	reconciling, err := on.newReconciling(g.name)
	if m.violation != nil || !m.assert(statementAgrees, err == nil, "", "reconcile: %v", err) {
		return
	}
	var r reconcile.Result
	err = errLost
	m.work(on, 0, "reconcile", func() {
		from, to := midnight(m.start), midnight(m.clock())
		r, err = reconciling.Reconcile(m.ctx, reconcile.Period{From: from, To: to}, false)
	})
	m.pass(m.now + 12*time.Hour)
	if m.violation != nil || !m.assert(statementAgrees, err == nil, "", "reconcile: %v", err) {
		return
	}
	m.assert(statementAgrees, r.Sums.Rest() == 0 && r.Sums.Gap() == 0, "", "nothing accounts for %d, and balances miss %d: %+v", r.Sums.Rest(), r.Sums.Gap(), r.Sums)
	for _, d := range r.Differences {
		m.assert(statementAgrees, !d.Open() || m.explains(d), string(d.Payout), "%s of %s: %s", d.Kind, d.Subject, d.Detail)
		if d.Open() {
			open[d.ID] = true
		}
	}
	m.checkUnmatchableLines(g, r.Differences)
	m.checkSums(g, r)
}

// checkSums holds what a comparison adds up by kind against the gateway's lines.
func (m *market) checkSums(g *gateway, r reconcile.Result) {
	var want reconcile.Sums
	for _, t := range g.lines(r.Period.From, r.Period.To) {
		debit, credit := money.Amount(t.Debit), money.Amount(t.Credit)
		switch {
		case t.Source.Entity == "payout":
			want.Debits += debit
			want.Credits += credit
			want.Fees += m.feesOf(t)
		default:
			want.Other += debit
			want.PutIn += credit
		}
		want.Taken += debit - credit
	}
	is := reconcile.Sums{Taken: r.Sums.Taken, PutIn: r.Sums.PutIn, Other: r.Sums.Other, Debits: r.Sums.Debits, Credits: r.Sums.Credits, Checks: r.Sums.Checks, Fees: r.Sums.Fees}
	m.assert(statementAgrees, m.violation != nil || is == want, "", "the statement of %s comes to %+v, and its lines to %+v", g.name, is, want)
}

// feesOf is what the gateway kept for itself by a line, below zero where the fee came back with the money. What it kept of an unmatched transfer is a
// part of the difference.
func (m *market) feesOf(t razorpayx.Transaction) money.Amount {
	isUnmatched := slices.ContainsFunc(m.gateways.unmatchable, func(f *unmatchable) bool { return f.id == t.Source.ID })
	switch {
	case isUnmatched:
		return 0
	case t.Credit > 0:
		return -money.Amount(t.Source.Fees)
	default:
		return money.Amount(t.Source.Fees)
	}
}

// checkNights wants each day since the first to have been reconciled, up to the last that the service had time for.
func (m *market) checkNights(on *instance) {
	days, err := on.db.Reconciling(m.gateways.main().name).Days(m.ctx, m.start.AddDate(0, 0, -7), m.clock())
	if !m.assert(datastoreReadable, err == nil, "", "the days that were reconciled: %v", err) {
		return
	}
	// What was read before the first night, to find the debits of payouts, may have been broken off.
	first := slices.IndexFunc(days, func(d reconcile.Day) bool { return d.Lines >= 0 })
	var reached time.Time
	for i, d := range days[max(first, 0):] {
		m.assert(nightsReconciled, i == 0 || d.From.Equal(reached), "", "the days up to %s were reconciled, and then those from %s on", reached, d.From)
		reached = d.To
	}
	const month = 31 * 24 * time.Hour // is how far a first night reaches back, where none came sooner
	isWhole := first >= 0 && days[first].ReadAt.Sub(days[first].From) < month
	for id, w := range m.model.payouts {
		if m.violation == nil && isWhole && w.at == m.gateways.main().name && !w.last.SentAt.IsZero() {
			m.assert(nightsReconciled, !days[first].From.After(w.last.SentAt), string(id), "payout %s was sent at %s, and the first day that was reconciled is from %s on", id, w.last.SentAt, days[first].From)
		}
	}
	m.assert(nightsReconciled, m.clock().Sub(reached) < 48*time.Hour+2*m.maintenanceEvery(), "", "the days up to %s were reconciled, and it is %s", reached, m.clock())
	o, err := on.reconciling.Overview(m.ctx, 3)
	isOrdered := slices.IsSortedFunc(o.Runs, func(a, b reconcile.Run) int { return strings.Compare(b.ID, a.ID) })
	m.assert(nightsReconciled, err == nil && o.Reached.Equal(reached) && len(o.Runs) > 0 && isOrdered, "", "an admin is shown that the nights reached %s, with the runs %+v (error %v), and they reached %s", o.Reached, o.Runs, err, reached)
	m.assert(nightsReconciled, o.Failures == 0 && o.RetryAt.IsZero(), "", "every night was reconciled, and an admin is shown %d failures in a row, and another attempt at %s", o.Failures, o.RetryAt)
	last, _, err := on.db.LastCheckpoint(m.ctx)
	m.assert(checkpointsMade, err == nil && m.clock().Sub(last.At) < 2*m.maintenanceEvery(), "", "the last checkpoint was made at %s (error %v), and it is %s", last.At, err, m.clock())
}

// explains reports whether a fault is why the statement and the ledger differ: money was taken from the account by
// hand, a transfer was made for nobody that the ledger knows, a person has to look at the payout, or the gateway's answer about a return was
// lost, which is asked for again soon.
func (m *market) explains(d reconcile.Difference) bool {
	w := m.model.payouts[d.Payout]
	switch {
	case d.Kind == reconcile.UnexplainedDebit:
		return m.o.Faults[broke]
	case d.Kind == reconcile.LineWithoutPayout:
		return m.isUnresolved(d.Subject)
	case w == nil:
		return false
	case d.Kind == reconcile.ReturnedAtGateway && m.clock().Sub(d.FirstSeen) < tickEvery:
		return true
	default:
		return w.state == payout.ManualReview || w.last.Discrepancy != ""
	}
}

// midnight is when the day of t began in India.
func midnight(t time.Time) time.Time {
	y, month, d := t.In(indianTime).Date()
	return time.Date(y, month, d, 0, 0, 0, 0, indianTime)
}
