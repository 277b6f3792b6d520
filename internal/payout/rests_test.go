package payout

import (
	"testing"
	"time"
)

// Six orders are under way when the gateway can't be reached for an instant: it rests for a second. It rests longer while that goes on, and a failure of
// the next day is the first again. A rest that a clock ahead began is none.
func TestRests(t *testing.T) {
	var r rests
	now := time.Now()
	fail := func(want time.Duration) {
		t.Helper()
		for range 6 {
			r.note("g", false, now)
		}
		if left := r.left("g", now); left != want {
			t.Errorf("it rests for %s, want %s", left, want)
		}
		now = now.Add(want)
	}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, mostRest, mostRest} {
		fail(want)
	}
	now = now.Add(24 * time.Hour)
	fail(time.Second)
	fail(2 * time.Second)
	r.note("g", false, now)
	if r.note("g", true, now); r.left("g", now) > 0 {
		t.Error("it was reached, and rests")
	}
	if r.note("g", false, now.Add(24*time.Hour)); r.left("g", now) > 0 {
		t.Error("it rests by a clock that was ahead")
	}
	fail(time.Second)
}
