package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"bursar/internal/bank"
	"bursar/internal/fault"
	port "bursar/internal/gateway"
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
	touched []string // owners whose journal should have moved
	entries []ledger.Entry
	refusal error
	// payouts and accounts are what was written of them last.
	payouts  map[payout.ID]payout.Payout
	accounts map[bank.ID]bank.Account
	// statements counts those of the transaction, failAt is the one that fails (0 for none), and failed says that it has. swallowed says that the
	// transaction was to be committed all the same.
	statements, failAt int
	failed, swallowed  bool
}

func (s *seen) reset() {
	s.changes, s.touched, s.entries, s.refusal = s.changes[:0], s.touched[:0], s.entries[:0], nil
	s.payouts, s.accounts = map[payout.ID]payout.Payout{}, map[bank.ID]bank.Account{}
	s.statements, s.failed = 0, false
	s.m.mailed = nil
}

// touch says that an owner's journal is to be read again.
func (s *seen) touch(owner string) { s.touched = append(s.touched, owner) }

func (s *seen) note(change func()) { s.changes = append(s.changes, change) }

// watched runs a transaction between two points at which the world goes on. Now and then it is undone at its end,
// and then run again or failed, as a store may do at any time. The closure fails with undo when it is done.
func watched(on *instance, run func(s *seen, undo error) error) error {
	m := on.m
	m.step(on, 0, 2*time.Millisecond)
	s := seen{m: m, on: on}
	var err error
	m.failOne(&s, run)
	if m.strikes(undone) {
		err = run(&s, errUndone)
		m.compareRows(on, s.touched)
	}
	switch {
	case err != nil && !errors.Is(err, errUndone):
	case err != nil && m.chance(500):
		err = errBusy
		on.trouble()
	default:
		err = run(&s, nil)
	}
	if err == nil {
		for _, change := range s.changes {
			change()
		}
		m.followAppended(on, &s)
		m.compareWritten(on, &s)
	}
	m.compareRows(on, s.touched) // a transaction that was refused has changed nothing
	m.assert(refusalsAreTrue, s.refusal == nil, "", "%v", s.refusal)
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
		m.assert(writtenAsMeant, err == nil && asStored(got) == asStored(p), string(id), "payout %s was written as\n  %+v, and is (error %v)\n  %+v", id, p, err, got)
		mismatch, differs := ledger.Compare(m.model.payouts[id].folded, got)
		m.assert(rowsMatchJournal, !differs || m.tampered == string(id), string(id), "payout %s: %v: %+v", id, mismatch, got)
	}
	for id, a := range s.accounts {
		got, err := on.db.BankAccountByID(m.ctx, id)
		m.keepSecret(got.EncryptedNumber)
		m.assert(writtenAsMeant, err == nil && accountAsStored(got) == accountAsStored(a), a.Seller, "bank account %s was written as\n  %+v, and is (error %v)\n  %+v", id, a, err, got)
		if known := m.model.accounts[id]; known != nil {
			mismatch, differs := ledger.Compare(known.folded, got)
			m.assert(rowsMatchJournal, !differs, a.Seller, "bank account %s: %v: %+v", id, mismatch, got)
		}
	}
}

// asStored is a payout without what belongs to its account, and with its instants as the ledger keeps them. When it
// is due is not its own to say: it may have been rescheduled.
func asStored(p payout.Payout) payout.Payout {
	p.Beneficiary, p.AccountHolder, p.AccountLast4, p.AccountIFSC, p.DueAt = "", "", "", "", time.Time{}
	for _, at := range []*time.Time{&p.RequestedAt, &p.ArriveAt, &p.SentAt, &p.ProcessedAt, &p.CompletedAt, &p.EndedAt} {
		*at = stored(*at)
	}
	return p
}

func accountAsStored(a bank.Account) bank.Account {
	a.DueAt, a.Beneficiary, a.Gateway = time.Time{}, "", "" // a beneficiary is written by itself
	a.CreatedAt, a.VerifiedAt = stored(a.CreatedAt), stored(a.VerifiedAt)
	return a
}

func stored(at time.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(at.UnixMicro()).UTC()
}

// compareRows holds owners' rows of totals against what their entries fold to.
func (m *market) compareRows(on *instance, owners []string) {
	for _, owner := range slices.Compact(slices.Sorted(slices.Values(owners))) {
		got, err := on.db.Balance(m.ctx, owner)
		m.assert(datastoreReadable, err == nil, owner, "read the row of %s: %v", owner, err)
		want := m.model.row(owner)
		m.assert(rowsMatchJournal, got == want, owner, "%s has\n  %+v, and the entries make it\n  %+v", owner, got, want)
	}
}

