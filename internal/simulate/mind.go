package simulate

import (
	"maps"
	"slices"
	"strings"
	"time"

	"bursar/internal/gateway/razorpayx"
	"bursar/internal/payout"
)

// changedMind is what a gateway says of a payout's transfer, whatever is true.
type changedMind struct {
	id     payout.ID
	status string
	// more is how much more than ordered it says that the transfer is.
	more int64
}

func (c *changedMind) tell(p *razorpayx.Payout) {
	if c != nil && payout.ID(p.ReferenceID) == c.id {
		p.Status, p.Amount = c.status, p.Amount+c.more
	}
}

// checkChangedMind has the gateway say one thing and then another of a payout whose amount its seller has again. Each time that it
// says for the first time that money left, or again after it has said that none did, the seller's payouts have to be frozen; where it says so again
// after an admin has looked at it, or that the money is back, they go on. All of it has to be listed for an admin.
func (m *market) checkChangedMind() {
	w := m.endedAtGateway()
	if w == nil || m.anyInstance() == nil {
		return
	}
	id, seller := w.last.ID, w.seller
	m.gateways.lies[id] = &gatewayLie{was: w.state, what: "it has changed its mind"}
	m.leftAlone, m.stopping[seller] = id, true
	defer func() { m.leftAlone, m.gateways.changedMind = "", nil }()
	defer delete(m.stopping, seller)
	const other, isBack = "ordered were", "and is " // what is written down of a transfer of another amount, and of money that is back
	for i, said := range []struct {
		status string
		more   int64
		noted  string
		frozen bool
		stays  bool // no admin resolves it yet
	}{
		{razorpayx.StatusFailed, 1, other, false, true},
		{razorpayx.StatusProcessed, 1, other, true, false}, // in the same words
		{razorpayx.StatusProcessed, 1, other, false, false},
		{razorpayx.StatusFailed, 0, isBack, false, false},
		{razorpayx.StatusFailed, 1, other, false, false},
		{razorpayx.StatusProcessed, 1, other, true, false},
		{razorpayx.StatusReversed, 0, isBack, false, false},
	} {
		m.gateways.changedMind = &changedMind{id, said.status, said.more}
		m.gateways.main().announce(id, time.Second)
		m.pass(m.now + time.Hour)
		if m.violation != nil {
			return
		}
		m.assert(discrepanciesKept, w.state == w.last.State && strings.Contains(w.last.Discrepancy, said.noted), string(id),
			"the gateway says in turn %d of payout %s, whose amount the seller has, that it is %s (%d more than ordered), and the discrepancy is %q", i+1, id, said.status, said.more, w.last.Discrepancy)
		m.assert(stopsKept, m.model.stopped(seller) == said.frozen, seller,
			"the gateway says in turn %d of payout %s, whose amount the seller has, that it is %s, and the seller's payouts are frozen: %t", i+1, id, said.status, m.model.stopped(seller))
		if !said.stays {
			m.spawn(0, admin, func() {
				m.resolveDiscrepancy(w.last)
				m.resume(seller)
			})
		}
		m.pass(m.now + 7*time.Hour)
	}
}

// endedAtGateway is a payout that the main gateway had and whose amount its seller has again, of a seller whose payouts go on; nil without one. Of several it is the newest.
func (m *market) endedAtGateway() (newest *withdrawal) {
	for _, id := range slices.Sorted(maps.Keys(m.model.payouts)) {
		w := m.model.payouts[id]
		fits := w.endedUnpaid() && w.last.GatewayID != "" && w.last.ID == id && w.last.Discrepancy == "" && w.at == m.gateways.main().name && m.gateways.lies[id] == nil
		if fits && !m.model.stopped(w.seller) && !m.stopping[w.seller] {
			newest = w
		}
	}
	return newest
}
