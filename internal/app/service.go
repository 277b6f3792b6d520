// Package app wires the program: it opens the datastore, builds the service from the settings, runs it, and stops its
// parts in order. Commands ask it for an opened datastore or a service to run.
package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"bursar/internal/api"
	"bursar/internal/config"
	"bursar/internal/health"
	"bursar/internal/keyset"
	"bursar/internal/payout"
	"bursar/internal/telemetry"
)

// Service is everything that runs, ready to be started. Its stages rely on each other in this order:
// the sandbox, the work, the metrics, the API.
type Service struct {
	// BeforeWork runs before the work begins, and Beside runs until it or the service is stopped. Both are optional.
	BeforeWork, Beside func(ctx context.Context) error

	cfg       config.Config
	datastore *Datastore
	sandbox   *builtInSandbox
	gateways  gateways
	services  Services
	handler   http.Handler
	logger    *slog.Logger
	work      stage
	metrics   stage
	api       stage
	// listeners are the ports that were taken.
	listeners []net.Listener
	// apiAt and metricsAt are where to find them; metricsAt is empty for nowhere.
	apiAt, metricsAt string
}

// NewService makes the service of its parts. Nothing runs yet, but its ports are taken, so that a
// second service on the same port ends before it touches any data. version is what it tells of itself.
func NewService(ctx context.Context, cfg config.Config, logger *slog.Logger, version string) (s *Service, err error) {
	var undo cleanup
	defer func() { err = undo.unless(err) }()

	listener, err := listen(ctx, cfg.Addr, "BURSAR_ADDR (--addr)")
	if err != nil {
		return nil, err
	}
	undo.add(listener.Close)
	listeners := []net.Listener{listener}
	cfg.Addr.Addr = listener.Addr().String()
	metricsListener, err := listen(ctx, cfg.Metrics, "BURSAR_METRICS_ADDR (--metrics-addr)")
	if err != nil {
		return nil, err
	}
	if metricsListener != nil {
		undo.add(metricsListener.Close)
		listeners = append(listeners, metricsListener)
	}

	datastore, err := OpenDatastore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	undo.add(datastore.Close)
	if err := errors.Join(checkKeysPlace(ctx, cfg, datastore, logger), datastore.db.CheckSchema(ctx)); err != nil {
		return nil, err
	}
	sandbox, err := newBuiltInSandbox(ctx, &cfg, datastore, logger)
	if err != nil {
		return nil, err
	}
	undo.add(sandbox.close)
	metrics := newMetrics(datastore, version)
	gateways, err := openGatewaysOf(ctx, cfg, datastore, metrics)
	if err != nil {
		return nil, err
	}
	places, err := newSignInPlaces(ctx, cfg, logger)
	if err != nil {
		return nil, err
	}
	services, err := newServices(parts{
		cfg: cfg, datastore: datastore, gateways: gateways, now: time.Now, logger: logger,
		moved:    func(from, to payout.State) { metrics.PayoutMoved(string(from), string(to)) },
		tampered: metrics.Tampered, tried: metrics.Tried, mailed: metrics.MailEnded, posted: metrics.WebhookPosted, providers: places.providers, issuer: places.issuer,
	})
	if err != nil {
		return nil, err
	}
	draining := &drain{delay: cfg.DrainDelay}
	running := &healthOf{version: version, db: datastore.db, started: time.Now()}
	audits, runBackground := newAudits(datastore, logger)
	pages, err := newPages(cfg, services, places, datastore, running, audits, metrics, logger)
	if err != nil {
		return nil, err
	}
	handler, err := newAPI(cfg, services, pages, datastore, running, audits, metrics, logger, draining.begun.Load)
	if err != nil {
		return nil, err
	}

	return &Service{
		cfg: cfg, datastore: datastore, sandbox: sandbox, gateways: gateways, services: services, handler: handler, logger: logger,
		work:      beside(runBackground, newWork(cfg, services, datastore, running, metrics, logger)),
		metrics:   serveMetrics(metricsListener, metrics, logger),
		api:       serveHTTP(listener, handler, logger, draining),
		listeners: listeners,
		apiAt:     cfg.Origin(),
		metricsAt: addressOf(metricsListener),
	}, nil
}

// keysInDatabase says why serve refuses a key set in the database.
const keysInDatabase = `the database keeps the key set, so an attacker who can read and write it could make the service pay; ` +
	`take the keys out with "bursar keys export" and "bursar keys forget-stored" and set BURSAR_KEYS_FILE, ` +
	`or set BURSAR_KEYS_IN_DATABASE=accept (--keys-in-database) if you accept that`

func refusesKeysInDatabase(cfg config.Config) bool {
	return cfg.MovesRealMoney() && !cfg.AcceptKeysInDatabase
}

