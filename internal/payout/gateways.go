package payout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bursar/internal/gateway"
)

// gatewayOf is the gateway that has a payout, or is to get it. It fails with [gateway.ErrNotConfigured]: a payout is
// never sent anywhere else, because the first order may have been taken.
func (s *Service) gatewayOf(p Payout) (gateway.Gateway, error) { return s.o.Gateways.Named(p.Gateway) }

// lookUp asks for the transfer that a payout is known to have, or else for one under its reference. It fails with
// [gateway.ErrNotOffered] where it has none that is known and the gateway finds nothing by reference, and with
// [gateway.ErrManyTransfers], which it records as a discrepancy.
func (s *Service) lookUp(ctx context.Context, p Payout) (gateway.Report, error) {
	g, err := s.gatewayOf(p)
	if err != nil {
		return gateway.Report{}, err
	}
	byReference := g.Capabilities().Lookup
	if p.GatewayID != "" && (!byReference || p.State == Submitted || p.State == Completed) {
		return g.Fetch(ctx, p.GatewayID)
	}
	if !byReference {
		return gateway.Report{}, gateway.ErrNotOffered
	}
	report, err := g.Find(ctx, string(p.ID))
	if errors.Is(err, gateway.ErrManyTransfers) {
		if noted := s.stopWhile(p, func() error { return s.recordMany(ctx, p, err) }); noted != nil {
			return report, noted
		}
	}
	return report, err
}

// recordMany records that the gateway has several transfers of a payout, of which the balance knows one at most. The seller's payouts are
// frozen before that, in whatever state the payout is, unless an admin knows of it.
func (s *Service) recordMany(ctx context.Context, p Payout, discrepancy error) error {
	entries, err := s.o.Store.EntriesAbout(ctx, p.Seller, string(p.ID))
	if err != nil && !isTampered(err) {
		return err
	}
	if _, isKnown := foldAndFind(p.ID, entries, discrepancy.Error(), true); !isKnown && len(entries) > 0 {
		if err := s.freezeForTransfer(context.WithoutCancel(ctx), p); err != nil {
			return err
		}
	}
	isNew, err := s.change(context.WithoutCancel(ctx), p.ID, func(p *Payout) error {
		if p.Discrepancy == discrepancy.Error() && (!p.endedUnpaid() || p.Progress == gateway.Unrecognised) {
			return errLeave
		}
		p.Discrepancy = discrepancy.Error()
		if p.endedUnpaid() {
			p.Progress = gateway.Unrecognised // one of them may be paid
		}
		return nil
	})
	if isNew {
		s.logDiscrepancy(ctx, p.ID, discrepancy)
	}
	return err
}

// CodeNoGateway marks a payout that waits because its gateway is not configured.
const CodeNoGateway = "gateway_not_configured"

// withoutGateway leaves a payout whose gateway is not configured where it is, and tells a person. One that has ended is tried seldom, and
// a week longer than a gateway is asked about it: by then the gateway was taken away for good.
func (s *Service) withoutGateway(ctx context.Context, seen Payout) error {
	err := s.changeFrom(context.WithoutCancel(ctx), seen.ID, seen.State, func(p *Payout) {
		isMarked := p.State == Waiting || p.State == Submitting || p.State == Submitted // the others are seen anyway
		if isMarked && p.ReasonCode != codePossibleDuplicate {
			p.ReasonCode, p.Reason = CodeNoGateway, "The payment gateway of this payout is not available. Our team is looking into it."
		}
		now, wait := s.o.Now(), troubleWait
		if p.Status() != StatusProcessing {
			wait = maxPollEnded
		}
		due := now.Add(s.o.Jitter(wait))
		if until := s.o.Arrival.FinalCheckUntil(p.EndedAt); p.Status() != StatusProcessing && !now.Before(until.AddDate(0, 0, 7)) {
			due = time.Time{}
		}
		p.setNextPoll(seen, due)
	})
	s.o.Logger.ErrorContext(ctx, "payout waits: gateway not configured",
		slog.String("payout_id", string(seen.ID)), slog.String("gateway", string(seen.Gateway)), slog.String("state", string(seen.State)))
	return err
}

// clearNoGateway removes the mark of a payout whose gateway is configured again.
func (p *Payout) clearNoGateway() {
	if p.ReasonCode == CodeNoGateway {
		p.ReasonCode, p.Reason = "", ""
	}
}

// reconcileUnlisted prepares the payouts at a gateway that can't list its transfers. Each payout under way is looked up
// by its next step, before anything of it is sent. A payout that the database has lost can't be found so: after a
// restore nothing is sent until a person has compared the gateway's own records.
func (s *Service) reconcileUnlisted(ctx context.Context, g gateway.Gateway) error {
	if s.o.Restored {
		return fmt.Errorf("gateway %s: %w", g.Name(), ErrRestored)
	}
	rescheduled := int64(0)
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		rescheduled, err = tx.RescheduleInFlight(ctx, g.Name(), s.o.Now(), s.o.Now().Add(s.o.Lease))
		return err
	})
	if err == nil {
		s.o.Logger.InfoContext(ctx, "gateway has no listing", // so the payouts in flight are looked up one by one
			slog.String("gateway", string(g.Name())), slog.Int64("payouts", rescheduled))
	}
	return err
}

// ErrRestored means that the database was put back to an older state, and that the gateway can't list what it made
// since.
var ErrRestored = errors.New("the database was restored, and the gateway can't list what was paid since: nothing is sent " +
	"until its own records were compared and the restore is declared over")
