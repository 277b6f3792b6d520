package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"bursar/internal/bank"
	"bursar/internal/decision"
	port "bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
)

// unmatchable is one that another client has ordered through our account, under a reference of ours. The ledger knows nothing of it, and no payout
// can be made of it.
type unmatchable struct {
	at        *gateway
	id        string // the gateway's
	reference string
	seller    string // whom it names; "" for nobody
	amount    money.Amount
	madeAt    time.Duration
	// inDollars says that the gateway calls it one in another currency.
	inDollars bool
}

// listedAs is [payout.UnmatchedTransfer.ID].
func (f *unmatchable) listedAs() string { return unmatchedID(f.at.name, f.id) }

func unmatchedID(at port.Name, gatewayID string) string { return string(at) + ":" + gatewayID }

// unmatched is a transfer that is listed as matching no payout, until an admin has resolved it.
type unmatched struct {
	resolved             bool
	listedAt, resolvedAt time.Duration
}

// waitsFor reports whether a seller's payouts have to wait for a transfer that names them and that nobody has resolved: the instance has listed it, or
// another one has, some minutes ago.
func (m *market) waitsFor(on *instance, seller string) bool {
	return slices.ContainsFunc(m.gateways.unmatchable, func(f *unmatchable) bool {
		u := m.model.unmatched[f.listedAs()]
		return f.seller == seller && u != nil && !u.resolved && (slices.Contains(on.lost, f) || m.now-u.listedAt >= learnsOfIt)
	})
}

// mayWait reports whether a seller's payouts may wait for such a transfer. One that the database does not have may have been listed all the same.
func (m *market) mayWait(seller string) bool {
	return slices.ContainsFunc(m.gateways.unmatchable, func(f *unmatchable) bool {
		u := m.model.unmatched[f.listedAs()]
		return f.seller == seller && (u == nil || !u.resolved || m.now-u.resolvedAt < learnsOfIt)
	})
}

// openUnmatched counts the unmatched transfers that nobody has resolved.
func (o *model) openUnmatched() (n int) {
	for _, u := range o.unmatched {
		n += btoi(!u.resolved)
	}
	return n
}

// isUnmatchable reports whether a reference is that of a transfer that no payout can be made of.
func (g *gateways) isUnmatchable(reference string) bool {
	return slices.ContainsFunc(g.unmatchable, func(f *unmatchable) bool { return f.reference == reference })
}

// leaveUnmatched has a gateway make a transfer, soon after a backup, that no payout can be made of. Most of the time an instance is then
// started again, and so lists it before the backup is put back.
func (m *market) leaveUnmatched() {
	m.after(m.between(0, 4*time.Minute), func() {
		if m.makeUnmatchable() && m.chance(600) {
			m.after(maxLag+m.between(2*time.Second, 4*time.Minute), m.restartOne)
		}
	})
}

func (m *market) restartOne() { m.restart(one(m, m.machines), 0) }

// makeUnmatchable has a gateway that can list make a transfer that no payout can be made of, and reports whether it did: of an unknown seller, to another
// seller's account, in another currency, without a word of whose it is, or of more than the payout. The account is one that the backup has.
func (m *market) makeUnmatchable() bool {
	able := slices.DeleteFunc(slices.Clone(m.gateways.all), func(g *gateway) bool { return !g.capabilities().List })
	on := m.anyInstance()
	if len(able) == 0 || on == nil || m.closing || m.restoring || m.saved == nil || m.saved.restored {
		return false
	}
	g := one(m, able)
	client, err := on.router.Named(g.name)
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(m.saved.model.accounts)), func(id bank.ID) bool {
		a := m.saved.model.accounts[id]
		return a.at != g.name || a.beneficiary == "" || a.last4 < "1000" // which the gateway treats in ways of their own
	})
	if err != nil || len(ids) == 0 {
		return false
	}
	account := one(m, ids)
	a := m.saved.model.accounts[account]
	f := &unmatchable{at: g, reference: m.ids.New(port.ReferencePrefix, m.clock()), amount: minimum, madeAt: m.now}
	o := port.Order{
		Reference: f.reference, Beneficiary: a.beneficiary, Amount: f.amount, Currency: rupees().Code(), Rail: "IMPS",
		Seller: a.seller, Account: string(account), Gross: minimum + 500,
	}
	hasNotes := true
	switch m.dice.IntN(5) {
	case 0:
		o.Seller = m.ids.New("usr_", m.clock())
	case 1:
		if o.Seller = one(m, m.sellers).id; o.Seller == a.seller {
			o.Seller = m.ids.New("usr_", m.clock())
		}
	case 2:
		f.inDollars = true
	case 3:
		hasNotes = false // which tell whose it is
	default:
		f.amount = o.Gross + 1
	}
	body, err := client.Prepare(o)
	var in razorpayx.PayoutRequest
	err = errors.Join(err, json.Unmarshal([]byte(body), &in))
	in.Amount = int64(f.amount)
	if !hasNotes {
		in.Notes = nil
	}
	var made razorpayx.Payout
	err = errors.Join(err, g.askUnder(f.reference, http.MethodPost, "/v1/payouts", in, &made))
	if !m.assert(datastoreReadable, err == nil, "", "make a transfer that is no payout: %v", err) {
		return false
	}
	f.id = made.ID
	if hasNotes {
		f.seller = o.Seller
	}
	m.gateways.unmatchable = append(m.gateways.unmatchable, f)
	g.madeAt[f.id] = m.now
	m.note(f.reference, o.Seller, "the gateway makes a transfer that is no payout's:")
	return true
}

