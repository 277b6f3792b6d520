package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"bursar/internal/gateway/razorpayx"
)

// eventNames by the status that a payout came to; the vendor has none for a cancelled one.
var eventNames = map[string]string{
	razorpayx.StatusPending:    "payout.pending",
	razorpayx.StatusQueued:     "payout.queued",
	razorpayx.StatusProcessing: "payout.initiated",
	razorpayx.StatusProcessed:  "payout.processed",
	razorpayx.StatusReversed:   "payout.reversed",
	razorpayx.StatusFailed:     "payout.failed",
	razorpayx.StatusRejected:   "payout.rejected",
}

const (
	// maxDeliveries is how many webhooks are under way at once, eventBatch how many are taken up.
	maxDeliveries = 16
	eventBatch    = 64
	// deliveryTimeout is the vendor's; eventLease is longer than a batch of them takes.
	deliveryTimeout = 5 * time.Second
	eventLease      = time.Minute
	// eventLifetime is how long delivery is tried.
	eventLifetime = 24 * time.Hour
	// mixUp is how much later the first event comes when events are mixed.
	mixUp = 250 * time.Millisecond
)

// retryAfter is how many times the base wait lies between attempts; the last one repeats.
var retryAfter = []int{1, 6, 30, 180, 720, 2160}

// event is a row: what is said of its subject, which may have moved on since.
type event struct {
	seq        int64
	name       string
	payout     int64
	validation int64
	status     string
	reason     string
	utr        string
	copies     int
	attempts   int
	createdAt  int64
}

const eventColumns = `seq, name, coalesce(payout, 0), coalesce(validation, 0), status, reason, utr, copies, attempts, created_at`

func scanEvent(row scanner) (event, error) {
	var e event
	err := row.Scan(&e.seq, &e.name, &e.payout, &e.validation, &e.status, &e.reason, &e.utr, &e.copies, &e.attempts, &e.createdAt)
	return e, err
}

// announcePayout makes the events of a change.
func (s *Sandbox) announcePayout(t *tx, before, p payout, now time.Time) error {
	name := eventNames[p.status]
	if before.status == p.status {
		name = "payout.updated"
	}
	story := storyOf(p.last4)
	if name == "" || story.eventsNever {
		return nil
	}
	e := payoutEvent(name, p)
	due := now
	if story.eventsFirst && p.step <= 1 { // the call that makes the payout delivers it
		due = now.Add(eventLease)
	}
	if !story.eventsMixed {
		return s.emit(t, e, due, now)
	}
	e.copies = 2
	if p.status == razorpayx.StatusProcessing {
		return nil // it comes with the next one
	}
	if err := s.emit(t, e, due, now); err != nil || before.status != razorpayx.StatusProcessing {
		return err
	}
	late := payoutEvent(eventNames[before.status], before)
	late.copies = 2
	return s.emit(t, late, now.Add(mixUp), now)
}

func payoutEvent(name string, p payout) event {
	return event{name: name, payout: p.seq, status: p.status, reason: p.reason, utr: p.utr, copies: 1}
}

func (s *Sandbox) announceValidation(t *tx, v validation, last4 string, now time.Time) error {
	if storyOf(last4).eventsNever {
		return nil
	}
	return s.emit(t, event{name: "fund_account.validation." + v.status, validation: v.seq, copies: 1}, now, now)
}

func (s *Sandbox) emit(t *tx, e event, due, now time.Time) error {
	if s.o.WebhookURL == "" {
		return nil
	}
	err := t.exec(`INSERT INTO events (seq, name, payout, validation, status, reason, utr, copies, attempts, last_status, created_at, due_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0, $9, $10)`,
		s.records.newSeq(), e.name, sql.NullInt64{Int64: e.payout, Valid: e.payout != 0},
		sql.NullInt64{Int64: e.validation, Valid: e.validation != 0}, e.status, e.reason, e.utr, e.copies,
		now.UnixMicro(), due.UnixMicro())
	return err
}

func newHookClient(post http.RoundTripper) *http.Client {
	if post != nil {
		return &http.Client{Transport: post}
	}
	return &http.Client{
		Timeout:       deliveryTimeout,
		Transport:     &http.Transport{MaxIdleConnsPerHost: maxDeliveries, IdleConnTimeout: 90 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// deliverAll delivers events until ctx ends. Those that were leased then are delivered when their leases end.
func (s *Sandbox) deliverAll(ctx context.Context) error {
	var deliveries errgroup.Group
	deliveries.SetLimit(maxDeliveries)
	turns := turns{}
	s.repeat(ctx, s.deliverSoon, deliverDueAt, func() error {
		events, err := s.leaseEvents()
		for _, e := range events {
			before, over := turns.next(e)
			deliveries.Go(func() error {
				defer close(over)
				if before != nil {
					<-before
				}
				s.deliver(ctx, e)
				return nil
			})
		}
		return err
	})
	return deliveries.Wait()
}

// turns has one payout's events delivered one after another: by payout, what ends with the delivery begun last. Each
// waits only for one that was begun before it, so waiting can't use up the deliveries. Some stories mix events up on
// purpose; without turns luck would do so in all.
type turns map[int64]chan struct{}

// next returns the end to wait for, nil for none, and what the caller closes when the event's own delivery is over.
func (t turns) next(e event) (before <-chan struct{}, over chan struct{}) {
	maps.DeleteFunc(t, func(_ int64, over chan struct{}) bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	})
	over = make(chan struct{})
	if e.payout != 0 { // a validation has a single event
		before, t[e.payout] = t[e.payout], over
	}
	return before, over
}

// leaseEvents takes up events that are due, and returns them in the order in which they happened; a crash leaves their leases to run out.
func (s *Sandbox) leaseEvents() (events []event, err error) {
	now := s.o.Now()
	err = s.records.update(func(t *tx) (err error) {
		events, err = rowsOf(t, scanEvent, `UPDATE events SET due_at = $1
			WHERE seq IN (SELECT seq FROM events WHERE due_at <= $2 ORDER BY due_at LIMIT $3 + 0) RETURNING `+eventColumns,
			now.Add(eventLease).UnixMicro(), now.UnixMicro(), eventBatch)
		return err
	})
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.seq, b.seq) }) // RETURNING has no order
	return events, err
}

