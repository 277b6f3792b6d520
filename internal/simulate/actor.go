package simulate

import (
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"bursar/internal/payout"
)

// actor does one thing after another: a seller, a worker, the marketplace. Actors take
// turns: one goes on until it pauses, and the agenda says who is next. So whatever can lie between two of
// an actor's steps does, sooner or later, and always the same under the same seed.
type actor struct {
	name string
	// number tells this beginning of theirs from all others.
	number uint64
	// on is the instance whose code the actor runs; nil while it runs its own.
	on *instance
	// ask is what a seller is asking for.
	ask *ask
	// account is the account number that a seller is registering.
	account string
	// claimed is the payout that the ledger has just let them send, and sent the one that they sent last.
	claimed, sent string
	// claimedUntil is when the lease of what they claimed is over, by their instance's clock, and offset what that clock was off by then.
	claimedUntil time.Time
	offset       time.Duration
	// asked is the payout that the gateway was last asked about for them by our reference, and askedAt when it looked.
	asked   string
	askedAt time.Duration
	// looked is when a gateway last looked at something for them.
	looked time.Duration
	// failed is the verification that the gateway last told them has failed.
	failed string
	// pending is the verification that the gateway last told them is pending.
	pending string
	// calls counts what they have asked gateways.
	calls int
	// unfiltered says that the gateway lists all payouts where they asked for one.
	unfiltered bool
	// event is the gateway's id of the notification that they bring, behind the gateway's name.
	event string
	// about is the payout of which they take a step, or on which they decide.
	about payout.ID

	act  func()
	rest func(struct{}) bool
	next func() (struct{}, bool)
	stop func()
	goOn func()
}

// killed ends what ran on an instance when it died.
type killed struct{ on *instance }

// over ends every actor when the run has ended.
type over struct{}

// spawn starts an actor after a while.
func (m *market) spawn(after time.Duration, name string, act func()) {
	m.after(after, func() { m.begin(name, act) })
}

func (m *market) begin(name string, act func()) {
	var a *actor
	if last := len(m.idle) - 1; last >= 0 {
		a, m.idle = m.idle[last], m.idle[:last]
	} else {
		a = m.newActor()
	}
	m.begun++
	a.name, a.number, a.act, a.on, a.ask, a.account, a.claimed, a.sent, a.asked, a.failed, a.pending, a.event, a.about, a.calls, a.looked = name, m.begun, act, nil, nil, "", "", "", "", "", "", "", "", 0, 0
	a.goOn()
}

// newActor makes an actor: a stack that has grown is worth keeping.
func (m *market) newActor() *actor {
	a := &actor{}
	a.next, a.stop = iter.Pull(func(yield func(struct{}) bool) {
		a.rest = yield
		for rest := true; rest; rest = yield(struct{}{}) {
			m.perform(a)
			m.idle = append(m.idle, a)
		}
	})
	a.goOn = func() {
		m.current = a
		a.next()
		m.current = nil
	}
	m.actors = append(m.actors, a)
	return a
}

func (m *market) perform(a *actor) {
	defer func() { m.excuse(recover()) }()
	a.act()
}

// excuse takes the panics that are meant; any other is a bug that is reported like a broken promise.
func (m *market) excuse(cause any) {
	switch cause.(type) {
	case nil, killed, over:
	default:
		m.broken(nothingPanics, "", fmt.Sprintf("%v\n%s", cause, debug.Stack()))
	}
}

// pause lets time pass for the actor whose turn it is, and others act meanwhile. It does not return when
// the instance died that the actor was on.
func (m *market) pause(d time.Duration) {
	a := m.current
	at := m.now + d
	if len(m.agenda) == 0 || at < m.agenda[0].at {
		m.advance(at) // nobody else's turn comes first
	} else {
		m.at(at, a.goOn)
		if !a.rest(struct{}{}) {
			panic(over{})
		}
	}
	if m.violation != nil {
		panic(over{})
	}
	if a.on != nil && a.on.dead {
		panic(killed{a.on})
	}
}

// step is a point between two steps of an instance: others may come between, and it may be killed.
func (m *market) step(on *instance, least, most time.Duration) {
	if m.strikes(crash) {
		m.kill(on)
	}
	if m.strikes(stall) {
		m.disturbed = m.now + 2*maxStall
		m.pause(m.between(0, maxStall))
	}
	m.pause(m.between(least, most))
}

// maxStall is how long a worker hangs at most.
const maxStall = 2 * time.Minute

// work runs what an instance does by itself.
func (m *market) work(on *instance, after time.Duration, name string, act func()) {
	m.spawn(after, on.name+" "+name, func() {
		if on.dead {
			return
		}
		m.current.on = on
		act()
	})
}

// call runs a request to an instance. It fails with errLost when that dies before it has answered.
func (m *market) call(on *instance, ask func() error) (err error) {
	a := m.current
	defer func() {
		a.on = nil
		cause := recover()
		if death, died := cause.(killed); died && death.on == on {
			err = errLost
		} else if cause != nil {
			panic(cause)
		}
	}()
	a.on = on
	m.pause(m.between(0, 5*time.Millisecond))
	err = ask()
	m.guard(err)
	m.pause(m.between(0, 20*time.Millisecond))
	return err
}

// at lets something happen at a moment.
func (m *market) at(when time.Duration, do func()) {
	m.events++
	m.agenda.add(scheduled{max(when, m.now), m.events, do})
}

// after lets something happen after a while.
func (m *market) after(d time.Duration, do func()) { m.at(m.now+d, do) }
