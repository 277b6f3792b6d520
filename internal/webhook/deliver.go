package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"bursar/internal/mail"
	"bursar/internal/retry"
)

const (
	// SendTimeout bounds one attempt, and MaxInFlight those at one endpoint at a time.
	SendTimeout = 15 * time.Second
	MaxInFlight = 8
	// takenAtOnce is how many deliveries are taken at a time, and beginsFor how long their first attempts may begin.
	takenAtOnce = 64
	beginsFor   = 10 * time.Second
	// goesOnFor is how long a step takes more once all were delivered: long beside the rest between steps, and short beside a shutdown.
	goesOnFor = 2 * time.Second
	// StepTimeout bounds a step: the attempts, and the record of how they went. The lease is longer.
	StepTimeout = 40 * time.Second
	lease       = time.Minute
	// An endpoint that only fails is tried again after firstWait, then after twice as long each time up to longestWait.
	firstWait   = 5 * time.Second
	longestWait = 5 * time.Minute
	// longestAsked bounds for how long a receiver can ask us to wait.
	longestAsked = time.Hour
	// disabledAfter is how long nothing is delivered to an endpoint before it is disabled.
	disabledAfter = 5 * 24 * time.Hour
	// forgottenAfter is after how long without an attempt a failure says nothing of the next one: longer than deliveries wait.
	forgottenAfter = 36 * time.Hour
	// keptFor is how long deliveries are kept.
	keptFor    = 30 * 24 * time.Hour
	sweepBatch = 500
	// statusGone is the answer of a receiver that wants no more.
	statusGone = 410
)

// waits are those between the attempts of a delivery, as Standard Webhooks has them.
var waits = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Lease is an endpoint that one worker delivers to until a time.
type Lease struct {
	Endpoint string
	Until    time.Time
}

// LeaseDue leases endpoints that something is due at.
func (s *Service) LeaseDue(ctx context.Context, limit int) (leases []Lease, err error) {
	now := s.now()
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		leases, err = tx.LeaseEndpoints(ctx, now, now.Add(lease), limit)
		return err
	})
	return leases, err
}

// Step delivers to an endpoint that was leased, and records how that went: some deliveries after others while all are taken and
// more are due. A crash between the two delivers again once the lease has run out.
func (s *Service) Step(ctx context.Context, l Lease) error {
	until := s.now().Add(goesOnFor)
	for more := true; more; {
		var err error
		if more, err = s.stepOnce(ctx, l, until); err != nil {
			return err
		}
	}
	return nil
}

// stepOnce delivers some of what is due. It reports whether there is more to do before a time, and otherwise ends the lease.
func (s *Service) stepOnce(ctx context.Context, l Lease, until time.Time) (more bool, err error) {
	e, found, err := s.o.Store.Endpoint(ctx, l.Endpoint)
	if err != nil || !found || e.Status != Enabled {
		return false, err
	}
	if e.Tampered {
		s.o.Logger.ErrorContext(ctx, "webhook endpoint tampered with; nothing delivered", slog.String("endpoint", e.ID))
		return false, s.o.Store.InTx(ctx, func(tx Tx) error {
			e.RetryAt = s.now().Add(longestWait)
			if err := tx.SaveHealth(ctx, e.ID, e.Health); err != nil {
				return err
			}
			return tx.EndLease(ctx, l, s.now())
		})
	}
	limit := takenAtOnce
	if e.Failures > 0 {
		limit = 1
	}
	var taken []Delivery
	now := s.now()
	err = s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		taken, err = tx.TakeDeliveries(ctx, e.ID, now, now.Add(lease), limit)
		return err
	})
	if err != nil {
		return false, err
	}
	all := s.attempt(ctx, e, taken)
	more = len(all) == takenAtOnce && s.now().Before(until) && !slices.ContainsFunc(all, func(t tried) bool { return t.Status != Delivered })
	return s.record(ctx, l, e, all, more)
}

// tried is a delivery after an attempt, or one that was not begun.
type tried struct {
	Delivery
	// taken is the delivery as it was taken.
	taken Delivery
	begun bool
	// ours says that the event could not be written, which says nothing of the endpoint.
	ours       bool
	gone       bool
	retryAfter time.Duration
}

