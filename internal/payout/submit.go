package payout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/retry"
)

// submit stores the exact order, then sends it.
func (s *Service) submit(ctx context.Context, g gateway.Gateway, p Payout) error {
	if stopped, err := s.leaveStopped(ctx, p); stopped || err != nil {
		return err
	}
	sent, err := s.findIfSent(ctx, p)
	if err != nil {
		return errors.Join(s.requeue(ctx, p.ID, Waiting, 0), err)
	}
	if sent {
		return nil
	}
	entries, err := check(ctx, s.o.Store, p)
	if isTampered(err) && s.hasMovedOn(ctx, p) {
		return nil // the row changed after it was read; the next step tries again
	} else if isTampered(err) {
		return s.recordTampered(ctx, p, err)
	} else if err != nil {
		return errors.Join(s.requeue(ctx, p.ID, Waiting, 0), err)
	}
	if stopped, err := s.endIfBalanceNegative(ctx, p); stopped || err != nil {
		return err
	}
	if left := s.rests.left(g.Name(), s.o.Now()); left > 0 {
		return s.requeue(ctx, p.ID, Waiting, left)
	}
	body, err := s.order(ctx, g, p, entries[0].Number)
	switch refusal := fault.From(err); {
	case isTampered(err):
		return s.recordTampered(ctx, p, err)
	case refusal != nil && refusal.Kind == fault.Refused:
		return s.failWaiting(ctx, p, refusal)
	case err != nil:
		return errors.Join(s.requeue(ctx, p.ID, Waiting, 0), err)
	}
	claimedAt := s.o.Now()
	claimed, err := s.startSubmitting(ctx, p, body)
	if isTampered(err) {
		return s.recordTampered(ctx, p, err)
	}
	if errors.Is(err, bank.ErrNotAccepted) {
		return s.failWaiting(ctx, p, bank.ErrNotAccepted)
	}
	if err != nil || !claimed {
		return err
	}
	answer, err := s.sendClaimed(ctx, g, p.ID, body, claimedAt)
	if err != nil {
		return err
	}
	isReached := !answer.NotSent || answer.ReasonCode == gateway.ReasonRateLimited // by our own limit, which others have used up
	s.rests.note(g.Name(), isReached, s.o.Now())
	if answer.NotSent {
		return s.notSent(context.WithoutCancel(ctx), p, answer)
	}
	return s.recordSubmission(context.WithoutCancel(ctx), g, p.ID, answer)
}

// errLeaseOver means that an order was claimed and not sent.
var errLeaseOver = errors.New("payout: not sent, because the lease ran out after the order was claimed; the next step looks it up")

// sendClaimed sends an order that was claimed at a time. After the lease it sends nothing: the process stood still, as a suspended machine does,
// another worker may have sent the order, and the gateway may have forgotten its key.
func (s *Service) sendClaimed(ctx context.Context, g gateway.Gateway, id ID, body string, claimedAt time.Time) (gateway.Submission, error) {
	// Without Round the difference would be by Go's own clock, which stands still with the machine.
	if s.o.Now().Round(0).Sub(claimedAt.Round(0)) >= s.o.Lease {
		return gateway.Submission{}, errLeaseOver
	}
	return g.Submit(ctx, string(id), body), nil
}

// order makes the bank account known to the gateway, and returns the exact order that pays the payout there. requested is the number of
// the entry with which the payout began.
func (s *Service) order(ctx context.Context, g gateway.Gateway, p Payout, requested int64) (body string, err error) {
	beneficiary, err := s.o.Beneficiaries.Beneficiary(ctx, p.Seller, p.BankAccountID, g.Name(), requested)
	if err != nil {
		return "", fmt.Errorf("make the bank account known to the gateway: %w", err)
	}
	body, err = g.Prepare(gateway.Order{
		Reference:   string(p.ID),
		Beneficiary: beneficiary,
		Amount:      p.Net(),
		Currency:    s.o.Currency.Code(),
		Rail:        p.Rail,
		Seller:      p.Seller,
		Account:     string(p.BankAccountID),
		Gross:       p.Amount,
	})
	if err != nil {
		return "", fmt.Errorf("prepare the transfer: %w", err)
	}
	return body, nil
}

