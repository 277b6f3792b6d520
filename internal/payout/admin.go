package payout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
)

// What a decision may be refused for.
var (
	// ErrMovedOn means that the decision does not fit the payout as it is now.
	ErrMovedOn         = fault.New(fault.Refused, "payout_moved_on", "The payout has changed meanwhile. Nothing was done. Look at it again.")
	ErrTooEarly        = fault.New(fault.Refused, "refund_too_early", "What was sent last may still arrive. Try again later.")
	ErrKnownToGateway  = fault.New(fault.Refused, "known_to_gateway", "The gateway has this payout's transfer after all. Nothing was refunded.")
	ErrPaidByStatement = fault.New(fault.Refused, "paid_by_statement",
		"The gateway's statement shows that this payout was paid, although the gateway finds no transfer of it now. Nothing was refunded. Ask the gateway which transfer it is, and match the payout with it.")
	ErrDiscrepancyChanged = fault.New(fault.Refused, "discrepancy_changed",
		"The discrepancy changed or was resolved since you opened this page. Look at the payout again.")
	ErrUnmatchedTransferResolved = fault.New(fault.NotFound, "unmatched_transfer_not_found", "No unmatched transfer has this id, or an admin resolved it already.")
)

func movedOn(p Payout) error {
	return ErrMovedOn.WithMessage("This can't be done with a payout that is %s. Look at it again.", p.State)
}

// Option is a decision that an admin may make about a payout as it is now.
type Option struct {
	Action decision.Action
	// From is when it may be made, where that is yet to come; zero for now.
	From time.Time
}

// Options lists what an admin may decide about a payout as it is now, the most harmless first.
func (s *Service) Options(ctx context.Context, p Payout) ([]Option, error) {
	options := []Option{{Action: decision.AskGateway}}
	add := func(fits bool, action decision.Action) {
		if fits {
			options = append(options, Option{Action: action})
		}
	}
	add(p.mayGoToReview(), decision.ReviewPayout)
	// A payout that waits though it is due may have been sent before the database was restored.
	add(p.isUnresolved() || p.State == Waiting && !p.DueAt.After(s.o.Now()), decision.MatchTransfer)
	add(p.Discrepancy != "", decision.ResolveDiscrepancy)
	add(s.Cancellable(p), decision.CancelPayout)
	if p.State != ManualReview {
		return options, nil
	}
	from, err := s.RefundableFrom(ctx, p.ID)
	switch {
	case errors.Is(err, ErrMovedOn), isTampered(err): // what was tampered with is not refunded
		return options, nil
	case err != nil:
		return nil, err
	case !from.After(s.o.Now()):
		from = time.Time{}
	}
	return append(options, Option{decision.RefundPayout, from}), nil
}

// mayGoToReview reports whether an admin may end what became of a payout: nobody knows it, or the gateway had a transfer and knows none any more.
func (p Payout) mayGoToReview() bool {
	return p.State == Unknown || p.State == Submitted && p.Discrepancy == forgotten(p.GatewayID).Error()
}

// SendToReview moves a payout that is unknown, or that its gateway forgot, to manual review: from now on nothing of it is sent again. What is being
// sent at this moment may still arrive, and an answer that the gateway has it moves the payout on by itself. It
// fails with [ErrNotFound] or [ErrMovedOn].
func (s *Service) SendToReview(ctx context.Context, by decision.By, id ID) (Payout, error) {
	return s.decide(ctx, by, decision.ReviewPayout, id, func(p *Payout) (string, error) {
		if !p.mayGoToReview() {
			return "", movedOn(*p)
		}
		p.review()
		return "", nil
	})
}

