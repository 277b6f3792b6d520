// Package api is the service over HTTP: the interface of openapi.yaml, and nothing that decides.
//
// Every route is in routes.go, and is one typed call made into a handler by handle. Bodies are read
// strictly and all their problems reported at once (body.go, input.go); who is asking is found out
// before anything else is read (gate.go); failures become statuses in one place (errors.go).
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"bursar/internal/bank"
	"bursar/internal/event"
	"bursar/internal/gateway"
	"bursar/internal/health"
	"bursar/internal/inbox"
	"bursar/internal/money"
	"bursar/internal/proof"
	"bursar/internal/reconcile"
	"bursar/internal/sale"
	"bursar/internal/search"
	"bursar/internal/telemetry"
	"bursar/internal/web"
	"bursar/internal/webhook"
)

// Options are what the API is made of.
type Options struct {
	Auth    Auth
	Bank    *bank.Service
	Sales   *sale.Service
	Payouts Payouts
	Search  search.Service
	Inbox   inbox.Service
	// Events is the feed, and Endpoints are where events are delivered.
	Events    *event.Service
	Endpoints *webhook.Service
	// Decisions is the record of what admins decided.
	Decisions Decisions
	Ledger    Ledger
	// Reconciling compares the gateway's statement with the ledger.
	Reconciling *reconcile.Service
	Mails       Mails
	Health      Health
	Audits      *health.Audits
	// Statements proves what the others did.
	Statements *proof.Service
	// Webhooks check and read the gateways' messages, each at /api/gateway/webhooks/ and its name.
	Webhooks map[gateway.Name]gateway.ReadWebhook

	Currency money.Currency
	// BaseURL is the public address. Its scheme decides the cookie's name and attributes.
	BaseURL *url.URL
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies web.Proxies

	// Pages serves every address that is not below /api and none of the API's own. It may be nil.
	Pages http.Handler

	// Ping reports whether the database answers.
	Ping func(context.Context) error
	// Draining reports whether the service is about to stop and wants no new requests.
	Draining func() bool

	Now     func() time.Time
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
}

func (o Options) check() error {
	switch {
	case o.Auth == nil || o.Bank == nil || o.Sales == nil || o.Payouts == nil || o.Search.Store == nil || o.Inbox.Store == nil || o.Events == nil || o.Endpoints == nil || o.Decisions == nil || o.Ledger == nil || o.Reconciling == nil || o.Mails == nil || o.Health == nil || o.Audits == nil || o.Statements == nil || len(o.Webhooks) == 0:
		return errors.New("api: all services and a webhook reader are needed")
	case o.Currency == money.Currency{}:
		return errors.New("api: a currency is needed")
	case o.BaseURL == nil || o.BaseURL.Host == "" || (o.BaseURL.Scheme != "http" && o.BaseURL.Scheme != "https"):
		return errors.New("api: the base URL must be http:// or https:// and a host")
	case o.Ping == nil || o.Draining == nil || o.Now == nil || o.Logger == nil || o.Metrics == nil:
		return errors.New("api: probes, a clock, a logger and metrics are needed")
	default:
		return nil
	}
}

// api serves requests.
type api struct {
	o          Options
	mux        *http.ServeMux
	sameOrigin web.SameOrigin
	cookies    web.Cookies
	docs       func() (documents, error)
	sampler    logSampler
}

// New makes the handler of all routes. It is for the root of a server.
func New(o Options) (http.Handler, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	sameOrigin, err := web.NewSameOrigin(o.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	a := &api{o: o, sameOrigin: sameOrigin, cookies: web.Cookies{Secure: o.BaseURL.Scheme == "https"}, docs: lazyDocuments(o.BaseURL)}
	methods := web.Methods{}
	for _, r := range a.routes() {
		methods.Add(r.method, r.path, r.handler)
	}
	a.mux = methods.Mux(a.notAllowed)
	a.mux.HandleFunc("/", a.elsewhere)
	return a, nil
}
