package simulate

import (
	"context"
	"slices"
	"time"

	"bursar/internal/decision"
	"bursar/internal/event"
	"bursar/internal/mail"
	"bursar/internal/payout"
)

// mailQueue queues mails as the service does, and notes those of the transaction under way. None is sent.
type mailQueue struct {
	*mail.Service
	m *market
}

// Queue is [mail.Service.Queue]. A mail over a limit counts as queued here: that it was asked for is what matters.
func (q mailQueue) Queue(ctx context.Context, tx mail.Tx, of mail.Mail) (bool, error) {
	queued, err := q.Service.Queue(ctx, tx, of)
	q.m.mailed = append(q.m.mailed, of)
	return queued, err
}

// mailTo finds the mail of a kind to a user that the transaction under way has queued.
func mailTo[D mail.Data](m *market, user string) (data D, found bool) {
	for _, of := range m.mailed {
		if d, is := of.Data.(D); is && of.User == user {
			return d, true
		}
	}
	return data, false
}

// checkReplacedMail wants a seller to be told that a bank account took another one's place, or puts payouts on hold. was is nil for the first
// account, and for the first one after the account changed hands.
func (m *market) checkReplacedMail(seller string, was *account, putsOnHold bool, last4 string) {
	told, isTold := mailTo[mail.BankAccountReplaced](m, seller)
	m.assert(sellersTold, isTold == (was != nil || putsOnHold), seller, "%s registered a bank account, which replaced another one: %t, and was mailed about that: %t", seller, was != nil, isTold)
	m.assert(sellersTold, !isTold || (was == nil && told.Was == "" || was != nil && told.Was == was.last4) && told.Now == last4, seller, "%s was mailed %+v, and registered the account ending in %s", seller, told, last4)
	until := m.model.sellers[seller].holdUntil
	m.assert(sellersTold, !isTold || until <= told.At.UnixMicro() || microsOf(told.HoldUntil) == until, seller, "%s was mailed that payouts are on hold until %s, and they are until %d", seller, told.HoldUntil, until)
}

// checkStopMail wants a seller to be told of a decision to stop their payouts or to resume them.
func (m *market) checkStopMail(d decision.Decision) {
	if d.Owner == decision.Platform {
		return
	}
	told, isTold := mailTo[mail.PayoutsFrozen](m, d.Owner)
	m.assert(sellersTold, isTold && told.Resumed == (d.Action == decision.UnfreezePayouts), d.Owner, "the payouts of %s: %s, and the mail about that is %+v (there: %t)", d.Owner, d.Action, told, isTold)
}

// checkFailureMails holds the mails about events that were just numbered against the payouts that they are about.
func (m *market) checkFailureMails() {
	for _, of := range m.mailed {
		told, isOne := of.Data.(mail.PayoutFailed)
		if !isOne {
			continue
		}
		id := payout.ID(told.Payout)
		w := m.model.payouts[id]
		if !m.assert(sellersTold, w != nil && (w.state == payout.Failed || w.state == payout.Returned), told.Payout, "%s was mailed that payout %s has failed, and the ledger has %+v", of.User, id, w) {
			return
		}
		a := m.model.accounts[w.account]
		m.assert(sellersTold, of.User == w.seller && told.Returned == (w.state == payout.Returned) && told.Amount == rupees().Display(w.amount) && told.Reason == w.last.Reason &&
			(a == nil || told.Account == a.last4), told.Payout, "%s was mailed %+v, and the ledger has %+v", of.User, told, w)
		m.toldOf[id] = true
	}
}

// checkFailureMail wants a mail about an event that the marketplace has read, if sellers are mailed about such.
func (m *market) checkFailureMail(e event.Event) {
	isMailed := slices.Contains([]event.Type{event.PayoutFailed, event.PayoutReturned}, e.Type)
	if isMailed && m.clock().Sub(e.At) < surelyMailed {
		m.assert(sellersTold, m.toldOf[payout.ID(e.Subject)], e.Subject, "event %d tells that payout %s of %s has failed or was returned, and there is no mail about that", e.Number, e.Subject, e.Owner)
	}
}

// surelyMailed is how old a failure is at most that sellers are mailed about, less some hours in which an event may wait to be numbered.
const surelyMailed = 40 * time.Hour
