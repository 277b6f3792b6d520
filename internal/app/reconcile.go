package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"bursar/internal/config"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
)

// Reconciliation compares the gateway's statement with the ledger where no service runs, or beside one.
type Reconciliation struct {
	service     *reconcile.Service
	stopSandbox func() error
}

// Reconciliation makes what compares the statement of a gateway, or of the current one if at is empty, and has progress told
// of each day that was read. A payout that is to be looked at sooner is looked at by the running service.
func (b *Datastore) Reconciliation(ctx context.Context, at string, progress func(day time.Time, lines int)) (*Reconciliation, error) {
	cfg := b.cfg
	stopSandbox, err := reachSandbox(ctx, &cfg, b, quiet())
	if err != nil {
		return nil, err
	}
	gateways, err := openGateways(cfg, b.db, nil)
	if err != nil {
		return nil, errors.Join(err, stopSandbox())
	}
	if at == "" {
		at = string(cfg.Gateway)
	}
	statement, err := gateways.router.Named(gateway.Name(at))
	if err != nil {
		return nil, errors.Join(fault.Field("statement", fmt.Sprintf("names no gateway that is configured; write one of %v", slices.Sorted(maps.Keys(gateways.accounts)))), stopSandbox())
	}
	if err := b.sameGatewayAccount(ctx, statement.Name(), gateways.accounts[statement.Name()]); err != nil {
		return nil, errors.Join(err, stopSandbox())
	}
	service, err := reconcile.New(reconcile.Options{
		Store: b.db.Reconciling(statement.Name()), Statement: statement, Payouts: rescheduler{b}, Currency: cfg.Currency,
		GracePeriod: paceOf(config.Gateway(at)).gracePeriod, Zone: cfg.Zone, Now: time.Now, Logger: quiet(), Progress: progress,
	})
	if err != nil {
		return nil, errors.Join(err, stopSandbox())
	}
	return &Reconciliation{service, stopSandbox}, nil
}

// Period reads the first and the last day of a period; empty is yesterday.
func (r *Reconciliation) Period(from, to string) (reconcile.Period, error) {
	return r.service.Period(from, to)
}

// Reconcile compares a period, days that were read whole before only again if asked to. It tries a few times.
func (r *Reconciliation) Reconcile(ctx context.Context, p reconcile.Period, again bool) (reconcile.Result, error) {
	return patiently(ctx, func() (reconcile.Result, error) { return r.service.Reconcile(ctx, p, again) })
}

// Close ends the way to the gateway, and not the datastore.
func (r *Reconciliation) Close() error { return r.stopSandbox() }

// rescheduler makes payouts due where no payout service runs.
type rescheduler struct{ *Datastore }

func (h rescheduler) PollNow(ctx context.Context, id payout.ID) (rescheduled bool, err error) {
	err = h.db.Payouts().InTx(ctx, func(tx payout.Tx) (err error) {
		rescheduled, err = tx.ReschedulePayout(ctx, id, time.Now())
		return err
	})
	return rescheduled, err
}

// patiently tries again what another instance is just doing, or what the gateway did not answer.
func patiently[T any](ctx context.Context, do func() (T, error)) (T, error) {
	const tries = 5
	for pause := time.Second; ; pause *= 2 {
		result, err := do()
		if err == nil || errors.Is(err, gateway.ErrRefused) || pause >= time.Second<<(tries-1) || !wait(ctx, pause) {
			return result, err
		}
	}
}
