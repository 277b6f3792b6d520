package retry_test

import (
	"testing"
	"time"

	"bursar/internal/retry"
)

func TestBackoff(t *testing.T) {
	for tries, want := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 7: time.Minute, 1000: time.Minute,
	} {
		if got := retry.Backoff(tries, time.Second, time.Minute); got != want {
			t.Errorf("after %d tries: %s, want %s", tries, got, want)
		}
	}
}

func TestJitter(t *testing.T) {
	least, most := time.Hour, time.Duration(0)
	for range 10_000 {
		got := retry.Jitter(time.Minute)
		least, most = min(least, got), max(most, got)
	}
	if least < 48*time.Second || least > 49*time.Second || most > 72*time.Second || most < 71*time.Second {
		t.Errorf("a minute becomes %s to %s", least, most)
	}
	if got := retry.Jitter(0); got != 0 {
		t.Errorf("no wait becomes %s", got)
	}
}
