package payout

import (
	"context"

	"bursar/internal/gateway"
)

// Notify records a gateway's notification about a payout. Its content is not trusted: it only makes the next poll due now.
// A repeated notification, and one about an unknown payout, is ignored.
func (s *Service) Notify(ctx context.Context, at gateway.Name, eventID string, id ID) error {
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		now := s.o.Now()
		isNew, err := tx.SaveEvent(ctx, at, eventID, now)
		if err != nil || !isNew {
			return err
		}
		_, err = tx.ReschedulePayout(ctx, id, now)
		return err
	})
}

// PollNow makes the next poll of a payout due now, and reports whether it is one that is polled. It is for a caller that has
// reason to think that there is a change. Only the gateway's answer decides.
func (s *Service) PollNow(ctx context.Context, id ID) (rescheduled bool, err error) {
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		rescheduled, err = tx.ReschedulePayout(ctx, id, s.o.Now())
		return err
	})
	return rescheduled, err
}
