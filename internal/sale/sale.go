// Package sale records what sellers earn: a sale, its release when the hold is over, refunds, and corrections by admins.
package sale

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/money"
)

// Sale is one earning of a seller, under the marketplace's own id. Its tagged fields are recorded in the seller's
// journal, which they fold from.
type Sale struct {
	ID       string
	Seller   string       `journal:"seller"`
	Amount   money.Amount `journal:"amount"`
	Refunded money.Amount `journal:"refunded"`
	// OccurredAt says in which month it counts; AvailableAt when it may be withdrawn.
	OccurredAt  time.Time `journal:"occurredAt"`
	AvailableAt time.Time `journal:"availableAt"`
	// Month is OccurredAt's month in the marketplace's zone, such as "2026-11".
	Month string `journal:"month"`
	// ReleasedAt is zero while the sale is pending.
	ReleasedAt time.Time `journal:"releasedAt"`
	CreatedAt  time.Time `journal:"createdAt"`
	// Fingerprint tells whether a repeat under the same id asks for the same.
	Fingerprint string `journal:"fingerprint"`
}

// Left is what refunds have not taken back.
func (s Sale) Left() money.Amount { return s.Amount - s.Refunded }

// Released reports whether the earning is withdrawable.
func (s Sale) Released() bool { return !s.ReleasedAt.IsZero() }

// Refund is money taken back from a sale, under the marketplace's own id, unique within the sale.
type Refund struct {
	ID          string
	Sale        string
	Amount      money.Amount
	At          time.Time
	Fingerprint string
}

// Failures that a caller may see.
var (
	ErrNotFound       = fault.New(fault.NotFound, "sale_not_found", "No such sale. Record it with POST /api/marketplace/sales first.")
	ErrSellerNotFound = fault.New(fault.NotFound, "seller_not_found", "No seller has this sellerId. It is the id that registration returned, or ext: and the marketplace's own id.")
	ErrConflict       = fault.New(fault.Conflict, "sale_conflict", "This saleId was recorded with other values. A repeat must be identical; a new sale needs a new saleId.")
	ErrRefundConflict = fault.New(fault.Conflict, "refund_conflict", "This refundId was recorded with other values. A repeat must be identical; a new refund needs a new refundId.")
	ErrRefundTooLarge = fault.New(fault.Refused, "refund_exceeds_sale", "The refund is larger than what is left of the sale.")
)

