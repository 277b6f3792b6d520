package payout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/money"
)

// merge applies a gateway report to the payout, and reports whether that changed its state.
// Reports may come twice, late and out of order: each is compared with what is stored, and one that
// has nothing new changes nothing but the time of the next poll. One that disagrees with the journal is
// recorded as a discrepancy, and moves no money. seen is the payout as it was when the gateway was asked. Of the answer to the
// first sending, seen is the id alone: a report there that disagrees is not recorded, and the gateway is asked again at once.
func (s *Service) merge(ctx context.Context, seen Payout, r gateway.Report) (bool, error) {
	return s.mergeGuarded(ctx, seen, r, ledger.ActorGateway, func(ChangeTx, Payout) error { return nil })
}

// mergeGuarded is merge, unless guard returns an error for the payout as it is now.
func (s *Service) mergeGuarded(ctx context.Context, seen Payout, r gateway.Report, actor string, guard func(ChangeTx, Payout) error) (bool, error) {
	var from, to State
	var discrepancy error
	_, err := s.changeIn(context.WithoutCancel(ctx), ledger.Scope{Payout: string(seen.ID)}, actor, func(tx ChangeTx, p *Payout) error {
		if err := guard(tx, *p); err != nil {
			return err
		}
		now := s.o.Now()
		from = p.State
		to, discrepancy = outcome(r, *p, s.o.Currency)
		intact, err := s.isIntact(ctx, tx, *p, to, discrepancy)
		if err != nil {
			return err
		}
		if !intact && (discrepancy != nil || to != from && to.Status() != from.Status()) {
			discrepancy = errors.New(TamperedNote) // its amount may differ from what was reserved, and the gateway may be right
		}
		if discrepancy != nil && seen.State != from { // it was asked before the payout came here, so it is asked again
			to, discrepancy = from, nil
			p.DueAt = now
			return nil
		}
		if discrepancy != nil {
			to = from
			if said := discrepancy.Error(); said != TamperedNote || p.Discrepancy == "" { // what the gateway has said is kept
				p.Discrepancy = said
			}
			p.Tries++
			p.setNextPoll(seen, s.nextPollAt(*p, now))
			return nil // the discrepancy is to be committed
		}
		if intact && p.IsTampered() { // it was repaired
			p.Discrepancy = ""
		}
		p.applyDetails(r, now)
		if to == from {
			p.Tries++
		} else {
			p.enter(to, r, now)
		}
		rescheduled := p.DueAt.Before(seen.DueAt) && !p.DueAt.IsZero()
		p.DueAt = s.nextPollAt(*p, now)
		if rescheduled && !p.DueAt.IsZero() { // a notification that came while the gateway was being asked is still to be followed
			p.DueAt = now
		}
		return nil
	})
	if err == nil && discrepancy != nil {
		s.logDiscrepancy(ctx, seen.ID, discrepancy)
		err = discrepancyError{discrepancy}
	}
	if err == nil && r.Progress == gateway.Unrecognised {
		s.o.Logger.WarnContext(ctx, "gateway reported unknown status",
			slog.String("payout_id", string(seen.ID)), slog.String("status", r.RawStatus))
	}
	return err == nil && to != from, err
}

// isIntact reports whether a payout is what the service wrote, where it matters: its money is about to move to where
// the state to has it, the gateway disagrees with it, or it was found to be tampered with before.
func (s *Service) isIntact(ctx context.Context, tx ChangeTx, p Payout, to State, discrepancy error) (bool, error) {
	if !p.IsTampered() && discrepancy == nil && to.Status() == p.Status() {
		return true, nil
	}
	_, err := checkToMove(ctx, tx, p)
	if isTampered(err) {
		return false, nil
	}
	return err == nil, err
}

func (s *Service) logDiscrepancy(ctx context.Context, id ID, said error) {
	s.o.Logger.ErrorContext(ctx, "payout discrepancy found",
		slog.String("payout_id", string(id)), slog.String("discrepancy", said.Error()))
}

// discrepancyError is a discrepancy that was recorded on the payout.
type discrepancyError struct{ error }

