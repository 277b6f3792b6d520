package simulate

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/inbox"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// admin is who decides what the service leaves to people.
const admin = "admin"

// operateEvery is how often an admin looks at what waits for a person.
const operateEvery = 8 * time.Hour

// operate has an admin look in now and then. They go on when trade is over, until nothing waits for them.
func (m *market) operate() {
	every := m.spaced(operateEvery)
	if m.closing { // what waits holds payouts up
		every = operateEvery
	}
	m.after(m.around(every), func() {
		m.begin(admin, m.workThroughInbox)
		m.operate()
	})
}

// workThroughInbox holds what waits for a person against what should, and decides on some of it.
func (m *market) workThroughInbox() {
	on := m.anyInstance()
	if on == nil || !on.ready {
		return
	}
	var waits payout.Attention
	var reviews []bank.Account
	if err := m.call(on, func() (err error) {
		waits, err = on.payouts.Attention(m.ctx)
		m.assert(readsAgree, err == nil, "", "what waits for a person: %v", err)
		m.checkInbox(on, waits)
		reviews, err = on.bank.InReview(m.ctx, 100)
		m.checkReviews(on, reviews)
		m.checkTasks(on, waits, reviews)
		if m.tampered == "" { // the rows are read as an attacker has them
			m.checkOnRecord(on)
			m.checkFigures(on)
			m.checkEvidence(on)
			m.checkOptions(on, func(s payout.State) bool { return kindOf(s) == underWay })
		}
		return err
	}); err != nil {
		return
	}
	for _, p := range waits.Discrepancies {
		if string(p.ID) != m.tampered && p.ID != m.leftAlone { // it would be noted again, which may take until after the tampering
			m.resolveDiscrepancy(p)
		}
	}
	m.resumeForgotten()
	for _, u := range waits.UnmatchedTransfers {
		if m.closing || m.chance(500) {
			m.resolveUnmatched(u.ID())
		}
	}
	for _, p := range waits.Unclear {
		m.settleUnclear(p.ID)
	}
	if !m.closing {
		m.meddle()
	}
}

// checkInbox holds the inbox against the model.
func (m *market) checkInbox(on *instance, waits payout.Attention) {
	unclear, discrepancies, late := 0, 0, 0
	for _, w := range m.model.payouts {
		if w.state == payout.Unknown || w.state == payout.ManualReview {
			unclear++
		}
		if w.last.Discrepancy != "" {
			discrepancies++
		}
		late += btoi(w.isOnlyLate(on.now()))
	}
	m.assert(readsAgree, len(waits.Late) == min(late, 100) || m.tampered != "", "", "an admin is shown a list of %d late payouts, and there are %d", len(waits.Late), late)
	m.assert(readsAgree, len(waits.Unclear) == min(unclear, 100) && len(waits.Discrepancies) == min(discrepancies, 100), "",
		"an admin is shown %d unclear and %d payouts with a discrepancy, and there are %d and %d", len(waits.Unclear), len(waits.Discrepancies), unclear, discrepancies)
	m.checkUnmatched(waits.UnmatchedTransfers)
	for _, p := range slices.Concat(waits.Unclear, waits.Discrepancies) {
		w := m.model.payouts[p.ID]
		m.assert(readsAgree, w != nil && w.state == p.State && w.last.Discrepancy == p.Discrepancy, string(p.ID), "an admin is shown %+v, and the ledger has %+v", p, w)
	}
}

