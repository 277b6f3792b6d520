package payout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/ledger"
)

// ReconcileStartup asks each gateway for every transfer since the last sending through it that the ledger tells of, and
// takes into the ledger what it does not know. It begins earlier where the records of a seller had been changed, so that a transfer could not
// be taken in until they were repaired. A gateway that can't list is not waited for, see [Service.reconcileUnlisted].
// A database that was restored to an older state calls payouts waiting that were sent, and has lost others altogether. Until
// ReconcileStartup has succeeded once, nothing is due, so nothing is sent. A call that fails is continued by the next call.
// It is safe to repeat, to break off, and to run on many instances at once.
func (s *Service) ReconcileStartup(ctx context.Context) error {
	s.progress.Lock()
	defer s.progress.Unlock()
	if !s.progress.warned {
		if err := s.warnIfUnasked(ctx); err != nil {
			return err
		}
		s.progress.warned = true
	}
	if err := s.readNamed(ctx); err != nil { // whose transfers an earlier start could not match
		return err
	}
	for _, g := range s.o.Gateways.All() {
		if slices.Contains(s.progress.done, g.Name()) {
			continue
		}
		if err := s.reconcileGateway(ctx, g); err != nil {
			return err
		}
		s.progress.done = append(s.progress.done, g.Name())
		s.progress.since, s.progress.listed, s.progress.next = time.Time{}, 0, ""
	}
	if err := s.readNamed(ctx); err != nil {
		return err
	}
	s.progress.done = nil
	s.startupReconciled.Store(true)
	return nil
}

// lastSending returns from when on a gateway may have made transfers that are not known here: the first sending of the newest untampered payouts through
// it. A later time, written outside the service or by a clock that was ahead, would hide what was paid before it. Without such a payout lastSending
// returns when the first user came here, and zero without users. What was sent through another gateway does not count, because this one may not have been
// configured since.
func (s *Service) lastSending(ctx context.Context, at gateway.Name) (time.Time, error) {
	newest, err := s.o.Store.NewestSent(ctx, at, maxDistrusted)
	if err != nil {
		return time.Time{}, err
	}
	var first time.Time
	for _, p := range newest {
		_, err := check(ctx, s.o.Store, p)
		switch {
		case err != nil && !isTampered(err):
			return time.Time{}, err
		case err == nil && !p.SentAt.After(s.o.Now().Add(ClocksApart)) && (first.IsZero() || p.SentAt.Before(first)):
			first = p.SentAt
		}
	}
	if !first.IsZero() {
		return first, nil
	}
	return s.o.Store.FirstUserAt(ctx)
}

// warnIfUnasked logs that the gateway of the last payout that was sent is not configured. If the database was restored, what that
// gateway has paid since the backup is not looked for until it is configured, and may be paid again.
func (s *Service) warnIfUnasked(ctx context.Context) error {
	last, found, err := s.o.Store.LastSent(ctx)
	if err != nil {
		return fmt.Errorf("find the last sending: %w", err)
	}
	if !found {
		return nil
	}
	if _, err := s.gatewayOf(last); err != nil {
		s.o.Logger.ErrorContext(ctx, "last gateway not configured",
			slog.String("gateway", string(last.Gateway)), slog.String("payout_id", string(last.ID)),
			slog.String("detail", "after a restore, what it has paid since the backup is not looked for until it is configured, and may be paid again"))
	}
	return nil
}

// maxDistrusted bounds how many of the newest payouts are checked at a start, before all that a gateway ever made is listed.
const maxDistrusted = 20

// StartupReconciled reports whether ReconcileStartup has succeeded.
func (s *Service) StartupReconciled() bool { return s.startupReconciled.Load() }

// startupProgress is how far a ReconcileStartup has come.
type startupProgress struct {
	sync.Mutex
	warned bool // of a gateway that is not asked
	// done are the gateways that have told all.
	done []gateway.Name
	// since is from when on the gateway under way is asked, zero before it is; listed counts what was read of its list, and next
	// is where that goes on.
	since  time.Time
	listed int
	next   gateway.Cursor
}

// ClocksApart is how far a gateway's clock, or another instance's, may differ from ours before money could be lost. A start lists transfers from
// that long before the last sending, so that a slow clock hides none.
const ClocksApart = 10 * time.Minute

// maxTransfers bounds a list that a broken gateway never ends. A page without transfers counts as one.
const maxTransfers = 10_000_000

