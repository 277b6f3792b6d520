package webhook

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bursar/internal/decision"
	"bursar/internal/event"
	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/retry"
)

const (
	// rotationGrace is how long a secret signs beside its successor.
	rotationGrace = 24 * time.Hour
	// maxOldSecrets is how many sign beside the newest. Two, so that the one in use stays when the answer to a rotation is lost and
	// the secret is rotated again.
	maxOldSecrets = 2
	// An endpoint may be tested testBurst/testCost times at once, and then once in testCost.
	testCost  = 10 * time.Second
	testBurst = time.Minute
)

// Outcomes of attempts, for metrics.
const (
	OutcomeDelivered = "delivered"
	OutcomeDeferred  = "deferred"
	OutcomeFailed    = "failed"
)

// Outcomes lists them all.
func Outcomes() []string { return []string{OutcomeDelivered, OutcomeDeferred, OutcomeFailed} }

var errSecret = errors.New("webhook: a secret can't be read")

// Options are what a service is made of.
type Options struct {
	Store  Store
	Keys   Encrypter
	Sender Sender
	Bodies Bodies
	// Mails tell admins of endpoints that the service disabled.
	Mails  mail.Queuer
	Now    func() time.Time
	IDs    id.Source
	Logger *slog.Logger
	// Counted is called with the outcome of each attempt. It is optional.
	Counted func(outcome string)
	// InFlight is how many deliveries are sent to one endpoint at a time; [MaxInFlight] by default.
	InFlight int
	// Jitter spreads a wait; [retry.Jitter] by default.
	Jitter func(time.Duration) time.Duration
}

// Service keeps endpoints and delivers to them. It is safe for concurrent use.
type Service struct{ o Options }

// New makes a service.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.Keys == nil || o.Sender == nil || o.Bodies == nil || o.Mails == nil || o.Now == nil || o.Logger == nil {
		return nil, errors.New("webhook: a service needs a store, keys, a sender, bodies, mails, a clock and a logger")
	}
	if o.Counted == nil {
		o.Counted = func(string) {}
	}
	if o.InFlight == 0 {
		o.InFlight = MaxInFlight
	}
	if o.Jitter == nil {
		o.Jitter = retry.Jitter
	}
	return &Service{o}, nil
}

func (s *Service) now() time.Time { return s.o.Now().UTC().Truncate(time.Microsecond) }

// contextOf binds an encrypted secret to its endpoint.
func contextOf(id string) string { return "webhook_endpoints|secret|" + id }

// NewEndpoint is what an endpoint is made of.
type NewEndpoint struct {
	URL         string
	Types       []event.Type
	Description string
}

// Check fails with a fault that names a field that can't be taken.
func (n NewEndpoint) Check() error {
	if problem := CheckURL(n.URL); problem != "" {
		return fault.Field("url", problem)
	}
	if problem := CheckDescription(n.Description); problem != "" {
		return fault.Field("description", problem)
	}
	return nil
}

// Add adds an endpoint, and returns it with its secret, which is shown once.
func (s *Service) Add(ctx context.Context, by decision.By, n NewEndpoint) (Endpoint, string, error) {
	if err := n.Check(); err != nil {
		return Endpoint{}, "", err
	}
	now := s.now()
	e := Endpoint{ID: s.o.IDs.New(EndpointPrefix, now), URL: n.URL, Types: n.Types, Description: n.Description, Status: Enabled, CreatedAt: now}
	secret := newSecret()
	var err error
	if e.Secret, err = s.o.Keys.Encrypt(secret, contextOf(e.ID)); err != nil {
		return Endpoint{}, "", err
	}
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		// The decision goes first: it locks the platform's journal, so that endpoints are added one after another.
		if err := ledger.RecordDecision(ctx, tx, decision.New(by, decision.AddWebhook, "", e.ID, now)); err != nil {
			return err
		}
		added, err := tx.InsertEndpoint(ctx, e)
		if err == nil && !added {
			err = ErrTaken
		}
		return err
	})
	return e, secret, err
}

// Endpoints lists all endpoints, the oldest first.
func (s *Service) Endpoints(ctx context.Context) ([]Endpoint, error) { return s.o.Store.Endpoints(ctx) }

// Endpoint finds an endpoint, or fails with [ErrNotFound].
func (s *Service) Endpoint(ctx context.Context, id string) (Endpoint, error) {
	e, found, err := s.o.Store.Endpoint(ctx, id)
	if err == nil && !found {
		err = ErrNotFound
	}
	return e, err
}

