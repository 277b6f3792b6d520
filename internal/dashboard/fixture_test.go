package dashboard_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"bursar/internal/api"
	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/bank/ifsc"
	"bursar/internal/dashboard"
	"bursar/internal/decision"
	"bursar/internal/event"
	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/health"
	"bursar/internal/inbox"
	"bursar/internal/keyset"
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

const password = "correct horse battery"

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

// fixture is the pages over real services, real SQLite, the sandbox gateway and the API's middleware.
type fixture struct {
	t      *testing.T
	clock  *clock
	log    *logBuffer
	server *httptest.Server

	place   storetest.Place
	db      *store.DB
	mailbox *storetest.Mailbox
	mails   *mails
	auth    *auth.Service
	bank    *bank.Service
	sales   *sale.Service
	payouts *payout.Service
	proofs  *proof.Service
	events  *event.Service
	// webhooks delivers to what this machine listens on.
	webhooks *webhook.Service
	// reconciling reads the sandbox's statement.
	reconciling *reconcile.Service
	audited     *audited
	health      *workHealth
	audits      *health.Audits
	gateway     string // the sandbox's address
	// jobs are what requests began in the background, for a test to run.
	jobs chan func(context.Context)
}

func TestOnPostgres(t *testing.T) { storetest.OnPostgres(t) }

func openFixture(t *testing.T, change ...func(*dashboard.Options)) *fixture {
	t.Helper()
	h := &fixture{
		t: t, log: &logBuffer{}, clock: &clock{now: time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)},
		jobs: make(chan func(context.Context), 10),
	}
	logger, err := telemetry.NewLogger(h.log, slog.LevelDebug, telemetry.JSON)
	must(t, err)
	h.openServices(logger)
	must(t, h.payouts.ReconcileStartup(t.Context()))

	// The public address is the server's own, which is known before the handler is made.
	var handler http.Handler
	h.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(h.server.Close)
	at, err := url.Parse(h.server.URL)
	must(t, err)
	h.audits = &health.Audits{Run: h.audited.Audit, Background: func(job func(context.Context)) { h.jobs <- job }, Now: h.clock.Now, Logger: logger}
	options := dashboard.Options{
		Auth: h.auth, Bank: h.bank, Sales: h.sales, Payouts: h.payouts, Search: search.Service{Store: h.db, Currency: rupees(t)}, Inbox: h.inbox(), Ledger: h.audited, Reconciling: h.reconciling, Health: h.health, Audits: h.audits, Statements: h.proofs, Mails: h.mails, Webhooks: h.webhooks,
		Currency: rupees(t), BaseURL: at, Zone: time.UTC, Now: h.clock.Now, Logger: logger,
	}
	for _, c := range change {
		c(&options)
	}
	pages, err := dashboard.New(options)
	must(t, err)
	handler, err = api.New(api.Options{
		Auth: h.auth, Bank: h.bank, Sales: h.sales, Payouts: h.payouts, Search: search.Service{Store: h.db, Currency: rupees(t)}, Inbox: h.inbox(), Decisions: h.db, Ledger: h.db, Reconciling: h.reconciling, Mails: h.mails, Health: h.health, Audits: h.audits, Statements: h.proofs, Events: h.events, Endpoints: h.webhooks, Pages: pages,
		Webhooks: map[gateway.Name]gateway.ReadWebhook{"razorpayx": func(http.Header, []byte) (gateway.Notification, error) { return gateway.Notification{}, nil }},
		Currency: rupees(t), BaseURL: at,
		Ping: func(context.Context) error { return nil }, Draining: func() bool { return false },
		Now: h.clock.Now, Logger: logger, Metrics: telemetry.NewMetrics(),
	})
	must(t, err)
	return h
}

// nobodyAsked is a provider that has no more than its button.
type nobodyAsked struct{ auth.Provider }

func (nobodyAsked) Label() string { return "Example <ID>" }

