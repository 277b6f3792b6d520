package simulate

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"
)

// All chance in a market is drawn from its seed, one draw after another.

// reader gives random bytes to what makes identifiers.
type reader struct{ dice *rand.Rand }

func (r reader) Read(p []byte) (int, error) {
	var word [8]byte
	for i := 0; i < len(p); i += len(word) {
		binary.LittleEndian.PutUint64(word[:], r.dice.Uint64())
		copy(p[i:], word[:])
	}
	return len(p), nil
}

// chance comes true n times of a thousand.
func (m *market) chance(n int) bool { return m.dice.IntN(1000) < n }

// between is a duration from least up to most.
func (m *market) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(m.dice.Int64N(int64(most-least)))
}

// around is a duration of which many come on the average one mean apart, as rare events do.
func (m *market) around(mean time.Duration) time.Duration {
	return time.Duration(min(-math.Log(1-m.dice.Float64()), 8) * float64(mean))
}

// jitter spreads a wait by up to a fifth either way, as the services do.
func (m *market) jitter(d time.Duration) time.Duration {
	return d - d/5 + time.Duration(m.dice.Int64N(int64(2*d/5+1)))
}

// one draws one of several.
func one[T any](m *market, of []T) T { return of[m.dice.IntN(len(of))] }