// Change is what is to be changed of an endpoint. What is nil stays.
type Change struct {
	URL         *string
	Types       *[]event.Type
	Description *string
	Status      *Status
}

// Change changes an endpoint. One that is enabled again is tried at once. To disable one that the service disabled is to keep it so.
func (s *Service) Change(ctx context.Context, by decision.By, id string, c Change) (Endpoint, error) {
	if c.URL != nil {
		if problem := CheckURL(*c.URL); problem != "" {
			return Endpoint{}, fault.Field("url", problem)
		}
	}
	if c.Description != nil {
		if problem := CheckDescription(*c.Description); problem != "" {
			return Endpoint{}, fault.Field("description", problem)
		}
	}
	return s.change(ctx, by, decision.ChangeWebhook, id, func(e *Endpoint) error {
		if c.URL != nil && *c.URL != e.URL {
			e.Health = Health{LastDeliveredAt: e.LastDeliveredAt}
		}
		set(&e.URL, c.URL)
		set(&e.Types, c.Types)
		set(&e.Description, c.Description)
		switch {
		case c.Status == nil || *c.Status == Enabled && e.Status == Enabled:
		case *c.Status == Enabled:
			e.Status, e.Reason, e.Health = Enabled, "", Health{LastDeliveredAt: e.LastDeliveredAt}
		default:
			e.Status, e.Reason = Disabled, ByHand
		}
		return nil
	})
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Rotate gives an endpoint another secret, which is shown once. The last one signs too for a day, and so does the one before if it
// still did.
func (s *Service) Rotate(ctx context.Context, by decision.By, id string) (Endpoint, string, error) {
	secret := newSecret()
	encrypted, err := s.o.Keys.Encrypt(secret, contextOf(id))
	if err != nil {
		return Endpoint{}, "", err
	}
	e, err := s.change(ctx, by, decision.RotateWebhook, id, func(e *Endpoint) error {
		old := append([]string{e.Secret}, e.signingOld(s.now())...)
		e.Secret, e.OldSecrets, e.OldUntil = encrypted, old[:min(len(old), maxOldSecrets)], s.now().Add(rotationGrace)
		return nil
	})
	return e, secret, err
}

// change changes an endpoint that the service wrote.
func (s *Service) change(ctx context.Context, by decision.By, action decision.Action, id string, change func(*Endpoint) error) (e Endpoint, err error) {
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		if e, err = own(ctx, tx, id); err != nil {
			return err
		}
		was := e.Health
		if err := change(&e); err != nil {
			return err
		}
		if err := ledger.RecordDecision(ctx, tx, decision.New(by, action, "", id, s.now())); err != nil {
			return err
		}
		saved, err := tx.SaveEndpoint(ctx, e)
		if err == nil && !saved {
			err = ErrTaken
		}
		if err == nil && e.Health != was {
			err = tx.SaveHealth(ctx, id, e.Health)
		}
		return err
	})
	return e, err
}

// own finds an endpoint that the service wrote, and keeps it so: to write another MAC would approve what the row is.
func own(ctx context.Context, tx Tx, id string) (Endpoint, error) {
	e, found, err := tx.EndpointForUpdate(ctx, id)
	switch {
	case err != nil:
		return Endpoint{}, err
	case !found:
		return Endpoint{}, ErrNotFound
	case e.Tampered:
		return Endpoint{}, ErrTampered
	default:
		return e, nil
	}
}

// Remove removes an endpoint. What was not delivered to it never is.
func (s *Service) Remove(ctx context.Context, by decision.By, id string) error {
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		_, found, err := tx.EndpointForUpdate(ctx, id)
		if err == nil && !found {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		if err := ledger.RecordDecision(ctx, tx, decision.New(by, decision.RemoveWebhook, "", id, s.now())); err != nil {
			return err
		}
		return tx.DeleteEndpoint(ctx, id)
	})
}

// TestResult is how a test went. Problem says why there was no answer.
type TestResult struct {
	Answer
	Problem string
}

