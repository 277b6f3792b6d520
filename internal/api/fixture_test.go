package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/api"
	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/bank/ifsc"
	"bursar/internal/decision"
	"bursar/internal/event"
	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/health"
	"bursar/internal/inbox"
	"bursar/internal/keyset"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/proof"
	"bursar/internal/reconcile"
	"bursar/internal/sale"
	"bursar/internal/search"
	"bursar/internal/store"
	"bursar/internal/storetest"
	"bursar/internal/telemetry"
	"bursar/internal/webhook"
	"bursar/internal/webhook/sender"
)

const (
	webhookSecret = "webhook-secret-for-tests"
	password      = "correct horse battery"
)

// clock is the house's time, which a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// logBuffer is a log that a test can read while the service writes it.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// fixture is the whole service over real HTTP, real SQLite and the sandbox gateway.
type fixture struct {
	t       *testing.T
	clock   *clock
	log     *logBuffer
	metrics *telemetry.Metrics
	place   storetest.Place
	handler http.Handler
	server  *httptest.Server
	spec    *spec

	mailbox     *storetest.Mailbox
	auth        *auth.Service
	authOptions auth.Options
	options     api.Options
	bank        *bank.Service
	sales       *sale.Service
	events      *event.Service
	endpoints   *webhook.Service
	payouts     *payout.Service
	proofs      *proof.Service

	// providers are empty; a test adds its own before it asks.
	providers map[auth.ProviderID]auth.Provider

	serviceKey string
	gatewayURL string
	health     workHealth
	// differences compare the gateway's statement with the ledger.
	differences *reconcile.Service
	db          *store.DB
	keys        *keyset.Set
	draining    bool
	pingError   error
}

// mails are those of the service, whose bodies can't be read.
type mails struct{ *storetest.Mailbox }

func (mails) Body(string) (string, bool, error) { return "", false, nil }

// workHealth is what the instance tells of itself; its backlog is the database's.
type workHealth struct{ h *fixture }

func (w workHealth) Instance() health.Instance {
	return health.Instance{Version: "1.2.3-test", StartedAt: w.h.clock.Now(), Pools: []health.Pool{{Name: "read", InUse: 1, Max: 7, Waited: time.Second}}}
}

func (w workHealth) Loops() []health.Loop {
	return []health.Loop{{Name: "payouts", Every: time.Second, LastPollAt: w.h.clock.Now()}, {Name: "sales", Every: time.Second, LastFailureAt: w.h.clock.Now(), LastError: "no connection"}}
}

func (w workHealth) Backlog(ctx context.Context) (health.Backlog, error) {
	b, err := w.h.db.Watch(ctx, w.h.clock.Now())
	return health.Backlog{Unknown: b.Unknown, MailDue: b.MailDue}, err
}

// change alters a house's options before it opens.
type change func(*api.Options)

func TestOnPostgres(t *testing.T) { storetest.OnPostgres(t) }

func openFixture(t *testing.T, changes ...change) *fixture {
	t.Helper()
	h := &fixture{
		t: t, providers: map[auth.ProviderID]auth.Provider{}, log: &logBuffer{}, metrics: telemetry.NewMetrics(), spec: loadSpec(t),
		clock: &clock{now: time.Date(2026, 11, 20, 9, 30, 0, 123456000, time.UTC)},
	}
	logger, err := telemetry.NewLogger(h.log, slog.LevelDebug, telemetry.JSON)
	must(t, err)
	h.health = workHealth{h}
	h.openServices(logger)
	must(t, h.payouts.ReconcileStartup(t.Context()))
	h.serviceKey, _, err = h.auth.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "tests"}, "operator:tests")
	must(t, err)

	webhooks, err := razorpayx.NewWebhooks(webhookSecret)
	must(t, err)
	o := api.Options{
		Auth: h.auth, Bank: h.bank, Sales: h.sales, Payouts: h.payouts, Search: search.Service{Store: h.db, Currency: rupees(t)}, Inbox: inbox.Service{Payouts: h.payouts, Bank: h.bank, Reconciling: h.differences, Webhooks: h.endpoints, Store: h.db.Inbox(), Now: h.clock.Now}, Decisions: h.db, Ledger: h.db, Reconciling: h.differences, Mails: mails{h.mailbox}, Health: h.health, Statements: h.proofs,
		Audits: &health.Audits{Run: func(ctx context.Context) (ledger.Report, error) { return h.db.Audit(ctx, nil) }, Background: func(job func(context.Context)) { job(t.Context()) }, Now: h.clock.Now, Logger: logger},
		Events: h.events, Endpoints: h.endpoints,
		Webhooks: map[gateway.Name]gateway.ReadWebhook{razorpayx.DefaultName: func(header http.Header, body []byte) (gateway.Notification, error) {
			notification, err := webhooks.Read(header, body)
			notification.Gateway = razorpayx.DefaultName
			return notification, err
		}},
		Currency: rupees(t),
		BaseURL:  &url.URL{Scheme: "http", Host: "127.0.0.1:8080"},
		Ping:     func(context.Context) error { return h.pingError },
		Draining: func() bool { return h.draining },
		Now:      h.clock.Now, Logger: logger, Metrics: h.metrics,
	}
	for _, c := range changes {
		c(&o)
	}
	h.options = o
	h.handler, err = api.New(o)
	must(t, err)
	h.server = httptest.NewServer(h.handler)
	t.Cleanup(h.server.Close)
	return h
}

