package payout

import (
	"context"
	"errors"
	"time"

	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/ledger"
)

// Blocker is a reason why no payout can be requested now.
type Blocker struct {
	// Code is a stable word for programs, and Message a sentence for the seller.
	Code, Message string
	// Since is when it began, zero where that is not known.
	Since time.Time
	// Until is when it ends by itself, zero where that is not known.
	Until time.Time
	// Action is what the seller can do about it, in a few words; empty for nothing.
	Action string
	// Refusal is what a request is refused with.
	Refusal error

	// undated says that no entry tells when it began: an unmatched transfer's stop has the code of a freeze, but is none.
	undated bool
}

// Codes of blockers.
const (
	BlockedFrozen     = "payouts_frozen"
	BlockedPaused     = "payouts_paused"
	BlockedOnHold     = "payouts_on_hold"
	BlockedTampered   = "records_tampered"
	BlockedNoAccount  = "bank_account_missing"
	BlockedUnverified = "bank_account_unverified"
	BlockedInReview   = "bank_account_in_review"
	BlockedRejected   = "bank_account_rejected"
	BlockedBelowZero  = "negative_balance"
	BlockedBelowLeast = "below_minimum"
	BlockedMail       = "email_not_verified"
	BlockedSuspended  = "seller_suspended"
)

// SuspendedBlocker is of a seller who was suspended at since, zero where that is not known.
func SuspendedBlocker(since time.Time, refusal error) Blocker {
	return Blocker{Code: BlockedSuspended, Message: "The account is suspended.", Action: "Contact support.", Since: since, Refusal: refusal}
}

// MailBlocker is of a seller whose e-mail address was never confirmed, since they registered.
func MailBlocker(since time.Time, refusal error) Blocker {
	return Blocker{
		Code: BlockedMail, Message: "The e-mail address is not confirmed.", Action: "Confirm it with the link or the code that was mailed.",
		Since: since, Refusal: refusal,
	}
}

// tamperedBlocker is of records that the service did not write.
func tamperedBlocker(err error) Blocker {
	return Blocker{Code: BlockedTampered, Message: ledger.ErrTampered.Message, Action: "Contact support.", Refusal: ledger.ErrTampered.Because(err)}
}

// mayRequest returns the refusal of the first blocker: [ErrOnHold], or [ledger.ErrTampered] if the record of the pause was changed.
func (s *Service) mayRequest(ctx context.Context, tx RequestTx, seller string, now time.Time) error {
	_, list, err := s.stopBlockers(ctx, tx, seller, now)
	if err == nil && len(list) > 0 {
		err = list[0].Refusal
	}
	return err
}

// stopBlockers lists why no payout of the seller may be requested, whatever the account and the amount.
func (s *Service) stopBlockers(ctx context.Context, from stopsReader, seller string, now time.Time) (ledger.Balance, []Blocker, error) {
	balance, stops, err := s.stopsOf(ctx, from, seller)
	if err != nil && !errors.Is(err, errPauseUnclear) {
		return balance, nil, err
	}
	var list []Blocker
	for _, st := range stops {
		refusal := ErrOnHold.WithMessage("%s Your balance is safe.", st.why)
		refusal.Details = map[string]string{"reason": st.why}
		b := Blocker{Code: st.code, Message: refusal.Message, Refusal: refusal, undated: st.why == whyLost}
		if st.code == BlockedFrozen {
			b.Action = "Contact support."
		}
		list = append(list, b)
	}
	if err != nil {
		list = append(list, tamperedBlocker(err))
	}
	if until := balance.Hold(now); !until.IsZero() {
		refusal := s.errOnHoldUntil(until)
		list = append(list, Blocker{
			Code: BlockedOnHold, Message: fault.From(refusal).Message, Until: until, Refusal: refusal,
			Action: "If it was not you, change your password and contact support.",
		})
	}
	return balance, list, nil
}

// ErrOnHold means that the seller may ask for no payout until the time in its details, or for the reason there until an
// admin resumes payouts. It is not stored under the idempotency key, so a repeat of the request is decided again.
var ErrOnHold = fault.New(fault.Conflict, "payouts_on_hold", "Payouts are on hold after a change of your account.")

// errOnHoldUntil is ErrOnHold for a hold that ends by itself, and says when.
func (s *Service) errOnHoldUntil(until time.Time) error {
	err := ErrOnHold.WithMessage("Payouts are on hold until %s, because your bank account or your sign-in was changed. Your balance is safe; ask again then.",
		until.In(s.o.Zone).Format("15:04 MST on 2 January 2006"))
	err.Details = map[string]string{"until": until.UTC().Format("2006-01-02T15:04:05.000Z")}
	return err
}

// payable fails unless a payout may go to a seller's account; err is the error of loading it.
func payable(account bank.Account, err error) error {
	if errors.Is(err, bank.ErrNone) || (err == nil && account.Status != bank.StatusVerified) {
		return ErrBankUnverified
	}
	return err
}

// accountBlocker says what is wrong with an account that is not payable; false where it can't be told.
func accountBlocker(account bank.Account, err error) (Blocker, bool) {
	switch {
	case errors.Is(err, bank.ErrNone):
		return Blocker{Code: BlockedNoAccount, Message: "No bank account is registered.", Action: "Register a bank account."}, true
	case isTampered(err):
		return tamperedBlocker(err), true
	case err != nil:
		return Blocker{}, false
	case account.Status == bank.StatusRejected:
		return Blocker{Code: BlockedRejected, Message: "The bank account was rejected.", Action: "Register another bank account."}, true
	case account.Status == bank.StatusReview:
		return Blocker{Code: BlockedInReview, Message: "Our team compares the name of the bank account's holder."}, true
	default:
		return Blocker{Code: BlockedUnverified, Message: "The bank account is being verified."}, true
	}
}
