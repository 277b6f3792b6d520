// Package ledger is the journal of what sellers are owed, and the one way to move money in it.
//
// Each owner, as a rule a seller, has a journal: an append-only sequence of entries numbered 1, 2, 3 … without a
// gap. An [Entry] tells what happened, how much money it moved between which accounts, and the owner's totals after
// it. Entries are chained by hashes, which anybody can check, and carry a MAC, which only the service can make. All
// other rows about money (totals, payouts, sales, bank accounts) are projections: they can be rebuilt from the
// entries, and have to equal what the entries fold to.
//
// The package is pure: it decides over loaded values and knows no database.
package ledger

import (
	"errors"
	"time"

	"bursar/internal/fault"
	"bursar/internal/money"
)

// Moved is what an entry adds to each account, in minor units. The sum is always zero: money comes from one account
// and goes to another.
type Moved struct {
	// Pending is earned and not yet withdrawable, Available is withdrawable, InTransit is reserved for payouts that
	// have not ended. These three are the owner's.
	Pending, Available, InTransit money.Amount
	// Sales is where earnings come from: what buyers paid the marketplace. Gateway is money that left through the
	// payment gateway. Fees is what the platform keeps of payouts. These three are the platform's.
	Sales, Gateway, Fees money.Amount
}

// IsZero reports whether nothing moves.
func (m Moved) IsZero() bool { return m == Moved{} }

// balanced reports whether the parts add up to zero.
func (m Moved) balanced() bool {
	return m.Pending+m.Available+m.InTransit+m.Sales+m.Gateway+m.Fees == 0
}

// Accounts lists the chart of accounts in the order in which entries tell them.
func Accounts() []string {
	return []string{"seller:pending", "seller:available", "seller:in_transit", "platform:sales", "platform:gateway", "platform:fees"}
}

// Amounts are what moves, in the order of [Accounts].
func (m Moved) Amounts() []money.Amount {
	return []money.Amount{m.Pending, m.Available, m.InTransit, m.Sales, m.Gateway, m.Fees}
}

// Balance is one owner's totals.
type Balance struct {
	Pending   money.Amount
	Available money.Amount // below zero after a refund of money already withdrawn
	InTransit money.Amount
	// Earned is all sales less their refunds.
	Earned money.Amount
	// Withdrawn is completed payouts, fees included, less those that the bank returned.
	Withdrawn money.Amount
	Counts    Counts
	// HoldUntil is when the owner may ask for payouts again, in microseconds since 1970; 0 without a hold. A hold ends by
	// itself, so the time may have passed.
	HoldUntil int64
	// Frozen says that an admin has stopped the owner's payouts, until an admin resumes them. It leaves a hold as it is.
	Frozen bool
}

// Hold is when a hold on the owner's payouts ends; zero if none stands at now.
func (b Balance) Hold(now time.Time) time.Time {
	if b.HoldUntil <= now.UnixMicro() {
		return time.Time{}
	}
	return time.UnixMicro(b.HoldUntil).UTC()
}

// Counts is one owner's counters: sales recorded, and payouts by the status that the seller sees.
type Counts struct {
	Sales      int64
	Processing int64
	Completed  int64
	Failed     int64
	Cancelled  int64
}

// Balances is what is in a seller's three accounts.
type Balances struct {
	Pending   money.Amount
	Available money.Amount
	InTransit money.Amount
}

// Balances is what is in the accounts.
func (b Balance) Balances() Balances { return Balances{b.Pending, b.Available, b.InTransit} }

var (
	// ErrInsufficient means that available would fall below zero; nothing was changed.
	ErrInsufficient = fault.New(fault.Refused, "insufficient_balance", "The available balance is too low.")
	// ErrBelowZero means that what is pending or in transit would fall below zero, which is a bug; nothing was changed.
	ErrBelowZero = errors.New("more would be taken from pending or in transit than is there")
	// ErrTooLarge means that a total would become larger than can be counted; nothing was changed.
	ErrTooLarge = fault.New(fault.Invalid, "total_too_large",
		"With this amount the seller's totals would become larger than can be counted. Record a smaller amount.")
	// ErrTampered means that a stored row or entry is not what the service wrote, so no money moves on its word. It is no
	// refusal that an idempotency key would keep: the records can be repaired.
	ErrTampered = fault.New(fault.Conflict, "records_tampered",
		"The records of this seller were changed outside the service, so no money moves for now. Our team is reviewing it.")
)

// TamperedKind is what a metric calls the rows that [ErrTampered] is about.
const TamperedKind = "seller_records"

// MaxTotal bounds every total, in minor units. Sums of a few totals still fit 64 bits.
const MaxTotal money.Amount = 1 << 60
