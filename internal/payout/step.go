package payout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
)

// TakeDue leases up to limit payouts whose next step is due. A worker that dies leaves its lease to
// run out, and the step is taken again. Nothing is due before [Service.CatchUp] has succeeded.
func (s *Service) TakeDue(ctx context.Context, limit int) ([]ID, error) {
	if !s.CaughtUp() {
		return nil, nil
	}
	var ids []ID
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		now := s.o.Now()
		ids, err = tx.TakeDuePayouts(ctx, now, now.Add(s.o.Lease), limit)
		return err
	})
	return ids, err
}

// Step does what is next for a payout. It talks to the gateway outside of any transaction; the
// compare-and-set that records the outcome makes a step that runs twice, or beside itself, harmless.
func (s *Service) Step(ctx context.Context, id ID) error {
	p, err := s.o.Store.Payout(ctx, id)
	if err != nil {
		return err
	}
	g, err := s.gatewayOf(p)
	if err != nil {
		return s.withoutGateway(ctx, p)
	}
	err = s.next(ctx, g, p)
	if isTampered(err) && p.State != Waiting {
		_, putOff := s.change(ctx, p.ID, func(now *Payout) error {
			if now.State != p.State {
				return errRaced
			}
			now.putOff(p, s.o.Now().Add(s.jitter(lookForGateway)))
			return nil
		})
		err = errors.Join(err, s.contradict(ctx, p.ID, errors.New(TamperedNote)), putOff)
	}
	return err
}

func (s *Service) next(ctx context.Context, g gateway.Gateway, p Payout) error {
	switch p.State {
	case Waiting:
		return s.submit(ctx, g, p)
	case Submitting:
		return s.takeOver(ctx, g, p)
	case Unknown, ManualReview:
		return s.resolve(ctx, g, p)
	case Submitted, Completed:
		return s.poll(ctx, g, p)
	default:
		return s.lookBack(ctx, p)
	}
}

// submit stores the exact request, then sends it.
func (s *Service) submit(ctx context.Context, g gateway.Gateway, p Payout) error {
	sent, err := s.wasSent(ctx, p)
	if err != nil {
		return errors.Join(s.wait(ctx, p.ID, Waiting, 0), err)
	}
	if sent {
		return nil
	}
	if _, err := check(ctx, s.o.Store, p); isTampered(err) && s.hasMovedOn(ctx, p) {
		return nil // its entries tell more than was read of it
	} else if isTampered(err) {
		return s.stopAltered(ctx, p, err)
	} else if err != nil {
		return errors.Join(s.wait(ctx, p.ID, Waiting, 0), err)
	}
	if stopped, err := s.stopIfOverdrawn(ctx, p); stopped || err != nil {
		return err
	}
	beneficiary, err := s.o.Beneficiaries.Beneficiary(ctx, p.Seller, p.BankAccountID, g.Name())
	if isTampered(err) {
		return s.stopAltered(ctx, p, err)
	}
	if refusal := fault.From(err); refusal != nil && refusal.Kind == fault.Refused {
		return s.failWaiting(ctx, p, refusal)
	}
	if err != nil {
		return errors.Join(s.wait(ctx, p.ID, Waiting, 0), fmt.Errorf("make the bank account known to the gateway: %w", err))
	}
	body, err := g.Prepare(gateway.Order{
		Reference:   string(p.ID),
		Beneficiary: beneficiary,
		Amount:      p.Net(),
		Currency:    s.o.Currency.Code(),
		Rail:        p.Mode,
		Seller:      p.Seller,
		Account:     string(p.BankAccountID),
		Gross:       p.Amount,
	})
	if err != nil {
		return errors.Join(s.wait(ctx, p.ID, Waiting, 0), fmt.Errorf("prepare the transfer: %w", err))
	}
	claimed, err := s.claim(ctx, p, body)
	if isTampered(err) {
		return s.stopAltered(ctx, p, err)
	}
	if err != nil || !claimed {
		return err
	}
	answer := g.Submit(ctx, string(p.ID), body)
	if answer.NotSent {
		return s.notSent(context.WithoutCancel(ctx), p, answer)
	}
	return s.recordFirst(context.WithoutCancel(ctx), g, p.ID, answer)
}

