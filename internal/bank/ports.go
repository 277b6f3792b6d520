package bank

import (
	"context"
	"time"

	"bursar/internal/decision"
)

// Store keeps bank accounts.
type Store interface {
	// BankAccount finds the seller's current account, or [ErrNone].
	BankAccount(ctx context.Context, seller string) (Account, error)
	// BankAccountByID finds any account ever registered, or [ErrNone].
	BankAccountByID(ctx context.Context, id ID) (Account, error)
	// AccountsInReview lists current accounts that wait for a person, oldest first.
	AccountsInReview(ctx context.Context, limit int) ([]Account, error)
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is what bank asks of a store transaction. The closure that uses it may run more than once.
type Tx interface {
	// SessionLives reports whether a user's session has not ended, and keeps it so until the transaction ends.
	SessionLives(ctx context.Context, session, user string) (bool, error)
	// ReplaceBankAccount makes a the seller's current account; earlier ones stay for the payouts made
	// with them.
	ReplaceBankAccount(ctx context.Context, a Account) error
	// AddFormerAccount adds an account that is not the seller's current one, unless there is one with
	// its id.
	AddFormerAccount(ctx context.Context, a Account) error
	// CurrentBankAccount finds the seller's current account, or [ErrNone].
	CurrentBankAccount(ctx context.Context, seller string) (Account, error)
	// TakeDueVerifications leases up to limit accounts whose verification is due by now: their due
	// time becomes until.
	TakeDueVerifications(ctx context.Context, now, until time.Time, limit int) ([]ID, error)
	// SaveVerification records progress from seen to a if the account is still the seller's current one
	// and in seen's status, and the gateway calls it as seen has it, and reports whether that was so. A step that was
	// made due since then stays due.
	SaveVerification(ctx context.Context, seen, a Account) (bool, error)
	// HastenVerification makes the next step of the verification with the verifier's id due now, if it
	// is under way, and reports whether it is.
	HastenVerification(ctx context.Context, verificationID string, now time.Time) (bool, error)
	// RecordDecision adds to the record of what admins decided.
	RecordDecision(ctx context.Context, d decision.Decision) error
	// SetBeneficiary records what the gateway calls the account, with its new seal, if the stored seal is still
	// the one that was seen, and reports whether it was.
	SetBeneficiary(ctx context.Context, seen string, a Account) (bool, error)

	// TakeThrottle counts one attempt against a bucket: its virtual time advances by cost from now or
	// from where it is, whichever is later, if that leaves it no further than now+burst. It returns the
	// bucket's virtual time, and whether the attempt was counted.
	TakeThrottle(ctx context.Context, bucket string, now time.Time, cost, burst time.Duration) (time.Time, bool, error)
	// RefundThrottle takes one attempt back.
	RefundThrottle(ctx context.Context, bucket string, cost time.Duration) error
}

// Registrar makes an account known to whoever pays it out.
type Registrar interface {
	// EnsureBeneficiary returns what the gateway calls the account. It is safe to repeat: the same
	// account gives the same name. It fails with a fault of kind Refused when the account can never be
	// paid to.
	EnsureBeneficiary(ctx context.Context, a Account, number Number) (string, error)
	// DescribeBeneficiary tells the holder, IFSC and number of what the gateway calls so, or [ErrNone].
	DescribeBeneficiary(ctx context.Context, beneficiary string) (Account, Number, error)
}

// Verifier finds out whether an account exists and whose it is. It need not be the payout gateway:
// RazorpayX offers validation only on some accounts.
type Verifier interface {
	// StartVerification asks for a verification and returns its first report.
	StartVerification(ctx context.Context, a Account) (Verification, error)
	// Verification asks how the verification that the account names stands. What it reports is about this account,
	// or it fails: the id alone proves nothing.
	Verification(ctx context.Context, a Account) (Verification, error)
}

// Verification is a verifier's report.
type Verification struct {
	ID      string
	Outcome Outcome
	// RegisteredName is the holder's name at the bank, and NameScore its likeness to the one given,
	// 0 to 100; -1 where the verifier gives none.
	RegisteredName string
	NameScore      int
	// Reason is a sentence for the seller where the outcome is not OutcomeValid.
	Reason string
}

// Outcome is what a verifier found.
type Outcome string

// Outcomes. A technical fault says nothing about the account, so it is tried again.
const (
	OutcomePending Outcome = "pending"
	OutcomeValid   Outcome = "valid"
	OutcomeInvalid Outcome = "invalid"
	OutcomeFault   Outcome = "fault"
	// OutcomeReview means that a person has to decide.
	OutcomeReview Outcome = "review"
)

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
