package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"bursar/internal/bank"
	"bursar/internal/config"
	"bursar/internal/payout"
	"bursar/internal/razorpayx"
	"bursar/internal/reconcile"
	"bursar/internal/store"
	"bursar/internal/telemetry"
)

// gateway is who pays, and who knows and verifies the accounts that are paid.
type gateway interface {
	payout.Gateway
	bank.Registrar
	bank.Verifier
	reconcile.Statement
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

// errNoTurn is that more is to be asked of the gateway than its rate lets through.
var errNoTurn = errors.New("no turn at the gateway")

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
			return fmt.Errorf("%w within %s", errNoTurn, patience)
		}
		select {
		case <-time.After(end.Add(-every).Sub(now)):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// counted is a gateway whose calls are counted.
type counted struct {
	gateway
	metrics *telemetry.Metrics
}

// submitOutcomes are what may come of a submission, in the words of the metrics.
var submitOutcomes = map[payout.Answer]string{
	payout.Accepted: "ok", payout.Refused: "refused", payout.NotTaken: "not_taken", payout.Unclear: "unclear",
}

// newCounted counts the calls of a gateway.
func newCounted(g gateway, metrics *telemetry.Metrics) counted {
	metrics.ExpectGatewayCall("submit", append(slices.Collect(maps.Values(submitOutcomes)), razorpayx.NoTurn)...)
	for _, operation := range []string{"fetch", "find", "cancel", "transfers", "reversed", "lines", "beneficiary", "describe_beneficiary", "start_verification", "verification"} {
		metrics.ExpectGatewayCall(operation, "ok", "not_found", razorpayx.NoTurn, "error")
	}
	return counted{g, metrics}
}

// done counts a call that began at the given time. That the gateway knows no such transfer is an answer
// like another, and no failure of it.
func (c counted) done(operation string, began time.Time, err error) {
	outcome := "ok"
	switch {
	case errors.Is(err, payout.ErrUnknownToGateway):
		outcome = "not_found"
	case errors.Is(err, errNoTurn):
		outcome = razorpayx.NoTurn
	case err != nil:
		outcome = "error"
	}
	c.metrics.GatewayCalled(operation, outcome, time.Since(began))
}

func (c counted) Submit(ctx context.Context, key, body string) payout.Submission {
	began := time.Now()
	s := c.gateway.Submit(ctx, key, body)
	outcome := submitOutcomes[s.Answer]
	if s.ReasonCode == razorpayx.NoTurn {
		outcome = razorpayx.NoTurn
	}
	c.metrics.GatewayCalled("submit", outcome, time.Since(began))
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

func (c counted) Reversed(ctx context.Context, since time.Time, skip int) ([]payout.Transfer, error) {
	began := time.Now()
	page, err := c.gateway.Reversed(ctx, since, skip)
	c.done("reversed", began, err)
	return page, err
}

func (c counted) Lines(ctx context.Context, from, to time.Time, skip int) ([]reconcile.Line, error) {
	began := time.Now()
	page, err := c.gateway.Lines(ctx, from, to, skip)
	c.done("lines", began, err)
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

func (c counted) Verification(ctx context.Context, a bank.Account) (bank.Verification, error) {
	began := time.Now()
	v, err := c.gateway.Verification(ctx, a)
	c.done("verification", began, err)
	return v, err
}
