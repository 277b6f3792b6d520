package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/event"
	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/keyset"
	"bursar/internal/mail"
	"bursar/internal/npmtest"
	"bursar/internal/store"
	"bursar/internal/storetest"
	"bursar/internal/webhook"
	"bursar/internal/webhook/sender"
)

func TestOnPostgres(t *testing.T) { storetest.OnPostgres(t) }

var (
	operator = decision.By{Operator: "tests"}
	morning  = time.Date(2026, 11, 2, 9, 30, 0, 0, time.UTC)
)

// desk is a webhook service on a real store that sends over real HTTP, with a clock that stands still.
type desk struct {
	*webhook.Service
	*testing.T
	options webhook.Options
	place   storetest.Place
	db      *store.DB
	keys    *keyset.Set
	mails   *storetest.Mailbox
	log     bytes.Buffer

	mu       sync.Mutex
	time     time.Time
	outcomes map[string]int
	sellers  int
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{T: t, place: storetest.NewPlace(t), keys: storetest.Keys(t), time: morning, outcomes: map[string]int{}}
	d.db = d.place.Open(t)
	d.db.UseKeys(d.keys)
	d.mails = storetest.NewMailbox(t, d.db, d.keys, d.now)
	http, err := sender.New(sender.Options{Loopback: true, Now: d.now})
	d.must(err)
	d.options = webhook.Options{
		Store: d.db.Webhooks(), Keys: d.keys, Sender: http, Mails: d.mails, Now: d.now, Logger: slog.New(slog.NewTextHandler(&d.log, nil)),
		Bodies: func(_ context.Context, e event.Event) ([]byte, error) {
			return json.Marshal(map[string]any{"type": e.Type, "timestamp": e.At.Format(time.RFC3339), "data": map[string]string{"sellerId": e.Owner}})
		},
		Counted: func(outcome string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.outcomes[outcome]++
		},
	}
	d.Service, err = webhook.New(d.options)
	d.must(err)
	return d
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.time
}

func (d *desk) wait(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.time = d.time.Add(t)
}

// events makes n events, and returns those.
func (d *desk) events(n int) []event.Event {
	d.Helper()
	for range n {
		d.sellers++
		d.must(d.db.Auth().InTx(d.Context(), func(tx auth.Tx) error {
			name := fmt.Sprintf("usr_%03d", d.sellers)
			return tx.InsertUser(d.Context(), auth.User{ID: name, Name: "Somebody", Email: name + "@example.net", Role: auth.Seller, CreatedAt: d.now()})
		}))
	}
	var all []event.Event
	for {
		events, err := d.db.NumberEvents(d.Context(), 100, d.now(), func(prefix string) string { return id.New(prefix, d.now()) }, nil)
		d.must(err)
		if len(events) == 0 {
			return all
		}
		all = append(all, events...)
	}
}

func (d *desk) add(url string, types ...event.Type) (webhook.Endpoint, string) {
	d.Helper()
	e, secret, err := d.Add(d.Context(), operator, webhook.NewEndpoint{URL: url, Types: types})
	d.must(err)
	return e, secret
}

// work does all that is due now, each endpoint beside the others, and reports whether there was anything.
func (d *desk) work() bool {
	d.Helper()
	worked := false
	for {
		leases, err := d.LeaseDue(d.Context(), 20)
		d.must(err)
		if len(leases) == 0 {
			return worked
		}
		worked = true
		var steps sync.WaitGroup
		for _, l := range leases {
			steps.Go(func() {
				if err := d.Step(d.Context(), l); err != nil {
					d.Error(err)
				}
			})
		}
		steps.Wait()
	}
}

func (d *desk) deliveries(f webhook.Filter) []webhook.Delivery {
	d.Helper()
	f.Limit = 1000
	all, err := d.Deliveries(d.Context(), f)
	d.must(err)
	return all
}

func (d *desk) endpoint(id string) webhook.Endpoint {
	d.Helper()
	e, err := d.Endpoint(d.Context(), id)
	d.must(err)
	return e
}

// got is a message that a receiver got.
type got struct {
	header http.Header
	body   []byte
}

func (g got) id() string { return g.header.Get("Webhook-Id") }

