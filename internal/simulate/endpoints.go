package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"bursar/internal/event"
	"bursar/internal/inbox"
	"bursar/internal/mail"
	"bursar/internal/money"
	"bursar/internal/sale"
	"bursar/internal/webhook"
)

// What docs/webhooks.md promises, written down again.
var attemptWaits = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

const (
	// endpointWait is the longest wait of an endpoint that fails, and askedWait the longest that a receiver can ask for.
	endpointWait = 5 * time.Minute
	askedWait    = time.Hour
	// failsFor is how long an endpoint takes nothing before it is disabled, and forgotten after how long a failure says nothing of the next one.
	failsFor  = 5 * 24 * time.Hour
	forgotten = 36 * time.Hour
	// deliveriesKept is how long deliveries are kept.
	deliveriesKept = 30 * 24 * time.Hour
)

// patient is an endpoint whose receiver fails for days, while all else is quiet.
type patient struct {
	m  *market
	on *instance
	*receiver
	orders int
	// failures and failingSince are what its health must tell.
	failures     int64
	failingSince time.Time
}

// checkEndpoint has an endpoint fail for days, and holds its health and each attempt against what is documented.
func (m *market) checkEndpoint() {
	on, isOver := m.anyInstance(), false
	if on == nil || !m.anyFaults() {
		return
	}
	m.work(on, 0, "endpoint", func() {
		if p := m.newPatient(on); p != nil {
			p.failsToTheEnd()
			p.isDisabled()
			p.isClaimed()
			p.isEnabledAgain()
			p.beginsOne()
			p.failsNowAndThen()
			p.changesMeanwhile()
			p.forgetsSecrets()
			p.isGone()
			p.isSwept()
		}
		isOver = true
	})
	m.pass(m.now + 12*24*time.Hour)
	m.assert(deliveriesArrive, m.violation != nil || isOver, "", "the endpoint that failed did not come to its end")
}

func (m *market) newPatient(on *instance) *patient {
	m.checkFeed(on) // what happened before is not for the endpoint
	r := &receiver{url: "https://late.simulated/bursar", types: []event.Type{event.SaleRecorded}, took: map[string]bool{}}
	e, secret, err := on.webhooks.Add(m.ctx, operatorOfWebhooks, webhook.NewEndpoint{URL: r.url, Types: r.types})
	if !m.assert(datastoreReadable, err == nil, "", "add a webhook endpoint: %v", err) {
		return nil
	}
	r.endpoint, r.secrets, r.isCurrent, r.asks = e.ID, []string{secret}, true, new(time.Duration)
	m.receivers = append(m.receivers, r)
	return &patient{m: m, on: on, receiver: r}
}

// happens records a sale, and returns the id of its event.
func (p *patient) happens() string {
	m, before := p.m, p.m.consumer.next
	for _, s := range m.sellers { // the first who has not deleted the account
		p.orders++
		_, _, err := p.on.sales.Record(m.ctx, sale.NewSale{ID: fmt.Sprintf("late-%d", p.orders), Seller: s.id, Amount: money.Amount(1_000_00), OccurredAt: m.clock()})
		if !errors.Is(err, sale.ErrSellerNotFound) {
			m.assert(answersAreTrue, err == nil, s.id, "a sale was answered with %v", err)
			break
		}
	}
	m.checkFeed(p.on)
	events, _, err := p.on.events.After(m.ctx, before, p.types, eventsAtATime)
	if !m.assert(feedTellsAll, err == nil && len(events) > 0, "", "a sale was recorded, and the feed tells none (error %v)", err) {
		panic(over{})
	}
	return events[len(events)-1].ID
}

// try lets the instance deliver what is due, and returns how much was sent to the receiver.
func (p *patient) try() int {
	m, before := p.m, p.sent
	m.mailed = nil
	leases, err := p.on.webhooks.LeaseDue(m.ctx, len(m.receivers))
	m.assert(datastoreReadable, err == nil, "", "lease endpoints: %v", err)
	for _, l := range leases {
		if l.Endpoint == p.endpoint {
			err = p.on.webhooks.Step(m.ctx, l)
			m.assert(datastoreReadable, err == nil, "", "deliver: %v", err)
		}
	}
	if p.manner == takes && p.sent > before {
		e := p.health()
		m.assert(endpointsDisabled, e.LastDeliveredAt.Sub(m.clock()).Abs() < time.Second, "", "%s took an event at %s, and the last is said to be of %s", p.url, m.clock(), e.LastDeliveredAt)
	}
	return p.sent - before
}

