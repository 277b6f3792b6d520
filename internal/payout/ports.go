package payout

import (
	"context"
	"strings"
	"time"

	"bursar/internal/bank"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/money"
)

// Store keeps payouts.
type Store interface {
	// Payout finds one, or [ErrNotFound].
	Payout(ctx context.Context, id ID) (Payout, error)
	// ListPayouts lists those that f selects, newest first, and how many f selects in all. Of each it
	// tells what a list shows: id, seller, amount, state, times, UTR, and the account's last digits.
	ListPayouts(ctx context.Context, f Filter) ([]Payout, int64, error)
	// Summary is all that a seller's overview shows, in one read. It fails with [ledger.ErrTampered] if the row of the seller's
	// totals is missing, or the service did not write it.
	Summary(ctx context.Context, seller, thisMonth, lastMonth string) (Summary, error)
	ledger.EntriesReader
	// SelectPayouts lists a page of what a selection selects.
	SelectPayouts(ctx context.Context, sel Selection) ([]Selected, error)
	// SumPayouts sums up what a selection selects, among the newest [LookedThrough] payouts of its dates.
	SumPayouts(ctx context.Context, sel Selection) (Totals, error)
	// PaidByBank sums up what banks were paid from one moment to before another, returned since or not. FailedSince lists the
	// payouts that failed or were returned from a moment on.
	PaidByBank(ctx context.Context, from, to time.Time) ([]BankCount, error)
	FailedSince(ctx context.Context, from time.Time) ([]FailedPayout, error)
	OpenPayouts(ctx context.Context, now time.Time) (OpenPayouts, error)
	// UnresolvedPayouts lists those that are unknown or in review, oldest first.
	UnresolvedPayouts(ctx context.Context, limit int) ([]Payout, error)
	// LatePayouts lists those that should have arrived by now and are still under way, oldest first. It leaves out those with a
	// discrepancy or without a gateway.
	LatePayouts(ctx context.Context, now time.Time, limit int) ([]Payout, error)
	// PayoutsWithDiscrepancy lists payouts with a discrepancy, oldest first.
	PayoutsWithDiscrepancy(ctx context.Context, limit int) ([]Payout, error)
	// PayoutsWithoutGateway lists those that wait because their gateway is not configured, oldest first.
	PayoutsWithoutGateway(ctx context.Context, limit int) ([]Payout, error)
	// OpenUnmatchedTransfers lists unmatched transfers that no admin has resolved, the first found first.
	OpenUnmatchedTransfers(ctx context.Context, limit int) ([]UnmatchedTransfer, error)
	// OldestUnmatched is when the oldest of a gateway's unmatched transfers that no admin has resolved, and that are unmatched for this reason, was
	// made or found; zero without one.
	OldestUnmatched(ctx context.Context, at gateway.Name, why string) (time.Time, error)
	// UnmatchedSellers lists the sellers whom unmatched transfers of any gateway name that no admin has resolved, up to limit.
	UnmatchedSellers(ctx context.Context, limit int) ([]string, error)
	// OpenUnmatchedTransfer finds one of them.
	OpenUnmatchedTransfer(ctx context.Context, at gateway.Name, gatewayID string) (u UnmatchedTransfer, found bool, err error)
	// TakenByStatement is what left our account at the payout's gateway for it without the gateway's fees, less what came back, as far as the
	// gateway's statement was read and names the payout.
	TakenByStatement(ctx context.Context, p Payout) (money.Amount, error)
	// NewestSent lists the newest of the payouts that were sent through a gateway, newest first, up to limit.
	NewestSent(ctx context.Context, at gateway.Name, limit int) ([]Payout, error)
	// LastSent finds the newest payout that was sent through any gateway, if there is one.
	LastSent(ctx context.Context) (p Payout, found bool, err error)
	// FirstUserAt is when the first user came here, by import or else; zero if there is none.
	FirstUserAt(ctx context.Context) (time.Time, error)
	// PayoutsByID finds those of ids that a journal knows.
	PayoutsByID(ctx context.Context, ids []ID) (map[ID]Payout, error)
	// PayoutsPaused reports whether payouts are paused for everyone.
	PayoutsPaused(ctx context.Context) (bool, error)
	// Balance is the totals of a seller or of the platform. It fails with [ledger.ErrTampered] if their row is missing, or
	// the service did not write it.
	Balance(ctx context.Context, owner string) (ledger.Balance, error)
	// UserExists reports whether there is such a user, whatever their role.
	UserExists(ctx context.Context, id string) (bool, error)
	// View has fn read one moment of what is stored. It waits for no change, and keeps none waiting.
	View(ctx context.Context, fn func(View) error) error
	InTx(ctx context.Context, fn func(Tx) error) error
	// InGroup is InTx for a change that many make at once: the store serves many in one transaction. fn touches
	// nothing but what the scope names.
	InGroup(ctx context.Context, scope ledger.Scope, fn func(ChangeTx) error) error
}

