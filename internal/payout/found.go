package payout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/ledger"
)

// recordTransfer moves a waiting payout to the state that the gateway reports, and reports whether it did. seen is the payout as
// read before the gateway was asked: one that has changed since stays as it is.
func (s *Service) recordTransfer(ctx context.Context, seen Payout, r gateway.Report) (bool, error) {
	return s.recordTransferIf(ctx, seen, r, ledger.ActorSystem, func(ChangeTx) error { return nil })
}

// recordTransferIf is recordTransfer in an actor's name, with what else is recorded in the same transaction.
func (s *Service) recordTransferIf(ctx context.Context, seen Payout, r gateway.Report, actor string, also func(ChangeTx) error) (bool, error) {
	var found Payout
	moved, err := s.changeIn(ctx, ledger.Scope{Payout: string(seen.ID)}, actor, func(tx ChangeTx, p *Payout) error {
		if _, differs := ledger.Differs(seen, *p); differs || p.State != Waiting {
			return errLeave
		}
		p.foundAtGateway(r, s.o.Now())
		found = *p
		return also(tx)
	})
	if moved {
		s.o.Logger.WarnContext(ctx, "waiting payout found at gateway", slog.String("payout_id", string(seen.ID)))
		s.applyFound(ctx, found, r)
	}
	return moved, err
}

// foundAtGateway is how a payout that waited goes on whose transfer was made all the same.
func (p *Payout) foundAtGateway(r gateway.Report, now time.Time) {
	p.State, p.GatewayID, p.Progress = Submitted, r.GatewayID, r.Progress
	p.ProcessedAt = r.MadeAt
	p.ReasonCode, p.Reason = "found_at_gateway", "The payment gateway already had this transfer; our records were behind."
	p.Tries, p.DueAt = 0, now.Truncate(time.Microsecond) // as it is stored, or it would seem rescheduled
}

// applyFound applies the gateway's report of a payout just found there. A failure is left to the
// payout's next step, which asks again.
func (s *Service) applyFound(ctx context.Context, p Payout, r gateway.Report) {
	if err := s.applyReport(ctx, p, r); err != nil {
		s.o.Logger.WarnContext(ctx, "report of payout found at gateway not applied",
			slog.String("payout_id", string(p.ID)), slog.Any("error", err))
	}
}

// mustLookUp reports whether the gateway may have a waiting payout, so that it is asked first. The payout was requested before this
// process started, and the database may have been restored since it was sent; or the gateway rejected its order, and may have taken it.
func (s *Service) mustLookUp(p Payout) bool {
	return p.State == Waiting && (s.requestedAt(p).Before(s.started) || !p.SentAt.IsZero())
}

// restartGrace is how long the gateway may still receive an order of a waiting payout that the journal does not record. An earlier
// process may have sent it just before it ended, and an attacker may have deleted that entry since. Until the order arrives, the gateway
// does not know it.
func (s *Service) restartGrace(p Payout) time.Duration {
	if p.State != Waiting || !s.requestedAt(p).Add(s.o.CancelWindow).Before(s.started) {
		return 0
	}
	return max(s.started.Add(s.o.Lease+s.o.GracePeriod).Sub(s.o.Now()), 0)
}

// requestedAt is when a payout was requested. One of a time to come was requested by a clock that was wrong, nobody knows when: it is zero then.
func (s *Service) requestedAt(p Payout) time.Time {
	if p.RequestedAt.After(s.o.Now().Add(ClocksApart)) {
		return time.Time{}
	}
	return p.RequestedAt
}

// isPastCancelWindow reports whether a payout waits although its cancel window has ended, or has ended by the clock of another instance,
// which may be sending it.
func (s *Service) isPastCancelWindow(p Payout) bool {
	return p.State == Waiting && s.cancelWindowLeft(p) <= clocksDiffer
}

// cancelWindowLeft is how long a payout can still be cancelled before it is sent. It is computed from the request's time, which the
// journal proves: due_at may have been changed outside the service.
func (s *Service) cancelWindowLeft(p Payout) time.Duration {
	return p.RequestedAt.Add(s.o.CancelWindow).Sub(s.o.Now())
}

// clocksDiffer is how far the clocks of two instances are apart in operation. [ClocksApart] is the margin where a wrong clock would cost money.
const clocksDiffer = 5 * time.Second

// findIfSent looks up a waiting payout that the gateway may have, before it is sent or its amount refunded. It returns true if the
// gateway has it, also where the report was not applied because the row has changed since it was read. It fails with
// [gateway.ErrNotConfigured] where the gateway that may have it can't be asked.
func (s *Service) findIfSent(ctx context.Context, p Payout) (bool, error) {
	if !s.mustLookUp(p) {
		return false, nil
	}
	return s.find(ctx, p)
}

// findToCancel is findIfSent for a payout that is about to be cancelled. The gateway is asked about an overdue one as well: another instance
// may have sent it, and an attacker may have deleted the newest entries since. If the gateway can't answer about an overdue payout, the
// journal decides.
func (s *Service) findToCancel(ctx context.Context, p Payout) (bool, error) {
	mustLookUp := s.mustLookUp(p)
	if !mustLookUp && !s.isPastCancelWindow(p) {
		return false, nil
	}
	isFound, err := s.find(ctx, p)
	if err == nil || isFound || mustLookUp || errors.Is(err, gateway.ErrManyTransfers) {
		return isFound, err
	}
	s.o.Logger.WarnContext(ctx, "cancel lookup failed", slog.String("payout_id", string(p.ID)), slog.Any("error", err))
	return false, nil
}

// findToFail looks up a waiting payout that is about to fail: another instance may have sent it, and an attacker may have deleted the
// newest entries since. The payout waits until the gateway answers.
func (s *Service) findToFail(ctx context.Context, p Payout) (bool, error) {
	if p.State != Waiting {
		return false, nil
	}
	isFound, err := s.find(ctx, p)
	if err != nil && !isFound {
		err = errors.Join(s.requeue(ctx, p.ID, Waiting, 0), err)
	}
	return isFound, err
}

// find looks up a waiting payout, and records the transfer that the gateway has.
func (s *Service) find(ctx context.Context, p Payout) (bool, error) {
	report, err := s.lookUp(ctx, p)
	switch {
	case errors.Is(err, gateway.ErrUnknownTransfer):
		return false, nil
	case errors.Is(err, gateway.ErrNotOffered) && s.o.Restored: // it may have been sent after the backup
		return false, fmt.Errorf("payout %s: %w", p.ID, ErrRestored)
	case errors.Is(err, gateway.ErrNotOffered) && p.SentAt.IsZero(): // never sent: a gateway without lookup never moves a sent payout back to waiting, see recordSubmission
		return false, nil
	case err != nil:
		return false, fmt.Errorf("ask the gateway whether payout %s was sent before: %w", p.ID, err)
	default:
		_, err := s.recordTransfer(ctx, p, report)
		return true, err
	}
}
