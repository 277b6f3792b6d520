// Package sandbox is RazorpayX for development and tests: an HTTP server that speaks the gateway's
// own API, keeps its records through a crash, and can be set to misbehave.
//
// Everything under /v1 is the vendor's: Basic authentication, contacts, fund accounts, account
// validations, payouts, balances, transactions, signed webhooks, and its errors to the letter. What
// the vendor leaves to luck is chosen by the last four digits of the beneficiary's account number:
//
//	0001  a validation says that the account is invalid
//	0002  the transfer fails and the money returns
//	0003  the transfer completes, then the bank returns it
//	0004  the transfer stays processing
//	0005  the first call that makes the payout commits, and its answer is lost
//	0006  the webhooks arrive before the answer to the call that made the payout
//	0007  webhooks come twice and out of order
//	0008  no webhook ever comes
//	0009  the bank reference (UTR) comes late
//
// Any other account is paid. Each step takes [Options.SettleAfter]; a validation a second at most.
//
// # Control
//
// Everything under /control is the sandbox's own, plain JSON without authentication. It answers 403 unless
// the Host header names a loopback address, and to a browser's cross-origin requests. Amounts are in minor
// units.
//
//	GET    /control/health                  {"status":"ok"}
//	GET    /control/moves[?reference_id=]   all money that moved: an array of {reference_id, payout_id,
//	                                        debit, credit, net, count, status, utr, account_last4},
//	                                        one per reference, in the order of the references. Debit
//	                                        went to the beneficiary, credit came back (fees are apart),
//	                                        count is how many payouts took money under the reference.
//	GET    /control/webhooks[?reference_id=&limit=]  the newest events and how their delivery stands
//	GET    /control/faults                  the faults that are yet to happen
//	POST   /control/faults                  add a [Fault]
//	DELETE /control/faults                  forget them all
//	PUT    /control/balance                 {"amount": n}; queued payouts that it covers start
//	POST   /control/statement               makes the statement wrong: a [StatementChange]
//	DELETE /control/statement               tells every line as it was again; money that moved stays moved
//	PUT    /control/settle-after            {"settle_after": "2s"}
//	PUT    /control/payouts/{id or reference}  {"status": "processed", "reason": "…"}: moves a payout
//	                                        by hand and ends its story; its money and events follow
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"bursar/internal/money"
)

// Options are what a sandbox is made of.
type Options struct {
	// Path is the file of its records; empty is a temporary one that Close removes.
	Path string
	// KeyID and KeySecret are the API key.
	KeyID     string
	KeySecret string
	// AccountNumber is the account that payouts are taken from.
	AccountNumber string
	// WebhookURL is where events go; empty is nowhere.
	WebhookURL    string
	WebhookSecret string
	// WebhookRetry is the wait before a failed delivery is repeated; later ones are longer, in the
	// proportions of 10 seconds, 1 and 5 minutes, and so on for a day. Zero is 10 seconds.
	WebhookRetry time.Duration
	// SettleAfter is how long each step of a payout takes.
	SettleAfter time.Duration
	Currency    money.Currency
	Now         func() time.Time
	Logger      *slog.Logger
	// Profile is which features the gateway offers; empty is [Full].
	Profile Profile
	// Post carries webhooks in a simulation; nil is HTTP.
	Post http.RoundTripper
}

// Sandbox is a gateway. It is safe for concurrent use.
type Sandbox struct {
	o       Options
	records *records
	faults  faults
	handler http.Handler
	hooks   *http.Client

	settleAfter atomic.Int64 // a time.Duration
	// funded means that queued payouts may have become payable.
	funded atomic.Bool
	// settleSoon and deliverSoon wake the loops that rest.
	settleSoon  chan struct{}
	deliverSoon chan struct{}
}

const defaultWebhookRetry = 10 * time.Second

// New makes a sandbox. It answers at once; what happens by itself happens in [Sandbox.Run].
func New(o Options) (*Sandbox, error) {
	switch {
	case o.KeyID == "" || o.KeySecret == "" || o.AccountNumber == "":
		return nil, errors.New("sandbox: needs a key id, its secret and an account number")
	case o.Currency == money.Currency{} || o.Now == nil || o.Logger == nil:
		return nil, errors.New("sandbox: needs a currency, a clock and a logger")
	case !o.Profile.known():
		return nil, fmt.Errorf("sandbox: there is no profile %q", o.Profile)
	case o.SettleAfter < 0 || o.WebhookRetry < 0:
		return nil, errors.New("sandbox: waits must not be below zero")
	case o.WebhookURL != "" && o.WebhookSecret == "":
		return nil, errors.New("sandbox: webhooks need a secret to sign them with")
	}
	if u, err := url.Parse(o.WebhookURL); err != nil || (o.WebhookURL != "" && u.Host == "") {
		return nil, fmt.Errorf("sandbox: %q is no address for webhooks", o.WebhookURL)
	}
	if o.WebhookRetry == 0 {
		o.WebhookRetry = defaultWebhookRetry
	}
	records, err := openRecords(context.Background(), o.Path, o.Now())
	if err != nil {
		return nil, err
	}
	s := &Sandbox{
		o: o, records: records, hooks: newHookClient(o.Post),
		settleSoon: make(chan struct{}, 1), deliverSoon: make(chan struct{}, 1),
	}
	s.settleAfter.Store(int64(o.SettleAfter))
	s.funded.Store(true)
	s.handler = s.routes()
	if err := s.openAccount(); err != nil {
		return nil, errors.Join(err, records.close())
	}
	return s, nil
}

