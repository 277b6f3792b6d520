package app

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"time"

	"bursar/internal/config"
	"bursar/internal/razorpayx/sandbox"
)

// builtInSandbox is the gateway that serve brings along. Its zero value is none.
type builtInSandbox struct {
	at      string
	options sandbox.Options
	logger  *slog.Logger
	// listener and box are nil while another instance runs the sandbox.
	listener net.Listener
	box      *sandbox.Sandbox
}

// newBuiltInSandbox makes the sandbox, on a listener and a file of its own, and points cfg at it as if
// it were RazorpayX. Its credentials are made of the key set: they must be the same after a restart and
// on every instance, and nobody needs to know them.
func newBuiltInSandbox(ctx context.Context, cfg *config.Config, b *Datastore, logger *slog.Logger) (*builtInSandbox, error) {
	if cfg.Gateway != config.Sandbox {
		return &builtInSandbox{}, nil
	}
	home, listener, err := findSandbox(ctx, *cfg, b, logger)
	if err != nil {
		return nil, err
	}
	secret := builtInSecret(b)
	s := &builtInSandbox{
		at:      "http://" + home.Address,
		options: sandboxOptions(*cfg, home.File, secret, logger),
		logger:  logger,
	}
	s.options.WebhookURL, s.options.WebhookSecret = "http://"+cfg.Addr.Addr+"/api/gateway/webhooks/razorpayx", secret
	pointAtSandbox(cfg, s.at, secret)
	if listener == nil {
		return s, s.join(ctx, home.Address)
	}
	return s, s.open(listener)
}

// builtInSecret is the secret of the sandbox's API key.
func builtInSecret(b *Datastore) string {
	return hex.EncodeToString(b.keys.RefreshMAC([]byte("built-in sandbox")))
}

func sandboxOptions(cfg config.Config, file, secret string, logger *slog.Logger) sandbox.Options {
	return sandbox.Options{
		Path: file, KeyID: SandboxKeyID, KeySecret: secret, AccountNumber: SandboxAccountNumber,
		SettleAfter: cfg.SandboxSettleAfter, Currency: cfg.Currency, Now: time.Now, Logger: logger,
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

// open runs the sandbox here, on a listener that was just taken: it is the lock that keeps any other
// process from its file.
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
	if !s.await(ctx) {
		return nil
	}
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
