package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bursar/internal/bank"
	"bursar/internal/decision"
	port "bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// What follows is called for each committed transaction, at the moment of its commit.

// possibleDuplicate is the reason of a payout that may be of money that was paid already.
const possibleDuplicate = "possible_duplicate"

// wasAppended is called for each entry of a journal once, in the journal's order.
func (m *market) wasAppended(e ledger.Entry) {
	if m.model.knows(e.Owner) { // the ids of who registered by API are others in each run
		m.print("%s %d %d %s %s %s %d %s\n", e.Owner, e.Number, e.At.UnixMicro(), e.Type, e.Subject, e.Actor, e.Moved.Amounts(), e.After.Text())
	}
	m.keepSecret(e.Data)
	if e.Type == ledger.BalanceAdjusted {
		m.wasAdjusted(e)
	}
	m.checkActor(e)
	m.assert(entriesAreTrue, e.Moved == m.model.moves(e), e.Owner, "entry %d of %s (%s of %s) moves %+v, and what happened moves %+v",
		e.Number, e.Owner, e.Type, e.Subject, e.Moved, m.model.moves(e))
	if e.Type == ledger.PayoutsHoldLifted {
		m.model.sellers[e.Owner].holdUntil = 0
	}
	m.model.suspect(e)
	wasDoubted := m.model.isDoubted(e.Subject)
	err := m.model.fold(e)
	m.assert(doubtsLast, !wasDoubted || m.model.isDoubted(e.Subject) || m.model.payouts[payout.ID(e.Subject)].folded.State != payout.Waiting || e.After.Available >= 0, e.Subject,
		"payout %s may be of money that was paid, %s has %d, and it is marked so no more", e.Subject, e.Owner, e.After.Available)
	m.assert(rowsMatchJournal, err == nil, e.Owner, "entry %d of %s can't be read: %v", e.Number, e.Owner, err)
	if w := m.model.payouts[payout.ID(e.Subject)]; w != nil && w.folded.ReasonCode == possibleDuplicate && !w.doubted {
		w.doubted = true
		m.assert(reviewedForCause, e.After.Available < 0, e.Subject, "payout %s is doubted, and %s has %d", e.Subject, e.Owner, e.After.Available)
	}
}

// isDoubted reports whether a payout waits, and is marked as one of money that may have been paid already.
func (o *model) isDoubted(id string) bool {
	w := o.payouts[payout.ID(id)]
	return w != nil && w.folded.State == payout.Waiting && w.folded.ReasonCode == possibleDuplicate
}

// checkActor holds who caused an entry by its own word against whose turn it is.
func (m *market) checkActor(e ledger.Entry) {
	a := m.current
	if a == nil { // what the run does by itself
		return
	}
	kind, name := ledger.CutActor(e.Actor)
	isTrue := true
	switch {
	case e.Type == ledger.PayoutRequested:
		isTrue = a.ask != nil && e.Actor == a.ask.actor()
	case (e.Type == ledger.SaleRecorded || e.Type == ledger.SaleRefunded) && kind != ledger.ActorOperator: // an operator opens balances
		isTrue = e.Actor == m.recorderOf(e)
	case kind == ledger.ActorAdmin:
		isTrue = a.name == admin && name == m.admin
	case kind == ledger.ActorUser:
		isTrue = name == e.Owner && a.name != admin && !strings.Contains(a.name, "step")
	case kind == ledger.ActorKey, kind == ledger.ActorIssuer:
		isTrue = false
	}
	m.assert(actorsTrue, isTrue, e.Owner, "entry %d of %s (%s of %s) is by %s, and it was %s", e.Number, e.Owner, e.Type, e.Subject, e.Actor, a.name)
}

func (m *market) wasSold(on *instance, s sale.Sale) {
	m.checkTime(on, s.CreatedAt, s.ID, "recorded")
	m.assert(oncePerID, m.model.sales[s.ID] == nil, s.Seller, "sale %s was recorded again", s.ID)
	m.model.sold(s)
	m.model.sales[s.ID].recordedAt = m.now
	m.tally.sales++
	m.note(s.ID, s.Seller, "sale committed:")
	m.saleDue(s.ID, s.AvailableAt)
}

func (m *market) wasRefunded(on *instance, r sale.Refund) {
	m.checkTime(on, r.At, r.Sale, "refunded")
	e := m.model.sales[r.Sale]
	_, again := e.refunds[r.ID]
	m.assert(oncePerID, !again && r.Amount <= e.left(), e.seller, "refund %s of %d was recorded; %d were left of the sale, recorded before: %t",
		r.ID, r.Amount, e.left(), again)
	m.model.refunded(r)
	m.tally.refunds++
	m.note(r.Sale, e.seller, fmt.Sprintf("refund of %d committed:", r.Amount))
}

// longestRelease is how late a sale is released at most: when no instance was there at its moment, some looks at what is due every few hours.
const longestRelease = time.Hour