// checkTasks wants all that waits for a person to be listed once, the oldest first, and whose it is.
func (m *market) checkTasks(on *instance, waits payout.Attention, reviews []bank.Account) {
	all, _, err := on.inbox().Tasks(m.ctx)
	differences, err2 := on.reconciling.Open(m.ctx, inbox.MaxPerKind)
	endpoints, err3 := on.webhooks.Endpoints(m.ctx)
	if err := errors.Join(err, err2, err3); !m.assert(readsAgree, err == nil, "", "the tasks of admins: %v", err) {
		return
	}
	want := map[string]string{} // sellers, by what is about them
	for _, p := range slices.Concat(waits.Discrepancies, waits.Late, waits.Unclear, waits.WithoutGateway) {
		want[string(p.ID)] = p.Seller
	}
	for _, u := range waits.UnmatchedTransfers {
		want[u.ID()] = u.Transfer.Order.Seller
	}
	for _, a := range reviews {
		want[string(a.ID)] = a.Seller
	}
	for _, d := range differences {
		want[d.ID] = ""
		if w := m.model.payouts[d.Payout]; w != nil {
			want[d.ID] = w.seller
		}
	}
	for _, e := range endpoints {
		if e.NeedsAttention() {
			want[e.ID] = ""
		}
	}
	got := map[string]string{}
	for _, task := range all {
		got[task.Subject] = task.Seller
	}
	inOrder := slices.IsSortedFunc(all, func(a, b inbox.Task) int { return a.Since.Compare(b.Since) })
	m.assert(readsAgree, maps.Equal(got, want) && len(got) == len(all) && inOrder, "", "the tasks of admins are %v, and should be %v, each once and the oldest first", got, want)
}

// checkReviews holds the accounts that wait for a person, and what is watched, against the model.
func (m *market) checkReviews(on *instance, reviews []bank.Account) {
	waiting := 0
	for _, h := range m.model.sellers {
		if a := m.model.accounts[h.current]; a != nil && a.status == bank.StatusReview {
			waiting++
		}
	}
	now := on.now()
	watched, err := on.db.Watch(m.ctx, now)
	var unknown, reviewed, discrepancies, late int64
	for _, w := range m.model.payouts {
		unknown += int64(btoi(w.state == payout.Unknown))
		reviewed += int64(btoi(w.state == payout.ManualReview))
		discrepancies += int64(btoi(w.last.Discrepancy != ""))
		late += int64(btoi(w.isOnlyLate(now)))
	}
	m.assert(readsAgree, watched.Late == late || m.tampered != "", "", "an admin is shown %d late payouts, and there are %d", watched.Late, late)
	m.assert(readsAgree, err == nil && len(reviews) == min(waiting, 100) && watched.AccountsInReview == int64(waiting) &&
		watched.Unknown == unknown && watched.ManualReview == reviewed && watched.Discrepancies == discrepancies && watched.UnmatchedTransfers == int64(m.model.openUnmatched()), "",
		"an admin is shown %d accounts in review, and watched are (error %v) %+v; there are %d accounts, %d unknown, %d in review, %d payouts with a discrepancy and %d unmatched transfers",
		len(reviews), err, watched, waiting, unknown, reviewed, discrepancies, m.model.openUnmatched())
}

// by is the admin with a reason.
func (m *market) by() decision.By {
	return decision.By{Admin: m.admin, Note: "Looked at the gateway's dashboard."}
}

// decide lets the admin decide on something, and holds the record of decisions against what came of it: always is
// on record what is done with no conditions. It returns the answer, or errLost or an unavailable one.
func (m *market) decide(subject string, always bool, do func(on *instance) error) error {
	return m.askAsAdmin(subject, func(on *instance) error {
		by := decided{subject, m.current.number}
		before := m.decided[by]
		answer := do(on)
		m.assert(answersAreKnown, answer == nil || fault.From(answer) != nil, subject, "a decision was answered with %v", answer)
		now := m.decided[by]
		m.assert(decisionsKept, isUnavailable(answer) || now-before == btoi(answer == nil || always && !errors.Is(answer, payout.ErrNotFound)), subject,
			"a decision on %s was answered with %v, and %d of them are on record, %d were before", subject, answer, now, before)
		return answer
	})
}

// askAsAdmin has the admin call some instance about a subject. It returns the answer, or errLost or errNowhere.
func (m *market) askAsAdmin(subject string, ask func(on *instance) error) error {
	on := m.anyInstance()
	if on == nil {
		return errNowhere
	}
	m.current.about = payout.ID(subject)
	defer func() { m.current.about = "" }()
	err := m.call(on, func() error { return ask(on) })
	if lie := m.gateways.lies[payout.ID(subject)]; lie != nil && lie.to == m.current.number {
		lie.to = 0
	}
	return err
}

// liftHold has an admin end a hold on a seller's payouts, if one still stands.
// Now and then the admin has looked at another one.
func (m *market) liftHold(seller string) {
	_ = m.decide(seller, false, func(on *instance) error {
		if m.begun%3 > 0 {
			return on.payouts.LiftHold(m.ctx, m.by(), seller, time.Time{})
		}
		err := on.payouts.LiftHold(m.ctx, m.by(), seller, m.clock())
		m.assert(holdsKept, err != nil, seller, "a hold was lifted of which no admin has seen when it ends")
		return err
	})
}

