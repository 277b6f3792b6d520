package payout

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
)

// errNotTakenIn undoes an import: an admin has settled the transfer, or the ledger has the payout.
var errNotTakenIn = errors.New("the transfer is not taken in")

const tamperedSeller = "the records of its seller were changed outside the service; once they are repaired, it is taken in within minutes"

// importTransfer recreates a payout that the database lost and the gateway has made. The money has left, so
// it is reserved even if that makes the balance negative; later sales make up for it. But then the seller's unsent payouts may
// pay the same money again, so they are marked.
// It reports whether it did; a transfer that can't be imported is recorded as unmatched, and stops its seller's payouts. One that an admin
// has resolved is left alone.
func (s *Service) importTransfer(ctx context.Context, g gateway.Gateway, id ID, t gateway.Transfer) (imported bool, err error) {
	waiting, why, err := s.remake(ctx, g, id, t)
	if isTampered(err) {
		return false, s.keepLost(ctx, g, id, t, tamperedSeller)
	}
	if err != nil {
		return false, err
	}
	if why != "" {
		return false, s.keepLost(ctx, g, id, t, why)
	}
	found := waiting
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		if err := tx.ForgetUnmatchedTransfer(ctx, g.Name(), t.GatewayID); err != nil { // an earlier try could not take it in
			return err
		}
		// An admin has settled it in another way. The row that is forgotten is locked, so that nobody resolves it meanwhile.
		isSettled, err := s.wasResolved(ctx, UnmatchedTransfer{Gateway: g.Name(), Transfer: t}.ID())
		if err == nil && isSettled {
			err = errNotTakenIn
		}
		if err != nil {
			return err
		}
		if err := tx.DeleteUnrecordedPayout(ctx, id); err != nil {
			return err
		}
		isNew, err := tx.ImportPayout(ctx, waiting)
		if err == nil && !isNew {
			err = errNotTakenIn
		}
		if err != nil {
			return err
		}
		now := s.o.Now()
		data, err := ledger.Patch(Payout{ID: id}, waiting)
		if err != nil {
			return err
		}
		e, err := tx.Append(ctx, ledger.Posting{
			Owner: waiting.Seller, At: now, Type: ledger.PayoutImported, Subject: string(id), Actor: ledger.ActorGateway,
			Data: data, Moved: ledger.ReservePayout(waiting.Amount),
		})
		if err != nil {
			return err
		}
		found.foundAtGateway(t.Report, now)
		if err := s.save(ctx, tx, waiting, found, ledger.ActorGateway, now); err != nil {
			return err
		}
		if e.After.Available >= 0 {
			return nil
		}
		return s.markUnsent(ctx, tx, waiting.Seller, now)
	})
	if isTampered(err) { // no money of this seller moves, and the others go on
		return false, s.keepLost(ctx, g, id, t, tamperedSeller)
	}
	if errors.Is(err, ledger.ErrTooLarge) { // what the gateway says can't be true
		return false, s.keepLost(ctx, g, id, t, "with its amount a total of its seller's would be larger than can be counted")
	}
	if errors.Is(err, errNotTakenIn) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.o.StateChanged("", Waiting)
	s.o.StateChanged(Waiting, Submitted)
	s.o.Logger.WarnContext(ctx, "payout imported from gateway", slog.String("payout_id", string(id)))
	s.applyFound(ctx, found, t.Report)
	return true, nil
}

// markUnsent marks the seller's payouts that the gateway is not known to have: they may be of the money that an imported
// payout has paid already. It changes payouts after a balance, against the usual order of locks: a deadlock is undone
// and tried again.
func (s *Service) markUnsent(ctx context.Context, tx Tx, seller string, now time.Time) error {
	unsent, err := tx.UnsentPayouts(ctx, seller)
	if err != nil {
		return err
	}
	for _, p := range unsent {
		was := p
		p.ReasonCode = codePossibleDuplicate
		if err := s.save(ctx, tx, was, p, ledger.ActorSystem, now); err != nil {
			return err
		}
	}
	return nil
}

// remake is a lost payout as it was before it was sent, made of what the gateway kept with its
// transfer. Where that can't be, it says why.
func (s *Service) remake(ctx context.Context, g gateway.Gateway, id ID, t gateway.Transfer) (p Payout, why string, err error) {
	o := t.Order
	switch {
	case o.Seller == "" || o.Account == "" || o.Gross == 0:
		return p, "the gateway does not tell whose payout it was", nil
	case t.Currency != "" && t.Currency != s.o.Currency.Code():
		return p, "it is in another currency than the ledger", nil
	case t.Amount <= 0 || o.Gross < t.Amount:
		return p, "its amount and what the gateway tells of the payout do not fit together", nil
	}
	exists, err := s.o.Store.UserExists(ctx, o.Seller)
	if err != nil {
		return p, "", err
	}
	if !exists {
		return p, "its seller is not in the ledger", nil
	}
	err = s.o.Beneficiaries.Recover(ctx, o.Seller, bank.ID(o.Account), g.Name(), o.Beneficiary)
	if f := fault.From(err); f != nil && f.Kind == fault.NotFound {
		return p, "the bank account that it went to is not its seller's, or not to be had any more", nil
	}
	p = Payout{
		ID: id, Seller: o.Seller, BankAccountID: bank.ID(o.Account), Amount: o.Gross, Fee: o.Gross - t.Amount,
		State: Waiting, Rail: o.Rail, Source: FromImport, Gateway: g.Name(), RequestedAt: id.requestedAt(),
	}
	_, p.ArriveAt = s.o.Arrival.Estimate(g.Capabilities().Rails, t.Amount, p.RequestedAt.Add(s.o.CancelWindow)) // as [Service.draft] does
	return p, "", err
}