func (m *market) wasReleased(on *instance, id string, at time.Time) {
	e := m.model.sales[id]
	early := min(at.UnixMicro(), on.now().UnixMicro()) < e.availableAt.UnixMicro() && m.leasesHold()
	m.assert(releasedWhenDue, !e.released && !early, e.seller,
		"sale %s was released at %s, due at %s, released before: %t", id, on.now(), e.availableAt, e.released)
	m.checkTime(on, at, id, "released")
	late := m.clock().Sub(e.availableAt)
	if e.recordedAt > 0 {
		late = min(late, m.now-e.recordedAt)
	}
	m.assert(releasedWhenDue, late < longestRelease || m.closing || m.tally.restores > 0, e.seller, "sale %s, which was due at %s, is released %s later", id, e.availableAt, late)
	e.released = true
	m.tally.releases++
	m.note(id, e.seller, "sale released:")
}

func (m *market) wasAsked(on *instance, p payout.Payout) {
	h := m.model.sellers[p.Seller]
	a := m.current.ask
	m.assert(oneAnswerPerKey, a != nil && a.made == "" && m.model.payouts[p.ID] == nil, p.Seller,
		"payout %s was made by no request, or by one that has made another", p.ID)
	if a != nil {
		a.made, a.at = p.ID, m.now
		m.assert(answersAreTrue, p.Notes == a.notes && (p.Source == payout.FromMarketplace) == (a.keyActor != ""), p.Seller, "payout %s has the notes %q and the source %q, and was asked for as %+v", p.ID, p.Notes, p.Source, a)
		m.assert(proofsKept, a.keyActor+a.issuerActor == "" || p.Amount <= proveAbove, p.Seller, "%s asked for %d without the seller", a.actor(), p.Amount)
	}
	m.assert(minimumKept, p.Amount >= minimum, p.Seller, "%s asked for %d, the least is %d", p.Seller, p.Amount, minimum)
	available := m.model.row(p.Seller).Available
	m.assert(neverGoesNegative, p.Amount <= available, p.Seller, "%s asked for %d and had %d", p.Seller, p.Amount, available)
	m.assert(holdsKept, p.RequestedAt.UnixMicro() >= m.model.sellers[p.Seller].holdUntil, p.Seller,
		"%s asked for %s at %s, and payouts are on hold until %s", p.Seller, p.ID, p.RequestedAt, time.UnixMicro(m.model.sellers[p.Seller].holdUntil).UTC())
	m.assert(feesAsAgreed, p.Fee == on.tariff.of(p.Amount), string(p.ID), "the fee of %s on %d is %d, agreed were %d", p.ID, p.Amount, p.Fee, on.tariff.of(p.Amount))
	current := m.model.accounts[h.current]
	m.assert(onlyRightAccount, p.BankAccountID == h.current && current != nil && current.status == bank.StatusVerified, p.Seller,
		"payout %s goes to %s, the seller's account is %s", p.ID, p.BankAccountID, h.current)
	if a != nil {
		m.assert(onlyRightAccount, a.account == "" || a.account == p.BankAccountID, p.Seller, "payout %s goes to %s, the seller was shown %s", p.ID, p.BankAccountID, a.account)
		m.assert(answersAreTrue, p.Amount == a.amount && p.Notes == a.notes, p.Seller, "%d with notes %q were asked for, and recorded were %d with %q", a.amount, a.notes, p.Amount, p.Notes)
	}
	m.assert(stopsKept, !m.model.stopped(p.Seller), p.Seller, "%s asked for %s, and payouts are stopped", p.Seller, p.ID)
	m.assert(stopsKept, !m.waitsFor(on, p.Seller), p.Seller, "%s asked for %s, and the gateway has paid them what the ledger does not know", p.Seller, p.ID)
	m.assert(ownGateway, p.Gateway == on.gateways[0].name, string(p.ID), "payout %s is asked for at gateway %s, and new ones go to %s", p.ID, p.Gateway, on.gateways[0].name)
	m.checkProof(a, p)
	m.checkRoute(p)
	m.checkTime(on, p.RequestedAt, string(p.ID), "requested")
	m.model.asked(p)
	m.model.payouts[p.ID].sendAt = p.RequestedAt.Add(cancelWindow)
	m.ever[p.ID] = *m.model.payouts[p.ID]
	m.tally.asked++
	m.note(string(p.ID), p.Seller, fmt.Sprintf("payout of %d committed:", p.Amount))
	m.payoutDue(p.ID, m.model.payouts[p.ID], p.DueAt)
	if m.strikes(hookForged) {
		m.gateways.named(p.Gateway).announce(p.ID, cancelWindow)
	}
	m.replaceSoon(payout.Waiting)
	if m.backUpSoon && !m.backUpUnknown {
		m.backUpSoon = false
		m.after(m.between(0, cancelWindow), m.backUp)
	}
}

