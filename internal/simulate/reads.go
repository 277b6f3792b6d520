package simulate

import (
	"errors"
	"maps"
	"slices"
	"time"

	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/search"
)

// readSomething reads what a seller sees, and what belongs to another seller.
func (m *market) readSomething(s *seller) {
	on := m.anyInstance()
	if on == nil {
		return
	}
	_ = m.call(on, func() error {
		m.readOverview(on, s)
		m.readSales(on, s)
		list := m.readHistory(on, s)
		if other := one(m, m.sellers); len(list) > 0 && other != s {
			m.readAsOtherSeller(on, other, s, list[0].ID)
		}
		m.readPayout(on, s, list)
		return nil
	})
	m.pageThrough(s)
}

// readOverview compares a seller's summary and account.
func (m *market) readOverview(on *instance, s *seller) {
	h := m.model.sellers[s.id]
	row := m.model.row(s.id)
	sum, err := on.payouts.Summary(m.ctx, s.id)
	m.assert(readsAgree, err == nil && sum.Pending == row.Pending && sum.Available == row.Available && sum.InTransit == row.InTransit &&
		sum.Earned == row.Earned && sum.Withdrawn == row.Withdrawn && sum.Sales == row.Counts.Sales, s.id,
		"%s is shown %+v (error %v), and has %+v", s.id, sum, err, row)
	until := time.UnixMicro(row.HoldUntil).UTC()
	m.assert(readsAgree, row.HoldUntil == 0 && sum.HoldUntil.IsZero() || sum.HoldUntil.Equal(until), s.id, "%s is shown a hold until %s, and it ends at %s", s.id, sum.HoldUntil, until)
	now := on.now().In(indianTime)
	last := now.AddDate(0, 0, -now.Day())
	m.assert(readsAgree, sum.ThisMonth == h.months[now.Format("2006-01")] && sum.LastMonth == h.months[last.Format("2006-01")], s.id,
		"%s is shown %d for this month and %d for the last, and has %v", s.id, sum.ThisMonth, sum.LastMonth, h.months)
	q := on.payouts.Quote(minimum + money.Amount(m.begun%100_000)*100)
	m.assert(feesAsAgreed, q.Fee == on.tariff.of(q.Amount) && q.Net == q.Amount-q.Fee && stored(q.CancelUntil).Equal(stored(on.now().Add(cancelWindow))), s.id, "%s is quoted %+v", s.id, q)
	m.checkQuote(q, on.now())
	m.checkQuote(on.payouts.Quote(impsMost+100), on.now()) // its fee takes it below the most that IMPS carries
	a, err := on.bank.Account(m.ctx, s.id)
	known := m.model.accounts[h.current]
	m.readBlockers(on, s)
	m.assert(readsAgree, known == nil && sum.Account.Status == "" || known != nil && sum.Account.Status == known.status && sum.Account.Last4 == known.last4, s.id,
		"%s is shown the account %+v beside the balance, and has %s", s.id, sum.Account, h.current)
	m.assert(readsAgree, (known == nil && errors.Is(err, bank.ErrNone)) || (err == nil && known != nil && a.ID == h.current && a.Status == known.status && a.Last4 == known.last4), s.id,
		"%s is shown account %s, %s (error %v), and has %s", s.id, a.ID, a.Status, err, h.current)
}

