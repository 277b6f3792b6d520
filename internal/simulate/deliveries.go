package simulate

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bursar/internal/decision"
	"bursar/internal/event"
	"bursar/internal/mail"
	"bursar/internal/webhook"
)

// receiver is a server of the marketplace that events are delivered to.
type receiver struct {
	url   string
	types []event.Type
	// endpoint is its id, and secrets are all that it was shown.
	endpoint string
	secrets  []string
	manner   manner
	// leased is until when an instance delivers to it; 0 when none does.
	leased time.Duration
	// replaced are the secrets that are known to have been the endpoint's and were replaced, in order.
	replaced []replacedSecret
	// isCurrent says that the last of secrets was the endpoint's after so many restores.
	isCurrent bool
	restores  int64
	// took says which events it answered with success, whether or not the answer arrived.
	took map[string]bool
	// asks is for how long it asks to be left alone when it fails; nil is left to chance. sent counts what was sent to it, and waits is an
	// event that waits for it.
	asks  *time.Duration
	sent  int
	waits string
	// during is what happens, once, between what is sent to it next and the answer.
	during func()
	// last is what was sent to it last.
	last webhook.Message
	// wasDisabled says that it answered 410, or nothing for days: what happened meanwhile is not kept for it.
	wasDisabled bool
}

// manner is how a receiver answers.
type manner int

const (
	takes manner = iota
	cutsAnswers
	answersError
	hangs
	redirects
	answersGone
	manners
)

// How often an instance looks for what is due at endpoints, which the service does each second, and a receiver changes its manner.
const (
	deliverEvery = time.Hour
	mannerEvery  = 8 * time.Hour
	// goneForGood bounds how few receivers answer 410, in a thousand changes.
	goneForGood = 30
)

var operatorOfWebhooks = decision.By{Operator: "webhooks", Note: "simulated"}

// newWebhooks makes the service that delivers. It sends one delivery at a time, so that the same seed gives the same run.
func (on *instance) newWebhooks(mails mail.Queuer, logger *slog.Logger) (*webhook.Service, error) {
	m := on.m
	return webhook.New(webhook.Options{
		Store: on.db.Webhooks(), Keys: m.keys, Sender: post{on}, Bodies: eventBody, Mails: mails, Now: on.now, IDs: m.ids, Logger: logger,
		InFlight: 1, Jitter: m.jitter,
	})
}

// eventBody writes what an event is delivered as here. Package api writes more.
func eventBody(_ context.Context, e event.Event) ([]byte, error) {
	return json.Marshal(map[string]any{"id": e.ID, "type": e.Type, "number": e.Number})
}

// openReceivers adds two endpoints before anything happens.
func (m *market) openReceivers(on *instance) {
	m.receivers = []*receiver{
		{url: "https://shop.simulated/bursar", types: []event.Type{event.PayoutCompleted, event.PayoutFailed, event.PayoutReturned}},
		{url: "https://books.simulated/bursar", types: []event.Type{event.BalanceNegative, event.PayoutFailed, event.SellerRegistered}},
	}
	for _, r := range m.receivers {
		r.took = map[string]bool{}
		slices.Sort(r.types)
		e, secret, err := on.webhooks.Add(m.ctx, operatorOfWebhooks, webhook.NewEndpoint{URL: r.url, Types: r.types})
		if !m.assert(datastoreReadable, err == nil, "", "add a webhook endpoint: %v", err) {
			return
		}
		r.endpoint, r.secrets, r.isCurrent = e.ID, []string{secret}, true
	}
	m.often(m.spaced(deliverEvery), "deliveries", m.deliver)
	if m.anyFaults() {
		m.often(m.spaced(mannerEvery), "receivers", m.changeManners)
	}
}

// changeManners has each receiver answer in another way from now on. Some rotate their secret, or have an event sent again.
func (m *market) changeManners() {
	for i, r := range m.receivers {
		r.manner = takes
		if m.chance(400) {
			r.manner = manner(m.dice.IntN(int(answersGone)))
		}
		if m.chance(goneForGood) && i > 0 { // the first is there to the end, so that all that it is sent is checked
			r.manner = answersGone
		}
		on := m.anyInstance()
		if on == nil {
			continue
		}
		_ = m.call(on, func() error {
			if m.chance(100) {
				m.rotateSecret(on, r)
				if m.chance(300) { // the answer was mislaid
					m.rotateSecret(on, r)
				}
			}
			if m.chance(200) && len(r.took) > 0 {
				again := slices.Sorted(maps.Keys(r.took))
				id := again[m.dice.IntN(len(again))]
				m.sendAgain(on, r, id)
			}
			return nil
		})
	}
}

