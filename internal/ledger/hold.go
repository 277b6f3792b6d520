package ledger

import "time"

// HoldReason says why payouts are on hold.
type HoldReason string

// The reasons.
const (
	HoldBankAccountReplaced HoldReason = "bank_account_replaced"
	HoldPasswordReset       HoldReason = "password_reset"
	HoldEmailChanged        HoldReason = "email_changed"
	HoldTakenOver           HoldReason = "account_taken_over"
	HoldFactorRemoved       HoldReason = "factor_removed"
)

// HoldPosting is the entry that puts an owner's payouts on hold until a time: another person may have made the change that
// is the reason, and the owner has until then to notice. A hold that ends later stays as it is.
func HoldPosting(owner, actor string, why HoldReason, now, until time.Time) (Posting, error) {
	data, err := Facts("reason", why, "until", until.UnixMicro())
	return Posting{Owner: owner, At: now, Type: PayoutsOnHold, Subject: owner, Actor: actor, Data: data, HoldUntil: until}, err
}