// followAppended reads the entries that a transaction has committed, and wants those that it appended, in their order.
func (m *market) followAppended(on *instance, s *seen) {
	for _, owner := range slices.Compact(slices.Sorted(slices.Values(s.touched))) {
		m.follow(on, owner)
	}
	for _, e := range s.entries {
		m.checkTime(on, e.At, e.Subject, string(e.Type))
		hashes := m.model.journal(e.Owner).hashes
		m.assert(rowsMatchJournal, e.Number <= int64(len(hashes)) && hashes[e.Number-1] == e.Hash, e.Owner,
			"entry %d of %s was appended (%s of %s), and a reader gets another or none", e.Number, e.Owner, e.Type, e.Subject)
	}
}

// follow reads an owner's entries from where the model has the journal on, and holds each against the facts.
func (m *market) follow(on *instance, owner string) {
	const page = 200
	j := m.model.journal(owner)
	for n := page; n == page; {
		list, err := on.db.EntriesAfter(m.ctx, owner, j.Number, page)
		if !m.assert(datastoreReadable, err == nil, owner, "read the journal of %s: %v", owner, err) {
			return
		}
		for _, e := range list {
			before := j.Available
			if j.Head, err = j.Follow(m.keys, e); !m.assert(rowsMatchJournal, err == nil, owner, "entry %d of %s does not follow: %v", e.Number, owner, tampering(err)) {
				return
			}
			j.hashes = append(j.hashes, e.Hash)
			j.events = append(j.events, tells(e, before)...)
			j.remember(e, before)
			m.wasAppended(e)
		}
		n = len(list)
	}
}

// tampering is why an error says that something was tampered with.
func tampering(err error) error {
	if cause := errors.Unwrap(err); cause != nil && errors.Is(err, ledger.ErrTampered) {
		return cause
	}
	return err
}

// append lets an entry through, and checks that only what is not there is refused.
func (s *seen) append(ctx context.Context, tx ledger.Appender, p ledger.Posting) (ledger.Entry, error) {
	if err := s.fails(); err != nil {
		return ledger.Entry{}, err
	}
	e, err := tx.Append(ctx, p)
	available := s.m.model.row(p.Owner).Available
	switch {
	case err == nil:
		s.touch(p.Owner)
		s.entries = append(s.entries, e)
		switch e.Type {
		case ledger.AdminDecided, ledger.PayoutsFrozen, ledger.PayoutsUnfrozen:
			d, err := ledger.DecisionOf(e)
			s.note(func() {
				s.m.assert(decisionsKept, err == nil, e.Subject, "read the decision on %s: %v", e.Subject, err)
				s.m.wasDecided(d)
			})
		default:
		}
	case errors.Is(err, ledger.ErrBelowZero), errors.Is(err, ledger.ErrInsufficient) && (p.Type != ledger.PayoutRequested || p.Moved.InTransit <= available):
		s.refusal = fmt.Errorf("%s has %d available, and %s of %d was refused", p.Owner, available, p.Type, p.Moved.InTransit)
	case errors.Is(err, ledger.ErrInsufficient) && s.m.current.ask != nil:
		s.m.current.ask.had = available
	}
	return e, err
}

type payoutStore struct {
	payout.Store
	on *instance
}

func (s payoutStore) InTx(ctx context.Context, fn func(payout.Tx) error) error {
	return watched(s.on, func(seen *seen, undo error) error {
		return s.Store.InTx(ctx, func(tx payout.Tx) error {
			seen.reset()
			return seen.outcome(fn(payoutTx{tx, seen}), undo)
		})
	})
}

func (s payoutStore) InGroup(ctx context.Context, c ledger.Scope, fn func(payout.ChangeTx) error) error {
	if id := payout.ID(c.Payout); id != "" && c.ReadsPause && id == s.on.m.rejectAtClaim {
		s.on.m.rejectAtClaim = ""
		s.on.m.rejectAccounts(s.on, s.on.m.sellerOf(s.on.m.model.payouts[id].seller))
	}
	if c.ReadsPause {
		s.on.m.stopBefore(payout.ID(c.Payout))
	}
	return watched(s.on, func(seen *seen, undo error) error {
		return s.Store.InGroup(ctx, c, func(tx payout.ChangeTx) error {
			seen.reset()
			return seen.outcome(fn(changeTx{tx, seen}), undo)
		})
	})
}

// changeTx is what all changes of payouts have in common.
type changeTx struct {
	payout.ChangeTx
	seen *seen
}

func (t changeTx) Append(ctx context.Context, p ledger.Posting) (ledger.Entry, error) {
	return t.seen.append(ctx, t.ChangeTx, p)
}

