package payout

import (
	"time"

	"bursar/internal/retry"
)

// nextPollAt is when to poll the gateway next. Soon while the gateway is at work or the UTR is missing. Rarely while the bank may
// still return the money, or the gateway may still report a failed payout as paid. Zero after that.
func (s *Service) nextPollAt(p Payout, now time.Time) time.Time {
	switch {
	case p.State == Completed && !now.Before(s.o.Arrival.FinalCheckUntil(p.CompletedAt)):
		return time.Time{}
	case p.State == Completed && p.UTR != "":
		waits := finalChecks
		if g, err := s.gatewayOf(p); err == nil && !g.Capabilities().List { // no list of returns says when to look
			waits = frequentFinalChecks
		}
		next := now.Add(s.o.Jitter(waitAfter(waits, p.Tries)))
		if last := s.o.Arrival.FinalCheckUntil(p.CompletedAt); next.After(last) {
			return last
		}
		return next
	case p.State == Completed || p.Status() == StatusProcessing:
		return now.Add(s.o.Jitter(retry.Backoff(p.Tries+1, pollBase, p.maxPollWait(now))))
	case !p.endedUnpaid() || !p.mayBeAtGateway() || !now.Before(s.o.Arrival.FinalCheckUntil(p.EndedAt)):
		return time.Time{}
	case p.Refunded():
		return now.Add(s.o.Jitter(waitAfter(frequentFinalChecks, p.Tries)))
	default:
		return now.Add(s.o.Jitter(waitAfter(finalChecks, p.Tries)))
	}
}

// setNextPoll sets when the payout is polled next, unless a notification made it due after seen was read.
func (p *Payout) setNextPoll(seen Payout, due time.Time) {
	if p.DueAt.IsZero() || !p.DueAt.Before(seen.DueAt) {
		p.DueAt = due
	}
}

// maxPollWait bounds the wait before the next poll of a payout under way: a change is seen at most a quarter of an hour late,
// or an eighth of the time that the payout has taken so far.
func (p *Payout) maxPollWait(now time.Time) time.Duration {
	if p.SentAt.IsZero() {
		return maxPollEarly
	}
	return min(max(now.Sub(p.SentAt)/8, maxPollEarly), maxPollLate)
}

// Waits between polls. Webhooks report most changes sooner; polling finds the changes that no webhook reports.
const (
	pollBase = 2 * time.Second
	// maxPollEarly and maxPollLate bound the waits of payouts that are under way, see [Payout.maxPollWait].
	maxPollEarly = 15 * time.Minute
	maxPollLate  = 2 * time.Hour
	// maxPollEnded bounds the waits of payouts that have ended while the gateway answers nothing: there are many.
	maxPollEnded = 4 * time.Hour
	// triesForgotten is the number of polls, about half an hour, after which a transfer that the gateway no longer
	// knows becomes a discrepancy.
	triesForgotten = 10
	// troubleWait is the wait of a payout that goes on only once a person has acted: its gateway is not configured, or its records
	// were tampered with.
	troubleWait = 10 * time.Minute
)

// Waits between final checks of a payout that has ended, the last one repeated. Banks return most payments soon, and
// [Service.PollReversals] asks for all returns at once. These checks also find returns that no list shows, and gateways
// that change a final state. The frequent ones are of a payout that an admin refunded, which is the likeliest to turn up as paid, and at
// a gateway that lists no returns.
var (
	finalChecks         = []time.Duration{20 * time.Second, 5 * time.Minute, time.Hour, 24 * time.Hour}
	frequentFinalChecks = []time.Duration{20 * time.Second, 5 * time.Minute, time.Hour, 6 * time.Hour}
)

// waitAfter is the wait after so many tries, the last one for all further tries. A number below zero was written outside the service.
func waitAfter(waits []time.Duration, tries int) time.Duration {
	return waits[min(max(tries, 0), len(waits)-1)]
}
