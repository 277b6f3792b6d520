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

// LiftHold ends the hold on a seller's payouts before its time, by an admin's decision. It fails with [ErrNoHold] or with a
// fault that names the note.
func (s *Service) LiftHold(ctx context.Context, by decision.By, seller string) error {
	if err := by.RequireNote(); err != nil {
		return err
	}
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	made := decision.New(by, decision.LiftHold, seller, seller, now)
	data, err := ledger.Facts("decision", made.ID)
	if err != nil {
		return err
	}
	err = s.o.Store.InGroup(ctx, ledger.Scope{Owner: seller}, func(tx ChangeTx) error {
		balance, err := tx.Balance(ctx, seller)
		if err != nil {
			return err
		}
		if balance.Hold(now).IsZero() {
			return ErrNoHold
		}
		_, err = tx.Append(ctx, ledger.Posting{
			Owner: seller, At: now, Type: ledger.PayoutsHoldLifted, Subject: seller, Actor: ledger.ActorAdmin + by.Admin, Data: data,
		})
		if err != nil {
			return err
		}
		return tx.RecordDecision(ctx, made)
	})
	if err == nil {
		s.logDecision(ctx, made)
	}
	return err
}
