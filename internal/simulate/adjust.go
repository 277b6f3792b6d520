package simulate

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/sale"
)

// correction is an adjustment of a seller's balance.
type correction struct {
	seller string
	amount money.Amount
}

// correctionID tells adjustments apart: their ids are the seller's own.
func correctionID(seller, id string) string { return seller + " " + id }

// adjustEvery is how often an admin does.
const adjustEvery = 10 * time.Hour

// adjustSome has an admin correct a seller's balance, up or down, whatever it is. Now and then another admin does the same at
// the same time, or it is done again later.
func (m *market) adjustSome() {
	s := one(m, m.sellers)
	s.adjusted++
	n := sale.NewAdjustment{
		ID: fmt.Sprintf("ticket-%d", s.adjusted), Seller: s.id, Amount: money.Amount(1 + m.dice.Int64N(300_000)), Reason: "A fee was wrong.", By: m.by(),
	}
	if m.chance(500) {
		n.Amount = -n.Amount
	}
	if least := minimum - m.model.row(s.id).Available; s.adjusted%2 == 0 && least != 0 && max(least, -least) < 300_000 { // to just the least that can be withdrawn
		n.Amount = least
	}
	m.adjusting[correctionID(n.Seller, n.ID)] = n.Amount
	if m.chance(300) {
		m.spawn(m.between(0, 30*time.Millisecond), admin, func() { m.adjust(n) })
	}
	m.adjust(n)
	if on := m.anyInstance(); on != nil {
		_ = m.call(on, func() error { m.readBlockers(on, s); return nil })
	}
	if m.chance(300) {
		m.pause(m.between(0, time.Hour))
		m.adjust(n)
		m.adjustWrongly(n)
	}
}

// adjust makes an adjustment until that is answered, and holds the answer against the ledger.
func (m *market) adjust(n sale.NewAdjustment) {
	id := correctionID(n.Seller, n.ID)
	_ = m.persist(time.Minute, func(on *instance) error {
		_, known := m.model.adjusted[id]
		a, created, err := on.sales.Adjust(m.ctx, n)
		_, made := m.model.adjusted[id]
		m.assert(answersAreKnown, err == nil || fault.From(err) != nil, n.Seller, "an adjustment was answered with %v", err)
		m.assert(adjustmentsDue, err == nil || isUnavailable(err), n.Seller, "adjustment %+v was answered with %v", n, err)
		m.assert(answersAreTrue, err != nil || made && a.Amount == n.Amount && a.Seller == n.Seller && a.Reason == n.Reason && a.Admin == m.admin, n.Seller,
			"adjustment %+v was answered with %+v, in the ledger: %t", n, a, made)
		m.assert(oncePerID, err != nil || !known || !created, n.Seller, "adjustment %s was made again", id)
		return err
	})
}

// adjustWrongly asks for another adjustment under an id that was used: of another amount, for another reason or with another note.
func (m *market) adjustWrongly(n sale.NewAdjustment) {
	switch m.tally.adjustments % 3 {
	case 0:
		n.Reason = "Another fee was wrong."
	case 1:
		n.By.Note += " Again."
	default:
		n.Amount += 2
		if n.Amount == 0 {
			n.Amount++
		}
	}
	if on := m.anyInstance(); on != nil {
		_ = m.call(on, func() error {
			if _, known := m.model.adjusted[correctionID(n.Seller, n.ID)]; !known { // the ledger was put back meanwhile
				return nil
			}
			_, _, err := on.sales.Adjust(m.ctx, n)
			m.assert(oncePerID, errors.Is(err, sale.ErrAdjustmentConflict) || isUnavailable(err), n.Seller, "another adjustment under one id was answered with %v", err)
			return err
		})
	}
}

// wasAdjusted is called for the entry of an adjustment.
func (m *market) wasAdjusted(e ledger.Entry) {
	a, err := sale.AdjustmentOf(e)
	id := correctionID(e.Owner, a.ID)
	_, again := m.model.adjusted[id]
	m.assert(oncePerID, err == nil && !again, e.Owner, "adjustment %s was made again, or its entry can't be read: %v", id, err)
	m.assert(decisionsKept, a.Admin == m.admin && a.Note == m.by().Note && m.current.name == admin, e.Owner, "%s adjusted a balance by the ledger, and did not: %+v", a.Admin, a)
	m.assert(entriesAreTrue, a.Amount == m.adjusting[id], e.Owner, "adjustment %s is of %d, and %d were asked for", id, a.Amount, m.adjusting[id])
	m.model.adjusted[id] = &correction{e.Owner, m.adjusting[id]}
	m.tally.adjustments++
	m.note(a.ID, e.Owner, fmt.Sprintf("balance adjusted by %d:", a.Amount))
}

// lowered is what adjustments took from a seller.
func (o *model) lowered(seller string) (sum money.Amount) {
	for _, a := range o.adjusted {
		if a.seller == seller {
			sum -= min(a.amount, 0)
		}
	}
	return sum
}

// readAdjustments holds what is listed of a seller's adjustments against the model.
func (m *market) readAdjustments(on *instance, seller string) {
	const limit = 3
	listed, n := map[string]money.Amount{}, 0
	for before := int64(0); m.violation == nil; {
		page, err := on.sales.Adjustments(m.ctx, seller, before, limit)
		m.assert(readsAgree, err == nil, seller, "list the adjustments of %s: %v", seller, err)
		for _, a := range page {
			listed[correctionID(seller, a.ID)], before = a.Amount, a.Entry
		}
		if n += len(page); len(page) < limit {
			break
		}
	}
	want := map[string]money.Amount{}
	for id, a := range m.model.adjusted {
		if a.seller == seller {
			want[id] = a.amount
		}
	}
	m.assert(readsAgree, m.violation != nil || n == len(want) && maps.Equal(listed, want), seller, "listed are the adjustments %v of %s, and made were %v", listed, seller, want)
}
