package sandbox

import (
	"context"
	"time"
)

// Simulations have a clock of their own, and take the sandbox's steps themselves in place of [Sandbox.Run].

// NextDue is when something is next to happen by itself: a step of a payout or of a validation, or the
// delivery of a webhook. It is zero for never.
func (s *Sandbox) NextDue() (time.Time, error) {
	if s.funded.Load() {
		return s.o.Now(), nil
	}
	var due *int64
	err := s.records.row(`SELECT min(due) FROM (
		SELECT min(due_at) AS due FROM payouts WHERE due_at IS NOT NULL
		UNION ALL SELECT min(due_at) FROM validations WHERE due_at IS NOT NULL
		UNION ALL SELECT min(due_at) FROM events WHERE due_at IS NOT NULL)`).Scan(&due)
	if err != nil || due == nil {
		return time.Time{}, err
	}
	return time.UnixMicro(*due), nil
}

// TakeSteps lets happen what is due, a batch at most, and delivers the webhooks that are due after it, one
// after another.
func (s *Sandbox) TakeSteps(ctx context.Context) error {
	if err := s.settleDue(); err != nil {
		return err
	}
	events, err := s.leaseEvents()
	for _, e := range events {
		s.deliver(ctx, e)
	}
	return err
}
