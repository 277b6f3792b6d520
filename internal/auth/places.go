package auth

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Limits of the places.
const (
	// placesPerSource keeps the attempts of one source that are under way below the burst of its bucket: right
	// passwords that come all at once are not refused.
	placesPerSource = 6
	// placesPerProcessor is above one, so that processors hash while other attempts wait for the database.
	placesPerProcessor = 4
	// maxWaiting is how many may wait in each line. All of them together are served within the time of a request.
	maxWaiting = 256
	busyRetry  = 2 * time.Second
)

// source is who competes with others for a place: an address, or a device that an account knows.
type source struct {
	known bool
	name  string
}

// places bounds how many attempts at passwords are under way, and shares the places fairly. Sources take turns,
// so a flood from one address makes others wait for one attempt of it and not for all. Known devices have a line
// of their own, which takes turns with the line of all others.
type places struct {
	mu    sync.Mutex
	free  int
	taken map[source]int
	lines [2]line
	next  int // the line whose turn it is
}

// line is those who wait, by source, in the order of their turns.
type line struct {
	turns   []*waiters
	waiting int
}

// waiters of one source, the first first.
type waiters struct {
	source  source
	tickets []*ticket
}

// ticket is one who waits. Exactly one value is sent: whether a place was given.
type ticket struct{ given chan bool }

func newPlaces(n int) *places { return &places{free: n, taken: map[source]int{}} }

// errNoPlace is the answer to a source that has as many waiting as it may: it is the source that has to slow down.
func errNoPlace() error { return throttled(busyRetry) }

// enter waits for a place, which is taken until leave is called. It fails with [ErrThrottled] when too many of the
// source wait, and with [ErrBusy] when too many sources wait or ctx ends.
func (p *places) enter(ctx context.Context, from source) (leave func(), err error) {
	t := &ticket{make(chan bool, 1)}
	if err := p.join(from, t); err != nil {
		return nil, err
	}
	select {
	case given := <-t.given:
		if !given {
			return nil, errNoPlace()
		}
		return func() { p.leave(from) }, nil
	case <-ctx.Done():
	}
	p.drop(from, t)
	select {
	case given := <-t.given: // the answer came just before
		if given {
			p.leave(from)
		}
	default:
	}
	return nil, ErrBusy.After(busyRetry).Because(context.Cause(ctx))
}

func (p *places) leave(from source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	if p.taken[from]--; p.taken[from] == 0 {
		delete(p.taken, from)
	}
	p.serve()
}

func (p *places) lineOf(from source) *line {
	if from.known {
		return &p.lines[0]
	}
	return &p.lines[1]
}

// join puts a ticket into its line. When the line is full, the source that waits most gives up its newest ticket
// to a source that waits less.
func (p *places) join(from source, t *ticket) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lineOf(from)
	own := l.of(from)
	if l.waiting == maxWaiting {
		most := slices.MaxFunc(l.turns, func(a, b *waiters) int { return cmp.Compare(len(a.tickets), len(b.tickets)) })
		last := len(most.tickets) - 1
		switch {
		case last > len(own.tickets):
		case len(own.tickets) > 0:
			return errNoPlace()
		default:
			return ErrBusy.After(busyRetry)
		}
		most.tickets[last].given <- false
		most.tickets = most.tickets[:last]
		l.waiting--
	}
	if len(own.tickets) == 0 {
		l.turns = append(l.turns, own)
	}
	own.tickets = append(own.tickets, t)
	l.waiting++
	p.serve()
	return nil
}

// of finds the waiters of a source; they are empty, and have no turn, where there are none.
func (l *line) of(from source) *waiters {
	for _, w := range l.turns {
		if w.source == from {
			return w
		}
	}
	return &waiters{source: from}
}

// serve gives free places to those whose turn it is.
func (p *places) serve() {
	for passed := 0; p.free > 0 && passed < len(p.lines); {
		l := &p.lines[p.next]
		p.next = (p.next + 1) % len(p.lines)
		if p.serveOne(l) {
			passed = 0
		} else {
			passed++
		}
	}
}

// serveOne gives a place to the first source of a line that may have one more, and reports whether there is such a source.
func (p *places) serveOne(l *line) bool {
	for i, w := range l.turns {
		if p.taken[w.source] >= placesPerSource {
			continue
		}
		p.taken[w.source]++
		p.free--
		w.tickets[0].given <- true
		w.tickets = w.tickets[1:]
		l.waiting--
		l.turns = slices.Delete(l.turns, i, i+1)
		if len(w.tickets) > 0 {
			l.turns = append(l.turns, w)
		}
		return true
	}
	return false
}

// drop takes a ticket out of its line, if it is still there.
func (p *places) drop(from source, t *ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lineOf(from)
	w := l.of(from)
	i := slices.Index(w.tickets, t)
	if i < 0 {
		return
	}
	w.tickets = slices.Delete(w.tickets, i, i+1)
	l.waiting--
	if len(w.tickets) == 0 {
		l.turns = slices.DeleteFunc(l.turns, func(other *waiters) bool { return other == w })
	}
}
