package simulate

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"bursar/internal/payout"
)

// backup is a copy of the ledger, and the model as it was then.
type backup struct {
	file  string
	at    time.Duration
	model *model
	// restored says that it was put in the place of the ledger, and that the gateway is yet to be asked.
	restored bool
}

// restoreEvery spaces the restores: about one in two days, and a dozen in a long run.
func (m *market) restoreEvery() time.Duration { return max(48*time.Hour, m.end()/12) }

// wantBackUp has the ledger backed up when next a payout was asked for: what waits is what a restore is most about.
func (m *market) wantBackUp() { m.backUpSoon, m.backUpUnknown = true, m.chance(600) }

// backUpWith backs the ledger up with a payout that has just become unknown and of which the gateway has nothing, and has its money refunded and
// withdrawn again after that: both are in the balance of the backup.
func (m *market) backUpWith(id payout.ID) {
	m.backUpSoon, m.backUpUnknown = false, false
	m.after(0, func() {
		m.backUp()
		if m.saved == nil || m.saved.at != m.now {
			return
		}
		m.spawn(0, admin, func() {
			m.reviewUnknown(id)
			w := m.model.payouts[id]
			for range 5 { // the gateway may not answer at once
				m.pause(12 * time.Minute)
				m.refundToBalance(id)
				if w = m.model.payouts[id]; w == nil || w.state != payout.ManualReview {
					break
				}
			}
			if w == nil || w.state != payout.Failed || m.closing {
				return
			}
			s := m.sellerOf(w.seller)
			m.spawn(0, "seller "+s.name, func() {
				if available := m.model.row(s.id).Available; available >= minimum {
					m.send(&ask{seller: s.id, amount: available, notes: s.temper.name, key: m.newKey(s)})
				}
			})
		})
	})
}

// backUp copies the ledger while it is in use, with the service's own means, to be put back some time later.
func (m *market) backUp() {
	on := m.anyInstance()
	switch {
	case m.closing:
		return
	case on == nil || m.saved != nil:
		m.after(time.Minute, m.backUp)
		return
	}
	saved := &backup{file: filepath.Join(m.dir, fmt.Sprintf("backup-%d.db", m.tally.restores)), at: m.now, model: m.model.copy()}
	if err := on.db.Backup(m.ctx, saved.file); err != nil {
		m.broken(datastoreReadable, "", "back up the ledger: "+err.Error())
		return
	}
	m.saved = saved
	m.note("", "", "the ledger is backed up")
	m.after(m.between(5*time.Minute, 36*time.Hour), m.putBack)
	m.after(m.between(m.restoreEvery()*3/4, m.restoreEvery()*5/4), m.wantBackUp)
	if m.chance(700) {
		m.leaveUnmatched()
	}
}

// putBack ends all instances and puts the backup in the place of the ledger. The gateway's records stay. What was
// sent has arrived before anything starts again.
func (m *market) putBack() {
	if m.closing {
		return
	}
	if m.isBeyondRestore(m.saved) {
		m.note("", "", "the backup is thrown away")
		if err := os.Remove(m.saved.file); err != nil {
			m.broken(datastoreReadable, "", err.Error())
		}
		m.saved = nil
		return
	}
	m.restoring = true
	m.strike(restore)
	m.note("", "", "the ledger is lost")
	for _, mc := range m.machines {
		if mc.on != nil {
			m.shutDown(mc.on)
		}
	}
	m.after(m.between(callTimeout+maxLate+maxLag, time.Hour), func() {
		if err := m.replaceDatastore(); err != nil {
			m.broken(datastoreReadable, "", "put the backup in place: "+err.Error())
			return
		}
		m.tally.restores++
		m.forgetProofs()
		m.consumer = newConsumer() // the feed may soon be as long as before, so the cursor alone would not show it
		m.note("", "", fmt.Sprintf("the ledger of %s ago is put in place", m.now-m.saved.at))
		m.model, m.saved.restored = m.saved.model, true
		m.lost = append(m.lost, loss{m.saved.at, m.now})
		for _, o := range m.gateways.orders { // what has not arrived by now never will, and the gateway lists what has
			o.mayBeStored = o.mayBeStored && o.known
		}
		m.restoring = false
		m.gateways.configured = m.gateways.all // each is asked what it has made
		for _, mc := range m.machines {
			m.startUp(mc)
		}
		m.awaitAll()
		m.cancelWhatWaits()
		m.spawn(m.between(0, time.Hour), "marketplace", m.recordAgain)
	})
}

