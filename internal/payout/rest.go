package payout

import (
	"sync"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/retry"
)

// mostRest bounds how long no order is begun at a gateway that could not be reached.
const mostRest = time.Minute

// rests are the gateways that an order could not be sent to a moment ago. While one rests, this process begins no order there: each would cost two entries of
// its seller's journal, and most would not leave either.
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

// note notes whether an order could be sent to a gateway.
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
	failures := r.of[at].failures + 1
	r.of[at] = rest{failures, now.Add(retry.Backoff(failures, time.Second, mostRest))}
}
