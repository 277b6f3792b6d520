package payout_test

import (
	"context"
	"errors"

	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// undoing is a store that begins every transaction twice, as one does that meets others or loses its
// connection: what the first did is undone, and must have left no trace in the closure either.
type undoing struct{ payout.Store }

var errUndone = errors.New("undone, to be begun again")

func (s undoing) InTx(ctx context.Context, fn func(payout.Tx) error) error {
	err := s.Store.InTx(ctx, func(tx payout.Tx) error { return errors.Join(fn(tx), errUndone) })
	if !errors.Is(err, errUndone) {
		return err
	}
	return s.Store.InTx(ctx, fn)
}

func (s undoing) InGroup(ctx context.Context, c ledger.Scope, fn func(payout.ChangeTx) error) error {
	err := s.Store.InGroup(ctx, c, func(tx payout.ChangeTx) error { return errors.Join(fn(tx), errUndone) })
	if !errors.Is(err, errUndone) {
		return err
	}
	return s.Store.InGroup(ctx, c, fn)
}
