package simulate

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"bursar/internal/decision"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
)

// falsehood is something that the gateway's statement is made to tell falsely, and what is to be found of it.
type falsehood struct {
	kind   reconcile.Kind
	change sandbox.StatementChange
	// fits says which payouts it can be about; nil for none in particular.
	fits func(m *market, w *withdrawal) bool
	// moves says that money moves, so that it can't be corrected again.
	moves bool
}

// nightsRead is after how long the lines of a payout that ended have surely been read: a line that was never read is not found to have
// changed.
const nightsRead = 48 * time.Hour

// falsehoods are one of each kind. What concerns a payout concerns its newest line.
func falsehoods() []falsehood {
	seven, paid, reversal, adjustment, dollars := int64(7_000), "payout", "reversal", "adjustment", "USD"
	completed := func(_ *market, w *withdrawal) bool { return w.state == payout.Completed }
	returned := func(_ *market, w *withdrawal) bool { return w.state == payout.Returned }
	neverMade := func(m *market, w *withdrawal) bool {
		return kindOf(w.state) == calledOff && len(m.gateways.transfers(w.last.ID)) == 0
	}
	return []falsehood{
		{reconcile.PayoutWithoutLine, sandbox.StatementChange{Change: "drop"}, completed, false},
		{reconcile.ReturnWithoutLine, sandbox.StatementChange{Change: "drop"}, returned, false},
		{reconcile.AmountDiffers, sandbox.StatementChange{Change: "alter", Debit: &seven}, completed, false},
		{reconcile.FeeDiffers, sandbox.StatementChange{Change: "alter", Fees: &seven}, completed, false},
		{reconcile.CurrencyDiffers, sandbox.StatementChange{Change: "alter", Currency: &dollars}, completed, false},
		{reconcile.PaidTwice, sandbox.StatementChange{Change: "double"}, completed, true},
		{reconcile.ReturnedAtGateway, sandbox.StatementChange{Change: "add", Credit: &seven, Entity: &reversal}, completed, true},
		{reconcile.RefundedButPaid, sandbox.StatementChange{Change: "add", Debit: &seven, Entity: &paid}, neverMade, true},
		{reconcile.LineWithoutPayout, sandbox.StatementChange{Change: "add", Debit: &seven, Entity: &paid}, nil, true},
		{reconcile.UnexplainedDebit, sandbox.StatementChange{Change: "add", Debit: &seven, Entity: &adjustment}, nil, true},
	}
}

// checkMisstatements has the gateway's statement tell falsely, once all else is over, and wants each falsehood to be found
// by its name, and to be gone when it is corrected.
func (m *market) checkMisstatements() {
	on := m.anyInstance()
	if on == nil {
		return
	}
	m.checkRereading(on)
	planted, began, at := m.misstate(), m.now, m.clock()
	m.pass(m.now + 36*time.Hour) // until the day of what moved is over
	found := m.reconcileAgain(on)
	changed := 0
	for _, d := range found {
		changed += btoi(d.Kind == reconcile.LineChanged && d.Open())
	}
	mustShow := 0
	for _, f := range planted {
		d, isFound := f.in(found)
		m.assert(misstatementsFound, isFound && d.Open(), f.change.Line, "the statement tells falsely of %q (%s), and it is not found that it is %s", f.change.Line, f.change.Change, f.kind)
		w := m.model.payouts[payout.ID(f.change.Line)]
		mustShow += btoi(!f.moves && f.kind != reconcile.FeeDiffers && at.Sub(w.last.EndedAt) > nightsRead && at.Sub(w.last.CompletedAt) > nightsRead)
		if f.kind == reconcile.ReturnedAtGateway || f.kind == reconcile.RefundedButPaid {
			m.assert(misstatementsFound, w.notified >= began, f.change.Line, "the statement tells of %q that it is %s, and the gateway is not asked", f.change.Line, f.kind)
		}
		if isFound && f.kind == reconcile.AmountDiffers {
			m.misstateAgain(on, f, d)
		}
	}
	m.assert(misstatementsFound, changed >= mustShow, "", "%d lines were changed, and %d are found", mustShow, changed)
	if err := m.gateways.main().ask(http.MethodDelete, "/control/statement", nil, nil); err != nil {
		m.broken(datastoreReadable, "", err.Error())
	}
	m.reconcileAgain(on)
	open, err := on.reconciling.Open(m.ctx, 10_000)
	m.assert(misstatementsFound, err == nil, "", "the open differences: %v", err)
	for _, f := range planted {
		_, isOpen := f.in(open)
		m.assert(misstatementsFound, isOpen == f.moves, f.change.Line, "the statement tells rightly of %q again, where it can, and that it is %s is open: %t", f.change.Line, f.kind, isOpen)
	}
}