// readBlockers compares what blocks a payout of a seller, and what is under way.
func (m *market) readBlockers(on *instance, s *seller) {
	e, err := on.payouts.Explain(m.ctx, s.id)
	if !m.assert(readsAgree, err == nil || m.tampered != "" && errors.Is(err, ledger.ErrTampered), s.id, "explain what blocks payouts of %s: %v", s.id, err) || m.tampered != "" {
		return
	}
	h, row := m.model.sellers[s.id], m.model.row(s.id)
	account := m.model.accounts[h.current]
	want := map[string]bool{
		payout.BlockedFrozen: h.frozen.stopped, payout.BlockedPaused: m.model.paused.stopped, payout.BlockedOnHold: h.holdUntil > on.now().UnixMicro(),
		payout.BlockedNoAccount: account == nil, payout.BlockedUnverified: account != nil && account.status == bank.StatusUnverified,
		payout.BlockedInReview: account != nil && account.status == bank.StatusReview, payout.BlockedRejected: account != nil && account.status == bank.StatusRejected,
		payout.BlockedBelowZero: row.Available < 0, payout.BlockedBelowLeast: row.Available >= 0 && row.Available < minimum,
	}
	maps.DeleteFunc(want, func(_ string, blocks bool) bool { return !blocks })
	for _, b := range e.Blockers {
		if b.Code == payout.BlockedFrozen && !want[b.Code] && m.mayWait(s.id) {
			continue
		}
		m.assert(readsAgree, want[b.Code] && b.Message != "", s.id, "payouts of %s are blocked by %q (%s), and should be by %v", s.id, b.Code, b.Message, want)
		delete(want, b.Code)
		since := m.blockedSince(s, b.Code)
		m.assert(readsAgree, b.Since.Equal(since), s.id, "payouts of %s are said to be blocked by %s since %s, and they are since %s", s.id, b.Code, b.Since, since)
	}
	isStop := func(b payout.Blocker) bool { return b.Code == payout.BlockedFrozen || b.Code == payout.BlockedPaused }
	onHold := slices.IndexFunc(e.Blockers, func(b payout.Blocker) bool { return b.Code == payout.BlockedOnHold })
	m.assert(readsAgree, onHold < 0 || !slices.ContainsFunc(e.Blockers[onHold:], isStop), s.id, "payouts of %s are stopped, and a hold that ends by itself is named before that: %+v", s.id, e.Blockers)
	m.assert(readsAgree, len(want) == 0 && e.Balance == row, s.id, "payouts of %s are blocked by %v, which the answer lacks; it says that the balance is %+v, and it is %+v", s.id, want, e.Balance, row)
	underWayNow := 0
	for _, w := range m.model.payouts {
		underWayNow += btoi(w.seller == s.id && kindOf(w.state) == underWay)
	}
	m.assert(readsAgree, len(e.InTransit) == min(underWayNow, 1000), s.id, "%d payouts of %s are said to be under way, and there are %d", len(e.InTransit), s.id, underWayNow)
}

// blockedSince is when what blocks a seller's payouts began.
func (m *market) blockedSince(s *seller, code string) time.Time {
	own, account := m.model.journal(s.id), string(m.model.sellers[s.id].current)
	switch code {
	case payout.BlockedFrozen:
		return own.newest[aboutType{s.id, ledger.PayoutsFrozen}]
	case payout.BlockedPaused:
		return m.model.journal(decision.Platform).newest[aboutType{decision.Platform, ledger.PayoutsFrozen}]
	case payout.BlockedOnHold:
		return own.newest[aboutType{s.id, ledger.PayoutsOnHold}]
	case payout.BlockedUnverified:
		return own.newest[aboutType{account, ledger.BankAccountAdded}]
	case payout.BlockedInReview:
		return own.newest[aboutType{account, ledger.BankAccountReview}]
	case payout.BlockedRejected:
		return own.newest[aboutType{account, ledger.BankAccountRejected}]
	case payout.BlockedBelowZero:
		return own.fellBelow[0]
	case payout.BlockedBelowLeast:
		return own.fellBelow[1]
	default:
		return time.Time{}
	}
}

// readSales compares a seller's sales, months and coming releases.
func (m *market) readSales(on *instance, s *seller) {
	h, sold := m.model.sellers[s.id], m.model.row(s.id).Counts.Sales
	seen, page := map[string]bool{}, 1+m.dice.IntN(40)
	var before sale.Sale
	for {
		list, total, err := on.sales.List(m.ctx, s.id, len(seen), page)
		m.assert(readsAgree, err == nil && total == sold, s.id, "%s is shown %d sales (error %v), and has %d", s.id, total, err, sold)
		for _, got := range list {
			e := m.model.sales[got.ID]
			m.assert(readsAgree, e != nil && !seen[got.ID] && e.seller == s.id && got.Left() == e.left() && got.Released() == e.released &&
				(before.ID == "" || !got.OccurredAt.After(before.OccurredAt)), s.id, "%s is shown the sale %+v after %s, and the ledger has %+v", s.id, got, before.ID, e)
			seen[got.ID], before = true, got
		}
		if len(list) == 0 || err != nil {
			break
		}
	}
	m.assert(readsAgree, int64(len(seen)) == sold, s.id, "%s can page through %d sales, and has %d", s.id, len(seen), sold)
	months, err := on.sales.Months(m.ctx, s.id, 3)
	for i, month := range months {
		at := on.now().In(indianTime)
		want := time.Date(at.Year(), at.Month()-time.Month(2-i), 1, 0, 0, 0, 0, indianTime).Format("2006-01")
		m.assert(readsAgree, err == nil && len(months) == 3 && month.Month == want && month.Earned == h.months[want], s.id, "%s is shown %+v as month %d (error %v), and has %v", s.id, month, i, err, h.months)
	}
	m.readReleases(on, s)
}

