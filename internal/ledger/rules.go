package ledger

import (
	"fmt"

	"bursar/internal/money"
)

// Type says what happened. The names are dotted and in the past tense.
type Type string

// The types of entries that move money. Each has its posting rule below.
const (
	SaleRecorded    Type = "sale.recorded"
	SaleReleased    Type = "sale.released"
	SaleRefunded    Type = "sale.refunded"
	PayoutRequested Type = "payout.requested"
	// PayoutImported is a payout that the datastore had lost and the gateway has made. Its money has left, so it is
	// reserved even if that takes available below zero.
	PayoutImported  Type = "payout.imported"
	PayoutCompleted Type = "payout.completed"
	PayoutFailed    Type = "payout.failed"
	PayoutCancelled Type = "payout.cancelled"
	PayoutReturned  Type = "payout.returned"
	// BalanceAdjusted is a correction of what a seller earned, up or down, for a reason that the seller reads.
	BalanceAdjusted Type = "balance.adjusted"
)

// The types of entries that move no money.
const (
	// PayoutRequeued is a payout that was to be sent and waits again: the gateway did not take it.
	PayoutRequeued   Type = "payout.requeued"
	PayoutSubmitting Type = "payout.submitting"
	PayoutSubmitted  Type = "payout.submitted"
	// PayoutUnknown is a payout whose answer is missing: it may have been paid.
	PayoutUnknown Type = "payout.unknown"
	// PayoutReview is a payout that waits for manual review.
	PayoutReview Type = "payout.review"
	// PayoutUpdated is what was learnt of a payout that leaves its state as it is, such as the bank's reference.
	PayoutUpdated Type = "payout.updated"

	BankAccountAdded    Type = "bank_account.added"
	BankAccountReplaced Type = "bank_account.replaced"
	BankAccountVerified Type = "bank_account.verified"
	BankAccountRejected Type = "bank_account.rejected"
	BankAccountReview   Type = "bank_account.review"
	BankAccountUpdated  Type = "bank_account.updated"

	DiscrepancyFound    Type = "discrepancy.found"
	DiscrepancyResolved Type = "discrepancy.resolved"
	AdminDecided        Type = "admin.decided"
	// Repaired is a projection that an operator had rebuilt from the journal.
	Repaired Type = "projection.repaired"

	// PayoutsOnHold is a hold on an owner's payouts, see [HoldPosting]. It moves its end to a later time, never to an earlier one.
	PayoutsOnHold Type = "payouts.on_hold"
	// PayoutsHoldLifted ends a hold before its time.
	PayoutsHoldLifted Type = "payouts.hold_lifted"
	// PayoutsFrozen is an admin's decision to stop an owner's payouts until [PayoutsUnfrozen]: none can be requested, and
	// none that waits is sent.
	PayoutsFrozen   Type = "payouts.frozen"
	PayoutsUnfrozen Type = "payouts.unfrozen"

	// What changed of a user's sign-in. The subject is the user.
	AccountPasswordChanged Type = "account.password_changed"
	AccountIdentityLinked  Type = "account.identity_linked"
	// AccountIdentityUnlinked ends all sign-ins at one issuer. From then on an e-mail address alone links no identity to the account.
	AccountIdentityUnlinked  Type = "account.identity_unlinked"
	AccountEmailVerified     Type = "account.email_verified"
	AccountPasswordReset     Type = "account.password_reset" // by a mailed link
	AccountEmailChanged      Type = "account.email_changed"
	AccountEmailChangeUndone Type = "account.email_change_undone"
	// AccountProofMissing is another bank account that was refused: no proof came with it, or another one than it needs.
	AccountProofMissing Type = "account.proof_missing"
	// AccountTakenOver is an account that another person had registered, and that the owner of its address has now.
	AccountTakenOver Type = "account.taken_over"
	// AccountFactorsCleared removes all second factors: the account has another owner, or an operator reset it.
	AccountFactorsCleared   Type = "account.factors_cleared"
	AccountFactorAdded      Type = "account.factor_added"
	AccountFactorRemoved    Type = "account.factor_removed"
	AccountRecoveryCodeUsed Type = "account.recovery_code_used"
	// AccountCodeRefused is a wrong code of a second factor, at sign-in or where a fresh proof was asked for.
	AccountCodeRefused Type = "account.code_refused"
	// AccountPasskeyRefused is a wrong answer of a passkey in the place of a code.
	AccountPasskeyRefused Type = "account.passkey_refused"
	// AccountPasskeyCloned is an answer of a passkey whose counter did not grow, which was refused: another device may have its key.
	AccountPasskeyCloned Type = "account.passkey_cloned"

	AccountProfileChanged Type = "account.profile_changed"
	// AccountSessionsEnded is a session that the user ended from another one, or all others.
	AccountSessionsEnded Type = "account.sessions_ended"
	AccountDeleted       Type = "account.deleted"

	ServiceKeyCreated Type = "service_key.created"
	ServiceKeyRotated Type = "service_key.rotated"
	ServiceKeyRevoked Type = "service_key.revoked"
)