// outcome is the state that follows from the report, or why it can't be true. What is final stays so:
// only completed may still be returned.
func outcome(r gateway.Report, p Payout, c money.Currency) (State, error) {
	if r.Reference != string(p.ID) || (p.GatewayID != "" && p.GatewayID != r.GatewayID) {
		return "", fmt.Errorf("it was asked for %s (%s there) and answered with %s for %s", p.ID, p.GatewayID, r.GatewayID, r.Reference)
	}
	if err := differs(r, p, c); err != nil {
		return "", err
	}
	to := follows(r, p.State)
	switch {
	case p.State == Waiting:
		return "", fmt.Errorf("it has a transfer (%s) that was never ordered", r.RawStatus)
	case to == p.State || p.State.CanBecome(to):
		return to, nil
	case p.GatewayID != "" && (to == Submitted || to == Completed && p.State == Returned): // it was true before its end
		return p.State, nil
	case to.Status() == p.State.Status():
		return p.State, nil
	default:
		return "", fmt.Errorf("its transfer is %s, the payout is %s", r.RawStatus, p.State)
	}
}

// differs says, as an error, why the transfer is not what the payout ordered. What the gateway leaves out is no
// difference. The account is compared by its row, because the order itself is not kept once the gateway has it;
// the row never changes, and the audit holds each order against it.
func differs(r gateway.Report, p Payout, c money.Currency) error {
	switch {
	case r.Amount != p.Net():
		return fmt.Errorf("it has a transfer of %s %s, ordered were %s", c.FormatFixed(r.Amount), c, c.FormatFixed(p.Net()))
	case r.Currency != "" && r.Currency != c.Code():
		return fmt.Errorf("it has a transfer in %s, ordered was one in %s", r.Currency, c)
	case r.Beneficiary != "" && p.Beneficiary != "" && r.Beneficiary != p.Beneficiary:
		return fmt.Errorf(otherAccount+"%s, and the payout's bank account is %s there", r.Beneficiary, p.Beneficiary)
	default:
		return nil
	}
}

// follows is the state that a report stands for.
func follows(r gateway.Report, from State) State {
	switch r.Progress {
	case gateway.Paid:
		return Completed
	case gateway.Reversed, gateway.Rejected:
		if from == Completed || from == Returned {
			return Returned
		}
		return Failed
	case gateway.CalledOff:
		return Cancelled
	case gateway.Unrecognised:
		if from == Submitting || from == Unknown || from == ManualReview {
			return Submitted // whatever it is doing, it has it
		}
		return from
	default:
		return Submitted
	}
}

// applyDetails stores what a report says beside its progress.
func (p *Payout) applyDetails(r gateway.Report, now time.Time) {
	p.GatewayID = r.GatewayID
	p.Progress = r.Progress
	p.clearNoGateway()
	if r.UTR != "" {
		p.UTR = r.UTR
	}
	if p.ProcessedAt.IsZero() {
		p.ProcessedAt = now
	}
}

// enter takes the payout to another state.
func (p *Payout) enter(to State, r gateway.Report, now time.Time) {
	p.Tries = 0
	switch to {
	case Submitted:
		p.State, p.OrderBody = to, ""
		p.ReasonCode, p.Reason = "", ""
	case Completed:
		p.CompletedAt = now
		p.ReasonCode, p.Reason = "", ""
		p.endAs(to, now)
	default:
		p.ReasonCode, p.Reason = r.ReasonCode, r.Reason
		p.endAs(to, now)
	}
}

// endAs takes the payout to a final state, with nothing left to do.
func (p *Payout) endAs(to State, now time.Time) {
	p.State, p.EndedAt = to, now
	p.clearStopped()
	p.OrderBody, p.Tries, p.DueAt = "", 0, time.Time{}
}

// nextPollAt is when to poll the gateway next: soon while it is at work or its bank reference is
// missing, and now and then while the bank may still return the money, or the gateway come to say that it
// paid what ended here unpaid. After that, and once a person has to look, it is never.
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
