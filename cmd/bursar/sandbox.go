package main

import (
	"cmp"
	"context"
	"fmt"

	"bursar/internal/app"
)

type sandboxCmd struct {
	File          string `placeholder:"PATH" help:"File of its records; a temporary one that is removed unless set."`
	WebhookURL    string `name:"webhook-url" placeholder:"URL" help:"Where events go; nowhere unless set."`
	AllowPublic   bool   `help:"Listen on an address that other machines reach. All of them can then reach the control API, which asks for no password: they can read every payment, and change and fail them."`
	Profile       string `placeholder:"full" help:"Which features it offers: full, or limited: keys honoured for 24 hours, no lists, notes, cancelling, validations or statement. What BURSAR_SANDBOX_PROFILE says unless set."`
	WebhookSecret string `placeholder:"SECRET" help:"What events are signed with; one that is printed at the start unless set."`
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
			"bursar sandbox --profile limited",
			"bursar sandbox --addr 127.0.0.1:9000 --webhook-url http://127.0.0.1:8080/api/gateway/webhooks/razorpayx")
}

// Run serves the sandbox until a signal comes.
func (c sandboxCmd) Run(ctx context.Context, e *env) error {
	e.settings.SandboxProfile = cmp.Or(c.Profile, e.settings.SandboxProfile)
	cfg, err := e.config()
	if err != nil {
		return err
	}
	logger, err := newLogger(cfg, e.err)
	if err != nil {
		return err
	}
	o := app.SandboxOptions{
		Address: cfg.Sandbox, File: c.File,
		KeyID:         cmp.Or(e.settings.RazorpayXKeyID, app.SandboxKeyID),
		KeySecret:     cmp.Or(e.settings.RazorpayXKeySecret, "sandbox-key-secret"),
		AccountNumber: cmp.Or(e.settings.RazorpayXAccountNumber, app.SandboxAccountNumber),
		WebhookURL:    c.WebhookURL, WebhookSecret: cmp.Or(c.WebhookSecret, "sandbox-webhook-secret"),
	}
	if !cfg.Addr.OrFree { // the operator asked for it
		o.Address = cfg.Addr
	}
	if !c.AllowPublic && !o.Address.IsLoopback() {
		return usageError{fmt.Errorf("%s is open to other machines, and the sandbox's control API asks for no password; listen on a loopback address such as 127.0.0.1:8081, or add --allow-public", o.Address.Addr)}
	}
	s, err := app.NewSandbox(ctx, cfg, o, logger)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.out, "The sandbox is ready. Point a service at it:\n")
	fmt.Fprintf(e.out, "  BURSAR_GATEWAY=razorpayx\n")
	fmt.Fprintf(e.out, "  BURSAR_RAZORPAYX_BASE_URL=%s/v1\n", s.URL())
	fmt.Fprintf(e.out, "  BURSAR_RAZORPAYX_KEY_ID=%s\n", o.KeyID)
	if e.settings.RazorpayXKeySecret == "" {
		fmt.Fprintf(e.out, "  BURSAR_RAZORPAYX_KEY_SECRET=%s\n", o.KeySecret)
	}
	if e.settings.RazorpayXAccountNumber == "" {
		fmt.Fprintf(e.out, "  BURSAR_RAZORPAYX_ACCOUNT_NUMBER=%s\n", o.AccountNumber)
	}
	if c.WebhookSecret == "" {
		fmt.Fprintf(e.out, "  BURSAR_RAZORPAYX_WEBHOOK_SECRETS=%s\n", o.WebhookSecret)
	}
	if cfg.SandboxProfile == "limited" {
		fmt.Fprintf(e.out, "  BURSAR_SANDBOX_PROFILE=limited\n")
	}
	fmt.Fprintf(e.out, "All money that moved: %s/control/moves\n", s.URL())
	return s.Run(ctx)
}