func (m *market) wasImported(p payout.Payout) {
	first := m.ever[p.ID]
	m.assert(importedAsItWas, first.seller == p.Seller && first.account == p.BankAccountID && first.amount == p.Amount && first.fee == p.Fee && first.rail == p.Rail && first.at == p.Gateway, string(p.ID),
		"payout %s was of %s to %s: %d, fee %d, by %s; it is in the ledger again as of %s to %s: %d, fee %d, by %q",
		p.ID, first.seller, first.account, first.amount, first.fee, first.rail, p.Seller, p.BankAccountID, p.Amount, p.Fee, p.Rail)
	m.checkImportedTimes(first, p)
	m.model.asked(p)
	m.tally.imported++
	m.note(string(p.ID), p.Seller, fmt.Sprintf("payout of %d imported:", p.Amount))
}

func (m *market) wasMoved(on *instance, from payout.State, p payout.Payout, at time.Time) {
	w := m.model.payouts[p.ID]
	was := w.state
	m.checkWait(on, w, p)
	m.checkWaits(on, w, p)
	m.checkLie(w, p)
	m.checkFollowed(on, w, p)
	m.assert(referencesKept, keeps(w.last.GatewayID, p.GatewayID) && (w.last.UTR == "" || p.UTR != ""), string(p.ID),
		"payout %s was %q at the gateway and %q at the bank, and is %q and %q now", p.ID, w.last.GatewayID, w.last.UTR, p.GatewayID, p.UTR)
	m.checkSending(on, w, p, at)
	m.checkAsked(on, w, p)
	m.checkTimes(on, w, p)
	m.checkShown(w, p)
	if was == payout.Submitting && p.State == payout.Waiting && m.gateways.has(p.ID) && m.chance(500) && !m.closing { // its seller stops it just before it is sent again
		s := m.sellerOf(w.seller)
		m.spawn(max(p.DueAt.Sub(at)-m.between(0, time.Second), 0), "seller "+s.name, func() { m.cancel(s, p.ID) })
	}
	if was == payout.Submitting && p.State == payout.Waiting {
		m.assert(waitingIsUnsent, !m.gateways.has(p.ID) || m.gateways.orders[string(p.ID)].denied, string(p.ID), "payout %s goes back to waiting, and the gateway has a transfer of it", p.ID)
	}
	w.last = p
	if from != p.State || was != p.State {
		m.print("%s %s %s %d\n", p.ID, from, p.State, at.UnixMicro())
		m.note(string(p.ID), w.seller, fmt.Sprintf("%s → %s (%s):", from, p.State, p.ReasonCode))
	}
	m.assert(movesAreCAS, from == was, string(p.ID), "payout %s was %s, and went from %s to %s", p.ID, was, from, p.State)
	ended := kindOf(was) != underWay
	m.assert(endsAreFinal, !ended || p.State == was || (was == payout.Completed && p.State == payout.Returned), string(p.ID),
		"payout %s went from %s to %s", p.ID, was, p.State)
	w.state, w.sentAt, w.taken = p.State, p.SentAt, nil
	m.checkWatched(w, p, was)
	m.payoutDue(p.ID, w, p.DueAt)
	if p.State == was {
		return
	}
	if p.Refunded() {
		m.assert(refundedStaysEnded, m.now-w.changed >= m.mayArrive(), string(p.ID),
			"payout %s was refunded %s after it went to review, and what was sent before may still arrive", p.ID, m.now-w.changed)
		m.assert(refundedStaysEnded, at.Sub(w.reviewedAt) >= lease+gracePeriod, string(p.ID),
			"payout %s went to review at %s, and was refunded at %s", p.ID, w.reviewedAt, at)
	}
	if w.changed = m.now; p.State == payout.ManualReview {
		w.reviewedAt = at
	}
	m.replaceSoon(p.State)
	if p.State == payout.Unknown && m.backUpSoon && m.backUpUnknown && m.saved == nil && !m.gateways.has(p.ID) {
		m.backUpWith(p.ID)
	}
	if p.State == payout.Unknown {
		m.tally.unknown++
		if m.chance(150) && !m.closing {
			m.spawn(m.between(0, 20*time.Second), admin, func() { m.reviewAndRefund(p.ID) })
		}
	}
	if kindOf(p.State) != underWay {
		m.checkEnd(p.ID, w, was)
		return
	}
	if s := m.sellerOf(w.seller); m.chance(s.fickle/4) && !m.closing { // who watches it, and wants to stop it now
		m.spawn(m.between(0, one(m, []time.Duration{10 * time.Millisecond, time.Second, time.Minute})), "seller "+s.name, func() { m.cancel(s, p.ID) })
	}
}