// hasMovedOn reports whether a payout has changed since it was read.
func (s *Service) hasMovedOn(ctx context.Context, seen Payout) bool {
	now, err := s.o.Store.Payout(ctx, seen.ID)
	_, differs := ledger.Differs(seen, now)
	return err == nil && differs
}

// stopAltered keeps a payout from being sent that is not what was asked for, and tells a person. It is looked at again,
// in case that is put right.
func (s *Service) stopAltered(ctx context.Context, p Payout, why error) error {
	return errors.Join(s.contradict(ctx, p.ID, errors.New(TamperedNote)), s.wait(ctx, p.ID, Waiting, 0), why)
}

// claim takes a waiting payout to Submitting, which excludes its cancellation, and reports whether
// this call did. From here on the transfer may have been made. One that was sent and turned away since it was
// seen is left alone: the gateway was not asked about that sending.
func (s *Service) claim(ctx context.Context, seen Payout, body string) (bool, error) {
	return s.changeIn(ctx, ledger.Scope{Payout: string(seen.ID)}, actorSystem, func(tx ChangeTx, p *Payout) error {
		if p.State != Waiting || !p.SentAt.Equal(seen.SentAt) {
			return errRaced
		}
		if _, err := checkToMove(ctx, tx, *p); err != nil {
			return err
		}
		if p.Altered() { // it was put right
			p.Contradiction = ""
		}
		p.hasGateway()
		now := s.o.Now()
		p.State, p.OrderBody, p.SentAt = Submitting, body, now // Tries goes on: being turned away again waits longer
		p.DueAt = now.Add(s.o.Lease)
		return nil
	})
}

// recordFirst records the answer to a sending from Waiting. Only here may a refusal be believed, because what was
// sent before it was turned away and looked up since, and even here only if the gateway knows no such transfer. A
// gateway that can't be asked that leaves both a refusal and an order that it turned away unclear: it may have taken
// the order all the same, and sending it again under its key is safe while the key lives.
func (s *Service) recordFirst(ctx context.Context, g gateway.Gateway, id ID, a gateway.Submission) error {
	if !g.Capabilities().Lookup && a.Answer != gateway.Accepted {
		a.Answer = gateway.Unclear
	}
	switch a.Answer {
	case gateway.Accepted:
		_, err := s.merge(ctx, Payout{ID: id}, a.Report)
		return err
	case gateway.Refused:
		report, err := g.Find(ctx, string(id))
		switch {
		case err == nil:
			_, err := s.merge(ctx, Payout{ID: id}, report)
			return err
		case errors.Is(err, gateway.ErrUnknownTransfer):
			return s.fail(ctx, id, a.ReasonCode, a.Reason)
		default:
			return errors.Join(s.unclear(ctx, id), err)
		}
	case gateway.NotTaken:
		s.o.Logger.WarnContext(ctx, "the gateway takes no payouts at the moment",
			slog.String("payout", string(id)), slog.String("reason", a.ReasonCode), slog.String("detail", a.Reason))
		return s.wait(ctx, id, Submitting, a.RetryAfter)
	default:
		s.o.Logger.WarnContext(ctx, "the gateway's answer is missing; the payout is looked up before anything else",
			slog.String("payout", string(id)), slog.String("reason", a.ReasonCode), slog.String("detail", a.Reason))
		return s.unclear(ctx, id)
	}
}

// unclear notes that what became of the first sending is not known, to be looked up soon.
func (s *Service) unclear(ctx context.Context, id ID) error {
	_, err := s.change(ctx, id, func(p *Payout) error {
		if p.State != Submitting {
			return errRaced
		}
		p.State, p.Tries = Unknown, 0
		p.DueAt = s.o.Now().Add(s.jitter(unknownWaits[0]))
		return nil
	})
	return err
}

// failWaiting ends a payout whose bank account the gateway will never pay, unless it was sent and turned away
// since it was asked about.
func (s *Service) failWaiting(ctx context.Context, seen Payout, why *fault.Error) error {
	_, err := s.change(ctx, seen.ID, func(p *Payout) error {
		if p.State != Waiting || !p.SentAt.Equal(seen.SentAt) {
			return errRaced
		}
		p.ReasonCode, p.Reason = why.Code, why.Message
		s.finish(p, Failed)
		return nil
	})
	return err
}