// RefundableFrom is when a payout in review may be refunded: by then the worker that was sending it has given
// up, and the gateway would know of it. It fails with [ErrNotFound] or [ErrMovedOn].
func (s *Service) RefundableFrom(ctx context.Context, id ID) (time.Time, error) {
	p, err := s.o.Store.Payout(ctx, id)
	if err != nil {
		return time.Time{}, err
	}
	if p.State != ManualReview {
		return time.Time{}, movedOn(p)
	}
	entries, err := s.o.Store.EntriesAbout(ctx, p.Seller, string(id))
	if isTampered(err) {
		err = ErrPayoutTampered.Because(err)
	}
	if err != nil {
		return time.Time{}, err
	}
	events, err := StateChangesOf(id, entries)
	if err != nil {
		return time.Time{}, err
	}
	for _, e := range events {
		if e.To == ManualReview { // there is one: no state leads back to Unknown
			return e.At.Add(s.o.Lease + s.o.GracePeriod), nil
		}
	}
	return time.Time{}, ErrPayoutTampered.Because(fmt.Errorf("payout %s is in review, and its history does not say since when", id))
}

// codeRefunded marks a payout that was never made, by the gateway's word and an admin's.
const codeRefunded = "refunded"

// Refunded reports whether an admin refunded the payout to the balance: nothing was wrong with the seller's account.
func (p Payout) Refunded() bool { return p.State == Failed && p.ReasonCode == codeRefunded }

// RefundToBalance ends a payout in review and returns its amount to the seller's balance. It does so only where nothing of
// it can be on its way any more, the gateway, asked now, knows no transfer of it, and the gateway's statement does not show
// it as paid. A transfer that the gateway knows is applied instead. The refunded payout is polled for some days all the same. It
// fails with [ErrNotFound], [ErrMovedOn], [ErrTooEarly], [ErrKnownToGateway], [ErrPaidByStatement], [ErrPayoutTampered], [ErrGatewayUnclear]
// or [decision.ErrOwn].
func (s *Service) RefundToBalance(ctx context.Context, by decision.By, id ID) (Payout, error) {
	if err := by.RequireNote(); err != nil {
		return Payout{}, err
	}
	from, err := s.RefundableFrom(ctx, id)
	if err != nil {
		return Payout{}, err
	}
	if wait := from.Sub(s.o.Now()); wait > 0 {
		return Payout{}, ErrTooEarly.WithMessage("What was sent last may still arrive. This payout can be refunded from %s.",
			from.In(s.o.Zone).Format("15:04:05 on 2 January")).After(wait)
	}
	seen, err := s.o.Store.Payout(ctx, id)
	if err != nil {
		return Payout{}, err
	}
	switch report, err := s.lookUp(ctx, seen); {
	case err == nil:
		return s.applyLateReport(ctx, seen, report)
	case errors.Is(err, gateway.ErrNotOffered): // the admin has looked it up in the gateway's own records
	case errors.Is(err, gateway.ErrNotConfigured):
		return Payout{}, ErrNoGateway
	case !errors.Is(err, gateway.ErrUnknownTransfer):
		return Payout{}, ErrGatewayUnclear.Because(err)
	}
	if taken, err := s.o.Store.TakenByStatement(ctx, seen); err != nil {
		return Payout{}, err
	} else if taken > 0 { // in part, too: who was paid may have sent something back
		return Payout{}, ErrPaidByStatement
	}
	return s.decide(ctx, by, decision.RefundPayout, id, func(p *Payout) (string, error) {
		if p.State != ManualReview {
			return "", movedOn(*p)
		}
		if _, differs := ledger.Differs(seen, *p); differs { // the gateway was asked about another row
			return "", ErrMovedOn
		}
		p.ReasonCode, p.Reason = codeRefunded, "This payout was not made, and its amount is back in your balance. You can request it again."
		s.finish(p, Failed)
		return "", nil
	})
}

// applyLateReport applies the report of a payout that was to be refunded, and says that it was not.
func (s *Service) applyLateReport(ctx context.Context, seen Payout, r gateway.Report) (Payout, error) {
	if err := s.applyLookup(ctx, seen, r); err != nil {
		return Payout{}, err
	}
	p, err := s.o.Store.Payout(ctx, seen.ID)
	if err != nil {
		return Payout{}, err
	}
	return p, ErrKnownToGateway.WithMessage("The gateway has this payout's transfer after all. Nothing was refunded; the payout is %s now.", p.State)
}

// maxQuoted bounds what is kept with a decision of what the gateway said.
const maxQuoted = 500