// checkSending compares what is written of a payout's sending with what was, and notes who may send it from here on.
func (m *market) checkSending(on *instance, w *withdrawal, p payout.Payout, at time.Time) {
	before, now := stored(w.last.SentAt), stored(p.SentAt)
	switch {
	case w.state == payout.Waiting && p.State == payout.Submitting:
		w.sentBefore = before
		m.assert(sendingsTimed, now.Sub(at).Abs() < time.Second, string(p.ID), "payout %s is being sent since %s, by the ledger since %s", p.ID, at, now)
	case w.state == payout.Submitting && p.State == payout.Waiting && m.current.sent != string(p.ID):
		isOwn := m.current.claimed == string(p.ID) // who was to send it has not
		m.assert(sendingsTimed, now.Equal(before) && !isOwn || now.Equal(w.sentBefore), string(p.ID), "payout %s, which was not sent after all, was sent at %s before, and at %s by the ledger", p.ID, w.sentBefore, now)
	default:
		m.assert(sendingsTimed, now.Equal(before), string(p.ID), "payout %s, which was %s, was sent at %s, and at %s now", p.ID, w.state, before, now)
	}
	switch {
	case (p.State == payout.Submitting || p.State == payout.Unknown) && microsOf(p.DueAt) != w.due && (p.DueAt.Sub(at)-lease).Abs() < time.Second:
		if g := m.gateways.named(w.at); p.SentAt.After(g.lastOrder) {
			g.lastOrder = p.SentAt
		}
		m.current.claimed, m.current.sent, m.current.claimedUntil, m.current.offset = string(p.ID), "", p.DueAt, on.machine.offset
		m.assert(stopsKept, !m.model.stopped(w.seller), string(p.ID), "payout %s, which was %s, is being sent, and payouts are stopped", p.ID, w.state)
		m.assert(stopsKept, !m.waitsFor(on, w.seller), string(p.ID), "payout %s, which was %s, is being sent, and the gateway has paid its seller what the ledger does not know", p.ID, w.state)
		m.assert(nothingSpins, w.state != payout.Unknown || p.Tries > w.last.Tries, string(p.ID), "payout %s is sent again, and is not counted: try %d after %d", p.ID, p.Tries, w.last.Tries)
		w.resends += btoi(w.state == payout.Unknown)
	case p.State == payout.Waiting && (w.state == payout.Submitting || p.Tries != w.last.Tries): // it was postponed
		least := time.Second << min(max(p.Tries-1, 0), 6) * 4 / 5
		m.assert(nothingSpins, p.Tries > w.last.Tries && p.DueAt.Sub(at) >= least, string(p.ID), "payout %s is postponed to %s at %s, for the %dth time after the %dth",
			p.ID, p.DueAt, at, p.Tries, w.last.Tries)
	case p.State == payout.ManualReview && w.state != payout.ManualReview:
		runOut := at.Sub(w.sentAt) >= m.gateways.named(w.at).runsOut()-maxOff
		m.assert(reviewedForCause, m.current.name == admin || runOut || w.doubted, string(p.ID), "payout %s was sent at %s, and is in review at %s", p.ID, w.sentAt, at)
		m.assert(reviewedForCause, m.current.name == admin || w.doubted || w.resends > 0 || m.mayStayUnsent(w), string(p.ID), "payout %s was sent at %s and never again, and is in review at %s", p.ID, w.sentAt, at)
	}
}

// mayStayUnsent reports whether an unknown payout may go to review without being sent again: it can be looked up, or payouts were stopped
// since it was sent, or its gateway may not have been configured.
func (m *market) mayStayUnsent(w *withdrawal) bool {
	stoppedSince := func(s *stops) bool { return s.stopped || m.start.Add(s.resumed).After(w.sentAt) }
	return m.gateways.named(w.at).capabilities().Lookup || stoppedSince(&m.model.paused) || stoppedSince(m.model.stopsOf(w.seller)) || len(m.gateways.all) > 1
}

// checkAsked asserts that a payout that was sent and rejected is refunded only after the gateway was asked again, and one that an instance which
// is gone may have sent only after that would have arrived.
func (m *market) checkAsked(on *instance, w *withdrawal, p payout.Payout) {
	if w.state != payout.Waiting || kindOf(p.State) == underWay {
		return
	}
	isOlder := p.RequestedAt.Add(cancelWindow).Before(on.started)
	m.assert(askedBefore, !isOlder || on.now().Sub(on.started) >= m.mayArrive(), string(p.ID),
		"payout %s was due before %s started at %s, may have been sent by another one, and is refunded at %s", p.ID, on.name, on.started, on.now())
	o := m.gateways.orders[string(p.ID)]
	if o == nil {
		return
	}
	m.assert(askedBefore, m.current.asked == string(p.ID) && m.current.askedAt >= o.since, string(p.ID),
		"payout %s was sent %s ago and is refunded, and the gateway was not asked since", p.ID, m.now-o.since)
}