// readReleases compares what is to come on each day. What is overdue comes today.
func (m *market) readReleases(on *instance, s *seller) {
	releases, err := on.sales.Releases(m.ctx, s.id, 1000)
	today, want := midnight(on.now()), map[time.Time]money.Amount{}
	for _, e := range m.model.sales {
		if e.seller != s.id || e.released || e.left() == 0 {
			continue
		}
		day := midnight(e.availableAt)
		if day.Before(today) {
			day = today
		}
		if day.Before(today.AddDate(0, 0, 31)) {
			want[day] += e.left()
		}
	}
	m.assert(readsAgree, err == nil && len(releases) == len(want), s.id, "%s is shown releases on %d days (error %v), and has %v", s.id, len(releases), err, want)
	for _, r := range releases {
		m.assert(readsAgree, r.Amount == want[midnight(r.Day)], s.id, "%s is shown %d to come on %s, and has %v", s.id, r.Amount, r.Day, want)
	}
}

// readEntries pages through an owner's entries from the last to the first, and wants those that were appended.
func (m *market) readEntries(on *instance, owner string) {
	const page = 37
	hashes := m.model.journal(owner).hashes
	next, before := len(hashes), int64(0)
	for {
		list, err := on.db.Entries(m.ctx, owner, before, page)
		m.assert(readsAgree, err == nil, owner, "the entries of %s can't be read: %v", owner, err)
		for _, e := range list {
			m.assert(readsAgree, next > 0 && e.Number == int64(next) && e.Hash == hashes[next-1], owner, "%s is shown entry %d, and should be number %d as it was appended", owner, e.Number, next)
			next, before = next-1, e.Number
		}
		if len(list) < page || m.violation != nil {
			break
		}
	}
	m.assert(readsAgree, next == 0, owner, "the last entry that %s is shown is number %d", owner, next+1)
}

