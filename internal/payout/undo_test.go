package payout_test

import (
	"context"
	"errors"

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

func (s undoing) InRequest(ctx context.Context, c payout.RequestCaller, fn func(payout.RequestTx) error) error {
	err := s.Store.InRequest(ctx, c, func(tx payout.RequestTx) error { return errors.Join(fn(tx), errUndone) })
	if !errors.Is(err, errUndone) {
		return err
	}
	return s.Store.InRequest(ctx, c, fn)
}