// rule says how an entry of a type moves money, and what it counts as.
type rule struct {
	// fits reports whether m is a movement that the rule makes.
	fits func(m Moved) bool
	// withdrawn is -1, 0 or +1 times the entry's amount. What is earned comes from the account of sales, whatever the type.
	withdrawn money.Amount
	counts    Counts
	// mayGoNegative lets available fall below zero.
	mayGoNegative bool
}

// rules is every way that money may move. What it does not list moves none.
//
//exhaustive:ignore
var rules = map[Type]rule{
	SaleRecorded: {fits: func(m Moved) bool { return m == Sale(m.Pending) && m.Pending > 0 }, counts: Counts{Sales: +1}},
	// A sale that was refunded in full before its release releases nothing.
	SaleReleased: {fits: func(m Moved) bool { return m == ReleaseSale(m.Available) && m.Available >= 0 }},
	SaleRefunded: {
		fits: func(m Moved) bool {
			return m.Sales > 0 && (m == RefundSale(m.Sales, false) || m == RefundSale(m.Sales, true))
		},
		// A refund is due even if the money has left.
		mayGoNegative: true,
	},
	// A correction downwards is due as a refund is.
	BalanceAdjusted: {fits: func(m Moved) bool { return m == AdjustBalance(m.Available) && m.Available != 0 }, mayGoNegative: true},
	PayoutRequested: {fits: isReservation, counts: Counts{Processing: +1}},
	PayoutImported:  {fits: isReservation, counts: Counts{Processing: +1}, mayGoNegative: true},
	PayoutCompleted: {
		fits:      func(m Moved) bool { return m == SettlePayout(m.Gateway, m.Fees) && m.Gateway > 0 && m.Fees >= 0 },
		withdrawn: +1, counts: Counts{Processing: -1, Completed: +1},
	},
	PayoutFailed:    {fits: isRelease, counts: Counts{Processing: -1, Failed: +1}},
	PayoutCancelled: {fits: isRelease, counts: Counts{Processing: -1, Cancelled: +1}},
	PayoutReturned: {
		fits:      func(m Moved) bool { return m == ReturnPayout(-m.Gateway, -m.Fees) && m.Gateway < 0 && m.Fees <= 0 },
		withdrawn: -1, counts: Counts{Completed: -1, Failed: +1},
	},
}

func isReservation(m Moved) bool { return m == ReservePayout(m.InTransit) && m.InTransit > 0 }
func isRelease(m Moved) bool     { return m == ReleasePayout(m.Available) && m.Available > 0 }

// Sale is money earned, not withdrawable yet.
func Sale(amount money.Amount) Moved { return Moved{Sales: -amount, Pending: amount} }