func (nobodyAsked) Issuer() string { return "https://id.example" }

// proveAbove is more than most tests withdraw.
const proveAbove = 500_000_00

func (h *fixture) openServices(logger *slog.Logger) {
	t := h.t
	t.Helper()
	dir := t.TempDir()
	h.place = storetest.NewPlace(t)
	h.db = h.place.Open(t)
	h.audited, h.health = &audited{DB: h.db}, &workHealth{fixture: h}
	keys, err := keyset.Open(t.Context(), keyset.File(filepath.Join(dir, "keys.json")))
	must(t, err)
	h.db.UseKeys(keys)
	h.audited.keys = keys
	client := h.openGateway(dir, logger)
	h.mailbox = storetest.NewMailbox(t, h.db, keys, h.clock.Now)
	h.mails = &mails{Mailbox: h.mailbox}
	h.auth, err = auth.New(auth.Options{
		Store: h.db.Auth(), Keys: keys, Encrypter: keys, Mails: h.mailbox, Now: h.clock.Now, Logger: logger,
		Providers: map[auth.ProviderID]auth.Provider{auth.ProviderA: nobodyAsked{}},
		Issuer:    "http://127.0.0.1:8080", PublicAddress: "http://127.0.0.1:8080", RefreshGrace: 10 * time.Second, CheapHashes: true, Throttle: true,
	})
	must(t, err)
	h.bank, err = bank.New(bank.Options{
		Store: h.db.Bank(), Keys: keys, Mails: h.mailbox, Gateways: gateway.Only(client), Directory: ifsc.New(),
		Proofs: storetest.Proofs{Auth: func() *auth.Service { return h.auth }}, Now: h.clock.Now, Logger: logger,
	})
	must(t, err)
	h.sales, err = sale.New(sale.Options{Store: h.db.Sales(), Now: h.clock.Now, HoldingPeriod: 72 * time.Hour, Zone: time.UTC})
	must(t, err)
	fee, err := payout.ParseFee("5+0.5%", rupees(t))
	must(t, err)
	h.payouts, err = payout.New(payout.Options{
		Store: h.db.Payouts(), Gateways: gateway.Only(client), Beneficiaries: h.bank, Currency: rupees(t), Minimum: 500_00, Fee: fee,
		ProveAbove: proveAbove, Proofs: storetest.Proofs{Auth: func() *auth.Service { return h.auth }}, Mails: h.mailbox,
		Arrival: payout.NewArrival(rupees(t), time.UTC, payout.Holidays{}), Lease: time.Minute, CancelWindow: 30 * time.Second,
		GracePeriod: 10 * time.Minute, ReversalsEvery: 5 * time.Minute, Zone: time.UTC, Now: h.clock.Now, Logger: logger, StateChanged: func(payout.State, payout.State) {},
	})
	must(t, err)
	h.reconciling, err = reconcile.New(reconcile.Options{
		Store: h.db.Reconciling(client.Name()), Statement: client, Payouts: h.payouts, Currency: rupees(t), GracePeriod: time.Minute, Zone: time.UTC, Now: h.clock.Now, Logger: logger,
	})
	must(t, err)
	h.events, err = event.New(event.Options{Store: h.db, Now: h.clock.Now})
	must(t, err)
	post, err := sender.New(sender.Options{Loopback: true, Now: h.clock.Now})
	must(t, err)
	h.webhooks, err = webhook.New(webhook.Options{
		Store: h.db.Webhooks(), Keys: keys, Sender: post, Mails: h.mailbox, Now: h.clock.Now, Logger: logger,
		Bodies: func(context.Context, event.Event) ([]byte, error) { return []byte(`{}`), nil },
	})
	must(t, err)
	h.proofs, err = proof.New(proof.Options{
		Store: h.db.Proofs(), Signer: keys, Keys: keys, Currency: rupees(t), Every: time.Hour, Zone: time.UTC, Now: h.clock.Now, Logger: logger,
	})
	must(t, err)
}