// startSubmitting moves a waiting payout to submitting, so it can no longer be cancelled, and reports whether this call won. After it
// the transfer may exist. It leaves the payout waiting in three cases: it can still be cancelled, because a cancellation does not ask
// the gateway then; payouts are frozen or paused, and an admin's freeze or pause waits for this transaction or comes first; or it was
// sent and rejected since seen was read, and the gateway was not asked about that sending.
func (s *Service) startSubmitting(ctx context.Context, seen Payout, body string) (bool, error) {
	claimed := false
	changed, err := s.changeIn(ctx, ledger.Scope{Payout: string(seen.ID), ReadsPause: true}, ledger.ActorSystem, func(tx ChangeTx, p *Payout) error {
		claimed = false
		if p.State != Waiting || !p.SentAt.Equal(seen.SentAt) {
			return errLeave
		}
		why, err := s.checkToSend(ctx, tx, *p)
		if err != nil {
			return err
		}
		if p.IsTampered() { // it was repaired
			p.Discrepancy = ""
		}
		if why != "" {
			s.markStopped(p, why)
			return nil
		}
		if wait := s.cancelWindowLeft(*p); wait > 0 {
			s.backToWaiting(p, wait)
			return nil
		}
		claimed = true
		p.clearNoGateway()
		p.clearStopped()
		now := s.o.Now()
		p.State, p.OrderBody, p.SentAt = Submitting, body, now // Tries goes on: being turned away again waits longer
		p.DueAt = now.Add(s.o.Lease)
		return nil
	})
	return changed && claimed, err
}

// recordSubmission records the answer to the first sending of an order. A refusal is final only here, because any earlier
// sending was rejected and looked up since, and only if the gateway knows no such transfer. If the gateway has no lookup,
// a refusal and a rejection both leave the outcome unknown: the gateway may have taken the order, and a resend under the
// same key is safe while the key lives.
func (s *Service) recordSubmission(ctx context.Context, g gateway.Gateway, id ID, a gateway.Submission) error {
	if !g.Capabilities().Lookup && a.Outcome != gateway.Accepted {
		a.Outcome = gateway.Unclear
	}
	switch a.Outcome {
	case gateway.Accepted:
		return s.applyReport(ctx, Payout{ID: id}, a.Report)
	case gateway.Refused:
		report, err := g.Find(ctx, string(id))
		switch {
		case err == nil:
			return s.applyReport(ctx, Payout{ID: id}, report)
		case errors.Is(err, gateway.ErrUnknownTransfer):
			return s.fail(ctx, id, a.ReasonCode, a.Reason)
		default:
			return errors.Join(s.markUnknown(ctx, id, a.RetryAfter), err)
		}
	case gateway.NotTaken:
		s.o.Logger.WarnContext(ctx, "gateway rejected request before processing",
			slog.String("payout_id", string(id)), slog.String("reason", a.ReasonCode), slog.String("detail", a.Reason))
		return s.requeue(ctx, id, Submitting, a.RetryAfter)
	default:
		s.o.Logger.WarnContext(ctx, "submission outcome unknown",
			slog.String("payout_id", string(id)), slog.String("reason", a.ReasonCode), slog.String("detail", a.Reason))
		return s.markUnknown(ctx, id, a.RetryAfter)
	}
}

// markUnknown records that the outcome of the first sending is unknown. The payout is looked up soon, or sent again where the
// gateway has no lookup, but not before the gateway lets us.
func (s *Service) markUnknown(ctx context.Context, id ID, atLeast time.Duration) error {
	return s.changeFrom(ctx, id, Submitting, func(p *Payout) {
		p.State, p.Tries = Unknown, 0
		p.DueAt = s.o.Now().Add(max(atLeast, s.o.Jitter(unknownWaits[0])))
	})
}

// fail ends a payout whose order was refused, if it is still submitting.
func (s *Service) fail(ctx context.Context, id ID, code, reason string) error {
	return s.changeFrom(ctx, id, Submitting, func(p *Payout) {
		p.ReasonCode, p.Reason = code, reason
		s.finish(p, Failed)
	})
}

