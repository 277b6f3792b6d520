package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"bursar/internal/app"
	"bursar/internal/config"
	"bursar/internal/demo"
)

type demoCmd struct{}

func (demoCmd) Help() string {
	return "A year of sales of a few sellers, with payouts in every state. All of it is removed when the demo stops. " +
		"Ports that are taken are replaced by free ones, and payouts settle within a second.\n\n" +
		examples("bursar demo", "bursar demo --addr 127.0.0.1:9000")
}

// Run opens a market and serves it until a signal comes.
func (demoCmd) Run(ctx context.Context, e *env) (err error) {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bursar-demo-")
	if err != nil {
		return fmt.Errorf("make a directory for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg = throwAway(cfg, dir)
	logger, err := newLogger(cfg, e.err)
	if err != nil {
		return err
	}
	s, err := app.NewService(ctx, cfg, logger, versionName())
	if err != nil {
		return err
	}
	filled := make(chan struct{})
	s.BeforeWork = func(ctx context.Context) error {
		if err := demo.Fill(ctx, s, cfg.Currency, progressOn(e.err)); err != nil {
			return unlessStopped(ctx, err)
		}
		close(filled)
		return nil
	}
	s.Beside = func(ctx context.Context) error {
		select {
		case <-filled:
		case <-ctx.Done():
			return nil
		}
		if err := openMarket(ctx, s.URL(), e.out); err != nil {
			return unlessStopped(ctx, err)
		}
		<-ctx.Done()
		return nil
	}
	return s.Run(ctx)
}

// unlessStopped forgives what was cut short because the demo was stopped.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// throwAway takes the settings away from whatever they point at: a demo touches no real data and pays
// nobody.
func throwAway(cfg config.Config, dir string) config.Config {
	cfg.DataDir = dir
	cfg.Database = config.Database{SQLite: filepath.Join(dir, "bursar.db")}
	cfg.Keys, cfg.KeysFile = "", app.OwnKeysFile(cfg)
	cfg.Gateway, cfg.GatewayRate, cfg.GatewaySettings, cfg.FormerGateway = config.Sandbox, 0, nil, nil
	cfg.BankVerifier = config.ByGateway
	cfg.ProviderA, cfg.ProviderB = nil, nil
	cfg.CancelWindow = max(cfg.CancelWindow, 2*time.Second) // something is to be cancelled
	cfg.SandboxSettleAfter = min(cfg.SandboxSettleAfter, time.Second/2)
	if cfg.LogLevel == slog.LevelInfo { // what goes on, and what goes wrong on purpose, would bury the table
		cfg.LogLevel = slog.LevelError + 1
	}
	return cfg
}

// openMarket has happen what happens today, and tells how to look around.
func openMarket(ctx context.Context, at string, w io.Writer) error {
	opened, err := demo.Open(ctx, at)
	if err != nil {
		return err
	}
	people := demo.People()
	var text strings.Builder
	fmt.Fprintf(&text, "The market is open at %s until you press Ctrl-C; then all of it is gone.\n\n", at)
	fmt.Fprintf(&text, "Open %s/dashboard in a browser and sign in as one of these users:\n\n", at)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "E-MAIL\tPASSWORD\tROLE\tWHAT TO SEE")
	for _, p := range people {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.Email, demo.Password, p.Role, p.Sight)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&text, "\n%s also needs a code: of an authenticator app with the secret %s, or once %s.\n", opened.FactorEmail, opened.AppSecret, opened.RecoveryCode)
	fmt.Fprintf(&text, "\nThe documentation is at %s/docs. To look at %s's balance, and to ask for a payout:\n\n", at, people[0].Name)
	fmt.Fprintf(&text, "TOKEN=%s\n", opened.Token)
	fmt.Fprintf(&text, "curl -H \"Authorization: Bearer $TOKEN\" %s/api/payouts/balance\n", at)
	fmt.Fprintf(&text, "curl -H \"Authorization: Bearer $TOKEN\" -H \"Content-Type: application/json\" -d '{\"amount\": 600}' %s/api/payouts/request\n", at)
	_, err = io.WriteString(w, text.String())
	return err
}
