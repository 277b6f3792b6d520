package payout

import (
	"context"
	"time"

	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/ledger"
)

// Explanation is what a seller is owed, and what keeps them from a payout now.
type Explanation struct {
	ledger.Balance
	// Blockers is empty if a request of the whole available balance would succeed.
	Blockers []Blocker
	// InTransit are all payouts under way, newest first.
	InTransit []Payout
}

// maxInTransit bounds the payouts that an explanation lists.
const maxInTransit = 1000

// Explain finds what a seller is owed and what blocks a payout, by the checks that a request makes, all at one moment. The
// payouts in transit add up to the balance in transit, up to a thousand payouts. It fails with [ledger.ErrTampered] if the row of
// the seller's totals is missing or old, or the service did not write it.
func (s *Service) Explain(ctx context.Context, seller string) (e Explanation, err error) {
	err = s.o.Store.View(ctx, func(v View) (err error) {
		e = Explanation{}
		if e.Balance, e.Blockers, err = s.blockers(ctx, v, seller, s.o.Now()); err == nil {
			e.InTransit, err = v.PayoutsInTransit(ctx, seller, maxInTransit)
		}
		return err
	})
	return e, err
}

// blockers lists all that blocks a payout, in the order in which a request is refused for it.
func (s *Service) blockers(ctx context.Context, v View, seller string, now time.Time) (ledger.Balance, []Blocker, error) {
	balance, list, err := s.stopBlockers(ctx, v, seller, now)
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
		if list[i].undated {
			continue
		}
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