func (t changeTx) InsertPayout(ctx context.Context, p payout.Payout) error {
	if err := t.seen.fails(); err != nil {
		return err
	}
	err := t.ChangeTx.InsertPayout(ctx, p)
	t.seen.payouts[p.ID] = p
	t.seen.note(func() { t.seen.m.wasAsked(t.seen.on, p) })
	return err
}

func (t changeTx) UpdatePayout(ctx context.Context, from payout.State, p payout.Payout) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	moved, err := t.ChangeTx.UpdatePayout(ctx, from, p)
	if moved {
		t.seen.touch(p.Seller)
		t.seen.payouts[p.ID] = p
		at := t.seen.on.now()
		t.seen.note(func() { t.seen.m.wasMoved(t.seen.on, from, p, at) })
	}
	return moved, err
}

type payoutTx struct {
	payout.Tx
	seen *seen
}

func (t payoutTx) change() changeTx { return changeTx{t.Tx, t.seen} }

func (t payoutTx) Append(ctx context.Context, p ledger.Posting) (ledger.Entry, error) {
	return t.change().Append(ctx, p)
}

func (t payoutTx) InsertPayout(ctx context.Context, p payout.Payout) error {
	return t.change().InsertPayout(ctx, p)
}

func (t payoutTx) UpdatePayout(ctx context.Context, from payout.State, p payout.Payout) (bool, error) {
	return t.change().UpdatePayout(ctx, from, p)
}

func (t payoutTx) ImportPayout(ctx context.Context, p payout.Payout) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	imported, err := t.Tx.ImportPayout(ctx, p)
	if imported {
		t.seen.payouts[p.ID] = p
		t.seen.note(func() { t.seen.m.wasImported(p) })
	}
	return imported, err
}

func (t payoutTx) RecordUnmatchedTransfer(ctx context.Context, u payout.UnmatchedTransfer) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	isNew, err := t.Tx.RecordUnmatchedTransfer(ctx, u)
	if isNew {
		t.seen.note(func() { t.seen.m.wasListed(t.seen.on, u) })
	}
	return isNew, err
}

func (t payoutTx) ResolveUnmatchedTransfer(ctx context.Context, at port.Name, gatewayID string) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	resolved, err := t.Tx.ResolveUnmatchedTransfer(ctx, at, gatewayID)
	if resolved {
		t.seen.note(func() { t.seen.m.wasResolved(at, gatewayID) })
	}
	return resolved, err
}

func (t payoutTx) SaveEvent(ctx context.Context, at port.Name, eventID string, now time.Time) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	isNew, err := t.Tx.SaveEvent(ctx, at, eventID, now)
	t.seen.note(func() { t.seen.m.heard[t.seen.m.current.event] = true })
	return isNew, err
}

func (t payoutTx) LeaseDuePayouts(ctx context.Context, now, until time.Time, limit int) ([]payout.ID, error) {
	if err := t.seen.fails(); err != nil {
		return nil, err
	}
	ids, err := t.Tx.LeaseDuePayouts(ctx, now, until, limit)
	t.seen.note(func() {
		t.seen.m.checkOrder(ids, now, limit)
		for _, id := range ids {
			t.seen.m.wasTaken(t.seen.on, id, now, until)
		}
	})
	return ids, err
}

func (t payoutTx) ReschedulePayout(ctx context.Context, id payout.ID, now time.Time) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	rescheduled, err := t.Tx.ReschedulePayout(ctx, id, now)
	if rescheduled {
		t.seen.note(func() {
			t.seen.m.wasRescheduled(id, now)
		})
	}
	return rescheduled, err
}

func (t payoutTx) RescheduleInFlight(ctx context.Context, at port.Name, now, leased time.Time) (int64, error) {
	if err := t.seen.fails(); err != nil {
		return 0, err
	}
	n, err := t.Tx.RescheduleInFlight(ctx, at, now, leased)
	t.seen.note(func() { t.seen.m.wereRescheduled(at, n, now, leased) })
	return n, err
}

func (t payoutTx) RescheduleStopped(ctx context.Context, seller string, now time.Time) (int64, error) {
	if err := t.seen.fails(); err != nil {
		return 0, err
	}
	n, err := t.Tx.RescheduleStopped(ctx, seller, now)
	t.seen.note(func() { t.seen.m.wereResumed(seller, n, now) })
	return n, err
}

type saleStore struct {
	sale.Store
	on *instance
}

func (s saleStore) InTx(ctx context.Context, fn func(sale.Tx) error) error {
	return watched(s.on, func(seen *seen, undo error) error {
		return s.Store.InTx(ctx, func(tx sale.Tx) error {
			seen.reset()
			return seen.outcome(fn(saleTx{tx, seen}), undo)
		})
	})
}

