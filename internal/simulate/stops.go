package simulate

import (
	"errors"
	"maps"
	"slices"
	"time"

	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// stops says whether an admin has stopped payouts, of a seller or of all, and when they last resumed them.
type stops struct {
	stopped bool
	resumed time.Duration
	// since and by are of the decision that stopped them.
	since time.Time
	by    string
}

// stopsOf is what is known of an owner's: a seller's or the platform's.
func (o *model) stopsOf(owner string) *stops {
	if owner == decision.Platform {
		return &o.paused
	}
	return &o.sellers[owner].frozen
}

// stopped reports whether none of a seller's payouts may be requested or sent.
func (o *model) stopped(seller string) bool {
	return o.paused.stopped || o.sellers[seller].frozen.stopped
}

// wereStopped reports whether they were within the last moments, when a request may have been refused that is answered now.
func (m *market) wereStopped(seller string) bool {
	lately := func(s *stops) bool { return s.stopped || s.resumed > 0 && m.now-s.resumed < time.Minute }
	return lately(&m.model.paused) || lately(m.model.stopsOf(seller))
}

// wereStoppedBefore reports whether they are, since before the last moments. A request that is refused now was made after that.
func (m *market) wereStoppedBefore(seller string) bool {
	long := func(s *stops) bool { return s.stopped && m.clock().Sub(s.since) > 5*time.Minute }
	return long(&m.model.paused) || long(m.model.stopsOf(seller))
}

// wasStopped notes a decision to stop payouts or to resume them.
func (m *market) wasStopped(d decision.Decision) {
	switch d.Action {
	case decision.FreezePayouts, decision.UnfreezePayouts:
		m.checkStopMail(d)
	default:
	}
	switch d.Action {
	case decision.FreezePayouts, decision.PausePayouts:
		*m.model.stopsOf(d.Owner) = stops{stopped: true, since: d.At, by: ledger.DecidedBy(d)}
		m.tally.stops++
	case decision.UnfreezePayouts, decision.ResumePayouts:
		m.checkResolved(d.Owner)
		*m.model.stopsOf(d.Owner) = stops{resumed: m.now}
	default:
	}
}

// endedUnpaid reports whether the seller has a payout's amount in the balance again, by the model.
func (w *withdrawal) endedUnpaid() bool {
	return w.state == payout.Failed || w.state == payout.Cancelled || w.state == payout.Returned
}

// checkResolved demands that an admin has resolved what a gateway said of payouts whose amount a seller has again before the seller's freeze ends.
func (m *market) checkResolved(seller string) {
	for id, w := range m.model.payouts {
		isOpen := w.seller == seller && w.endedUnpaid() && w.last.Discrepancy != "" && string(id) != m.tampered
		m.assert(discrepanciesKept, !isOpen, string(id), "the payouts of %s go on, and of this one, which is %s, it is open that %s", seller, w.state, w.last.Discrepancy)
	}
}

// mayBeFrozen reports whether a gateway has said of a payout, whose amount a seller has again, what would mean that its money left.
func (m *market) mayBeFrozen(seller string) bool {
	for id := range m.gateways.lies {
		if w := m.model.payouts[id]; w != nil && w.seller == seller && w.endedUnpaid() {
			return true
		}
	}
	return false
}

// wereResumed notes that the payouts that waited because they were stopped, of a seller or of all, are due.
func (m *market) wereResumed(seller string, n int64, now time.Time) {
	owner := string(m.current.about) // whose payouts the admin has resumed
	for _, id := range slices.Sorted(maps.Keys(m.model.payouts)) {
		w := m.model.payouts[id]
		if w.state == payout.Waiting && w.last.IsStopped() && w.due > now.UnixMicro() && (owner == decision.Platform || w.seller == owner) {
			m.payoutDue(id, w, now)
			n--
		}
	}
	m.assert(stopsKept, n == 0, seller, "when payouts of %s were resumed, the number of those that were made due is off by %d", owner, n)
}

// stopEvery is how often an admin does.
const stopEvery = 12 * time.Hour

// stopSome has an admin stop the payouts of a seller or of all, and resume them some time later.
func (m *market) stopSome() {
	if m.chance(300) {
		m.stopFor(decision.Platform, 2*time.Hour)
		return
	}
	m.stopFor(one(m, m.sellers).id, 30*time.Hour)
}

// stopBefore has an admin stop payouts, now and then, when a worker has prepared to send one and has not claimed it yet.
func (m *market) stopBefore(id payout.ID) {
	w := m.model.payouts[id]
	if w == nil || m.closing || !m.anyFaults() || m.begun%32 != 4 {
		return
	}
	owner := w.seller
	if m.begun%64 == 4 {
		owner = decision.Platform
	}
	m.spawn(0, admin, func() { m.stopFor(owner, 10*time.Minute) })
	m.pause(50 * time.Millisecond)
}

// stopFor stops the payouts of a seller or of all for a while.
func (m *market) stopFor(owner string, most time.Duration) {
	if m.stopping[owner] {
		return
	}
	m.stopping[owner] = true
	if m.decideStop(owner, true) == nil {
		m.readPause()
		m.pause(m.between(0, one(m, []time.Duration{time.Second, time.Minute, most})))
	}
	m.resume(owner)
	delete(m.stopping, owner)
}

// readPause compares what an admin is shown of a pause: the last one's.
func (m *market) readPause() {
	on, last := m.anyInstance(), m.model.paused
	if on == nil || m.tampered != "" {
		return
	}
	_ = m.call(on, func() error {
		state, err := on.payouts.PauseState(m.ctx)
		if err == nil && last == m.model.paused {
			m.assert(readsAgree, state.Paused == last.stopped && (!last.stopped || stored(state.Since).Equal(stored(last.since)) && state.By == last.by), "",
				"an admin is shown the pause %+v, and the last decision is %+v", state, last)
		}
		return err
	})
}

// resumeForgotten resumes what a backup brought back as stopped.
func (m *market) resumeForgotten() {
	owners := []string{decision.Platform}
	for _, s := range m.sellers {
		owners = append(owners, s.id)
	}
	for _, owner := range owners {
		if m.model.stopsOf(owner).stopped && !m.stopping[owner] {
			m.resume(owner)
		}
	}
}

// resume has an admin resume payouts, until that is answered.
func (m *market) resume(owner string) {
	for m.model.stopsOf(owner).stopped {
		err := m.decideStop(owner, false)
		if err != nil && !errors.Is(err, errLost) && !errors.Is(err, errNowhere) && !isUnavailable(err) { // resumeForgotten does, once a discrepancy is resolved
			return
		}
		m.pause(m.between(time.Second, 5*time.Minute))
	}
}

// decideStop makes the decision once. What waited for the end of a stop is due once that is answered.
func (m *market) decideStop(owner string, stop bool) error {
	return m.decide(owner, false, func(on *instance) error {
		faults := m.tally.faults
		err := m.stopOrResume(on, owner, stop)
		if !stop && err == nil && faults == m.tally.faults { // after a failure they are looked at in their time
			m.checkResumed(on, owner)
		}
		return err
	})
}

func (m *market) stopOrResume(on *instance, owner string, stop bool) error {
	switch {
	case owner == decision.Platform && stop:
		return on.payouts.Pause(m.ctx, m.by())
	case owner == decision.Platform:
		return on.payouts.Resume(m.ctx, m.by())
	case stop:
		return on.payouts.Freeze(m.ctx, m.by(), owner)
	default:
		return on.payouts.Unfreeze(m.ctx, m.by(), owner)
	}
}

// checkResumed wants the payouts to be due that waited because payouts were stopped, but for those that a worker has leased.
func (m *market) checkResumed(on *instance, owner string) {
	for _, id := range slices.Sorted(maps.Keys(m.model.payouts)) {
		w := m.model.payouts[id]
		waits := w.state == payout.Waiting && w.last.IsStopped() && (owner == decision.Platform || w.seller == owner) && !m.model.stopped(w.seller)
		m.assert(stopsKept, !waits || w.due <= on.now().Add(lease+maxOff).UnixMicro() || string(id) == m.tampered, string(id),
			"the payouts of %s go on, and this one waits until %s all the same", owner, time.UnixMicro(w.due))
	}
}
