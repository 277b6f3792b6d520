package simulate

import (
	"errors"
	"fmt"
	"time"

	"bursar/internal/fault"
	"bursar/internal/money"
	"bursar/internal/sale"
)

// told is what the marketplace has told of a sale or a refund, and tells again after a restore.
type told struct {
	sale   sale.NewSale
	refund sale.NewRefund // without an id, it is about the sale
}

// sell records a sale that is held for a while, and perhaps takes it back later.
func (m *market) sell(s *seller, hold time.Duration) {
	s.sold++
	n := sale.NewSale{
		ID: fmt.Sprintf("order-%s-%d", s.id, s.sold), Seller: s.id,
		Amount: money.Amount(50_000 + m.dice.Int64N(3_000_000)), OccurredAt: m.clock(),
	}
	n.AvailableAt = n.OccurredAt.Add(hold)
	m.tellSale(n)
	if m.chance(100) { // the marketplace is not sure whether it did
		m.pause(m.between(0, time.Hour))
		m.tellSale(n)
	}
	for range 2 {
		if m.chance(s.refunds) {
			m.pause(m.around(3 * 24 * time.Hour))
			if m.closing {
				return
			}
			m.takeBack(n)
		}
	}
}

func (m *market) tellSale(n sale.NewSale) {
	m.told = append(m.told, told{sale: n})
	err := m.persist(time.Minute, func(on *instance) error {
		known := m.model.sales[n.ID]
		_, created, err := on.sales.Record(m.ctx, n)
		m.hold(answersAreKnown, err == nil || fault.From(err) != nil, n.Seller, "a sale was answered with %v", err)
		m.hold(oncePerID, err != nil || known == nil || !created, n.Seller, "sale %s was made again", n.ID)
		return err
	})
	if !errors.Is(err, errNowhere) {
		e := m.model.sales[n.ID]
		m.hold(answersAreTrue, err == nil && e != nil && e.amount == n.Amount, n.Seller, "sale %s was answered with %v, and the book has %+v", n.ID, err, e)
	}
}

// takeBack refunds a part of a sale, or all that is left.
func (m *market) takeBack(n sale.NewSale) {
	e := m.model.sales[n.ID]
	if e == nil || e.left() == 0 {
		return
	}
	r := sale.NewRefund{Sale: n.ID, ID: m.ids.New("refund_", m.clock())}
	if m.chance(600) {
		r.Amount = 1 + money.Amount(m.dice.Int64N(int64(e.left())))
	}
	m.tellRefund(r)
	if m.chance(200) {
		m.pause(m.between(0, time.Hour))
		m.tellRefund(r)
	}
}

func (m *market) tellRefund(r sale.NewRefund) {
	m.told = append(m.told, told{refund: r})
	_ = m.persist(time.Minute, func(on *instance) error {
		_, _, _, err := on.sales.Refund(m.ctx, r)
		e := m.model.sales[r.Sale]
		m.hold(answersAreKnown, err == nil || fault.From(err) != nil, "", "a refund was answered with %v", err)
		if err == nil {
			_, booked := e.refunds[r.ID]
			m.hold(answersAreTrue, booked, e.seller, "refund %s was answered, and is not in the book", r.ID)
		}
		return err
	})
}

// tellAgain has the marketplace tell all that the book does not have, in the order in which it happened.
func (m *market) tellAgain() {
	for _, t := range m.told {
		if t.refund.ID == "" {
			if m.model.sales[t.sale.ID] == nil {
				m.tellSaleAgain(t.sale)
			}
			continue
		}
		e := m.model.sales[t.refund.Sale]
		if e == nil {
			continue
		}
		if _, booked := e.refunds[t.refund.ID]; !booked {
			refund := t.refund
			_ = m.persist(time.Minute, func(on *instance) error {
				_, _, _, err := on.sales.Refund(m.ctx, refund)
				return err
			})
		}
	}
}

func (m *market) tellSaleAgain(n sale.NewSale) {
	_ = m.persist(time.Minute, func(on *instance) error {
		_, _, err := on.sales.Record(m.ctx, n)
		m.hold(answersAreKnown, err == nil || fault.From(err) != nil, n.Seller, "a sale was answered with %v", err)
		return err
	})
}