// checkShown compares what a seller sees of a payout with what it is and what they saw before.
func (m *market) checkShown(w *withdrawal, p payout.Payout) {
	m.assert(discrepanciesKept, w.last.Discrepancy == "" || p.Discrepancy != "" || m.current.name == admin || w.last.IsTampered() && m.tampered == "", string(p.ID), "the discrepancy of payout %s is gone, and nobody cleared it: %s", p.ID, w.last.Discrepancy)
	resolved := w.last.Discrepancy != "" && p.Discrepancy == "" && !w.last.IsTampered()
	m.assert(endsWatched, !resolved || p.State != payout.Completed || !p.DueAt.IsZero(), string(p.ID), "the discrepancy of payout %s, which is paid, was resolved, and the gateway is not asked again: %s", p.ID, w.last.Discrepancy)
	unfindable := p.GatewayID == "" && (p.SentAt.IsZero() || !m.gateways.named(w.at).capabilities().Lookup)
	over := unfindable || m.clock().Sub(p.EndedAt) > leastOfDays-2*maxOff
	m.assert(endsWatched, !resolved || p.State != payout.Failed && p.State != payout.Cancelled || over || !p.DueAt.IsZero(), string(p.ID), "the discrepancy of payout %s, which is %s since %s, was resolved, and the gateway is not asked again: %s", p.ID, p.State, p.EndedAt, w.last.Discrepancy)
	unpaid := p.State == payout.Failed || p.State == payout.Returned || p.State == payout.ManualReview
	m.assert(endsTellWhy, !unpaid || p.Reason != "", string(p.ID), "payout %s is %s (%s), and does not tell why", p.ID, p.State, p.ReasonCode)
	m.assert(endsTellWhy, p.State != payout.Completed || p.Reason == "" && p.ReasonCode == "", string(p.ID), "payout %s is paid, and tells of %s: %s", p.ID, p.ReasonCode, p.Reason)
	m.assert(endsTellWhy, p.State == payout.Waiting || p.ReasonCode != payout.CodeStopped, string(p.ID), "payout %s is %s, and still tells that payouts are stopped: %s", p.ID, p.State, p.Reason)
	same := func(before, now time.Time) bool { return before.IsZero() || stored(before).Equal(stored(now)) }
	m.assert(timesKept, same(w.last.ProcessedAt, p.ProcessedAt) && same(w.last.CompletedAt, p.CompletedAt) && (p.State != w.state || same(w.last.EndedAt, p.EndedAt)), string(p.ID),
		"payout %s was taken on at %s, paid at %s and over at %s, and now at %s, %s and %s", p.ID, w.last.ProcessedAt, w.last.CompletedAt, w.last.EndedAt, p.ProcessedAt, p.CompletedAt, p.EndedAt)
}

// checkWatched wants a payout in review, and the end of a payout that was sent, to be looked at again, unless a person has to look or banks have
// had the working days in which they may change it.
func (m *market) checkWatched(w *withdrawal, p payout.Payout, was payout.State) {
	ended := m.now
	if p.State == was {
		ended = w.changed
	}
	cleared := p.State == was && w.due == 0 && w.last.Discrepancy == "" // a person has looked
	unfindable := p.GatewayID == "" && !m.gateways.named(w.at).capabilities().Lookup
	over := p.State == payout.Returned || p.Discrepancy != "" || cleared || unfindable || m.clock().After(lastReturn(m.start.Add(ended-maxOff)).Add(-2*maxOff))
	m.assert(endsWatched, p.State != payout.ManualReview || !p.DueAt.IsZero(), string(p.ID), "payout %s is in review, and is not polled again", p.ID)
	m.assert(endsWatched, kindOf(p.State) == underWay || p.SentAt.IsZero() && p.GatewayID == "" || over || !p.DueAt.IsZero(), string(p.ID),
		"payout %s is %s since %s and is not looked at again", p.ID, p.State, m.now-ended)
	listed := p.State != payout.Completed || m.gateways.named(w.at).capabilities().List
	m.assert(endsWatched, listed || p.DueAt.IsZero() || p.DueAt.Sub(m.clock()) <= longestUnlisted, string(p.ID), "payout %s is paid, its gateway lists no returns, and its next poll is at %s", p.ID, p.DueAt)
}

// longestUnlisted is the longest wait between two polls of a payout that is paid, where the gateway lists no returns.
const longestUnlisted = 8 * time.Hour

// leastOfDays is the least that three working days of banks last, after the day on which a payout ended.
const leastOfDays = 3 * 24 * time.Hour

// mayArrive is how long after a payout went to review what was sent before may still arrive: as long as a sending may last, and
// what the service allows the gateway besides. Clocks that are off make it shorter.
func (m *market) mayArrive() time.Duration {
	if m.o.Faults[clock] {
		return lease + gracePeriod - 2*maxOff
	}
	return lease + gracePeriod
}