// ResolveDiscrepancy records that an admin has resolved the discrepancy, which is seen, and stores
// it with the decision. It fails with [ErrNotFound], or with [ErrDiscrepancyChanged] if another one is
// written down now.
func (s *Service) ResolveDiscrepancy(ctx context.Context, by decision.By, id ID, seen string) error {
	_, err := s.decide(ctx, by, decision.ResolveDiscrepancy, id, func(p *Payout) (string, error) {
		if p.Discrepancy == "" || p.Discrepancy != seen {
			return "", ErrDiscrepancyChanged
		}
		p.Discrepancy = ""
		if p.endedUnpaid() { // its final checks had stopped; the admin has just looked at it, so they go on at their slowest
			p.Tries = max(p.Tries, len(finalChecks))
			if now := s.o.Now(); p.DueAt.IsZero() || p.DueAt.After(now) { // else a notification is yet to be followed
				p.DueAt = s.nextPollAt(*p, now)
			}
		}
		if p.State == Completed && p.DueAt.IsZero() && seen != TamperedNote && seen != forgotten(p.GatewayID).Error() {
			p.DueAt = s.o.Now() // its last check told nothing that can be true, and the bank may have returned it by then
		}
		said, whose := []rune(seen), "The gateway: "
		if seen == TamperedNote {
			whose = "Found: "
		}
		return whose + string(said[:min(len(said), maxQuoted)]), nil
	})
	return err
}

// ResolveUnmatchedTransfer records that an admin has resolved a transfer that matches no payout, by [UnmatchedTransfer.ID]. It stops no
// payouts then. It fails with [ErrUnmatchedTransferResolved], or with [decision.ErrOwn] where it stops the admin's own.
func (s *Service) ResolveUnmatchedTransfer(ctx context.Context, by decision.By, id string) error {
	if err := by.RequireNote(); err != nil {
		return err
	}
	open, err := s.UnmatchedTransfer(ctx, id)
	if err != nil {
		return err
	}
	// The row may have been changed by hand, what is kept in memory not.
	if by.Admin != "" && (open.Transfer.Order.Seller == by.Admin || s.lost.hasTransfer(by.Admin, id)) {
		return decision.ErrOwn
	}
	made := decision.New(by, decision.ResolveUnmatchedTransfer, decision.Platform, id, s.o.Now())
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		resolved, err := tx.ResolveUnmatchedTransfer(ctx, open.Gateway, open.Transfer.GatewayID)
		if err != nil {
			return err
		}
		if !resolved {
			return ErrUnmatchedTransferResolved
		}
		return ledger.RecordDecision(ctx, tx, made)
	})
	if err == nil {
		s.logDecision(ctx, made)
	}
	return err
}

// decide changes a payout by an admin's word, and puts the decision on record in the same transaction, with
// what alter adds to the note.
func (s *Service) decide(
	ctx context.Context, by decision.By, action decision.Action, id ID, alter func(*Payout) (string, error),
) (Payout, error) {
	if err := by.RequireNote(); err != nil {
		return Payout{}, err
	}
	made := decision.New(by, action, "", string(id), s.o.Now()) // whose it is, is known once it is loaded
	var decided Payout
	changed, err := s.changeIn(ctx, ledger.Scope{Payout: string(id)}, ledger.ActorAdmin+by.Admin, func(tx ChangeTx, p *Payout) error {
		if err := checkOwner(ctx, tx, *p); err != nil {
			return err
		}
		added, err := alter(p)
		if err != nil {
			return err
		}
		decided = *p
		record := made
		record.Owner = p.Seller
		if err := record.CheckNotOwn(); err != nil {
			return err
		}
		if added != "" {
			record.Note += "\n\n" + added
		}
		return ledger.RecordDecision(ctx, tx, record)
	})
	switch {
	case err != nil:
		return Payout{}, err
	case !changed:
		return Payout{}, ErrMovedOn
	}
	s.logDecision(ctx, made)
	return decided, nil
}

// logDecision leaves the note out: it may name people.
func (s *Service) logDecision(ctx context.Context, d decision.Decision, more ...any) {
	s.o.Logger.With(more...).WarnContext(ctx, "admin decided", slog.String("decision", d.ID), slog.String("action", string(d.Action)),
		slog.String("admin", d.Admin), slog.String("subject", d.Subject))
}
