package simulate

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"bursar/internal/auth"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
)

// reviewed is a payout in review that the gateway does not know, and that its statement has a line for.
type reviewed struct {
	seller *seller
	id     payout.ID
	net    int64
}

// keepOneInReview has a seller ask for all there is, and an admin review the payout, since the gateway is silent while it is sent. It returns nil where the payout
// does not come that far, and without that fault.
func (m *market) keepOneInReview(on *instance) *reviewed {
	s := m.payable()
	if s == nil || !m.o.Faults[outage] || m.model.row(s.id).InTransit != 0 {
		return nil
	}
	m.fallSilent(20 * time.Minute)
	a := &ask{seller: s.id, amount: m.model.row(s.id).Available, notes: s.temper.name}
	m.spawn(0, "seller "+s.name, func() { m.send(a) })
	m.pass(m.now + 5*time.Minute)
	w := m.model.payouts[a.made]
	if m.violation != nil || w == nil || w.state != payout.Unknown {
		m.pass(max(m.now, m.gateways.silentUntil)) // the parts that follow find a gateway that answers
		return nil
	}
	m.leftAlone = a.made
	m.spawn(0, admin, func() {
		m.reviewUnknown(a.made)
		m.refuseRefund(a.made, payout.ErrTooEarly)
	})
	m.pass(m.now + time.Minute)
	m.deleteAccount(on, s, auth.ErrMoneyLeft)
	m.pass(max(m.now, m.gateways.silentUntil) + time.Hour)
	if m.violation != nil || w.state != payout.ManualReview || m.gateways.has(a.made) {
		m.leftAlone = ""
		return nil
	}
	return &reviewed{s, a.made, int64(w.net())}
}

// move has the statement tell that the money of a payout in review was taken, or put back.
func (m *market) move(r *reviewed, taken bool) {
	if r == nil || m.violation != nil {
		return
	}
	entity, change := "payout", sandbox.StatementChange{Change: "add", Line: string(r.id)}
	if change.Debit = &r.net; !taken {
		entity, change.Debit, change.Credit = "reversal", nil, &r.net
	}
	change.Entity = &entity
	if err := m.gateways.main().ask(http.MethodPost, "/control/statement", change, nil); err != nil {
		m.broken(datastoreReadable, string(r.id), err.Error())
	}
}

// checkPaidByStatement wants a payout in review not to be refunded while the statement tells that it was paid, and to be refunded once it tells that the money is back.
func (m *market) checkPaidByStatement(on *instance, r *reviewed) {
	if r == nil || m.violation != nil {
		return
	}
	m.spawn(0, admin, func() { m.refuseRefund(r.id, payout.ErrPaidByStatement) })
	m.pass(m.now + time.Minute)
	m.move(r, false)
	m.pass(m.now + 30*time.Hour)
	isBack := func(d reconcile.Difference) bool {
		return d.Kind == reconcile.ReturnedAtGateway && d.Payout == r.id && d.Open()
	}
	m.assert(misstatementsFound, slices.ContainsFunc(m.reconcileAgain(on), isBack), string(r.id), "the statement has the money of %s, which is in review, taken and put back, and that is no difference", r.id)
	m.leftAlone = ""
	m.spawn(0, admin, func() { m.refundToBalance(r.id) })
	m.pass(m.now + 2*time.Hour)
	w := m.model.payouts[r.id]
	m.assert(refusalsAreTrue, m.violation != nil || w.last.Refunded(), string(r.id), "the statement has the money of %s back, the gateway does not know it, and it is %s", r.id, w.state)
}

// refuseRefund wants a payout in review not to be refunded, and why.
func (m *market) refuseRefund(id payout.ID, want error) {
	err := m.decide(string(id), false, func(on *instance) error {
		_, err := on.payouts.RefundToBalance(m.ctx, m.by(), id)
		return err
	})
	m.assert(refundedStaysEnded, errors.Is(err, want), string(id), "payout %s was to be refunded, and that was answered with %v, want %v", id, err, want)
}