// resolveDiscrepancy settles what the gateway said, as it was seen or as it was not. While stored money is tampered with, what
// was found then stays: it would come back with the payout's next step, which may be after the tampering has ended.
func (m *market) resolveDiscrepancy(p payout.Payout) {
	if p.IsTampered() && m.tampered != "" {
		return
	}
	seen := p.Discrepancy
	if m.chance(300) && !m.closing {
		seen = strings.ToUpper(seen)
	}
	err := m.decide(string(p.ID), false, func(on *instance) error { return on.payouts.ResolveDiscrepancy(m.ctx, m.by(), p.ID, seen) })
	m.assert(discrepanciesKept, err != nil || seen == p.Discrepancy, string(p.ID), "a discrepancy was resolved that no admin has seen: %q", seen)
}

// settleUnclear does what an admin can do about a payout of which nobody knows what became of it.
func (m *market) settleUnclear(id payout.ID) {
	w := m.model.payouts[id]
	if w == nil || id == m.leftAlone {
		return
	}
	switch n := m.dice.IntN(10); {
	case n < 2:
		m.askGateway(id)
	case n < 4 && w.state == payout.Unknown && !m.closing:
		m.reviewUnknown(id)
	case (n < 5 || n < 8 && m.gateways.has(id)) && !m.closing:
		m.match(id)
	case m.chance(200) || m.closing:
		m.refundToBalance(id)
	}
}

// reviewUnknown sends a payout to review.
func (m *market) reviewUnknown(id payout.ID) {
	_ = m.decide(string(id), false, func(on *instance) error {
		_, err := on.payouts.SendToReview(m.ctx, m.by(), id)
		if w := m.model.payouts[id]; err == nil && w != nil {
			w.sentToReview = true
		}
		return err
	})
}

// reviewAndRefund is an admin in a hurry: a payout that has just become unknown is sent to review, and refunded as soon as the grace period allows, or sooner.
func (m *market) reviewAndRefund(id payout.ID) {
	if w := m.model.payouts[id]; w == nil || w.state != payout.Unknown {
		return
	}
	m.reviewUnknown(id)
	m.pause(one(m, []time.Duration{time.Second, 20 * time.Second, 50 * time.Second, gracePeriod + lease/2, 11 * time.Minute, 2 * time.Hour}))
	m.tryRefund(id)
}

func (m *market) askGateway(id payout.ID) {
	_ = m.decide(string(id), true, func(on *instance) error {
		_, err := on.payouts.AskGateway(m.ctx, m.by(), id)
		return err
	})
}

// match names a transfer, which may be another payout's.
func (m *market) match(id payout.ID) {
	others := m.gateways.any().transferIDs()
	if len(others) == 0 {
		return
	}
	transfer := one(m, others)
	if mine := m.gateways.transfers(id); len(mine) > 0 && m.chance(500) {
		transfer = mine[0].ID
	}
	_ = m.decide(string(id), false, func(on *instance) error {
		_, err := on.payouts.MatchTransfer(m.ctx, m.by(), id, transfer)
		if err == nil {
			mine := m.gateways.transfers(id)
			m.assert(discrepanciesKept, len(mine) == 1 && mine[0].ID == transfer, string(id), "payout %s was taken for the transfer %s, which is another one's", id, transfer)
		}
		return err
	})
}

// matchWrongly matches a payout that waits with the transfer of another one, of as much to the same account, and with one that is no payout's, and that other one once more.
func (m *market) matchWrongly(waiting, other payout.ID) {
	match := func(id payout.ID, transfer string, want error) {
		err := m.decide(string(id), false, func(on *instance) error {
			_, err := on.payouts.MatchTransfer(m.ctx, m.by(), id, transfer)
			return err
		})
		m.assert(discrepanciesKept, errors.Is(err, want), string(id), "payout %s was matched with transfer %s, and that was answered with %v, want %v", id, transfer, err, want)
	}
	for _, t := range m.gateways.transfers(other) {
		match(waiting, t.ID, payout.ErrOtherTransfer)
		match(other, t.ID, payout.ErrMovedOn)
	}
	for _, f := range m.gateways.unmatchable {
		if f.at == m.gateways.main() {
			match(waiting, f.id, payout.ErrOtherTransfer)
			break
		}
	}
}