// historyOf lists a seller's payouts of a status, or all, the newest first.
func (o *model) historyOf(seller string, status payout.Status) (ids []payout.ID) {
	for id, w := range o.payouts {
		if w.seller == seller && (status == "" || w.state.Status() == status) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

// readHistory pages through a seller's payouts at one moment, all of them or those of one status.
func (m *market) readHistory(on *instance, s *seller) []payout.Payout {
	status := one(m, append(payout.Statuses(), ""))
	want := m.model.historyOf(s.id, status)
	var list []payout.Payout
	page := 1 + m.dice.IntN(7)
	for {
		got, total, err := on.payouts.History(m.ctx, payout.Caller{User: s.id}, payout.Filter{Status: status, Limit: page, Offset: len(list)})
		m.assert(readsAgree, err == nil && total == int64(len(want)), s.id, "%s is shown %d payouts with the status %q (error %v), and has %d", s.id, total, status, err, len(want))
		if list = append(list, got...); len(got) == 0 || err != nil {
			break
		}
	}
	m.assert(readsAgree, len(list) == len(want), s.id, "%s can page through %d payouts, and has %d", s.id, len(list), len(want))
	for i, p := range list[:min(len(list), len(want))] {
		w := m.model.payouts[p.ID]
		a := m.model.accounts[w.account]
		m.assert(readsAgree, p.ID == want[i] && w.state == p.State && w.amount == p.Amount && w.last.UTR == p.UTR && stored(p.CompletedAt).Equal(stored(w.folded.CompletedAt)) &&
			stored(p.ArriveAt).Equal(stored(w.folded.ArriveAt)) && stored(p.RequestedAt).Equal(stored(w.folded.RequestedAt)) && (a == nil || p.AccountLast4 == a.last4), s.id,
			"%s is shown %+v, and the ledger has %s, %+v", s.id, p, want[i], w)
	}
	return list
}

// pageThrough reads a seller's payouts page by page while others come: none of those there were is left out.
func (m *market) pageThrough(s *seller) {
	there := map[payout.ID]bool{}
	for id, w := range m.model.payouts {
		there[id] = w.seller == s.id
	}
	maps.DeleteFunc(there, func(_ payout.ID, mine bool) bool { return !mine })
	restores := m.tally.restores
	for offset, page := 0, 2+m.dice.IntN(3); ; offset += page {
		var got []payout.Payout
		err := errNowhere
		if on := m.anyInstance(); on != nil {
			err = m.call(on, func() (err error) {
				got, _, err = on.payouts.History(m.ctx, payout.Caller{User: s.id}, payout.Filter{Limit: page, Offset: offset})
				return err
			})
		}
		if err != nil || m.restoring || m.tally.restores != restores {
			return
		}
		for _, p := range got {
			delete(there, p.ID)
		}
		if len(got) == 0 {
			break
		}
		m.pause(m.between(0, time.Minute))
	}
	m.assert(readsAgree, len(there) == 0, s.id, "%s paged through their payouts and never saw %v", s.id, slices.Collect(maps.Keys(there)))
}

// readPayout compares one payout, its changes, and what finds it.
func (m *market) readPayout(on *instance, s *seller, list []payout.Payout) {
	if len(list) == 0 {
		return
	}
	id := one(m, list).ID
	w := m.model.payouts[id]
	p, err := on.payouts.Payout(m.ctx, payout.Caller{User: s.id}, id)
	m.assert(readsAgree, err == nil && p.State == w.state && p.Net() == w.net() && p.BankAccountID == w.account, string(id), "%s is shown %+v (error %v), and the ledger has %+v", s.id, p, err, w)
	events, err := on.payouts.Events(m.ctx, payout.Caller{User: s.id}, id)
	last := payout.Waiting
	for _, e := range events {
		m.assert(readsAgree, e.From == last, string(id), "payout %s is shown to have gone from %s to %s, and was %s", id, e.From, e.To, last)
		last = e.To
	}
	m.assert(readsAgree, err == nil && last == w.state, string(id), "the changes of payout %s end with %s (error %v), and it is %s", id, last, err, w.state)
	m.findAccount(on, w.account)
	for _, reference := range []string{string(id), w.last.GatewayID, w.last.UTR} {
		if reference == "" {
			continue
		}
		all, err := search.Service{Store: on.db, Currency: rupees()}.Find(m.ctx, reference)
		found := all.Payouts
		isFound := slices.ContainsFunc(found, func(p payout.Payout) bool { return p.ID == id })
		m.assert(readsAgree, err == nil && isFound && len(found) == m.named(reference), string(id), "%q finds %d payouts (error %v)", reference, len(found), err)
	}
}

// findAccount searches for the last four digits of a bank account.
func (m *market) findAccount(on *instance, id bank.ID) {
	a := m.model.accounts[id]
	if a == nil {
		return
	}
	all, err := search.Service{Store: on.db, Currency: rupees()}.Find(m.ctx, a.last4)
	isFound := slices.ContainsFunc(all.Accounts, func(of bank.Account) bool { return of.ID == id && of.Seller == a.seller })
	m.assert(readsAgree, err == nil && (isFound || len(all.Accounts) == search.Shown), string(id), "%s finds %d bank accounts (error %v), and not %s of %s", a.last4, len(all.Accounts), err, id, a.seller)
}

// named is how many payouts have a reference: those of two gateways may have the same.
func (m *market) named(reference string) (n int) {
	if len(m.gateways.all) == 1 {
		return 1
	}
	for id, w := range m.model.payouts {
		n += btoi(reference == string(id) || reference == w.last.GatewayID || reference == w.last.UTR)
	}
	return n
}

// readAsOtherSeller asks for what is another seller's, in every way there is.
func (m *market) readAsOtherSeller(on *instance, other, s *seller, id payout.ID) {
	caller := payout.Caller{User: other.id}
	_, seeErr := on.payouts.Payout(m.ctx, caller, id)
	m.assert(othersSeeNothing, errors.Is(seeErr, payout.ErrNotFound), s.id, "%s sees payout %s of %s: %v", other.id, id, s.id, seeErr)
	_, eventsErr := on.payouts.Events(m.ctx, caller, id)
	m.assert(othersSeeNothing, errors.Is(eventsErr, payout.ErrNotFound), s.id, "%s sees what happened to payout %s of %s: %v", other.id, id, s.id, eventsErr)
	list, _, err := on.payouts.History(m.ctx, caller, payout.Filter{Seller: s.id, Limit: 100})
	for _, p := range list {
		w := m.model.payouts[p.ID]
		m.assert(othersSeeNothing, err == nil && w != nil && w.seller == other.id, s.id, "%s is shown payout %s in a list", other.id, p.ID)
	}
	_, _, err = on.payouts.Cancel(m.ctx, caller, id, "")
	m.assert(othersSeeNothing, errors.Is(err, payout.ErrNotFound) || isUnavailable(err), s.id, "%s may cancel payout %s of %s: %v", other.id, id, s.id, err)
}
