package bank

import (
	"context"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// Proofs asks sellers who have a second factor for a fresh proof of who they are.
type Proofs interface {
	// RequireProof uses up the proof that came with a registration, in its transaction. It fails with a fault of kind
	// Unauthenticated if one is needed, and what came is not one for this account.
	RequireProof(ctx context.Context, tx Tx, r Registration) error
}

// Store keeps bank accounts.
type Store interface {
	// BankAccount finds the seller's current account, or [ErrNone].
	BankAccount(ctx context.Context, seller string) (Account, error)
	// BankAccountByID finds any account ever registered, or [ErrNone].
	BankAccountByID(ctx context.Context, id ID) (Account, error)
	ledger.EntriesReader
	// AccountsAdded lists the entries numbered below before that added a seller's accounts, newest first, up to limit. It fails with
	// [ledger.ErrTampered] if the service did not write all of them.
	AccountsAdded(ctx context.Context, seller string, before int64, limit int) ([]ledger.Entry, error)
	// CheckNewest fails with [ledger.ErrTampered] unless the owner's totals are those that the service wrote, and its 10,000
	// newest entries are all there and in each listing that they belong in. It looks again at what it has seen if a listing is another one,
	// and fails if the journal ends before the entry with the number upTo.
	CheckNewest(ctx context.Context, owner string, upTo int64, listings ...ledger.Listing) error
	// AccountsInReview lists current accounts that wait for a person, oldest first.
	AccountsInReview(ctx context.Context, limit int) ([]Account, error)
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is what bank asks of a store transaction. The closure that uses it may run more than once.
type Tx interface {
	mail.Tx
	ledger.Appender
	ledger.EntriesReader
	// Balance is the owner's totals, which stay as they are until the transaction ends.
	Balance(ctx context.Context, owner string) (ledger.Balance, error)
	// AccountsAdded is as the store's, of all accounts.
	AccountsAdded(ctx context.Context, seller string, limit int) ([]ledger.Entry, error)
	// SellerExists reports whether a user may be paid, and keeps it so until the transaction ends.
	SellerExists(ctx context.Context, seller string) (bool, error)
	// SessionLives reports whether a user's session has not ended, and keeps it so until the transaction ends.
	SessionLives(ctx context.Context, session, user string) (bool, error)
	// InsertBankAccount adds an account, unless there is one with its id, and reports whether it did. An account that
	// is to be the current one replaces the one before: that stays for the payouts made with it, without a next step.
	InsertBankAccount(ctx context.Context, a Account) (bool, error)
	// CheckNewest fails with [ledger.ErrTampered] unless the owner's totals and 10,000 newest entries, if there are any, are all
	// there and as the service wrote them.
	CheckNewest(ctx context.Context, owner string) error
	// HasVerifiedAccount reports whether an account of the seller, the current one or a former one, was verified and not rejected since.
	HasVerifiedAccount(ctx context.Context, seller string) (bool, error)
	// CurrentBankAccount finds the seller's current account, or [ErrNone].
	CurrentBankAccount(ctx context.Context, seller string) (Account, error)
	// LeaseDueVerifications leases up to limit accounts whose verification is due by now: their due
	// time becomes until.
	LeaseDueVerifications(ctx context.Context, now, until time.Time, limit int) ([]ID, error)
	// SaveVerification records progress from seen to a if the account is still the seller's current one and as it was
	// seen in all that the journal records, and reports whether that was so. A step that was made due since then stays
	// due.
	SaveVerification(ctx context.Context, seen, a Account) (bool, error)
	// RescheduleVerification makes the next step of the verification with the verifier's id due now, if it
	// is under way, and reports whether it is.
	RescheduleVerification(ctx context.Context, verificationID string, now time.Time) (bool, error)
	// SetBeneficiary records which gateway calls the account what, if its name, gateway, verification and status are as they were seen,
	// and reports whether that was so.
	SetBeneficiary(ctx context.Context, seen, a Account) (bool, error)

	// TakeThrottle counts one attempt against a bucket: its virtual time advances by cost from now or
	// from where it is, whichever is later, if that leaves it no further than now+burst. It returns the
	// bucket's virtual time, and whether the attempt was counted.
	TakeThrottle(ctx context.Context, bucket string, now time.Time, cost, burst time.Duration) (time.Time, bool, error)
	// RefundThrottle takes one attempt back.
	RefundThrottle(ctx context.Context, bucket string, cost time.Duration) error
}

// Directory names banks and branches by IFSC, where they are to be had.
type Directory interface {
	Branch(ifsc IFSC) (Branch, bool)
}

// Branch is a bank's branch.
type Branch struct {
	Bank string
	// Branch is the branch's name, where it is known.
	Branch string
	// Listed says that the directory knows the branch. Where it does not, the branch may be newer than
	// the directory, or the code mistyped.
	Listed bool
}
