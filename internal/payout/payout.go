// Package payout takes a seller's money to the bank, exactly once.
//
// The table of transitions ([State.Next]) lists the states of a payout; every step along it is a compare-and-set in one transaction
// with the money that moves, so a step that is repeated, interrupted or raced changes nothing twice.
// What the gateway has not clearly answered is unknown, and unknown is never failed.
package payout

import (
	"time"

	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/money"
)

// Source is who asked for a payout in the seller's name.
type Source string

// Sources, besides the seller.
const (
	// FromMarketplace is a payout that a server of the marketplace asked for.
	FromMarketplace Source = "marketplace"
	// FromImport is a payout that a restore had lost and that was imported from the gateway, which does not tell who asked for it.
	FromImport Source = "imported"
)

// ID is a payout's identifier, with prefix [IDPrefix]; it sorts by the time of the request.
type ID string

// IDPrefix begins a payout's id.
const IDPrefix = gateway.ReferencePrefix

// ParseID refuses what can't be a payout's identifier, so that it never reaches the store.
func ParseID(s string) (ID, error) {
	if !id.Valid(IDPrefix, s) {
		return "", ErrNotFound
	}
	return ID(s), nil
}

// requestedAt is when the payout was asked for, to the millisecond.
func (i ID) requestedAt() time.Time { return id.Time(IDPrefix, string(i)) }

// Payout is one withdrawal. Its tagged fields are recorded in its seller's journal, which they fold from.
type Payout struct {
	ID            ID
	Seller        string  `journal:"seller"`
	BankAccountID bank.ID `journal:"bankAccount"`
	// Amount is what the seller asked for; the bank is sent Amount less Fee.
	Amount money.Amount     `journal:"amount"`
	Fee    money.Amount     `journal:"fee"`
	Notes  string           `journal:"notes"`
	State  State            `journal:"state"`
	Rail   gateway.RailName `journal:"rail"`
	// Source is who asked for it; empty for the seller.
	Source Source `journal:"source"`
	// Gateway is the one that was picked at the request. It never changes.
	Gateway gateway.Name `journal:"gateway"`

	RequestedAt time.Time `journal:"requestedAt"`
	// ArriveAt is when the money should be there, as estimated at the request.
	ArriveAt time.Time `journal:"arriveAt"`
	// SentAt is when the order in OrderBody was first sent: an order that was rejected is written again and has a new SentAt, and a
	// resend after a lost answer leaves it. ProcessedAt is when the gateway took it on; CompletedAt when the bank had paid; EndedAt
	// when it came to its present end. Each is zero until then.
	SentAt      time.Time `journal:"sentAt"`
	ProcessedAt time.Time `journal:"processedAt"`
	CompletedAt time.Time `journal:"completedAt"`
	EndedAt     time.Time `journal:"endedAt"`
	// DueAt is when the next step is to be taken; zero when nothing is left to do.
	DueAt time.Time
	// Tries counts steps since the last change of state; it goes on while an order is rejected and sent again. It sets the
	// back-off. An unknown order is sent again only from the second try, and a transfer that the gateway forgot is a discrepancy only
	// after several. resend also compares it, to notice another worker.
	Tries int

	// OrderBody is the exact body that asks the gateway for the transfer, stored before a byte of it is
	// sent and repeated unchanged until the gateway has answered. The payout's own id is our
	// reference there and the idempotency key: one payout, one transfer.
	OrderBody string `journal:"order,hash"`

	GatewayID string `journal:"gatewayId"`
	// Progress is how the gateway's last report has it.
	Progress gateway.Progress `journal:"progress"`
	UTR      string           `journal:"utr"`
	// ReasonCode and Reason say why it failed, was returned or is in review: for programs and for the seller.
	ReasonCode string `journal:"reasonCode"`
	Reason     string `journal:"reason"`

	// Discrepancy says how the gateway's report, or the row itself, disagrees with the journal. An admin resolves it.
	Discrepancy string `journal:"discrepancy"`

	// Beneficiary is what the payout's gateway calls the bank account; empty until the account was registered there, and where the
	// account's name at another gateway is the one that is kept.
	Beneficiary string

	// Of the bank account, for showing: never the full number.
	AccountHolder string
	AccountLast4  string
	AccountIFSC   string
}

// Net is what the bank is sent.
func (p Payout) Net() money.Amount { return p.Amount - p.Fee }

// IsLate reports whether the payout is under way and should have arrived by now.
func (p Payout) IsLate(now time.Time) bool {
	return p.Status() == StatusProcessing && p.ArriveAt.Before(now)
}

// Status is what the seller sees.
func (p Payout) Status() Status { return p.State.Status() }

// Failures that a caller may see.
var (
	ErrNotFound       = fault.New(fault.NotFound, "payout_not_found", "No such payout. GET /api/payouts/history lists yours.")
	ErrNotCancellable = fault.New(fault.Refused, "payout_not_cancellable", "This payout can no longer be cancelled.")
	ErrCancelUnclear  = fault.New(fault.Unavailable, "cancel_unclear", "This payout could not be cancelled just now. Look at it in a moment, and try again if it is still processing.")
	ErrBankUnverified = fault.New(fault.Refused, "bank_account_not_verified",
		"The bank account is not verified. GET /api/bank-account says how far it is and why; register another with PUT if it was rejected.")
	ErrAccountChanged = fault.New(fault.Refused, "bank_account_changed",
		"Another bank account was registered since you were shown where the money goes. Look at it, and confirm again.")
	ErrSellerProof = fault.New(fault.Forbidden, "seller_proof_required",
		"The seller has to confirm this, so a server can't do it for them. Send them to their pages: POST /api/marketplace/sellers/{id}/session makes a link.")
	ErrKeyReused = fault.New(fault.Invalid, "idempotency_key_reused",
		"This Idempotency-Key was used for a different request. Use a new key for a new request.")
)
