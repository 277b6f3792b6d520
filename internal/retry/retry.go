// Package retry has how long to wait before something is tried again.
package retry

import (
	"math/rand/v2"
	"time"
)

// Backoff doubles base with each try after the first, up to most.
func Backoff[N int | int64](tries N, base, most time.Duration) time.Duration {
	return min(base<<min(max(tries-1, 0), 20), most)
}

// Jitter spreads a wait by up to a fifth either way, so that what failed together does not come back together.
func Jitter(wait time.Duration) time.Duration { return wait - wait/5 + rand.N(2*wait/5+1) }
