package payout_test

import (
	"context"
	"errors"
	"testing"

	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// undoing is a store that begins every transaction twice, as one does that meets others or loses its
// connection: what the first did is undone, and must have left no trace in the closure either. between runs between the two
// runs of a change, if it is set.
type undoing struct {
	payout.Store
	between func()
}

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
	if s.between != nil {
		s.between()
	}
	return s.Store.InGroup(ctx, c, fn)
}

// TestRequest_SecondRunIsServed has a sale released after the first run of a request, which the balance was too low for.
func TestRequest_SecondRunIsServed(t *testing.T) {
	s := newStory(t)
	s.payouts = s.newPayoutsOn(t, undoing{s.db.Payouts(), func() {
		s.record(t, sale.NewSale{ID: "in time", Seller: "usr_a", Amount: 100_000, OccurredAt: s.now, AvailableAt: s.now})
		s.release(t)
	}})
	p, replayed, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: opening, Key: "k"})
	if err != nil || replayed || s.stored(t, p.ID).State != payout.Waiting {
		t.Errorf("made %+v, replayed %t, %v", p, replayed, err)
	}
	s.wantAvailable(0)
}
