package simulate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"bursar/internal/bank"
	"bursar/internal/decision"
	port "bursar/internal/gateway"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
)

// checkSelections has an admin look for everybody's payouts in each order, and for some of them in each way that there is.
func (m *market) checkSelections(on *instance) {
	for _, order := range []payout.Order{payout.NewestFirst, payout.OldestFirst, payout.LargestFirst} {
		m.checkSelection(on, payout.Selection{Sort: order})
	}
	ids := slices.Sorted(maps.Keys(m.model.payouts))
	if len(ids) == 0 {
		return
	}
	w := m.model.payouts[one(m, ids)]
	day := midnight(w.folded.RequestedAt)
	m.checkParsed(on, w, day)
	for _, sel := range []payout.Selection{
		{Seller: w.seller},
		{Status: w.state.Status()},
		{State: w.state},
		{LateAt: on.now()},
		{Discrepancy: true},
		{Reason: w.folded.ReasonCode},
		{MinAmount: w.amount},
		{MaxAmount: w.amount},
		{Bank: m.model.bankOf(w)},
		{Seller: w.seller, Status: w.state.Status(), MaxAmount: w.amount},
		{Date: payout.DateRequested, From: day, To: day.AddDate(0, 0, 1)},
		{Date: payout.DateCompleted, From: stored(w.folded.CompletedAt)},
		{Date: payout.DateCompleted, To: stored(w.folded.CompletedAt)},
		{Date: payout.DateEnded, From: stored(w.folded.EndedAt)},
		{Date: payout.DateEnded, To: stored(w.folded.EndedAt)},
	} {
		if sel.Bank == "" || m.model.knowsBanks() {
			m.checkSelection(on, sel)
		}
	}
}

// checkParsed has an admin ask in words for the payouts of a day that are like one of that day.
func (m *market) checkParsed(on *instance, w *withdrawal, day time.Time) {
	asked := map[string]string{
		"sellerId": w.seller, "status": string(w.state.Status()), "state": string(w.state), "date": string(payout.DateRequested), "sort": string(payout.NewestFirst),
		"minAmount": rupees().FormatFixed(w.amount), "maxAmount": rupees().FormatFixed(w.amount), "from": day.Format(time.DateOnly), "to": day.Format(time.DateOnly),
	}
	want := payout.Selection{
		Seller: w.seller, Status: w.state.Status(), State: w.state, Date: payout.DateRequested, Sort: payout.NewestFirst,
		MinAmount: w.amount, MaxAmount: w.amount, From: day, To: day.AddDate(0, 0, 1),
	}
	got, err := on.payouts.ParseSelection(func(name string) string { return asked[name] })
	got.From, got.To = got.From.In(indianTime), got.To.In(indianTime)
	m.assert(readsAgree, err == nil && got == want, w.seller, "an admin asks for the payouts of %v, which selects %+v (error %v) and should %+v", asked, got, err, want)
}

// checkSelection wants what a selection selects, page by page and as an export. Each page has to begin behind the one before, also where amounts are equal.
func (m *market) checkSelection(on *instance, sel payout.Selection) {
	const limit, maxPages = 3, 100
	var want []payout.ID
	var amount, fee money.Amount
	for id, w := range m.model.payouts {
		if m.model.selects(sel, w) {
			want, amount, fee = append(want, id), amount+w.amount, fee+w.fee
		}
	}
	slices.SortFunc(want, func(a, b payout.ID) int {
		switch one, other := m.model.payouts[a].amount, m.model.payouts[b].amount; {
		case sel.Sort == payout.OldestFirst:
			return cmp.Compare(a, b)
		case sel.Sort == payout.LargestFirst && one != other:
			return cmp.Compare(other, one)
		default:
			return cmp.Compare(b, a)
		}
	})
	all, seen := sel, 0
	sel.Limit = limit
	for more := true; more && seen < limit*maxPages; more = sel.After != "" {
		f, err := on.payouts.Find(m.ctx, sel)
		var got []payout.ID
		for _, p := range f.Payouts {
			got = append(got, p.ID)
		}
		page := want[seen:min(seen+limit, len(want))]
		if !m.assert(readsAgree, err == nil && slices.Equal(got, page) && f.Totals.Count == int64(len(want)) && f.Totals.Amount == amount && f.Totals.Fee == fee && !f.Totals.Cut, "",
			"the payouts that %+v selects are %v, and %+v in all (error %v), and should be %v, and %d of %d with fees of %d", sel, got, f.Totals, err, page, len(want), amount, fee) {
			return
		}
		seen += len(got)
		sel.After = f.Next
	}
	m.assert(readsAgree, m.violation != nil || seen == min(len(want), limit*maxPages), "", "an admin can page through %d of the payouts that %+v selects, and there are %d", seen, all, len(want))
	var exported []payout.ID
	err := on.payouts.Export(m.ctx, all, func(p payout.Selected) error { exported = append(exported, p.ID); return nil })
	m.assert(readsAgree, err == nil && slices.Equal(exported, want), "", "an export of what %+v selects has %d payouts (error %v), and should have %d", all, len(exported), err, len(want))
}

