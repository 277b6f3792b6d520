package simulate

import (
	"fmt"
	"time"

	"bursar/internal/bank"
	"bursar/internal/payout"
	"bursar/internal/razorpayx"
	"bursar/internal/sale"
)

// What follows is told of each committed transaction, at the moment of its commit.

func (m *market) wasSold(s sale.Sale) {
	m.hold(oncePerID, m.model.sales[s.ID] == nil, s.Seller, "sale %s was booked again", s.ID)
	m.model.sold(s)
	m.tally.sales++
	m.note(s.ID, s.Seller, "sale committed:")
	m.saleDue(s.ID, s.AvailableAt)
}

func (m *market) wasRefunded(r sale.Refund) {
	e := m.model.sales[r.Sale]
	_, again := e.refunds[r.ID]
	m.hold(oncePerID, !again && r.Amount <= e.left(), e.seller, "refund %s of %d was booked; %d were left of the sale, booked before: %t",
		r.ID, r.Amount, e.left(), again)
	m.model.refunded(r)
	m.tally.refunds++
	m.note(r.Sale, e.seller, fmt.Sprintf("refund of %d committed:", r.Amount))
}

func (m *market) wasReleased(on *instance, id string, at time.Time) {
	e := m.model.sales[id]
	early := min(at.UnixMicro(), on.now().UnixMicro()) < e.availableAt.UnixMicro() && m.leasesHold()
	m.hold(releasedWhenDue, !e.released && !early, e.seller,
		"sale %s was released at %s, due at %s, released before: %t", id, on.now(), e.availableAt, e.released)
	m.model.released(id)
	m.note(id, e.seller, "sale released:")
}

func (m *market) wasAsked(p payout.Payout) {
	h := m.model.sellers[p.Seller]
	a := m.current.ask
	m.hold(oneAnswerPerKey, a != nil && a.made == "" && m.model.payouts[p.ID] == nil, p.Seller,
		"payout %s was made by nobody's request, or by one that has made another", p.ID)
	if a != nil {
		a.made, a.at = p.ID, m.now
	}
	available := h.row().Available
	m.hold(neverOverdraws, p.Amount <= available, p.Seller, "%s asked for %d and had %d", p.Seller, p.Amount, available)
	m.hold(feesAsAgreed, p.Fee == agreedFee(p.Amount), string(p.ID), "the fee of %s on %d is %d, agreed were %d", p.ID, p.Amount, p.Fee, agreedFee(p.Amount))
	current := m.model.accounts[h.current]
	m.hold(onlyRightAccount, p.BankAccountID == h.current && current != nil && current.status == bank.StatusVerified, p.Seller,
		"payout %s goes to %s, the seller's account is %s", p.ID, p.BankAccountID, h.current)
	m.model.asked(p)
	m.model.payouts[p.ID].sendAt = p.DueAt
	m.ever[p.ID] = *m.model.payouts[p.ID]
	m.tally.asked++
	m.note(string(p.ID), p.Seller, fmt.Sprintf("payout of %d committed:", p.Amount))
	m.payoutDue(p.ID, m.model.payouts[p.ID], p.DueAt)
	if m.backUpSoon {
		m.backUpSoon = false
		m.after(m.between(0, cancelWindow), m.backUp)
	}
}

func (m *market) wasAdopted(p payout.Payout) {
	first := m.ever[p.ID]
	m.hold(adoptedAsItWas, first.seller == p.Seller && first.account == p.BankAccountID && first.amount == p.Amount && first.fee == p.Fee, string(p.ID),
		"payout %s was of %s to %s: %d, fee %d; it is in the book again as of %s to %s: %d, fee %d",
		p.ID, first.seller, first.account, first.amount, first.fee, p.Seller, p.BankAccountID, p.Amount, p.Fee)
	m.model.asked(p)
	m.tally.adopted++
	m.note(string(p.ID), p.Seller, fmt.Sprintf("payout of %d adopted:", p.Amount))
}

