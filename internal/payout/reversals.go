package payout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bursar/internal/gateway"
)

// PollReversals asks each gateway that lists which transfers of the last weeks have come back, and makes the next
// poll of each payout that the ledger still takes for paid or under way due now. The list is a notification, like
// a webhook, and is not applied. One instance asks in each [Options.ReversalsEvery]; for the others, and in
// between, there is nothing to do. It returns how many payouts were made due.
func (s *Service) PollReversals(ctx context.Context) (_ int, failed error) {
	now := s.o.Now()
	mine := false
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		mine, err = tx.AllowRun(ctx, "reversals", now, s.o.ReversalsEvery)
		return err
	})
	if err != nil || !mine {
		return 0, err
	}
	rescheduled := 0
	for _, g := range s.o.Gateways.All() {
		if !g.Capabilities().List { // its payouts are polled one by one
			continue
		}
		n, err := s.pollReversalsAt(ctx, g, now.Add(-reversalsReach))
		rescheduled += n
		failed = errors.Join(failed, err) // another gateway's answers are not kept waiting
	}
	return rescheduled, failed
}

func (s *Service) pollReversalsAt(ctx context.Context, g gateway.Gateway, since time.Time) (rescheduled int, err error) {
	listed := 0
	for after := gateway.Cursor(""); listed < maxTransfers; {
		page, err := g.Reversed(ctx, since, after)
		if err != nil {
			return rescheduled, fmt.Errorf("list what came back to gateway %s: %w", g.Name(), err)
		}
		n, err := s.rescheduleReversed(ctx, g.Name(), page.Transfers)
		rescheduled += n
		if err != nil || page.Next == "" {
			return rescheduled, err
		}
		after, listed = page.Next, listed+max(1, len(page.Transfers))
	}
	return rescheduled, fmt.Errorf("gateway %s lists more than %d transfers that came back since %s", g.Name(), maxTransfers, since)
}

// reversalsReach is how old a transfer may be that is listed. A bank returns money by the third working day
// after it was paid, and a transfer may have waited for days before. What is older still is looked at one by one.
const reversalsReach = 21 * 24 * time.Hour

// rescheduleReversed makes the payouts due whose money came back and that the journal still has as paid.
func (s *Service) rescheduleReversed(ctx context.Context, at gateway.Name, page []gateway.Transfer) (rescheduled int, err error) {
	known, err := s.payoutsOf(ctx, page)
	if err != nil {
		return 0, err
	}
	for _, t := range page {
		p, isKnown := known[ID(t.Reference)]
		if !isKnown || p.Gateway != at || p.Discrepancy != "" || p.endedUnpaid() { // an admin sees it already, or it has final checks
			continue
		}
		isChanged, err := s.rescheduleIfChanged(ctx, p, t.Report)
		if err != nil {
			return rescheduled, err
		}
		if isChanged {
			rescheduled++
		}
	}
	return rescheduled, nil
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
