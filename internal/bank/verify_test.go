package bank

import (
	"testing"
	"time"
)

// TestBackoff_Quadruples waits ten seconds after the first failure, four times as long after each other one, and at most three hours.
func TestBackoff_Quadruples(t *testing.T) {
	for tries, want := range map[int]time.Duration{
		0: 10 * time.Second, 1: 10 * time.Second, 2: 40 * time.Second, 3: 160 * time.Second, 6: 10240 * time.Second,
		7: 3 * time.Hour, maxTries: 3 * time.Hour, 100: 3 * time.Hour,
	} {
		if got := backoff(tries); got != want {
			t.Errorf("after %d failures the wait is %s, want %s", tries, got, want)
		}
	}
}