// isBeyondRestore reports whether a gateway that can't list was sent something since a backup, of which nobody could tell.
func (m *market) isBeyondRestore(b *backup) bool {
	for _, o := range m.gateways.orders {
		if o.since >= b.at && !o.at.capabilities().List {
			return true
		}
	}
	return false
}

// cancelWhatWaits has sellers stop what they see waiting again, before anything is sent.
func (m *market) cancelWhatWaits() {
	for _, id := range slices.Sorted(maps.Keys(m.model.payouts)) {
		if w := m.model.payouts[id]; w.state == payout.Waiting && m.chance(500) {
			s := m.sellerOf(w.seller)
			m.spawn(m.between(0, 5*time.Second), "seller "+s.name, func() { m.cancel(s, id) })
		}
	}
}

func (m *market) replaceDatastore() error {
	for _, beside := range []string{"-wal", "-shm"} {
		if err := os.RemoveAll(m.datastoreFile() + beside); err != nil {
			return err
		}
	}
	if err := copyFile(m.saved.file, m.datastoreFile()); err != nil {
		return err
	}
	return os.Remove(m.saved.file)
}

// checkRestored has the instances started again as after a restore, with a gateway that can't list and a payout that waits. Nothing is sent,
// and it is cancelled only if the gateway, asked for it, knows nothing of it: it may have been sent after the backup.
func (m *market) checkRestored() {
	s := m.payable()
	if s == nil || m.stopping[s.id] || !m.anyFaults() {
		return
	}
	a := &ask{seller: s.id, amount: minimum, notes: s.temper.name}
	m.spawn(0, "seller "+s.name, func() { m.send(a) })
	m.pass(m.now + cancelWindow/2)
	for _, mc := range m.machines {
		if mc.restored = true; mc.on != nil {
			m.shutDown(mc.on)
		}
	}
	for _, mc := range m.machines {
		m.startUp(mc)
	}
	m.pass(m.now + time.Hour)
	on, w := m.anyInstance(), m.model.payouts[a.made]
	if m.violation != nil || !m.assert(askedFirst, on != nil && !on.ready && w != nil && w.state == payout.Waiting && !m.gateways.has(a.made), s.id, "the ledger was put back, nobody knows what was paid since, and payout %q is %+v", a.made, w) {
		return
	}
	isKnown := m.gateways.named(w.at).capabilities().Lookup
	m.spawn(0, "seller "+s.name, func() {
		err := errLost
		_ = m.call(on, func() error { _, _, err = on.payouts.Cancel(m.ctx, payout.Caller{User: s.id}, a.made, ""); return err })
		m.assert(askedBefore, isKnown && err == nil || !isKnown && errors.Is(err, payout.ErrCancelUnclear), s.id, "the ledger was put back, and payout %s may have been sent since; its cancellation was answered with %v, and the gateway finds transfers: %t", a.made, err, isKnown)
	})
	m.pass(m.now + time.Minute)
}

// loss is a part of the past that the ledger does not know: from a backup to the restore.
type loss struct{ from, to time.Duration }

// forget takes from a request what the ledger has lost with its idempotency key.
func (m *market) forget(a *ask) {
	for _, l := range m.lost {
		if a.at >= l.from && a.at < l.to {
			a.keyLost = a.made != "" || a.refused != ""
			a.made, a.refused = "", ""
		}
	}
}