// finish ends a payout that was not paid. One that was sent once is looked at again all the same.
func (s *Service) finish(p *Payout, to State) {
	now := s.o.Now()
	p.end(to, now)
	p.DueAt = s.nextLook(*p, now)
}

// fail ends a payout whose sending was refused, if it is still being sent.
func (s *Service) fail(ctx context.Context, id ID, code, reason string) error {
	_, err := s.change(ctx, id, func(p *Payout) error {
		if p.State != Submitting {
			return errRaced
		}
		p.ReasonCode, p.Reason = code, reason
		s.finish(p, Failed)
		return nil
	})
	return err
}

// notSent puts a payout back that was to be sent and never left us. seen is as it was before.
func (s *Service) notSent(ctx context.Context, seen Payout, a gateway.Submission) error {
	s.o.Logger.WarnContext(ctx, "the gateway can't be reached; the payout waits",
		slog.String("payout", string(seen.ID)), slog.String("reason", a.ReasonCode), slog.String("detail", a.Reason))
	_, err := s.change(ctx, seen.ID, func(p *Payout) error {
		if p.State != Submitting {
			return errRaced
		}
		s.putBack(p, 0)
		p.SentAt = seen.SentAt
		return nil
	})
	return err
}

// wait puts off the submission of a payout that was not sent (from Waiting), or turned away (from
// Submitting, by whoever sent it). It can be cancelled again, but SentAt stays: a gateway may turn away what it
// has taken, so it is asked before the money is given back.
func (s *Service) wait(ctx context.Context, id ID, from State, atLeast time.Duration) error {
	_, err := s.change(ctx, id, func(p *Payout) error {
		if p.State != from {
			return errRaced
		}
		s.putBack(p, atLeast)
		return nil
	})
	return err
}

func (s *Service) putBack(p *Payout, atLeast time.Duration) {
	p.Tries++
	p.State, p.OrderBody = Waiting, ""
	p.DueAt = s.o.Now().Add(max(atLeast, s.jitter(backoff(p.Tries, time.Second, 5*time.Minute))))
}

// unknownWaits are the waits between attempts to learn what became of an order, the last one
// repeated. The first attempt only looks it up. The second may send it again, soon, because most
// answers are lost on the way and not at the gateway.
var unknownWaits = []time.Duration{
	2 * time.Second, 15 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour,
}

// takeOver resolves an order whose sender is gone: its lease ran out. That took long enough for the
// order to have arrived, so the first look may already send it again.
func (s *Service) takeOver(ctx context.Context, g gateway.Gateway, p Payout) error {
	taken, err := s.change(ctx, p.ID, func(p *Payout) error {
		if p.State != Submitting {
			return errRaced
		}
		p.State, p.Tries = Unknown, 1
		p.hasGateway()
		return nil
	})
	if err != nil || !taken {
		return err
	}
	p.State, p.Tries = Unknown, 1
	return s.resolve(ctx, g, p)
}

// resolve learns what became of an order whose answer is missing: it looks it up by our reference,
// and where the gateway does not know it, sends the same order under the same key again. When that
// has not helped within the key's lifetime, the payout goes to manual review, and is only looked up. A gateway that
// finds nothing by reference is sent the order again without being asked, while the key lives.
func (s *Service) resolve(ctx context.Context, g gateway.Gateway, p Payout) error {
	report, err := s.lookUp(ctx, p)
	if err == nil {
		_, err := s.merge(ctx, p, report)
		return err
	}
	isUnknown := errors.Is(err, gateway.ErrUnknownTransfer) || errors.Is(err, gateway.ErrNotOffered)
	if isUnknown && p.State == Unknown && p.Tries > 0 && mayResend(g, p, s.o.Now()) {
		if stopped, err := s.stopIfOverdrawn(ctx, p); stopped || err != nil {
			return err
		}
		err := s.resend(ctx, g, p)
		if isTampered(err) {
			err = errors.Join(s.contradict(ctx, p.ID, errors.New(TamperedNote)), s.stillUnknown(ctx, g, p, p.Tries+1, 0), err)
		}
		return err
	}
	if errors.Is(err, gateway.ErrManyTransfers) {
		if noted := s.contradict(ctx, p.ID, err); noted != nil {
			return noted
		}
	}
	if errors.Is(err, gateway.ErrNotOffered) {
		return s.stillUnknown(ctx, g, p, p.Tries+1, 0)
	}
	return errors.Join(s.stillUnknown(ctx, g, p, p.Tries+1, 0), fmt.Errorf("payout %s is still unknown: %w", p.ID, err))
}

