package app

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"bursar/internal/config"
	"bursar/internal/dashboard"
)

// newPages makes the pages over the services, and beside them the places to sign in at that are built in.
func newPages(
	cfg config.Config, s Services, places signInPlaces, b *Datastore, h *health, background func(func(context.Context)), logger *slog.Logger,
) (http.Handler, error) {
	baseURL, err := url.Parse(cfg.Origin())
	if err != nil {
		return nil, err
	}
	pages, err := dashboard.New(dashboard.Options{
		Auth: s.Auth, Bank: s.Bank, Sales: s.Sales, Payouts: s.Payouts, Search: s.Search, Inbox: s.Inbox, Ledger: auditedLedger{b.db, b.keys}, Reconciling: s.Reconciling, Health: h, Statements: s.Proofs,
		Mails: mailbox{s.Mails, outbox(cfg)}, Webhooks: s.Endpoints,
		CoolDown: cfg.AccountCooldown, Currency: cfg.Currency, BaseURL: baseURL, TrustedProxies: cfg.TrustedProxies, Zone: cfg.Zone,
		Background: background, Now: time.Now, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	return places.before(pages), nil
}