// proveAbove is more than most tests withdraw.
const proveAbove = 1_000_000_00

// withAuth opens the API again, over an auth service with other options.
func (h *fixture) withAuth(change func(*auth.Options)) {
	h.t.Helper()
	o := h.authOptions
	change(&o)
	service, err := auth.New(o)
	must(h.t, err)
	h.auth, h.options.Auth = service, service
	h.reopen()
}

func (h *fixture) users() *auth.Service { return h.auth }

// reopen opens the API again, with the options as they are now.
func (h *fixture) reopen() {
	h.t.Helper()
	var err error
	h.handler, err = api.New(h.options)
	must(h.t, err)
	h.server = httptest.NewServer(h.handler)
	h.t.Cleanup(h.server.Close)
}

func (h *fixture) openServices(logger *slog.Logger) {
	t := h.t
	t.Helper()
	dir := t.TempDir()
	h.place = storetest.NewPlace(t)
	db := h.place.Open(t)
	h.db = db
	keys, err := keyset.Open(t.Context(), keyset.File(filepath.Join(dir, "keys.json")))
	must(t, err)
	db.UseKeys(keys)
	h.keys = keys

	client := h.openGateway(dir, logger)

	h.mailbox = storetest.NewMailbox(t, db, keys, h.clock.Now)
	h.authOptions = auth.Options{
		CoolDown: 72 * time.Hour,
		Store:    db.Auth(), Keys: keys, Encrypter: keys, Mails: h.mailbox, Providers: h.providers, Now: h.clock.Now, Logger: logger,
		Issuer: "http://127.0.0.1:8080", PublicAddress: "http://127.0.0.1:8080", RefreshGrace: 10 * time.Second, CheapHashes: true, Throttle: true, Tried: h.metrics.Tried,
	}
	h.auth, err = auth.New(h.authOptions)
	must(t, err)
	h.bank, err = bank.New(bank.Options{
		Store: db.Bank(), Keys: keys, Mails: h.mailbox, Gateways: gateway.Only(client), Directory: ifsc.New(), CoolDown: 72 * time.Hour, Proofs: storetest.Proofs{Auth: h.users},
		Now: h.clock.Now, Logger: logger,
	})
	must(t, err)
	h.events, err = event.New(event.Options{Store: db, Now: h.clock.Now})
	must(t, err)
	h.sales, err = sale.New(sale.Options{Store: db.Sales(), Now: h.clock.Now, HoldingPeriod: 72 * time.Hour, Zone: time.UTC})
	must(t, err)
	h.payouts, err = payout.New(payout.Options{
		Store: db.Payouts(), Gateways: gateway.Only(client), Beneficiaries: h.bank, Currency: rupees(t), Minimum: 500_00,
		ProveAbove: proveAbove, Proofs: storetest.Proofs{Auth: h.users}, Mails: h.mailbox,
		Arrival: payout.NewArrival(rupees(t), time.UTC, payout.Holidays{}), Lease: time.Minute, CancelWindow: 30 * time.Second,
		GracePeriod: 10 * time.Minute, ReversalsEvery: 5 * time.Minute, Zone: time.UTC, Now: h.clock.Now, Logger: logger, StateChanged: func(payout.State, payout.State) {},
	})
	must(t, err)
	post, err := sender.New(sender.Options{Loopback: true, Now: h.clock.Now})
	must(t, err)
	h.endpoints, err = webhook.New(webhook.Options{
		Store: db.Webhooks(), Keys: keys, Sender: post, Mails: h.mailbox, Bodies: api.EventBodies(h.events, h.auth, h.bank, rupees(t)), Now: h.clock.Now, Logger: logger,
	})
	must(t, err)
	h.differences, err = reconcile.New(reconcile.Options{
		Store: db.Reconciling(client.Name()), Statement: client, Payouts: h.payouts, Currency: rupees(t), GracePeriod: time.Minute, Zone: time.UTC, Now: h.clock.Now, Logger: logger,
	})
	must(t, err)
	h.proofs, err = proof.New(proof.Options{
		Store: db.Proofs(), Signer: keys, Keys: keys, Currency: rupees(t), Every: time.Hour, Zone: time.UTC, Now: h.clock.Now, Logger: logger,
	})
	must(t, err)
}

