package payout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bursar/internal/bank"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
)

// unknownWaits are the waits between lookups of an unknown payout, the last one repeated. The first attempt only looks it
// up. The second may resend, soon, because most lost answers are lost on the way and not at the gateway.
var unknownWaits = []time.Duration{
	2 * time.Second, 15 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour,
}

// reclaim resolves an order whose worker is gone: its lease expired. The lease lasts longer than an order takes to arrive, so
// the first attempt may already resend it.
func (s *Service) reclaim(ctx context.Context, g gateway.Gateway, p Payout) error {
	taken, err := s.change(ctx, p.ID, func(p *Payout) error {
		if p.State != Submitting {
			return errLeave
		}
		p.State, p.Tries = Unknown, 1
		p.clearNoGateway()
		return nil
	})
	if err != nil || !taken {
		return err
	}
	p.State, p.Tries = Unknown, 1
	return s.resolve(ctx, g, p)
}

// resolve finds out what became of an order whose answer is missing. It looks the order up by our reference. If the gateway
// does not know it, resolve sends the same order again under the same key. Once the key has expired, the payout goes to
// manual review and is only looked up. A gateway without lookup gets the order again at once, while the key lives.
func (s *Service) resolve(ctx context.Context, g gateway.Gateway, p Payout) error {
	report, err := s.lookUp(ctx, p)
	if err == nil {
		return s.applyReport(ctx, p, report)
	}
	notFound := errors.Is(err, gateway.ErrUnknownTransfer) || errors.Is(err, gateway.ErrNotOffered)
	if notFound && p.State == Unknown && p.Tries > 0 && mayResend(g, p, s.o.Now()) {
		if stopped, err := s.endIfBalanceNegative(ctx, p); stopped || err != nil {
			return err
		}
		return s.resend(ctx, g, p)
	}
	if errors.Is(err, gateway.ErrNotOffered) {
		return s.retryOrReview(ctx, g, p, p.Tries+1, 0)
	}
	return errors.Join(s.retryOrReview(ctx, g, p, p.Tries+1, 0), fmt.Errorf("payout %s is still unknown: %w", p.ID, err))
}

// resend sends the stored order again, unchanged. As with the first sending, the attempt is recorded before it is made, so a
// payout that has ended meanwhile is never sent, nor one whose seller's payouts are frozen or whose bank account is rejected by now. No
// refusal is final: the gateway may have taken the first order.
func (s *Service) resend(ctx context.Context, g gateway.Gateway, seen Payout) error {
	err := s.checkPayable(ctx, seen)
	if errors.Is(err, bank.ErrNotAccepted) {
		return s.retryOrReview(ctx, g, seen, seen.Tries+1, 0)
	}
	if err != nil {
		return err
	}
	var sent Payout
	isStopped := false
	claimedAt := s.o.Now()
	claimed, err := s.changeIn(ctx, ledger.Scope{Payout: string(seen.ID), ReadsPause: true}, ledger.ActorSystem, func(tx ChangeTx, p *Payout) error {
		isStopped = false
		if p.State != Unknown || p.Tries != seen.Tries || p.Gateway != g.Name() || !mayResend(g, *p, s.o.Now()) {
			return errLeave
		}
		why, err := s.checkToSend(ctx, tx, *p)
		isStopped = why != "" || errors.Is(err, bank.ErrNotAccepted)
		if isStopped {
			return errLeave
		}
		if err != nil {
			return err
		}
		p.Tries++
		p.DueAt = s.o.Now().Add(s.o.Lease).Truncate(time.Microsecond) // as it is stored, or it would seem rescheduled
		sent = *p
		return nil
	})
	if isStopped && err == nil {
		return s.retryOrReview(ctx, g, seen, seen.Tries+1, 0)
	}
	if err != nil || !claimed {
		return err
	}
	answer, err := s.sendClaimed(ctx, g, sent.ID, sent.OrderBody, claimedAt)
	if err != nil {
		return err
	}
	if answer.Outcome == gateway.Accepted {
		return s.applyReport(ctx, sent, answer.Report)
	}
	return errors.Join(s.retryOrReview(ctx, g, sent, sent.Tries, answer.RetryAfter),
		fmt.Errorf("payout %s was sent again and is still unknown: %s: %s", sent.ID, answer.ReasonCode, answer.Reason))
}

// checkPayable fails unless the bank account that the journal has of the payout may still be paid, and the newest entries of its
// seller are all there.
func (s *Service) checkPayable(ctx context.Context, seen Payout) error {
	entries, err := s.o.Store.EntriesAbout(ctx, seen.Seller, string(seen.ID))
	if err == nil && len(entries) == 0 {
		err = ledger.ErrTampered
	}
	if err != nil {
		return err
	}
	asked, err := Fold(seen.ID, entries)
	if err != nil {
		return err
	}
	return s.o.Beneficiaries.CheckPayable(ctx, asked.Seller, asked.BankAccountID, entries[0].Number)
}

// retryOrReview sets the next attempt after so many tries, or moves the payout to manual review when the key has expired.
func (s *Service) retryOrReview(ctx context.Context, g gateway.Gateway, seen Payout, tries int, atLeast time.Duration) error {
	_, err := s.change(context.WithoutCancel(ctx), seen.ID, func(p *Payout) error {
		if !p.isUnresolved() {
			return errLeave
		}
		now := s.o.Now()
		if p.State == ManualReview || !mayResend(g, *p, now) {
			p.review()
			p.setNextPoll(seen, now.Add(s.o.Jitter(reviewPollWait)))
			return nil
		}
		p.Tries = tries
		p.setNextPoll(seen, now.Add(max(atLeast, s.o.Jitter(waitAfter(unknownWaits, tries)))))
		return nil
	})
	return err
}

// reviewPollWait is the wait between polls of a payout in review: the gateway may still report it.
const reviewPollWait = 6 * time.Hour

// mayResend reports whether an order may be sent again at a time: the gateway still takes it for the same one. After
// that it could be paid twice. When an order was sent by a clock that was ahead, nobody knows.
func mayResend(g gateway.Gateway, p Payout, now time.Time) bool {
	return now.Before(p.SentAt.Add(g.Capabilities().ResendFor())) && !p.SentAt.After(now.Add(ClocksApart))
}