// openGateway starts the sandbox gateway, which settles as fast as it can, and makes a client of it.
func (h *fixture) openGateway(dir string, logger *slog.Logger) *razorpayx.Client {
	t := h.t
	t.Helper()
	box, err := sandbox.New(sandbox.Options{
		Path: filepath.Join(dir, "sandbox.db"), KeyID: "rzp_test_key", KeySecret: "rzp_test_secret",
		AccountNumber: "7878780080316316", Currency: rupees(t), Now: h.clock.Now, Logger: logger,
	})
	must(t, err)
	server := httptest.NewServer(box.Handler())
	h.gateway = server.URL
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- box.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
		server.Close()
		must(t, box.Close())
	})
	client, err := razorpayx.New(razorpayx.Options{
		BaseURL: server.URL + "/v1", KeyID: "rzp_test_key", KeySecret: "rzp_test_secret",
		AccountNumber: "7878780080316316", Currency: rupees(t), Now: h.clock.Now,
	})
	must(t, err)
	return client
}

func rupees(t testing.TB) money.Currency {
	t.Helper()
	c, err := money.ParseCurrency("INR")
	must(t, err)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// browser is somebody who looks at pages: it keeps cookies, and follows no redirect by itself.
type browser struct {
	t       *testing.T
	fixture *fixture
	client  *http.Client
	header  http.Header // sent with each request
}

func (h *fixture) browse() *browser {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	must(h.t, err)
	return &browser{h.t, h, &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, http.Header{}}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func (b *browser) do(r *http.Request) answer {
	b.t.Helper()
	maps.Copy(r.Header, b.header)
	response, err := b.client.Do(r)
	must(b.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(b.t, err)
	return answer{response.StatusCode, response.Header, string(body)}
}

func (b *browser) get(path string) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.fixture.server.URL+path, nil)
	must(b.t, err)
	return b.do(r)
}

// post sends a form as the page of ours would: with the origin that a browser adds.
func (b *browser) post(path string, fields ...string) answer {
	b.t.Helper()
	return b.postFrom(b.fixture.server.URL, path, fields...)
}

func (b *browser) postFrom(origin, path string, fields ...string) answer {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.fixture.server.URL+path, strings.NewReader(form.Encode()))
	must(b.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", origin)
	return b.do(r)
}

// review fills in the form for a payout, whose answer is an address of its own.
func (b *browser) review(fields ...string) answer {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.get("/dashboard/payouts/review?" + form.Encode())
}

// want fails the test unless the status is so.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// leadsTo fails the test unless the answer sends the browser to that path.
func (a answer) leadsTo(t *testing.T, path string) answer {
	t.Helper()
	a.want(t, http.StatusSeeOther)
	if got := a.header.Get("Location"); got != path {
		t.Fatalf("leads to %s, want %s", got, path)
	}
	return a
}

// says fails the test unless all the texts are in the page, however its white space falls.
func (a answer) says(t *testing.T, texts ...string) answer {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("the page does not say %q: %s", text, a.body)
		}
	}
	return a
}

func (a answer) saysNot(t *testing.T, texts ...string) answer {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			t.Errorf("the page says %q", text)
		}
	}
	return a
}

// hiddenValue is what a form of the page carries along.
func (a answer) hiddenValue(t *testing.T, name string) string {
	t.Helper()
	match := regexp.MustCompile(`<input type="hidden" name="` + name + `" value="([^"]*)"`).FindStringSubmatch(a.body)
	if match == nil {
		t.Fatalf("the page has no hidden %s: %s", name, a.body)
	}
	return match[1]
}

// person is a browser whose user is signed in.
type person struct {
	*browser
	id, email string
}