// selects reports whether a selection selects a payout.
func (o *model) selects(sel payout.Selection, w *withdrawal) bool {
	at := map[payout.DateOf]time.Time{payout.DateRequested: w.folded.RequestedAt, payout.DateCompleted: w.folded.CompletedAt, payout.DateEnded: w.folded.EndedAt}[sel.Date]
	dated := !sel.From.IsZero() || !sel.To.IsZero()
	return (sel.Seller == "" || w.seller == sel.Seller) && (sel.Status == "" || w.state.Status() == sel.Status) && (sel.State == "" || w.state == sel.State) &&
		(sel.LateAt.IsZero() || w.isLate(sel.LateAt)) && (!sel.Discrepancy || w.last.Discrepancy != "") && (sel.Reason == "" || w.folded.ReasonCode == sel.Reason) &&
		w.amount >= sel.MinAmount && (sel.MaxAmount == 0 || w.amount <= sel.MaxAmount) && (sel.Bank == "" || o.bankOf(w) == sel.Bank) &&
		(!dated || !at.IsZero()) && (sel.From.IsZero() || !stored(at).Before(sel.From)) && (sel.To.IsZero() || stored(at).Before(sel.To))
}

// isLate reports whether a payout should have arrived by now and has not ended.
func (w *withdrawal) isLate(now time.Time) bool {
	return kindOf(w.state) == underWay && w.folded.ArriveAt.Before(now)
}

// isOnlyLate reports whether a payout needs attention because it is late, and for nothing else.
func (w *withdrawal) isOnlyLate(now time.Time) bool {
	return w.isLate(now) && w.state != payout.ManualReview && w.last.Discrepancy == "" && w.last.ReasonCode != payout.CodeNoGateway
}

// bankOf is the bank that a payout goes to: the first four letters of its account's IFSC.
func (o *model) bankOf(w *withdrawal) string {
	if a := o.accounts[w.account]; a != nil && len(a.folded.IFSC) >= 4 {
		return string(a.folded.IFSC[:4])
	}
	return ""
}

// knowsBanks reports whether it knows where each payout goes: of an account that was lost with the ledger, only the gateway does.
func (o *model) knowsBanks() bool {
	for _, w := range o.payouts {
		if o.bankOf(w) == "" {
			return false
		}
	}
	return true
}

// branchOf is where an account with a number is: one half of them is at each of two banks.
func branchOf(digits string) bank.IFSC {
	if (digits[len(digits)-1]-'0')%2 == 1 {
		return "SBIN0000053"
	}
	return "HDFC0000053"
}

