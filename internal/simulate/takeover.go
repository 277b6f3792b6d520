package simulate

import (
	"fmt"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/payout"
)

// checkTakeOver has a seller ask for a last payout, in half of the cases register another bank account, and then prove to be another
// person than the one who did that: the payout, which was yet to be sent, must not go to either account.
func (m *market) checkTakeOver() {
	m.takeOver(false)
	m.takeOver(true)
}

// takeOver has one seller's account taken over: soon after the request, or just as a worker that has checked the bank account claims the
// payout.
func (m *market) takeOver(atClaim bool) {
	on, s := m.anyInstance(), m.payable()
	if on == nil || s == nil || !m.anyFaults() {
		return
	}
	a := &ask{seller: s.id, amount: minimum, notes: s.temper.name}
	replaces := m.chance(500)
	m.spawn(0, "seller "+s.name, func() {
		if m.send(a); replaces {
			m.registerNumber(s, fmt.Sprintf("5%09d%04d", m.dice.IntN(1e9), 1000+m.dice.IntN(9000)))
		}
	})
	m.pass(m.now + cancelWindow/2)
	if m.violation != nil || !m.assert(answersAreTrue, a.made != "", s.id, "%s has enough for a payout, and it was refused", s.id) {
		return
	}
	if atClaim {
		m.rejectAtClaim = a.made
	} else {
		m.rejectAccounts(on, s)
	}
	m.pass(m.now + time.Hour)
	w := m.model.payouts[a.made]
	m.assert(onlyRightAccount, m.violation != nil || w.state == payout.Failed && !m.gateways.has(a.made) && m.rejectAtClaim == "", string(a.made),
		"payout %s is %s, and its account was rejected before it was sent", a.made, w.state)
	m.readOverview(on, s)
}

// rejectAccounts has a seller's accounts rejected, as a takeover does.
func (m *market) rejectAccounts(on *instance, s *seller) {
	h := m.model.sellers[s.id]
	err := on.db.Auth().InTx(m.ctx, func(tx auth.Tx) error {
		return tx.RejectBankAccounts(m.ctx, s.id, "It belonged to another person.", on.now())
	})
	m.assert(datastoreReadable, err == nil, s.id, "reject the account of %s: %v", s.id, err)
	m.follow(on, s.id)
	for _, account := range m.model.accounts {
		if account.seller == s.id {
			account.status, account.due = bank.StatusRejected, 0
		}
	}
	h.former, h.current = h.current, ""
}

// payable finds a seller who can ask for a payout.
func (m *market) payable() *seller {
	for _, s := range m.sellers {
		h := m.model.sellers[s.id]
		if a := m.model.accounts[h.current]; a != nil && a.status == bank.StatusVerified && m.model.row(s.id).Available >= minimum && h.holdUntil == 0 && !m.model.stopped(s.id) {
			return s
		}
	}
	return nil
}
