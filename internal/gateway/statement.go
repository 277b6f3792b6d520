package gateway

import (
	"time"

	"bursar/internal/money"
)

// LineKind says what a line of a statement came from, in neutral words.
type LineKind string

// Kinds of lines.
const (
	// LinePayout is a payout's line, and LineReversal its money coming back.
	LinePayout   LineKind = "payout"
	LineReversal LineKind = "reversal"
	// LineFee is a charge of the gateway that belongs to no payout.
	LineFee LineKind = "fee"
	// LineVerification pays for checking a bank account.
	LineVerification LineKind = "verification"
	LineOther        LineKind = "other"
)

// Line is one movement of our account, as the gateway's statement tells it. Exactly one of Debit and Credit is above
// zero.
type Line struct {
	ID            string
	At            time.Time
	Debit, Credit money.Amount
	// Balance is what the account held after it, where the gateway tells.
	Balance    money.Amount
	HasBalance bool
	Currency   string
	Kind       LineKind
	// RawKind is the gateway's own word, and SourceID the id of what the line came from.
	RawKind, SourceID string
	// Transfer is the transfer's id at the gateway, and Reference ours, as far as the line names them.
	Transfer, Reference string
	// Amount is what the transfer itself was of, without fees; zero where the gateway does not tell. Then a fee that it kept of a transfer that failed
	// counts as a part of it that is gone.
	Amount    money.Amount
	Fees, Tax money.Amount
	UTR       string
}