// checkRereading has the statement tell otherwise of a payout that was paid lately, after its line was read, and wants the nights that
// follow to notice by themselves.
func (m *market) checkRereading(on *instance) {
	if m.maintenanceEvery() > tickEvery { // the nights of a long run are reconciled some at a time
		return
	}
	var newest *withdrawal
	for _, id := range slices.Sorted(maps.Keys(m.model.payouts)) {
		w := m.model.payouts[id]
		if w.state == payout.Completed && w.at == m.gateways.main().name && m.clock().Sub(w.last.CompletedAt) < 24*time.Hour && (newest == nil || w.last.CompletedAt.After(newest.last.CompletedAt)) {
			newest = w
		}
	}
	if newest == nil {
		return
	}
	m.pass(m.now + 36*time.Hour)
	seven := int64(7_000)
	var line struct {
		ID string `json:"id"`
	}
	change := sandbox.StatementChange{Line: string(newest.last.ID), Change: "alter", Debit: &seven}
	if err := m.gateways.main().ask(http.MethodPost, "/control/statement", change, &line); err != nil {
		m.broken(datastoreReadable, change.Line, err.Error())
	}
	m.pass(m.now + 36*time.Hour)
	open, err := on.reconciling.Open(m.ctx, 10_000)
	isFound := slices.ContainsFunc(open, func(d reconcile.Difference) bool { return d.Kind == reconcile.LineChanged && d.Subject == line.ID })
	m.assert(nightsReconciled, m.violation != nil || err == nil && isFound, change.Line,
		"the line of %s was changed after it was read, and no night has found that (error %v)", change.Line, err)
	if err := m.gateways.main().ask(http.MethodDelete, "/control/statement", nil, nil); err != nil {
		m.broken(datastoreReadable, "", err.Error())
	}
}

// misstate has the statement tell each falsehood of a payout of its own that is in order.
func (m *market) misstate() (planted []falsehood) {
	used := map[payout.ID]bool{}
	ids := slices.Sorted(maps.Keys(m.model.payouts))
	for _, f := range falsehoods() {
		if f.fits != nil {
			at := slices.IndexFunc(ids, func(id payout.ID) bool {
				w := m.model.payouts[id]
				return !used[id] && w.at == m.gateways.main().name && w.last.ID == id && w.last.Discrepancy == "" && m.clock().Sub(w.last.RequestedAt) < finalCheckAfter-48*time.Hour && f.fits(m, w)
			})
			if at < 0 {
				continue
			}
			f.change.Line, used[ids[at]] = string(ids[at]), true
		}
		var line struct {
			ID     string              `json:"id"`
			Source struct{ ID string } `json:"source"`
		}
		if err := m.gateways.main().ask(http.MethodPost, "/control/statement", f.change, &line); err != nil {
			m.broken(datastoreReadable, f.change.Line, err.Error())
		}
		if f.fits == nil {
			f.change.Line = line.ID
		}
		if f.kind == reconcile.LineWithoutPayout { // it is about what the line names
			f.change.Line = line.Source.ID
		}
		planted = append(planted, f)
	}
	return planted
}

// finalCheckAfter is how far back the statement is compared in the end.
const finalCheckAfter = 40 * 24 * time.Hour

// in finds the difference that a falsehood makes.
func (f falsehood) in(found []reconcile.Difference) (reconcile.Difference, bool) {
	at := slices.IndexFunc(found, func(d reconcile.Difference) bool { return d.Kind == f.kind && d.Subject == f.change.Line })
	if at < 0 {
		return reconcile.Difference{}, false
	}
	return found[at], true
}

// reconcileAgain reads the statement again, and compares it with the ledger.
func (m *market) reconcileAgain(on *instance) []reconcile.Difference {
	var r reconcile.Result
	err := errLost
	m.work(on, 0, "reconcile", func() {
		to := midnight(m.clock())
		r, err = on.reconciling.Reconcile(m.ctx, reconcile.Period{From: to.Add(-finalCheckAfter), To: to}, true)
	})
	m.pass(m.now + time.Hour)
	m.assert(misstatementsFound, err == nil, "", "reconcile: %v", err)
	m.assert(misstatementsFound, r.Sums.Rest() == 0, "", "nothing accounts for %d: %+v", r.Sums.Rest(), r.Sums)
	return r.Differences
}

// misstateAgain has an admin settle a difference, and the statement then tell something else, which is not settled.
func (m *market) misstateAgain(on *instance, f falsehood, d reconcile.Difference) {
	by := decision.By{Admin: m.admin, Note: "Their support explained it."}
	err := on.reconciling.Settle(m.ctx, by, d.ID, d.Detail)
	m.assert(misstatementsFound, err == nil, f.change.Line, "settle a difference: %v", err)
	again, isFound := f.in(m.reconcileAgain(on))
	m.assert(misstatementsFound, isFound && !again.Open(), f.change.Line, "a difference that was settled is open: %+v", again)
	eight := int64(8_000)
	f.change.Debit = &eight
	if err := m.gateways.main().ask(http.MethodPost, "/control/statement", f.change, nil); err != nil {
		m.broken(datastoreReadable, f.change.Line, err.Error())
	}
	again, isFound = f.in(m.reconcileAgain(on))
	m.assert(misstatementsFound, isFound && again.Open(), f.change.Line, "the statement tells something else of %s than was settled, and it is not open: %+v", f.change.Line, again)
}