// contradict writes down on a payout what can't be true of it, unless something is there already.
func (s *Service) contradict(ctx context.Context, id ID, said error) error {
	isNew, err := s.change(context.WithoutCancel(ctx), id, func(p *Payout) error {
		if p.Contradiction != "" {
			return errRaced
		}
		p.Contradiction = said.Error()
		return nil
	})
	if isNew {
		s.tellContradiction(ctx, id, said)
	}
	return err
}

// resend sends an order again to the letter. As with the first sending, that it may be on its way is
// recorded before, so that nothing that has ended meanwhile is ever sent. No refusal is believed: the
// first order may have been taken.
func (s *Service) resend(ctx context.Context, g gateway.Gateway, seen Payout) error {
	var sent Payout
	claimed, err := s.changeIn(ctx, ledger.Scope{Payout: string(seen.ID)}, actorSystem, func(tx ChangeTx, p *Payout) error {
		if p.State != Unknown || p.Tries != seen.Tries || !mayResend(g, *p, s.o.Now()) {
			return errRaced
		}
		if _, err := checkToMove(ctx, tx, *p); err != nil {
			return err
		}
		p.Tries++
		p.DueAt = s.o.Now().Add(s.o.Lease).Truncate(time.Microsecond) // as it is stored, or it would seem hastened
		sent = *p
		return nil
	})
	if err != nil || !claimed {
		return err
	}
	answer := g.Submit(ctx, string(sent.ID), sent.OrderBody)
	if answer.Answer == gateway.Accepted {
		_, err := s.merge(ctx, sent, answer.Report)
		return err
	}
	return errors.Join(s.stillUnknown(ctx, g, sent, sent.Tries, answer.RetryAfter),
		fmt.Errorf("payout %s was sent again and is still unknown: %s: %s", sent.ID, answer.ReasonCode, answer.Reason))
}

// stillUnknown sets the next attempt after so many tries, or moves the payout to manual review when the
// key's lifetime is over.
func (s *Service) stillUnknown(ctx context.Context, g gateway.Gateway, seen Payout, tries int, atLeast time.Duration) error {
	_, err := s.change(context.WithoutCancel(ctx), seen.ID, func(p *Payout) error {
		if p.State != Unknown && p.State != ManualReview {
			return errRaced
		}
		now := s.o.Now()
		if p.State == ManualReview || !mayResend(g, *p, now) {
			p.review()
			p.putOff(seen, now.Add(s.jitter(reviewPollWait)))
			return nil
		}
		p.Tries = tries
		p.putOff(seen, now.Add(max(atLeast, s.jitter(unknownWaits[min(tries, len(unknownWaits)-1)]))))
		return nil
	})
	return err
}

// review moves a payout whose outcome can't be learnt to manual review.
func (p *Payout) review() {
	p.State = ManualReview
	p.ReasonCode, p.Reason = "outcome_unknown", "The payment gateway can't say whether this payout was made. Our team is looking into it."
}

// reviewPollWait is the wait between polls of a payout in review: the gateway may still report it.
const reviewPollWait = 6 * time.Hour

