package payout

import (
	"sync"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/retry"
)

// mostRest bounds a rest. The next order that is begun ends it, or begins another one.
const mostRest = 15 * time.Second

// rests are the gateways that could not be reached a moment ago. While one rests, this process begins no order there: each would cost two entries of
// its seller's journal, and would not leave either.
type rests struct {
	sync.Mutex
	of map[gateway.Name]rest
}

type rest struct {
	failures int
	until    time.Time
}

// left is how long a gateway still rests. A rest longer than any was made by a clock that was ahead.
func (r *rests) left(at gateway.Name, now time.Time) time.Duration {
	r.Lock()
	defer r.Unlock()
	if left := r.of[at].until.Sub(now); left <= mostRest {
		return max(left, 0)
	}
	return 0
}

// note notes whether a gateway could be reached with an order. Orders that were begun together and fail together count once, and a failure long after the rest
// before it is the first again.
func (r *rests) note(at gateway.Name, isSent bool, now time.Time) {
	r.Lock()
	defer r.Unlock()
	if isSent {
		delete(r.of, at)
		return
	}
	if r.of == nil {
		r.of = map[gateway.Name]rest{}
	}
	last := r.of[at]
	switch since := now.Sub(last.until); {
	case since.Abs() > mostRest:
		last.failures = 0
	case since < 0:
		return
	}
	last.failures++
	last.until = now.Add(retry.Backoff(last.failures, time.Second, mostRest))
	r.of[at] = last
}