// checkFigures holds what was paid and failed on each of the last days, and what is under way, against the model.
func (m *market) checkFigures(on *instance) {
	f, err := on.payouts.Figures(m.ctx)
	if !m.assert(readsAgree, err == nil && len(f.Days) == payout.FiguresDays, "", "figures of %d days, error %v", len(f.Days), err) {
		return
	}
	type counts struct{ paid, failed payout.Count }
	days, banks, reasons := map[time.Time]counts{}, map[string]counts{}, map[string]payout.Count{}
	unsure := map[time.Time]bool{} // a clock that is off may have written to a day that was over
	first, today := midnight(on.now()).AddDate(0, 0, 1-payout.FiguresDays), midnight(on.now())
	add := func(at time.Time, bank string, is func(*counts) *payout.Count, amount money.Amount) {
		if at.Before(first) {
			return
		}
		day, of := days[midnight(at)], banks[bank]
		for _, c := range []*payout.Count{is(&day), is(&of)} {
			c.Number++
			c.Amount += amount
		}
		days[midnight(at)], banks[bank] = day, of
		for _, near := range []time.Time{at.Add(-2 * maxOff), at.Add(2 * maxOff)} {
			if m.tally.faults[clock] > 0 && !midnight(near).Equal(midnight(at)) {
				unsure[midnight(near)], unsure[midnight(at)] = true, true
			}
		}
	}
	open := payout.OpenPayouts{}
	for id, w := range m.model.payouts {
		p, bank := w.folded, m.model.bankOf(w)
		if !p.CompletedAt.IsZero() {
			add(p.CompletedAt, bank, func(c *counts) *payout.Count { return &c.paid }, w.amount)
		}
		if w.state.Status() == payout.StatusFailed {
			add(p.EndedAt, bank, func(c *counts) *payout.Count { return &c.failed }, w.amount)
			if !p.EndedAt.Before(first) {
				reasons[p.ReasonCode] = payout.Count{Number: reasons[p.ReasonCode].Number + 1, Amount: reasons[p.ReasonCode].Amount + w.amount}
			}
		}
		if kindOf(w.state) == underWay {
			open.Number++
			open.Amount += w.amount
			if at := stored(p.RequestedAt); open.Oldest == "" || at.Before(open.Since) || at.Equal(open.Since) && id < open.Oldest {
				open.Oldest, open.Since = id, at
			}
		}
	}
	for i, d := range f.Days {
		want := days[d.Day]
		m.assert(readsAgree, unsure[d.Day] || d.Day.Equal(first.AddDate(0, 0, i)) && d.Paid == want.paid && d.Failed == want.failed, "",
			"the figures of %s are %+v and %+v, and should be %+v", d.Day, d.Paid, d.Failed, want)
	}
	m.checkPeriods(f, today)
	m.assert(readsAgree, f.Open.Number == open.Number && f.Open.Amount == open.Amount && f.Open.Oldest == open.Oldest && f.Open.Since.Equal(open.Since), "",
		"the figures of what is under way are %+v, and should be %+v", f.Open, open)
	if len(unsure) > 0 || !m.model.knowsBanks() {
		return
	}
	month, now := f.Of(payout.Periods["30days"]), f.Of(payout.Periods["today"])
	m.assert(readsAgree, now.Paid == days[today].paid && now.Failed == days[today].failed && len(month.Banks) == len(banks) && len(month.Reasons) == len(reasons), "",
		"the figures are %+v for today and %+v for 30 days, and should be %+v, %+v and %+v", now, month, days[today], banks, reasons)
	for _, b := range month.Banks {
		m.assert(readsAgree, b.Paid == banks[b.Bank].paid && b.Failed == banks[b.Bank].failed, "", "the figures of bank %s are %+v, and should be %+v", b.Bank, b, banks[b.Bank])
	}
	for _, r := range month.Reasons {
		m.assert(readsAgree, r.Count == reasons[r.Code], "", "%+v failed because of %q, and should be %+v", r.Count, r.Code, reasons[r.Code])
	}
}

// checkPeriods holds the figures of some days against those of each day.
func (m *market) checkPeriods(f payout.Figures, today time.Time) {
	for name, ago := range map[string][2]int{"today": {0, 0}, "yesterday": {1, 1}, "7days": {6, 0}, "30days": {29, 0}} {
		var paid, failed payout.Count
		for _, d := range f.Days {
			if !d.Day.Before(today.AddDate(0, 0, -ago[0])) && !d.Day.After(today.AddDate(0, 0, -ago[1])) {
				paid.Number, paid.Amount = paid.Number+d.Paid.Number, paid.Amount+d.Paid.Amount
				failed.Number, failed.Amount = failed.Number+d.Failed.Number, failed.Amount+d.Failed.Amount
			}
		}
		got := f.Of(payout.Periods[name])
		m.assert(readsAgree, got.Paid == paid && got.Failed == failed, "", "the figures of %s are %+v and %+v, and those of its days make %+v and %+v", name, got.Paid, got.Failed, paid, failed)
	}
}

