package app

import (
	"context"
	"log/slog"
	"time"

	"bursar/internal/payout"
	"bursar/internal/telemetry"
)

// How often the gateway is asked again, after the start, for what the book does not know.
const (
	catchUpPause    = time.Second
	catchUpPauseMax = time.Minute
)

// catchUp is the stage without which nothing is sent: it ends when the gateway has been asked.
func catchUp(payouts *payout.Service, metrics *telemetry.Metrics, logger *slog.Logger) stage {
	return func(ctx context.Context) error {
		for pause := catchUpPause; ; pause = min(2*pause, catchUpPauseMax) {
			err := payouts.CatchUp(ctx)
			if err == nil {
				metrics.SetCaughtUp()
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
