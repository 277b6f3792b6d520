package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"syscall"

	"bursar/internal/app"
	"bursar/internal/config"
)

type serveCmd struct{}

func (serveCmd) Help() string {
	return "Without settings it keeps its data in ./bursar-data, and pays through a built-in sandbox that moves no money.\n\n" +
		examples("bursar serve", "bursar serve --addr :8080 --base-url https://payouts.example.com", "BURSAR_CONFIG=/etc/bursar.env bursar serve",
			"BURSAR_DATABASE_URL_FILE=/run/secrets/database bursar serve --drain-delay 5s")
}

// Run serves until a signal comes.
func (serveCmd) Run(ctx context.Context, e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	app.CollectSeldom()
	signal.Ignore(syscall.SIGPIPE) // what reads the log may end; a service that ends with it would answer nobody
	cfg.Addr.OrFree = false        // clients would not find a service that took another port
	logger, err := newLogger(cfg, e.err)
	if err != nil {
		return err
	}
	for _, name := range e.sources.Unknown() {
		logger.WarnContext(ctx, "unknown setting ignored", slog.String("variable", name))
	}
	s, err := app.NewService(ctx, cfg, logger, versionName())
	if err != nil {
		return err
	}
	announce(e.out, s, cfg)
	logger.InfoContext(ctx, "started", slog.String("address", s.URL()), slog.String("version", versionName()))
	context.AfterFunc(ctx, func() { logger.InfoContext(ctx, "stopping") })
	err = s.Run(ctx)
	logger.InfoContext(ctx, "stopped")
	return err
}

// announce tells people where to look.
func announce(w io.Writer, s *app.Service, cfg config.Config) {
	fmt.Fprintf(w, "Bursar %s is ready.\n", versionName())
	fmt.Fprintf(w, "  Dashboard  %s/dashboard\n", s.URL())
	fmt.Fprintf(w, "  API        %s/api\n", s.URL())
	fmt.Fprintf(w, "  Docs       %s/docs\n", s.URL())
	if s.MetricsURL() != "" {
		fmt.Fprintf(w, "  Metrics    %s/metrics\n", s.MetricsURL())
	}
	if s.SandboxURL() != "" {
		fmt.Fprintf(w, "  Sandbox    %s/control/moves (test gateway: no money moves)\n", s.SandboxURL())
	}
	fmt.Fprintf(w, "  Mail       %s\n", app.MailPlace(cfg))
	fmt.Fprintf(w, "  Data       %s\n", cfg.Database)
}