// fails has one delivery fail now.
func (p *patient) fails(what string) {
	began := p.m.clock()
	p.m.assert(deliveriesArrive, p.try() == 1, "", "%s is due at %s and was not sent once", what, p.url)
	if p.failures++; p.failures == 1 {
		p.failingSince = began
	}
}

// row is the delivery of an event, and health the endpoint.
func (p *patient) row(id string) webhook.Delivery {
	list, err := p.on.webhooks.Deliveries(p.m.ctx, webhook.Filter{Endpoint: p.endpoint, Event: id, Limit: 1})
	if !p.m.assert(deliveriesArrive, err == nil && len(list) == 1, "", "event %s has %d deliveries to %s (error %v)", id, len(list), p.url, err) {
		panic(over{})
	}
	return list[0]
}

func (p *patient) health() webhook.Endpoint {
	e, err := p.on.webhooks.Endpoint(p.m.ctx, p.endpoint)
	p.m.assert(datastoreReadable, err == nil, "", "read the endpoint of %s: %v", p.url, err)
	return e
}

// isBetween reports whether a wait is about as long as it should be: waits are spread by up to a fifth.
func isBetween(wait, is time.Duration) bool {
	return is >= wait*4/5-time.Second && is <= wait*6/5+time.Second
}

// checkHealth holds what an endpoint is shown to be like against what happened at it.
func (p *patient) checkHealth(status webhook.Status, reason string) webhook.Endpoint {
	e := p.health()
	p.m.assert(endpointsDisabled, e.Status == status && e.Reason == reason, "", "%s takes nothing since %s (failure %d), and it is %s (%s), not %s (%s)", p.url, p.failingSince, p.failures, e.Status, e.Reason, status, reason)
	isSince := p.failures == 0 && e.FailingSince.IsZero() || p.failures > 0 && e.FailingSince.Sub(p.failingSince).Abs() < time.Minute
	p.m.assert(endpointsDisabled, e.Failures == p.failures && isSince, "", "%s has failed %d times since %s, and it is shown %d times since %s", p.url, p.failures, p.failingSince, e.Failures, e.FailingSince)
	p.m.assert(endpointsDisabled, p.failures > 0 || e.RetryAt.IsZero(), "", "%s does not fail, and nothing is sent there until %s", p.url, e.RetryAt)
	return e
}

// checkWaits holds when a delivery and its endpoint are tried again after a failure against the waits that are documented, and wants
// nothing to be sent before that.
func (p *patient) checkWaits(id string, attempt int, asked time.Duration) {
	m, d, e := p.m, p.row(id), p.checkHealth(webhook.Enabled, "")
	asked = min(asked, askedWait)
	wait, rest := d.DueAt.Sub(d.At), e.RetryAt.Sub(d.At)
	m.assert(attemptsSpaced, d.Attempt == int64(attempt) && d.At.Sub(m.clock()).Abs() < time.Second && d.ResponseStatus == 503, "", "attempt %d of %s failed at %s, and it is shown as %+v", attempt, id, m.clock(), d)
	m.assert(attemptsSpaced, max(wait, asked) == wait && isBetween(max(attemptWaits[attempt-1], asked), wait) || asked > attemptWaits[attempt-1]*4/5 && wait == asked, "", "attempt %d of %s is followed by another one after %s, and the receiver asked for %s", attempt, id, wait, asked)
	least := min(5*time.Second<<min(p.failures-1, 20), endpointWait)
	m.assert(attemptsSpaced, rest >= asked && isBetween(least, rest) || asked > least*4/5 && (rest-asked).Abs() < time.Second, "", "%s is left alone for %s after failure %d, and asked for %s", p.url, rest, p.failures, asked)
	next := e.RetryAt
	if next.Before(d.DueAt) {
		next = d.DueAt
	}
	m.pause(next.Sub(m.clock()) - time.Second)
	m.assert(attemptsSpaced, p.try() == 0, "", "%s was sent to %s at %s, and it is due at %s", id, p.url, m.clock(), next)
	m.pause(next.Sub(m.clock()) + time.Second)
}

