package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// The services see their stores through these: each transaction begins and ends with a point at which
// others may come between, and the model learns what was committed.

// seen is what one transaction has done, to be believed once it is committed.
type seen struct {
	m       *market
	on      *instance
	changes []func()
	touched []string // sellers whose row should have moved
	refusal error
	// payouts and accounts are what was written of them last.
	payouts  map[payout.ID]payout.Payout
	accounts map[bank.ID]bank.Account
}

func (s *seen) reset() {
	s.changes, s.touched, s.refusal = s.changes[:0], s.touched[:0], nil
	s.payouts, s.accounts = map[payout.ID]payout.Payout{}, map[bank.ID]bank.Account{}
}

// touch says that a seller's row is to be compared.
func (s *seen) touch(seller string) { s.touched = append(s.touched, seller) }

func (s *seen) note(change func()) { s.changes = append(s.changes, change) }

// watched runs a transaction between two points at which the world goes on. Now and then it is undone at its end,
// and then run again or failed, as a store may do at any time. The closure fails with undo when it is done.
func watched(on *instance, run func(s *seen, undo error) error) error {
	m := on.m
	m.step(on, 0, 2*time.Millisecond)
	s := seen{m: m, on: on}
	var err error
	if m.strikes(undone) {
		err = run(&s, errUndone)
		m.compareRows(on, s.touched)
	}
	switch {
	case err != nil && !errors.Is(err, errUndone):
	case err != nil && m.chance(500):
		err, on.troubled = errBusy, true
	default:
		err = run(&s, nil)
	}
	if err == nil {
		for _, change := range s.changes {
			change()
		}
		m.compareWritten(on, &s)
	}
	m.compareRows(on, s.touched) // a transaction that was refused has changed nothing
	m.hold(refusalsAreTrue, s.refusal == nil, "", "%v", s.refusal)
	m.guard(err)
	m.step(on, 0, 2*time.Millisecond)
	return err
}

var (
	errUndone = errors.New("simulate: undone")
	errBusy   = fault.New(fault.Unavailable, "busy", "Too many writes are waiting. Try again in a moment.")
)

// orUndo is the outcome of a closure in a transaction that is to be undone.
func orUndo(err, undo error) error {
	if undo == nil {
		return err
	}
	return errors.Join(err, undo)
}

// compareWritten reads again what a transaction has written.
func (m *market) compareWritten(on *instance, s *seen) {
	for id, p := range s.payouts {
		got, err := on.db.Payout(m.ctx, id)
		m.hold(writtenAsMeant, err == nil && asStored(got) == asStored(p), string(id), "payout %s was written as\n  %+v, and is (error %v)\n  %+v", id, p, err, got)
	}
	for id, a := range s.accounts {
		got, err := on.db.BankAccountByID(m.ctx, id)
		m.keepSecret(got.SealedNumber)
		m.hold(writtenAsMeant, err == nil && accountAsStored(got) == accountAsStored(a), a.Seller, "bank account %s was written as\n  %+v, and is (error %v)\n  %+v", id, a, err, got)
	}
}

// asStored is a payout without what belongs to its account, and with its instants as the book keeps them. When it
// is due is not its own to say: it may have been hastened.
func asStored(p payout.Payout) payout.Payout {
	p.Beneficiary, p.AccountHolder, p.AccountLast4, p.AccountIFSC, p.DueAt = "", "", "", "", time.Time{}
	for _, at := range []*time.Time{&p.RequestedAt, &p.ArriveAt, &p.SentAt, &p.ProcessedAt, &p.CompletedAt, &p.EndedAt} {
		*at = stored(*at)
	}
	return p
}

func accountAsStored(a bank.Account) bank.Account {
	a.DueAt, a.Beneficiary = time.Time{}, "" // a beneficiary is written by itself
	a.CreatedAt, a.VerifiedAt = stored(a.CreatedAt), stored(a.VerifiedAt)
	return a
}

func stored(at time.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(at.UnixMicro()).UTC()
}

// compareRows holds the rows of sellers against the model.
func (m *market) compareRows(on *instance, sellers []string) {
	for _, seller := range slices.Compact(slices.Sorted(slices.Values(sellers))) {
		got, err := on.db.Balance(m.ctx, seller)
		m.hold(bookIsRight, err == nil, seller, "read the row of %s: %v", seller, err)
		want := m.model.sellers[seller].row()
		m.hold(rowsMatchModel, got == want, seller, "%s has\n  %+v, and should have\n  %+v", seller, got, want)
	}
}

// moveBalance lets a posting through, and checks that only what is not there is refused.
func (s *seen) moveBalance(ctx context.Context, tx ledger.Tx, seller string, ch ledger.Change, links []ledger.Link, mayOverdraw bool) (int64, error) {
	n, err := tx.MoveBalance(ctx, seller, ch, links, mayOverdraw)
	if err == nil {
		s.touch(seller)
	} else if row := s.m.model.sellers[seller].row(); errors.Is(err, ledger.ErrInsufficient) && row.Allows(ch, mayOverdraw) {
		s.refusal = fmt.Errorf("%s has %d available, and %d were refused", seller, row.Available, -ch.Available)
	} else if a := s.m.current.ask; a != nil {
		a.had = row.Available
	}
	return n, err
}

