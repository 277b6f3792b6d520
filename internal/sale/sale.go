// Package sale records what sellers earn: a sale, its release when the hold is over, and refunds.
package sale

import (
	"context"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/money"
)

// Sale is one earning of a seller, under the marketplace's own id.
type Sale struct {
	ID       string
	Seller   string
	Amount   money.Amount
	Refunded money.Amount
	// OccurredAt says in which month it counts; AvailableAt when it may be withdrawn.
	OccurredAt  time.Time
	AvailableAt time.Time
	// Month is OccurredAt's month in the marketplace's zone, such as "2026-11".
	Month string
	// ReleasedAt is zero while the sale is pending.
	ReleasedAt time.Time
	CreatedAt  time.Time
	// Fingerprint tells whether a repeat under the same id asks for the same.
	Fingerprint string
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

// What a caller may be told.
var (
	ErrNotFound       = fault.New(fault.NotFound, "sale_not_found", "No such sale. Record it with POST /api/marketplace/sales first.")
	ErrSellerNotFound = fault.New(fault.NotFound, "seller_not_found", "No seller has this sellerId. It is the id that registration returned.")
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
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is what sale asks of a store transaction. The closure that uses it may run more than once.
type Tx interface {
	ledger.Tx
	// SellerExists reports whether a user with that id may sell.
	SellerExists(ctx context.Context, seller string) (bool, error)
	// OpenBook makes the seller's row of totals if it is not there yet.
	OpenBook(ctx context.Context, seller string) error
	// InsertSale adds s unless its id is taken, and reports whether it did.
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
	// DueSales lists up to limit pending sales whose hold is over by now, those longest due, in the order of
	// their sellers.
	DueSales(ctx context.Context, now time.Time, limit int) ([]string, error)
}
