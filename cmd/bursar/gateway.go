package main

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"bursar/internal/bank"
	"bursar/internal/config"
	"bursar/internal/payout"
	"bursar/internal/razorpayx"
	"bursar/internal/telemetry"
)

// gateway is who pays, and who knows and verifies the accounts that are paid.
type gateway interface {
	payout.Gateway
	bank.Registrar
	bank.Verifier
}

// newGateway makes the client of RazorpayX, or of the sandbox in its place.
func newGateway(cfg config.Config) (*razorpayx.Client, error) {
	return razorpayx.New(razorpayx.Options{
		BaseURL: cfg.RazorpayX.BaseURL,
		KeyID:   cfg.RazorpayX.KeyID, KeySecret: cfg.RazorpayX.KeySecret,
		AccountNumber: cfg.RazorpayX.AccountNumber,
		Currency:      cfg.Currency,
		Rate:          rate.Limit(cfg.GatewayRate),
		Timeout:       paceOf(cfg.Gateway).call,
		Now:           time.Now,
	})
}

// counted counts the calls of a gateway.
type counted struct {
	gateway
	metrics *telemetry.Metrics
}

// done counts a call that began at the given time.
func (c counted) done(operation string, began time.Time, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	c.metrics.GatewayCalled(operation, outcome, time.Since(began))
}

func (c counted) Submit(ctx context.Context, key, body string) payout.Submission {
	answers := map[payout.Answer]string{
		payout.Accepted: "ok", payout.Refused: "refused", payout.NotTaken: "not_taken", payout.Unclear: "unclear",
	}
	began := time.Now()
	s := c.gateway.Submit(ctx, key, body)
	c.metrics.GatewayCalled("submit", answers[s.Answer], time.Since(began))
	return s
}

func (c counted) Fetch(ctx context.Context, gatewayID string) (payout.Report, error) {
	began := time.Now()
	r, err := c.gateway.Fetch(ctx, gatewayID)
	c.done("fetch", began, err)
	return r, err
}

func (c counted) Find(ctx context.Context, reference string) (payout.Report, error) {
	began := time.Now()
	r, err := c.gateway.Find(ctx, reference)
	c.done("find", began, err)
	return r, err
}

func (c counted) Cancel(ctx context.Context, gatewayID string) (payout.Report, error) {
	began := time.Now()
	r, err := c.gateway.Cancel(ctx, gatewayID)
	c.done("cancel", began, err)
	return r, err
}

func (c counted) EnsureBeneficiary(ctx context.Context, a bank.Account, n bank.Number) (string, error) {
	began := time.Now()
	name, err := c.gateway.EnsureBeneficiary(ctx, a, n)
	c.done("beneficiary", began, err)
	return name, err
}

func (c counted) StartVerification(ctx context.Context, a bank.Account) (bank.Verification, error) {
	began := time.Now()
	v, err := c.gateway.StartVerification(ctx, a)
	c.done("start_verification", began, err)
	return v, err
}

func (c counted) Verification(ctx context.Context, id string) (bank.Verification, error) {
	began := time.Now()
	v, err := c.gateway.Verification(ctx, id)
	c.done("verification", began, err)
	return v, err
}
