package payout

import (
	"context"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
)

// ErrNoHold means that no hold stands that could be lifted.
var ErrNoHold = fault.New(fault.Refused, "no_hold", "No hold on this seller's payouts stands now.")

// ErrHoldChanged means that another hold stands than the one that was to be lifted.
var ErrHoldChanged = fault.New(fault.Refused, "hold_changed", "Another hold on this seller's payouts has begun. Look at it again before you lift it.")

// LiftHold ends the hold on a seller's payouts before its time, by an admin's decision. seen is when the hold ends that the admin has looked
// at; zero if that is not known. It fails with [ErrNoHold], [ErrHoldChanged], [decision.ErrOwn] or a
// fault that names the note.
func (s *Service) LiftHold(ctx context.Context, by decision.By, seller string, seen time.Time) error {
	if err := by.RequireNote(); err != nil {
		return err
	}
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	made := decision.New(by, decision.LiftHold, seller, seller, now)
	if err := made.CheckNotOwn(); err != nil {
		return err
	}
	data, err := ledger.Facts("decision", made.ID)
	if err != nil {
		return err
	}
	err = s.o.Store.InGroup(ctx, ledger.Scope{Owner: seller}, func(tx ChangeTx) error {
		balance, err := tx.Balance(ctx, seller)
		if err != nil {
			return err
		}
		ends := balance.Hold(now)
		if ends.IsZero() {
			return ErrNoHold
		}
		if !seen.IsZero() && !seen.Truncate(time.Millisecond).Equal(ends.Truncate(time.Millisecond)) {
			return ErrHoldChanged
		}
		_, err = tx.Append(ctx, ledger.Posting{
			Owner: seller, At: now, Type: ledger.PayoutsHoldLifted, Subject: seller, Actor: ledger.ActorAdmin + by.Admin, Data: data,
		})
		if err != nil {
			return err
		}
		return ledger.RecordDecision(ctx, tx, made)
	})
	if err == nil {
		s.logDecision(ctx, made)
	}
	return err
}
