package simulate

import (
	"errors"
	"time"

	"bursar/internal/fault"
	"bursar/internal/money"
	"bursar/internal/sale"
)

// openBalances has an admin take over what some sellers were owed by the system before, as the first of all.
func (m *market) openBalances() {
	for i, s := range m.sellers {
		if i%5 == 1 {
			n := sale.NewOpening{
				Seller: s.id, Available: minimum + money.Amount(m.dice.Int64N(int64(minimum))), Pending: minimum, AvailableAt: m.start.Add(m.between(0, 24*time.Hour)), By: m.by(),
			}
			m.openings = append(m.openings, n)
			m.openBalance(n)
		}
	}
}

// openBalance opens a seller's balance until that is answered, and holds the answer against the ledger.
func (m *market) openBalance(n sale.NewOpening) {
	id := correctionID(n.Seller, openingID)
	m.adjusting[id] = n.Available
	_ = m.persist(time.Minute, func(on *instance) error {
		_, known := m.model.adjusted[id]
		isFirst := m.model.journal(n.Seller).Number == 0
		created, err := on.sales.Open(m.ctx, n)
		_, made := m.model.adjusted[id]
		pending := m.model.sales[openingID+":"+n.Seller]
		m.assert(answersAreKnown, err == nil || fault.From(err) != nil, n.Seller, "an opening balance was answered with %v", err)
		m.assert(oncePerID, err != nil || !known || !created, n.Seller, "the balance of %s was opened again", n.Seller)
		m.assert(answersAreTrue, err != nil || made && pending != nil && pending.amount == n.Pending, n.Seller, "opening balance %+v was answered, and the ledger has %+v, available: %t", n, pending, made)
		m.assert(adjustmentsDue, err == nil || isUnavailable(err) || !isFirst && errors.Is(err, sale.ErrNotFirst), n.Seller, "opening balance %+v was answered with %v", n, err)
		return err
	})
}

// openWrongly opens a balance that is open with other amounts, and one whose seller had money before. It also repeats one.
func (m *market) openWrongly(on *instance) {
	for _, n := range m.openings {
		if _, known := m.model.adjusted[correctionID(n.Seller, openingID)]; known {
			created, err := on.sales.Open(m.ctx, n)
			m.assert(oncePerID, err == nil && !created || isUnavailable(err), n.Seller, "an opening balance was made again (%t), or answered with %v", created, err)
			for _, other := range []func(*sale.NewOpening){
				func(n *sale.NewOpening) { n.Available++ }, func(n *sale.NewOpening) { n.Pending++ }, func(n *sale.NewOpening) { n.Pending = 0 },
				func(n *sale.NewOpening) { n.AvailableAt = n.AvailableAt.Add(time.Hour) },
			} {
				n := n
				other(&n)
				_, err = on.sales.Open(m.ctx, n)
				m.assert(oncePerID, errors.Is(err, sale.ErrOpeningConflict) || isUnavailable(err), n.Seller, "the opening balance %+v is another than the one that there is, and was answered with %v", n, err)
			}
			break
		}
	}
	for i, s := range m.sellers {
		if i%5 != 1 && m.model.row(s.id).Counts.Sales > 0 {
			_, err := on.sales.Open(m.ctx, sale.NewOpening{Seller: s.id, Available: minimum, By: m.by()})
			m.assert(oncePerID, errors.Is(err, sale.ErrNotFirst) || isUnavailable(err), s.id, "an opening balance after sales was answered with %v", err)
			break
		}
	}
}

// openingID names opening balances, in the words of the journal.
const openingID = "opening"
