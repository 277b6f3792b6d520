package payout

import (
	"context"
	"errors"
	"time"

	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/money"
)

// Store keeps payouts.
type Store interface {
	// Payout finds one, or [ErrNotFound].
	Payout(ctx context.Context, id ID) (Payout, error)
	// ListPayouts lists those that f selects, newest first, and how many f selects in all. Of each it
	// tells what a list shows: id, seller, amount, fee, state, times, UTR, and the account's last digits.
	ListPayouts(ctx context.Context, f Filter) ([]Payout, int64, error)
	// Summary is all that a seller's overview shows, in one read.
	Summary(ctx context.Context, seller, thisMonth, lastMonth string) (Summary, error)
	// Events lists what happened to a payout, oldest first.
	Events(ctx context.Context, id ID) ([]Event, error)
	// SearchPayouts finds the payouts whose id, gateway's id or UTR is the query, newest first.
	SearchPayouts(ctx context.Context, query string, limit int) ([]Payout, error)
	// UnclearPayouts lists those that are unknown or held, oldest first.
	UnclearPayouts(ctx context.Context, limit int) ([]Payout, error)
	// ContradictedPayouts lists those about which the gateway said what can't be true, oldest first.
	ContradictedPayouts(ctx context.Context, limit int) ([]Payout, error)
	// OpenStrays lists stray transfers that nobody has settled, the first found first.
	OpenStrays(ctx context.Context, limit int) ([]Stray, error)
	// LastSending is when a payout was sent last, or a moment before that; if none was, when the first
	// user came. It is zero for a book without users. Restored with a book, it is that book's.
	LastSending(ctx context.Context) (time.Time, error)
	// PayoutsByID finds those of ids that there are.
	PayoutsByID(ctx context.Context, ids []ID) (map[ID]Payout, error)
	// UserExists reports whether there is such a user, whatever their role.
	UserExists(ctx context.Context, id string) (bool, error)
	InTx(ctx context.Context, fn func(Tx) error) error
	// InRequest is InTx for a request for a payout, which every seller makes at once: a store may serve
	// many in one transaction. fn touches nothing but what belongs to its caller, and the payout that
	// the caller's key stands for.
	InRequest(ctx context.Context, c RequestCaller, fn func(RequestTx) error) error
}

// RequestCaller is who asks for a payout, and under which idempotency key; "" for none.
type RequestCaller struct {
	Seller string
	Key    string
}

// Summary is what a seller's overview shows.
type Summary struct {
	Pending   money.Amount
	Available money.Amount
	InTransit money.Amount
	Earned    money.Amount
	Withdrawn money.Amount
	Sales     int64
	ThisMonth money.Amount
	LastMonth money.Amount
	// Account is the IFSC, last digits and status of the current bank account; its zero value means none.
	Account bank.Account
}

// Filter selects payouts. The zero value of Seller or Status selects all.
type Filter struct {
	Seller string
	Status Status
	Limit  int
	Offset int
}

// RequestTx is what asking for a payout needs of a transaction. The closure that uses it may run more
// than once.
type RequestTx interface {
	ledger.Tx
	// AccountToPay finds the seller's current account with what a payout needs of it (id, holder, IFSC,
	// last four digits, status), or [bank.ErrNone].
	AccountToPay(ctx context.Context, seller string) (bank.Account, error)
	// Available is the seller's available balance.
	Available(ctx context.Context, seller string) (money.Amount, error)
	InsertPayout(ctx context.Context, p Payout) error
	// Payout finds one, or [ErrNotFound]. Nothing keeps it from changing.
	Payout(ctx context.Context, id ID) (Payout, error)

	// Remember keeps what an idempotency key stands for unless it stands for something already, and
	// reports whether it did. Of several at once, one does, and the others wait for its transaction.
	Remember(ctx context.Context, user, key string, r Remembered, now time.Time) (bool, error)
	// RememberRefusal adds why the request was refused to a key just remembered.
	RememberRefusal(ctx context.Context, user, key, refusal string) error
	// Remembered finds what a key stands for.
	Remembered(ctx context.Context, user, key string) (Remembered, error)
}

// Tx is what payout asks of a store transaction. The closure that uses it may run more than once.
type Tx interface {
	RequestTx
	// PayoutForUpdate finds one and keeps others from changing it until the transaction ends, or [ErrNotFound].
	PayoutForUpdate(ctx context.Context, id ID) (Payout, error)
	// MovePayout saves p, all but what it was made with, if the stored state is still from, and
	// reports whether it was. A change of state is recorded as an event.
	MovePayout(ctx context.Context, from State, p Payout, at time.Time) (bool, error)
	// TakeDuePayouts leases up to limit payouts whose step is due by now: their due time becomes until.
	TakeDuePayouts(ctx context.Context, now, until time.Time, limit int) ([]ID, error)
	// HastenPayout makes the next step of a payout due now, unless it was never sent or is being sent, and
	// reports whether it did.
	HastenPayout(ctx context.Context, id ID, now time.Time) (bool, error)
	// TakeTurn reports whether it is the caller's turn to do what has that name: once in every so long,
	// whoever asks first.
	TakeTurn(ctx context.Context, name string, now time.Time, every time.Duration) (bool, error)
	// OpenBook makes the seller's row of totals if it is not there yet.
	OpenBook(ctx context.Context, seller string) error
	// AdoptPayout adds p, which waits, unless there is a payout with its id, and reports whether it did.
	AdoptPayout(ctx context.Context, p Payout) (bool, error)
	// DoubtUnsent gives the seller's payouts that the gateway is not known to have a reason code if the
	// seller is overdrawn.
	DoubtUnsent(ctx context.Context, seller, code string) error
	// RecordStray notes a stray transfer unless it is noted already, and reports whether it did.
	RecordStray(ctx context.Context, s Stray) (bool, error)
	// SettleStray notes that a person has settled a stray transfer, unless that is noted already or there
	// is none, and reports whether it did.
	SettleStray(ctx context.Context, gatewayID string) (bool, error)
	// RecordDecision adds to the record of what admins decided.
	RecordDecision(ctx context.Context, d decision.Decision) error
	// RememberEvent notes a gateway event's id and reports whether it is new.
	RememberEvent(ctx context.Context, eventID string, now time.Time) (bool, error)
	// Forget deletes up to limit keys and as many gateway events from before the given instants, and
	// returns how many.
	Forget(ctx context.Context, keysBefore, eventsBefore time.Time, limit int) (int64, error)
}

