package ledger

import (
	"cmp"
	"context"
	"errors"
)

// Appender is a transaction that adds entries to journals.
type Appender interface {
	// Append adds an entry to its owner's journal, and moves the owner's totals with it. It fails with [ErrInsufficient],
	// [ErrTooLarge] or [ErrTampered], or with a plain error for a bug of the caller, such as [ErrBelowZero]. Then nothing was
	// changed.
	Append(ctx context.Context, p Posting) (Entry, error)
}

// EntriesReader is where the entries about one subject are read.
type EntriesReader interface {
	// EntriesAbout lists what an owner's journal says of a subject, oldest first. It fails with [ErrTampered] if the service did
	// not write all of it.
	EntriesAbout(ctx context.Context, owner, subject string) ([]Entry, error)
}

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