// CheckSettings finds settings with which serve refuses to start, without opening the database. It fails with
// [config.Problems], with what is wrong with a key set that is given, or with what an adapter says of a gateway's settings.
func CheckSettings(cfg config.Config) error {
	if cfg.Keys == "" && cfg.KeysFile == "" && refusesKeysInDatabase(cfg) {
		if _, err := os.Stat(OwnKeysFile(cfg)); errors.Is(err, fs.ErrNotExist) { // else it is used if the database keeps no key set
			return config.Problems{{Variable: "BURSAR_KEYS_FILE", Message: "is not set, and " + keysInDatabase}}
		}
	}
	if cfg.Keys != "" {
		if _, err := keyset.FromJSON([]byte(cfg.Keys)); err != nil {
			return fmt.Errorf("BURSAR_KEYS: %w", err)
		}
	}
	if cfg.Gateway == config.Sandbox { // whose address is known when it runs
		return nil
	}
	_, err := openGateways(cfg, nil, nil)
	return err
}

// checkKeysPlace refuses to move real money while the keys that authenticate the journal lie in the database beside it. From then on the
// log says when the keys can't be read where they lie.
func checkKeysPlace(ctx context.Context, cfg config.Config, d *Datastore, logger *slog.Logger) error {
	d.keys.OnTrouble(func(err error) { logger.ErrorContext(ctx, "key set not read", slog.Any("error", err)) })
	if !d.KeepsKeys() {
		return nil
	}
	if refusesKeysInDatabase(cfg) {
		return errors.New(keysInDatabase)
	}
	logger.WarnContext(ctx, "key set stored in the database", slog.String("risk", "who reads and writes the database reads account numbers and can forge the journal"),
		slog.String("cure", `see "bursar keys export --help"`))
	return nil
}

// Run runs the service until ctx ends or a part of it does. Then it stops the parts in order, and closes what they
// relied on.
func (s *Service) Run(ctx context.Context) error {
	warnOfOutbox(ctx, s.cfg, s.logger)
	work := s.work
	if s.BeforeWork != nil {
		work = inTurn(s.BeforeWork, work)
	}
	stages := []stage{s.sandbox.run, work, s.metrics, s.api}
	if s.Beside != nil {
		stages = append(stages, s.Beside)
	}
	return errors.Join(runStages(ctx, stages...), s.Close())
}

// Close ends what the stages relied on, once they have stopped or where none was run.
func (s *Service) Close() error {
	var err error
	for _, listener := range s.listeners {
		err = errors.Join(err, ignoreClosed(listener.Close()))
	}
	return errors.Join(err, s.sandbox.close(), s.datastore.Close())
}

// URL is where the API and the pages are.
func (s *Service) URL() string { return s.apiAt }

// MetricsURL is where the metrics are; it is empty for nowhere.
func (s *Service) MetricsURL() string { return s.metricsAt }

// SandboxURL is where the built-in sandbox is; it is empty where another gateway pays.
func (s *Service) SandboxURL() string { return s.sandbox.at }

// Datastore is what the service works on.
func (s *Service) Datastore() *Datastore { return s.datastore }

// Services are the domains at work.
func (s *Service) Services() Services { return s.services }

// ServicesOfThePast are the domains on a clock of their own, without a cancel window: nobody changes their mind
// about the past.
func (s *Service) ServicesOfThePast(now func() time.Time) (Services, error) {
	cfg := s.cfg
	cfg.CancelWindow = 0
	return newServices(parts{
		cfg: cfg, datastore: s.datastore, gateways: s.gateways, now: now, logger: s.logger, moved: func(payout.State, payout.State) {}, past: true,
	})
}

func newAPI(cfg config.Config, s Services, pages http.Handler, b *Datastore, running *healthOf, audits *health.Audits, metrics *telemetry.Metrics, logger *slog.Logger, draining func() bool) (http.Handler, error) {
	baseURL, err := url.Parse(cfg.Origin())
	if err != nil {
		return nil, err
	}
	return api.New(api.Options{
		Pages: pages,
		Auth:  s.Auth, Bank: s.Bank, Sales: s.Sales, Payouts: s.Payouts, Search: s.Search, Inbox: s.Inbox, Events: s.Events, Decisions: b.db, Ledger: b.db, Reconciling: s.Reconciling, Mails: mailbox{s.Mails, outbox(cfg)}, Health: running, Audits: audits, Statements: s.Proofs,
		Endpoints: s.Endpoints, Webhooks: s.webhooks,
		Currency: cfg.Currency, BaseURL: baseURL, TrustedProxies: cfg.TrustedProxies,
		Ping: b.db.Ping, Draining: draining,
		Now: time.Now, Logger: logger, Metrics: metrics,
	})
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