// ReleaseSale makes what is left of a sale withdrawable.
func ReleaseSale(left money.Amount) Moved { return Moved{Pending: -left, Available: left} }

// RefundSale takes earnings back: from available once the sale was released, else from pending.
func RefundSale(amount money.Amount, released bool) Moved {
	if released {
		return Moved{Available: -amount, Sales: amount}
	}
	return Moved{Pending: -amount, Sales: amount}
}

// AdjustBalance corrects what was earned, in the available balance: up, or down where the amount is below zero.
func AdjustBalance(amount money.Amount) Moved { return Moved{Available: amount, Sales: -amount} }

// ReservePayout sets a payout's whole amount aside.
func ReservePayout(amount money.Amount) Moved { return Moved{Available: -amount, InTransit: amount} }

// ReleasePayout makes a reserved amount available again: the payout was cancelled, or it failed.
func ReleasePayout(amount money.Amount) Moved { return Moved{InTransit: -amount, Available: amount} }

// SettlePayout spends a reserved amount: the bank paid net, and the platform keeps the fee.
func SettlePayout(net, fee money.Amount) Moved {
	return Moved{InTransit: -net - fee, Gateway: net, Fees: fee}
}

// ReturnPayout undoes SettlePayout: the bank sent the money back, and the fee goes back with it.
func ReturnPayout(net, fee money.Amount) Moved {
	return Moved{Available: net + fee, Gateway: -net, Fees: -fee}
}

// amount is the sum that an entry is about: what leaves one account for others.
func (m Moved) amount() money.Amount {
	var sum money.Amount
	for _, a := range m.Amounts() {
		sum += max(a, 0)
	}
	return sum
}

// After is the balance after an entry. It fails with [ErrInsufficient] when available would fall below zero and the
// rule forbids that, with [ErrTooLarge], and with a plain error for what is a bug: [ErrBelowZero], or a movement that
// no rule makes.
func (b Balance) After(t Type, m Moved) (Balance, error) {
	r, moves := rules[t]
	if !moves && !m.IsZero() {
		return b, fmt.Errorf("it moves money, and no entry of type %q does", t)
	}
	for _, a := range m.Amounts() {
		if a > MaxTotal || a < -MaxTotal {
			return b, ErrTooLarge
		}
	}
	if moves && (!m.balanced() || !r.fits(m)) {
		return b, fmt.Errorf("it moves money as no rule of %s does", t)
	}
	switch t {
	case PayoutsHoldLifted:
		b.HoldUntil = 0
	case PayoutsFrozen, PayoutsUnfrozen:
		b.Frozen = t == PayoutsFrozen
	default:
	}
	b.Pending += m.Pending
	b.Available += m.Available
	b.InTransit += m.InTransit
	b.Earned -= m.Sales
	b.Withdrawn += m.amount() * r.withdrawn
	b.Counts.Sales += r.counts.Sales
	b.Counts.Processing += r.counts.Processing
	b.Counts.Completed += r.counts.Completed
	b.Counts.Failed += r.counts.Failed
	b.Counts.Cancelled += r.counts.Cancelled
	for _, total := range []money.Amount{b.Pending, b.Available, b.InTransit, b.Earned, b.Withdrawn} {
		if total > MaxTotal || total < -MaxTotal {
			return b, ErrTooLarge
		}
	}
	if b.Pending < 0 || b.InTransit < 0 {
		return b, ErrBelowZero
	}
	if b.Available < 0 && m.Available < 0 && !r.mayGoNegative {
		return b, ErrInsufficient
	}
	return b, nil
}

// AfterEntry is the balance after an entry that is read back. When a hold ends, the entry alone tells; that it does not end
// earlier than it did is checked.
func (b Balance) AfterEntry(e Entry) (Balance, error) {
	after, err := b.After(e.Type, e.Moved)
	if e.Type == PayoutsOnHold {
		after.HoldUntil = max(after.HoldUntil, e.After.HoldUntil)
	}
	return after, err
}