// notSent moves a payout back to waiting whose order never left this process. seen is the payout before the sending.
func (s *Service) notSent(ctx context.Context, seen Payout, a gateway.Submission) error {
	s.o.Logger.WarnContext(ctx, "gateway not reached",
		slog.String("payout_id", string(seen.ID)), slog.String("reason", a.ReasonCode), slog.String("detail", a.Reason))
	return s.changeFrom(ctx, seen.ID, Submitting, func(p *Payout) {
		s.backToWaiting(p, 0)
		p.SentAt = seen.SentAt
	})
}

// requeue moves a payout back to waiting with back-off: one that was not sent (from Waiting) or that the gateway rejected
// (from Submitting). It can be cancelled again. SentAt stays, because a gateway may take an order that it rejects, so it
// is asked before the amount is refunded.
func (s *Service) requeue(ctx context.Context, id ID, from State, atLeast time.Duration) error {
	return s.changeFrom(ctx, id, from, func(p *Payout) { s.backToWaiting(p, atLeast) })
}

func (s *Service) backToWaiting(p *Payout, atLeast time.Duration) {
	p.Tries++
	p.State, p.OrderBody = Waiting, ""
	p.DueAt = s.o.Now().Add(max(atLeast, s.o.Jitter(retry.Backoff(p.Tries, time.Second, 5*time.Minute))))
}

// hasMovedOn reports whether a payout has changed since it was read.
func (s *Service) hasMovedOn(ctx context.Context, seen Payout) bool {
	now, err := s.o.Store.Payout(ctx, seen.ID)
	_, differs := ledger.Differs(seen, now)
	return err == nil && differs
}

// recordTampered records that a waiting payout was tampered with and does not send it. Its next step checks it again, in
// case the row was repaired.
func (s *Service) recordTampered(ctx context.Context, p Payout, why error) error {
	return errors.Join(s.recordDiscrepancy(ctx, p.ID, errors.New(TamperedNote)), s.requeue(ctx, p.ID, Waiting, 0), why)
}

// failWaiting fails a payout whose bank account the gateway never pays to, unless the gateway has it, or it was sent and rejected since
// seen was read.
func (s *Service) failWaiting(ctx context.Context, seen Payout, why *fault.Error) error {
	if isFound, err := s.findToFail(ctx, seen); isFound || err != nil {
		return err
	}
	_, err := s.change(ctx, seen.ID, func(p *Payout) error {
		if p.State != Waiting || !p.SentAt.Equal(seen.SentAt) {
			return errLeave
		}
		if wait := s.restartGrace(*p); wait > 0 {
			s.backToWaiting(p, wait)
			return nil
		}
		p.ReasonCode, p.Reason = why.Code, why.Message
		s.finish(p, Failed)
		return nil
	})
	return err
}

// codePossibleDuplicate marks an unsent payout of a seller whose balance an imported payout made negative.
const codePossibleDuplicate = "possible_duplicate"

// endIfBalanceNegative keeps a payout marked with codePossibleDuplicate from being sent while its seller's balance is negative, because it
// would pay the same money again, and reports whether it did. A payout that waits fails. One that may have been sent goes to
// manual review. Once the balance is not negative, the mark is cleared.
func (s *Service) endIfBalanceNegative(ctx context.Context, seen Payout) (bool, error) {
	if seen.ReasonCode != codePossibleDuplicate {
		return false, nil
	}
	if isFound, err := s.findToFail(ctx, seen); isFound || err != nil {
		return isFound, err
	}
	stopped := false
	_, err := s.changeIn(ctx, ledger.Scope{Payout: string(seen.ID)}, ledger.ActorSystem, func(tx ChangeTx, p *Payout) error {
		stopped = false
		if p.State != seen.State || !p.SentAt.Equal(seen.SentAt) {
			return errLeave
		}
		balance, err := tx.Balance(ctx, p.Seller)
		if err != nil {
			return err
		}
		stopped = balance.Available < 0
		switch {
		case !stopped:
			p.ReasonCode = ""
		case s.restartGrace(*p) > 0:
			s.backToWaiting(p, s.restartGrace(*p))
		case p.State == Waiting:
			p.Reason = "This money had been paid to you already; our records were behind. Request it again when your balance allows."
			s.finish(p, Failed)
		default:
			p.review()
			p.setNextPoll(seen, s.o.Now().Add(s.o.Jitter(reviewPollWait)))
		}
		return nil
	})
	return stopped, err
}