// checkEnd asks the gateway's own records about a payout that has just come to an end.
func (m *market) checkEnd(id payout.ID, w *withdrawal, was payout.State) {
	for _, t := range m.gateways.transfers(id) {
		switch {
		case w.state != payout.Completed:
			m.assert(refundedStaysEnded, isDead(t.Status), string(id), "payout %s is %s, and the gateway's transfer %s is %s", id, w.state, t.ID, t.Status)
			m.assert(endsAsAtGateway, (w.state == payout.Cancelled) == (t.Status == razorpayx.StatusCancelled), string(id), "payout %s is %s, and the gateway's transfer %s is %s", id, w.state, t.ID, t.Status)
		default:
			paid := t.Status == razorpayx.StatusProcessed || t.Status == razorpayx.StatusReversed
			m.assert(completedIsPaid, paid, string(id), "payout %s is completed, and the gateway's transfer %s is %s", id, t.ID, t.Status)
			m.assert(paidExactly, t.Amount == int64(w.net()), string(id), "payout %s of %d net was paid %d", id, w.net(), t.Amount)
		}
	}
	if w.state == payout.Completed {
		m.assert(completedIsPaid, m.gateways.has(id), string(id), "payout %s is completed, and the gateway has no transfer of it", id)
	}
	if w.state == payout.Failed && !m.gateways.has(id) {
		o, a := m.gateways.orders[string(id)], m.model.accounts[w.account]
		refused := o != nil && o.refused || a != nil && a.status == bank.StatusRejected
		doubted := was == payout.Waiting && w.last.ReasonCode == possibleDuplicate && w.doubted && m.model.row(w.seller).Available < 0
		m.assert(failuresHaveCause, refused || doubted || w.last.Refunded() && m.current.name == admin, string(id),
			"payout %s has failed (%s: %s), and nobody refused it", id, w.last.ReasonCode, w.last.Reason)
	}
}

// keeps reports whether a reference that was there is there still.
func keeps(before, now string) bool { return before == "" || before == now }

// checkWait holds the next sending of an order that the gateway postponed with what it asked for.
func (m *market) checkWait(on *instance, w *withdrawal, p payout.Payout) {
	o := m.gateways.orders[string(p.ID)]
	if o == nil || o.setNextPoll != m.current.number {
		return
	}
	o.setNextPoll = 0
	unsaid := w.notified >= o.since || !m.leasesHold() || kindOf(p.State) != underWay || (p.State != payout.Waiting && p.State != payout.Unknown)
	m.assert(waitsAsAsked, unsaid || p.DueAt.Sub(m.start)-on.machine.offset >= o.notBefore-time.Second, string(p.ID),
		"the gateway asked to wait until %s, and payout %s is due at %s", m.start.Add(o.notBefore), p.ID, p.DueAt)
}

// checkLie compares what is written of a payout with what the gateway has just lied about it.
func (m *market) checkLie(w *withdrawal, p payout.Payout) {
	lie := m.gateways.lies[p.ID]
	if lie == nil || lie.to != m.current.number {
		return
	}
	lie.to = 0
	overtaken := w.state != lie.was
	asksAgain := lie.overtaken && w.state == payout.Submitting && p.State == payout.Unknown
	m.assert(discrepanciesKept, overtaken || asksAgain || (p.State == w.state && (lie.overtaken || p.Discrepancy != "")), string(p.ID),
		"the gateway said of payout %s, which was %s, that %s; it is %s now, with the discrepancy %q (try %d)", p.ID, lie.was, lie.what, p.State, p.Discrepancy, p.Tries)
	isNews := lie.what == paidAfterAll && p.Discrepancy != w.last.Discrepancy
	m.assert(discrepanciesKept, !isNews || m.wereStopped(p.Seller), string(p.ID), "the gateway said of payout %s, which is %s, that it was paid, and the payouts of %s go on", p.ID, p.State, p.Seller)
}

// wereRescheduled notes that a start made all payouts due that the gateway may have, but for those that may be being sent again:
// they are unknown, and due before leased.
func (m *market) wereRescheduled(at port.Name, n int64, now, leased time.Time) {
	for _, id := range slices.Sorted(maps.Keys(m.model.payouts)) {
		w := m.model.payouts[id]
		isLeased := w.state == payout.Unknown && w.due <= leased.UnixMicro()
		if w.at == at && w.due > now.UnixMicro() && !isLeased && (w.state == payout.Unknown || w.state == payout.ManualReview || w.state == payout.Submitted) {
			m.wasRescheduled(id, now)
			n--
		}
	}
	m.assert(notificationsFollowed, n == 0, "", "a start made %d payouts more due than it should", n)
}

// wasRescheduled notes that a notification made a step due.
func (m *market) wasRescheduled(id payout.ID, now time.Time) {
	w := m.model.payouts[id]
	turnedAway := w.state == payout.Waiting && !w.sentAt.IsZero()
	m.assert(leasesHold, turnedAway || (w.state != payout.Waiting && w.state != payout.Submitting), string(id), "a notification made payout %s due, which is %s", id, w.state)
	w.notified = m.now
	m.payoutDue(id, w, now)
}