// nameCurrency has a page of a list tell the currency of transfers that are in another one.
func (w wire) nameCurrency(a *answer) {
	for _, f := range w.on.m.gateways.unmatchable {
		if !f.inDollars || f.at != w.g || !bytes.Contains(a.body.Bytes(), []byte(f.id)) {
			continue
		}
		var list razorpayx.Collection[razorpayx.Payout]
		if json.Unmarshal(a.body.Bytes(), &list) != nil {
			continue
		}
		for i := range list.Items {
			if list.Items[i].ID == f.id {
				list.Items[i].Currency = "USD"
			}
		}
		a.rewrite(list)
	}
}

// asking is when an instance began to ask the gateways what they have made, from when on, and how often they had lagged by then.
type asking struct {
	began time.Duration
	since map[port.Name]time.Time
	lags  int64
}

// beginsToAsk notes what an instance is about to ask the gateways for.
func (m *market) beginsToAsk(on *instance) asking {
	a := asking{began: m.now, since: map[port.Name]time.Time{}, lags: m.tally.faults[lag]}
	for _, g := range on.gateways {
		last, err := on.db.FirstUserAt(m.ctx)
		newest, err2 := on.db.NewestSent(m.ctx, g.name, 1)
		m.assert(datastoreReadable, err == nil && err2 == nil, "", "read when a payout was sent last: %v, %v", err, err2)
		if len(newest) > 0 {
			last = newest[0].SentAt
		}
		a.since[g.name] = last.Add(-clocksApart)
	}
	return a
}

// clocksApart is how much the service allows between its clocks and a gateway's.
const clocksApart = 10 * time.Minute

// checkListed wants an instance that has asked the gateways to have listed what they made since then and is no payout. While their lists lag
// behind, something may be left out of one.
func (m *market) checkListed(on *instance, a asking) {
	isRestored := m.saved != nil && m.saved.restored
	for _, f := range m.gateways.unmatchable {
		made := m.start.Add(f.madeAt)
		if !on.knows(f.at.name) || m.tally.faults[lag] != a.lags && !isRestored || a.began-f.madeAt <= maxLag || made.Before(a.since[f.at.name].Add(time.Second)) {
			continue
		}
		m.assert(unmatchedListed, m.model.unmatched[f.listedAs()] != nil, f.reference,
			"%s has listed what gateway %s made since %s, and transfer %s, made at %s, which no payout can be made of, is not listed as unmatched", on.name, f.at.name, a.since[f.at.name], f.id, made)
	}
	list, err := on.payouts.UnmatchedTransfers(m.ctx)
	m.assert(readsAgree, err == nil, "", "the unmatched transfers: %v", err)
	m.checkUnmatched(list)
}

// checkUnmatched holds the unmatched transfers that an admin is shown against those that nobody has resolved.
func (m *market) checkUnmatched(list []payout.UnmatchedTransfer) {
	shown := map[string]bool{}
	for _, u := range list {
		known := m.model.unmatched[u.ID()]
		m.assert(unmatchedListed, known != nil && !known.resolved && !shown[u.ID()], u.Transfer.Reference, "transfer %s is listed as unmatched, and is resolved or listed twice: %+v", u.ID(), known)
		shown[u.ID()] = true
	}
	m.assert(unmatchedListed, len(list) == min(m.model.openUnmatched(), 100), "", "%d unmatched transfers are listed, and %d are not resolved", len(list), m.model.openUnmatched())
}

// wasListed notes that a transfer was listed as unmatched.
func (m *market) wasListed(on *instance, u payout.UnmatchedTransfer) {
	id := u.ID()
	at := slices.IndexFunc(m.gateways.unmatchable, func(f *unmatchable) bool { return f.listedAs() == id })
	if !m.assert(unmatchedListed, at >= 0, u.Transfer.Reference, "transfer %s is listed as unmatched, because %s, and a payout can be made of it", id, u.Why) {
		return
	}
	f := m.gateways.unmatchable[at]
	m.assert(unmatchedListed, u.Transfer.Reference == f.reference && u.Transfer.Amount == f.amount && u.Why != "", f.reference, "transfer %s of %d is listed as %+v", f.id, f.amount, u)
	known := m.model.unmatched[id]
	m.assert(unmatchedListed, known == nil, f.reference, "unmatched transfer %s is listed again: %+v", id, known)
	m.model.unmatched[id] = &unmatched{listedAt: m.now}
	m.lookEverywhere()
	on.lost = append(on.lost, f)
	m.tally.unmatched++
	m.print("%s %s unmatched\n", id, f.reference)
	m.note(f.reference, u.Transfer.Order.Seller, "listed as unmatched, because "+u.Why+":")
	if m.closing || m.chance(300) { // it waits in the inbox
		return
	}
	longest := one(m, []time.Duration{3 * time.Minute, 3 * time.Minute, 6 * time.Hour})
	soon := m.between(0, longest)
	if longest > time.Hour {
		soon += 3 * time.Hour
		m.askAfterRestarts(f)
	}
	for range 1 + btoi(m.chance(600)) {
		m.spawn(soon+m.between(0, 20*time.Millisecond), admin, func() { m.resolveUnmatched(id) })
	}
}