// failsToTheEnd has one delivery fail until it is given up. The receiver asks for a wait now and then.
func (p *patient) failsToTheEnd() {
	id := p.happens()
	p.manner = answersError
	for attempt := 1; attempt <= attemptsInAll; attempt++ {
		*p.asks = map[int]time.Duration{2: 20 * time.Minute, 3: 7 * time.Hour}[attempt]
		p.fails(fmt.Sprintf("attempt %d of %s", attempt, id))
		if attempt < attemptsInAll {
			p.checkWaits(id, attempt, *p.asks)
		}
	}
	d := p.row(id)
	p.m.assert(attemptsSpaced, d.Status == webhook.Failed && d.DueAt.IsZero() && d.Attempt == attemptsInAll, "", "%s was tried %d times, and is %+v", id, attemptsInAll, d)
	p.checkHealth(webhook.Enabled, "")
}

// again has an event sent again, which is tried at once.
func (p *patient) again(id string) error {
	_, err := p.on.webhooks.Redeliver(p.m.ctx, webhook.Redelivery{Event: id, Endpoint: p.endpoint})
	return err
}

// isDisabled has the endpoint fail until it is disabled, which is five days after it began to.
func (p *patient) isDisabled() {
	m, id := p.m, p.happens()
	limit := p.failingSince.Add(failsFor)
	for limit.Sub(m.clock()) > time.Minute {
		err := p.again(id)
		m.assert(deliveriesArrive, err == nil, "", "send an event again: %v", err)
		p.fails("what is sent again")
		p.checkHealth(webhook.Enabled, "")
		m.pause(min(24*time.Hour, limit.Sub(m.clock())-30*time.Second))
	}
	m.pause(limit.Sub(m.clock()) + time.Minute)
	_ = p.again(id)
	p.fails("what is sent again")
	p.checkHealth(webhook.Disabled, webhook.Failing)
	p.checkDisabledMail(false)
	m.pause(30 * time.Hour) // until all that waits is due
	during := p.happens()
	err := p.again(during)
	m.assert(endpointsDisabled, errors.Is(err, webhook.ErrDisabled), "", "an event was sent again to %s, which is disabled: %v", p.url, err)
	m.assert(endpointsDisabled, p.try() == 0, "", "something was sent to %s, which is disabled", p.url)
	list, err := p.on.webhooks.Deliveries(m.ctx, webhook.Filter{Event: during, Endpoint: p.endpoint, Limit: 1})
	m.assert(endpointsDisabled, err == nil && len(list) == 0, "", "an event waits for %s, which was disabled when it happened: %+v (error %v)", p.url, list, err)
	p.waits = id
}

// checkDisabledMail wants the admins to be told that the service disabled the endpoint.
func (p *patient) checkDisabledMail(isGone bool) {
	told, isTold := mailTo[mail.WebhookDisabled](p.m, p.m.admin)
	p.m.assert(endpointsDisabled, isTold && told.Endpoint == p.endpoint && told.Address == p.url && told.Gone == isGone, "", "%s was disabled, and an admin was mailed %+v (there: %t)", p.url, told, isTold)
}

func (p *patient) change(c webhook.Change) {
	_, err := p.on.webhooks.Change(p.m.ctx, operatorOfWebhooks, p.endpoint, c)
	p.m.assert(datastoreReadable, err == nil, "", "change the endpoint of %s: %v", p.url, err)
}

func (p *patient) enable() {
	enabled := webhook.Enabled
	p.change(webhook.Change{Status: &enabled})
	p.failures = 0
	p.checkHealth(webhook.Enabled, "")
}

// isEnabledAgain wants what waited to be sent at once when an admin enables the endpoint, and what happens from then on.
func (p *patient) isEnabledAgain() {
	m := p.m
	p.enable()
	p.manner = takes
	m.assert(deliveriesArrive, p.try() == 1 && p.took[p.waits], "", "%s is enabled again, and what waited is not sent", p.url)
	p.checkHealth(webhook.Enabled, "")
	id := p.happens()
	m.assert(deliveriesArrive, p.try() == 1 && p.took[id], "", "%s is enabled again, and event %s is not sent", p.url, id)
}