// checkOrder holds what was taken of what is due against what was not.
func (m *market) checkOrder(ids []payout.ID, now time.Time, limit int) {
	if m.tally.takes++; m.tally.takes%orderEvery != 0 && len(ids) < limit {
		return
	}
	newest := now.UnixMicro()
	if len(ids) == limit {
		newest = 0
		for _, id := range ids {
			newest = max(newest, m.model.payouts[id].due)
		}
	}
	for id, w := range m.model.payouts {
		m.assert(oldestFirst, w.due == 0 || string(id) == m.tampered || w.due >= newest || slices.Contains(ids, id), string(id), "payout %s is due since %s, and others were taken before it", id, time.UnixMicro(w.due).UTC())
	}
}

// maxTakesADay is far more often than a payout is taken up in a day in which it is polled.
const maxTakesADay = 1500

// orderEvery spaces checks that look at every payout.
const orderEvery = 50

func (m *market) wasDecided(d decision.Decision) {
	m.decided[decided{d.Subject, m.current.number}]++
	m.wasStopped(d)
	m.note(d.Subject, d.Admin, "decision on record: "+string(d.Action))
	isByItself := ledger.DecidedBy(d) == ledger.ActorSystem
	m.assert(decisionsKept, !isByItself || d.Action == decision.FreezePayouts && m.mayBeFrozen(d.Owner), d.Owner, "the payouts of %s were frozen by no admin (%s), and nothing left beside the balance: %s", d.Owner, d.Action, d.Note)
	m.assert(decisionsKept, isByItself || d.Admin == m.admin && m.current.name == admin, d.Subject, "it is on record that %s decided on %s (%s), and they did not", d.Admin, d.Subject, d.Action)
	m.assert(decisionsKept, d.Owner == m.model.ownerOf(d.Subject), d.Subject, "the decision on %s (%s) is in the journal of %q, which is not its owner's", d.Subject, d.Action, d.Owner)
}

// isDead reports whether a transfer can't pay any more, and has not.
func isDead(status string) bool {
	switch status {
	case razorpayx.StatusReversed, razorpayx.StatusFailed, razorpayx.StatusRejected, razorpayx.StatusCancelled:
		return true
	default:
		return false
	}
}

func (m *market) wasTaken(on *instance, id payout.ID, now, until time.Time) {
	w := m.model.payouts[id]
	m.assert(leasesHold, w.due != 0 && w.due <= now.UnixMicro() && until.Sub(now) >= lease, string(id), "%s took payout %s at %s until %s, which is due at %s",
		on.name, id, now, until, time.UnixMicro(w.due).UTC())
	if w.taken != nil && w.taken != on && w.due == w.leased {
		m.tally.takeovers++
		m.note(string(id), w.seller, "taken over from "+w.taken.name+":")
	}
	if w.takes++; w.takes == 1 {
		w.firstTakenAt = m.now
	}
	days := 1 + int((m.now-w.firstTakenAt)/(24*time.Hour))
	m.assert(nothingSpins, w.takes <= maxTakesADay*days, string(id), "payout %s was taken up %d times in %d days", id, w.takes, days)
	w.taken, w.takenAt, w.leased = on, m.now, until.UnixMicro()
	m.interfere(id, w)
	m.payoutDue(id, w, until)
}

// interfere has an admin decide about a payout at the moment when its step begins.
func (m *market) interfere(id payout.ID, w *withdrawal) {
	soon := func() time.Duration { return m.between(0, 100*time.Millisecond) }
	switch {
	case m.closing || !m.anyFaults():
	case w.state == payout.Waiting && m.begun%16 == 0:
		s := m.sellerOf(w.seller)
		m.spawn(soon(), "seller "+s.name, func() { m.cancel(s, id) })
	case w.state == payout.Waiting && m.begun%32 == 8:
		owner := w.seller
		if m.begun%64 == 8 {
			owner = decision.Platform
		}
		m.spawn(soon(), admin, func() { m.stopFor(owner, time.Hour) })
	case w.state == payout.Unknown && m.begun%8 == 0:
		m.spawn(soon(), admin, func() { m.reviewAndRefund(id) })
	}
}

// wasTakenToVerify notes that an account's verification goes on. Notifications make it due earlier than the model knows.
func (m *market) wasTakenToVerify(on *instance, id bank.ID, now, until time.Time) {
	a := m.model.accounts[id]
	if s := m.sellerOf(a.seller); m.chance(s.moves/2) && !m.closing { // who registers another one meanwhile
		m.spawn(m.between(0, 100*time.Millisecond), "seller "+s.name, func() { m.register(s) })
	}
	m.assert(leasesHold, a.due != 0 && until.Sub(now) >= lease, a.seller, "%s took bank account %s at %s until %s, which is due at %s", on.name, id, now, until, time.UnixMicro(a.due).UTC())
	a.steps++
	m.verificationDue(id, a, until)
}