func rupees(t *testing.T) money.Currency {
	t.Helper()
	c, err := money.ParseCurrency("INR")
	must(t, err)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// call is one request of a test.
type call struct {
	method string
	path   string
	token  string // for the Authorization header
	body   string
	header map[string]string
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request and checks it and its answer against the description.
func (h *fixture) do(c call) answer {
	h.t.Helper()
	request, err := http.NewRequestWithContext(h.t.Context(), c.method, h.server.URL+c.path, strings.NewReader(c.body))
	must(h.t, err)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range c.header {
		request.Header.Set(name, value)
	}
	return h.send(request, c.body)
}

// send is do for a request that a test made by itself.
func (h *fixture) send(request *http.Request, body string) answer {
	h.t.Helper()
	response, err := http.DefaultTransport.RoundTrip(request)
	must(h.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(h.t, err)
	a := answer{response.StatusCode, response.Header, string(text)}
	h.spec.check(h.t, request, body, a)
	return a
}

// want fails the test unless the status is so.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// failure is the envelope of a failure.
type failure struct {
	Success *bool             `json:"success"`
	Error   string            `json:"error"`
	Code    string            `json:"code"`
	Details map[string]string `json:"details"`
}

// wantFailure fails the test unless the answer is that failure; details are the fields it names.
func (a answer) wantFailure(t *testing.T, status int, code string, details ...string) failure {
	t.Helper()
	a.want(t, status)
	var f failure
	must(t, json.Unmarshal([]byte(a.body), &f))
	if f.Success == nil || *f.Success || f.Error == "" || f.Code != code {
		t.Fatalf("answer %s, want a failure with code %s", a.body, code)
	}
	if len(f.Details) != len(details) {
		t.Errorf("details %v, want exactly %v", f.Details, details)
	}
	for _, field := range details {
		if f.Details[field] == "" {
			t.Errorf("details %v say nothing about %s", f.Details, field)
		}
	}
	return f
}

// read finds a part of the answer by its path, such as "data.user.id". Numbers are json.Number.
func (a answer) read(t *testing.T, path string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.UseNumber()
	var part any
	must(t, decoder.Decode(&part))
	for name := range strings.SplitSeq(path, ".") {
		if list, ok := part.([]any); ok {
			var i int
			_, err := fmt.Sscan(name, &i)
			must(t, err)
			part = list[i]
			continue
		}
		object, ok := part.(map[string]any)
		if !ok {
			t.Fatalf("%s has no %s", a.body, path)
		}
		value, ok := object[name]
		if !ok {
			t.Fatalf("%s has no %s", a.body, path)
		}
		part = value
	}
	return part
}

func (a answer) text(t *testing.T, path string) string {
	t.Helper()
	s, ok := a.read(t, path).(string)
	if !ok {
		t.Fatalf("%s of %s is no text", path, a.body)
	}
	return s
}

// user is somebody who is signed in.
type user struct{ id, email, token, refreshToken string }

// signUp registers somebody with a role; an admin the operator's way.
func (h *fixture) signUp(name string, role auth.Role) user {
	h.t.Helper()
	u := user{email: strings.ToLower(name) + "@example.com"}
	if role == auth.Admin {
		_, err := h.auth.CreateUser(h.t.Context(), auth.Registration{Name: name, Email: u.email, Password: password, Role: role})
		must(h.t, err)
	} else {
		body := fmt.Sprintf(`{"name":%q,"email":%q,"password":%q,"role":%q}`, name, u.email, password, role)
		h.do(call{method: "POST", path: "/api/auth/register", body: body}).want(h.t, 201)
	}
	body := fmt.Sprintf(`{"email":%q,"password":%q}`, u.email, password)
	in := h.do(call{method: "POST", path: "/api/auth/login", body: body}).want(h.t, 200)
	u.id, u.token, u.refreshToken = in.text(h.t, "data.user.id"), in.text(h.t, "data.token"), in.text(h.t, "data.refreshToken")
	return u
}

// earn records a sale of a seller, available at once.
func (h *fixture) earn(seller user, saleID, amount string) {
	h.t.Helper()
	at := h.clock.Now().Format(time.RFC3339Nano)
	body := fmt.Sprintf(`{"saleId":%q,"sellerId":%q,"amount":%s,"occurredAt":%q,"availableAt":%q}`, saleID, seller.id, amount, at, at)
	h.do(call{method: "POST", path: "/api/marketplace/sales", token: h.serviceKey, body: body}).want(h.t, 201)
	_, err := h.sales.ReleaseDue(h.t.Context())
	must(h.t, err)
}

// withBank registers a bank account that ends in the digits, and has an admin verify it.
func (h *fixture) withBank(seller user, last4 string) string {
	h.t.Helper()
	body := fmt.Sprintf(`{"accountHolder":"Asha Rao","accountNumber":"5010012345%s","ifsc":"HDFC0000053"}`, last4)
	id := h.do(call{method: "PUT", path: "/api/bank-account", token: seller.token, body: body}).want(h.t, 200).text(h.t, "data.id")
	_, err := h.bank.Resolve(h.t.Context(), decision.By{Admin: "usr_an_admin"}, bank.ID(id), bank.Verdict{Verified: true})
	must(h.t, err)
	return id
}

// request asks for a payout.
func (h *fixture) request(seller user, body string) answer {
	h.t.Helper()
	return h.do(call{method: "POST", path: "/api/payouts/request", token: seller.token, body: body})
}
