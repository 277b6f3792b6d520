package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// cancellation is a request of an admin to cancel a payout under an idempotency key, with all its repeats.
type cancellation struct {
	id  payout.ID
	key string
	// restores is how many there had been: the ledger that was put back may not have the key.
	restores int64
	began    time.Duration
	// answered says that a call had an answer, and refusal is what it said if that was a refusal.
	answered bool
	refusal  string
	// carriedOut says that a call was answered as the one that cancelled the payout.
	carriedOut bool
}

// cancelAsAdmin has an admin cancel a seller's payout, most of the time under an idempotency key, and then again.
func (m *market) cancelAsAdmin(id payout.ID) {
	if m.chance(200) {
		_ = m.askAsAdmin(string(id), func(on *instance) error {
			_, err := m.callToCancel(on, id, "")
			return err
		})
		return
	}
	c := &cancellation{id: id, key: m.newAdminKey(), restores: m.tally.restores, began: m.now}
	if m.chance(150) {
		m.spawn(m.between(0, 50*time.Millisecond), admin, func() { m.sendCancel(c) })
	}
	m.sendCancel(c)
	if c.answered && c.restores == m.tally.restores {
		m.cancelOther(m.adminAsCaller(), id, c.key)
	}
	for m.chance(500) {
		m.spawn(m.between(0, one(m, []time.Duration{time.Second, time.Hour, 72 * time.Hour})), admin, func() { m.sendCancel(c) })
	}
}

// keysKept is how long the service keeps an idempotency key.
const keysKept = 7 * 24 * time.Hour

// newAdminKey is an idempotency key of the admin's, which sellers may use too.
func (m *market) newAdminKey() string {
	if m.cancels++; m.chance(500) {
		return fmt.Sprintf("withdrawal-%d", m.cancels)
	}
	return m.ids.New("key_", m.clock())
}

func (m *market) adminAsCaller() payout.Caller {
	return payout.Caller{User: m.admin, Admin: true, Note: "The seller called."}
}

// sendCancel sends a cancellation, and again until it is answered. An unclear answer ends the loop too.
func (m *market) sendCancel(c *cancellation) {
	for range 60 {
		isForgotten := m.tally.restores != c.restores || m.now-c.began > keysKept-24*time.Hour
		if m.closing || m.restoring || isForgotten {
			return
		}
		err := m.askAsAdmin(string(c.id), func(on *instance) error {
			m.killSoon(on)
			return m.cancelUnderKey(on, c)
		})
		if errors.Is(err, payout.ErrCancelUnclear) || !errors.Is(err, errLost) && !errors.Is(err, errNowhere) && !isUnavailable(err) {
			return
		}
		m.pause(m.between(0, one(m, []time.Duration{time.Millisecond, 2 * time.Hour}))) // a poll comes first, or not
	}
}

// killSoon kills an instance, now and then, while it carries a call out.
func (m *market) killSoon(on *instance) {
	if m.faultProfile[crash] == 0 || !m.chance(250) {
		return
	}
	m.after(m.between(0, one(m, []time.Duration{10 * time.Millisecond, 300 * time.Millisecond})), func() {
		if !on.dead && !m.closing {
			m.strike(crash)
			m.kill(on)
		}
	})
}

// cancelUnderKey makes the call. Whichever call of several had the first answer, the others get the same.
func (m *market) cancelUnderKey(on *instance, c *cancellation) error {
	replayed, err := m.callToCancel(on, c.id, c.key)
	switch {
	case err == nil:
		m.assert(oneAnswerPerKey, c.refusal == "", string(c.id), "payout %s could not be cancelled under the key %s: %q; again, it is cancelled", c.id, c.key, c.refusal)
		m.assert(oneAnswerPerKey, replayed || !c.carriedOut, string(c.id), "two calls under the key %s are said to have cancelled payout %s", c.key, c.id)
		c.answered, c.carriedOut = true, c.carriedOut || !replayed
	case errors.Is(err, payout.ErrNotCancellable):
		message := fault.From(err).Message
		w := m.model.payouts[c.id]
		isOurs := w != nil && w.state == payout.Cancelled && m.wasCancelledByGateway(on, w) && m.countDecisions(on, string(c.id), decision.CancelPayout) == 0
		m.assert(answersAreTrue, !isOurs || !strings.Contains(message, string(payout.Cancelled)), string(c.id),
			"the gateway cancelled payout %s, which nobody has on record, and the cancellation under the key %s was answered with %q", c.id, c.key, message)
		m.assert(oneAnswerPerKey, !c.answered || c.refusal == message, string(c.id), "the cancellation of payout %s under the key %s was answered with %q, and again with %q", c.id, c.key, c.refusal, message)
		c.answered, c.refusal = true, message
	default:
		gone := errors.Is(err, payout.ErrNotFound) && m.model.payouts[c.id] == nil
		m.assert(answersAreKnown, gone || isUnavailable(err), string(c.id), "the cancellation of payout %s under the key %s was answered with %v", c.id, c.key, err)
	}
	return err
}