func (m *market) wasMoved(from payout.State, p payout.Payout, at time.Time) {
	w := m.model.payouts[p.ID]
	was := w.state
	if from != p.State || was != p.State {
		m.print("%s %s %s %d\n", p.ID, from, p.State, at.UnixMicro())
		m.note(string(p.ID), w.seller, fmt.Sprintf("%s → %s (%s):", from, p.State, p.ReasonCode))
	}
	m.hold(movesAreCAS, from == was, string(p.ID), "payout %s was %s, and went from %s to %s", p.ID, was, from, p.State)
	ended := kindOf(was) != underWay
	m.hold(endsAreFinal, !ended || p.State == was || (was == payout.Completed && p.State == payout.Returned), string(p.ID),
		"payout %s went from %s to %s", p.ID, was, p.State)
	m.model.moved(w, p.State)
	w.sentAt, w.taken = p.SentAt, nil
	m.payoutDue(p.ID, w, p.DueAt)
	if p.State == was {
		return
	}
	if p.State == payout.Unknown {
		m.tally.unknown++
	}
	if kindOf(p.State) != underWay {
		m.checkEnd(p.ID, w)
		return
	}
	if s := m.sellerOf(w.seller); m.chance(s.fickle/4) && !m.closing { // who watches it, and wants to stop it now
		m.spawn(m.between(0, one(m, []time.Duration{10 * time.Millisecond, time.Second, time.Minute})), "seller "+s.name, func() { m.cancel(s, p.ID) })
	}
}

// checkEnd asks the gateway's own records about a payout that has just come to an end.
func (m *market) checkEnd(id payout.ID, w *withdrawal) {
	for _, t := range m.gateway.transfers(id) {
		switch {
		case w.state != payout.Completed:
			m.hold(givenBackIsDead, isDead(t.Status), string(id), "payout %s is %s, and the gateway's transfer %s is %s", id, w.state, t.ID, t.Status)
		default:
			paid := t.Status == razorpayx.StatusProcessed || t.Status == razorpayx.StatusReversed
			m.hold(completedIsPaid, paid, string(id), "payout %s is completed, and the gateway's transfer %s is %s", id, t.ID, t.Status)
			m.hold(paidExactly, t.Amount == int64(w.net()), string(id), "payout %s of %d net was paid %d", id, w.net(), t.Amount)
		}
	}
	if w.state == payout.Completed {
		m.hold(completedIsPaid, m.gateway.has(id), string(id), "payout %s is completed, and the gateway has no transfer of it", id)
	}
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
	m.hold(leasesHold, w.due != 0 && w.due <= now.UnixMicro(), string(id), "%s took payout %s at %s, which is due at %s",
		on.name, id, now, time.UnixMicro(w.due).UTC())
	if w.taken != nil && w.taken != on && w.due == w.leased {
		m.tally.takeovers++
		m.note(string(id), w.seller, "taken over from "+w.taken.name+":")
	}
	w.taken, w.leased = on, until.UnixMicro()
	m.payoutDue(id, w, until)
}

func (m *market) wasRegistered(a bank.Account) {
	h := m.model.sellers[a.Seller]
	if former := m.model.accounts[h.current]; former != nil {
		former.due = 0
	}
	h.current = a.ID
	m.model.accounts[a.ID] = &account{seller: a.Seller, last4: a.Last4, status: a.Status}
	m.note(string(a.ID), a.Seller, "bank account registered:")
	m.verificationDue(a.ID, m.model.accounts[a.ID], a.DueAt)
}

func (m *market) wasVerified(a bank.Account) {
	known := m.model.accounts[a.ID]
	if known.status != a.Status {
		m.note(string(a.ID), a.Seller, "bank account is "+string(a.Status)+":")
		confirmed := m.gateway.confirms(a) || m.current.name == admin
		m.hold(verifiedIsTrue, a.Status != bank.StatusVerified || confirmed, known.seller, "bank account %s is verified, and the gateway says %q of %s",
			a.ID, m.gateway.verdicts[a.VerificationID], a.VerificationID)
		m.accountDecided(a.ID, known.seller, a.Status)
	}
	known.status = a.Status
	m.verificationDue(a.ID, known, a.DueAt)
}
