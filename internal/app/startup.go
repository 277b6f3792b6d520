package app

import (
	"context"
	"log/slog"
	"time"

	"bursar/internal/payout"
	"bursar/internal/telemetry"
	"bursar/internal/work"
)

// How often the gateway is asked again, after the start, for what the ledger does not know.
const (
	startupPause    = time.Second
	startupPauseMax = time.Minute
)

// reconcileStartup is the stage without which nothing is sent: it ends when the gateway has been asked.
func reconcileStartup(payouts *payout.Service, metrics *telemetry.Metrics, logger *slog.Logger) stage {
	return func(ctx context.Context) error {
		for pause := startupPause; ; pause = min(2*pause, startupPauseMax) {
			err := work.Safely(ctx, payouts.ReconcileStartup)
			if err == nil {
				metrics.SetStartupReconciled()
				return nil
			}
			if ctx.Err() == nil {
				logger.WarnContext(ctx, "startup reconciliation failed; no payout is sent until it succeeds",
					slog.Any("error", err), slog.Duration("pause", pause))
			}
			if !wait(ctx, pause) {
				return nil
			}
		}
	}
}