// checkOptions holds what an admin may decide about the payouts in some states against the model.
func (m *market) checkOptions(on *instance, in func(payout.State) bool) {
	for _, id := range slices.Sorted(maps.Keys(m.model.payouts)) {
		w := m.model.payouts[id]
		if !in(w.state) {
			continue
		}
		p, err := on.payouts.Payout(m.ctx, payout.Caller{Admin: true}, id)
		if !m.assert(readsAgree, err == nil, string(id), "an admin can't read payout %s: %v", id, err) {
			return
		}
		options, err := on.payouts.Options(m.ctx, p)
		var want, got []decision.Action
		for _, may := range []struct {
			decide decision.Action
			now    bool
		}{
			{decision.AskGateway, true},
			{decision.ReviewPayout, w.state == payout.Unknown || w.state == payout.Submitted && strings.HasPrefix(w.last.Discrepancy, "it knows no transfer")},
			{decision.ResolveDiscrepancy, w.last.Discrepancy != ""},
			{decision.MatchTransfer, slices.Contains(payout.UnresolvedStates, w.state) || w.state == payout.Waiting && w.due <= on.now().UnixMicro()},
			{decision.CancelPayout, w.state == payout.Waiting || w.state == payout.Submitted && m.canCancelQueued(on, w)},
			{decision.RefundPayout, w.state == payout.ManualReview},
		} {
			if may.now {
				want = append(want, may.decide)
			}
		}
		for _, o := range options {
			got = append(got, o.Action)
		}
		slices.Sort(want)
		slices.Sort(got)
		m.assert(readsAgree, err == nil && slices.Equal(got, want), string(id), "an admin may decide %v about payout %s (error %v), which is %s, and should be let %v", got, id, err, w.state, want)
	}
}

// canCancelQueued reports whether a payout's gateway has it queued, cancels what is queued, and is configured.
func (m *market) canCancelQueued(on *instance, w *withdrawal) bool {
	return w.last.Progress == port.Queued && on.knows(w.at) && m.gateways.named(w.at).capabilities().Cancel
}

// checkEvidence holds what an admin sees of each open difference against both sides.
func (m *market) checkEvidence(on *instance) {
	open, err := on.reconciling.Open(m.ctx, 1000)
	if !m.assert(readsAgree, err == nil, "", "list the open differences: %v", err) {
		return
	}
	for _, d := range open {
		isOthers := slices.ContainsFunc(m.gateways.unmatchable, func(f *unmatchable) bool { return f.id == d.Subject }) // listed again after a restore
		m.assert(statementAgrees, m.closing || m.explains(d) || d.Kind == reconcile.LineWithoutPayout && isOthers, d.ID,
			"a night found %s of %s, and no fault explains it: %s", d.Kind, d.Subject, d.Detail)
		e, err := on.reconciling.Evidence(m.ctx, d.ID)
		w := m.model.payouts[d.Payout]
		m.assert(readsAgree, err == nil && e.Difference == d && (w == nil) == (e.Payout == nil) && (w == nil || e.Payout.ID == d.Payout && e.Payout.State == w.state), d.ID,
			"the difference %+v is shown as %+v (error %v), and the ledger has %+v", d, e, err, w)
		for _, l := range e.Lines {
			m.assert(readsAgree, l.Gateway == d.Gateway, d.ID, "the difference %+v of %s is shown with the line %+v", d, d.Gateway, l)
		}
		hasLine := d.Kind == reconcile.UnexplainedDebit || d.Kind == reconcile.LineWithoutPayout || d.Kind == reconcile.ReturnedAtGateway
		m.assert(readsAgree, !hasLine || len(e.Lines) > 0, d.ID, "the difference %+v is shown without a line of the statement", d)
	}
}
