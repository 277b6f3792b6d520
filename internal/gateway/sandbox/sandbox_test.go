package sandbox_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/id"
	"bursar/internal/money"
)

const (
	ownAccount    = "7878780080316316"
	webhookSecret = "webhook-secret"
	settleAfter   = 20 * time.Millisecond
)

// fixture is a sandbox that runs, a receiver of its webhooks, and a client of it.
type fixture struct {
	t        testing.TB
	url      string
	client   *razorpayx.Client
	received *receiver
	sandbox  *sandbox.Sandbox
	stop     func()
}

func options() sandbox.Options {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		panic(err)
	}
	return sandbox.Options{
		KeyID: "rzp_test_key", KeySecret: "key-secret", AccountNumber: ownAccount, WebhookSecret: webhookSecret,
		WebhookRetry: 10 * time.Millisecond, SettleAfter: settleAfter, Currency: inr, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler),
	}
}

func open(t testing.TB, change func(*sandbox.Options)) *fixture {
	t.Helper()
	w := &fixture{t: t, received: newReceiver(t)}
	o := options()
	o.WebhookURL = w.received.url
	if change != nil {
		change(&o)
	}
	s, err := sandbox.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	w.sandbox, w.url = s, server.URL
	w.stop = sync.OnceFunc(func() {
		server.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	t.Cleanup(w.stop)
	w.client, err = razorpayx.New(razorpayx.Options{
		BaseURL: server.URL + "/v1", KeyID: o.KeyID, KeySecret: o.KeySecret, AccountNumber: ownAccount,
		Currency: o.Currency, Now: time.Now, Timeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// receiver takes webhooks, and checks them as the service does.
type receiver struct {
	url   string
	reads *razorpayx.Webhooks

	mu            sync.Mutex
	notifications []gateway.Notification
	events        []razorpayx.Event
	bodies        []json.RawMessage
	// refuse is how many deliveries are yet to be refused.
	refuse int
	// slow runs before an event is taken.
	slow func(name string)
}

func newReceiver(t testing.TB) *receiver {
	t.Helper()
	reads, err := razorpayx.NewWebhooks("next-secret", webhookSecret)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{reads: reads}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		notification, err := r.reads.Read(req.Header, body)
		var event razorpayx.Event
		if err != nil || json.Unmarshal(body, &event) != nil {
			t.Errorf("a webhook came that can't be read: %v: %s", err, body)
		}
		if r.slow != nil {
			r.slow(event.Event)
		}
		r.take(w, notification, event, body)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) take(w http.ResponseWriter, notification gateway.Notification, event razorpayx.Event, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse > 0 {
		r.refuse--
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	r.notifications, r.events, r.bodies = append(r.notifications, notification), append(r.events, event), append(r.bodies, body)
}

// about lists the events that came about a reference, in the order in which they came.
func (r *receiver) about(reference string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := []string{}
	for i, n := range r.notifications {
		if n.Reference == reference {
			names = append(names, r.events[i].Event)
		}
	}
	return names
}

// eventually waits until done says so; a test that waits in vain fails.
func (w *fixture) eventually(what string, done func() bool) {
	w.t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.t.Fatalf("waited in vain for %s", what)
}

// beneficiary makes a fund account whose number has the ending.
func (w *fixture) beneficiary(ending string) gateway.VerificationRequest {
	w.t.Helper()
	a := gateway.VerificationRequest{Account: id.New("bka_", time.Now())}
	d := gateway.Destination{Holder: "Asha Rao", IFSC: "HDFC0000053", AccountNumber: "5010001234" + ending}
	var err error
	if a.Beneficiary, err = w.client.EnsureBeneficiary(w.t.Context(), a.Account, d); err != nil {
		w.t.Fatal(err)
	}
	return a
}

// order prepares a payout to a new beneficiary with the ending, and returns its reference and body.
func (w *fixture) order(ending string, amount money.Amount) (reference, body string) {
	w.t.Helper()
	reference = id.New("pyt_", time.Now())
	account := w.beneficiary(ending)
	return reference, w.prepare(gateway.Order{Reference: reference, Beneficiary: account.Beneficiary, Account: account.Account, Amount: amount})
}

// prepare prepares an order in rupees of some seller's, by IMPS and to some account unless it says
// otherwise, with a fee of one rupee.
func (w *fixture) prepare(o gateway.Order) string {
	w.t.Helper()
	o.Currency, o.Seller, o.Gross = "INR", "usr_0Tz3aB9xQ2mK7LpW4sYd1eHc", o.Amount+100
	o.Rail = cmp.Or(o.Rail, "IMPS")
	o.Account = cmp.Or(o.Account, "bka_0Tz3aB9xQ2mK7LpW4sYd1eHc")
	body, err := w.client.Prepare(o)
	if err != nil {
		w.t.Error(err)
	}
	return body
}

// pay submits an order that must be accepted.
func (w *fixture) pay(ending string, amount money.Amount) gateway.Report {
	w.t.Helper()
	reference, body := w.order(ending, amount)
	return w.submit(reference, body)
}

func (w *fixture) submit(reference, body string) gateway.Report {
	w.t.Helper()
	s := w.client.Submit(w.t.Context(), reference, body)
	if s.Outcome != gateway.Accepted {
		w.t.Fatalf("outcome %d, %s: %s", s.Outcome, s.ReasonCode, s.Reason)
	}
	if s.Report.Reference != reference {
		w.t.Fatalf("asked for %s, got %+v", reference, s.Report)
	}
	return s.Report
}

func (w *fixture) fetch(gatewayID string) gateway.Report {
	w.t.Helper()
	r, err := w.client.Fetch(w.t.Context(), gatewayID)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// reaches waits until the payout is in the progress, and returns it.
func (w *fixture) reaches(gatewayID string, want gateway.Progress) gateway.Report {
	w.t.Helper()
	var r gateway.Report
	w.eventually(fmt.Sprintf("%s to be %s", gatewayID, want), func() bool {
		r = w.fetch(gatewayID)
		return r.Progress == want
	})
	return r
}

// call makes a call without the client, and reads a JSON answer into out unless it is nil.
func (w *fixture) call(method, path, body string, header http.Header, out any) int {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		w.t.Fatal(err)
	}
	req.SetBasicAuth("rzp_test_key", "key-secret")
	maps.Copy(req.Header, header)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	if out == nil {
		out = &json.RawMessage{}
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode
}

// control makes a call of the control API that must succeed.
func (w *fixture) control(method, path, body string, out any) {
	w.t.Helper()
	if status := w.call(method, path, body, nil, out); status != http.StatusOK {
		w.t.Fatalf("%s %s: %d", method, path, status)
	}
}

func (w *fixture) moves(reference string) []sandbox.Move {
	w.t.Helper()
	var moves []sandbox.Move
	w.control("GET", "/control/moves?reference_id="+reference, "", &moves)
	return moves
}

func (w *fixture) balance() int64 {
	w.t.Helper()
	var list razorpayx.Collection[razorpayx.BankingBalance]
	w.control("GET", "/v1/banking_balances", "", &list)
	return list.Items[0].Amount
}

func inFile(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "sandbox.db")
}
