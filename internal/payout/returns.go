package payout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bursar/internal/gateway"
)

// LookForReturns asks each gateway that lists which transfers of the last weeks have come back, and makes the next
// look at each payout that the book still takes for paid or under way due now. The list is a hint, like
// a webhook, and not believed. One instance asks in each [Options.ReturnsEvery]; for the others, and in
// between, there is nothing to do. It returns how many payouts were made due.
func (s *Service) LookForReturns(ctx context.Context) (_ int, failed error) {
	now := s.o.Now()
	mine := false
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		mine, err = tx.TakeTurn(ctx, "returns", now, s.o.ReturnsEvery)
		return err
	})
	if err != nil || !mine {
		return 0, err
	}
	hastened := 0
	for _, g := range s.o.Gateways.All() {
		if !g.Capabilities().List { // its payouts are polled one by one
			continue
		}
		n, err := s.lookForReturnsAt(ctx, g, now.Add(-returnsReach))
		hastened += n
		failed = errors.Join(failed, err) // another gateway's answers are not kept waiting
	}
	return hastened, failed
}

func (s *Service) lookForReturnsAt(ctx context.Context, g gateway.Gateway, since time.Time) (hastened int, err error) {
	listed := 0
	for after := gateway.Cursor(""); listed < mostTransfers; {
		page, err := g.Reversed(ctx, since, after)
		if err != nil {
			return hastened, fmt.Errorf("list what came back to gateway %s: %w", g.Name(), err)
		}
		n, err := s.hastenReturned(ctx, g.Name(), page.Transfers)
		hastened += n
		if err != nil || page.Next == "" {
			return hastened, err
		}
		after, listed = page.Next, listed+len(page.Transfers)
	}
	return hastened, nil
}

// returnsReach is how old a transfer may be that is listed. A bank returns money by the third working day
// after it was paid, and a transfer may have waited for days before. What is older still is looked at one by one.
const returnsReach = 21 * 24 * time.Hour

// hastenReturned makes the payouts due whose money came back and whose book does not know it yet.
func (s *Service) hastenReturned(ctx context.Context, at gateway.Name, page []gateway.Transfer) (hastened int, err error) {
	known, err := s.payoutsOf(ctx, page)
	if err != nil {
		return 0, err
	}
	for _, t := range page {
		p, isKnown := known[ID(t.Reference)]
		if !isKnown || p.Gateway != at || p.Contradiction != "" { // which is told to a person already
			continue
		}
		isNews, err := s.hastenIfNews(ctx, p, t.Report)
		if err != nil {
			return hastened, err
		}
		if isNews {
			hastened++
		}
	}
	return hastened, nil
}

// payoutsOf finds the payouts that transfers say they are of; others pay from the same account.
func (s *Service) payoutsOf(ctx context.Context, page []gateway.Transfer) (map[ID]Payout, error) {
	var ids []ID
	for _, t := range page {
		if id, err := ParseID(t.Reference); err == nil {
			ids = append(ids, id)
		}
	}
	known, err := s.o.Store.PayoutsByID(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("find the payouts that the gateway lists: %w", err)
	}
	return known, nil
}