// refundToBalance tries to give a payout's money back, which must be refused unless nothing of it can be paid any more.
func (m *market) refundToBalance(id payout.ID) {
	if w := m.model.payouts[id]; m.o.Faults[clock] && !m.closing && w != nil && m.now-w.changed > time.Minute {
		m.pause(time.Hour) // a clock that is off may make it too early, if it is not by far
	}
	m.tryRefund(id)
}

func (m *market) tryRefund(id payout.ID) {
	if w := m.model.payouts[id]; w == nil || (w.state != payout.ManualReview && m.closing) {
		return
	}
	if w := m.model.payouts[id]; m.gateways.has(id) && !m.gateways.named(w.at).capabilities().Lookup { // which the gateway's own records tell
		return
	}
	_ = m.decide(string(id), false, func(on *instance) error {
		_, err := on.payouts.RefundToBalance(m.ctx, m.by(), id)
		w := m.model.payouts[id]
		m.assert(answersAreTrue, err != nil || w.state == payout.Failed, string(id), "payout %s was reported as refunded, and is %s", id, w.state)
		return err
	})
}

// meddle has the admin do what they may do with any payout, or may not.
func (m *market) meddle() {
	if ids := slices.Sorted(maps.Keys(m.model.payouts)); len(ids) > 0 {
		id := ids[len(ids)-1-m.dice.IntN(min(len(ids), 20))]
		switch m.dice.IntN(6) {
		case 0:
			m.askGateway(id)
		case 1:
			m.cancelAsAdmin(id)
		case 2:
			if w := m.model.payouts[id]; w.state != payout.Unknown && w.state != payout.ManualReview {
				_ = m.decide(string(id), false, func(on *instance) error { _, err := on.payouts.RefundToBalance(m.ctx, m.by(), id); return err })
			}
		case 3:
			if w := m.model.payouts[id]; w.state != payout.Unknown {
				_ = m.decide(string(id), false, func(on *instance) error { _, err := on.payouts.SendToReview(m.ctx, m.by(), id); return err })
			}
		}
	}
	unmatched := "sandbox:pout_none" + m.ids.New("", m.clock())[:8]
	_ = m.decide(unmatched, false, func(on *instance) error {
		m.decideWithoutReason(on)
		m.adjustOwn(on)
		m.openWrongly(on)
		err := on.payouts.ResolveUnmatchedTransfer(m.ctx, m.by(), unmatched)
		m.assert(answersAreTrue, errors.Is(err, payout.ErrUnmatchedTransferResolved) || isUnavailable(err), "", "an unknown transfer was resolved: %v", err)
		return err
	})
	s := one(m, m.sellers)
	if a := m.model.accounts[m.model.sellers[s.id].current]; a != nil && a.status == bank.StatusVerified {
		id := m.model.sellers[s.id].current
		_ = m.decide(string(id), false, func(on *instance) error {
			verified := m.model.accounts[id].status == bank.StatusVerified
			_, err := on.bank.Resolve(m.ctx, m.by(), id, bank.Verdict{Reason: "It is not theirs."})
			m.assert(verifiedIsTrue, !verified || errors.Is(err, bank.ErrDecided) || isUnavailable(err), s.id, "bank account %s, which was verified, was rejected: %v", id, err)
			return err
		})
	}
}

// adjustOwn has the admin correct their own balance, which must be refused at once.
func (m *market) adjustOwn(on *instance) {
	_, _, err := on.sales.Adjust(m.ctx, sale.NewAdjustment{ID: "own", Seller: m.admin, Amount: 100, Reason: "A fee was wrong.", By: m.by()})
	m.assert(decisionsKept, fault.From(err) != nil && fault.From(err).Details["sellerId"] != "", m.admin, "an admin who adjusts their own balance was answered with %v", err)
	for _, err := range []error{on.payouts.Unfreeze(m.ctx, m.by(), m.admin), on.payouts.LiftHold(m.ctx, m.by(), m.admin, time.Time{})} {
		m.assert(decisionsKept, errors.Is(err, decision.ErrOwn), m.admin, "an admin who ends their own freeze or hold was answered with %v", err)
	}
}