func (m *market) wasRegistered(on *instance, a bank.Account) {
	m.checkTime(on, a.CreatedAt, string(a.ID), "registered")
	h := m.model.sellers[a.Seller]
	former, at := m.model.accounts[h.current], a.CreatedAt.UnixMicro()
	onHold := h.holdUntil > at
	if former != nil {
		former.due = 0
	}
	replaces := onHold || m.model.hasVerified(a.Seller)
	if replaces {
		h.holdUntil = max(h.holdUntil, at+coolDown.Microseconds())
	}
	h.former, h.current = h.current, a.ID
	m.model.accounts[a.ID] = &account{seller: a.Seller, number: m.current.account, last4: a.Last4, status: a.Status, folded: bank.Account{ID: a.ID}}
	h.registered = append(slices.DeleteFunc(slices.Clone(h.registered), func(at time.Duration) bool { return m.now-at > 24*time.Hour }), m.now)
	m.checkReplacedMail(a.Seller, former, replaces, a.Last4)
	m.assert(fewRegistrations, len(h.registered) <= 2*registrationsADay+1, a.Seller, "%s has registered %d accounts within a day", a.Seller, len(h.registered))
	m.note(string(a.ID), a.Seller, "bank account registered:")
	m.verificationDue(a.ID, m.model.accounts[a.ID], a.DueAt)
}

// hasVerified reports whether an account of a seller, the current one or a former one, is verified.
func (o *model) hasVerified(seller string) bool {
	for _, a := range o.accounts {
		if a.seller == seller && a.status == bank.StatusVerified {
			return true
		}
	}
	return false
}

// registrationsADay is how many accounts a seller may register.
const registrationsADay = 10

// wasRecovered notes an account that the database had lost, whose verdict it does not know.
func (m *market) wasRecovered(a bank.Account) {
	m.assert(verifiedIsTrue, a.Status == bank.StatusUnverified, a.Seller, "bank account %s, which was lost and found again, is %s", a.ID, a.Status)
}

// wasRegisteredAtGateway notes what a gateway calls an account. Another gateway's name is replaced only where that is not configured, and
// what it has verified is not asked of this one.
func (m *market) wasRegisteredAtGateway(on *instance, before, is bank.Account) {
	a := m.model.accounts[is.ID]
	if a == nil {
		return
	}
	a.beneficiary, a.at = is.Beneficiary, is.Gateway
	number, err := m.gateways.named(is.Gateway).numberOf(is.Beneficiary)
	m.assert(onlyRightAccount, err == nil && (a.number == "" || number == a.number), a.seller, "bank account %s is %s at the gateway, which is another account (error %v)", is.ID, is.Beneficiary, err)
	m.assert(verificationsFollowed, before.Gateway == "" || !on.knows(before.Gateway) && is.VerificationID == "", a.seller,
		"bank account %s was %q at %q, and is %q at %q, verified as %q", is.ID, before.Beneficiary, before.Gateway, is.Beneficiary, is.Gateway, is.VerificationID)
}

func (m *market) wasVerified(on *instance, before, a bank.Account) {
	known := m.model.accounts[a.ID]
	m.assert(verificationsFollowed, a.Gateway == before.Gateway && a.Beneficiary == before.Beneficiary, a.Seller,
		"bank account %s was %q at %q, and is %q at %q", a.ID, before.Beneficiary, before.Gateway, a.Beneficiary, a.Gateway)
	m.assert(verifiedIsTrue, before.Status == known.status && m.model.sellers[known.seller].current == a.ID, known.seller,
		"bank account %s went from %s to %s; it was %s, and its seller has %s", a.ID, before.Status, a.Status, known.status, m.model.sellers[known.seller].current)
	if known.status != a.Status {
		m.note(string(a.ID), a.Seller, "bank account is "+string(a.Status)+":")
		asked := m.gateways.named(a.Gateway)
		confirmed := m.current.name == admin || asked != nil && asked.confirms(a)
		m.assert(verifiedIsTrue, a.Status != bank.StatusVerified || confirmed, known.seller, "bank account %s is verified, and gateway %s does not say so of %s",
			a.ID, a.Gateway, a.VerificationID)
		m.assert(verifiedIsTrue, a.Status != bank.StatusRejected || m.current.name == admin || asked != nil && asked.rejects(a), known.seller,
			"bank account %s is rejected (%s), and gateway %s does not say so of %s", a.ID, a.Reason, a.Gateway, a.VerificationID)
		m.accountDecided(a.ID, known.seller, a.Status)
	}
	m.assert(verifiedIsTrue, a.VerificationID == "" || a.VerificationID != m.current.failed, known.seller,
		"bank account %s is %s, and its verification %s, which has failed, is to be asked about again", a.ID, a.Status, a.VerificationID)
	m.assert(verifiedIsTrue, a.Status != bank.StatusUnverified || !a.DueAt.IsZero(), known.seller, "bank account %s is unverified (%s), and nothing more is to be done", a.ID, a.Reason)
	known.steps++
	if a.Status == bank.StatusVerified && known.status != bank.StatusVerified {
		m.checkTime(on, a.VerifiedAt, string(a.ID), "verified")
	}
	m.checkVerification(on, before, a)
	known.status = a.Status
	known.wasReviewed = known.wasReviewed || a.Status == bank.StatusReview
	m.verificationDue(a.ID, known, a.DueAt)
}
