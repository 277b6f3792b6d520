// Package reconcile compares the gateway's statement of our account with the ledger, line by line.
//
// The statement is read day by day and kept: a second debit on another day, the edges of a period and a line
// that changes later are only noticed if the first version was stored. What disagrees is a [Difference] with a name.
// Nothing here moves money or believes a line: a payout that the statement has otherwise than the ledger is
// looked up at the gateway sooner, by package payout, and a person resolves what is left.
//
// docs/reconciliation.md lists the names, and what to do about each.
package reconcile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// Line is a line of a gateway's statement. Of its Reference only Payout is stored.
type Line struct {
	gateway.Line
	// Gateway is the one whose statement has the line.
	Gateway gateway.Name
	// Payout is the payout's id here, as far as the line names it.
	Payout payout.ID

	// FirstReported and LastReported are what may not change of it, when it was first read and last. Missing means
	// that a later reading did not find it any more.
	FirstReported, LastReported string
	Missing                     bool
}

// Taken is what the line took from the account, less what it put in.
func (l Line) Taken() money.Amount { return l.Debit - l.Credit }

// ofPayout reports whether the line is of a payout, ours or another one from the same account.
func (l Line) ofPayout() bool {
	return l.Kind == gateway.LinePayout || l.Kind == gateway.LineReversal
}

// Day is a day of the statement that was read to its end. It begins and ends at a midnight.
type Day struct {
	From, To time.Time
	// ReadAt is when the reading began.
	ReadAt time.Time
	// Lines is how many it has, and -1 before they were compared.
	Lines int
	// Opening and Closing are the account's balances before its first line and after its last one, where
	// they tell.
	Opening, Closing money.Amount
	HasBalances      bool
}

// Entry is a transfer of the ledger to or from the gateway's account, or the end of a payout that was not paid. The gateway may have
// taken money for that payout days before, so its end is what shows that the money should be back.
type Entry struct {
	At     time.Time
	Payout payout.ID
	// Paid is what went out; below zero it came back; zero if the payout failed or was cancelled.
	Paid money.Amount
	// Seller and Number are where it stands in the ledger.
	Seller string
	Number int64
}

// Kind names a sort of difference.
type Kind string

// Kinds of differences.
const (
	LineWithoutPayout Kind = "line-without-payout"
	PayoutWithoutLine Kind = "payout-without-line"
	PaidTwice         Kind = "paid-twice"
	AmountDiffers     Kind = "amount-differs"
	FeeDiffers        Kind = "fee-differs"
	ReturnedAtGateway Kind = "returned-at-the-gateway"
	ReturnWithoutLine Kind = "return-without-line"
	RefundedButPaid   Kind = "refunded-but-paid"
	LineBeforeOrder   Kind = "line-before-order"
	CurrencyDiffers   Kind = "currency-differs"
	UnexplainedDebit  Kind = "unexplained-debit"
	LineChanged       Kind = "line-changed"
	StatementHasGap   Kind = "statement-has-gap"
)

// Kinds lists all, the most pressing first.
func Kinds() []Kind {
	return []Kind{
		PaidTwice, RefundedButPaid, LineBeforeOrder, LineWithoutPayout, UnexplainedDebit, AmountDiffers, CurrencyDiffers,
		ReturnedAtGateway, ReturnWithoutLine, PayoutWithoutLine, FeeDiffers, LineChanged, StatementHasGap,
	}
}

// Meaning is the kind in a sentence.
func (k Kind) Meaning() string { return cmp.Or(meanings[k], string(k)) }

var meanings = map[Kind]string{
	PaidTwice:         "The gateway took money for one payout more than once.",
	RefundedButPaid:   "The amount was refunded to the seller, and the gateway keeps what it took for the payout.",
	LineBeforeOrder:   "The gateway took money for a payout that the ledger has not sent.",
	LineWithoutPayout: "The gateway took or returned money for a payout that is not in the ledger.",
	UnexplainedDebit:  "Money left the account, and not for a payout.",
	AmountDiffers:     "The gateway took or returned another amount than the payout's.",
	CurrencyDiffers:   "A line is in another currency than the ledger.",
	ReturnedAtGateway: "The money is back on the account, and the ledger does not say so.",
	ReturnWithoutLine: "The ledger says that the bank returned the money, and the statement does not have it.",
	PayoutWithoutLine: "The ledger says that the payout was paid, and the statement has no debit for it.",
	FeeDiffers:        "What was taken beside the payout's amount is neither the fee that the line tells nor nothing.",
	LineChanged:       "The gateway tells a line otherwise than before, or tells it no more.",
	StatementHasGap:   "The statement's balances do not lead from one to the next: a line is missing or wrong.",
}

// Difference is where the statement and the ledger do not agree.
type Difference struct {
	// ID begins with "dif_" and follows from Kind, Gateway and Subject.
	ID   string
	Kind Kind
	// Gateway is the one whose statement differs.
	Gateway gateway.Name
	// Subject is what it is about: the id of a payout, of a transfer at the gateway or of a line, or a day.
	Subject string
	// Payout is the one in the ledger, or "".
	Payout payout.ID
	// Detail says in plain words what was found. It holds no name and no account number.
	Detail string
	// At is when what differs happened.
	At time.Time
	// AtGateway is what the gateway took less what it returned, and InLedger what the ledger has of that.
	AtGateway, InLedger money.Amount

	FirstSeen, LastSeen time.Time
	// GoneAt is when it was looked for again and not found, ResolvedAt when a person explained it; zero
	// until then.
	GoneAt, ResolvedAt time.Time
}

// Open reports whether the difference waits for a person.
func (d Difference) Open() bool { return d.GoneAt.IsZero() && d.ResolvedAt.IsZero() }

const idPrefix = "dif_"

// idOf is the id of a difference. The same difference, found again, has the same one.
func idOf(k Kind, at gateway.Name, subject string) string {
	sum := sha256.Sum256([]byte(string(k) + "\n" + string(at) + "\n" + subject))
	const enough = 12
	return idPrefix + hex.EncodeToString(sum[:enough])
}

// isID keeps what can't be the id of a difference from the store.
func isID(s string) bool {
	digits, isOne := strings.CutPrefix(s, idPrefix)
	_, err := hex.DecodeString(digits)
	return isOne && err == nil && len(digits) == 24
}