func (s *seen) insertTransfers(ctx context.Context, tx ledger.Tx, seller string, at time.Time, first int64, transfers []ledger.Transfer) error {
	err := tx.InsertTransfers(ctx, seller, at, first, transfers)
	s.note(func() {
		for i, t := range transfers {
			s.m.print("%s %d %d %s %s %s %d %s\n", seller, first+int64(i), at.UnixMicro(), t.Kind, t.Debit, t.Credit, t.Amount, t.Ref)
		}
	})
	return err
}

type payoutStore struct {
	payout.Store
	on *instance
}

func (s payoutStore) InTx(ctx context.Context, fn func(payout.Tx) error) error {
	return watched(s.on, func(seen *seen, undo error) error {
		return s.Store.InTx(ctx, func(tx payout.Tx) error {
			seen.reset()
			return orUndo(fn(payoutTx{tx, seen}), undo)
		})
	})
}

func (s payoutStore) InRequest(ctx context.Context, c payout.RequestCaller, fn func(payout.RequestTx) error) error {
	return watched(s.on, func(seen *seen, undo error) error {
		return s.Store.InRequest(ctx, c, func(tx payout.RequestTx) error {
			seen.reset()
			return orUndo(fn(requestTx{tx, seen}), undo)
		})
	})
}

type requestTx struct {
	payout.RequestTx
	seen *seen
}

func (t requestTx) MoveBalance(ctx context.Context, seller string, ch ledger.Change, links []ledger.Link, mayOverdraw bool) (int64, error) {
	return t.seen.moveBalance(ctx, t.RequestTx, seller, ch, links, mayOverdraw)
}

func (t requestTx) InsertTransfers(ctx context.Context, seller string, at time.Time, first int64, transfers []ledger.Transfer) error {
	return t.seen.insertTransfers(ctx, t.RequestTx, seller, at, first, transfers)
}

func (t requestTx) InsertPayout(ctx context.Context, p payout.Payout) error {
	err := t.RequestTx.InsertPayout(ctx, p)
	t.seen.touch(p.Seller)
	t.seen.payouts[p.ID] = p
	t.seen.note(func() { t.seen.m.wasAsked(p) })
	return err
}

type payoutTx struct {
	payout.Tx
	seen *seen
}

func (t payoutTx) MoveBalance(ctx context.Context, seller string, ch ledger.Change, links []ledger.Link, mayOverdraw bool) (int64, error) {
	return t.seen.moveBalance(ctx, t.Tx, seller, ch, links, mayOverdraw)
}

func (t payoutTx) InsertTransfers(ctx context.Context, seller string, at time.Time, first int64, transfers []ledger.Transfer) error {
	return t.seen.insertTransfers(ctx, t.Tx, seller, at, first, transfers)
}

func (t payoutTx) InsertPayout(ctx context.Context, p payout.Payout) error {
	err := t.Tx.InsertPayout(ctx, p)
	t.seen.touch(p.Seller)
	t.seen.payouts[p.ID] = p
	t.seen.note(func() { t.seen.m.wasAsked(p) })
	return err
}

func (t payoutTx) AdoptPayout(ctx context.Context, p payout.Payout) (bool, error) {
	adopted, err := t.Tx.AdoptPayout(ctx, p)
	if adopted {
		t.seen.touch(p.Seller)
		t.seen.payouts[p.ID] = p
		t.seen.note(func() { t.seen.m.wasAdopted(p) })
	}
	return adopted, err
}

func (t payoutTx) MovePayout(ctx context.Context, from payout.State, p payout.Payout, at time.Time) (bool, error) {
	moved, err := t.Tx.MovePayout(ctx, from, p, at)
	if moved && from != p.State {
		t.seen.touch(p.Seller)
	}
	if moved {
		t.seen.payouts[p.ID] = p
		t.seen.note(func() { t.seen.m.wasMoved(t.seen.on, from, p, at) })
	}
	return moved, err
}

func (t payoutTx) RecordDecision(ctx context.Context, d decision.Decision) error {
	err := t.Tx.RecordDecision(ctx, d)
	t.seen.note(func() { t.seen.m.wasDecided(d) })
	return err
}

func (t payoutTx) RememberEvent(ctx context.Context, eventID string, now time.Time) (bool, error) {
	isNew, err := t.Tx.RememberEvent(ctx, eventID, now)
	t.seen.note(func() { t.seen.m.heard[t.seen.m.current.event] = true })
	return isNew, err
}

func (t payoutTx) DoubtUnsent(ctx context.Context, seller, code string) error {
	err := t.Tx.DoubtUnsent(ctx, seller, code)
	t.seen.note(func() { t.seen.m.wasDoubted(seller) })
	return err
}

