package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"bursar/internal/decision"
	"bursar/internal/gateway/razorpayx"
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
	// keepsFee says that the line returns what the payout sent, and not the gateway's fee.
	keepsFee bool
}

// nightsRead is after how long the lines of a payout that ended have surely been read: a line that was never read is not found to have
// changed.
const nightsRead = 48 * time.Hour

// falsehoods are one of each kind. What concerns a payout concerns its newest line.
func falsehoods() []falsehood {
	seven, paid, reversal, adjustment, dollars := int64(7_000), "payout", "reversal", "adjustment", "USD"
	completed := func(_ *market, w *withdrawal) bool { return w.state == payout.Completed }
	returned := func(_ *market, w *withdrawal) bool { return w.state == payout.Returned }
	waits := func(m *market, w *withdrawal) bool { return w.state == payout.Waiting && m.model.stopped(w.seller) }
	neverMade := func(m *market, w *withdrawal) bool {
		return kindOf(w.state) == calledOff && len(m.gateways.transfers(w.last.ID)) == 0
	}
	return []falsehood{
		{kind: reconcile.PayoutWithoutLine, change: sandbox.StatementChange{Change: "drop"}, fits: completed},
		{kind: reconcile.ReturnWithoutLine, change: sandbox.StatementChange{Change: "drop"}, fits: returned},
		{kind: reconcile.AmountDiffers, change: sandbox.StatementChange{Change: "alter", Debit: &seven}, fits: completed},
		{kind: reconcile.FeeDiffers, change: sandbox.StatementChange{Change: "alter", Fees: &seven}, fits: completed},
		{kind: reconcile.CurrencyDiffers, change: sandbox.StatementChange{Change: "alter", Currency: &dollars}, fits: completed},
		{kind: reconcile.PaidTwice, change: sandbox.StatementChange{Change: "double"}, fits: completed, moves: true},
		{kind: reconcile.ReturnedAtGateway, change: sandbox.StatementChange{Change: "add", Credit: &seven, Entity: &reversal}, fits: completed, moves: true},
		{kind: reconcile.RefundedButPaid, change: sandbox.StatementChange{Change: "add", Debit: &seven, Entity: &paid}, fits: neverMade, moves: true},
		{kind: reconcile.LineWithoutPayout, change: sandbox.StatementChange{Change: "add", Debit: &seven, Entity: &paid}, moves: true},
		{kind: reconcile.LineWithoutPayout, change: sandbox.StatementChange{Change: "add", Credit: &seven, Entity: &reversal}, moves: true},
		{kind: reconcile.UnexplainedDebit, change: sandbox.StatementChange{Change: "add", Debit: &seven, Entity: &adjustment}, moves: true},
		{kind: reconcile.CurrencyDiffers, change: sandbox.StatementChange{Change: "add", Debit: &seven, Currency: &dollars, Entity: &adjustment}, moves: true},
		{kind: reconcile.LineBeforeOrder, change: sandbox.StatementChange{Change: "add", Debit: &seven, Entity: &paid}, fits: waits, moves: true},
		{kind: reconcile.FeeDiffers, change: sandbox.StatementChange{Change: "alter"}, fits: returned, keepsFee: true},
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
	m.checkGap(on, lastOfDay)
	m.checkGap(on, wholeDay)
	inReview := m.keepOneInReview(on)
	m.keepOneWaiting()
	planted, began, at := m.misstate(), m.now, m.clock()
	m.move(inReview, true)
	m.pass(m.now + 36*time.Hour) // until the day of what moved is over
	found := m.reconcileAgain(on)
	m.compareOthers(on)
	m.compareEarlier(on)
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
	m.misstateOnceMore(on, planted)
	m.checkPaidByStatement(on, inReview)
}

// misstateOnceMore has the statement tell falsely what it did before and has corrected since, which must be found again.
func (m *market) misstateOnceMore(on *instance, planted []falsehood) {
	at := slices.IndexFunc(planted, func(f falsehood) bool { return !f.moves })
	if at < 0 || m.violation != nil {
		return
	}
	f := planted[at]
	if err := m.gateways.main().ask(http.MethodPost, "/control/statement", f.change, nil); err != nil {
		m.broken(datastoreReadable, f.change.Line, err.Error())
	}
	d, isFound := f.in(m.reconcileAgain(on))
	m.assert(misstatementsFound, isFound && d.Open(), f.change.Line, "the statement tells falsely of %q once more (%s), and it is not open that it is %s: %+v", f.change.Line, f.change.Change, f.kind, d)
	if err := m.gateways.main().ask(http.MethodDelete, "/control/statement", nil, nil); err != nil {
		m.broken(datastoreReadable, "", err.Error())
	}
	m.reconcileAgain(on)
}

// checkGap leaves lines of a day out of the statement, and wants the day that follows to be found to begin with another balance until they are back,
// whether it is compared alone or with the day before.
func (m *market) checkGap(on *instance, choose func(lines []razorpayx.Transaction) []razorpayx.Transaction) {
	from, to := m.dropFromDay(choose)
	if to.IsZero() || m.violation != nil {
		return
	}
	next := to.Format(time.DateOnly)
	isGap := func(d reconcile.Difference) bool { return d.Kind == reconcile.StatementHasGap && d.Subject == next }
	m.reconcileDays(on, on.reconciling, reconcile.Period{From: from, To: to})
	alone := m.reconcileDays(on, on.reconciling, reconcile.Period{From: to, To: to.AddDate(0, 0, 1)})
	m.assert(misstatementsFound, slices.ContainsFunc(alone, isGap), "", "the end of a day is not listed, and %s, compared alone, is not found to begin with another balance", next)
	m.assert(misstatementsFound, slices.ContainsFunc(m.reconcileAgain(on), isGap), "", "the end of a day is not listed, and it is not found that the statement of %s begins with another balance", next)
	m.pass(m.now + 2*tickEvery) // the service compares what is open again meanwhile, and does not read that day's statement
	m.compareOthers(on)
	open, err := on.reconciling.Open(m.ctx, 10_000)
	m.assert(misstatementsFound, m.violation != nil || err == nil && slices.ContainsFunc(open, isGap), "", "the end of a day is still not listed, and that there is a gap on %s is not open any more (error %v)", next, err)
	if err := m.gateways.main().ask(http.MethodDelete, "/control/statement", nil, nil); err != nil {
		m.broken(datastoreReadable, "", err.Error())
	}
	m.reconcileAgain(on)
	open, err = on.reconciling.Open(m.ctx, 10_000)
	m.assert(misstatementsFound, err == nil && !slices.ContainsFunc(open, isGap), "", "the statement is right again, and that there is a gap on %s is open (error %v)", next, err)
}

// keepOneWaiting has a seller ask for a payout that an admin then keeps from being sent. If the seller has enough, another one of as much, to the same account, is
// sent before.
func (m *market) keepOneWaiting() {
	s := m.payable()
	if s == nil || m.stopping[s.id] {
		return
	}
	before, a := &ask{seller: s.id, amount: minimum, notes: s.temper.name}, &ask{seller: s.id, amount: minimum, notes: s.temper.name}
	if m.model.row(s.id).Available >= 2*minimum {
		m.spawn(0, "seller "+s.name, func() { m.send(before) })
		m.pass(m.now + 5*time.Minute)
	}
	m.stopping[s.id] = true // or it would be resumed as forgotten
	m.spawn(0, "seller "+s.name, func() { m.send(a) })
	m.spawn(cancelWindow/2, admin, func() {
		_ = m.decideStop(s.id, true)
		err := m.decideStop(s.id, true)
		m.assert(decisionsKept, errors.Is(err, payout.ErrFrozen), s.id, "the payouts of %s, which were frozen, were frozen again: %v", s.id, err)
	})
	m.pass(m.now + 5*time.Minute)
	w := m.model.payouts[a.made]
	m.assert(stopsKept, m.violation != nil || w != nil && w.state == payout.Waiting && w.last.IsStopped(), s.id, "%s asked for payout %q, and an admin froze their payouts before it was sent: %+v", s.id, a.made, w)
	if m.violation == nil && before.made != "" {
		m.spawn(0, admin, func() { m.matchWrongly(a.made, before.made) })
		m.pass(m.now + time.Minute)
	}
}

// lines are those of the gateway's statement for a time, without its end.
func (g *gateway) lines(from, to time.Time) (lines []razorpayx.Transaction) {
	const page = 100
	for skip := 0; ; skip += page {
		var list razorpayx.Collection[razorpayx.Transaction]
		path := fmt.Sprintf("/v1/transactions?account_number=%s&from=%d&to=%d&count=%d&skip=%d", ourAccount, from.Unix(), to.Unix(), page, skip)
		if err := g.ask(http.MethodGet, path, nil, &list); err != nil {
			g.m.broken(datastoreReadable, "", err.Error())
			return nil
		}
		if lines = append(lines, list.Items...); len(list.Items) < page {
			return lines
		}
	}
}

// dropFromDay leaves lines of a day out of the main gateway's statement, those that choose returns of the day's. It returns when that day begins,
// and when the next one with lines does, which then begins with a balance that no line leads to. It returns none where choose never returns any.
func (m *market) dropFromDay(choose func(lines []razorpayx.Transaction) []razorpayx.Transaction) (of, next time.Time) {
	to := midnight(m.clock())
	lines := m.gateways.main().lines(to.Add(-10*24*time.Hour), to)
	slices.SortFunc(lines, func(a, b razorpayx.Transaction) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	var days [][]razorpayx.Transaction
	for _, l := range lines {
		if n := len(days); n > 0 && dayOf(days[n-1][0]).Equal(dayOf(l)) {
			days[n-1] = append(days[n-1], l)
		} else {
			days = append(days, []razorpayx.Transaction{l})
		}
	}
	for i := 2; i < len(days); i++ {
		dropped := choose(days[i-1])
		for _, l := range dropped {
			if err := m.gateways.main().ask(http.MethodPost, "/control/statement", sandbox.StatementChange{Change: "drop", Line: l.ID}, nil); err != nil {
				m.broken(datastoreReadable, "", err.Error())
			}
		}
		if len(dropped) > 0 {
			return dayOf(dropped[0]), dayOf(days[i][0])
		}
	}
	return of, next
}

func dayOf(l razorpayx.Transaction) time.Time { return midnight(time.Unix(l.CreatedAt, 0)) }

// lastOfDay is the last of a day's lines, where that is certain, and the day has others.
func lastOfDay(lines []razorpayx.Transaction) []razorpayx.Transaction {
	n := len(lines)
	if n < 2 || lines[n-2].CreatedAt == lines[n-1].CreatedAt || lines[n-1].Source.Entity != "bank_transfer" && lines[n-1].Source.Entity != "payout" {
		return nil
	}
	return lines[n-1:]
}

// wholeDay is all lines of a day that did not end as it began: no day before the next one has lines then.
func wholeDay(lines []razorpayx.Transaction) []razorpayx.Transaction {
	moved := int64(0)
	for _, l := range lines {
		moved += l.Credit - l.Debit
	}
	if moved == 0 {
		return nil
	}
	return lines
}

// checkRereading has the statement tell otherwise of a payout that was sent and paid lately, after its line was read, and wants the
// nights that follow to notice by themselves. The line is of the day of the sending, and the bank may take days to pay.
func (m *market) checkRereading(on *instance) {
	if m.maintenanceEvery() > tickEvery { // the nights of a long run are reconciled some at a time
		return
	}
	var newest *withdrawal
	for _, id := range slices.Sorted(maps.Keys(m.model.payouts)) {
		w := m.model.payouts[id]
		if w.state == payout.Completed && w.at == m.gateways.main().name && m.clock().Sub(w.last.SentAt) < 24*time.Hour && (newest == nil || w.last.CompletedAt.After(newest.last.CompletedAt)) {
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
			if f.keepsFee {
				net := int64(m.model.payouts[ids[at]].last.Net())
				f.change.Credit = &net
			}
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
		if f.kind == reconcile.LineWithoutPayout && f.change.Debit != nil { // it is about what the line names; a reversal names nothing
			f.change.Line = line.Source.ID
		}
		planted = append(planted, f)
	}
	return planted
}

// finalCheckAfter is how far back the statement is compared in the end.
const finalCheckAfter = 40 * 24 * time.Hour

// in finds the difference that a falsehood makes. Only the main gateway's statement tells any.
func (f falsehood) in(found []reconcile.Difference) (reconcile.Difference, bool) {
	at := slices.IndexFunc(found, func(d reconcile.Difference) bool {
		return d.Kind == f.kind && d.Subject == f.change.Line && d.Gateway == razorpayx.DefaultName
	})
	if at < 0 {
		return reconcile.Difference{}, false
	}
	return found[at], true
}

// reconcileAgain reads the main gateway's statement again, and compares it with the ledger.
func (m *market) reconcileAgain(on *instance) []reconcile.Difference {
	return m.reconcileBy(on, on.reconciling)
}

// compareOthers compares the statements of the other gateways with the ledger. What is open of the main one's must stay so: the others know nothing of it.
func (m *market) compareOthers(on *instance) {
	for _, g := range m.gateways.all[1:] {
		if !g.capabilities().Statement || m.violation != nil {
			continue
		}
		before, err := on.reconciling.Open(m.ctx, 10_000)
		other, err2 := on.newReconciling(g.name)
		if !m.assert(misstatementsFound, err == nil && err2 == nil, "", "the open differences: %v, %v", err, err2) {
			return
		}
		m.reconcileBy(on, other)
		after, err := on.reconciling.Open(m.ctx, 10_000)
		m.assert(misstatementsFound, m.violation != nil || err == nil, "", "the open differences: %v", err)
		for _, d := range before {
			isOpen := slices.ContainsFunc(after, func(o reconcile.Difference) bool { return o.ID == d.ID })
			m.assert(misstatementsFound, d.Gateway != m.gateways.main().name || isOpen, d.Subject, "the statement of %s tells falsely of %q (%s), and that is not open any more once the statement of %s was compared", d.Gateway, d.Subject, d.Kind, g.name)
		}
	}
}

// compareEarlier compares a day before there were payouts. What is open of later ones can't be judged by its lines, and must stay so.
func (m *market) compareEarlier(on *instance) {
	before, err := on.reconciling.Open(m.ctx, 10_000)
	to := midnight(m.start).AddDate(0, 0, -1)
	m.reconcileDays(on, on.reconciling, reconcile.Period{From: to.AddDate(0, 0, -1), To: to})
	after, err2 := on.reconciling.Open(m.ctx, 10_000)
	m.assert(misstatementsFound, m.violation != nil || err == nil && err2 == nil, "", "the open differences: %v, %v", err, err2)
	for _, d := range before {
		isOpen := slices.ContainsFunc(after, func(o reconcile.Difference) bool { return o.ID == d.ID })
		m.assert(misstatementsFound, m.violation != nil || isOpen, d.Subject, "that %q is %s is not open any more once an earlier day was compared", d.Subject, d.Kind)
	}
}

// reconcileBy reads a gateway's statement again, and compares it with the ledger.
func (m *market) reconcileBy(on *instance, reconciling *reconcile.Service) []reconcile.Difference {
	to := midnight(m.clock())
	return m.reconcileDays(on, reconciling, reconcile.Period{From: to.Add(-finalCheckAfter), To: to})
}

// reconcileDays reads the statement of some days again.
func (m *market) reconcileDays(on *instance, reconciling *reconcile.Service, days reconcile.Period) []reconcile.Difference {
	var r reconcile.Result
	err := errLost
	m.work(on, 0, "reconcile", func() { r, err = reconciling.Reconcile(m.ctx, days, true) })
	m.pass(m.now + time.Hour)
	m.assert(misstatementsFound, err == nil, "", "reconcile: %v", err)
	m.assert(misstatementsFound, r.Sums.Rest() == 0, "", "nothing accounts for %d: %+v", r.Sums.Rest(), r.Sums)
	return r.Differences
}

// misstateAgain has an admin resolve a difference, and the statement then tell something else, which is not resolved.
func (m *market) misstateAgain(on *instance, f falsehood, d reconcile.Difference) {
	by := decision.By{Admin: m.admin, Note: "Their support explained it."}
	err := on.reconciling.Resolve(m.ctx, by, d.ID, d.Detail+" And more.")
	m.assert(misstatementsFound, err != nil, f.change.Line, "a difference was resolved that no admin has seen")
	err = on.reconciling.Resolve(m.ctx, by, d.ID, d.Detail)
	m.assert(misstatementsFound, err == nil, f.change.Line, "resolve a difference: %v", err)
	err = on.reconciling.Resolve(m.ctx, by, d.ID, d.Detail)
	m.assert(misstatementsFound, err != nil, f.change.Line, "a difference was resolved twice")
	again, isFound := f.in(m.reconcileAgain(on))
	m.assert(misstatementsFound, isFound && !again.Open(), f.change.Line, "a difference that was resolved is open: %+v", again)
	eight := int64(8_000)
	f.change.Debit = &eight
	if err := m.gateways.main().ask(http.MethodPost, "/control/statement", f.change, nil); err != nil {
		m.broken(datastoreReadable, f.change.Line, err.Error())
	}
	again, isFound = f.in(m.reconcileAgain(on))
	m.assert(misstatementsFound, isFound && again.Open(), f.change.Line, "the statement tells something else of %s than was resolved, and it is not open: %+v", f.change.Line, again)
}
