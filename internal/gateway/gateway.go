// Package gateway is the port to payment gateways: what the domains ask of one, in terms of no vendor.
//
// An adapter in a package below this one speaks a vendor's API and reports in these terms. The domains ask a
// gateway's [Capabilities] where vendors differ, and hold no constant of any. What a report means for a payout is
// decided in package payout. This package imports only vocabulary, so that every domain may import it.
package gateway

import (
	"context"
	"time"

	"bursar/internal/money"
)

// Name is a gateway's name. It is stored with everything that a gateway knows of, and is part of its webhooks' path.
type Name string

// Gateway pays bank accounts. Every method may be called again with the same arguments. A method that the
// capabilities don't offer fails with [ErrNotOffered], and sends nothing.
type Gateway interface {
	Name() Name
	// Capabilities are the same for as long as the process runs.
	Capabilities() Capabilities

	// EnsureBeneficiary makes a destination known to the gateway and returns what the gateway calls it. The
	// reference is ours; the same destination gives the same name. It fails with [ErrDestinationRefused] when the
	// gateway will never pay there. The name is stored as it is, so it must not show the account number.
	EnsureBeneficiary(ctx context.Context, reference string, d Destination) (string, error)
	// DescribeBeneficiary returns the destination behind a name that the gateway gave, or [ErrUnknownBeneficiary].
	DescribeBeneficiary(ctx context.Context, beneficiary string) (Destination, error)

	// Prepare writes the exact body that asks for the transfer, to be stored before it is sent. The same order gives
	// the same bytes.
	Prepare(o Order) (string, error)
	// Submit sends a prepared body under its idempotency key, once, as package httpapi does. See [SubmitOutcome] for the outcomes.
	Submit(ctx context.Context, key, body string) Submission
	// Fetch asks for a transfer by the gateway's id. It fails with [ErrUnknownTransfer] when the gateway says that
	// there is none; any other error says nothing about the transfer.
	Fetch(ctx context.Context, gatewayID string) (Report, error)
	// Find asks for a transfer by our reference, with Fetch's errors and [ErrManyTransfers]. The gateway may know it
	// a moment later even if it does not now. It needs [Capabilities.Lookup].
	Find(ctx context.Context, reference string) (Report, error)
	// Cancel cancels a transfer where the gateway still can. It returns the transfer as it then is: cancelled, or
	// not. An error says nothing about the transfer. It needs [Capabilities.Cancel].
	Cancel(ctx context.Context, gatewayID string) (Report, error)
	// Transfers lists a page of the transfers made since a moment, by any client. Those that are made
	// meanwhile may push others on to the next page, and never off the list. It needs [Capabilities.List].
	Transfers(ctx context.Context, since time.Time, after Cursor) (TransferPage, error)
	// Reversed lists as Transfers does, only those whose money came back. That it lists others too does no harm.
	Reversed(ctx context.Context, since time.Time, after Cursor) (TransferPage, error)

	// StartVerification asks whether a beneficiary's account exists and whose it is. It needs
	// [Capabilities.Verification], as Verification does.
	StartVerification(ctx context.Context, v VerificationRequest) (Verification, error)
	// Verification asks how a verification stands. What it reports is about the request's account, or it fails: the
	// id alone proves nothing.
	Verification(ctx context.Context, v VerificationRequest, id string) (Verification, error)

	// Lines lists a page of our account's statement, from one second up to and with another. Lines that are added
	// meanwhile may push others on to the next page, and never off the list. A list may lag behind the account by a
	// minute. It needs [Capabilities.Statement].
	Lines(ctx context.Context, from, to time.Time, after Cursor) (LinePage, error)
}

// Cursor is a place in a gateway's list, in the adapter's own form. The empty one is the beginning.
type Cursor string

// TransferPage is a page of a list of transfers.
type TransferPage struct {
	Transfers []Transfer
	// Next is where the next page begins; empty at the end of the list.
	Next Cursor
}

// LinePage is a page of a statement.
type LinePage struct {
	Lines []Line
	// Next is where the next page begins; empty at the end of the list.
	Next Cursor
}

// Order is a transfer to be made.
type Order struct {
	// Reference is the payout's id, and the idempotency key.
	Reference string
	// Beneficiary is what the gateway calls the destination.
	Beneficiary string
	Amount      money.Amount
	Currency    string
	Rail        RailName

	// Seller, Account and Gross (the amount before the fee) are for us. A gateway that keeps metadata returns them
	// with the transfer, so that a database that lost the payout can have it again.
	Seller  string
	Account string
	Gross   money.Amount
}

// Transfer is a report with the order that it came from, as far as the gateway still tells.
type Transfer struct {
	Report
	Order Order
}

// SubmitOutcome is what came of sending an order.
type SubmitOutcome int

// Outcomes. A timeout, a 5xx, a cut connection and an unreadable body are Unclear, never Refused.
const (
	// Unclear means that the transfer may have been made.
	Unclear SubmitOutcome = iota
	// Accepted means that the gateway has it; the report says more.
	Accepted
	// Refused means that the gateway said no to this very request. On a repeat it proves nothing about the first.
	Refused
	// NotTaken means that the request was turned away before it was looked at (rate limit, credentials, address).
	// The trouble is ours, and the transfer waits.
	NotTaken
)

// Submission is the outcome of sending an order, with what belongs to it.
type Submission struct {
	Outcome SubmitOutcome
	// Report is set when Outcome is Accepted.
	Report Report
	// ReasonCode and Reason explain any other outcome, for programs and for people.
	ReasonCode string
	Reason     string
	// NotSent says, with NotTaken, that not a byte of it left us.
	NotSent bool
	// RetryAfter is how long the gateway asked us to wait, if it did.
	RetryAfter time.Duration
}

// ReasonRateLimited is the reason code of a request that was not sent because our own rate limit had no room.
const ReasonRateLimited = "rate_limited"

// Report is a transfer as the gateway sees it.
type Report struct {
	GatewayID string
	Reference string
	// Amount is what the bank is sent.
	Amount money.Amount
	// Beneficiary and Currency are an order's, as the gateway has them; empty where it does not say.
	Beneficiary string
	Currency    string
	// MadeAt is when the gateway took the order; zero where it does not say.
	MadeAt   time.Time
	Progress Progress
	// RawStatus is the gateway's own word.
	RawStatus  string
	ReasonCode string
	Reason     string
	UTR        string
}

// Progress is the gateway's status in neutral words.
type Progress string

// Progress of a transfer.
const (
	InProgress Progress = "in_progress"
	// Queued is in progress, and can still be cancelled at the gateway.
	Queued Progress = "queued"
	Paid   Progress = "paid"
	// Reversed means that the money came back: from a transfer that was paid, or from one under way.
	Reversed     Progress = "reversed"
	Failed       Progress = "failed"
	Cancelled    Progress = "cancelled"
	Unrecognised Progress = "unrecognised"
)
