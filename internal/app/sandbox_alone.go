package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"bursar/internal/config"
	"bursar/internal/gateway/sandbox"
)

// SandboxOptions are what the gateway's sandbox needs to run alone.
type SandboxOptions struct {
	Address config.Listen
	// File holds its records; empty is a temporary one.
	File string
	// KeyID, KeySecret and AccountNumber are what its clients must give.
	KeyID, KeySecret, AccountNumber string
	// WebhookURL is where events go; empty is nowhere. WebhookSecret signs them.
	WebhookURL, WebhookSecret string
}

// Sandbox is the gateway's sandbox without a service, ready to be started.
type Sandbox struct {
	listener net.Listener
	box      *sandbox.Sandbox
	logger   *slog.Logger
}

// NewSandbox makes the sandbox. Its port is taken, and nothing runs yet.
func NewSandbox(ctx context.Context, cfg config.Config, o SandboxOptions, logger *slog.Logger) (*Sandbox, error) {
	listener, err := listen(ctx, o.Address, sandboxSetting)
	if err != nil {
		return nil, err
	}
	box, err := sandbox.New(sandbox.Options{
		Path: o.File, KeyID: o.KeyID, KeySecret: o.KeySecret, AccountNumber: o.AccountNumber,
		WebhookURL: o.WebhookURL, WebhookSecret: o.WebhookSecret, Profile: sandbox.Profile(cfg.SandboxProfile),
		SettleAfter: cfg.SandboxSettleAfter, Currency: cfg.Currency, Now: time.Now, Logger: logger,
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &Sandbox{listener, box, logger}, nil
}

// URL is where the sandbox is.
func (s *Sandbox) URL() string { return addressOf(s.listener) }

// Run runs the sandbox until ctx ends, and closes its records.
func (s *Sandbox) Run(ctx context.Context) error {
	return errors.Join(runStages(ctx, s.box.Run, serveHTTP(s.listener, s.box.Handler(), s.logger, &drain{})), s.box.Close())
}
