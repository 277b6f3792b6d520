package simulate

import (
	"fmt"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// The ways in which the owner of an e-mail address gets the account that another person registered with it.
const (
	byProvider = iota // an identity provider says that the address is theirs
	byMail            // a mailed link, after a registration with the same address
	byReset           // a mailed link that sets a forgotten password
	ways
)

// What there is of a payout when the owner comes.
const (
	notSent = iota
	isSent
	noPayout
	stages
)

// takeover is an account that changes hands.
type takeover struct {
	seller     *seller
	way, stage int
	ask        *ask
	former     former
}

// checkTakeOver has sellers' accounts given to the owners of their e-mail addresses, by the service's own ways: while a payout waits, after
// one was sent, and where there is none. Each transaction of a sign-in is undone at its end once, and run again.
func (m *market) checkTakeOver() {
	all := m.payables()
	if m.anyInstance() == nil || !m.anyFaults() || len(all) == 0 {
		return
	}
	var list []*takeover
	for i, s := range all[:min(ways, max(1, len(all)-2))] { // the parts that follow need sellers too
		list = append(list, &takeover{seller: s, way: (i + int(m.o.Seed%ways)) % ways, stage: (i + int(m.o.Seed/ways%stages)) % stages})
	}
	m.gateways.settle(20 * time.Minute)
	m.askBefore(list, isSent)
	m.pass(m.now + 5*time.Minute)
	m.askBefore(list, notSent)
	m.pass(m.now + cancelWindow/2)
	for _, t := range list {
		if m.violation == nil && m.assert(answersAreTrue, t.ask == nil || t.ask.made != "", t.seller.id, "%s has enough for a payout, and it was refused", t.seller.id) {
			m.changeHands(m.anyInstance(), t)
		}
	}
	m.pass(m.now + 2*time.Hour)
	m.gateways.settle(usualSettling)
	m.checkPaidAgain(list)
}

// askBefore has the sellers whose accounts change hands at a stage ask for a payout, and half of those whose payout is not sent yet replace their bank account.
func (m *market) askBefore(list []*takeover, stage int) {
	for _, t := range list {
		if t.stage != stage {
			continue
		}
		a, s := &ask{seller: t.seller.id, amount: minimum, notes: t.seller.temper.name}, t.seller
		t.ask = a
		replaces := stage == notSent && m.chance(500)
		m.spawn(0, "seller "+s.name, func() {
			if m.send(a); replaces {
				m.registerNumber(s, m.anyNumber())
			}
		})
	}
}

// anyNumber is an account number that the gateway treats like most.
func (m *market) anyNumber() string {
	return fmt.Sprintf("5%09d%04d", m.dice.IntN(1e9), 1000+m.dice.IntN(9000))
}

// changeHands gives an account to the owner of its address.
func (m *market) changeHands(on *instance, t *takeover) {
	s := t.seller
	m.undoing = true
	defer func() { m.undoing = false }()
	if err := m.signInFormer(on, t); !m.assert(answersAreKnown, err == nil, s.id, "%s can't sign in before the account changes hands: %v", s.id, err) {
		return
	}
	before := m.model.row(s.id)
	owner, err := m.giveAccount(on, t)
	if !m.assert(takeoversEndAccess, err == nil && owner.User.ID == s.id, s.id, "the owner of the address of %s, who comes by way %d, got the account of %q, and the answer %v", s.id, t.way, owner.User.ID, err) {
		return
	}
	if t.way != byProvider {
		s.password = ownerPassword
	}
	m.wasTakenOver(on, s, before)
	m.checkOwner(on, t, owner)
	m.checkFormer(on, t)
}

// wasTakenOver tells the model that the accounts of a seller are not paid to any more, and that payouts are on hold where there is money.
func (m *market) wasTakenOver(on *instance, s *seller, before ledger.Balance) {
	h := m.model.sellers[s.id]
	m.accountsWereRejected(s)
	if before.Pending != 0 || before.Available != 0 || before.InTransit != 0 {
		h.holdUntil = max(h.holdUntil, on.now().Add(coolDown).UnixMicro())
	}
	m.follow(on, s.id)
	m.compareRows(on, []string{s.id})
	m.assert(takeoversEndAccess, m.model.row(s.id).HoldUntil == h.holdUntil, s.id, "%s had %+v when the account changed hands, and payouts are on hold until %d, want %d", s.id, before, m.model.row(s.id).HoldUntil, h.holdUntil)
}

// checkPaidAgain wants payouts that were not sent when their accounts changed hands to have failed, and the owners to be paid once the hold is over, to accounts of their own.
func (m *market) checkPaidAgain(list []*takeover) {
	for _, t := range list {
		if t.ask != nil && m.violation == nil {
			w := m.model.payouts[t.ask.made]
			isLate := t.stage == isSent || w.state == payout.Failed && !m.gateways.has(t.ask.made)
			m.assert(onlyRightAccount, isLate, string(t.ask.made), "payout %s is %s, and its account was rejected before it was sent", t.ask.made, w.state)
			m.assert(takeoversEndAccess, kindOf(w.state) != underWay, string(t.ask.made), "payout %s, which the gateway had when the account changed hands, is %s", t.ask.made, w.state)
		}
		s := t.seller
		m.spawn(0, "seller "+s.name, func() { m.registerNumber(s, m.anyNumber()) })
	}
	m.pass(m.now + 2*time.Hour)
	m.askAsOwner(list, false)
	m.pass(m.now + coolDown)
	m.askAsOwner(list, true)
}

// askAsOwner has the owners ask for what they have, which makes a payout or not.
func (m *market) askAsOwner(list []*takeover, makes bool) {
	var asks []*ask
	for _, t := range list {
		h := m.model.sellers[t.seller.id]
		isOnHold := h.holdUntil >= m.clock().UnixMicro() // the owner's own bank account may have been verified late, which begins another hold
		if a := m.model.accounts[h.current]; a == nil || a.status != bank.StatusVerified || m.model.row(t.seller.id).Available < minimum || makes == isOnHold {
			continue
		}
		a := &ask{seller: t.seller.id, amount: minimum, notes: t.seller.temper.name}
		asks = append(asks, a)
		m.spawn(0, "seller "+t.seller.name, func() { m.send(a) })
	}
	m.pass(m.now + time.Hour)
	for _, a := range asks {
		m.assert(takeoversEndAccess, m.violation != nil || (a.made != "") == makes, a.seller, "%s asked for a payout after the account had changed hands, and made %q", a.seller, a.made)
		if s := m.sellerOf(a.seller); m.violation == nil {
			m.readOverview(m.anyInstance(), s)
		}
	}
}

// checkRejectedAtClaim has a seller's accounts rejected just as a worker that has checked the bank account claims the payout.
func (m *market) checkRejectedAtClaim() {
	on, s := m.anyInstance(), m.payable()
	if on == nil || s == nil || !m.anyFaults() {
		return
	}
	a := &ask{seller: s.id, amount: minimum, notes: s.temper.name}
	m.spawn(0, "seller "+s.name, func() { m.send(a) })
	m.pass(m.now + cancelWindow/2)
	if m.violation != nil || !m.assert(answersAreTrue, a.made != "", s.id, "%s has enough for a payout, and it was refused", s.id) {
		return
	}
	m.rejectAtClaim = a.made
	m.pass(m.now + time.Hour)
	w := m.model.payouts[a.made]
	m.assert(onlyRightAccount, m.violation != nil || w.state == payout.Failed && !m.gateways.has(a.made) && m.rejectAtClaim == "", string(a.made),
		"payout %s is %s, and its account was rejected before it was sent", a.made, w.state)
	m.readOverview(on, s)
}

// rejectAccounts has a seller's accounts rejected, as a takeover does.
func (m *market) rejectAccounts(on *instance, s *seller) {
	err := on.db.Auth().InTx(m.ctx, func(tx auth.Tx) error {
		return tx.RejectBankAccounts(m.ctx, s.id, "It belonged to another person.", on.now())
	})
	m.assert(datastoreReadable, err == nil, s.id, "reject the account of %s: %v", s.id, err)
	m.follow(on, s.id)
	m.accountsWereRejected(s)
}

// accountsWereRejected tells the model that the accounts of a seller are not paid to any more.
func (m *market) accountsWereRejected(s *seller) {
	h := m.model.sellers[s.id]
	for _, account := range m.model.accounts {
		if account.seller == s.id {
			account.status, account.due = bank.StatusRejected, 0
		}
	}
	h.former, h.current = h.current, ""
}

// payable finds a seller who can ask for a payout.
func (m *market) payable() *seller {
	if all := m.payables(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// staysUnderWay are the last digits of accounts to which a transfer never ends.
const staysUnderWay = "0004"

// payables lists the sellers who can ask for a payout that ends.
func (m *market) payables() (all []*seller) {
	for _, s := range m.sellers {
		h := m.model.sellers[s.id]
		if a := m.model.accounts[h.current]; a != nil && a.status == bank.StatusVerified && a.last4 != staysUnderWay && m.model.row(s.id).Available >= minimum && h.holdUntil == 0 && !m.model.stopped(s.id) {
			all = append(all, s)
		}
	}
	return all
}
