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

// applyReport applies a gateway report to the payout.
// Reports may come twice, late and out of order: each is compared with what is stored, and one that
// has nothing new changes nothing but the time of the next poll. One that disagrees with the journal is
// recorded as a discrepancy, and moves no money.
//
// seen is the payout as read before the gateway was asked. If its state has changed since, a report that disagrees may be out of
// date, so it is not recorded: the payout is polled again at once, and one that is submitting becomes unknown first.
// recordSubmission passes only the id, so its reports are always treated so.
func (s *Service) applyReport(ctx context.Context, seen Payout, r gateway.Report) error {
	scope := ledger.Scope{Payout: string(seen.ID)}
	_, err := s.applyReportIf(ctx, scope, seen, r, ledger.ActorGateway, func(Payout) (alsoRecord, error) { return nil, nil })
	return err
}

// alsoRecord records what belongs to a report in the transaction that applies it, with the payout as it then is.
type alsoRecord func(ChangeTx, Payout) error

// applyReportIf is applyReport in an actor's name. It reports whether the payout's state changed. guard gets the payout as it is
// now: if it returns an error, nothing is applied. What else it returns is recorded if the report is applied, and only then.
//
// Before it records that money left for a payout whose amount the seller has again, it freezes the seller's payouts. Meanwhile this process sends nothing of the seller's.
func (s *Service) applyReportIf(
	ctx context.Context, scope ledger.Scope, seen Payout, r gateway.Report, actor string, guard func(Payout) (alsoRecord, error),
) (bool, error) {
	var moved bool
	apply := func() (err error) {
		for tries := 2; ; tries-- { // an admin may resume the seller's payouts in between
			if moved, err = s.applyReportOnce(ctx, scope, seen, r, actor, guard, tries > 0); !errors.Is(err, errNotFrozen) {
				return err
			}
			if err := s.freezeForTransfer(context.WithoutCancel(ctx), seen); err != nil {
				return err
			}
		}
	}
	_, discrepancy := nextState(r, seen, s.o.Now(), s.o.Currency)
	scope.ReadsPause = scope.ReadsPause || discrepancy != nil && differsInAccount(discrepancy.Error()) // so that the account's entries are loaded
	if discrepancy == nil || !seen.isRefundedOf(r) {
		err := apply()
		return moved, err
	}
	err := s.stopWhile(seen, apply)
	return moved, err
}

// errNotFrozen means that a seller's payouts have to be frozen first.
var errNotFrozen = errors.New("payout: money left for a payout whose amount its seller has again, and the seller's payouts are not frozen")