// Store keeps sales.
type Store interface {
	// ListSales lists a page of a seller's sales by when they occurred, newest first, and tells how many
	// there are in all.
	ListSales(ctx context.Context, seller string, offset, limit int) ([]Sale, int64, error)
	// Earnings lists what a seller earned in each month that is on record, from one to another, both
	// such as "2026-11" and included.
	Earnings(ctx context.Context, seller, from, to string) ([]Month, error)
	// PendingByDay sums what is left of a seller's pending sales by the day on which they become
	// available. Days are given by the instants at which they begin, and the last by that of the next one.
	// What should have been released before belongs to the first. Days without any are left out.
	PendingByDay(ctx context.Context, seller string, days []time.Time) ([]Release, error)
	// AdjustmentEntries lists the entries of a seller's adjustments numbered below before, newest first, up to limit; before 0
	// begins at the newest. It fails with [ledger.ErrTampered] if the service did not write all of it.
	AdjustmentEntries(ctx context.Context, seller string, before int64, limit int) ([]ledger.Entry, error)
	// CheckJournalFrom is [Tx.CheckJournal] outside of a transaction. It returns how the journal stood, and which of the entries
	// that it read are about each of some subjects.
	CheckJournalFrom(ctx context.Context, owner string, from int64, subjects []string) (ledger.Head, map[string][]ledger.Entry, error)
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is what sale asks of a store transaction. The closure that uses it may run more than once.
type Tx interface {
	ledger.Appender
	ledger.EntriesReader
	// Balance is the owner's totals, which stay as they are until the transaction ends.
	Balance(ctx context.Context, owner string) (ledger.Balance, error)
	// CheckNewest is CheckJournal of the 10,000 newest entries, where there may be none. The
	// journal stays as it is until the transaction ends.
	CheckNewest(ctx context.Context, owner string) error
	// CheckJournal fails with [ledger.ErrTampered] unless the owner's totals are those that the service wrote and all
	// entries from a number on are there.
	CheckJournal(ctx context.Context, owner string, from int64) error
	// CheckJournalAfter is CheckJournal from where the journal was found whole.
	CheckJournalAfter(ctx context.Context, owner string, whole ledger.Head) error
	// JournalEnd is the number of the owner's last entry. The journal stays as it is until the transaction ends.
	JournalEnd(ctx context.Context, owner string) (int64, error)
	// SellerExists reports whether a user with that id may sell.
	SellerExists(ctx context.Context, seller string) (bool, error)
	// InsertSale adds s unless a row or a journal has its id already, and reports whether it did.
	InsertSale(ctx context.Context, s Sale) (bool, error)
	// SaleForUpdate finds one and keeps others from changing it until the transaction ends, or [ErrNotFound].
	SaleForUpdate(ctx context.Context, id string) (Sale, error)
	// MarkReleased records the release of a pending sale, and reports whether it was pending.
	MarkReleased(ctx context.Context, id string, at time.Time) (bool, error)
	// AddRefunded adds to a sale's refunded amount if no more than the sale is refunded in all, and reports whether it did.
	AddRefunded(ctx context.Context, id string, amount money.Amount) (bool, error)
	// InsertRefund adds r.
	InsertRefund(ctx context.Context, r Refund) error
	// Refund finds a refund of a sale, if it is there.
	Refund(ctx context.Context, sale, id string) (Refund, bool, error)
	// AddEarnings adds to what the seller earned in a month.
	AddEarnings(ctx context.Context, seller, month string, amount money.Amount) error
	// PostponeRelease puts the release of a sale off to a time.
	PostponeRelease(ctx context.Context, id string, until time.Time) error
	// DueSales lists up to limit pending sales whose holding period is over by now, those longest due, in the order of
	// their sellers.
	DueSales(ctx context.Context, now time.Time, limit int) ([]string, error)
}

// subject is the sale's name in the journal. The marketplace chooses its ids, so they are kept apart from ours.
func subject(id string) string { return SubjectPrefix + id }

// SubjectPrefix begins the name of a sale in the journal.
const SubjectPrefix = "sale:"

// Fold is a sale as its entries tell it, oldest first.
func Fold(id string, entries []ledger.Entry) (Sale, error) { return ledger.Fold(Sale{ID: id}, entries) }

// CheckEntries fails with [ledger.ErrTampered] unless the sale is what its entries fold to, and each of them moved the
// money that it tells of. The caller has checked that the service wrote them.
func CheckEntries(s Sale, entries []ledger.Entry) error {
	tampered := func(format string, args ...any) error {
		return ledger.ErrTampered.Because(fmt.Errorf("sale %s: %w", s.ID, fmt.Errorf(format, args...)))
	}
	folded := Sale{ID: s.ID}
	for i, e := range entries {
		was := folded
		if err := ledger.ApplyEntry(e, &folded); err != nil {
			return tampered("%w", err)
		}
		moved := ledger.Moved{}
		switch e.Type {
		case ledger.SaleRecorded:
			moved = ledger.Sale(folded.Amount)
		case ledger.SaleReleased:
			if was.Released() {
				return tampered("entry %d releases it once more", e.Number)
			}
			moved = ledger.ReleaseSale(was.Left())
		case ledger.SaleRefunded:
			moved = ledger.RefundSale(folded.Refunded-was.Refunded, was.Released())
		default: // all others move none
		}
		if e.Moved != moved || (i == 0) != (e.Type == ledger.SaleRecorded) {
			return tampered("entry %d does not move the money that %s stands for", e.Number, e.Type)
		}
	}
	if len(entries) == 0 {
		return tampered("its seller's journal does not know it")
	}
	if mismatch, differs := ledger.Compare(folded, s); differs {
		return tampered("%w", mismatch)
	}
	return nil
}

// check fails with [ledger.ErrTampered] if the sale is not what the service wrote.
func check(ctx context.Context, tx Tx, s Sale) ([]ledger.Entry, error) {
	entries, err := tx.EntriesAbout(ctx, s.Seller, subject(s.ID))
	if err == nil {
		err = CheckEntries(s, entries)
	}
	return entries, err
}

// CheckRefunds fails with [ledger.ErrTampered] unless the refunds of a sale are those that its entries tell.
func CheckRefunds(s Sale, refunds []Refund, entries []ledger.Entry) error {
	known := make(map[string]Refund, len(refunds))
	for _, r := range refunds {
		known[r.ID] = r
	}
	refunds, err := RefundsOf(s.ID, entries)
	if err != nil {
		return ledger.ErrTampered.Because(err)
	}
	for _, r := range refunds {
		if known[r.ID] != r {
			return ledger.ErrTampered.Because(fmt.Errorf("refund %s of sale %s is not what the journal says", r.ID, s.ID))
		}
		delete(known, r.ID)
	}
	for id := range known {
		return ledger.ErrTampered.Because(fmt.Errorf("refund %s of sale %s is not in the journal", id, s.ID))
	}
	return nil
}

// checkRefund fails with [ledger.ErrTampered] unless the refund with that id is stored if and only if the entries tell
// it. stored is zero where there is none.
func checkRefund(s Sale, id string, stored Refund, entries []ledger.Entry) error {
	refunds, err := RefundsOf(s.ID, entries)
	if err != nil {
		return ledger.ErrTampered.Because(err)
	}
	recorded := Refund{ID: id, Sale: s.ID}
	if i := slices.IndexFunc(refunds, func(r Refund) bool { return r.ID == id }); i >= 0 {
		recorded = refunds[i]
	}
	if recorded != stored {
		return ledger.ErrTampered.Because(fmt.Errorf("refund %s of sale %s is not what the journal says", id, s.ID))
	}
	return nil
}

// RefundsOf are the refunds that a sale's entries tell, oldest first.
func RefundsOf(id string, entries []ledger.Entry) ([]Refund, error) {
	var refunds []Refund
	for _, e := range entries {
		if e.Type != ledger.SaleRefunded {
			continue
		}
		var data struct {
			ID          string       `json:"refundId"`
			Amount      money.Amount `json:"refund"`
			Fingerprint string       `json:"refundFingerprint"`
		}
		if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
			return nil, fmt.Errorf("entry %d of %s: %w", e.Number, e.Owner, err)
		}
		refunds = append(refunds, Refund{ID: data.ID, Sale: id, Amount: data.Amount, At: e.At, Fingerprint: data.Fingerprint})
	}
	return refunds, nil
}
