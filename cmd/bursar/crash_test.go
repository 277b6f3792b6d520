package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The size of the crash: a few kills while payouts are asked for and paid, some hundreds in all.
const (
	crashKills   = 4
	crashCallers = 8
)

// TestNothingIsLostOrPaidTwiceThroughCrashes asks for payouts from many callers at once, who repeat
// what was not answered, while instances are killed at random moments, and with them the sandbox. In
// the end every payout that was asked for is there, has come to its end, and moved money once.
func TestNothingIsLostOrPaidTwiceThroughCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	t.Run("SQLite", func(t *testing.T) { crash(t, shopOnSQLite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { crash(t, shopOnPostgres(t, 3)) })
}

func crash(t *testing.T, s *shop) {
	t.Helper()
	s.start(t)
	s.open(t)
	s.ask(t, crashCallers, func() string { return s.any().api })
	for n := range crashKills {
		time.Sleep(time.Duration(300+rand.IntN(1200)) * time.Millisecond)
		victim := s.instances[n%len(s.instances)] // the first one brings the sandbox up
		victim.kill(t)
		victim.start(t)
	}
	s.close(t)
	for _, i := range s.instances {
		i.kill(t)
	}
	s.endWaits(t, "waiting", "submitting", "submitted", "unknown")
	s.start(t)
	s.settle(t)
	s.check(t)
	for _, i := range s.instances {
		i.stop(t)
	}
}