// signUp makes a user the operator's way, and signs them in on the page.
func (h *fixture) signUp(name string, role auth.Role) person {
	h.t.Helper()
	email := strings.ToLower(strings.ReplaceAll(name, " ", ".")) + "@example.com"
	user, err := h.auth.CreateUser(h.t.Context(), auth.Registration{Name: name, Email: email, Password: password, Role: role})
	must(h.t, err)
	p := person{h.browse(), user.ID, email}
	p.post("/login", "email", email, "password", password).leadsTo(h.t, "/dashboard")
	return p
}

// inbox lists what waits.
func (h *fixture) inbox() inbox.Service {
	return inbox.Service{Payouts: h.payouts, Bank: h.bank, Reconciling: h.reconciling, Webhooks: h.webhooks, Store: h.db.Inbox(), Now: h.clock.Now}
}

// earn records a sale, available at once.
func (h *fixture) earn(p person, saleID string, amount money.Amount) {
	h.t.Helper()
	now := h.clock.Now()
	_, _, err := h.sales.Record(h.t.Context(), sale.NewSale{ID: saleID, Seller: p.id, Amount: amount, OccurredAt: now, AvailableAt: now})
	must(h.t, err)
	_, err = h.sales.ReleaseDue(h.t.Context())
	must(h.t, err)
}

const accountDigits = "5010012345"

// withBank registers a bank account that ends in the digits, and has it verified.
func (h *fixture) withBank(p person, last4 string) {
	h.t.Helper()
	number, err := bank.ParseNumber(accountDigits + last4)
	must(h.t, err)
	account, err := h.bank.Register(h.t.Context(), bank.Registration{Seller: p.id, Holder: "Asha Rao", Number: number, IFSC: "HDFC0000053"})
	must(h.t, err)
	_, err = h.bank.Resolve(h.t.Context(), decision.By{Admin: "usr_an_admin"}, account.ID, bank.Verdict{Verified: true})
	must(h.t, err)
}

// ask requests a payout.
func (h *fixture) ask(p person, amount money.Amount, notes string) payout.Payout {
	h.t.Helper()
	made, _, err := h.payouts.Request(h.t.Context(), payout.Request{Seller: p.id, Amount: amount, Notes: notes})
	must(h.t, err)
	return made
}

// enrol adds an authenticator app, and returns its secret.
func (h *fixture) enrol(p person) string {
	h.t.Helper()
	enrol := p.post("/dashboard/profile/factors").want(h.t, 200)
	secret := enrol.hiddenValue(h.t, "secret")
	p.post("/dashboard/profile/factors/confirm", "factor", enrol.hiddenValue(h.t, "factor"), "secret", secret, "uri", enrol.hiddenValue(h.t, "uri"),
		"code", h.codeOf(secret)).want(h.t, 200)
	return secret
}

// codeOf is what an authenticator app shows now. The service takes each code once, so the clock moves on.
func (h *fixture) codeOf(secret string) string {
	h.t.Helper()
	h.clock.advance(30 * time.Second)
	code, err := totp.GenerateCode(secret, h.clock.Now())
	must(h.t, err)
	return code
}

// follow takes a payout's steps until it has come to a state.
func (h *fixture) follow(id payout.ID, to payout.State) {
	h.t.Helper()
	for range 200 {
		h.clock.advance(40 * time.Second)
		must(h.t, h.payouts.Step(h.t.Context(), id))
		p, err := h.payouts.Payout(h.t.Context(), payout.Caller{Admin: true}, id)
		must(h.t, err)
		if p.State == to {
			return
		}
		time.Sleep(5 * time.Millisecond) // the sandbox settles in a goroutine of its own
	}
	h.t.Fatalf("payout %s did not come to %s", id, to)
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	must(t, err)
	return u
}

// mails are those of the service; their bodies can be read where a test says so.
type mails struct {
	*storetest.Mailbox
	bodies map[string]string
}

func (m *mails) ShowsBodies() bool { return m.bodies != nil }

func (m *mails) Body(id string) (string, bool, error) {
	body, found := m.bodies[id]
	return body, found, nil
}