// reconcileGateway imports and applies what one gateway has.
func (s *Service) reconcileGateway(ctx context.Context, g gateway.Gateway) error {
	if !g.Capabilities().List {
		return s.reconcileUnlisted(ctx, g)
	}
	if s.progress.since.IsZero() {
		last, err := s.lastSending(ctx, g.Name())
		if err != nil {
			return fmt.Errorf("find the last sending through gateway %s: %w", g.Name(), err)
		}
		if last.IsZero() { // a database without users has lost no payout
			return nil
		}
		// An earlier start could not take this one in, because its seller's records had been changed. They may be repaired by now.
		unmatched, err := s.o.Store.OldestUnmatched(ctx, g.Name(), tamperedSeller)
		if err != nil {
			return fmt.Errorf("find the oldest unmatched transfer of gateway %s: %w", g.Name(), err)
		}
		if !unmatched.IsZero() && unmatched.Before(last) {
			last = unmatched
		}
		s.progress.since = last.Add(-ClocksApart)
	}
	for s.progress.listed < maxTransfers {
		page, err := g.Transfers(ctx, s.progress.since, s.progress.next)
		if err != nil {
			return fmt.Errorf("list the transfers of gateway %s: %w", g.Name(), err)
		}
		if err := s.reconcilePage(ctx, g, page.Transfers); err != nil {
			return err
		}
		s.progress.listed, s.progress.next = s.progress.listed+max(1, len(page.Transfers)), page.Next
		if page.Next == "" {
			s.o.Logger.InfoContext(ctx, "startup reconciliation listed transfers", slog.String("gateway", string(g.Name())),
				slog.Time("since", s.progress.since), slog.Int("transfers", s.progress.listed))
			return nil
		}
	}
	return fmt.Errorf("gateway %s lists more than %d transfers since %s", g.Name(), maxTransfers, s.progress.since)
}

func (s *Service) reconcilePage(ctx context.Context, g gateway.Gateway, page []gateway.Transfer) error {
	known, err := s.payoutsOf(ctx, page)
	if err != nil {
		return err
	}
	for _, t := range page {
		id, err := ParseID(t.Reference)
		if err != nil {
			continue
		}
		if err := s.reconcileTransfer(ctx, g, id, known, t); err != nil {
			return fmt.Errorf("take in payout %s from the gateway: %w", id, err)
		}
	}
	return nil
}

// reconcileTransfer brings the ledger up to date with one of our transfers.
func (s *Service) reconcileTransfer(ctx context.Context, g gateway.Gateway, id ID, known map[ID]Payout, t gateway.Transfer) error {
	p, isKnown := known[id]
	if isKnown { // by an entry that an attacker may have written, beside a row of it
		entries, err := s.o.Store.EntriesAbout(ctx, p.Seller, string(id))
		if isTampered(err) || err == nil && len(entries) == 0 {
			return s.keepAnother(ctx, g, p, t, tamperedSeller)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case !isKnown:
		return s.reconcileUnknown(ctx, g, id, known, t)
	case p.Gateway != g.Name():
		return s.keepAnother(ctx, g, p, t, "the payout is at another gateway")
	case p.State == Waiting:
		moved, err := s.recordTransfer(ctx, p, t.Report)
		if isTampered(err) { // its next step freezes it
			return nil
		}
		if err != nil || moved {
			return err
		}
		now, err := s.o.Store.Payout(ctx, id) // it has changed since the page was read, as by an import of the same page
		if _, differs := ledger.Differs(p, now); err == nil && !differs {
			err = errors.New("it changes while it is compared with the gateway; it is compared again")
		}
		if err != nil {
			return err
		}
		known[id] = now
		return s.reconcileTransfer(ctx, g, id, known, t)
	case p.GatewayID != "" && p.GatewayID != t.GatewayID:
		return s.keepAnother(ctx, g, p, t, "the payout has another transfer at the gateway")
	case p.GatewayID == "" && !g.Capabilities().Lookup: // its next step could not ask for it
		return s.applyLookup(ctx, p, t.Report)
	default:
		_, err := s.rescheduleIfChanged(ctx, p, t.Report)
		if err == nil && s.hasLost(p.Seller) { // perhaps because an earlier start could not tell that the ledger has it
			err = s.o.Store.InTx(ctx, func(tx Tx) error { return tx.ForgetUnmatchedTransfer(ctx, g.Name(), t.GatewayID) })
		}
		return err
	}
}

// keepAnother keeps a transfer under the reference of a payout that has another one: its money has left as well, and the balance knows
// one of them.
func (s *Service) keepAnother(ctx context.Context, g gateway.Gateway, p Payout, t gateway.Transfer, why string) error {
	t.Order.Seller = cmp.Or(t.Order.Seller, p.Seller) // not every gateway tells it
	return s.keepLost(ctx, g, p.ID, t, why)
}

// reconcileUnknown imports a transfer whose payout was not known when its page was read. The payout is known from then on: what else the
// page has under its reference is another transfer.
func (s *Service) reconcileUnknown(ctx context.Context, g gateway.Gateway, id ID, known map[ID]Payout, t gateway.Transfer) error {
	imported, err := s.importTransfer(ctx, g, id, t)
	if err != nil {
		return err
	}
	p, err := s.o.Store.Payout(ctx, id)
	if errors.Is(err, ErrNotFound) { // it is listed as unmatched
		return nil
	}
	if err != nil {
		return err
	}
	known[id] = p
	if imported {
		return nil
	}
	return s.reconcileTransfer(ctx, g, id, known, t) // another instance has imported one meanwhile
}

// rescheduleIfChanged makes the next step of a payout due now if the gateway reports a change, and reports
// whether it did.
func (s *Service) rescheduleIfChanged(ctx context.Context, p Payout, r gateway.Report) (bool, error) {
	if to, err := nextState(r, p, s.o.Now(), s.o.Currency); err == nil && to == p.State {
		return false, nil
	}
	return s.PollNow(ctx, p.ID)
}