// askAfterRestarts has all instances started again while a transfer is unmatched and others were paid after it, and has the seller whom it names ask for
// a payout.
func (m *market) askAfterRestarts(f *unmatchable) {
	at := slices.IndexFunc(m.sellers, func(s *seller) bool { return s.id == f.seller })
	if at < 0 {
		return
	}
	s := m.sellers[at]
	m.after(90*time.Minute, func() {
		for _, mc := range m.machines {
			m.restart(mc, 0)
		}
	})
	m.spawn(2*time.Hour, "seller "+s.name, func() { m.send(&ask{seller: s.id, amount: minimum, notes: s.temper.name}) })
}

// resolveUnmatched has the admin resolve an unmatched transfer, which another request may have done meanwhile. An instance that is started then may find
// the transfer again.
func (m *market) resolveUnmatched(id string) {
	isOpen := func() bool { u := m.model.unmatched[id]; return u != nil && !u.resolved }
	err := m.decide(id, false, func(on *instance) error {
		was := isOpen()
		err := on.payouts.ResolveUnmatchedTransfer(m.ctx, m.by(), id)
		isResolved := errors.Is(err, payout.ErrUnmatchedTransferResolved)
		m.assert(answersAreTrue, err == nil || isUnavailable(err) || isResolved && !(was && isOpen()), "", "unmatched transfer %s, which is listed: %t, was resolved with %v", id, isOpen(), err)
		return err
	})
	if err == nil && m.chance(500) {
		m.restartOne()
	}
}

// wasResolved notes that an unmatched transfer was resolved.
func (m *market) wasResolved(at port.Name, gatewayID string) {
	id := unmatchedID(at, gatewayID)
	known := m.model.unmatched[id]
	if m.assert(unmatchedListed, known != nil && !known.resolved && m.current.name == admin, "", "unmatched transfer %s is resolved, and was %+v", id, known) {
		known.resolved, known.resolvedAt = true, m.now
	}
	m.print("%s resolved\n", id)
	m.lookEverywhere()
}

// lookEverywhere has all instances look for due payouts each minute for a while, by when they know of an unmatched transfer.
func (m *market) lookEverywhere() {
	for _, mc := range m.machines { // a loop looks all the time, also where nothing is due
		for after := time.Minute; after <= learnsOfIt; after += time.Minute {
			m.after(after, func() {
				if mc.on != nil {
					m.look(mc.on, payouts)
				}
			})
		}
	}
}

// learnsOfIt is how long it may take an instance to learn that a transfer is unmatched, or resolved: it asks each minute, and the database may not answer.
const learnsOfIt = 10 * time.Minute

// isUnresolved reports whether what the gateway calls so is a transfer that no payout can be made of, and that no admin has resolved.
func (m *market) isUnresolved(gatewayID string) bool {
	return slices.ContainsFunc(m.gateways.unmatchable, func(f *unmatchable) bool {
		u := m.model.unmatched[f.listedAs()]
		return f.id == gatewayID && (u == nil || !u.resolved)
	})
}

// checkUnmatchableLines wants the statement's lines of transfers that are no payouts to be found as differences, until an admin has resolved them.
func (m *market) checkUnmatchableLines(g *gateway, found []reconcile.Difference) {
	for _, f := range m.gateways.unmatchable {
		isFound := slices.ContainsFunc(found, func(d reconcile.Difference) bool {
			return d.Kind == reconcile.LineWithoutPayout && d.Subject == f.id && d.Open()
		})
		m.assert(statementAgrees, f.at != g || isFound == m.isUnresolved(f.id), f.reference,
			"transfer %s, which no payout can be made of and no admin has resolved (%t), is a difference: %t", f.id, m.isUnresolved(f.id), isFound)
	}
}

// judgeUnmatched wants all unmatched transfers to have been resolved, each by one decision, and none to have moved money.
func (m *market) judgeUnmatched(on *instance) {
	m.assert(unmatchedListed, m.model.openUnmatched() == 0, "", "%d unmatched transfers wait for an admin for ever", m.model.openUnmatched())
	for _, f := range m.gateways.unmatchable {
		_, err := on.db.Payout(m.ctx, payout.ID(f.reference))
		m.assert(unmatchedListed, errors.Is(err, payout.ErrNotFound), f.reference, "transfer %s is a payout in the ledger (error %v)", f.id, err)
		id := f.listedAs()
		n := m.countDecisions(on, id, decision.ResolveUnmatchedTransfer)
		m.assert(decisionsKept, n == btoi(m.model.unmatched[id] != nil), f.reference, "that unmatched transfer %s was resolved is on record %d times", id, n)
	}
}
