package payout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bursar/internal/gateway"
)

// CatchUp asks each gateway for every transfer since the last sending that the book tells of, and
// takes into the book what it does not know. A gateway that can't list is not waited for, see [Service.catchUpUnlisted]. A book that was put back to an older state calls payouts
// waiting that were sent, and has lost others altogether. Until CatchUp has succeeded once, nothing
// is due, so nothing is sent. One that failed is gone on with by the next. It is safe to repeat, to
// break off, and to run on many instances at once.
func (s *Service) CatchUp(ctx context.Context) error {
	s.look.Lock()
	defer s.look.Unlock()
	if s.look.since.IsZero() {
		last, err := s.o.Store.LastSending(ctx)
		if err != nil {
			return fmt.Errorf("find the last sending: %w", err)
		}
		if last.IsZero() { // a book without users has lost nobody's payout
			s.caughtUp.Store(true)
			return nil
		}
		s.look.since = last.Add(-clocksApart)
	}
	for _, g := range s.o.Gateways.All() {
		if slices.Contains(s.look.done, g.Name()) {
			continue
		}
		if err := s.catchUpWith(ctx, g); err != nil {
			return err
		}
		s.look.done = append(s.look.done, g.Name())
		s.look.listed, s.look.next = 0, ""
	}
	s.look.since, s.look.done = time.Time{}, nil
	s.caughtUp.Store(true)
	return nil
}

// CaughtUp reports whether CatchUp has succeeded.
func (s *Service) CaughtUp() bool { return s.caughtUp.Load() }

// look is how far a CatchUp has come.
type look struct {
	sync.Mutex
	since time.Time // zero before it has begun
	// done are the gateways that have told all.
	done []gateway.Name
	// listed counts what was read of the list under way, and next is where it goes on.
	listed int
	next   gateway.Cursor
}

// Whatever was sent after the book was saved was made after the last sending in it; only the clocks of
// our machines and of the gateway can differ. Each start lists as much again.
const clocksApart = 10 * time.Minute

// mostTransfers bounds a list that a broken gateway never ends.
const mostTransfers = 10_000_000

// catchUpWith takes in what one gateway has.
func (s *Service) catchUpWith(ctx context.Context, g gateway.Gateway) error {
	if !g.Capabilities().List {
		return s.catchUpUnlisted(ctx, g)
	}
	for s.look.listed < mostTransfers {
		page, err := g.Transfers(ctx, s.look.since, s.look.next)
		if err != nil {
			return fmt.Errorf("list the transfers of gateway %s: %w", g.Name(), err)
		}
		if err := s.takeInPage(ctx, g, page.Transfers); err != nil {
			return err
		}
		s.look.listed, s.look.next = s.look.listed+len(page.Transfers), page.Next
		if page.Next == "" {
			s.o.Logger.InfoContext(ctx, "the gateway was asked for what the book does not know", slog.String("gateway", string(g.Name())),
				slog.Time("since", s.look.since), slog.Int("transfers", s.look.listed))
			return nil
		}
	}
	return fmt.Errorf("gateway %s lists more than %d transfers since %s", g.Name(), mostTransfers, s.look.since)
}

func (s *Service) takeInPage(ctx context.Context, g gateway.Gateway, page []gateway.Transfer) error {
	known, err := s.payoutsOf(ctx, page)
	if err != nil {
		return err
	}
	for _, t := range page {
		id, err := ParseID(t.Reference)
		if err != nil {
			continue
		}
		if err := s.takeIn(ctx, g, id, known, t); err != nil {
			return fmt.Errorf("take in payout %s from the gateway: %w", id, err)
		}
	}
	return nil
}

// takeIn takes a transfer of ours into the book, where that is behind.
func (s *Service) takeIn(ctx context.Context, g gateway.Gateway, id ID, known map[ID]Payout, t gateway.Transfer) error {
	p, isKnown := known[id]
	switch {
	case !isKnown:
		return s.adopt(ctx, g, id, t)
	case p.Gateway != g.Name():
		return s.recordStray(ctx, t, "the payout is at another gateway")
	case p.State == Waiting:
		_, err := s.believe(ctx, id, t.Report)
		if isTampered(err) { // its next step freezes it
			err = nil
		}
		return err
	case p.GatewayID != "" && p.GatewayID != t.GatewayID:
		return s.recordStray(ctx, t, "the payout has another transfer at the gateway")
	default:
		_, err := s.hastenIfNews(ctx, p, t.Report)
		return err
	}
}

// believe moves a payout that waits to where the gateway has it, and reports whether it did.
func (s *Service) believe(ctx context.Context, id ID, r gateway.Report) (bool, error) {
	var found Payout
	moved, err := s.change(ctx, id, func(p *Payout) error {
		if p.State != Waiting {
			return errRaced
		}
		p.foundAtGateway(r, s.o.Now())
		found = *p
		return nil
	})
	if moved {
		s.o.Logger.WarnContext(ctx, "the gateway has a payout that the book called waiting", slog.String("payout", string(id)))
		s.follow(ctx, found, r)
	}
	return moved, err
}

// foundAtGateway is how a payout that waited goes on whose transfer was made all the same.
func (p *Payout) foundAtGateway(r gateway.Report, now time.Time) {
	p.State, p.GatewayID, p.Progress = Submitted, r.GatewayID, r.Progress
	p.ProcessedAt = r.MadeAt
	p.ReasonCode, p.Reason = "found_at_gateway", "The payment gateway already had this transfer; our records were behind."
	p.Tries, p.DueAt = 0, now
}

// follow takes in what the gateway says of a payout just found there. What goes wrong is left to the
// payout's next step, which asks again.
func (s *Service) follow(ctx context.Context, p Payout, r gateway.Report) {
	if _, err := s.merge(ctx, p, r); err != nil {
		s.o.Logger.WarnContext(ctx, "a payout found at the gateway has yet to be looked at",
			slog.String("payout", string(p.ID)), slog.Any("error", err))
	}
}

// hastenIfNews makes the next step of a payout due now if the gateway tells news of it, and reports
// whether it did.
func (s *Service) hastenIfNews(ctx context.Context, p Payout, r gateway.Report) (bool, error) {
	if to, err := outcome(r, p, s.o.Currency); err == nil && to == p.State {
		return false, nil
	}
	hastened := false
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		hastened, err = tx.HastenPayout(ctx, p.ID, s.o.Now())
		return err
	})
	return hastened, err
}

// wasSent asks the gateway about a payout that waits since before the start, or was turned away, before it
// is sent or its money given back: it may have been sent by a service whose book was newer, or been taken all
// the same. It reports whether the gateway has it.
func (s *Service) wasSent(ctx context.Context, p Payout) (bool, error) {
	if p.State != Waiting || (!p.RequestedAt.Before(s.started) && p.SentAt.IsZero()) {
		return false, nil
	}
	report, err := s.lookUp(ctx, p)
	switch {
	case errors.Is(err, gateway.ErrUnknownTransfer):
		return false, nil
	case errors.Is(err, gateway.ErrNotOffered) && s.o.Restored: // it may have been sent after the backup
		return false, fmt.Errorf("payout %s: %w", p.ID, ErrRestored)
	case errors.Is(err, gateway.ErrNotOffered) && p.SentAt.IsZero(): // what this gateway was sent is never taken back to waiting
		return false, nil
	case err != nil:
		return false, fmt.Errorf("ask the gateway whether payout %s was sent before: %w", p.ID, err)
	default:
		return s.believe(ctx, p.ID, report)
	}
}