// decideWithoutReason tries what must be refused at once, for want of a note that says why.
func (m *market) decideWithoutReason(on *instance) {
	const id, transfer = payout.ID("pyt_000000000000000000000000"), "pout_00000000000001"
	silent := decision.By{Admin: m.admin, Note: " \n"}
	_, reviewErr := on.payouts.SendToReview(m.ctx, silent, id)
	_, refundErr := on.payouts.RefundToBalance(m.ctx, silent, id)
	_, matchErr := on.payouts.MatchTransfer(m.ctx, silent, id, transfer)
	clearErr := on.payouts.ResolveDiscrepancy(m.ctx, silent, id, "anything")
	settleErr := on.payouts.ResolveUnmatchedTransfer(m.ctx, silent, "sandbox:"+transfer)
	freezeErr := on.payouts.Freeze(m.ctx, silent, m.sellers[0].id)
	pauseErr := on.payouts.Pause(m.ctx, silent)
	liftErr := on.payouts.LiftHold(m.ctx, silent, m.sellers[0].id, time.Time{})
	differenceErr := on.reconciling.Resolve(m.ctx, silent, "dif_000000000000000000000000", "anything")
	_, _, adjustErr := on.sales.Adjust(m.ctx, sale.NewAdjustment{ID: "silent", Seller: m.sellers[0].id, Amount: 100, Reason: "A fee was wrong.", By: silent})
	for _, err := range []error{liftErr, differenceErr, adjustErr, freezeErr, pauseErr, reviewErr, refundErr, matchErr, clearErr, settleErr} {
		m.assert(decisionsKept, fault.From(err) != nil && fault.From(err).Details["note"] != "", "", "a decision without a reason was answered with %v", err)
	}
}

// accountDecided lets people act on how a verification ended.
func (m *market) accountDecided(id bank.ID, sellerID string, status bank.Status) {
	s := m.sellerOf(sellerID)
	switch status {
	case bank.StatusRejected:
		m.spawn(m.between(time.Minute, 12*time.Hour), "seller "+s.name, func() {
			if m.model.sellers[s.id].current == id {
				m.register(s)
			}
		})
	case bank.StatusReview:
		m.spawn(m.between(time.Minute, 12*time.Hour), admin, func() {
			verified := m.chance(700)
			for range 60 {
				err := m.decide(string(id), false, func(on *instance) error {
					m.acceptOwn(on, id, sellerID)
					_, err := on.bank.Resolve(m.ctx, decision.By{Admin: m.admin, Note: "Both names were compared."}, id, bank.Verdict{Verified: verified, Reason: "The name is another one."})
					return err
				})
				if err == nil && !verified {
					m.acceptRejected(id)
				}
				if !errors.Is(err, errLost) && !errors.Is(err, errNowhere) && !isUnavailable(err) {
					return
				}
				m.pause(m.between(time.Second, time.Minute))
			}
		})
	case bank.StatusUnverified, bank.StatusVerified:
	}
}

// acceptOwn has a seller who is an admin too accept their own bank account, which must be refused.
func (m *market) acceptOwn(on *instance, id bank.ID, sellerID string) {
	a := m.model.accounts[id]
	isInReview := a != nil && a.status == bank.StatusReview
	_, err := on.bank.Resolve(m.ctx, decision.By{Admin: sellerID, Note: "I know the owner."}, id, bank.Verdict{Verified: true})
	m.assert(decisionsKept, err != nil && (!isInReview || errors.Is(err, decision.ErrOwn)), string(id), "an admin who accepts their own bank account (in review: %t) was answered with %v", isInReview, err)
}

// acceptRejected has another admin, whose page is older than the rejection of an account, accept it.
func (m *market) acceptRejected(id bank.ID) {
	_ = m.decide(string(id), false, func(on *instance) error {
		_, err := on.bank.Resolve(m.ctx, m.by(), id, bank.Verdict{Verified: true, Seen: bank.StatusReview})
		m.assert(verifiedIsTrue, err != nil, string(id), "an account was accepted by an admin who had not seen that it was rejected")
		return err
	})
}
