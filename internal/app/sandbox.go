package app

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"strings"
	"time"

	"bursar/internal/config"
	"bursar/internal/gateway/sandbox"
)

// builtInSandbox is the gateway that serve brings along. Its zero value is none.
type builtInSandbox struct {
	at      string
	options sandbox.Options
	logger  *slog.Logger
	// listener and box are nil while another instance serves the sandbox.
	listener net.Listener
	box      *sandbox.Sandbox
}

// newBuiltInSandbox makes the sandbox and points cfg at it as if it were RazorpayX. Its credentials are
// made of the key set: they must be the same after a restart and on every instance, and nobody needs to
// know them.
func newBuiltInSandbox(ctx context.Context, cfg *config.Config, b *Datastore, logger *slog.Logger) (*builtInSandbox, error) {
	if cfg.Gateway != config.Sandbox {
		return &builtInSandbox{}, nil
	}
	var (
		place    sandboxPlace
		listener net.Listener
		err      error
	)
	if cfg.Database.Postgres != "" {
		place, err = placeSandbox(ctx, *cfg, b)
	} else if place.File, err = sandboxFile(*cfg); err == nil { // one instance has it to itself
		listener, err = listen(ctx, cfg.Sandbox, sandboxSetting)
	}
	if err != nil {
		return nil, err
	}
	if listener != nil {
		place.Address = listener.Addr().String()
	}
	secret := builtInSecret(b)
	s := &builtInSandbox{
		at:      "http://" + place.Address,
		options: sandboxOptions(*cfg, place.File, secret, logger),
		logger:  logger,
	}
	s.options.WebhookURL, s.options.WebhookSecret = "http://"+cfg.Addr.Addr+"/api/gateway/webhooks/razorpayx", secret
	pointAtSandbox(cfg, s.at, secret)
	if listener != nil {
		return s, s.open(listener)
	}
	return s, s.tryToServe(ctx)
}

// builtInSecret is the secret of the sandbox's API key.
func builtInSecret(b *Datastore) string {
	return hex.EncodeToString(b.keys.RefreshMAC([]byte("built-in sandbox")))
}

func sandboxOptions(cfg config.Config, file, secret string, logger *slog.Logger) sandbox.Options {
	return sandbox.Options{
		Path: file, KeyID: SandboxKeyID, KeySecret: secret, AccountNumber: SandboxAccountNumber,
		SettleAfter: cfg.SandboxSettleAfter, Profile: sandbox.Profile(cfg.SandboxProfile), Currency: cfg.Currency, Now: time.Now, Logger: logger,
	}
}

// pointAtSandbox has a client of RazorpayX take the sandbox for it.
func pointAtSandbox(cfg *config.Config, at, secret string) {
	cfg.RazorpayX = config.RazorpayX{
		BaseURL: at + "/v1",
		KeyID:   SandboxKeyID, KeySecret: secret, AccountNumber: SandboxAccountNumber,
		WebhookSecrets: []string{secret},
	}
}

// tryToServe serves the sandbox here, unless another instance has its address.
func (s *builtInSandbox) tryToServe(ctx context.Context) error {
	var socket net.ListenConfig
	listener, err := socket.Listen(ctx, "tcp", strings.TrimPrefix(s.at, "http://"))
	if err != nil {
		return nil //nolint:nilerr // it is tried again
	}
	return s.open(listener)
}

// open opens the sandbox's file. The listener is the lock that keeps other instances from it.
func (s *builtInSandbox) open(listener net.Listener) error {
	box, err := sandbox.New(s.options)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s.listener, s.box = listener, box
	return nil
}

// run is a stage: the sandbox, once it is here.
func (s *builtInSandbox) run(ctx context.Context) error {
	if s.at == "" {
		<-ctx.Done()
		return nil
	}
	for s.box == nil && wait(ctx, serveSandboxEvery) {
		if err := s.tryToServe(ctx); err != nil {
			s.logger.ErrorContext(ctx, "sandbox not opened", slog.Any("error", err))
			wait(ctx, 10*serveSandboxEvery)
		}
	}
	if s.box == nil {
		return nil
	}
	s.logger.DebugContext(ctx, "sandbox served by this instance", slog.String("address", s.at))
	return beside(s.box.Run, serveHTTP(s.listener, s.box.Handler(), s.logger, &drain{}))(ctx)
}

func (s *builtInSandbox) close() error {
	if s.box == nil {
		return nil
	}
	return errors.Join(ignoreClosed(s.listener.Close()), s.box.Close())
}

// What clients of the sandbox call it by, where nothing else is set.
const (
	SandboxKeyID         = "rzp_test_sandbox"
	SandboxAccountNumber = "2323230041626905"
)
