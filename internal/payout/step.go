package payout

import (
	"context"
	"errors"

	"bursar/internal/gateway"
)

// LeaseDue leases up to limit payouts whose next step is due. The lease of a worker that dies expires, and another
// worker takes the step. Nothing is due before [Service.ReconcileStartup] has succeeded.
func (s *Service) LeaseDue(ctx context.Context, limit int) ([]ID, error) {
	s.retryLost(ctx)
	if !s.StartupReconciled() {
		return nil, nil
	}
	var ids []ID
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		now := s.o.Now()
		ids, err = tx.LeaseDuePayouts(ctx, now, now.Add(s.o.Lease), limit)
		return err
	})
	return ids, err
}

// Step takes the next step of a payout. It talks to the gateway outside any transaction. The outcome is recorded by a
// compare-and-set, so a step that runs twice, or at the same time as another, changes nothing twice.
func (s *Service) Step(ctx context.Context, id ID) error {
	p, err := s.o.Store.Payout(ctx, id)
	if err != nil {
		return err
	}
	g, err := s.gatewayOf(p)
	if err != nil {
		return s.withoutGateway(ctx, p)
	}
	err = s.nextStep(ctx, g, p)
	if isTampered(err) && p.State != Waiting {
		postponed := s.changeFrom(ctx, p.ID, p.State, func(now *Payout) {
			now.setNextPoll(p, s.o.Now().Add(s.o.Jitter(troubleWait)))
		})
		err = errors.Join(err, s.recordDiscrepancy(ctx, p.ID, errors.New(TamperedNote)), postponed)
	}
	return err
}

func (s *Service) nextStep(ctx context.Context, g gateway.Gateway, p Payout) error {
	switch p.State {
	case Waiting:
		return s.submit(ctx, g, p)
	case Submitting:
		return s.reclaim(ctx, g, p)
	case Unknown, ManualReview:
		return s.resolve(ctx, g, p)
	case Submitted, Completed:
		return s.poll(ctx, g, p)
	default:
		return s.finalCheck(ctx, p)
	}
}