// attempt sends deliveries, some at a time. It begins none after a failure, unless something was delivered meanwhile.
func (s *Service) attempt(ctx context.Context, e Endpoint, taken []Delivery) []tried {
	ctx, cancel := context.WithTimeout(ctx, beginsFor+SendTimeout)
	defer cancel()
	all := make([]tried, len(taken))
	var mu sync.Mutex
	next, delivered, failed, gone := 0, 0, 0, false
	until := s.now().Add(beginsFor)
	begin := func() int {
		mu.Lock()
		defer mu.Unlock()
		if next == len(taken) || failed > delivered || gone || s.now().After(until) {
			return -1
		}
		next++
		return next - 1
	}
	work := func() {
		for i := begin(); i >= 0; i = begin() {
			all[i] = s.try(ctx, e, taken[i])
			mu.Lock()
			gone = gone || all[i].gone
			switch {
			case all[i].Status == Delivered:
				delivered++
			case !all[i].ours:
				failed++
			}
			mu.Unlock()
		}
	}
	var workers sync.WaitGroup
	for range min(s.o.InFlight, len(taken)) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
	for i := next; i < len(taken); i++ {
		all[i] = tried{Delivery: taken[i], taken: taken[i]}
	}
	return all
}

// sendSafely is send, and turns a panic into an error: one event that can't be written must not end the process.
func (s *Service) sendSafely(ctx context.Context, e Endpoint, d Delivery) (answer Answer, problem string, err error) {
	defer func() {
		if r := recover(); r != nil {
			answer, problem, err = Answer{}, "", fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return s.send(ctx, e, d)
}

// try makes one attempt of a delivery.
func (s *Service) try(ctx context.Context, e Endpoint, d Delivery) tried {
	taken := d
	answer, problem, err := s.sendSafely(ctx, e, d)
	now := s.now()
	d.At, d.ResponseStatus, d.Answer, d.Problem = now, answer.Status, answer.Body, problem
	t := tried{taken: taken, begun: true, ours: err != nil}
	if err != nil {
		s.o.Logger.ErrorContext(ctx, "webhook not written", slog.String("delivery", d.ID), slog.Any("error", err))
		d.Problem = "Bursar could not write the event; its log says why"
	}
	switch {
	case answer.Succeeded():
		d.Status, d.DueAt = Delivered, time.Time{}
	case answer.Status == statusGone:
		d.Status, d.DueAt, t.gone = Failed, time.Time{}, true
	case d.Attempt > int64(len(waits)):
		d.Status, d.DueAt = Failed, time.Time{}
	default:
		t.retryAfter = min(answer.RetryAfter, longestAsked)
		d.DueAt = now.Add(max(s.o.Jitter(waits[max(d.Attempt-1, 0)]), t.retryAfter))
	}
	t.Delivery = d
	return t
}

// send writes the event of a delivery and posts it. problem says why there was no answer.
func (s *Service) send(ctx context.Context, e Endpoint, d Delivery) (answer Answer, problem string, err error) {
	of, found, err := s.o.Store.Event(ctx, d.EventID)
	if err == nil && !found {
		err = ErrEventNotFound
	}
	if err != nil {
		return Answer{}, "", err
	}
	body, err := s.o.Bodies(ctx, of)
	if err != nil {
		return Answer{}, "", err
	}
	return s.post(ctx, e, d.EventID, body)
}

// signingOld lists the secrets of before that still sign.
func (e Endpoint) signingOld(now time.Time) []string {
	if !now.Before(e.OldUntil) {
		return nil
	}
	return e.OldSecrets
}

// post signs a message and posts it once.
func (s *Service) post(ctx context.Context, e Endpoint, id string, body []byte) (answer Answer, problem string, err error) {
	now := s.now()
	encrypted := append([]string{e.Secret}, e.signingOld(now)...)
	secrets := make([]string, len(encrypted))
	for i, text := range encrypted {
		if secrets[i], err = s.o.Keys.Decrypt(text, contextOf(e.ID)); err != nil {
			return Answer{}, "", err
		}
	}
	signature, err := sign(secrets, id, now, body)
	if err != nil {
		return Answer{}, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, SendTimeout)
	defer cancel()
	answer, failure := s.o.Sender.Send(ctx, Message{URL: e.URL, ID: id, At: now, Signature: signature, Body: body})
	if failure != nil {
		return Answer{}, failure.Error(), nil
	}
	return answer, "", nil
}

// record stores how attempts went and what that says of their endpoint, which before them was as it is given. It ends the lease
// unless the step goes on, and reports whether it does.
func (s *Service) record(ctx context.Context, l Lease, before Endpoint, all []tried, more bool) (goesOn bool, err error) {
	var delivered, failed, gone bool
	wait := time.Duration(0)
	for i := range all {
		t := &all[i]
		switch {
		case !t.begun: // it counts as never taken
			t.Attempt, t.DueAt = t.Attempt-1, s.now()
		case t.Status == Delivered:
			delivered = true
		case !t.ours:
			failed, gone, wait = true, gone || t.gone, max(wait, t.retryAfter)
		}
	}
	var disabled string
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		disabled, goesOn = "", false
		e, found, err := tx.EndpointForUpdate(ctx, l.Endpoint) // before its deliveries, as a replay does
		if err != nil {
			return err
		}
		isMoved := found && e.URL != before.URL // it was changed meanwhile, and the attempts say nothing of the new address
		for _, t := range all {
			if isMoved && t.Status != Delivered {
				t.Status, t.DueAt = Pending, s.now()
			}
			if err := tx.SaveAttempt(ctx, t.taken, t.Delivery); err != nil {
				return err
			}
		}
		if !found {
			return nil
		}
		now := s.now()
		if isMoved {
			return tx.EndLease(ctx, l, now)
		}
		h := &e.Health
		switch {
		case delivered:
			*h = Health{LastDeliveredAt: now}
		case failed:
			h.fail(now, wait, before.Health, s.o.Jitter)
		}
		switch {
		case e.Status != Enabled || e.Tampered:
		case gone:
			disabled = Gone
		case h.Failures > 0 && now.Sub(h.FailingSince) >= disabledAfter:
			disabled = Failing
		}
		if disabled != "" {
			e.Status, e.Reason = Disabled, disabled
			if _, err := tx.SaveEndpoint(ctx, e); err != nil {
				return err
			}
			if err := s.mailAdmins(ctx, tx, e, now); err != nil {
				return err
			}
		}
		err = tx.SaveHealth(ctx, e.ID, *h)
		if goesOn = more && e.Status == Enabled; err == nil && !goesOn {
			err = tx.EndLease(ctx, l, now)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	s.report(ctx, l.Endpoint, all, disabled)
	return goesOn, nil
}

// fail counts a failure, and waits for longer than after the one before, and for as long as the receiver asks.
func (h *Health) fail(now time.Time, asked time.Duration, before Health, jitter func(time.Duration) time.Duration) {
	h.forget(now)
	if h.Failures == 0 {
		h.FailingSince = now
	}
	h.Failures++
	if h.RetryAt.IsZero() && !before.RetryAt.IsZero() {
		return // a person asked for a redelivery meanwhile, so the endpoint probably works again
	}
	h.RetryAt = now.Add(max(asked, jitter(retry.Backoff(h.Failures, firstWait, longestWait))))
}

// forget drops failures that are too old to say anything of the next one. Where RetryAt is zero, a person asked for a redelivery, and the
// age of the last failure was judged then.
func (h *Health) forget(now time.Time) {
	if !h.RetryAt.IsZero() && now.Sub(h.RetryAt) > forgottenAfter {
		h.Failures, h.FailingSince = 0, time.Time{}
	}
}

// mailAdmins tells all admins that the service disabled an endpoint.
func (s *Service) mailAdmins(ctx context.Context, tx Tx, e Endpoint, now time.Time) error {
	admins, err := tx.Admins(ctx)
	for _, admin := range admins {
		if err == nil {
			_, err = s.o.Mails.Queue(ctx, tx, mail.Mail{User: admin, Data: mail.WebhookDisabled{At: now, Endpoint: e.ID, Address: e.Where(), Gone: e.Reason == Gone}})
		}
	}
	return err
}

// report counts and logs how attempts went.
func (s *Service) report(ctx context.Context, endpoint string, all []tried, disabled string) {
	var last string
	failures := 0
	for _, t := range all {
		switch {
		case !t.begun:
		case t.Status == Delivered:
			s.o.Counted(OutcomeDelivered)
		case t.Status == Failed:
			s.o.Counted(OutcomeFailed)
		default:
			s.o.Counted(OutcomeDeferred)
		}
		if t.begun && t.Status != Delivered {
			failures++
			last = t.Problem
			if last == "" {
				last = fmt.Sprintf("answered %d", t.ResponseStatus)
			}
		}
	}
	if failures > 0 {
		s.o.Logger.WarnContext(ctx, "webhook not delivered", slog.String("endpoint", endpoint), slog.Int("deliveries", failures), slog.String("reason", last))
	}
	if disabled != "" {
		s.o.Logger.ErrorContext(ctx, "webhook endpoint disabled", slog.String("endpoint", endpoint), slog.String("reason", disabled))
	}
}

// Sweep deletes deliveries of long ago, a batch at most, and returns how many.
func (s *Service) Sweep(ctx context.Context) (n int64, err error) {
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		n, err = tx.SweepDeliveries(ctx, s.now().Add(-keptFor), sweepBatch)
		return err
	})
	return n, err
}
