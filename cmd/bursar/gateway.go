package main

import (
	"context"
	"fmt"
	"time"

	"bursar/internal/bank"
	"bursar/internal/config"
	"bursar/internal/payout"
	"bursar/internal/razorpayx"
	"bursar/internal/store"
	"bursar/internal/telemetry"
)

// gateway is who pays, and who knows and verifies the accounts that are paid.
type gateway interface {
	payout.Gateway
	bank.Registrar
	bank.Verifier
}

// newGateway makes the client of RazorpayX, or of the sandbox in its place.
func newGateway(cfg config.Config, db *store.DB) (*razorpayx.Client, error) {
	return razorpayx.New(razorpayx.Options{
		BaseURL: cfg.RazorpayX.BaseURL,
		KeyID:   cfg.RazorpayX.KeyID, KeySecret: cfg.RazorpayX.KeySecret,
		AccountNumber: cfg.RazorpayX.AccountNumber,
		Currency:      cfg.Currency,
		Turn:          turns(cfg, db),
		Timeout:       paceOf(cfg.Gateway).call,
		Now:           time.Now,
	})
}

// turns spaces requests to the gateway evenly, those of all instances together: the gateway counts them
// so. What paces them is a row of the database, which one statement moves.
func turns(cfg config.Config, db *store.DB) func(context.Context) error {
	if cfg.GatewayRate == 0 {
		return nil
	}
	every := time.Duration(float64(time.Second) / cfg.GatewayRate)
	return func(ctx context.Context) error {
		now := time.Now()
		patience := paceOf(cfg.Gateway).call / 2
		var end time.Time
		var mine bool
		err := db.Update(ctx, func(tx *store.Tx) (err error) {
			end, mine, err = tx.TakeThrottle(ctx, "gateway", now, every, patience+every)
			return err
		})
		if err != nil {
			return fmt.Errorf("wait for a turn at the gateway: %w", err)
		}
		if !mine {
			return fmt.Errorf("no turn at the gateway within %s", patience)
		}
		select {
		case <-time.After(end.Add(-every).Sub(now)):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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

func (c counted) Transfers(ctx context.Context, since time.Time, skip int) ([]payout.Transfer, error) {
	began := time.Now()
	page, err := c.gateway.Transfers(ctx, since, skip)
	c.done("transfers", began, err)
	return page, err
}

func (c counted) DescribeBeneficiary(ctx context.Context, beneficiary string) (bank.Account, bank.Number, error) {
	began := time.Now()
	a, n, err := c.gateway.DescribeBeneficiary(ctx, beneficiary)
	c.done("describe_beneficiary", began, err)
	return a, n, err
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