// Handler serves the API and the control API.
func (s *Sandbox) Handler() http.Handler { return s.handler }

// ServeHTTP serves the API and the control API.
func (s *Sandbox) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Run settles payouts and validations and delivers webhooks until ctx ends, and returns nil.
func (s *Sandbox) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		s.repeat(ctx, s.settleSoon, settleDueAt, s.settleDue)
		return nil
	})
	group.Go(func() error { return s.deliverAll(ctx) })
	return group.Wait()
}

// Close ends the sandbox. Requests must have ended before, and Run.
func (s *Sandbox) Close() error {
	s.hooks.CloseIdleConnections()
	return s.records.close()
}

func (s *Sandbox) routes() http.Handler {
	v1 := http.NewServeMux()
	v1.HandleFunc("POST /v1/contacts", answer(s, s.createContact))
	v1.HandleFunc("GET /v1/contacts", answer(s, s.listContacts))
	v1.HandleFunc("GET /v1/contacts/{id}", answer(s, s.readContact))
	v1.HandleFunc("PATCH /v1/contacts/{id}", answer(s, s.switchContact))
	v1.HandleFunc("POST /v1/fund_accounts", answer(s, s.createFundAccount))
	v1.HandleFunc("GET /v1/fund_accounts", answer(s, s.listFundAccounts))
	v1.HandleFunc("GET /v1/fund_accounts/{id}", answer(s, s.readFundAccount))
	v1.HandleFunc("PATCH /v1/fund_accounts/{id}", answer(s, s.switchFundAccount))
	v1.HandleFunc("POST /v1/fund_accounts/validations", answer(s, s.createValidation))
	v1.HandleFunc("GET /v1/fund_accounts/validations", answer(s, s.listValidations))
	v1.HandleFunc("GET /v1/fund_accounts/validations/{id}", answer(s, s.readValidation))
	v1.HandleFunc("POST /v1/payouts", answer(s, s.createPayout))
	v1.HandleFunc("GET /v1/payouts", answer(s, s.listPayouts))
	v1.HandleFunc("GET /v1/payouts/{id}", answer(s, s.readPayout))
	v1.HandleFunc("POST /v1/payouts/{id}/cancel", answer(s, s.cancelPayout))
	v1.HandleFunc("GET /v1/banking_balances", answer(s, s.listBalances))
	v1.HandleFunc("GET /v1/transactions", answer(s, s.listTransactions))
	v1.HandleFunc("GET /v1/transactions/{id}", answer(s, s.readTransaction))
	v1.HandleFunc("/", answer(s, unknownURL))

	control := http.NewServeMux()
	control.HandleFunc("GET /control/health", answer(s, s.health))
	control.HandleFunc("GET /control/moves", s.streamMoves)
	control.HandleFunc("GET /control/webhooks", answer(s, s.listEvents))
	control.HandleFunc("GET /control/faults", answer(s, s.listFaults))
	control.HandleFunc("POST /control/faults", answer(s, s.addFault))
	control.HandleFunc("DELETE /control/faults", answer(s, s.clearFaults))
	control.HandleFunc("PUT /control/balance", answer(s, s.setBalance))
	control.HandleFunc("POST /control/statement", answer(s, s.changeStatement))
	control.HandleFunc("DELETE /control/statement", answer(s, s.rightStatement))
	control.HandleFunc("PUT /control/settle-after", answer(s, s.setSettleAfter))
	control.HandleFunc("PUT /control/payouts/{id}", answer(s, s.movePayoutByHand))
	control.HandleFunc("/", answer(s, unknownURL))

	all := http.NewServeMux()
	all.Handle("/v1/", s.misbehaving(s.authenticated(s.offered(v1))))
	all.Handle("/control/", localOnly(control))
	all.HandleFunc("/", answer(s, unknownURL))
	return all
}

// update writes, and wakes the loops that rest: what was written may be due.
func (s *Sandbox) update(fn func(*tx) error) error {
	err := s.records.update(fn)
	nudge(s.settleSoon)
	nudge(s.deliverSoon)
	return err
}

// nudge wakes a loop that rests.
func nudge(soon chan struct{}) {
	select {
	case soon <- struct{}{}:
	default: // it is awake already
	}
}
