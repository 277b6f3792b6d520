package simulate

import (
	"context"
	"runtime"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// caller is who begins a transaction: the innermost calls of the service.
type caller [6]uintptr

// failureTurn is what has been made to fail of the transactions of a caller.
type failureTurn struct{ runs, last int }

// failures is how often transactions of one caller are made to fail: each statement in its turn, and then from the first one on again.
const failures = 12

// failOne makes a statement of a transaction fail, and wants the transaction to fail with it. It is then undone, and run as ever. The statement is chosen without
// chance, so that the failure of each is seen soon: which transactions begin, and where from, is the seed's.
func (m *market) failOne(s *seen, run func(s *seen, undo error) error) {
	if !m.o.Faults[undone] || m.closing {
		return
	}
	var by caller
	runtime.Callers(3, by[:]) // who called watched
	f := m.failing[by]
	if f.runs == failures {
		return
	}
	s.failAt = f.last + 1
	_ = run(s, errUndone)
	if f.runs, f.last = f.runs+1, s.failAt; !s.failed {
		f.last = 0
	}
	s.failAt = 0
	m.failing[by] = f
	m.tally.faults[undone]++
	m.assert(writtenAsMeant, !s.swallowed, "", "statement %d of a transaction failed, and the transaction was to be committed all the same", f.last)
	m.compareRows(s.on, s.touched)
}

// fails is the failure of a statement whose turn it is.
func (s *seen) fails() error {
	s.statements++
	if s.statements != s.failAt {
		return nil
	}
	s.failed = true
	return errUndone
}

// outcome is that of a closure in a transaction, which fails if one of its statements has failed.
func (s *seen) outcome(err, undo error) error {
	s.swallowed = s.swallowed || s.failed && err == nil
	return orUndo(err, undo)
}

func (t changeTx) SaveIdempotency(ctx context.Context, user, key string, r payout.Idempotency, now time.Time) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	return t.ChangeTx.SaveIdempotency(ctx, user, key, r, now)
}

func (t changeTx) SaveIdempotencyRefusal(ctx context.Context, user, key, refusal string) error {
	if err := t.seen.fails(); err != nil {
		return err
	}
	return t.ChangeTx.SaveIdempotencyRefusal(ctx, user, key, refusal)
}

func (t changeTx) PayoutForUpdate(ctx context.Context, id payout.ID) (payout.Payout, error) {
	if err := t.seen.fails(); err != nil {
		return payout.Payout{}, err
	}
	return t.ChangeTx.PayoutForUpdate(ctx, id)
}

func (t changeTx) CheckJournal(ctx context.Context, owner string, from int64) error {
	if err := t.seen.fails(); err != nil {
		return err
	}
	return t.ChangeTx.CheckJournal(ctx, owner, from)
}

func (t changeTx) EntriesAbout(ctx context.Context, seller, id string) ([]ledger.Entry, error) {
	if err := t.seen.fails(); err != nil {
		return nil, err
	}
	return t.ChangeTx.EntriesAbout(ctx, seller, id)
}

func (t payoutTx) SaveIdempotency(ctx context.Context, user, key string, r payout.Idempotency, now time.Time) (bool, error) {
	return t.change().SaveIdempotency(ctx, user, key, r, now)
}

func (t payoutTx) SaveIdempotencyRefusal(ctx context.Context, user, key, refusal string) error {
	return t.change().SaveIdempotencyRefusal(ctx, user, key, refusal)
}

func (t payoutTx) PayoutForUpdate(ctx context.Context, id payout.ID) (payout.Payout, error) {
	return t.change().PayoutForUpdate(ctx, id)
}

func (t payoutTx) CheckJournal(ctx context.Context, owner string, from int64) error {
	return t.change().CheckJournal(ctx, owner, from)
}

func (t payoutTx) EntriesAbout(ctx context.Context, seller, id string) ([]ledger.Entry, error) {
	return t.change().EntriesAbout(ctx, seller, id)
}

func (t payoutTx) InsertMail(ctx context.Context, row mail.Row) error {
	if err := t.seen.fails(); err != nil {
		return err
	}
	return t.Tx.InsertMail(ctx, row)
}

func (t saleTx) AddRefunded(ctx context.Context, id string, amount money.Amount) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	return t.Tx.AddRefunded(ctx, id, amount)
}

func (t saleTx) AddEarnings(ctx context.Context, seller, month string, amount money.Amount) error {
	if err := t.seen.fails(); err != nil {
		return err
	}
	return t.Tx.AddEarnings(ctx, seller, month, amount)
}

func (t saleTx) SaleForUpdate(ctx context.Context, id string) (sale.Sale, error) {
	if err := t.seen.fails(); err != nil {
		return sale.Sale{}, err
	}
	return t.Tx.SaleForUpdate(ctx, id)
}

func (t saleTx) CheckNewest(ctx context.Context, owner string) error {
	if err := t.seen.fails(); err != nil {
		return err
	}
	return t.Tx.CheckNewest(ctx, owner)
}

func (t saleTx) EntriesAbout(ctx context.Context, seller, subject string) ([]ledger.Entry, error) {
	if err := t.seen.fails(); err != nil {
		return nil, err
	}
	return t.Tx.EntriesAbout(ctx, seller, subject)
}

func (t bankTx) CheckNewest(ctx context.Context, owner string) error {
	if err := t.seen.fails(); err != nil {
		return err
	}
	return t.Tx.CheckNewest(ctx, owner)
}

func (t bankTx) EntriesAbout(ctx context.Context, seller, id string) ([]ledger.Entry, error) {
	if err := t.seen.fails(); err != nil {
		return nil, err
	}
	return t.Tx.EntriesAbout(ctx, seller, id)
}

func (t bankTx) InsertMail(ctx context.Context, row mail.Row) error {
	if err := t.seen.fails(); err != nil {
		return err
	}
	return t.Tx.InsertMail(ctx, row)
}