func (t payoutTx) TakeDuePayouts(ctx context.Context, now, until time.Time, limit int) ([]payout.ID, error) {
	ids, err := t.Tx.TakeDuePayouts(ctx, now, until, limit)
	t.seen.note(func() {
		t.seen.m.checkOrder(ids, now, limit)
		for _, id := range ids {
			t.seen.m.wasTaken(t.seen.on, id, now, until)
		}
	})
	return ids, err
}

func (t payoutTx) HastenPayout(ctx context.Context, id payout.ID, now time.Time) (bool, error) {
	hastened, err := t.Tx.HastenPayout(ctx, id, now)
	if hastened {
		t.seen.note(func() {
			t.seen.m.wasHastened(id, now)
		})
	}
	return hastened, err
}

type saleStore struct {
	sale.Store
	on *instance
}

func (s saleStore) InTx(ctx context.Context, fn func(sale.Tx) error) error {
	return watched(s.on, func(seen *seen, undo error) error {
		return s.Store.InTx(ctx, func(tx sale.Tx) error {
			seen.reset()
			return orUndo(fn(saleTx{tx, seen}), undo)
		})
	})
}

type saleTx struct {
	sale.Tx
	seen *seen
}

func (t saleTx) MoveBalance(ctx context.Context, seller string, ch ledger.Change, links []ledger.Link, mayOverdraw bool) (int64, error) {
	return t.seen.moveBalance(ctx, t.Tx, seller, ch, links, mayOverdraw)
}

func (t saleTx) InsertTransfers(ctx context.Context, seller string, at time.Time, first int64, transfers []ledger.Transfer) error {
	return t.seen.insertTransfers(ctx, t.Tx, seller, at, first, transfers)
}

func (t saleTx) InsertSale(ctx context.Context, s sale.Sale) (bool, error) {
	inserted, err := t.Tx.InsertSale(ctx, s)
	if inserted {
		t.seen.touch(s.Seller)
		t.seen.note(func() { t.seen.m.wasSold(s) })
	}
	return inserted, err
}

func (t saleTx) InsertRefund(ctx context.Context, r sale.Refund) error {
	err := t.Tx.InsertRefund(ctx, r)
	t.seen.note(func() { t.seen.m.wasRefunded(r) })
	return err
}

func (t saleTx) MarkReleased(ctx context.Context, id string, at time.Time) (bool, error) {
	released, err := t.Tx.MarkReleased(ctx, id, at)
	if released {
		t.seen.note(func() { t.seen.m.wasReleased(t.seen.on, id, at) })
	}
	return released, err
}

type bankStore struct {
	bank.Store
	on *instance
}

func (s bankStore) InTx(ctx context.Context, fn func(bank.Tx) error) error {
	return watched(s.on, func(seen *seen, undo error) error {
		return s.Store.InTx(ctx, func(tx bank.Tx) error {
			seen.reset()
			return orUndo(fn(bankTx{tx, seen}), undo)
		})
	})
}

type bankTx struct {
	bank.Tx
	seen *seen
}

func (t bankTx) ReplaceBankAccount(ctx context.Context, a bank.Account) error {
	err := t.Tx.ReplaceBankAccount(ctx, a)
	t.seen.accounts[a.ID] = a
	t.seen.note(func() { t.seen.m.wasRegistered(a) })
	return err
}

func (t bankTx) AddFormerAccount(ctx context.Context, a bank.Account) error {
	err := t.Tx.AddFormerAccount(ctx, a)
	t.seen.note(func() { t.seen.m.wasRecovered(a) })
	return err
}

func (t bankTx) SaveVerification(ctx context.Context, before, a bank.Account) (bool, error) {
	saved, err := t.Tx.SaveVerification(ctx, before, a)
	if saved {
		t.seen.accounts[a.ID] = a
		t.seen.note(func() { t.seen.m.wasVerified(before, a) })
	}
	return saved, err
}

func (t bankTx) SetBeneficiary(ctx context.Context, before string, a bank.Account) (bool, error) {
	named, err := t.Tx.SetBeneficiary(ctx, before, a)
	if named {
		t.seen.note(func() { t.seen.m.wasRegisteredAtGateway(a.ID, a.Beneficiary) })
	}
	return named, err
}

func (t bankTx) RecordDecision(ctx context.Context, d decision.Decision) error {
	err := t.Tx.RecordDecision(ctx, d)
	t.seen.note(func() { t.seen.m.wasDecided(d) })
	return err
}

func (t bankTx) TakeDueVerifications(ctx context.Context, now, until time.Time, limit int) ([]bank.ID, error) {
	ids, err := t.Tx.TakeDueVerifications(ctx, now, until, limit)
	t.seen.note(func() {
		for _, id := range ids {
			t.seen.m.wasTakenToVerify(t.seen.on, id, now, until)
		}
	})
	return ids, err
}

// HastenVerification tells no account, so the loop just looks.
func (t bankTx) HastenVerification(ctx context.Context, verificationID string, now time.Time) (bool, error) {
	hastened, err := t.Tx.HastenVerification(ctx, verificationID, now)
	if hastened {
		t.seen.note(func() { t.seen.m.lookNow(verifications) })
	}
	return hastened, err
}
