package main

import (
	"context"
	"log/slog"
	"time"

	"bursar/internal/payout"
	"bursar/internal/telemetry"
)

// How often the gateway is asked again, after the start, for what the book does not know.
const (
	reconcilePause    = time.Second
	reconcilePauseMax = time.Minute
)

// reconcile is the stage without which nothing is sent: it ends when the gateway has been asked.
func reconcile(payouts *payout.Service, metrics *telemetry.Metrics, logger *slog.Logger) stage {
	return func(ctx context.Context) error {
		for pause := reconcilePause; ; pause = min(2*pause, reconcilePauseMax) {
			err := payouts.Reconcile(ctx)
			if err == nil {
				metrics.SetReconciled()
				return nil
			}
			if ctx.Err() == nil {
				logger.WarnContext(ctx, "nothing is sent before the gateway has told what it knows; it is asked again",
					slog.Any("error", err), slog.Duration("pause", pause))
			}
			if !wait(ctx, pause) {
				return nil
			}
		}
	}
}