// Test sends an event of type ping now, whether or not the endpoint is enabled. It counts for nothing else.
func (s *Service) Test(ctx context.Context, id string) (TestResult, error) {
	now := s.now()
	err := s.o.Store.InTx(ctx, func(tx Tx) error {
		if _, err := own(ctx, tx, id); err != nil {
			return err
		}
		_, within, err := tx.TakeThrottle(ctx, "webhook test|"+id, now, testCost, testBurst)
		if err == nil && !within {
			err = ErrTestedOften.After(testBurst)
		}
		return err
	})
	if err != nil {
		return TestResult{}, err
	}
	e, err := s.Endpoint(ctx, id)
	if err != nil {
		return TestResult{}, err
	}
	body, err := pingBody(id, now)
	if err != nil {
		return TestResult{}, err
	}
	answer, problem, err := s.post(ctx, e, s.o.IDs.New(pingPrefix, now), body)
	return TestResult{answer, problem}, err
}

// Deliveries lists those that a filter selects, newest first.
func (s *Service) Deliveries(ctx context.Context, f Filter) ([]Delivery, error) {
	return s.o.Store.Deliveries(ctx, f)
}

// Redelivery selects events that are to be sent again.
type Redelivery struct {
	// Event is the first, or the only one where Through is empty. Through is the last.
	Event, Through string
	// Endpoint is where they go; empty for all that are enabled, which is for one event.
	Endpoint string
}

// ErrRange refuses a range that is none.
var ErrRange = fault.Field("through", "must be an event that is not before the first, and at most 1000 events away")

// Redeliver makes deliveries of events that were delivered before, or that no endpoint wanted then, and returns how many. One
// that is pending becomes due instead.
func (s *Service) Redeliver(ctx context.Context, r Redelivery) (n int, err error) {
	first, found, err := s.o.Store.Event(ctx, r.Event)
	if err == nil && !found {
		err = ErrEventNotFound
	}
	if err != nil {
		return 0, err
	}
	events := []event.Event{first}
	if r.Through != "" {
		if r.Endpoint == "" {
			return 0, fault.Field("endpointId", "is required with through")
		}
		last, found, err := s.o.Store.Event(ctx, r.Through)
		if err != nil {
			return 0, err
		}
		if !found || last.Number < first.Number || last.Number-first.Number >= MaxRedelivered {
			return 0, ErrRange
		}
		if events, err = s.o.Store.Events(ctx, first.Number-1, int(last.Number-first.Number)+1); err != nil {
			return 0, err
		}
	}
	endpoints, err := s.targets(ctx, r, first.Type)
	if err != nil {
		return 0, err
	}
	for _, e := range endpoints {
		made, err := s.redeliver(ctx, e.ID, events)
		n += made
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// targets are the endpoints that events are sent to again.
func (s *Service) targets(ctx context.Context, r Redelivery, t event.Type) ([]Endpoint, error) {
	if r.Endpoint != "" {
		e, err := s.Endpoint(ctx, r.Endpoint)
		return []Endpoint{e}, err
	}
	all, err := s.Endpoints(ctx)
	var wanting []Endpoint
	for _, e := range all {
		if e.Status == Enabled && !e.Tampered && e.Wants(t) {
			wanting = append(wanting, e)
		}
	}
	return wanting, err
}

func (s *Service) redeliver(ctx context.Context, endpoint string, events []event.Event) (n int, err error) {
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		n = 0
		e, err := own(ctx, tx, endpoint)
		if err == nil && e.Status != Enabled {
			err = ErrDisabled
		}
		if err != nil {
			return err
		}
		now := s.now()
		var fresh []Delivery
		for _, of := range events {
			if len(events) > 1 && !e.Wants(of.Type) {
				continue
			}
			n++
			pending, err := tx.RescheduleDelivery(ctx, endpoint, of.ID, now)
			if err != nil {
				return err
			}
			if !pending {
				fresh = append(fresh, NewDelivery(s.o.IDs.New(DeliveryPrefix, now), of.ID, endpoint, now))
			}
		}
		if !e.RetryAt.IsZero() { // a person asks, so the endpoint probably works again
			e.forget(now)
			e.RetryAt = time.Time{}
			if err := tx.SaveHealth(ctx, endpoint, e.Health); err != nil {
				return err
			}
		}
		return tx.InsertDeliveries(ctx, fresh)
	})
	return n, err
}

// NewDelivery is a delivery that is due.
func NewDelivery(id, eventID, endpoint string, now time.Time) Delivery {
	return Delivery{ID: id, EventID: eventID, EndpointID: endpoint, Status: Pending, CreatedAt: now, DueAt: now}
}