// View is one moment of what is stored.
type View interface {
	// The Balance of a view fails with [ledger.ErrTampered] unless the service wrote the owner's totals, and they count every entry.
	stopsReader
	ledger.EntriesReader
	// AccountToPay is as in [RequestTx].
	AccountToPay(ctx context.Context, seller string) (bank.Account, error)
	// NewestOfType is when the newest entry of a type about a subject was made; zero if there is none.
	NewestOfType(ctx context.Context, owner, subject string, t ledger.Type) (time.Time, error)
	// BelowSince is when the available balance of an owner fell below an amount, for an owner who has less than that now; zero
	// if the owner never had as much, or where that is not found.
	BelowSince(ctx context.Context, owner string, amount money.Amount) (time.Time, error)
	// PayoutsInTransit lists a seller's payouts under way, newest first, up to limit, with what ListPayouts tells of each.
	PayoutsInTransit(ctx context.Context, seller string, limit int) ([]Payout, error)
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
	// HoldUntil is when a hold on the seller's payouts ends, zero without one. It may have passed.
	HoldUntil time.Time
	// Account is the IFSC, last digits and status of the current bank account; its zero value means none.
	Account bank.Account
}

// Filter selects payouts. The zero value of Seller or Status selects all.
type Filter struct {
	Seller string
	Status Status
	Limit  int // above 0
	Offset int
}

// RequestTx is what asking for a payout needs of a transaction. The closure that uses it may run more
// than once.
type RequestTx interface {
	ledger.Appender
	// AccountToPay finds the seller's current account with what a payout needs of it (id, holder, IFSC,
	// last four digits, status), or [bank.ErrNone]. It fails with [ledger.ErrTampered] if the service did not write those.
	AccountToPay(ctx context.Context, seller string) (bank.Account, error)
	// Balance is the totals of a seller or of the platform.
	Balance(ctx context.Context, owner string) (ledger.Balance, error)
	// PayoutsPaused reports whether payouts are paused for everyone. In a change of a payout that stays so until the
	// transaction ends.
	PayoutsPaused(ctx context.Context) (bool, error)
	// InsertPayout adds p. If its id is taken by a row that was inserted outside the service, the transaction fails with [ledger.ErrTampered].
	InsertPayout(ctx context.Context, p Payout) error
	// Payout finds one, or [ErrNotFound]. Nothing keeps it from changing.
	Payout(ctx context.Context, id ID) (Payout, error)

	// SaveIdempotency stores what an idempotency key stands for unless the key is in use, and
	// reports whether it did. Of several at once, one does, and the others wait for its transaction.
	SaveIdempotency(ctx context.Context, user, key string, r Idempotency, now time.Time) (bool, error)
	// SaveIdempotencyRefusal adds why the request was refused to a key that this transaction saved.
	SaveIdempotencyRefusal(ctx context.Context, user, key, refusal string) error
	// Idempotency finds what a key stands for.
	Idempotency(ctx context.Context, user, key string) (Idempotency, error)
}

// ChangeTx is what a change of one payout asks of a store transaction.
type ChangeTx interface {
	RequestTx
	// PayoutForUpdate finds one and keeps others from changing it until the transaction ends, or [ErrNotFound].
	PayoutForUpdate(ctx context.Context, id ID) (Payout, error)
	// UpdatePayout saves p, all but what it was made with, if the stored state is still from, and
	// reports whether it was.
	UpdatePayout(ctx context.Context, from State, p Payout) (bool, error)
	// EntriesAbout is as the store's, for the payout that the scope names and, if ReadsPause is set, for its bank account.
	EntriesAbout(ctx context.Context, seller, id string) ([]ledger.Entry, error)
	// CheckJournal fails with [ledger.ErrTampered] unless the owner's totals are those that the service wrote and all
	// entries from a number on are there. It may leave out entries that it has found there before, and that are about
	// something else than the payout.
	CheckJournal(ctx context.Context, owner string, from int64) error
}

