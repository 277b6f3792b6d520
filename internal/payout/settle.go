package payout

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// merge takes the gateway's report into the payout. Reports may come twice, late and out of order:
// each is compared with what is stored, and one that tells nothing new changes nothing but the time
// of the next look. seen is the payout as it was when the gateway was asked.
func (s *Service) merge(ctx context.Context, seen Payout, r Report) error {
	return s.change(context.WithoutCancel(ctx), seen.ID, func(p *Payout) error {
		if err := r.isAbout(*p); err != nil {
			return err
		}
		to, err := outcome(p.State, r.Progress)
		if err != nil {
			s.o.Logger.ErrorContext(ctx, "the gateway contradicts the books; a person must look",
				slog.String("payout", string(p.ID)), slog.String("state", string(p.State)), slog.String("gateway_status", r.RawStatus))
			return err
		}
		now, hastened := s.o.Now(), p.DueAt.Before(seen.DueAt)
		p.take(r, now)
		if to == p.State {
			p.Tries++
		} else {
			p.become(to, r, now)
		}
		p.DueAt = s.nextLook(*p, now)
		if hastened && !p.DueAt.IsZero() { // a hint that came while the gateway was being asked is still to be followed
			p.DueAt = now
		}
		return nil
	})
}

// isAbout guards against a report of another transfer.
func (r Report) isAbout(p Payout) error {
	if r.Reference != string(p.ID) || (p.GatewayID != "" && p.GatewayID != r.GatewayID) {
		return fmt.Errorf("payout %s (%s at the gateway) was answered with %s for %s", p.ID, p.GatewayID, r.GatewayID, r.Reference)
	}
	return nil
}

// outcome is the state that follows from what the gateway reports. What is final stays so: only
// completed may still be returned. A report of a paid transfer whose money went back to the seller
// is an error, and so is anything that the machine does not allow.
func outcome(from State, progress Progress) (State, error) {
	to := from
	switch progress {
	case InProgress, Queued:
		to = Submitted
	case Paid:
		to = Completed
	case Reversed, Rejected:
		to = Failed
		if from == Completed || from == Returned {
			to = Returned
		}
	case CalledOff:
		to = Cancelled
	case Unrecognised:
		if from == Submitting || from == Unknown || from == Held {
			to = Submitted // whatever it is doing, it has it
		}
	}
	switch {
	case to == from || from.CanBecome(to):
		return to, nil
	case to == Submitted: // late news of a payout that has ended since
		return from, nil
	case to == Completed && from == Returned: // a late answer from before the return
		return from, nil
	case to.Status() == from.Status():
		return from, nil
	default:
		return from, fmt.Errorf("a payout that is %s was reported as %s", from, progress)
	}
}

// take keeps what a report says beside its progress.
func (p *Payout) take(r Report, now time.Time) {
	p.GatewayID = r.GatewayID
	p.GatewayStatus = r.RawStatus
	if r.UTR != "" {
		p.UTR = r.UTR
	}
	if p.ProcessedAt.IsZero() {
		p.ProcessedAt = now
	}
}

// become changes the state.
func (p *Payout) become(to State, r Report, now time.Time) {
	p.Tries = 0
	switch to {
	case Submitted:
		p.State, p.OrderBody = to, ""
		p.ReasonCode, p.Reason = "", ""
	case Completed:
		p.CompletedAt = now
		p.ReasonCode, p.Reason = "", ""
		p.end(to, now)
	default:
		p.ReasonCode, p.Reason = r.ReasonCode, r.Reason
		p.end(to, now)
	}
}

// end brings a payout to an end, with nothing left to do.
func (p *Payout) end(to State, now time.Time) {
	p.State, p.EndedAt = to, now
	p.OrderBody, p.Tries, p.DueAt = "", 0, time.Time{}
}

// nextLook is when to ask the gateway again: soon while it is at work or its bank reference is
// missing, now and then while the bank may still return the money, and never after that.
func (s *Service) nextLook(p Payout, now time.Time) time.Time {
	switch {
	case p.State == Submitted, p.State == Completed && p.UTR == "":
		return now.Add(s.jitter(backoff(p.Tries+1, pollBase, pollMost)))
	case p.State == Completed && now.Before(s.o.Arrival.LookAgainUntil(p.CompletedAt)):
		return now.Add(s.jitter(lookAgain))
	default:
		return time.Time{}
	}
}
