package payout

import (
	"context"
	"errors"
	"time"

	"bursar/internal/bank"
	"bursar/internal/decision"
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

// Explanation is what a seller is owed, and what keeps them from a payout now.
type Explanation struct {
	ledger.Balance
	// Blockers is empty if a request of the whole available balance would succeed.
	Blockers []Blocker
	// InTransit are all payouts under way, newest first.
	InTransit []Payout
}

// mostInTransit bounds the payouts that an explanation lists.
const mostInTransit = 1000

// Explain finds what a seller is owed and what blocks a payout, by the checks that a request makes, all at one moment. The
// payouts in transit add up to the balance in transit, up to a thousand payouts.
func (s *Service) Explain(ctx context.Context, seller string) (e Explanation, err error) {
	err = s.o.Store.View(ctx, func(v View) (err error) {
		e = Explanation{}
		if e.Balance, e.Blockers, err = s.blockers(ctx, v, seller, s.o.Now()); err == nil {
			e.InTransit, err = v.PayoutsInTransit(ctx, seller, mostInTransit)
		}
		return err
	})
	return e, err
}

// blockers lists all that blocks a payout, in the order in which a request is refused for it.
func (s *Service) blockers(ctx context.Context, v View, seller string, now time.Time) (ledger.Balance, []Blocker, error) {
	balance, list, err := s.stops(ctx, v, seller, now)
	if err != nil {
		return balance, nil, err
	}
	account, err := v.AccountToPay(ctx, seller)
	if refusal := payable(account, err); refusal != nil {
		blocker, ok := accountBlocker(account, err)
		if !ok {
			return balance, nil, err
		}
		blocker.Refusal = refusal
		list = append(list, blocker)
	}
	if err := v.CheckBalance(ctx, seller); isTampered(err) {
		list = append(list, tamperedBlocker(err))
	} else if err != nil {
		return balance, nil, err
	}
	switch {
	case balance.Available < 0:
		list = append(list, Blocker{
			Code: BlockedBelowZero, Message: "A refund or a correction took back more than was left. The next sales make up for it.", Refusal: ledger.ErrInsufficient,
		})
	case balance.Available < s.o.Minimum:
		list = append(list, Blocker{
			Code: BlockedBelowLeast, Message: "Payouts start at " + s.o.Currency.Display(s.o.Minimum) + ", and less is available.", Refusal: ledger.ErrInsufficient,
		})
	}
	for i := range list {
		list[i].Since, err = s.since(ctx, v, seller, account.ID, list[i].Code)
		if err != nil && !isTampered(err) { // what was tampered with says nothing of when
			return balance, nil, err
		}
	}
	return balance, list, nil
}

// since is when a blocker began, as the journals have it; zero if they don't.
func (s *Service) since(ctx context.Context, v View, seller string, account bank.ID, code string) (time.Time, error) {
	switch code {
	case BlockedFrozen:
		return v.NewestOfType(ctx, seller, seller, ledger.PayoutsFrozen)
	case BlockedPaused:
		return v.NewestOfType(ctx, decision.Platform, decision.Platform, ledger.PayoutsFrozen)
	case BlockedOnHold:
		return v.NewestOfType(ctx, seller, seller, ledger.PayoutsOnHold)
	case BlockedInReview:
		return v.NewestOfType(ctx, seller, string(account), ledger.BankAccountReview)
	case BlockedRejected:
		return v.NewestOfType(ctx, seller, string(account), ledger.BankAccountRejected)
	case BlockedUnverified:
		about, err := v.EntriesAbout(ctx, seller, string(account))
		if err != nil || len(about) == 0 {
			return time.Time{}, err
		}
		return about[0].At, nil
	case BlockedBelowZero:
		return v.BelowSince(ctx, seller, 0)
	case BlockedBelowLeast:
		return v.BelowSince(ctx, seller, s.o.Minimum)
	default:
		return time.Time{}, nil
	}
}

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

// stops lists why no payout of the seller may be requested, whatever the account and the amount.
func (s *Service) stops(ctx context.Context, from stopsReader, seller string, now time.Time) (ledger.Balance, []Blocker, error) {
	balance, err := from.Balance(ctx, seller)
	if err != nil {
		return balance, nil, err
	}
	var list []Blocker
	stopped := func(code, why string) Blocker {
		refusal := ErrOnHold.WithMessage("%s Your balance is safe.", why)
		refusal.Details = map[string]string{"reason": why}
		return Blocker{Code: code, Message: refusal.Message, Refusal: refusal}
	}
	if balance.Frozen {
		b := stopped(BlockedFrozen, whyFrozen)
		b.Action = "Contact support."
		list = append(list, b)
	}
	paused, err := from.PayoutsPaused(ctx)
	switch {
	case isTampered(err):
		list = append(list, tamperedBlocker(err))
	case err != nil:
		return balance, nil, err
	case paused:
		list = append(list, stopped(BlockedPaused, whyPaused))
	}
	if until := balance.Hold(now); !until.IsZero() {
		refusal := s.onHold(until)
		list = append(list, Blocker{
			Code: BlockedOnHold, Message: fault.From(refusal).Message, Until: until, Refusal: refusal,
			Action: "If it was not you, change your password and contact support.",
		})
	}
	return balance, list, nil
}

// payable fails unless a payout may go to a seller's account; err is of the look for it.
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
