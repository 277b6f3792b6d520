package payout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bursar/internal/gateway"
)

// poll asks the gateway for the state of a transfer.
func (s *Service) poll(ctx context.Context, g gateway.Gateway, seen Payout) error {
	report, err := g.Fetch(ctx, seen.GatewayID)
	if err == nil {
		_, err := s.applyReport(ctx, seen, report)
		return err
	}
	_, again := s.change(context.WithoutCancel(ctx), seen.ID, func(p *Payout) error {
		if p.State != seen.State {
			return errRaced
		}
		p.Tries++
		now := s.o.Now()
		most := p.pollMost(now)
		if p.State == Completed {
			most = endedMost
		}
		due := now.Add(s.jitter(backoff(p.Tries, pollBase, most)))
		if errors.Is(err, gateway.ErrUnknownTransfer) && p.State == Completed && !now.Before(s.o.Arrival.FinalCheckUntil(p.CompletedAt)) {
			due = time.Time{} // the gateway forgot it, and a discrepancy is recorded
		}
		p.setNextPoll(seen, due)
		return nil
	})
	// Even "no such payout" proves nothing about money that the gateway has taken on before.
	if errors.Is(err, gateway.ErrUnknownTransfer) && seen.Tries >= triesForgotten {
		forgotten := fmt.Errorf("it knows no transfer %s any more, which it had", seen.GatewayID)
		again = errors.Join(again, s.recordDiscrepancy(ctx, seen.ID, forgotten))
	}
	return errors.Join(again, fmt.Errorf("ask the gateway about payout %s: %w", seen.ID, err))
}

// Waits between polls. Webhooks report most changes sooner; polling finds the changes that no webhook reports.
const (
	pollBase = 2 * time.Second
	// pollMostEarly and pollMostLate bound the waits of payouts that are under way, see [Payout.pollMost].
	pollMostEarly = 15 * time.Minute
	pollMostLate  = 2 * time.Hour
	// endedMost bounds the waits of payouts that have ended while the gateway answers nothing: there are many.
	endedMost = 4 * time.Hour
	// triesForgotten is the number of polls, about half an hour, after which a transfer that the gateway no longer
	// knows becomes a discrepancy.
	triesForgotten = 10
)

// pollMost bounds the wait before the next poll of a payout under way: a change is seen at most a quarter of an hour late,
// or an eighth of the time that the payout has taken so far.
func (p *Payout) pollMost(now time.Time) time.Duration {
	if p.SentAt.IsZero() {
		return pollMostEarly
	}
	return min(max(now.Sub(p.SentAt)/8, pollMostEarly), pollMostLate)
}

// finalCheck polls a payout that ended unpaid and that a gateway may have, see mayBeAtGateway, or about which a notification
// came after its end. The answer can't change the payout any more, but a transfer that was paid all the same is a discrepancy.
func (s *Service) finalCheck(ctx context.Context, seen Payout) error {
	report, err := s.lookUp(ctx, seen)
	if err == nil {
		_, err := s.applyReport(ctx, seen, report)
		return err
	}
	notOffered := errors.Is(err, gateway.ErrNotOffered)
	_, again := s.change(context.WithoutCancel(ctx), seen.ID, func(p *Payout) error {
		now := s.o.Now()
		p.Tries++
		due := s.nextPollAt(*p, now)
		if notOffered { // nothing will ever be found
			due = time.Time{}
		} else if !errors.Is(err, gateway.ErrUnknownTransfer) {
			due = now.Add(s.jitter(backoff(p.Tries, pollBase, endedMost)))
		}
		p.setNextPoll(seen, due)
		return nil
	})
	if notOffered || errors.Is(err, gateway.ErrUnknownTransfer) {
		return again
	}
	return errors.Join(again, err)
}

// setNextPoll sets when the payout is polled next, unless a notification made it due after seen was read.
func (p *Payout) setNextPoll(seen Payout, due time.Time) {
	if p.DueAt.IsZero() || !p.DueAt.Before(seen.DueAt) {
		p.DueAt = due
	}
}

// Waits between final checks of a payout that has ended, the last one repeated. Banks return most payments soon, and
// [Service.PollReversals] asks for all returns at once. These checks also find returns that no list shows, and gateways
// that change a final state. A payout that an admin refunded is the likeliest to turn up as paid.
var (
	paidWaits     = []time.Duration{20 * time.Second, 5 * time.Minute, time.Hour, 24 * time.Hour}
	refundedWaits = []time.Duration{20 * time.Second, 5 * time.Minute, time.Hour, 6 * time.Hour}
)

// backoff doubles base with each try after the first, up to most.
func backoff(tries int, base, most time.Duration) time.Duration {
	return min(base<<min(max(tries-1, 0), 20), most)
}

// nextPollAt is when to poll the gateway next. Soon while the gateway is at work or the UTR is missing. Rarely while the bank may
// still return the money, or the gateway may still report a failed payout as paid. Zero after that, and for a payout that ended
// unpaid and has a discrepancy.
func (s *Service) nextPollAt(p Payout, now time.Time) time.Time {
	switch {
	case p.State == Completed && !now.Before(s.o.Arrival.FinalCheckUntil(p.CompletedAt)):
		return time.Time{}
	case p.State == Completed && p.UTR != "":
		waits := paidWaits
		if g, err := s.gatewayOf(p); err == nil && !g.Capabilities().List { // no list of returns says when to look
			waits = refundedWaits
		}
		next := now.Add(s.jitter(waits[min(p.Tries, len(waits)-1)]))
		if last := s.o.Arrival.FinalCheckUntil(p.CompletedAt); next.After(last) {
			return last
		}
		return next
	case p.State == Completed || p.Status() == StatusProcessing:
		return now.Add(s.jitter(backoff(p.Tries+1, pollBase, p.pollMost(now))))
	case !p.endedUnpaid() || !p.mayBeAtGateway() || p.Discrepancy != "" || !now.Before(s.o.Arrival.FinalCheckUntil(p.EndedAt)):
		return time.Time{}
	case p.Refunded():
		return now.Add(s.jitter(refundedWaits[min(p.Tries, len(refundedWaits)-1)]))
	default:
		return now.Add(s.jitter(paidWaits[min(p.Tries, len(paidWaits)-1)]))
	}
}

// mayBeAtGateway reports whether a gateway may have the payout: it was sent, or found there after the database was restored.
func (p Payout) mayBeAtGateway() bool { return !p.SentAt.IsZero() || p.GatewayID != "" }

// endedUnpaid reports whether the seller has the money back without the bank ever having had it.
func (p Payout) endedUnpaid() bool { return p.State == Failed || p.State == Cancelled }

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
