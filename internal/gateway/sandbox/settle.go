package sandbox

import (
	"context"
	"log/slog"
	"time"
)

const (
	// settleBatch bounds how much happens in one transaction.
	settleBatch = 100
	// breath is the least rest between looks at what is due, longestRest the most: a clock that is set
	// by hand is noticed within it.
	breath      = 5 * time.Millisecond
	longestRest = 250 * time.Millisecond
)

const (
	settleDueAt = `SELECT min(due) FROM (
		SELECT min(due_at) AS due FROM payouts WHERE due_at IS NOT NULL
		UNION ALL SELECT min(due_at) FROM validations WHERE due_at IS NOT NULL)`
	deliverDueAt = `SELECT min(due_at) FROM events WHERE due_at IS NOT NULL`
)

// repeat takes steps until ctx ends, and rests until the instant that the query finds.
func (s *Sandbox) repeat(ctx context.Context, soon <-chan struct{}, dueAt string, step func() error) {
	for ctx.Err() == nil {
		if wait := s.untilDue(dueAt); wait > breath && !s.funded.Load() {
			rest(ctx, soon, wait)
			continue
		}
		if err := step(); err != nil {
			s.o.Logger.ErrorContext(ctx, "sandbox step failed", slog.Any("error", err))
			pause(ctx, time.Second)
		}
		pause(ctx, breath)
	}
}

// settleDue settles a batch of payouts and validations, and starts queued payouts if there is new money.
func (s *Sandbox) settleDue() error {
	now, funded := s.o.Now(), s.funded.Swap(false)
	err := s.update(func(t *tx) error {
		payouts, err := rowsOf(t, scanPayout, `SELECT `+payoutColumns+` FROM payouts WHERE due_at <= $1 ORDER BY due_at LIMIT $2 + 0`,
			now.UnixMicro(), settleBatch)
		if err != nil {
			return err
		}
		for _, p := range payouts {
			if err := s.takeStep(t, &p, now); err != nil {
				return err
			}
		}
		validations, err := rowsOf(t, scanValidation, `SELECT `+validationColumns+` FROM validations WHERE due_at <= $1 ORDER BY due_at LIMIT $2 + 0`,
			now.UnixMicro(), settleBatch)
		if err != nil {
			return err
		}
		for _, v := range validations {
			if err := s.completeValidation(t, v, now); err != nil {
				return err
			}
		}
		if funded {
			return s.startQueued(t, now)
		}
		return nil
	})
	if err != nil && funded {
		s.funded.Store(true)
	}
	return err
}

// takeStep lets the next thing of a payout's story happen.
func (s *Sandbox) takeStep(t *tx, p *payout, now time.Time) error {
	change := storyOf(p.last4).steps[p.step]
	p.step++
	return s.move(t, p, change, now, savePayout)
}

// startQueued starts the payouts that wait for balance, first come first served, passing over those
// that are too large.
func (s *Sandbox) startQueued(t *tx, now time.Time) error {
	queued, err := rowsOf(t, scanPayout, `SELECT `+payoutColumns+` FROM payouts WHERE status = 'queued' ORDER BY seq`)
	if err != nil {
		return err
	}
	for _, p := range queued {
		affordable, err := s.affords(t, p)
		if err != nil {
			return err
		}
		if p.reason != "low_balance" || !affordable {
			continue
		}
		if err := s.move(t, &p, begun, now, savePayout); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf reads all rows before any is changed.
func rowsOf[Row any](q queryer, scan func(scanner) (Row, error), query string, args ...any) ([]Row, error) {
	var rows []Row
	err := q.each(query, func(s scanner) error {
		row, err := scan(s)
		rows = append(rows, row)
		return err
	}, args...)
	return rows, err
}

// untilDue is how long it is to the earliest instant that the query finds, within limits.
func (s *Sandbox) untilDue(query string) time.Duration {
	var due *int64
	if err := s.records.row(query).Scan(&due); err != nil || due == nil {
		return longestRest
	}
	return min(max(time.UnixMicro(*due).Sub(s.o.Now()), breath), longestRest)
}

// rest waits a breath, and then until there is something to do soon, for d at most.
func rest(ctx context.Context, soon <-chan struct{}, d time.Duration) {
	pause(ctx, breath)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-soon:
	case <-ctx.Done():
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
