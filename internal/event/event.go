// Package event is the feed of what happened, for the marketplace: the journal's entries that matter to it, in one order.
//
// Journals are one per seller, and transactions become visible out of order, so no number that is drawn before the
// commit can order them all: a reader who follows it would miss those that commit late. So the transaction that appends
// an entry also queues its events, and [Service.Number] numbers those that are committed: 1, 2, 3 … without a gap. Only
// numbered events are shown.
package event

import (
	"slices"
	"time"

	"bursar/internal/ledger"
)

// Type says what happened, as a marketplace reads it.
type Type string

// The types of events.
const (
	// SellerRegistered is a user who became a seller. It is no entry: a seller's journal begins with their first money.
	SellerRegistered Type = "seller.registered"

	BankAccountAdded    Type = "bank_account.added"
	BankAccountVerified Type = "bank_account.verified"
	BankAccountRejected Type = "bank_account.rejected"
	BankAccountReview   Type = "bank_account.review"

	SaleRecorded Type = "sale.recorded"
	SaleReleased Type = "sale.released"
	SaleRefunded Type = "sale.refunded"

	PayoutRequested Type = "payout.requested"
	PayoutSubmitted Type = "payout.submitted"
	PayoutReview    Type = "payout.review"
	PayoutCompleted Type = "payout.completed"
	PayoutFailed    Type = "payout.failed"
	PayoutCancelled Type = "payout.cancelled"
	PayoutReturned  Type = "payout.returned"
	// PayoutUpdated is what a payout learned without a change of its state, such as the bank's reference.
	PayoutUpdated Type = "payout.updated"

	BalanceAdjusted Type = "balance.adjusted"
	// BalanceNegative is an entry that took a seller's available balance below zero. The entry's own event is beside it.
	BalanceNegative Type = "balance.negative"
)

// IsMailed says whether users are mailed about events of the type.
func (t Type) IsMailed() bool { return t == PayoutFailed || t == PayoutReturned }

// typeOf is the event that an entry of a type is. Entries of other types are none.
//
//exhaustive:ignore
var typeOf = map[ledger.Type]Type{
	ledger.BankAccountAdded:    BankAccountAdded,
	ledger.BankAccountVerified: BankAccountVerified,
	ledger.BankAccountRejected: BankAccountRejected,
	ledger.BankAccountReview:   BankAccountReview,
	ledger.SaleRecorded:        SaleRecorded,
	ledger.SaleReleased:        SaleReleased,
	ledger.SaleRefunded:        SaleRefunded,
	ledger.PayoutRequested:     PayoutRequested,
	// The marketplace need not know that the datastore had lost the payout: its money is reserved from here on.
	ledger.PayoutImported:  PayoutRequested,
	ledger.PayoutSubmitted: PayoutSubmitted,
	ledger.PayoutReview:    PayoutReview,
	ledger.PayoutCompleted: PayoutCompleted,
	ledger.PayoutFailed:    PayoutFailed,
	ledger.PayoutCancelled: PayoutCancelled,
	ledger.PayoutReturned:  PayoutReturned,
	ledger.PayoutUpdated:   PayoutUpdated,
	ledger.BalanceAdjusted: BalanceAdjusted,
}

// Types lists all types of events, sorted.
func Types() []Type {
	all := []Type{SellerRegistered, BalanceNegative}
	for _, t := range typeOf {
		all = append(all, t)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// EntryTypes lists the types of entries that are events, each with its event's type.
func EntryTypes() map[ledger.Type]Type { return typeOf }

// Queued is an event that is not numbered yet.
type Queued struct {
	// Owner is the seller's id, and Entry the number of the entry in their journal; 0 for [SellerRegistered].
	Owner string
	Entry int64
	Type  Type
}

// Of lists the events that an entry is. Most are one or none.
func Of(e ledger.Entry) []Queued {
	var events []Queued
	if t, is := typeOf[e.Type]; is {
		events = append(events, Queued{e.Owner, e.Number, t})
	}
	if before := e.After.Available - e.Moved.Available; e.After.Available < 0 && before >= 0 {
		events = append(events, Queued{e.Owner, e.Number, BalanceNegative})
	}
	return events
}

// Event is an event in the feed.
type Event struct {
	Queued
	// Number is the event's place in the feed: 1, 2, 3 …
	Number int64
	// ID names the event wherever it is delivered, with prefix [IDPrefix].
	ID string
	// Subject is what the entry is about, and the seller's id for [SellerRegistered].
	Subject string
	At      time.Time
}

// IDPrefix begins the id of an event.
const IDPrefix = "evt_"
