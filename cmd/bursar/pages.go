package main

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
	cfg config.Config, s services, places signInPlaces, b *book, h *health, background func(func(context.Context)), logger *slog.Logger,
) (http.Handler, error) {
	baseURL, err := url.Parse(cfg.Origin())
	if err != nil {
		return nil, err
	}
	pages, err := dashboard.New(dashboard.Options{
		Auth: s.auth, Bank: s.bank, Sales: s.sales, Payouts: s.payouts, Books: auditedBooks{b.db, b.keys}, Reconciling: s.reconciling, Health: h, Statements: s.proofs,
		Currency: cfg.Currency, BaseURL: baseURL, TrustedProxies: cfg.TrustedProxies, Zone: cfg.Zone,
		Background: background, Now: time.Now, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	return places.before(pages), nil
}