// beginsOne has the first of several deliveries fail that are taken together. The others are not begun, and count as never taken.
func (p *patient) beginsOne() {
	m, ids := p.m, []string{p.happens(), p.happens(), p.happens()}
	p.manner, *p.asks = answersError, 0
	p.fails("the first of three events")
	p.checkHealth(webhook.Enabled, "")
	attempts := int64(0)
	for _, id := range ids {
		d := p.row(id)
		attempts += d.Attempt
		m.assert(attemptsSpaced, d.Attempt > 0 || !d.DueAt.After(m.clock()), "", "%s was not tried, and is due at %s", id, d.DueAt)
	}
	m.assert(attemptsSpaced, attempts == 1, "", "one delivery was tried, and %d attempts are shown", attempts)
	p.manner, p.failures = takes, 0
	m.pause(6 * time.Minute)
	for range ids {
		p.try()
	}
	for _, id := range ids {
		m.assert(deliveriesArrive, p.took[id], "", "%s takes events again, and %s is not sent", p.url, id)
	}
	p.checkHealth(webhook.Enabled, "")
}

// failsNowAndThen has the endpoint fail twice, with days between, and then work again, with several deliveries due.
func (p *patient) failsNowAndThen() {
	m := p.m
	p.manner = answersError
	*p.asks = 0
	p.happens()
	p.fails("an event")
	p.checkHealth(webhook.Enabled, "")
	m.pause(forgotten + 2*endpointWait)
	p.failures = 0
	p.fails("what failed a day before")
	p.checkHealth(webhook.Enabled, "")
	p.happens()
	p.happens()
	m.pause(6 * time.Minute) // the two new ones alone are due
	p.manner = takes
	sent := p.try()
	m.assert(attemptsSpaced, sent == 1, "", "%s has failed, and %d deliveries are tried at a time", p.url, sent)
	p.failures = 0
	p.checkHealth(webhook.Enabled, "")
	m.pause(time.Hour)
	p.try()
	p.manner = answersError // another address is another server
	p.happens()
	p.fails("an event")
	elsewhere := "https://moved.simulated/bursar"
	p.change(webhook.Change{URL: &elsewhere})
	p.url, p.failures, p.manner = elsewhere, 0, takes
	p.checkHealth(webhook.Enabled, "")
	m.pause(time.Hour)
	m.assert(deliveriesArrive, p.try() == 1, "", "the endpoint has moved to %s, and what waited is not sent there", p.url)
}

// changesMeanwhile has an event sent again, and the endpoint moved, while an attempt is under way that fails.
func (p *patient) changesMeanwhile() {
	m, id := p.m, p.happens()
	p.manner = answersError
	p.fails("an event")
	p.checkWaits(id, 1, 0)
	p.during = func() {
		m.assert(deliveriesArrive, p.again(id) == nil, "", "event %s can't be sent again while it is sent", id)
	}
	p.fails("an event")
	d := p.row(id)
	m.assert(deliveriesArrive, d.Status == webhook.Pending && !d.DueAt.After(m.clock()), "", "event %s was to be sent again during an attempt, and is %+v", id, d)
	m.pause(time.Hour)
	former, elsewhere := p.url, "https://fled.simulated/bursar"
	p.during = func() { p.change(webhook.Change{URL: &elsewhere}) }
	m.assert(deliveriesArrive, p.try() == 1, "", "event %s is not sent to %s", id, p.url)
	p.url, p.failures, p.manner = elsewhere, 0, takes
	e := p.checkHealth(webhook.Enabled, "")
	m.assert(endpointsDisabled, e.RetryAt.IsZero(), "", "the endpoint moved from %s to %s during an attempt, and nothing is sent there until %s", former, p.url, e.RetryAt)
	m.pause(time.Hour)
	m.assert(deliveriesArrive, p.try() == 1 && p.took[id], "", "the endpoint moved to %s during an attempt, and event %s is not sent there", p.url, id)
}

// forgetsSecrets rotates the secret twice. The first one has signed long enough then, and must not begin to sign again.
func (p *patient) forgetsSecrets() {
	m, first := p.m, p.secrets[len(p.secrets)-1]
	m.rotateSecret(p.on, p.receiver)
	m.pause(oldSecretSigns + time.Hour)
	m.rotateSecret(p.on, p.receiver)
	id := p.happens()
	m.assert(deliveriesArrive, p.try() == 1 && p.last.ID == id, "", "event %s is not sent to %s", id, p.url)
	m.assert(deliveriesTrue, !p.signed(p.last, first), "", "a secret of %s was replaced %s ago, and signs the delivery of %s", p.url, oldSecretSigns+time.Hour, id)
}