// Tx is what payout asks of a store transaction. The closure that uses it may run more than once.
type Tx interface {
	ChangeTx
	mail.Tx
	// LeaseDuePayouts leases up to limit payouts whose step is due by now: their due time becomes until.
	LeaseDuePayouts(ctx context.Context, now, until time.Time, limit int) ([]ID, error)
	// ReschedulePayout makes the next step of a payout due now, unless it was never sent or a worker may be sending it, and reports
	// whether it did. One that has been "submitting" for longer than any lease has lost its worker, and is rescheduled.
	ReschedulePayout(ctx context.Context, id ID, now time.Time) (bool, error)
	// RescheduleInFlight makes the next step due now of all submitted, unknown and reviewed payouts of a gateway, and returns how
	// many. It skips unknown ones that are due before leased, because a worker may be sending them again. It takes those too that have
	// been "submitting" for longer than any lease.
	RescheduleInFlight(ctx context.Context, at gateway.Name, now, leased time.Time) (int64, error)
	// RescheduleStopped makes the next step due now of each payout that waits because payouts were frozen or paused, of all
	// sellers where seller is "", and returns how many.
	RescheduleStopped(ctx context.Context, seller string, now time.Time) (int64, error)
	// UnpaidWithDiscrepancy is the seller's oldest payout that failed, was cancelled or returned, and has a discrepancy; "" without one.
	UnpaidWithDiscrepancy(ctx context.Context, seller string) (ID, error)
	// LockPause waits for the changes that have asked PayoutsPaused about a payout, and lets none ask until the transaction ends.
	LockPause(ctx context.Context) error
	// AllowRun reports whether the caller may run the job with that name, which runs once in every period:
	// the first caller wins.
	AllowRun(ctx context.Context, name string, now time.Time, every time.Duration) (bool, error)
	// DeleteUnrecordedPayout deletes the row of a payout that no journal knows.
	DeleteUnrecordedPayout(ctx context.Context, id ID) error
	// ImportPayout adds p, which waits, unless there is a payout with its id, and reports whether it did.
	ImportPayout(ctx context.Context, p Payout) (bool, error)
	// UnsentPayouts lists the seller's payouts that the gateway is not known to have, and keeps others from changing
	// them until the transaction ends.
	UnsentPayouts(ctx context.Context, seller string) ([]Payout, error)
	// RecordUnmatchedTransfer stores an unmatched transfer and reports whether it is new. One that nobody has resolved gets the reason of now.
	RecordUnmatchedTransfer(ctx context.Context, s UnmatchedTransfer) (bool, error)
	// ForgetUnmatchedTransfer takes an unmatched transfer that nobody has resolved off the list: it has a payout now.
	ForgetUnmatchedTransfer(ctx context.Context, at gateway.Name, gatewayID string) error
	// ResolveUnmatchedTransfer marks an unmatched transfer as resolved, unless it is resolved already or there
	// is none, and reports whether it did.
	ResolveUnmatchedTransfer(ctx context.Context, at gateway.Name, gatewayID string) (bool, error)
	// SaveEvent notes the id of a gateway's event and reports whether it is new.
	SaveEvent(ctx context.Context, at gateway.Name, eventID string, now time.Time) (bool, error)
	// Forget deletes up to limit keys and as many gateway events from before the given instants, and
	// returns how many.
	Forget(ctx context.Context, keysBefore, eventsBefore time.Time, limit int) (int64, error)
}

// Idempotency is the first answer to a request under an idempotency key: the payout it made or
// changed, or why it was refused.
type Idempotency struct {
	// Fingerprint tells one request from another under the same key.
	Fingerprint string
	Payout      ID
	// Refusal is empty, or the fault as JSON.
	Refusal string
}

// UnmatchedTransfer is a transfer that the gateway made under a reference of ours, and that no payout can be made of.
type UnmatchedTransfer struct {
	Gateway  gateway.Name
	Transfer gateway.Transfer
	FoundAt  time.Time
	// Why says what is in the way, for an operator.
	Why string
}

// ID names it among the transfers of all gateways: two may use one id.
func (u UnmatchedTransfer) ID() string { return string(u.Gateway) + ":" + u.Transfer.GatewayID }

// parseUnmatchedID splits an id of [UnmatchedTransfer.ID], and reports whether it can be one.
func parseUnmatchedID(id string) (at gateway.Name, gatewayID string, ok bool) {
	name, gatewayID, _ := strings.Cut(id, ":")
	return gateway.Name(name), gatewayID, gateway.IsID(name) && gateway.IsID(gatewayID)
}

// Proofs checks who a seller is: their session, and fresh proofs.
type Proofs interface {
	// ConfirmSeller fails unless the session that asks is alive, and that of the seller, who may request payouts. The scope names the
	// session.
	ConfirmSeller(ctx context.Context, tx RequestTx, r Request) error
	// LockSession keeps the session that asks, and its user, as they are until the transaction ends. It fails with a fault of
	// kind Unauthenticated if the session has ended.
	LockSession(ctx context.Context, tx RequestTx, r Request) error
	// UseProof uses up the proof that came with a request, in its transaction. It fails with a fault of kind Unauthenticated
	// if what came is not one for this.
	UseProof(ctx context.Context, tx RequestTx, r Request, to []string) error
}

// Beneficiaries knows the bank accounts that are paid.
type Beneficiaries interface {
	// Beneficiary tells what a gateway calls a seller's bank account, making it known there if need be. A
	// fault of kind Refused means that the gateway will never pay to that account. It fails with [ledger.ErrTampered] unless
	// the seller's newest entries are all there, that with the number requested among them.
	Beneficiary(ctx context.Context, seller string, id bank.ID, at gateway.Name, requested int64) (string, error)
	// CheckPayable fails as Beneficiary does, for an account that the gateway knows already.
	CheckPayable(ctx context.Context, seller string, id bank.ID, requested int64) error
	// Recover makes sure that the seller's account with that id is in the ledger, and makes one that is
	// missing again of what the gateway knows of the beneficiary. It fails with a fault of kind NotFound
	// when there is no such account anywhere, or it belongs to another seller, or the beneficiary is another one.
	Recover(ctx context.Context, seller string, id bank.ID, at gateway.Name, beneficiary string) error
}