// Remembered is the first answer to a request under an idempotency key: the payout it made or
// changed, or why it was refused.
type Remembered struct {
	// Fingerprint tells one request from another under the same key.
	Fingerprint string
	Payout      ID
	// Refusal is empty, or the fault as JSON.
	Refusal string
}

// Stray is a transfer that the gateway made under a reference of ours, and that no payout can be made of.
type Stray struct {
	Transfer Transfer
	FoundAt  time.Time
	// Why says what is in the way, for an operator.
	Why string
}

// ErrUnknownToGateway means that the gateway answered that it knows no such transfer.
var ErrUnknownToGateway = errors.New("the gateway knows no such transfer")

// ErrManyTransfers means that the gateway has more than one transfer under a reference of ours.
var ErrManyTransfers = errors.New("it has more than one transfer under the payout's reference")

// Gateway pays bank accounts. Every method may be called again with the same arguments.
type Gateway interface {
	// Prepare writes the exact body that asks for the transfer, to be stored before it is sent.
	Prepare(o Order) (string, error)
	// Submit sends a prepared body under its idempotency key. See [Answer] for what may come of it.
	Submit(ctx context.Context, key, body string) Submission
	// Fetch asks for a transfer by the gateway's id. It fails with [ErrUnknownToGateway] when the
	// gateway says that there is none; any other error says nothing about the transfer.
	Fetch(ctx context.Context, gatewayID string) (Report, error)
	// Find asks for a transfer by our reference, with Fetch's errors. The gateway may know it a
	// moment later even if it does not now.
	Find(ctx context.Context, reference string) (Report, error)
	// Cancel calls a transfer off where the gateway still can. It returns the transfer as it then is:
	// cancelled, or not. An error says nothing about the transfer.
	Cancel(ctx context.Context, gatewayID string) (Report, error)
	// Transfers lists a page of the transfers made since a moment, whoever asked for them, passing over
	// the first skip of them. An empty page is past the end. Those that are made meanwhile may push
	// others on to the next page, and never off the list.
	Transfers(ctx context.Context, since time.Time, skip int) ([]Transfer, error)
	// Reversed lists as Transfers does, those alone whose money came back. That it lists others too does
	// no harm.
	Reversed(ctx context.Context, since time.Time, skip int) ([]Transfer, error)
}

// Order is a transfer to be made.
type Order struct {
	// Reference is the payout's id, and the idempotency key.
	Reference string
	// Beneficiary is what the gateway calls the bank account.
	Beneficiary string
	Amount      money.Amount
	Currency    string
	Mode        Mode

	// Seller, Account and Gross (the amount before the fee) are for us: the gateway keeps them with the
	// transfer, so that a book that lost the payout can have it again.
	Seller  string
	Account bank.ID
	Gross   money.Amount
}

// Transfer is a report with the order that it came of, as far as the gateway still tells.
type Transfer struct {
	Report
	Order Order
}

// Beneficiaries knows the bank accounts that are paid.
type Beneficiaries interface {
	// Beneficiary tells what the gateway calls a bank account, making it known there if need be. A
	// fault of kind Refused means that the gateway will never pay to that account.
	Beneficiary(ctx context.Context, id bank.ID) (string, error)
	// Recover makes sure that the seller's account with that id is in the book, and makes one that is
	// missing again of what the gateway knows of the beneficiary. It fails with a fault of kind NotFound
	// when there is no such account anywhere, or it is somebody else's, or the beneficiary is another one.
	Recover(ctx context.Context, seller string, id bank.ID, beneficiary string) error
}

// Answer is what came of sending a transfer.
type Answer int

// Answers. A time-out, a 5xx, a cut connection and an unreadable body are Unclear, never Refused.
const (
	// Unclear means that the transfer may have been made.
	Unclear Answer = iota
	// Accepted means that the gateway has it; the report says more.
	Accepted
	// Refused means that the gateway said no to this very request. On a repeat it proves nothing
	// about the first.
	Refused
	// NotTaken means that the request was turned away before it was looked at (rate limit,
	// credentials, address): our trouble, and the transfer waits.
	NotTaken
)

// Submission is an answer with what belongs to it.
type Submission struct {
	Answer Answer
	// Report is set when Answer is Accepted.
	Report Report
	// ReasonCode and Reason explain any other answer, for programs and for people.
	ReasonCode string
	Reason     string
	// NotSent says, with NotTaken, that not a byte of it left us.
	NotSent bool
	// RetryAfter is how long the gateway asked us to wait, if it did.
	RetryAfter time.Duration
}

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

// Progress is the gateway's status in our words.
type Progress string

// Progress of a transfer.
const (
	InProgress Progress = "in_progress"
	// Queued is in progress, and can still be cancelled at the gateway.
	Queued Progress = "queued"
	Paid   Progress = "paid"
	// Reversed means that the money came back: from a transfer that was paid, or from one under way.
	Reversed     Progress = "reversed"
	Rejected     Progress = "failed"
	CalledOff    Progress = "cancelled"
	Unrecognised Progress = "unrecognised"
)
