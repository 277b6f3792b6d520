package payout_test

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"
)

// luck is what the services draw: the same in each market, so that its seed alone repeats a walk.
type luck struct {
	drawing sync.Mutex // services work beside each other
	dice    *rand.ChaCha8
}

func newLuck() *luck { return &luck{dice: rand.NewChaCha8([32]byte{})} }

func (l *luck) Read(p []byte) (int, error) {
	l.drawing.Lock()
	defer l.drawing.Unlock()
	return l.dice.Read(p)
}

// jitter spreads a wait by up to a fifth either way, as the service does itself.
func (l *luck) jitter(d time.Duration) time.Duration {
	l.drawing.Lock()
	defer l.drawing.Unlock()
	return d - d/5 + time.Duration(l.dice.Uint64()%uint64(2*d/5+1))
}

// seeded has rapid begin with a seed, unless it was given one: what the tests say of a commit is the same each
// time. To look further, give it others, as CONTRIBUTING.md says.
func seeded(t *testing.T, seed uint64, check func()) {
	t.Helper()
	const name, chance = "rapid.seed", "0"
	if flag.Lookup(name).Value.String() == chance {
		if err := flag.Set(name, strconv.FormatUint(seed, 10)); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = flag.Set(name, chance) }()
	}
	check()
}
