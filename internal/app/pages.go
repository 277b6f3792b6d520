package app

import (
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"bursar/internal/config"
	"bursar/internal/dashboard"
	"bursar/internal/health"
	"bursar/internal/telemetry"
)

// newPages makes the pages over the services, and beside them the places to sign in at that are built in.
func newPages(
	cfg config.Config, s Services, places signInPlaces, b *Datastore, h *healthOf, audits *health.Audits, metrics *telemetry.Metrics, logger *slog.Logger,
) (http.Handler, error) {
	baseURL, err := url.Parse(cfg.Origin())
	if err != nil {
		return nil, err
	}
	pages, err := dashboard.New(dashboard.Options{
		Auth: s.Auth, Bank: s.Bank, Sales: s.Sales, Payouts: s.Payouts, Search: s.Search, Inbox: s.Inbox, Ledger: b.db, Reconciling: s.Reconciling, Health: h, Audits: audits, Statements: s.Proofs,
		Mails: mailbox{s.Mails, outbox(cfg)}, Webhooks: s.Endpoints,
		CoolDown: cfg.AccountCooldown, Currency: cfg.Currency, BaseURL: baseURL, TrustedProxies: cfg.TrustedProxies, Zone: cfg.Zone,
		Now: time.Now, Logger: logger, Tampered: metrics.Tampered,
	})
	if err != nil {
		return nil, err
	}
	return places.before(pages), nil
}
