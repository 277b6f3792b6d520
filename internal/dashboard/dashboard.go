// Package dashboard is the pages: what people see of the services that the API offers to programs.
//
// Every route is in routes.go, with who may see it. A handler answers a visit with a page or an
// error, and writes nothing itself: session.go finds out who is asking before it is called, render.go
// puts its page into the layout, and fail.go makes a page of what went wrong. Pages work without
// scripts; the one script only saves a wait or a click.
package dashboard

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"bursar/internal/bank"
	"bursar/internal/health"
	"bursar/internal/inbox"
	"bursar/internal/money"
	"bursar/internal/reconcile"
	"bursar/internal/sale"
	"bursar/internal/search"
	"bursar/internal/web"
	"bursar/internal/webhook"
)

// Options are what the pages are made of.
type Options struct {
	Auth    Auth
	Bank    *bank.Service
	Sales   *sale.Service
	Payouts Payouts
	Search  search.Service
	Inbox   inbox.Service
	Ledger  Ledger
	// Reconciling compares the gateway's statement with the ledger.
	Reconciling *reconcile.Service
	Health      Health
	Audits      *health.Audits

	Statements Statements
	Mails      Mails
	Webhooks   *webhook.Service

	Currency money.Currency
	// BaseURL is the public address. Its scheme decides the cookies' names and attributes.
	BaseURL *url.URL
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies web.Proxies
	// CoolDown is how long payouts are on hold after a verified bank account was replaced.
	CoolDown time.Duration
	// Zone is shown where the viewer's own is not known.
	Zone *time.Location

	Now    func() time.Time
	Logger *slog.Logger
	// Tampered, if set, counts a page or a form that was refused because rows of a kind were changed outside the service.
	Tampered func(kind string)
}

func (o Options) check() error {
	switch {
	case o.Auth == nil || o.Bank == nil || o.Sales == nil || o.Payouts == nil || o.Search.Store == nil || o.Inbox.Store == nil || o.Ledger == nil || o.Reconciling == nil || o.Health == nil || o.Audits == nil || o.Statements == nil || o.Mails == nil || o.Webhooks == nil:
		return errors.New("dashboard: all services are needed")
	case o.Currency == money.Currency{}:
		return errors.New("dashboard: a currency is needed")
	case o.BaseURL == nil || o.BaseURL.Host == "" || (o.BaseURL.Scheme != "http" && o.BaseURL.Scheme != "https"):
		return errors.New("dashboard: the base URL must be http:// or https:// and a host")
	case o.Zone == nil || o.Now == nil || o.Logger == nil:
		return errors.New("dashboard: a zone, a clock and a logger are needed")
	default:
		return nil
	}
}

// dashboard serves the pages.
type dashboard struct {
	o          Options
	sameOrigin web.SameOrigin
	cookies    web.Cookies
	assets     assets
	templates  templates
}

// New makes the handler of all pages. It is for the root of a server.
func New(o Options) (http.Handler, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	sameOrigin, err := web.NewSameOrigin(o.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	d := &dashboard{o: o, sameOrigin: sameOrigin, cookies: web.Cookies{Secure: o.BaseURL.Scheme == "https"}}
	if d.assets, err = readAssets(); err != nil {
		return nil, err
	}
	if d.templates, err = d.parseTemplates(); err != nil {
		return nil, err
	}
	return d.mux(), nil
}
