package simulate

import (
	"errors"
	"fmt"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// checkDeletion has a seller withdraw all, and delete the account before, while and after the payout is under way.
func (m *market) checkDeletion() {
	on, s := m.anyInstance(), m.payable()
	if on == nil || s == nil || !m.anyFaults() || m.model.row(s.id).InTransit != 0 {
		return
	}
	m.deleteAccount(on, s, auth.ErrMoneyLeft)
	a := &ask{seller: s.id, amount: m.model.row(s.id).Available, notes: s.temper.name}
	m.spawn(0, "seller "+s.name, func() { m.send(a) })
	m.gateways.settle(20 * time.Minute)
	m.pass(m.now + cancelWindow/2)
	if m.violation != nil || !m.assert(answersAreTrue, a.made != "", s.id, "%s has enough for a payout, and it was refused", s.id) {
		return
	}
	m.deleteAccount(on, s, auth.ErrMoneyLeft)
	m.pass(m.now + 5*time.Minute)
	if kindOf(m.model.payouts[a.made].state) == underWay { // some accounts are paid at once
		m.deleteAccount(on, s, auth.ErrMoneyLeft)
	}
	m.pass(m.now + 2*time.Hour)
	m.gateways.settle(usualSettling)
	w := m.model.payouts[a.made]
	if m.violation != nil || w.state != payout.Completed {
		return // the account is one that the bank does not pay
	}
	m.spawn(0, "operator", func() {
		_ = m.call(on, func() error {
			_, err := on.sales.Open(m.ctx, sale.NewOpening{Seller: s.id, Available: minimum, By: m.by()})
			m.assert(oncePerID, errors.Is(err, sale.ErrNotFirst) || errors.Is(err, sale.ErrOpeningConflict), s.id, "%s has withdrawn all, and an opening balance was answered with %v", s.id, err)
			return nil
		})
	})
	m.pass(m.now + time.Minute)
	m.checkOwing(on, s)
	m.spawn(0, admin, func() {
		err := m.decideStop(s.id, true)
		m.assert(answersAreKnown, err == nil, s.id, "payouts of %s, who has nothing, are frozen: %v", s.id, err)
	})
	m.pass(m.now + time.Minute)
	m.deleteAccount(on, s, auth.ErrCaseOpen)
	m.spawn(0, admin, func() { m.resume(s.id) })
	m.pass(m.now + time.Hour)
	m.deleteAccount(on, s, nil)
	m.checkDeleted(on, s)
}

// checkOwing has a seller who has nothing expect money and nothing else, and then owe some, and wants the account to stay all the same.
func (m *market) checkOwing(on *instance, s *seller) {
	s.sold++
	n := sale.NewSale{ID: fmt.Sprintf("order-%s-%d", s.id, s.sold), Seller: s.id, Amount: minimum, OccurredAt: m.clock()}
	m.spawn(0, "marketplace", func() { m.recordSale(n) })
	m.pass(m.now + time.Minute)
	m.deleteAccount(on, s, auth.ErrMoneyLeft)
	m.spawn(0, "marketplace", func() { m.recordRefund(sale.NewRefund{Sale: n.ID, ID: "refund-1"}) })
	m.correct(s, -1)
	m.pass(m.now + time.Minute)
	m.deleteAccount(on, s, auth.ErrMoneyLeft)
	m.correct(s, 1)
	m.pass(m.now + time.Minute)
}

// correct has an admin correct a seller's balance.
func (m *market) correct(s *seller, amount money.Amount) {
	s.adjusted++
	n := sale.NewAdjustment{ID: fmt.Sprintf("ticket-%d", s.adjusted), Seller: s.id, Amount: amount, Reason: "A fee was wrong.", By: m.by()}
	m.adjusting[correctionID(n.Seller, n.ID)] = n.Amount
	m.spawn(0, admin, func() { m.adjust(n) })
}

// deleteAccount has a seller delete the account, and wants that to be answered with an error, or nil.
func (m *market) deleteAccount(on *instance, s *seller, want error) {
	if m.violation != nil {
		return
	}
	err := m.signIn(on, s)
	if err == nil {
		err = on.users.DeleteAccount(m.ctx, auth.Principal{UserID: s.id, Session: s.session}, s.password, auth.Device{})
	}
	m.assert(deletionsWait, errors.Is(err, want) && (want != nil || err == nil), s.id, "%s has %+v, and the deletion of the account was answered with %v, want %v", s.id, m.model.row(s.id), err, want)
	if err == nil {
		m.follow(on, s.id)
	}
}

// checkDeleted wants nothing to be recorded for a seller who is gone, and nothing to be left of the bank accounts.
func (m *market) checkDeleted(on *instance, s *seller) {
	h := m.model.sellers[s.id]
	for id, a := range m.model.accounts {
		if a.seller != s.id {
			continue
		}
		got, err := on.db.BankAccountByID(m.ctx, id)
		m.assert(deletionsWait, err == nil && got.EncryptedNumber == "" && got.Status == bank.StatusRejected && !got.Current, s.id, "%s deleted the account, and bank account %s is %s, current: %t (error %v)", s.id, id, got.Status, got.Current, err)
		a.status, a.due = bank.StatusRejected, 0
	}
	h.former, h.current = h.current, ""
	s.sold++
	m.spawn(0, "marketplace", func() {
		_ = m.call(on, func() error {
			_, _, err := on.sales.Record(m.ctx, sale.NewSale{ID: fmt.Sprintf("order-%s-%d", s.id, s.sold), Seller: s.id, Amount: minimum, OccurredAt: m.clock()})
			m.assert(deletionsWait, errors.Is(err, sale.ErrSellerNotFound), s.id, "a sale of %s, who is gone, was answered with %v", s.id, err)
			_, _, err = on.sales.Adjust(m.ctx, sale.NewAdjustment{ID: "gone", Seller: s.id, Amount: minimum, Reason: "A fee was wrong.", By: m.by()})
			m.assert(deletionsWait, errors.Is(err, sale.ErrSellerNotFound), s.id, "an adjustment of %s, who is gone, was answered with %v", s.id, err)
			_, err = on.sales.Open(m.ctx, sale.NewOpening{Seller: s.id, Available: minimum, By: m.by()})
			m.assert(deletionsWait, errors.Is(err, sale.ErrSellerNotFound), s.id, "an opening balance of %s, who is gone, was answered with %v", s.id, err)
			digits := m.anyNumber()
			number, err := bank.ParseNumber(digits)
			m.assert(datastoreReadable, err == nil, s.id, "%v", err)
			_, err = on.bank.Register(m.ctx, bank.Registration{Seller: s.id, Holder: s.name, Number: number, IFSC: branchOf(digits)})
			m.assert(deletionsWait, errors.Is(err, bank.ErrSellerGone), s.id, "a bank account of %s, who is gone, was answered with %v", s.id, err)
			return nil
		})
	})
	m.pass(m.now + time.Minute)
	a := &ask{seller: s.id, amount: minimum, session: s.session}
	m.sessionEnds[s.session] = on.now()
	m.spawn(0, "thief", func() { m.send(a) })
	m.pass(m.now + time.Minute)
	m.assert(deletionsWait, m.violation != nil || a.made == "", s.id, "%s, who is gone, asked for payout %s", s.id, a.made)
	if m.violation == nil {
		m.audit(on)
	}
}