// receiver is the server of a marketplace.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []got
	answer func(w http.ResponseWriter, r *http.Request)
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		r.got = append(r.got, got{request.Header.Clone(), body})
		answer := r.answer
		r.mu.Unlock()
		if answer != nil {
			answer(w, request)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(answer func(http.ResponseWriter, *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) status(code int) {
	r.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

// take returns what was got since.
func (r *receiver) take() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.got
	r.got = nil
	return all
}

// verify checks messages with the libraries of the standard, Go's and npm's, and reports for each whether both take it.
func verify(t *testing.T, secret string, all []got) (valid []bool) {
	t.Helper()
	oracle, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	type message struct {
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	var messages []message
	for _, g := range all {
		err := oracle.VerifyIgnoringTimestamp(g.body, g.header)
		valid = append(valid, err == nil)
		m := message{map[string]string{}, string(g.body)}
		for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			m.Headers[name] = g.header.Get(name)
		}
		messages = append(messages, m)
	}
	input, err := json.Marshal(map[string]any{"secret": secret, "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	modules := npmtest.Packages(t)
	script := filepath.Join(t.TempDir(), "verify.cjs")
	if err := os.WriteFile(script, []byte(verifyScript), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "node", script)
	command.Env = append(os.Environ(), "NODE_PATH="+modules)
	command.Stdin = bytes.NewReader(input)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var npm []bool
	if err := json.Unmarshal(out, &npm); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !slices.Equal(npm, valid) {
		t.Errorf("npm's library says %v, Go's %v", npm, valid)
	}
	return valid
}

// verifyScript takes messages as if each came at the time that it bears: the test's clock is not the machine's.
const verifyScript = `
const { Webhook } = require("standardwebhooks");
const { secret, messages } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const hook = new Webhook(secret);
const now = Date.now;
console.log(JSON.stringify(messages.map(({ headers, body }) => {
  Date.now = () => Number(headers["webhook-timestamp"]) * 1000;
  try { hook.verify(body, headers); return true } catch { return false } finally { Date.now = now }
})));`

// The receiver refuses the first attempt, commits the second and cuts the connection, and takes the third. Each attempt is
// signed again under the same id.
func TestDelivery_VerifiedOnEveryAttempt(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	e, secret := d.add(r.URL)
	r.status(http.StatusInternalServerError)
	events := d.events(1)
	d.work()
	first := r.take()
	r.answers(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	d.wait(6 * time.Second)
	d.work()
	second := r.take()
	if delivery := d.deliveries(webhook.Filter{})[0]; delivery.Status != webhook.Pending || delivery.Attempt != 2 || delivery.Problem == "" || delivery.ResponseStatus != 0 {
		t.Errorf("after a connection that was cut the delivery is %+v", delivery)
	}
	r.status(http.StatusNoContent)
	d.wait(7 * time.Minute)
	d.work()
	third := r.take()
	all := slices.Concat(first, second, third)
	if len(first) != 1 || len(second) != 1 || len(third) != 1 {
		t.Fatalf("%d, %d and %d attempts, want one each", len(first), len(second), len(third))
	}
	for i, valid := range verify(t, secret, all) {
		g := all[i]
		if !valid || g.id() != events[0].ID || g.header.Get("Content-Type") != "application/json" || !bytes.Equal(g.body, all[0].body) {
			t.Errorf("attempt %d is %v, %s", i+1, g.header, g.body)
		}
		if i > 0 && (g.header.Get("Webhook-Timestamp") == all[i-1].header.Get("Webhook-Timestamp") || g.header.Get("Webhook-Signature") == all[i-1].header.Get("Webhook-Signature")) {
			t.Errorf("attempt %d bears the time and signature of the one before", i+1)
		}
	}
	delivery := d.deliveries(webhook.Filter{})[0]
	if delivery.Status != webhook.Delivered || delivery.Attempt != 3 || delivery.ResponseStatus != 204 || !delivery.DueAt.IsZero() || !delivery.At.Equal(d.now()) {
		t.Errorf("in the end the delivery is %+v", delivery)
	}
	if got := d.endpoint(e.ID); got.Failures != 0 || !got.LastDeliveredAt.Equal(d.now()) {
		t.Errorf("in the end the endpoint is %+v", got)
	}
	if d.wait(30 * 24 * time.Hour); d.work() {
		t.Error("what was delivered is due again")
	}
}

// Both secrets sign for a day.
func TestRotate_BothSecretsSignForADay(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	e, before := d.add(r.URL)
	_, after, err := d.Rotate(t.Context(), operator, e.ID)
	d.must(err)
	if before == after || !strings.HasPrefix(after, "whsec_") {
		t.Fatalf("rotated from %s to %s", before, after)
	}
	d.events(1)
	d.work()
	during := r.take()
	d.wait(24 * time.Hour)
	d.events(1)
	d.work()
	past := r.take()
	all := slices.Concat(during, past)
	if got := verify(t, before, all); !slices.Equal(got, []bool{true, false}) {
		t.Errorf("with the secret of before, deliveries during and after the rotation are %v", got)
	}
	if got := verify(t, after, all); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("with the new secret, deliveries during and after the rotation are %v", got)
	}
}

// TestRotate_AgainKeepsTheSecretInUse rotates again and again within a day, as after a lost answer.
func TestRotate_AgainKeepsTheSecretInUse(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	e, first := d.add(r.URL)
	secrets := []string{first}
	for rotated, want := range [][]bool{{true}, {true, true}, {true, true, true}, {false, true, true, true}} {
		if rotated > 0 {
			_, next, err := d.Rotate(t.Context(), operator, e.ID)
			d.must(err)
			secrets = append(secrets, next)
		}
		d.events(1)
		d.work()
		delivered := r.take()
		var got []bool
		for _, secret := range secrets {
			got = append(got, verify(t, secret, delivered)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %d rotations the secrets verify %v, want %v", rotated, got, want)
		}
	}
}

// Ten attempts over three days, and no more.
func TestDelivery_GivenUpAfterTenAttempts(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	r.status(http.StatusBadGateway)
	e, _ := d.add(r.URL)
	d.events(1)
	began := d.now()
	var at []time.Duration
	for d.now().Sub(began) < 5*24*time.Hour {
		d.work()
		if len(r.take()) > 0 {
			at = append(at, d.now().Sub(began))
		}
		pending := d.deliveries(webhook.Filter{Status: webhook.Pending})
		if len(pending) == 0 {
			break
		}
		d.wait(max(time.Second, pending[0].DueAt.Sub(d.now()), d.endpoint(e.ID).RetryAt.Sub(d.now())))
	}
	expected := []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	if len(at) != len(expected) {
		t.Fatalf("attempts at %v, want %d", at, len(expected))
	}
	for i := 1; i < len(at); i++ {
		if wait := at[i] - at[i-1]; wait < expected[i]-expected[i]/5 || wait > expected[i]+expected[i]/5+time.Second {
			t.Errorf("attempt %d came %s after the one before, want %s, a fifth more or less", i+1, wait, expected[i])
		}
	}
	if delivery := d.deliveries(webhook.Filter{})[0]; delivery.Status != webhook.Failed || delivery.Attempt != 10 || delivery.ResponseStatus != 502 {
		t.Errorf("in the end the delivery is %+v", delivery)
	}
	if d.outcomes[webhook.OutcomeDeferred] != 9 || d.outcomes[webhook.OutcomeFailed] != 1 {
		t.Errorf("outcomes are %v", d.outcomes)
	}
	if d.endpoint(e.ID).Status != webhook.Enabled {
		t.Error("the endpoint is disabled before five days")
	}
}

func TestDelivery_RetryAfter(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	d.add(r.URL)
	for _, tt := range []struct {
		header   string
		min, max time.Duration
	}{
		{"in three minutes", 3*time.Minute - time.Second, 4 * time.Minute},
		{"120", 2 * time.Minute, 3 * time.Minute},
		{"99999999", time.Hour, time.Hour + time.Minute},
		{"-5", 4 * time.Second, 6 * time.Second},
		{"soon", 4 * time.Second, 6 * time.Second},
	} {
		tt.header = strings.ReplaceAll(tt.header, "in three minutes", d.now().Add(3*time.Minute).Format(http.TimeFormat))
		r.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", tt.header)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		e := d.events(1)[0]
		d.work()
		due := d.deliveries(webhook.Filter{Event: e.ID})[0].DueAt
		if wait := due.Sub(d.now()); wait < tt.min || wait > tt.max {
			t.Errorf("with Retry-After %q the next attempt is %s away, want %s to %s", tt.header, wait, tt.min, tt.max)
		}
		r.status(http.StatusOK)
		d.wait(2 * time.Hour)
		d.work()
	}
}

func TestDelivery_RedirectIsAFailure(t *testing.T) {
	d := newDesk(t)
	r, elsewhere := newReceiver(t), newReceiver(t)
	r.answers(func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	d.add(r.URL)
	d.events(1)
	d.work()
	if delivery := d.deliveries(webhook.Filter{})[0]; delivery.Status != webhook.Pending || delivery.ResponseStatus != 307 {
		t.Errorf("after a redirect the delivery is %+v", delivery)
	}
	if len(elsewhere.take()) > 0 {
		t.Error("a redirect was followed")
	}
}

func TestDelivery_GoneDisables(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	r.status(http.StatusGone)
	e, _ := d.add(r.URL + "/hooks?token=hush")
	d.must(d.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
		return tx.InsertUser(t.Context(), auth.User{ID: "usr_admin", Name: "Ada", Email: "ada@example.net", Role: auth.Admin, CreatedAt: d.now()})
	}))
	d.events(1)
	d.work()
	if mails, err := d.db.LatestMails(t.Context(), 10); err != nil || len(mails) != 1 || mails[0].User != "usr_admin" || mails[0].Kind != mail.KindWebhookDisabled {
		t.Errorf("mailed are %+v, %v", mails, err)
	}
	if got := d.endpoint(e.ID); strings.Contains(got.Where(), "hush") {
		t.Errorf("it is shown as %s", got.Where())
	} else if got.Status != webhook.Disabled || got.Reason != webhook.Gone || got.Tampered {
		t.Errorf("after 410 the endpoint is %+v", got)
	}
	first := d.deliveries(webhook.Filter{})[0]
	r.status(http.StatusOK)
	r.take()
	d.events(1)
	if d.wait(time.Hour); d.work() || len(d.deliveries(webhook.Filter{})) != 1 {
		t.Error("an event is queued for a disabled endpoint")
	}
	if _, err := d.Redeliver(t.Context(), webhook.Redelivery{Event: first.EventID, Endpoint: e.ID}); !errors.Is(err, webhook.ErrDisabled) {
		t.Errorf("a replay to a disabled endpoint: %v", err)
	}
	enabled := webhook.Enabled
	_, err := d.Change(t.Context(), operator, e.ID, webhook.Change{Status: &enabled})
	d.must(err)
	n, err := d.Redeliver(t.Context(), webhook.Redelivery{Event: first.EventID, Endpoint: e.ID})
	d.must(err)
	d.work()
	if got := r.take(); n != 1 || len(got) != 1 || got[0].id() != first.EventID {
		t.Errorf("%d are sent again, got %v", n, got)
	}
}

func TestDelivery_DisabledAfterFiveDays(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	r.status(http.StatusServiceUnavailable)
	e, _ := d.add(r.URL)
	for day := range 6 {
		if got := d.endpoint(e.ID); got.Status != webhook.Enabled {
			t.Fatalf("on day %d it is disabled", day)
		}
		d.events(1)
		d.work()
		d.wait(24 * time.Hour)
	}
	d.work()
	if got := d.endpoint(e.ID); got.Status != webhook.Disabled || got.Reason != webhook.Failing {
		t.Errorf("after five days of failures the endpoint is %+v", got)
	}
}

// TestRedeliver_WhileItFails has an event sent again each day. The endpoint takes none for five days, and so is disabled.
func TestRedeliver_WhileItFails(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	r.status(http.StatusServiceUnavailable)
	e, _ := d.add(r.URL)
	of := d.events(1)[0]
	d.work()
	for range 5 {
		d.wait(24 * time.Hour)
		_, err := d.Redeliver(t.Context(), webhook.Redelivery{Event: of.ID, Endpoint: e.ID})
		d.must(err)
		d.work()
	}
	if got := d.endpoint(e.ID); got.Status != webhook.Disabled || got.Reason != webhook.Failing {
		t.Errorf("after five days of failures the endpoint is %+v", got)
	}
}

// TestRedeliver_OldFailuresAreForgotten has an event sent again ten days after a failure, which is no outage of ten days.
func TestRedeliver_OldFailuresAreForgotten(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	r.status(http.StatusServiceUnavailable)
	e, _ := d.add(r.URL)
	of := d.events(1)[0]
	d.work()
	d.wait(10 * 24 * time.Hour)
	_, err := d.Redeliver(t.Context(), webhook.Redelivery{Event: of.ID, Endpoint: e.ID})
	d.must(err)
	d.work()
	if got := d.endpoint(e.ID); got.Status != webhook.Enabled || got.Failures != 1 || got.FailingSince != d.now() {
		t.Errorf("after another failure ten days later, the endpoint is %+v", got)
	}
}

// TestDelivery_OldFailuresAreForgotten fails twice with ten days between, which is no outage of ten days.
func TestDelivery_OldFailuresAreForgotten(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	r.status(http.StatusServiceUnavailable)
	e, _ := d.add(r.URL)
	d.events(1)
	d.work()
	d.wait(10 * 24 * time.Hour)
	d.events(1)
	d.work()
	if got := d.endpoint(e.ID); got.Status != webhook.Enabled || got.FailingSince != d.now() {
		t.Errorf("after another failure ten days later, the endpoint is %+v", got)
	}
	address := r.URL + "/other"
	if _, err := d.Change(t.Context(), operator, e.ID, webhook.Change{URL: &address}); err != nil || !d.endpoint(e.ID).FailingSince.IsZero() {
		t.Errorf("with another address the endpoint is %+v, %v", d.endpoint(e.ID), err)
	}
}

// An endpoint moves while its old address answers that it is gone. The new address gets the event.
func TestDelivery_MovedMeanwhile_NewAddressGetsIt(t *testing.T) {
	for _, code := range []int{http.StatusGone, http.StatusServiceUnavailable} {
		d := newDesk(t)
		old, next := newReceiver(t), newReceiver(t)
		e, _ := d.add(old.URL)
		old.answers(func(w http.ResponseWriter, _ *http.Request) {
			_, err := d.Change(context.WithoutCancel(t.Context()), operator, e.ID, webhook.Change{URL: &next.URL})
			d.must(err)
			w.WriteHeader(code)
		})
		d.events(1)
		d.work()
		d.work()
		if got := next.take(); len(got) != 1 || d.endpoint(e.ID).Status != webhook.Enabled {
			t.Errorf("after %d from the old address, the new one got %d events, and the endpoint is %+v", code, len(got), d.endpoint(e.ID))
		}
	}
}

// An instance's clock was a day ahead while it delivered, and is corrected. The next event is delivered at once.
func TestDelivery_ClockWasAhead(t *testing.T) {
	d := newDesk(t)
	to := newReceiver(t)
	d.add(to.URL)
	d.wait(24 * time.Hour)
	d.events(1)
	d.work()
	if got := to.take(); len(got) != 1 {
		t.Fatalf("%d events by the clock that is ahead", len(got))
	}
	d.wait(-24 * time.Hour)
	d.events(1)
	d.work()
	if got := to.take(); len(got) != 1 {
		t.Errorf("%d events by the right clock, want 1", len(got))
	}
}

// TestDelivery_NotWritten_HarmsNoOther has an event that can't be written: nothing is posted in its place, the other is delivered, and the
// endpoint is not to blame.
func TestDelivery_NotWritten_HarmsNoOther(t *testing.T) {
	for name, fail := range map[string]func() error{
		"an error": func() error { return errors.New("the row can't be read") },
		"a panic":  func() error { panic("an odd event") },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			r := newReceiver(t)
			e, _ := d.add(r.URL)
			bad := d.events(2)[0].ID
			write := d.options.Bodies
			d.options.Bodies = func(ctx context.Context, e event.Event) ([]byte, error) {
				if e.ID == bad {
					return nil, fail()
				}
				return write(ctx, e)
			}
			var err error
			d.Service, err = webhook.New(d.options)
			d.must(err)
			d.work()
			if got := r.take(); len(got) != 1 || got[0].id() == bad {
				t.Errorf("delivered are %v", got)
			}
			for _, delivery := range d.deliveries(webhook.Filter{}) {
				if isBad := delivery.EventID == bad; isBad == (delivery.Status == webhook.Delivered) {
					t.Errorf("the delivery is %+v", delivery)
				}
			}
			if got := d.endpoint(e.ID); got.Failures != 0 || got.Status != webhook.Enabled {
				t.Errorf("the endpoint is %+v", got)
			}
		})
	}
}

// TestDelivery_NotBegun_IsNoAttempt has many deliveries due at an endpoint that begins to fail: those that were taken and not posted
// any more have all their attempts before them.
func TestDelivery_NotBegun_IsNoAttempt(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	r.status(http.StatusBadGateway)
	d.add(r.URL)
	d.events(40)
	d.work()
	posted, attempts := len(r.take()), int64(0)
	for _, delivery := range d.deliveries(webhook.Filter{}) {
		attempts += delivery.Attempt
	}
	if posted == 0 || posted == 40 || attempts != int64(posted) {
		t.Errorf("%d of 40 deliveries were posted, and %d attempts are counted", posted, attempts)
	}
}

// An endpoint that hangs is tried with few deliveries, and others get theirs meanwhile.
func TestDelivery_AHangingReceiverDelaysNobody(t *testing.T) {
	d := newDesk(t)
	hanging, well := newReceiver(t), newReceiver(t)
	release := make(chan struct{})
	defer close(release)
	hanging.answers(func(http.ResponseWriter, *http.Request) { <-release })
	slow, _ := d.add(hanging.URL)
	d.add(well.URL)
	d.options.Sender = impatient{d.options.Sender}
	var err error
	d.Service, err = webhook.New(d.options)
	d.must(err)
	d.events(100)
	d.work()
	if got := len(well.take()); got != 100 {
		t.Errorf("the other endpoint got %d events, want 100", got)
	}
	if got := len(hanging.take()); got > webhook.MaxInFlight {
		t.Errorf("%d deliveries were tried at an endpoint that hangs, want at most %d", got, webhook.MaxInFlight)
	}
	if got := d.endpoint(slow.ID); got.Failures != 1 || !got.RetryAt.After(d.now()) {
		t.Errorf("the endpoint that hangs is %+v", got)
	}
	tried := 0
	for range 5 {
		d.wait(6 * time.Minute)
		d.work()
		tried += len(hanging.take())
	}
	if tried != 5 {
		t.Errorf("while it hangs, %d deliveries were tried in five rounds, want one in each", tried)
	}
	hanging.status(http.StatusOK)
	d.wait(7 * time.Minute)
	d.work()
	if waiting := d.deliveries(webhook.Filter{Endpoint: slow.ID, Status: webhook.Pending}); len(waiting) > 13 {
		t.Errorf("once it answers, %d deliveries wait", len(waiting))
	}
}

// impatient waits a tenth of a second for an answer.
type impatient struct{ webhook.Sender }

func (i impatient) Send(ctx context.Context, m webhook.Message) (webhook.Answer, error) {
	if !strings.HasSuffix(m.URL, "/") {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
	}
	return i.Sender.Send(ctx, m)
}

// Two instances work at once, and one dies between sending and recording.
func TestDelivery_TwoInstancesAtLeastOnce(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	d.add(r.URL)
	d.add(r.URL + "/other")
	dying := d.options
	var sent atomic.Int64
	dying.Sender = sendFunc(func(ctx context.Context, m webhook.Message) (webhook.Answer, error) {
		answer, err := d.options.Sender.Send(ctx, m)
		sent.Add(1)
		return answer, err
	})
	dying.Store = deadAfter{d.options.Store, &sent}
	second, err := webhook.New(dying)
	d.must(err)
	events := d.events(50)
	if leases, err := second.LeaseDue(t.Context(), 1); err != nil || len(leases) != 1 {
		t.Fatalf("the instance that dies leased %v, %v", leases, err)
	} else if err := second.Step(t.Context(), leases[0]); !errors.Is(err, errDied) {
		t.Fatalf("the instance that dies: %v", err)
	}
	d.work()
	d.wait(2 * time.Minute)
	d.work()
	ids := map[string]int{}
	for _, g := range r.take() {
		ids[g.id()]++
	}
	for _, e := range events {
		if ids[e.ID] < 2 {
			t.Errorf("event %s was delivered %d times to two endpoints", e.ID, ids[e.ID])
		}
	}
	for _, delivery := range d.deliveries(webhook.Filter{}) {
		if delivery.Status != webhook.Delivered {
			t.Errorf("left is %+v", delivery)
		}
	}
}

var errDied = errors.New("the instance died")

type sendFunc func(context.Context, webhook.Message) (webhook.Answer, error)

func (f sendFunc) Send(ctx context.Context, m webhook.Message) (webhook.Answer, error) {
	return f(ctx, m)
}

// deadAfter is a store that an instance no longer reaches once it has sent.
type deadAfter struct {
	webhook.Store
	sent *atomic.Int64
}

func (s deadAfter) InTx(ctx context.Context, fn func(webhook.Tx) error) error {
	if s.sent.Load() > 0 {
		return errDied
	}
	return s.Store.InTx(ctx, fn)
}

func TestRedeliver(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	e, _ := d.add(r.URL)
	events := d.events(5)
	d.work()
	r.take()
	redeliver := func(from, through int, endpoint string) (int, error) {
		of := webhook.Redelivery{Event: events[from].ID, Endpoint: endpoint}
		if through >= 0 {
			of.Through = events[through].ID
		}
		return d.Redeliver(t.Context(), of)
	}
	_, after, err := d.Rotate(t.Context(), operator, e.ID)
	d.must(err)
	n, err := redeliver(1, 3, e.ID)
	d.must(err)
	again, err := redeliver(1, 3, e.ID)
	d.must(err)
	d.work()
	got := r.take()
	if n != 3 || again != 3 || len(got) != 3 {
		t.Errorf("%d, then %d, were to be sent again, and %d were", n, again, len(got))
	}
	if valid := verify(t, after, got); slices.Contains(valid, false) {
		t.Errorf("with the new secret they are %v", valid)
	}
	if n, err = redeliver(0, -1, ""); n != 1 || err != nil {
		t.Errorf("to all endpoints: %d, %v", n, err)
	}
	for name, err := range map[string]error{
		"backwards":           func() error { _, err := redeliver(3, 1, e.ID); return err }(),
		"without an endpoint": func() error { _, err := redeliver(1, 3, ""); return err }(),
		"no endpoint's":       func() error { _, err := redeliver(1, 3, "whe_none"); return err }(),
		"no event":            func() error { _, err := d.Redeliver(t.Context(), webhook.Redelivery{Event: "evt_none"}); return err }(),
	} {
		if fault.From(err) == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStep_GoesOnWhileAllIsTaken has more due than is taken at a time, and no rest in between for as long as a step may take.
func TestStep_GoesOnWhileAllIsTaken(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	d.add(r.URL)
	step := func() int {
		t.Helper()
		leases, err := d.LeaseDue(t.Context(), 20)
		d.must(err)
		if len(leases) != 1 {
			t.Fatalf("%d endpoints are leased", len(leases))
		}
		d.must(d.Step(t.Context(), leases[0]))
		return len(r.take())
	}
	n := len(d.events(70))
	if got := step(); got != n {
		t.Errorf("a step delivers %d of %d", got, n)
	}
	var once sync.Once
	r.answers(func(http.ResponseWriter, *http.Request) { once.Do(func() { d.wait(3 * time.Second) }) })
	n = len(d.events(70))
	first := step()
	if second := step(); first >= n || first+second != n {
		t.Errorf("a slow step delivers %d, and the next %d, of %d", first, second, n)
	}
}

// TestRedeliver_DuringAnAttempt asks for an event again while an attempt runs at an endpoint that fails: the next follows at once.
func TestRedeliver_DuringAnAttempt(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	e, _ := d.add(r.URL)
	r.status(http.StatusInternalServerError)
	d.events(1)
	d.work()
	d.wait(time.Minute)
	pending := d.deliveries(webhook.Filter{Endpoint: e.ID})[0]
	attempts := 0
	r.answers(func(w http.ResponseWriter, _ *http.Request) {
		if attempts++; attempts > 1 {
			return
		}
		if n, err := d.Redeliver(t.Context(), webhook.Redelivery{Event: pending.EventID, Endpoint: e.ID}); n != 1 || err != nil {
			t.Errorf("made due are %d, %v", n, err)
		}
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusInternalServerError)
	})
	d.work()
	if got := d.deliveries(webhook.Filter{Endpoint: e.ID}); len(got) != 1 || got[0].Status != webhook.Delivered || attempts != 2 {
		t.Errorf("after %d attempts it is %+v", attempts, got)
	}
}

// A row that was changed by hand is not delivered to, and no change of ours approves it.
func TestTamperedEndpoint(t *testing.T) {
	d := newDesk(t)
	r, mallory := newReceiver(t), newReceiver(t)
	e, _ := d.add(r.URL)
	d.place.ByHand(t, `UPDATE webhook_endpoints SET url = '`+mallory.URL+`'`)
	d.events(1)
	if d.work(); len(mallory.take())+len(r.take()) > 0 {
		t.Error("an event was delivered to an endpoint that was tampered with")
	}
	description := "ours"
	_, change := d.Change(t.Context(), operator, e.ID, webhook.Change{Description: &description})
	_, _, rotate := d.Rotate(t.Context(), operator, e.ID)
	_, test := d.Test(t.Context(), e.ID)
	for _, err := range []error{change, rotate, test} {
		if !errors.Is(err, webhook.ErrTampered) {
			t.Errorf("a change of it: %v", err)
		}
	}
	d.must(d.Remove(t.Context(), operator, e.ID))
}

// TestChange_AtOnce has operators change one endpoint at once: each waits for the other, and none takes the other's change for
// tampering.
func TestChange_AtOnce(t *testing.T) {
	d := newDesk(t)
	e, _ := d.add("https://shop.example/hook")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			description := fmt.Sprint("change ", i)
			if _, err := d.Change(t.Context(), operator, e.ID, webhook.Change{Description: &description}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := d.Endpoint(t.Context(), e.ID); err != nil || got.Tampered {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestTamperedEndpoint_OldCopy puts back the row of an endpoint that an operator changed, and of one that was removed.
func TestTamperedEndpoint_OldCopy(t *testing.T) {
	d := newDesk(t)
	r, former := newReceiver(t), newReceiver(t)
	e, _ := d.add(former.URL)
	d.place.ByHand(t, `CREATE TABLE kept_endpoints AS SELECT * FROM webhook_endpoints`)
	const putBack = `DELETE FROM webhook_endpoints; INSERT INTO webhook_endpoints SELECT * FROM kept_endpoints`
	wantNothing := func(name string) {
		t.Helper()
		d.place.ByHand(t, putBack)
		d.events(1)
		if d.work(); len(former.take())+len(r.take()) > 0 {
			t.Errorf("%s: an event was delivered to what the endpoint was", name)
		}
		if got, err := d.Endpoint(t.Context(), e.ID); err != nil || !got.Tampered {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	_, err := d.Change(t.Context(), operator, e.ID, webhook.Change{URL: &r.URL})
	d.must(err)
	wantNothing("changed")
	d.must(d.Remove(t.Context(), operator, e.ID))
	wantNothing("removed")
}

func TestTest(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	e, secret := d.add(r.URL)
	r.answers(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "welcome\x00 ", secret, strings.Repeat("-", 100_000))
	})
	result, err := d.Test(t.Context(), e.ID)
	d.must(err)
	if result.Status != 200 || !strings.HasPrefix(result.Body, "welcome whsec_…--") || len(result.Body) > 2048 {
		t.Errorf("the result is %+v", result)
	}
	got := r.take()
	if valid := verify(t, secret, got); !slices.Equal(valid, []bool{true}) || !strings.Contains(string(got[0].body), `"type":"ping"`) {
		t.Errorf("the test was %s, valid %v", got[0].body, valid)
	}
	for range 10 {
		_, err = d.Test(t.Context(), e.ID)
	}
	if !errors.Is(err, webhook.ErrTestedOften) {
		t.Errorf("many tests: %v", err)
	}
	r.Close()
	d.wait(time.Hour)
	if result, err = d.Test(t.Context(), e.ID); err != nil || result.Status != 0 || result.Problem == "" || strings.Contains(result.Problem, "http://") {
		t.Errorf("without a receiver: %+v, %v", result, err)
	}
}

func TestCheckURL(t *testing.T) {
	for address, valid := range map[string]bool{
		"https://shop.example/hooks?x=1": true, "http://localhost:1/x": true, "http://127.0.0.1": true, "http://[::1]:9/": true,
		"http://shop.example": false, "ftp://shop.example": false, "https://": false, "shop.example": false, "": false,
		"https://user:pass@shop.example": false, "https://shop.example/#x": false, "https://shop.example/a b": false, "https://shop.example/\n": false,
		"https://shop.example/" + strings.Repeat("x", 1979): true, "https://shop.example/" + strings.Repeat("x", 1980): false,
	} {
		if problem := webhook.CheckURL(address); (problem == "") != valid {
			t.Errorf("%.60s: %q", address, problem)
		}
	}
}

// The secrets are in the database encrypted, and in no log.
func TestSecretsAreKept(t *testing.T) {
	d := newDesk(t)
	r := newReceiver(t)
	r.status(500)
	e, secret := d.add(r.URL + "/?token=hush")
	d.events(1)
	d.work()
	if stored := d.endpoint(e.ID); strings.Contains(stored.Secret, secret) || strings.Contains(stored.Secret, strings.TrimPrefix(secret, "whsec_")) {
		t.Error("a secret is stored as it is")
	}
	if strings.Contains(d.log.String(), "hush") || strings.Contains(d.log.String(), "whsec_") {
		t.Errorf("the log holds a secret: %s", d.log.String())
	}
}
