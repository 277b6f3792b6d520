package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"bursar/internal/api"
	"bursar/internal/config"
	"bursar/internal/payout"
	"bursar/internal/razorpayx"
	"bursar/internal/telemetry"
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
	cfg.Addr.OrFree = false // clients would not find a service that took another port
	logger, err := newLogger(cfg, e.err)
	if err != nil {
		return err
	}
	for _, name := range e.sources.Unknown() {
		logger.WarnContext(ctx, "this variable is no setting; nothing reads it", slog.String("variable", name))
	}
	s, err := newService(ctx, cfg, logger)
	if err != nil {
		return err
	}
	announce(e.out, s)
	logger.InfoContext(ctx, "started", slog.String("address", s.apiAt), slog.String("version", versionName()))
	context.AfterFunc(ctx, func() { logger.InfoContext(ctx, "stopping; a second signal ends at once") })
	err = errors.Join(runStages(ctx, s.sandbox.run, s.work, s.metrics, s.api), s.close())
	logger.InfoContext(ctx, "stopped")
	return err
}

func newLogger(cfg config.Config, w io.Writer) (*slog.Logger, error) {
	format := telemetry.Format(cfg.LogFormat)
	if format == "" {
		format = telemetry.JSON
		if isTerminal(w) {
			format = telemetry.Text
		}
	}
	return telemetry.NewLogger(w, cfg.LogLevel, format)
}

// service is everything that runs, ready to be started. Its stages rely on each other in this order:
// the sandbox, the work, the metrics, the API.
type service struct {
	cfg     config.Config
	book    *book
	sandbox *builtInSandbox
	gateway gateway
	work    stage
	metrics stage
	api     stage
	// apiAt and metricsAt are where to find them; metricsAt is empty for nowhere.
	apiAt, metricsAt string
}

// newService makes the service of its parts. Nothing runs yet, but its ports are taken, so that a
// second service on the same port ends before it touches any data.
func newService(ctx context.Context, cfg config.Config, logger *slog.Logger) (s *service, err error) {
	var undo cleanup
	defer func() { err = undo.unless(err) }()

	listener, err := listen(ctx, cfg.Addr, "BURSAR_ADDR (--addr)")
	if err != nil {
		return nil, err
	}
	undo.add(listener.Close)
	cfg.Addr.Addr = listener.Addr().String()
	metricsListener, err := listen(ctx, cfg.Metrics, "BURSAR_METRICS_ADDR (--metrics-addr)")
	if err != nil {
		return nil, err
	}
	if metricsListener != nil {
		undo.add(metricsListener.Close)
	}

	book, err := openBook(ctx, cfg)
	if err != nil {
		return nil, err
	}
	undo.add(book.Close)
	if book.keepsKeys() {
		logger.WarnContext(ctx, `the database keeps the key set beside the account numbers that it seals, so whoever reads the one reads the other; "bursar keys export --help" tells how to keep them apart`)
	}
	sandbox, err := newBuiltInSandbox(ctx, &cfg, book, logger)
	if err != nil {
		return nil, err
	}
	undo.add(sandbox.close)
	client, err := newGateway(cfg, book.db)
	if err != nil {
		return nil, err
	}
	metrics := newMetrics(book)
	gateway := newCounted(client, metrics)
	moved := func(from, to payout.State) { metrics.PayoutMoved(string(from), string(to)) }
	places, err := newSignInPlaces(ctx, cfg, logger)
	if err != nil {
		return nil, err
	}
	services, err := newServices(parts{cfg, book, gateway, time.Now, logger, moved, places.providers})
	if err != nil {
		return nil, err
	}
	draining := &drain{delay: cfg.DrainDelay}
	health := &health{db: book.db, started: time.Now()}
	background, runBackground := newBackground()
	pages, err := newPages(cfg, services, places, book, health, background, logger)
	if err != nil {
		return nil, err
	}
	handler, err := newAPI(cfg, services, pages, book, metrics, logger, draining.begun.Load)
	if err != nil {
		return nil, err
	}

	return &service{
		cfg: cfg, book: book, sandbox: sandbox, gateway: gateway,
		work:      beside(runBackground, newWork(cfg, services, book, health, metrics, logger)),
		metrics:   serveMetrics(metricsListener, metrics, logger),
		api:       serveHTTP(listener, handler, logger, draining),
		apiAt:     cfg.Origin(),
		metricsAt: addressOf(metricsListener),
	}, nil
}

// close ends what the stages relied on, once they have stopped.
func (s *service) close() error { return errors.Join(s.sandbox.close(), s.book.Close()) }

func newAPI(cfg config.Config, s services, pages http.Handler, b *book, metrics *telemetry.Metrics, logger *slog.Logger, draining func() bool) (http.Handler, error) {
	baseURL, err := url.Parse(cfg.Origin())
	if err != nil {
		return nil, err
	}
	webhooks, err := razorpayx.NewWebhooks(cfg.RazorpayX.WebhookSecrets...)
	if err != nil {
		return nil, err
	}
	return api.New(api.Options{
		Pages: pages,
		Auth:  s.auth, Bank: s.bank, Sales: s.sales, Payouts: s.payouts, Statements: s.proofs,
		ReadWebhook: readWebhook(webhooks),
		Currency:    cfg.Currency, BaseURL: baseURL, TrustedProxies: cfg.TrustedProxies,
		Ping: b.db.Ping, Draining: draining,
		Now: time.Now, Logger: logger, Metrics: metrics,
	})
}

// readWebhook tells the API what a gateway's message hints at, in the API's own terms.
func readWebhook(w *razorpayx.Webhooks) api.ReadWebhook {
	return func(header http.Header, body []byte) (api.Hint, error) {
		hint, err := w.Read(header, body)
		if err != nil {
			return api.Hint{}, err
		}
		about := api.Hint{EventID: hint.EventID, VerificationID: hint.ValidationID}
		if id, err := payout.ParseID(hint.Reference); err == nil { // others pay from the same account
			about.Payout = id
		}
		return about, nil
	}
}

// serveMetrics is the stage that Prometheus asks. Without a listener it only waits for its end.
func serveMetrics(listener net.Listener, metrics *telemetry.Metrics, logger *slog.Logger) stage {
	if listener == nil {
		return func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler())
	return serveHTTP(listener, mux, logger, &drain{})
}

func addressOf(listener net.Listener) string {
	if listener == nil {
		return ""
	}
	return "http://" + listener.Addr().String()
}

// announce tells people where to look.
func announce(w io.Writer, s *service) {
	fmt.Fprintf(w, "Bursar %s is ready.\n", versionName())
	fmt.Fprintf(w, "  Dashboard  %s/dashboard\n", s.apiAt)
	fmt.Fprintf(w, "  API        %s/api\n", s.apiAt)
	fmt.Fprintf(w, "  Docs       %s/docs\n", s.apiAt)
	if s.metricsAt != "" {
		fmt.Fprintf(w, "  Metrics    %s/metrics\n", s.metricsAt)
	}
	if s.sandbox.at != "" {
		fmt.Fprintf(w, "  Sandbox    %s/control/moves (a pretended gateway: no money moves)\n", s.sandbox.at)
	}
	fmt.Fprintf(w, "  Data       %s\n", s.cfg.Database)
}

// cleanup undoes what was begun when the whole is not finished.
type cleanup []func() error

func (c *cleanup) add(undo func() error) { *c = append(*c, undo) }

func (c *cleanup) unless(err error) error {
	if err == nil {
		return nil
	}
	for _, undo := range slices.Backward(*c) {
		err = errors.Join(err, undo())
	}
	return err
}