// wasCancelledByGateway reports whether the journal says that a payout's end is what the gateway reported.
func (m *market) wasCancelledByGateway(on *instance, w *withdrawal) bool {
	entries, err := on.db.EntriesAbout(m.ctx, w.seller, string(w.last.ID))
	m.assert(datastoreReadable, err == nil, string(w.last.ID), "read the entries about %s: %v", w.last.ID, err)
	return slices.ContainsFunc(entries, func(e ledger.Entry) bool { return e.Type == ledger.PayoutCancelled && e.Actor == ledger.ActorGateway })
}

// callToCancel has an instance cancel a payout for the admin, and reports whether the answer is an earlier one. The first
// success puts exactly one decision on record.
func (m *market) callToCancel(on *instance, id payout.ID, key string) (replayed bool, err error) {
	by := decided{string(id), m.current.number}
	before := m.decided[by]
	p, replayed, err := on.payouts.Cancel(m.ctx, m.adminAsCaller(), id, key)
	w, now := m.model.payouts[id], m.decided[by]
	m.assert(answersAreKnown, err == nil || fault.From(err) != nil, string(id), "a cancellation was answered with %v", err)
	m.assert(answersAreTrue, err != nil || w != nil && w.state == payout.Cancelled && p.ID == id && p.State == payout.Cancelled, string(id),
		"payout %s was said to be cancelled (replayed: %t), and is %+v", id, replayed, w)
	m.assert(decisionsKept, isUnavailable(err) || now-before == btoi(err == nil && !replayed), string(id),
		"the cancellation of %s was answered with %v (replayed: %t), and %d decisions are on record, %d were before", id, err, replayed, now, before)
	if err != nil {
		return replayed, err
	}
	m.checkCancelled(id, w, replayed, key)
	n := m.countDecisions(on, string(id), decision.CancelPayout)
	m.assert(decisionsKept, n == 1, string(id), "an admin has cancelled payout %s, which is on record %d times", id, n)
	return replayed, nil
}

// countDecisions is how many decisions of a kind on a subject are on record.
func (m *market) countDecisions(on *instance, subject string, action decision.Action) (n int) {
	const most = 100
	list, err := on.db.Decisions(m.ctx, subject, most)
	m.assert(datastoreReadable, err == nil, subject, "read the decisions on %s: %v", subject, err)
	for _, d := range list {
		n += btoi(d.Action == action)
	}
	return n
}

// cancelsAtOnce is how many cancellations a caller may have the gateway asked for at once.
const cancelsAtOnce = 60

// checkCancelledOften has a seller and an admin send the cancellation of a payout again and again, after a restart and while the gateway is silent. Each
// asks the gateway. Soon the seller has to wait, and the admin need not.
func (m *market) checkCancelledOften() {
	s := m.payable()
	if s == nil || !m.anyFaults() || !m.gateways.main().capabilities().Lookup {
		return
	}
	a := &ask{seller: s.id, amount: minimum, notes: "by mistake"}
	m.spawn(0, "seller "+s.name, func() { m.send(a) })
	m.pass(m.now + time.Second)
	if m.violation != nil || a.made == "" {
		return
	}
	m.fallSilent(20 * time.Minute)
	for _, mc := range m.machines {
		if mc.on != nil {
			m.shutDown(mc.on)
			m.startUp(mc)
		}
	}
	m.cancelOften(a.made, "seller "+s.name, payout.Caller{User: s.id}, cancelsAtOnce)
	m.cancelOften(a.made, admin, m.adminAsCaller(), cancelsAtOnce+5)
	m.pass(m.gateways.silentUntil + time.Hour)
}

// cancelOften has a caller cancel a payout more often at once than sellers may, and wants so many of the cancellations to be let through to the gateway.
func (m *market) cancelOften(id payout.ID, name string, c payout.Caller, most int) {
	unclear, often := 0, 0
	for range cancelsAtOnce + 5 {
		m.spawn(time.Second, name, func() {
			_ = m.askAsAdmin(string(id), func(on *instance) error {
				_, _, err := on.payouts.Cancel(m.ctx, c, id, "")
				unclear += btoi(errors.Is(err, payout.ErrCancelUnclear))
				often += btoi(errors.Is(err, payout.ErrCancelledOften))
				return err
			})
		})
	}
	m.pass(m.now + 2*time.Minute)
	m.assert(nothingSpins, m.violation != nil || unclear == most && often == cancelsAtOnce+5-most, string(id),
		"%s cancelled payout %s %d times at once while the gateway is silent; of these %d were let through, want %d, and %d had to wait", name, id, cancelsAtOnce+5, unclear, most, often)
}