// lookBack looks again at a payout that ended unpaid after it was sent, or follows a hint about one that has
// ended. Whatever the gateway says can change nothing any more, but if it says that the money went out, a
// person has to know.
func (s *Service) lookBack(ctx context.Context, seen Payout) error {
	report, err := s.lookUp(ctx, seen)
	if err == nil {
		_, err := s.merge(ctx, seen, report)
		return err
	}
	notOffered := errors.Is(err, gateway.ErrNotOffered)
	_, again := s.change(context.WithoutCancel(ctx), seen.ID, func(p *Payout) error {
		now := s.o.Now()
		p.Tries++
		due := s.nextLook(*p, now)
		if notOffered { // nothing will ever be found
			due = time.Time{}
		} else if !errors.Is(err, gateway.ErrUnknownTransfer) {
			due = now.Add(s.jitter(backoff(p.Tries, pollBase, endedMost)))
		}
		p.putOff(seen, due)
		return nil
	})
	if notOffered || errors.Is(err, gateway.ErrUnknownTransfer) {
		return again
	}
	return errors.Join(again, err)
}

// putOff sets the next look, unless a hint has come since seen was read: then it is due already.
func (p *Payout) putOff(seen Payout, due time.Time) {
	if p.DueAt.IsZero() || !p.DueAt.Before(seen.DueAt) {
		p.DueAt = due
	}
}

// poll asks the gateway how a payout stands.
func (s *Service) poll(ctx context.Context, g gateway.Gateway, seen Payout) error {
	report, err := g.Fetch(ctx, seen.GatewayID)
	if err == nil {
		_, err := s.merge(ctx, seen, report)
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
		if errors.Is(err, gateway.ErrUnknownTransfer) && p.State == Completed && !now.Before(s.o.Arrival.LookAgainUntil(p.CompletedAt)) {
			due = time.Time{} // it was forgotten, and a person was told
		}
		p.putOff(seen, due)
		return nil
	})
	// Even "no such payout" proves nothing about money that the gateway has taken on before.
	if errors.Is(err, gateway.ErrUnknownTransfer) && seen.Tries >= triesForgotten {
		forgotten := fmt.Errorf("it knows no transfer %s any more, which it had", seen.GatewayID)
		again = errors.Join(again, s.contradict(ctx, seen.ID, forgotten))
	}
	return errors.Join(again, fmt.Errorf("ask the gateway about payout %s: %w", seen.ID, err))
}

// Waits between polls. Webhooks bring most news sooner; polling is for those that never come.
const (
	pollBase = 2 * time.Second
	// pollMostEarly and pollMostLate bound the waits of payouts that are under way, see [Payout.pollMost].
	pollMostEarly = 15 * time.Minute
	pollMostLate  = 2 * time.Hour
	// endedMost bounds the waits of payouts that have ended while the gateway answers nothing: there are many.
	endedMost = 4 * time.Hour
	// triesForgotten is after how many looks, half an hour or so, a person is told that the gateway has
	// forgotten a transfer.
	triesForgotten = 10
)

// pollMost bounds the wait until the next look at a payout that is under way: news of it is late by a quarter of an
// hour at most, or by an eighth of the time that it has taken so far.
func (p *Payout) pollMost(now time.Time) time.Duration {
	if p.SentAt.IsZero() {
		return pollMostEarly
	}
	return min(max(now.Sub(p.SentAt)/8, pollMostEarly), pollMostLate)
}

// Waits between looks at a payout that has ended, the last one repeated. Of what was paid the bank returns
// most soon, and [Service.LookForReturns] asks for all at once; these looks are the second way to learn
// of it, and of a gateway that changes its mind. What an admin gave back is the likeliest to turn up.
var (
	paidWaits      = []time.Duration{20 * time.Second, 5 * time.Minute, time.Hour, 24 * time.Hour}
	givenBackWaits = []time.Duration{20 * time.Second, 5 * time.Minute, time.Hour, 6 * time.Hour}
)

// backoff doubles base with each try after the first, up to most.
func backoff(tries int, base, most time.Duration) time.Duration {
	return min(base<<min(max(tries-1, 0), 20), most)
}

// Hint takes note of an event of a gateway about a payout. The event is not believed: it only makes the
// next look at the payout due now. One that was seen before, or is about no payout of ours, is ignored.
func (s *Service) Hint(ctx context.Context, at gateway.Name, eventID string, id ID) error {
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		now := s.o.Now()
		isNew, err := tx.RememberEvent(ctx, at, eventID, now)
		if err != nil || !isNew {
			return err
		}
		_, err = tx.HastenPayout(ctx, id, now)
		return err
	})
}
