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

	"bursar/internal/config"
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
	s, err := newService(ctx, cfg, logger)
	if err != nil {
		return err
	}

	filled := make(chan struct{})
	fill := func(ctx context.Context) error {
		if err := fillMarket(ctx, s, logger, progressOn(e.err)); err != nil {
			return unlessStopped(ctx, err)
		}
		close(filled)
		return nil
	}
	tell := func(ctx context.Context) error {
		select {
		case <-filled:
		case <-ctx.Done():
			return nil
		}
		if err := openMarket(ctx, s.apiAt, e.out); err != nil {
			return unlessStopped(ctx, err)
		}
		<-ctx.Done()
		return nil
	}
	return errors.Join(runStages(ctx, s.sandbox.run, inTurn(fill, s.work), s.metrics, s.api, tell), s.close())
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
	cfg.Keys, cfg.KeysFile = "", ownKeysFile(cfg)
	cfg.Gateway, cfg.GatewayRate = config.Sandbox, 0
	cfg.BankVerifier = config.ByGateway
	cfg.ProviderA, cfg.ProviderB = nil, nil
	cfg.CancelWindow = max(cfg.CancelWindow, 2*time.Second) // something is to be cancelled
	cfg.SandboxSettleAfter = min(cfg.SandboxSettleAfter, time.Second/2)
	if cfg.LogLevel == slog.LevelInfo { // the usual comings and goings would bury the table
		cfg.LogLevel = slog.LevelWarn
	}
	return cfg
}

// inTurn makes one stage of two: the second begins when the first is done.
func inTurn(first, second stage) stage {
	return func(ctx context.Context) error {
		if err := first(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		return second(ctx)
	}
}

// openMarket does over HTTP what happens today, and tells how to look around.
func openMarket(ctx context.Context, at string, w io.Writer) error {
	c := &client{at: at}
	if err := c.signIn(ctx, marketSellers[0].email); err != nil {
		return err
	}
	var waiting, cancelled struct {
		PayoutID string `json:"payoutId"`
	}
	if err := c.post(ctx, "/api/payouts/request", `{"amount": 500, "notes": "Changed my mind"}`, &cancelled); err != nil {
		return err
	}
	if err := c.post(ctx, "/api/payouts/"+cancelled.PayoutID+"/cancel", "", nil); err != nil {
		return err
	}
	if err := c.post(ctx, "/api/payouts/request", `{"amount": 750, "notes": "Courier bill"}`, &waiting); err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "The market is open at %s until you press Ctrl-C; then all of it is gone.\n\n", at)
	fmt.Fprintf(&text, "Open %s/dashboard in a browser and sign in as somebody:\n\n", at)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "E-MAIL\tPASSWORD\tROLE\tWHAT TO SEE")
	for _, p := range marketPeople() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.email, demoPassword, p.role, p.sight)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&text, "\nThe documentation is at %s/docs. To look at %s's balance, and to ask for a payout:\n\n", at, marketSellers[0].name)
	fmt.Fprintf(&text, "TOKEN=%s\n", c.token)
	fmt.Fprintf(&text, "curl -H \"Authorization: Bearer $TOKEN\" %s/api/payouts/balance\n", at)
	fmt.Fprintf(&text, "curl -H \"Authorization: Bearer $TOKEN\" -H \"Content-Type: application/json\" -d '{\"amount\": 600}' %s/api/payouts/request\n", at)
	_, err := io.WriteString(w, text.String())
	return err
}
