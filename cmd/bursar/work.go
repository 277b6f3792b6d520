package main

import (
	"context"
	"log/slog"
	"time"

	"bursar/internal/config"
	"bursar/internal/telemetry"
	"bursar/internal/work"
)

// How long loops rest when nothing is due. Looking costs one indexed read.
const (
	lookEvery    = 250 * time.Millisecond
	releaseEvery = 500 * time.Millisecond
	countEvery   = 15 * time.Second
	sweepEvery   = time.Hour
)

// Steps that run at once. The real gateway bounds its clients' rate, not their number; a few workers
// keep that rate busy.
const (
	sandboxWorkers = 16
	gatewayWorkers = 6
	bankWorkers    = 4
)

// newWork is the stage of all that happens by itself.
func newWork(cfg config.Config, s services, b *book, metrics *telemetry.Metrics, logger *slog.Logger) stage {
	payoutWorkers := gatewayWorkers
	if cfg.Gateway == config.Sandbox {
		payoutWorkers = sandboxWorkers
	}
	loop := func(name string, every time.Duration, workers int, take take) stage {
		l := work.Loop{
			Name: name, Every: every, Workers: workers, Take: take,
			Done: metrics.WorkStepped, Logger: logger, Now: time.Now,
		}
		return l.Run
	}
	return beside(
		loop("payouts", lookEvery, payoutWorkers, work.Each(s.payouts.TakeDue, s.payouts.Step)),
		loop("bank_accounts", lookEvery, bankWorkers, work.Each(s.bank.TakeDue, s.bank.Step)),
		loop("sales", releaseEvery, 1, work.Batch(s.sales.ReleaseDue)),
		loop("held", countEvery, 1, countHeld(b, metrics)),
		loop("sweep_sign_in", sweepEvery, 1, work.Batch(s.auth.Sweep)),
		loop("sweep_payouts", sweepEvery, 1, work.Batch(s.payouts.Sweep)),
	)
}

// take is how a loop finds what is due.
type take = func(ctx context.Context, limit int) ([]work.Step, error)

// countHeld tells operators how many payouts wait for a person.
func countHeld(b *book, metrics *telemetry.Metrics) take {
	return func(ctx context.Context, _ int) ([]work.Step, error) {
		n, err := b.db.HeldPayouts(ctx)
		if err == nil {
			metrics.SetHeldPayouts(n)
		}
		return nil, err
	}
}
