package reconcile_test

import (
	"context"
	"testing"
	"time"

	"bursar/internal/gateway/sandbox"
	"bursar/internal/reconcile"
)

// losing is a store whose lease another instance has, at one of the times when it is asked for.
type losing struct {
	reconcile.Store
	lostAt, asked int
}

func (l *losing) AcquireLease(ctx context.Context, holder string, now, until time.Time) (bool, error) {
	if l.asked++; l.asked == l.lostAt {
		return false, nil
	}
	return l.Store.AcquireLease(ctx, holder, now, until)
}

// An instance that has lost its lease stops at once, wherever it is: another one compares the same days.
func TestReconcile_LeaseLost_Stops(t *testing.T) {
	w := newFixture(t)
	for _, last4 := range []string{"1234", "0003"} {
		w.pay(last4, 10_000)
	}
	w.later(time.Minute)
	hand := "payout"
	w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(7_000)), Entity: &hand})
	w.goTo(3, 4)
	lease := &losing{Store: w.options.Store}
	w.options.Store = lease
	service := w.instance()
	p, err := service.Period("2026-11-02", "2026-11-03")
	w.must(err)
	for lease.lostAt = 1; ; lease.lostAt++ {
		lease.asked = 0
		_, err := service.Reconcile(t.Context(), p, true)
		if lease.asked < lease.lostAt { // it was never lost
			if err != nil || lease.lostAt < 5 {
				t.Errorf("the lease is asked for %d times, %v", lease.asked, err)
			}
			break
		}
		if err == nil || lease.asked > lease.lostAt {
			t.Errorf("lost at the time %d, it is asked for %d times: %v", lease.lostAt, lease.asked, err)
		}
	}
}
