package payout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/retry"
)

// poll asks the gateway for the state of a transfer.
func (s *Service) poll(ctx context.Context, g gateway.Gateway, seen Payout) error {
	report, err := g.Fetch(ctx, seen.GatewayID)
	if errors.Is(err, gateway.ErrUnknownTransfer) && seen.Tries >= triesForgotten {
		if other, isFound := s.findByReference(ctx, g, seen); isFound {
			seen.GatewayID, report, err = other.GatewayID, other, nil
		}
	}
	if err == nil {
		return s.applyReport(ctx, seen, report)
	}
	if errors.Is(err, gateway.ErrUnknownTransfer) { // perhaps the row names another gateway than it did
		if _, tampered := check(ctx, s.o.Store, seen); isTampered(tampered) && !s.hasMovedOn(ctx, seen) {
			err = errors.Join(err, s.recordDiscrepancy(ctx, seen.ID, errors.New(TamperedNote)))
		}
	}
	isLast := false
	_, again := s.change(context.WithoutCancel(ctx), seen.ID, func(p *Payout) error {
		isLast = false
		if p.State != seen.State {
			return errLeave
		}
		p.Tries++
		now := s.o.Now()
		most := p.maxPollWait(now)
		if p.State == Completed {
			most = maxPollEnded
		}
		due := now.Add(s.o.Jitter(retry.Backoff(p.Tries, pollBase, most)))
		if errors.Is(err, gateway.ErrUnknownTransfer) && p.State == Completed && !now.Before(s.o.Arrival.FinalCheckUntil(p.CompletedAt)) {
			isLast, due = true, time.Time{} // the gateway forgot it
		}
		p.setNextPoll(seen, due)
		return nil
	})
	// Even "no such payout" proves nothing about money that the gateway has taken on before.
	if errors.Is(err, gateway.ErrUnknownTransfer) && (isLast || seen.Tries >= triesForgotten) {
		again = errors.Join(again, s.recordForgotten(ctx, seen))
	}
	return errors.Join(again, fmt.Errorf("ask the gateway about payout %s: %w", seen.ID, err))
}

// findByReference looks for the transfer of a payout under way by our reference, where the gateway knows none with the id that it gave
// when it took the order. If that transfer is what was ordered and is paid, the payout has its id from now on, and a discrepancy says so.
// Of one that is not paid nothing is believed: its failure would refund what the transfer with the first id may have paid.
func (s *Service) findByReference(ctx context.Context, g gateway.Gateway, seen Payout) (r gateway.Report, isFound bool) {
	if seen.State != Submitted || !g.Capabilities().Lookup {
		return r, false
	}
	r, err := g.Find(ctx, string(seen.ID))
	if err != nil || r.Reference != string(seen.ID) || reportMismatch(r, seen, s.o.Currency) != nil {
		return r, false
	}
	if reportedState(r, seen.State) != Completed {
		return r, false
	}
	discrepancy := fmt.Errorf("it gave the transfer %s for this payout, and knows it as %s", seen.GatewayID, r.GatewayID)
	_, err = s.change(context.WithoutCancel(ctx), seen.ID, func(p *Payout) error {
		isFound = p.GatewayID == r.GatewayID && seen.GatewayID != r.GatewayID // another worker has found it
		if p.State != seen.State || p.GatewayID != seen.GatewayID || p.GatewayID == r.GatewayID {
			return errLeave
		}
		isFound, p.GatewayID, p.Discrepancy = true, r.GatewayID, discrepancy.Error()
		return nil
	})
	if isFound && err == nil {
		s.logDiscrepancy(ctx, seen.ID, discrepancy)
	}
	return r, isFound && err == nil
}

// recordForgotten records that the gateway does not know a transfer any more, unless the payout has another one by now.
func (s *Service) recordForgotten(ctx context.Context, seen Payout) error {
	discrepancy := forgotten(seen.GatewayID)
	isNew, err := s.change(context.WithoutCancel(ctx), seen.ID, func(p *Payout) error {
		if p.Discrepancy != "" || p.GatewayID != seen.GatewayID {
			return errLeave
		}
		p.Discrepancy = discrepancy.Error()
		return nil
	})
	if isNew {
		s.logDiscrepancy(ctx, seen.ID, discrepancy)
	}
	return err
}

// forgotten is the discrepancy of a transfer that the gateway had and does not know any more.
func forgotten(gatewayID string) error {
	return fmt.Errorf("it knows no transfer %s any more, which it had", gatewayID)
}

// finalCheck polls a payout that ended unpaid and that a gateway may have, see mayBeAtGateway, or about which a notification
// came after its end, which may be a return. The answer can't change the payout any more, but a transfer that was paid all the same is a discrepancy.
func (s *Service) finalCheck(ctx context.Context, seen Payout) error {
	report, err := s.lookUp(ctx, seen)
	if err == nil {
		return s.applyReport(ctx, seen, report)
	}
	notOffered := errors.Is(err, gateway.ErrNotOffered)
	_, again := s.change(context.WithoutCancel(ctx), seen.ID, func(p *Payout) error {
		now := s.o.Now()
		p.Tries++
		due := s.nextPollAt(*p, now)
		if notOffered { // nothing will ever be found
			due = time.Time{}
		} else if !errors.Is(err, gateway.ErrUnknownTransfer) && !errors.Is(err, gateway.ErrManyTransfers) {
			due = now.Add(s.o.Jitter(retry.Backoff(p.Tries, pollBase, maxPollEnded)))
		}
		p.setNextPoll(seen, due)
		return nil
	})
	if notOffered || errors.Is(err, gateway.ErrUnknownTransfer) {
		return again
	}
	return errors.Join(again, err)
}
