package ledger

import (
	"cmp"
	"context"
	"errors"
)

var errUndone = errors.New("ledger: undone")

// DryRun returns inTx for a trial: it undoes each transaction, and still reports success where the closure succeeds.
func DryRun[Tx any](inTx func(context.Context, func(Tx) error) error) func(context.Context, func(Tx) error) error {
	return func(ctx context.Context, fn func(Tx) error) error {
		err := inTx(ctx, func(tx Tx) error { return cmp.Or(fn(tx), errUndone) })
		if errors.Is(err, errUndone) {
			return nil
		}
		return err
	}
}