// sendAgain has an event sent again to a receiver, and those behind it that its endpoint wants.
func (m *market) sendAgain(on *instance, r *receiver, id string) {
	again := webhook.Redelivery{Event: id, Endpoint: r.endpoint}
	want := 1
	if first, found, err := on.db.Webhooks().Event(m.ctx, id); err == nil && found {
		behind, err := on.db.Events(m.ctx, first.Number-1, 10+m.dice.IntN(30))
		for len(behind) > 1 && !slices.Contains(r.types, behind[len(behind)-1].Type) { // up to one that it wants
			behind = behind[:len(behind)-1]
		}
		if err == nil && len(behind) > 1 {
			again.Through, want = behind[len(behind)-1].ID, 0
			for _, e := range behind {
				want += btoi(slices.Contains(r.types, e.Type))
			}
		}
	}
	n, err := on.webhooks.Redeliver(m.ctx, again)
	m.assert(deliveriesArrive, err != nil || n == want, "", "%d events from %s on are sent to %s again, and %d should be", n, id, r.url, want)
	m.guard(err)
}

func (m *market) rotateSecret(on *instance, r *receiver) {
	wasCurrent := r.isCurrent && r.restores == m.tally.restores
	if !wasCurrent {
		r.replaced = nil
	}
	r.isCurrent = false // until the answer is there
	_, secret, err := on.webhooks.Rotate(m.ctx, operatorOfWebhooks, r.endpoint)
	m.guard(err)
	if err == nil {
		if wasCurrent {
			r.replaced = append(r.replaced, replacedSecret{r.secrets[len(r.secrets)-1], m.now})
		}
		r.secrets = append(r.secrets, secret)
		r.isCurrent, r.restores = true, m.tally.restores
	}
}

// deliver has an instance deliver what is due, as its workers do.
func (m *market) deliver() {
	on := m.anyInstance()
	if on == nil {
		return
	}
	m.work(on, 0, "deliveries", func() {
		m.try(on, "lease endpoints", func() error {
			leases, err := on.webhooks.LeaseDue(m.ctx, len(m.receivers))
			for _, l := range leases {
				r := m.wasLeased(on, l)
				until := r.leased
				m.work(on, 0, "delivery", func() {
					m.try(on, "deliver", func() error {
						err := on.webhooks.Step(m.ctx, l)
						if err == nil && r.leased == until { // nobody has leased it since
							r.leased = 0
						}
						return err
					})
				})
			}
			return err
		})
	})
}

// wasLeased notes that an instance is to deliver to an endpoint, and finds its receiver.
func (m *market) wasLeased(on *instance, l webhook.Lease) *receiver {
	r := m.receivers[slices.IndexFunc(m.receivers, func(r *receiver) bool { return r.endpoint == l.Endpoint })]
	m.assert(leasesHold, m.now >= r.leased || !m.leasesHold(), "", "%s took the endpoint of %s, which is leased for another %s", on.name, r.url, r.leased-m.now)
	r.leased = m.now + l.Until.Sub(on.now())
	return r
}

// post carries an instance's deliveries to the receivers.
type post struct{ on *instance }

