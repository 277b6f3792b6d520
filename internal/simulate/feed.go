package simulate

import (
	"errors"
	"time"

	"bursar/internal/event"
)

// consumer is the marketplace's server that follows the feed of events.
type consumer struct {
	next int64
	// taken counts the events of each seller's journal that it has.
	taken map[string]int
	// registered are the sellers who it knows of.
	registered map[string]bool
}

func newConsumer() consumer {
	return consumer{taken: map[string]int{}, registered: map[string]bool{}}
}

// How often committed events are numbered, and the consumer asks for them. The service does the one four times a second,
// which would be most of a long run.
const (
	numberEvery   = 30 * time.Minute
	followEvery   = time.Hour
	eventsAtATime = 50
)

// numberEvents has an instance number what is committed, as its loop does.
func (m *market) numberEvents() {
	on := m.anyInstance()
	if on == nil {
		return
	}
	m.work(on, 0, "events", func() {
		m.try(on, "number events", func() error {
			m.step(on, 0, 2*time.Millisecond)
			n, err := m.number(on)
			m.step(on, 0, 2*time.Millisecond)
			if n > 0 && m.chance(500) {
				m.numberEvents()
			}
			return err
		})
	})
}

// number numbers what is committed, and looks at the mails about it.
func (m *market) number(on *instance) (int, error) {
	m.mailed = nil
	n, err := on.events.Number(m.ctx)
	if err == nil {
		m.checkFailureMails()
	}
	return n, err
}

// followFeed has the consumer read pages of the feed to its end, from whatever instance is there.
func (m *market) followFeed() {
	for more := true; more && m.violation == nil; {
		on := m.anyInstance()
		if on == nil {
			return
		}
		_ = m.call(on, func() (err error) {
			more, err = m.followPage(on)
			return err
		})
	}
}

// followPage takes one page, and reports whether there may be more.
func (m *market) followPage(on *instance) (more bool, err error) {
	c := &m.consumer
	before := c.next
	events, next, err := on.events.After(m.ctx, c.next, nil, 1+m.dice.IntN(eventsAtATime))
	if errors.Is(err, event.ErrAhead) { // the datastore was put back
		*c = newConsumer()
		return true, nil
	}
	if !m.assert(feedTellsAll, err == nil, "", "the feed after event %d: %v", c.next, err) {
		return false, err
	}
	for _, e := range events {
		m.take(on, e)
	}
	c.next = next
	return next > before, nil
}

// take holds an event against what its seller's journal has next.
func (m *market) take(on *instance, e event.Event) {
	c := &m.consumer
	m.assert(feedTellsAll, e.Number == c.next+1, e.Owner, "event %d follows on event %d", e.Number, c.next)
	c.next = e.Number
	if e.Type == event.SellerRegistered {
		m.assert(feedTellsAll, !c.registered[e.Owner], e.Owner, "%s registered again, says event %d", e.Owner, e.Number)
		c.registered[e.Owner] = true
		return
	}
	m.assert(feedTellsAll, c.registered[e.Owner], e.Owner, "event %d (%s) is of %s, who has not registered", e.Number, e.Type, e.Owner)
	m.follow(on, e.Owner)
	m.checkFailureMail(e)
	expected, n := m.model.journal(e.Owner).events, c.taken[e.Owner]
	c.taken[e.Owner]++
	if m.assert(feedTellsAll, n < len(expected), e.Owner, "event %d is %s, entry %d of %s, and the journal has no more to tell", e.Number, e.Type, e.Entry, e.Owner) {
		m.assert(feedTellsAll, expected[n] == e.Queued, e.Owner, "event %d is %s, entry %d of %s, and the next that the journal tells is %s, entry %d",
			e.Number, e.Type, e.Entry, e.Owner, expected[n].Type, expected[n].Entry)
	}
}

// checkFeedOf reads the events of one type to the end of the feed, which the consumer has read.
func (m *market) checkFeedOf(on *instance, t event.Type) {
	want, got, after := 0, 0, int64(0)
	for _, s := range m.sellers {
		for _, e := range m.model.journal(s.id).events {
			want += btoi(e.Type == t)
		}
	}
	for more := true; more && m.violation == nil; {
		events, next, err := on.events.After(m.ctx, after, []event.Type{t}, 3)
		for _, e := range events {
			m.assert(feedTellsAll, e.Type == t && e.Number > after && e.Number <= next, e.Owner, "of the events %s behind %d, the feed tells number %d, %s, and is read on from %d", t, after, e.Number, e.Type, next)
		}
		m.assert(feedTellsAll, err == nil, "", "the events %s after %d: %v", t, after, err)
		got += len(events)
		more, after = next > after, next
	}
	m.assert(feedTellsAll, m.violation != nil || got == want && after == m.consumer.next, "", "the journals tell %d events %s, and the feed %d; it is read on from %d, and its last event is %d", want, t, got, after, m.consumer.next)
}

// checkFeed has all events numbered and read, and wants every one of them.
func (m *market) checkFeed(on *instance) {
	for n := -1; n != 0 && m.violation == nil; {
		var err error
		n, err = m.number(on)
		m.assert(datastoreReadable, err == nil, "", "number events: %v", err)
	}
	for more := true; more && m.violation == nil; {
		more, _ = m.followPage(on)
	}
	_, _, err := on.events.After(m.ctx, m.consumer.next+1, nil, 1)
	m.assert(feedTellsAll, m.violation != nil || errors.Is(err, event.ErrAhead), "", "the last event is %d, and who has read further is answered with %v", m.consumer.next, err)
	for _, s := range m.sellers {
		m.follow(on, s.id)
		expected, taken := len(m.model.journal(s.id).events), m.consumer.taken[s.id]
		m.assert(feedTellsAll, taken == expected && m.consumer.registered[s.id], s.id, "the journal of %s tells %d events, and the feed has %d", s.id, expected, taken)
	}
}
