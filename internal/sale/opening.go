package sale

import (
	"context"
	"errors"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/money"
)

// NewOpening asks for what a seller was owed by the system that the marketplace had before to become their first balance.
type NewOpening struct {
	Seller string
	// Available can be withdrawn at once. Below zero, the seller owes it.
	Available money.Amount
	// Pending becomes available at AvailableAt; without that, after the service's holding period.
	Pending     money.Amount
	AvailableAt time.Time
	By          decision.By
}

// openingID names a seller's opening balance: the adjustment that is available, and the sale that is pending.
const openingID = "opening"

// openingSaleID is the id of a seller's sale of that kind. Sales of others can't have one that begins so.
func openingSaleID(seller string) string { return openingID + ":" + seller }

// openingReason is what the seller reads.
const openingReason = "Opening balance, taken over from the system before."

// Failures of an opening balance.
var (
	ErrOpeningConflict = fault.New(fault.Conflict, "opening_conflict",
		"This seller has an opening balance of other amounts. A repeat must be identical; correct a balance with an adjustment.")
	ErrNotFirst = fault.New(fault.Conflict, "opening_not_first",
		"Money of this seller has moved already. An opening balance comes before everything else; correct a balance with an adjustment.")
)

// Open gives a seller their first balance, and reports whether it is new. What is available is an adjustment, and what is
// pending is a sale, which is released like any other. The same again changes nothing. It fails with [ErrOpeningConflict],
// [ErrNotFirst], [ErrSellerNotFound], [ledger.ErrTooLarge], [ledger.ErrTampered] or a fault that names a field.
func (s *Service) Open(ctx context.Context, n NewOpening) (bool, error) {
	return s.open(ctx, n, s.o.Store.InTx)
}

// WouldOpen is what [Service.Open] would do, and changes nothing.
func (s *Service) WouldOpen(ctx context.Context, n NewOpening) (bool, error) {
	return s.open(ctx, n, ledger.DryRun(s.o.Store.InTx))
}

func (s *Service) open(ctx context.Context, n NewOpening, run inTx) (bool, error) {
	switch {
	case n.Available == 0 && n.Pending == 0:
		return false, fault.Field("available", "or pending must be an amount")
	case n.Available > money.Max || n.Available < -money.Max:
		return false, fault.Field("available", "is too large")
	case n.Pending < 0 || n.Pending > money.Max:
		return false, fault.Field("pending", "must be above zero")
	}
	now := s.o.Now()
	created := false
	err := run(ctx, func(tx Tx) (err error) {
		created, err = s.openIn(ctx, tx, n, now)
		return err
	})
	return created, err
}

func (s *Service) openIn(ctx context.Context, tx Tx, n NewOpening, now time.Time) (bool, error) {
	sells, err := tx.SellerExists(ctx, n.Seller)
	if err != nil {
		return false, err
	}
	if !sells {
		return false, ErrSellerNotFound
	}
	if err := tx.CheckNewest(ctx, n.Seller); err != nil { // a repeat beside this one waits here
		return false, err
	}
	made := decision.New(n.By, decision.AdjustBalance, n.Seller, AdjustmentPrefix+openingID, now)
	adjusted, err := tx.EntriesAbout(ctx, made.Owner, made.Subject)
	if err != nil {
		return false, err
	}
	pending := Sale{
		ID: openingSaleID(n.Seller), Seller: n.Seller, Amount: n.Pending, OccurredAt: now, AvailableAt: n.AvailableAt, CreatedAt: now,
		Fingerprint: NewSale{Seller: n.Seller, Amount: n.Pending, AvailableAt: n.AvailableAt}.fingerprint(),
	}
	sold, err := tx.SaleForUpdate(ctx, pending.ID)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, err
	}
	if isSold := err == nil; isSold || len(adjusted) > 0 {
		if err := sameOpening(n, pending, adjusted, sold, isSold); err != nil {
			// Without a journal there was nothing to wait at, so one that was made meanwhile shows in part of what was read.
			if raced := tx.CheckNewest(ctx, n.Seller); raced != nil {
				return false, raced
			}
			return false, err
		}
		return false, nil
	}
	balance, err := tx.Balance(ctx, n.Seller)
	if err != nil {
		return false, err
	}
	if (balance != ledger.Balance{HoldUntil: balance.HoldUntil, Frozen: balance.Frozen}) {
		return false, ErrNotFirst
	}
	if n.Available != 0 {
		if _, err := appendAdjustment(ctx, tx, made, openingReason, n.Available); err != nil {
			return false, err
		}
	}
	if n.Pending == 0 {
		return true, nil
	}
	if pending.AvailableAt.IsZero() {
		pending.AvailableAt = now.Add(s.o.HoldingPeriod)
	}
	if pending.AvailableAt.Before(now) {
		pending.OccurredAt = pending.AvailableAt
	}
	pending.Month = pending.OccurredAt.In(s.o.Zone).Format(monthLayout)
	_, created, err := record(ctx, tx, pending, ledger.ActorOperator+n.By.Operator, now)
	return created, err
}

// sameOpening fails with [ErrOpeningConflict] unless the opening balance that is there is of the same amounts.
func sameOpening(n NewOpening, pending Sale, adjusted []ledger.Entry, sold Sale, isSold bool) error {
	var available money.Amount
	if len(adjusted) > 0 {
		first, err := AdjustmentOf(adjusted[0])
		if err != nil {
			return err
		}
		available = first.Amount
	}
	if available != n.Available || isSold != (n.Pending > 0) || isSold && sold.Fingerprint != pending.Fingerprint {
		return ErrOpeningConflict
	}
	return nil
}