// Send has the receiver at an address answer.
func (p post) Send(ctx context.Context, msg webhook.Message) (webhook.Answer, error) {
	m, on := p.on.m, p.on
	m.step(on, 5*time.Millisecond, 200*time.Millisecond)
	i := slices.IndexFunc(m.receivers, func(r *receiver) bool { return r.url == msg.URL })
	if !m.assert(deliveriesTrue, i >= 0, "", "a delivery went to %s", msg.URL) {
		return webhook.Answer{}, errRefusedConnection
	}
	r := m.receivers[i]
	r.sent++
	r.last = msg
	m.checkMessage(ctx, on, r, msg)
	answer, err := webhook.Answer{Status: 204}, error(nil)
	switch r.manner {
	case takes:
		r.took[msg.ID] = true
	case cutsAnswers:
		r.took[msg.ID] = true
		err = errReset
	case answersError:
		answer.Status = 503
		switch {
		case r.asks != nil:
			answer.RetryAfter = *r.asks
		case m.chance(300):
			answer.RetryAfter = m.between(0, 2*time.Hour)
		}
	case hangs:
		m.after(m.between(0, webhook.SendTimeout), m.deliver) // instances look all the time, and must find nothing until then
		m.pause(webhook.SendTimeout)
		err = context.DeadlineExceeded
	case redirects:
		answer.Status = 307
	case answersGone, manners:
		answer.Status, r.wasDisabled = 410, true
	}
	if during := r.during; during != nil {
		r.during = nil
		during()
	}
	m.step(on, 5*time.Millisecond, 200*time.Millisecond)
	return answer, err
}

// checkMessage holds a delivery against the feed, and against what its endpoint wants.
func (m *market) checkMessage(ctx context.Context, on *instance, r *receiver, msg webhook.Message) {
	m.assert(deliveriesTrue, r.signed(msg, r.secrets...), "", "the delivery of %s to %s bears no signature of its secrets", msg.ID, r.url)
	for _, old := range r.replaced[max(0, len(r.replaced)-2):] { // it may hold one of the last two yet
		isBefore := m.now-r.replaced[len(r.replaced)-1].at < time.Minute // the delivery may have been signed before they were replaced
		m.assert(deliveriesTrue, isBefore || m.now-old.at >= oldSecretSigns-2*maxOff || !r.isCurrent || r.restores != m.tally.restores || r.signed(msg, old.secret), "",
			"a secret of %s was replaced %s ago, and the delivery of %s bears no signature of it", r.url, m.now-old.at, msg.ID)
	}
	e, found, err := on.db.Webhooks().Event(ctx, msg.ID)
	if err != nil {
		return // the ledger was closed
	}
	body, _ := eventBody(ctx, e)
	m.assert(deliveriesTrue, found && string(body) == string(msg.Body), "", "%s was sent %s, and the feed has %s", r.url, msg.Body, body)
	m.assert(deliveriesTrue, slices.Contains(r.types, e.Type), "", "%s wants %v and was sent %s", r.url, r.types, e.Type)
	endpoint, err := on.webhooks.Endpoint(ctx, r.endpoint)
	m.assert(deliveriesTrue, err != nil || endpoint.Status == webhook.Enabled, "", "%s is disabled and was sent %s", r.url, msg.ID)
}

type replacedSecret struct {
	secret string
	at     time.Duration
}

// oldSecretSigns is how long a secret signs after it was rotated.
const oldSecretSigns = 24 * time.Hour

// signed verifies a message by any of some secrets.
func (r *receiver) signed(msg webhook.Message, secrets ...string) bool {
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			return false
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", msg.ID, strconv.FormatInt(msg.At.Unix(), 10), msg.Body)
		if slices.Contains(strings.Fields(msg.Signature), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))) {
			return true
		}
	}
	return false
}

// longestLate is how late a delivery may be when all is quiet: endpoints that failed are tried every five minutes, and instances look
// once in an hour or two.
const longestLate = 6 * time.Hour

// longestWait is that between two attempts, the last ones, spread as waits are.
const longestWait = 30 * time.Hour

// attemptsInAll is how often a delivery is tried before it is given up.
const attemptsInAll = 10

// checkDeliveries delivers what is due, and looks for each event that an endpoint wants.
func (m *market) checkDeliveries(on *instance) {
	for _, r := range m.receivers {
		r.manner = takes
	}
	m.work(on, 0, "deliveries", func() {
		for range attemptsInAll { // what failed before is due later, but for endpoints that are tried again
			leases, err := on.webhooks.LeaseDue(m.ctx, len(m.receivers))
			m.assert(datastoreReadable, err == nil, "", "lease endpoints: %v", err)
			for _, l := range leases {
				err := on.webhooks.Step(m.ctx, l)
				m.assert(datastoreReadable, err == nil, "", "deliver: %v", err)
			}
		}
	})
	m.pass(m.now + time.Hour)
	for _, r := range m.receivers {
		m.checkReceiver(on, r)
	}
}

