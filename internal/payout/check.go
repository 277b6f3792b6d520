package payout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/ledger"
)

// CheckEntries fails with [ledger.ErrTampered] unless the payout is what its entries fold to, and each of them moved
// the money that its change of state stands for. The caller has checked that the service wrote them.
func CheckEntries(p Payout, entries []ledger.Entry) error {
	tampered := func(format string, args ...any) error {
		return ledger.ErrTampered.Because(fmt.Errorf("payout %s: %w", p.ID, fmt.Errorf(format, args...)))
	}
	if len(entries) == 0 {
		return tampered("its seller's journal does not know it")
	}
	folded := Payout{ID: p.ID}
	for _, e := range entries {
		was := folded
		if err := ledger.ApplyEntry(e, &folded); err != nil {
			return tampered("%w", err)
		}
		moved := ledger.Moved{}
		switch {
		case slices.Contains(ledger.Records, e.Type):
		case was.State == "":
			moved = ledger.ReservePayout(folded.Amount)
		case was.State != folded.State && !was.State.canBecome(folded.State):
			return tampered("entry %d takes it from %s to %s", e.Number, was.State, folded.State)
		default:
			moved = movementInto(was.State, folded)
		}
		if e.Moved != moved || (was.State == "") != (e.Type == ledger.PayoutRequested || e.Type == ledger.PayoutImported) {
			return tampered("entry %d does not move the money that %s stands for", e.Number, e.Type)
		}
	}
	if mismatch, differs := ledger.Compare(folded, p); differs {
		return tampered("%w", mismatch)
	}
	return nil
}

// check fails with [ErrPayoutTampered] if the payout is not what the service wrote.
func check(ctx context.Context, from ledger.EntriesReader, p Payout) ([]ledger.Entry, error) {
	entries, err := from.EntriesAbout(ctx, p.Seller, string(p.ID))
	if err == nil {
		err = CheckEntries(p, entries)
	}
	if isTampered(err) {
		err = ErrPayoutTampered.Because(err)
	}
	return entries, err
}

// checkOwner fails with [ErrPayoutTampered] unless the journal of the payout's seller tells that it was requested or imported. An attacker may
// have given the row to another seller, in whose journal no decision about it belongs.
func checkOwner(ctx context.Context, from ledger.EntriesReader, p Payout) error {
	entries, err := from.EntriesAbout(ctx, p.Seller, string(p.ID))
	if err != nil && !isTampered(err) {
		return err
	}
	if len(entries) == 0 || entries[0].Type != ledger.PayoutRequested && entries[0].Type != ledger.PayoutImported {
		return ErrPayoutTampered.Because(fmt.Errorf("the journal of %s does not know payout %s", p.Seller, p.ID))
	}
	return nil
}

// checkToMove is check for a payout whose money is about to move: no later entry of its seller may be missing either, or
// the payout could have been put back to what it was before it was sent, or ended. That is [ledger.ErrTampered] and not
// [ErrPayoutTampered]: the payout itself may be as the service wrote it.
func checkToMove(ctx context.Context, tx ChangeTx, p Payout) ([]ledger.Entry, error) {
	entries, err := check(ctx, tx, p)
	if err == nil {
		err = tx.CheckJournal(ctx, p.Seller, CameToState(entries))
	}
	return entries, err
}

// CameToState returns the number of the last entry that changed the state, or 0. Later entries do not count, because they can be
// appended after older ones were deleted.
func CameToState(entries []ledger.Entry) int64 {
	for _, e := range slices.Backward(entries) {
		if !slices.Contains(KeepsState, e.Type) {
			return e.Number
		}
	}
	return 0
}

// KeepsState lists the types of entries that leave a payout in its state.
var KeepsState = append([]ledger.Type{ledger.PayoutUpdated, ledger.DiscrepancyFound, ledger.DiscrepancyResolved}, ledger.Records...)

// ErrPayoutTampered freezes a payout whose records the service did not write.
var ErrPayoutTampered = fault.New(fault.Conflict, "payout_tampered",
	"This payout was changed outside the service, so it is frozen: it is neither sent nor cancelled nor refunded. Our team is reviewing it.")

// TamperedNote is what is written down on such a payout, in place of the gateway's word.
const TamperedNote = "this payout or its bank account is not what was asked for: it was changed in the database outside the service, so it is frozen"

// IsTampered reports whether what is written down on the payout is that it was changed outside the service, and not what the gateway said.
func (p Payout) IsTampered() bool { return p.Discrepancy == TamperedNote }

// isTampered reports whether an error says that the service did not write what was read.
func isTampered(err error) bool { return errors.Is(err, ledger.ErrTampered) }

// checkToSend is the last check before an order is sent, in the transaction that claims it. It returns why payouts are frozen or paused;
// "" if they are not. It fails with
//   - errLeave if the payout was marked with codePossibleDuplicate since endIfBalanceNegative looked at it,
//   - [bank.ErrNotAccepted] if the bank account was rejected since the gateway was told of it,
//   - [ledger.ErrTampered] if the service did not write the payout, or the end of its seller's journal, as they are.
func (s *Service) checkToSend(ctx context.Context, tx ChangeTx, p Payout) (why string, err error) {
	if p.ReasonCode == codePossibleDuplicate {
		return "", errLeave
	}
	if _, err := checkToMove(ctx, tx, p); err != nil {
		return "", err
	}
	if err := checkAccount(ctx, tx, p); err != nil {
		return "", err
	}
	return s.whyStopped(ctx, tx, p.Seller)
}

// checkAccount fails with [bank.ErrNotAccepted] unless the seller's journal says that the payout's bank account is verified. The account's
// row may say so although a takeover rejected it, because its status was put back outside the service.
func checkAccount(ctx context.Context, tx ChangeTx, p Payout) error {
	account, err := journaledAccount(ctx, tx, p)
	if err == nil && account.Status != bank.StatusVerified {
		err = bank.ErrNotAccepted
	}
	return err
}

// journaledAccount is a payout's bank account as its seller's journal has it. It fails with [ledger.ErrTampered] if the journal does not know it.
func journaledAccount(ctx context.Context, tx ChangeTx, p Payout) (bank.Account, error) {
	entries, err := tx.EntriesAbout(ctx, p.Seller, string(p.BankAccountID))
	if err != nil {
		return bank.Account{}, err
	}
	account, err := bank.Fold(p.BankAccountID, entries)
	if err == nil && len(entries) == 0 {
		err = fmt.Errorf("the journal of %s does not know bank account %s", p.Seller, p.BankAccountID)
	}
	if err != nil {
		return account, ledger.ErrTampered.Because(err)
	}
	return account, nil
}