// applyReportOnce is applyReportIf, and fails with errNotFrozen where mayNeedFreeze and the seller's payouts have to be frozen first.
func (s *Service) applyReportOnce(
	ctx context.Context, scope ledger.Scope, seen Payout, r gateway.Report, actor string, guard func(Payout) (alsoRecord, error), mayNeedFreeze bool,
) (bool, error) {
	var from, to State
	var discrepancy error
	saved, err := s.changeIn(context.WithoutCancel(ctx), scope, actor, func(tx ChangeTx, p *Payout) error {
		also, err := guard(*p)
		if err != nil {
			return err
		}
		now := s.o.Now()
		from = p.State
		to, discrepancy = nextState(r, *p, now, s.o.Currency)
		intact, err := s.isIntact(ctx, tx, *p, to, discrepancy)
		if err != nil {
			return err
		}
		if intact && discrepancy == nil && !p.endedUnpaid() { // the row may hide that the journal has the payout as ended
			if intact, err = endsNotUnpaid(ctx, tx, *p, r); err != nil {
				return err
			}
			if !intact {
				discrepancy = errors.New(TamperedNote)
			}
		}
		if !intact && (discrepancy != nil || to != from && to.Status() != from.Status()) {
			discrepancy = errors.New(TamperedNote) // its amount may differ from what was reserved, and the gateway may be right
		}
		if discrepancy != nil && seen.State != from { // the report may be older than this state: ask again
			if also != nil {
				return ErrMovedOn
			}
			if from == Submitting { // the sending is over, so it need not wait for its lease
				p.State, p.Tries = Unknown, 0
			}
			p.DueAt = now
			to, discrepancy = p.State, nil
			return nil
		}
		if discrepancy != nil {
			if discrepancy, err = blame(ctx, tx, scope, *p, discrepancy); err != nil {
				return err
			}
			if err := s.noteDiscrepancy(ctx, tx, p, seen, r, discrepancy.Error(), mayNeedFreeze); err != nil {
				return err
			}
			return nil // the discrepancy is to be committed
		}
		if intact && p.IsTampered() { // it was repaired
			p.Discrepancy = ""
		}
		p.applyDetails(r, to, now)
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
		if also != nil {
			return also(tx, *p)
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
	return err == nil && saved && to != from, err
}

// noteDiscrepancy writes on a payout what a report says that can't be true, and when the gateway is asked next. It fails with errNotFrozen where
// mayNeedFreeze and the seller's payouts have to be frozen first.
func (s *Service) noteDiscrepancy(ctx context.Context, tx ChangeTx, p *Payout, seen Payout, r gateway.Report, text string, mayNeedFreeze bool) error {
	if mayNeedFreeze {
		if err := checkFrozen(ctx, tx, *p, r, text); err != nil {
			return err
		}
	}
	if text != TamperedNote || p.Discrepancy == "" { // a note about tampering replaces no discrepancy of the gateway
		p.Discrepancy = text
	}
	if p.endedUnpaid() {
		p.Progress = r.Progress // whether what the gateway says freezes payouts again depends on what it said before
	}
	p.Tries++
	now := s.o.Now()
	due := s.nextPollAt(*p, now)
	switch mayBePaidYet := r.Progress != gateway.Paid && now.Before(s.o.Arrival.FinalCheckUntil(p.EndedAt)); {
	case !p.isRefundedOf(r): // nothing left, so the checks go on as if nothing disagreed
	case mayBePaidYet:
		due = now.Add(s.o.Jitter(waitAfter(frequentFinalChecks, p.Tries)))
	default: // an admin looks
		due = time.Time{}
	}
	p.setNextPoll(seen, due)
	return nil
}

// isIntact compares the payout with its seller's entries if that matters: money is about to move, the gateway disagrees, or
// tampering was found before. Otherwise it returns true.
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

// blame returns the discrepancy to record. A gateway that names another account is right if our row of the account was changed; then it is the row's.
// blame looks only if the scope reads the pause, because only then the account's entries are loaded.
func blame(ctx context.Context, tx ChangeTx, scope ledger.Scope, p Payout, discrepancy error) (error, error) {
	if !scope.ReadsPause || !differsInAccount(discrepancy.Error()) {
		return discrepancy, nil
	}
	account, err := journaledAccount(ctx, tx, p)
	switch {
	case isTampered(err), err == nil && account.Beneficiary != p.Beneficiary:
		return errors.New(TamperedNote), nil
	default:
		return discrepancy, err
	}
}

func (s *Service) logDiscrepancy(ctx context.Context, id ID, discrepancy error) {
	s.o.Logger.ErrorContext(ctx, "payout discrepancy found",
		slog.String("payout_id", string(id)), slog.String("discrepancy", discrepancy.Error()))
}

// recordDiscrepancy records on a payout what disagrees with it, unless a discrepancy is recorded already.
func (s *Service) recordDiscrepancy(ctx context.Context, id ID, discrepancy error) error {
	isNew, err := s.change(context.WithoutCancel(ctx), id, func(p *Payout) error {
		if p.Discrepancy != "" {
			return errLeave
		}
		p.Discrepancy = discrepancy.Error()
		return nil
	})
	if isNew {
		s.logDiscrepancy(ctx, id, discrepancy)
	}
	return err
}

// checkFrozen fails with errNotFrozen if, by the journal, the seller has a payout's amount in the balance again, the gateway has paid it or may
// yet pay it, and the seller's payouts are not frozen. A discrepancy that is known froze them before, see foldAndFind.
func checkFrozen(ctx context.Context, tx ChangeTx, p Payout, r gateway.Report, discrepancy string) error {
	entries, err := tx.EntriesAbout(ctx, p.Seller, string(p.ID))
	if err != nil && !isTampered(err) {
		return err
	}
	journaled, isKnown := foldAndFind(p.ID, entries, discrepancy, false)
	if isKnown || !journaled.isRefundedOf(r) {
		return nil
	}
	balance, err := tx.Balance(ctx, p.Seller)
	if err == nil && !balance.Frozen {
		err = errNotFrozen
	}
	return err
}

// endsNotUnpaid reports that, by the journal, the seller does not have the amount of a payout again that the gateway has paid or may yet pay.
func endsNotUnpaid(ctx context.Context, tx ChangeTx, p Payout, r gateway.Report) (bool, error) {
	entries, err := tx.EntriesAbout(ctx, p.Seller, string(p.ID))
	if err != nil && !isTampered(err) {
		return false, err
	}
	journaled, _ := foldAndFind(p.ID, entries, "", false)
	return !journaled.isRefundedOf(r), nil
}

// isRefundedOf reports whether the seller has the money in the balance again that, by the report, was paid or may yet be.
func (p Payout) isRefundedOf(r gateway.Report) bool {
	to := reportedState(r, p.State)
	return p.endedUnpaid() && (to == Submitted || to == Completed || p.isNewUnrecognised(r))
}

// isNewUnrecognised reports whether the gateway has a transfer, and we don't know what has become of it, of a payout of which it had none.
func (p Payout) isNewUnrecognised(r gateway.Report) bool {
	return p.GatewayID == "" && r.Progress == gateway.Unrecognised
}

// foldAndFind folds a payout's entries, and reports whether a discrepancy is known. It is known while it is on record, or was the last one that an
// admin resolved, provided that it froze the seller's payouts: always with freezesAlways, else only if the seller had the amount again and the gateway
// had not said that nothing is paid. It is not known any more once the gateway says that nothing is paid, or once the payout ends, because an admin may
// have resumed the seller's payouts before.
func foldAndFind(id ID, entries []ledger.Entry, discrepancy string, freezesAlways bool) (p Payout, isKnown bool) {
	p.ID = id
	for _, e := range entries {
		before := p
		if ledger.ApplyEntry(e, &p) != nil {
			return Payout{}, false
		}
		switch byPerson := e.Actor != ledger.ActorGateway && e.Actor != ledger.ActorSystem; {
		case p.endedUnpaid() && !before.endedUnpaid():
			isKnown = false
		case p.Discrepancy == before.Discrepancy && p.Progress == before.Progress:
		case p.Discrepancy != "":
			isKnown = p.Discrepancy == discrepancy && (freezesAlways || p.endedUnpaid() && !saysUnpaid(p.Progress))
		default:
			isKnown = isKnown && !saysUnpaid(p.Progress) && (before.Discrepancy == "" || byPerson)
		}
	}
	return p, isKnown
}

// saysUnpaid reports whether a gateway's word means that nothing is paid, and nothing will be.
func saysUnpaid(w gateway.Progress) bool {
	return w == gateway.Failed || w == gateway.Cancelled || w == gateway.Reversed
}

// discrepancyError is a discrepancy that was recorded on the payout.
type discrepancyError struct{ error }

// A report may be older than the payout's end. For lateReport after the end, one that was true before is no discrepancy. After a reversal it is none for
// lateOfReversals, because no gateway pays such a transfer again. Both leave room for clocks that are apart.
const (
	lateReport      = 5 * time.Minute
	lateOfReversals = 15 * time.Minute
)

// nextState is the state that follows from the report, or why it can't be true. What is final stays so:
// only completed may still be returned.
func nextState(r gateway.Report, p Payout, now time.Time, c money.Currency) (State, error) {
	if r.Reference != string(p.ID) || (p.GatewayID != "" && p.GatewayID != r.GatewayID) {
		return "", fmt.Errorf("it was asked for %s (%s there) and answered with %s for %s", p.ID, p.GatewayID, r.GatewayID, r.Reference)
	}
	if err := reportMismatch(r, p, c); err != nil {
		return "", err
	}
	to := reportedState(r, p.State)
	switch {
	case p.State == Waiting:
		return "", fmt.Errorf("it has a transfer (%s) that was never ordered", r.RawStatus)
	case p.endedUnpaid() && p.Progress == gateway.Paid && saysUnpaid(r.Progress): // an admin may have taken the amount from the balance
		return "", fmt.Errorf("its transfer was paid after the payout was %s, and is %s now: what was corrected for it is the seller's again", p.State, r.RawStatus)
	case p.endedUnpaid() && p.isNewUnrecognised(r):
		return "", fmt.Errorf("it has a transfer whose status %q we don't know, the payout is %s", r.RawStatus, p.State)
	case p.endedUnpaid() && p.GatewayID != "" && to == Submitted && now.Sub(p.EndedAt) > lateReport:
		return "", fmt.Errorf("its transfer is %s again, the payout is %s", r.RawStatus, p.State)
	case to == p.State || p.State.canBecome(to):
		return to, nil
	case p.GatewayID != "" && (to == Submitted || to == Completed && p.wasReversed(now)): // it was true before its end
		return p.State, nil
	case to.Status() == p.State.Status(), p.State != Returned && p.endedUnpaid() && saysUnpaid(r.Progress): // neither side has paid
		return p.State, nil
	default:
		return "", fmt.Errorf("its transfer is %s, the payout is %s", r.RawStatus, p.State)
	}
}

// wasReversed reports whether the payout was paid before it ended, as far as a report tells that may be late. Where nobody asked between the
// payment and the return of the money, only the return is known, and the payout has failed.
func (p Payout) wasReversed(now time.Time) bool {
	isReversed := p.State == Returned || p.State == Failed && p.Progress == gateway.Reversed
	return isReversed && now.Sub(p.EndedAt) <= lateOfReversals
}

// reportMismatch says, as an error, why the transfer is not what the payout ordered. What the gateway leaves out is no
// difference. The account is compared by its row, because the order itself is not kept once the gateway has it;
// the row never changes, and the audit holds each order against it.
func reportMismatch(r gateway.Report, p Payout, c money.Currency) error {
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

// reportedState is the state that a report stands for.
func reportedState(r gateway.Report, from State) State {
	switch r.Progress {
	case gateway.Paid:
		return Completed
	case gateway.Reversed, gateway.Failed:
		if from == Completed || from == Returned {
			return Returned
		}
		return Failed
	case gateway.Cancelled:
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

// applyDetails stores what a report says that takes the payout to a state, or leaves it there. The progress of a late report is of before.
func (p *Payout) applyDetails(r gateway.Report, to State, now time.Time) {
	p.GatewayID = r.GatewayID
	if reportedState(r, p.State) == to || p.endedUnpaid() && saysUnpaid(r.Progress) {
		p.Progress = r.Progress
	}
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

// finish ends a payout that was not paid. One that a gateway may have still gets its final check.
func (s *Service) finish(p *Payout, to State) {
	now := s.o.Now()
	p.endAs(to, now)
	p.DueAt = s.nextPollAt(*p, now)
}

// review moves a payout whose outcome can't be learnt to manual review.
func (p *Payout) review() {
	p.State = ManualReview
	p.ReasonCode, p.Reason = "outcome_unknown", "The payment gateway can't say whether this payout was made. Our team is looking into it."
}