// isGone has the receiver answer 410, after which an admin keeps the endpoint disabled, and enables it again.
func (p *patient) isGone() {
	p.manner = answersGone
	id := p.happens()
	p.m.assert(deliveriesArrive, p.try() == 1, "", "event %s is not sent to %s", id, p.url)
	p.failures, p.failingSince = 1, p.m.clock()
	p.checkHealth(webhook.Disabled, webhook.Gone)
	gone := p.health()
	p.m.assert(endpointsDisabled, gone.NeedsAttention(), "", "%s answered 410 and is disabled, and waits for no admin", p.url)
	p.checkDisabledMail(true)
	d := p.row(id)
	p.m.assert(attemptsSpaced, d.Status == webhook.Failed && d.DueAt.IsZero(), "", "%s answered 410 to %s, which is %+v", p.url, id, d)
	disabled := webhook.Disabled
	p.change(webhook.Change{Status: &disabled})
	e := p.health()
	p.m.assert(endpointsDisabled, e.Status == webhook.Disabled && e.Reason == webhook.ByHand && !e.NeedsAttention(), "", "an admin keeps %s disabled, and it is %s (%s)", p.url, e.Status, e.Reason)
	p.enable()
}

// isSwept wants a sweep to delete what was made long ago, but for what an enabled endpoint has yet to take. A clock that is ahead makes it long ago.
func (p *patient) isSwept() {
	m := p.m
	waits := p.happens()
	for _, after := range []time.Duration{0, deliveriesKept - time.Hour, deliveriesKept + time.Hour} {
		p.on.machine.offset = after
		for n := int64(1); n > 0; {
			var err error
			n, err = p.on.webhooks.Sweep(m.ctx)
			m.assert(datastoreReadable, err == nil, "", "sweep deliveries: %v", err)
		}
		p.on.machine.offset = 0
		list, err := p.on.webhooks.Deliveries(m.ctx, webhook.Filter{Endpoint: p.endpoint, Limit: 100})
		m.assert(datastoreReadable, err == nil, "", "list deliveries: %v", err)
		pending := slices.IndexFunc(list, func(d webhook.Delivery) bool { return d.EventID == waits })
		m.assert(deliveriesArrive, pending == 0, "", "event %s waits for %s, and its delivery was swept", waits, p.url)
		m.assert(deliveriesArrive, (len(list) == 1) == (after > deliveriesKept), "", "%d deliveries to %s, which were made within days, are kept after %s", len(list), p.url, after)
	}
}

// isClaimed has two admins be on the endpoint that was disabled, one after the other. A claim that is made again lasts an hour from then.
func (p *patient) isClaimed() {
	m, tasks := p.m, p.on.inbox()
	one, other := m.admin, m.sellers[0].id
	claim := func(admin string, want error) {
		_, err := tasks.Claim(m.ctx, admin, p.endpoint)
		task, err2 := tasks.Task(m.ctx, p.endpoint)
		isShown := want != nil || task.Claim.Admin == admin
		m.assert(readsAgree, errors.Is(err, want) && err2 == nil && isShown, admin, "%s claims the endpoint %s, and is answered with %v, want %v; shown is %+v (%v)", admin, p.endpoint, err, want, task, err2)
	}
	release := func(admin string, want error) {
		err := tasks.Release(m.ctx, admin, p.endpoint)
		m.assert(readsAgree, errors.Is(err, want), admin, "%s releases the endpoint %s, and is answered with %v, want %v", admin, p.endpoint, err, want)
	}
	claim(one, nil)
	claim(other, inbox.ErrClaimed)
	release(other, inbox.ErrNotClaimed)
	m.pause(50 * time.Minute)
	claim(one, nil)
	m.pause(20 * time.Minute)
	claim(other, inbox.ErrClaimed)
	m.pause(41 * time.Minute)
	task, err := tasks.Task(m.ctx, p.endpoint)
	m.assert(readsAgree, err == nil && task.Claim.Admin == "", one, "the endpoint %s was claimed an hour ago, and is shown as %+v (%v)", p.endpoint, task, err)
	claim(other, nil)
	claim(one, inbox.ErrClaimed)
	release(other, nil)
	claim(one, nil)
	release(one, nil)
}