type saleTx struct {
	sale.Tx
	seen *seen
}

func (t saleTx) Append(ctx context.Context, p ledger.Posting) (ledger.Entry, error) {
	return t.seen.append(ctx, t.Tx, p)
}

func (t saleTx) InsertSale(ctx context.Context, s sale.Sale) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	inserted, err := t.Tx.InsertSale(ctx, s)
	if inserted {
		t.seen.note(func() { t.seen.m.wasSold(t.seen.on, s) })
	}
	return inserted, err
}

func (t saleTx) InsertRefund(ctx context.Context, r sale.Refund) error {
	if err := t.seen.fails(); err != nil {
		return err
	}
	err := t.Tx.InsertRefund(ctx, r)
	t.seen.note(func() { t.seen.m.wasRefunded(t.seen.on, r) })
	return err
}

func (t saleTx) MarkReleased(ctx context.Context, id string, at time.Time) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	released, err := t.Tx.MarkReleased(ctx, id, at)
	if released {
		t.seen.note(func() { t.seen.m.wasReleased(t.seen.on, id, at) })
	}
	return released, err
}

// isTampered reports whether a sale, or another one of its seller, is tampered with.
func (m *market) isTampered(id string) bool {
	tampered, e := m.model.sales[m.tampered], m.model.sales[id]
	return m.tampered == id || tampered != nil && e != nil && tampered.seller == e.seller
}

func (t saleTx) PostponeRelease(ctx context.Context, id string, until time.Time) error {
	if err := t.seen.fails(); err != nil {
		return err
	}
	err := t.Tx.PostponeRelease(ctx, id, until)
	t.seen.note(func() {
		t.seen.m.assert(releasedWhenDue, t.seen.m.isTampered(id), "", "the release of sale %s is postponed, and nobody tampered with it", id)
		t.seen.m.saleDue(id, until)
	})
	return err
}

type bankStore struct {
	bank.Store
	on *instance
}

func (s bankStore) InTx(ctx context.Context, fn func(bank.Tx) error) error {
	return watched(s.on, func(seen *seen, undo error) error {
		return s.Store.InTx(ctx, func(tx bank.Tx) error {
			seen.reset()
			return seen.outcome(fn(bankTx{tx, seen}), undo)
		})
	})
}

type bankTx struct {
	bank.Tx
	seen *seen
}

func (t bankTx) Append(ctx context.Context, p ledger.Posting) (ledger.Entry, error) {
	return t.seen.append(ctx, t.Tx, p)
}

func (t bankTx) InsertBankAccount(ctx context.Context, a bank.Account) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	inserted, err := t.Tx.InsertBankAccount(ctx, a)
	if inserted {
		t.seen.accounts[a.ID] = a
		t.seen.note(func() {
			if a.Current {
				t.seen.m.wasRegistered(t.seen.on, a)
			} else {
				t.seen.m.wasRecovered(a)
			}
		})
	}
	return inserted, err
}

func (t bankTx) SaveVerification(ctx context.Context, before, a bank.Account) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	saved, err := t.Tx.SaveVerification(ctx, before, a)
	if saved {
		t.seen.accounts[a.ID] = a
		t.seen.note(func() { t.seen.m.wasVerified(t.seen.on, before, a) })
	}
	return saved, err
}

func (t bankTx) SetBeneficiary(ctx context.Context, before, a bank.Account) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	named, err := t.Tx.SetBeneficiary(ctx, before, a)
	if named {
		t.seen.note(func() { t.seen.m.wasRegisteredAtGateway(t.seen.on, before, a) })
	}
	return named, err
}

func (t bankTx) LeaseDueVerifications(ctx context.Context, now, until time.Time, limit int) ([]bank.ID, error) {
	if err := t.seen.fails(); err != nil {
		return nil, err
	}
	ids, err := t.Tx.LeaseDueVerifications(ctx, now, until, limit)
	t.seen.note(func() {
		for _, id := range ids {
			t.seen.m.wasTakenToVerify(t.seen.on, id, now, until)
		}
	})
	return ids, err
}

// RescheduleVerification tells no account, so the loop just looks.
func (t bankTx) RescheduleVerification(ctx context.Context, verificationID string, now time.Time) (bool, error) {
	if err := t.seen.fails(); err != nil {
		return false, err
	}
	rescheduled, err := t.Tx.RescheduleVerification(ctx, verificationID, now)
	if rescheduled {
		t.seen.note(func() { t.seen.m.pollNow(verifications) })
	}
	return rescheduled, err
}