// settleAndDeliver takes a new payout's first step and delivers all of its events.
func (s *Sandbox) settleAndDeliver(ctx context.Context, seq int64) {
	err := s.records.update(func(t *tx) error {
		p, err := payoutBySeq(t, seq)
		if err != nil || p.step > 0 {
			return err
		}
		return s.takeStep(t, &p, s.o.Now())
	})
	var events []event
	if err == nil {
		events, err = rowsOf(s.records, scanEvent, `SELECT `+eventColumns+` FROM events WHERE seq > $1 AND payout = $1 ORDER BY seq`, seq)
	}
	if err != nil {
		s.o.Logger.ErrorContext(ctx, "sandbox webhook before answer failed", slog.Any("error", err))
	}
	for _, e := range events {
		s.deliver(ctx, e)
	}
}

// deliver sends an event as often as it is to be sent, and records what came of it.
func (s *Sandbox) deliver(ctx context.Context, e event) {
	body, err := s.eventBody(e)
	if err != nil {
		s.o.Logger.ErrorContext(ctx, "sandbox webhook not written", slog.String("event", vendorID("evt_", e.seq)), slog.Any("error", err))
		return
	}
	delivered, status := true, 0
	for range e.copies {
		status = s.send(ctx, e, body)
		delivered = delivered && status >= 200 && status <= 299
	}
	if ctx.Err() != nil {
		return // it is delivered again
	}
	if err := s.recordDelivery(e, delivered, status); err != nil {
		s.o.Logger.ErrorContext(ctx, "sandbox delivery not recorded", slog.String("event", vendorID("evt_", e.seq)), slog.Any("error", err))
	}
}

func (s *Sandbox) recordDelivery(e event, delivered bool, status int) error {
	now := s.o.Now()
	var deliveredAt, dueAt *int64
	if delivered {
		deliveredAt = micros(now)
	} else {
		next := now.Add(s.o.WebhookRetry * time.Duration(retryAfter[min(e.attempts, len(retryAfter)-1)]))
		if next.Sub(time.UnixMicro(e.createdAt)) < eventLifetime {
			dueAt = micros(next)
		}
	}
	return s.records.update(func(t *tx) error {
		err := t.exec(`UPDATE events SET delivered_at = $1, due_at = $2, attempts = attempts + 1, last_status = $3 WHERE seq = $4`,
			deliveredAt, dueAt, status, e.seq)
		return err
	})
}

// send posts an event and returns the status of the answer, 0 for none.
func (s *Sandbox) send(ctx context.Context, e event, body []byte) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.WebhookURL, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(razorpayx.SignatureHeader, razorpayx.Sign(s.o.WebhookSecret, body))
	req.Header.Set(razorpayx.EventIDHeader, vendorID("evt_", e.seq))
	res, err := s.hooks.Do(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxBody) // so that the connection is used again
	return res.StatusCode
}

// eventBody writes an event with its subject as it was.
func (s *Sandbox) eventBody(e event) ([]byte, error) {
	out := razorpayx.Event{Entity: "event", AccountID: vendorID("acc_", 1), Event: e.name, CreatedAt: seconds(e.createdAt)}
	if e.payout != 0 {
		p, err := payoutBySeq(s.records, e.payout)
		if err != nil {
			return nil, fmt.Errorf("the payout of an event: %w", err)
		}
		p.status, p.reason, p.utr = e.status, e.reason, e.utr
		out.Contains = []string{"payout"}
		out.Payload.Payout = &razorpayx.Wrapped[razorpayx.Payout]{Entity: s.showPayout(p)}
		return json.Marshal(out)
	}
	v, err := scanValidation(s.records.row(`SELECT `+validationColumns+` FROM validations WHERE seq = $1`, e.validation))
	if err != nil {
		return nil, fmt.Errorf("the validation of an event: %w", err)
	}
	shown, err := s.showValidationInEvent(v)
	out.Contains = []string{"fund_account.validation"}
	out.Payload.Validation = &razorpayx.Wrapped[razorpayx.Validation]{Entity: shown}
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}