func (m *market) checkReceiver(on *instance, r *receiver) {
	endpoint, err := on.webhooks.Endpoint(m.ctx, r.endpoint)
	if !m.assert(datastoreReadable, err == nil, "", "read the endpoint of %s: %v", r.url, err) {
		return
	}
	r.wasDisabled = r.wasDisabled || endpoint.Status != webhook.Enabled
	rows := map[string]webhook.Delivery{}
	for before := ""; ; {
		page, err := on.webhooks.Deliveries(m.ctx, webhook.Filter{Endpoint: r.endpoint, Before: before, Limit: 100})
		m.assert(datastoreReadable, err == nil, "", "list deliveries: %v", err)
		for _, d := range page {
			before = d.ID
			if other, two := rows[d.EventID]; !two || other.Status != webhook.Delivered {
				rows[d.EventID] = d
			}
			m.checkDelivery(on, r, d)
		}
		if len(page) < 100 {
			break
		}
	}
	for after, more := int64(0), true; more && m.violation == nil; {
		events, next, err := on.events.After(m.ctx, after, r.types, eventsAtATime)
		m.assert(datastoreReadable, err == nil, "", "the feed after event %d: %v", after, err)
		for _, e := range events {
			_, there := rows[e.ID]
			m.assert(deliveriesArrive, there || r.wasDisabled, e.Owner, "event %d (%s) was never to be delivered to %s", e.Number, e.Type, r.url)
		}
		after, more = next, next > after
	}
}

func (m *market) checkDelivery(on *instance, r *receiver, d webhook.Delivery) {
	switch d.Status {
	case webhook.Delivered:
		m.assert(deliveriesArrive, r.took[d.EventID], "", "%s counts as delivered to %s, which did not take it", d.EventID, r.url)
	case webhook.Failed:
		m.assert(deliveriesArrive, r.wasDisabled || d.Attempt >= attemptsInAll, "", "the delivery of %s to %s was given up after %d attempts", d.EventID, r.url, d.Attempt)
	case webhook.Pending:
		late := on.now().Sub(d.DueAt)
		m.assert(deliveriesArrive, r.wasDisabled || late > -longestWait, "", "the delivery of %s to %s is due in %s", d.EventID, r.url, -late)
		m.assert(deliveriesArrive, r.wasDisabled || late < longestLate, "", "the delivery of %s to %s has been due for %s", d.EventID, r.url, late)
	}
}

// checkDeliveryLists lists deliveries by every mix of what they are of. Each fits, and the one that the mix is taken from is among them.
func (m *market) checkDeliveryLists(on *instance) {
	list := func(f webhook.Filter) (all []webhook.Delivery) {
		for f.Limit = 100; ; f.Before = all[len(all)-1].ID {
			page, err := on.webhooks.Deliveries(m.ctx, f)
			m.assert(readsAgree, err == nil, "", "list deliveries by %+v: %v", f, err)
			if all = append(all, page...); len(page) < f.Limit {
				return all
			}
		}
	}
	at := map[string]string{}
	var chosen []webhook.Delivery // of events that went to several endpoints
	for _, d := range list(webhook.Filter{}) {
		if other, isKnown := at[d.EventID]; isKnown && other != d.EndpointID && len(chosen) < 5 {
			chosen = append(chosen, d)
		}
		at[d.EventID] = d.EndpointID
	}
	for _, of := range chosen {
		for _, f := range []webhook.Filter{
			{Event: of.EventID},
			{Endpoint: of.EndpointID},
			{Status: of.Status},
			{Event: of.EventID, Endpoint: of.EndpointID},
			{Event: of.EventID, Status: of.Status},
			{Endpoint: of.EndpointID, Status: of.Status},
			{Event: of.EventID, Endpoint: of.EndpointID, Status: of.Status},
		} {
			isAmong := false
			for _, d := range list(f) {
				fits := (f.Event == "" || d.EventID == f.Event) && (f.Endpoint == "" || d.EndpointID == f.Endpoint) && (f.Status == "" || d.Status == f.Status)
				m.assert(readsAgree, fits, "", "delivery %+v is listed by %+v", d, f)
				isAmong = isAmong || d.ID == of.ID
			}
			m.assert(readsAgree, isAmong, "", "delivery %+v is not listed by %+v", of, f)
		}
	}
}
