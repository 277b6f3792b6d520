package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
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
func newBuiltInSandbox(ctx context.Context, cfg *config.Config, b *book, logger *slog.Logger) (*builtInSandbox, error) {
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
func builtInSecret(b *book) string {
	return hex.EncodeToString(b.keys.RefreshMAC([]byte("built-in sandbox")))
}

func sandboxOptions(cfg config.Config, file, secret string, logger *slog.Logger) sandbox.Options {
	return sandbox.Options{
		Path: file, KeyID: sandboxKeyID, KeySecret: secret, AccountNumber: sandboxAccount,
		SettleAfter: cfg.SandboxSettleAfter, Currency: cfg.Currency, Now: time.Now, Logger: logger,
	}
}

// pointAtSandbox has a client of RazorpayX take the sandbox for it.
func pointAtSandbox(cfg *config.Config, at, secret string) {
	cfg.RazorpayX = config.RazorpayX{
		BaseURL: at + "/v1",
		KeyID:   sandboxKeyID, KeySecret: secret, AccountNumber: sandboxAccount,
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

const (
	sandboxKeyID   = "rzp_test_sandbox"
	sandboxAccount = "2323230041626905"
)

type sandboxCmd struct {
	File          string `placeholder:"PATH" help:"File of its records; a temporary one that is removed unless set."`
	WebhookURL    string `name:"webhook-url" placeholder:"URL" help:"Where events go; nowhere unless set."`
	WebhookSecret string `default:"sandbox-webhook-secret" help:"What events are signed with."`
}

func (sandboxCmd) Help() string {
	return "An HTTP server that speaks RazorpayX's API and moves no money. The last four digits of a bank account's number choose what happens to its payouts; " +
		"http://ADDRESS/control/moves lists all that moved, /control/webhooks what was delivered. POST /control/faults makes calls go wrong, " +
		"POST /control/statement makes the statement wrong, " +
		"PUT /control/balance, /control/settle-after and /control/payouts/ID set things by hand.\n\n" +
		examples("bursar sandbox",
			`curl http://127.0.0.1:8081/control/faults -d '{"method":"POST","path":"/v1/payouts","when":"after","status":503,"times":3}'`,
			`curl http://127.0.0.1:8081/control/faults -d '{"path":"/v1/payouts","when":"after","cut":true}'`,
			`curl http://127.0.0.1:8081/control/statement -d '{"change":"drop","line":"pyt_…"}'`,
			"bursar sandbox --addr 127.0.0.1:9000 --webhook-url http://127.0.0.1:8080/api/gateway/webhooks/razorpayx")
}

// Run serves the sandbox until a signal comes.
func (c sandboxCmd) Run(ctx context.Context, e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	logger, err := newLogger(cfg, e.err)
	if err != nil {
		return err
	}
	keyID := cmp.Or(e.settings.RazorpayXKeyID, sandboxKeyID)
	secret := cmp.Or(e.settings.RazorpayXKeySecret, "sandbox-key-secret")
	account := cmp.Or(e.settings.RazorpayXAccountNumber, sandboxAccount)
	address := cfg.Sandbox
	if !cfg.Addr.OrFree { // somebody asked for it
		address = cfg.Addr
	}
	listener, err := listen(ctx, address, "BURSAR_SANDBOX_ADDR (--sandbox-addr)")
	if err != nil {
		return err
	}
	box, err := sandbox.New(sandbox.Options{
		Path: c.File, KeyID: keyID, KeySecret: secret, AccountNumber: account,
		WebhookURL: c.WebhookURL, WebhookSecret: c.WebhookSecret,
		SettleAfter: cfg.SandboxSettleAfter, Currency: cfg.Currency, Now: time.Now, Logger: logger,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	fmt.Fprintf(e.out, "The sandbox is ready. Point a client of RazorpayX at it:\n")
	fmt.Fprintf(e.out, "  BURSAR_RAZORPAYX_BASE_URL=%s/v1\n", addressOf(listener))
	fmt.Fprintf(e.out, "  BURSAR_RAZORPAYX_KEY_ID=%s\n", keyID)
	if e.settings.RazorpayXKeySecret == "" {
		fmt.Fprintf(e.out, "  BURSAR_RAZORPAYX_KEY_SECRET=%s\n", secret)
	}
	if e.settings.RazorpayXAccountNumber == "" {
		fmt.Fprintf(e.out, "  BURSAR_RAZORPAYX_ACCOUNT_NUMBER=%s\n", account)
	}
	fmt.Fprintf(e.out, "All money that moved: %s/control/moves\n", addressOf(listener))
	return errors.Join(runStages(ctx, box.Run, serveHTTP(listener, box.Handler(), logger, &drain{})), box.Close())
}
