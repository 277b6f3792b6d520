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

const (
	explainedPage = 100
	explainTries  = 5
)

// errMoving asks the caller to repeat a read that others changed meanwhile.
var errMoving = fault.New(fault.Unavailable, "busy", "The balance changes at the moment. Try again.").After(time.Second)

// Explain finds what a seller is owed and what blocks a payout, by the checks that a request makes. The payouts in transit
// add up to the balance in transit.
func (s *Service) Explain(ctx context.Context, seller string) (Explanation, error) {
	for range explainTries {
		var found Explanation
		err := s.o.Store.InGroup(ctx, ledger.Scope{Owner: seller, Pause: true}, func(tx ChangeTx) (err error) {
			found = Explanation{}
			found.Balance, found.Blockers, err = s.blockers(ctx, tx, seller, s.o.Now())
			return err
		})
		if err != nil {
			return Explanation{}, err
		}
		rest := found.Balance.InTransit
		for {
			page, total, err := s.o.Store.ListPayouts(ctx, Filter{Seller: seller, Status: StatusProcessing, Limit: explainedPage, Offset: len(found.InTransit)})
			if err != nil {
				return Explanation{}, err
			}
			for _, p := range page {
				rest -= p.Amount
			}
			found.InTransit = append(found.InTransit, page...)
			if len(page) == 0 || int64(len(found.InTransit)) >= total {
				break
			}
		}
		if rest == 0 {
			return found, nil
		}
	}
	return Explanation{}, errMoving
}

// blockers lists all that blocks a payout, in the order in which a request is refused for it.
func (s *Service) blockers(ctx context.Context, tx RequestTx, seller string, now time.Time) (ledger.Balance, []Blocker, error) {
	balance, list, err := s.stops(ctx, tx, seller, now)
	if err != nil {
		return balance, nil, err
	}
	account, err := tx.AccountToPay(ctx, seller)
	if refusal := payable(account, err); refusal != nil {
		blocker, ok := accountBlocker(account, err)
		if !ok {
			return balance, nil, err
		}
		blocker.Refusal = refusal
		list = append(list, blocker)
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
	return balance, list, nil
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
		list = append(list, Blocker{Code: BlockedTampered, Message: ledger.ErrTampered.Message, Refusal: ledger.ErrTampered.Because(err)})
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
		return Blocker{Code: BlockedTampered, Message: ledger.ErrTampered.Message}, true
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
