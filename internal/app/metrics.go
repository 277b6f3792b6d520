package app

import (
	"context"
	"runtime"
	"time"

	"bursar/internal/auth"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
	"bursar/internal/telemetry"
	"bursar/internal/webhook"
	"bursar/internal/work"
)

// newMetrics makes the metrics of a service on this ledger.
func newMetrics(b *Datastore, version string) *telemetry.Metrics {
	m := telemetry.NewMetrics()
	m.SetBuild(version, runtime.Version())
	m.WatchDatabase(func() telemetry.DatabaseStats {
		stats := b.db.Stats()
		shown := telemetry.DatabaseStats{Pools: stats.Pools, Queues: map[string]telemetry.QueueStats{}}
		for name, queue := range stats.Queues {
			shown.Queues[name] = telemetry.QueueStats(queue)
		}
		return shown
	})
	m.ExpectTampered(append(auth.TamperedKinds(), ledger.TamperedKind)...)
	m.ExpectMove("", string(payout.Waiting))
	m.ExpectMails(mail.Outcomes()...)
	m.ExpectWebhooks(webhook.Outcomes()...)
	for _, from := range payout.States() {
		for _, to := range from.Next() {
			m.ExpectMove(string(from), string(to))
		}
	}
	actions, outcomes := auth.TriedOutcomes()
	for _, action := range actions {
		m.ExpectAttempts(action, outcomes...)
	}
	return m
}

// watch tells operators what may need them.
func watch(b *Datastore, withStatement []gateway.Name, metrics *telemetry.Metrics) take {
	return func(ctx context.Context, _ int) ([]work.Step, error) {
		now := time.Now()
		seen, err := b.db.Watch(ctx, now)
		if err != nil {
			return nil, err
		}
		kinds, err := b.db.OpenKinds(ctx)
		if err != nil {
			return nil, err
		}
		reconciledAt, err := b.db.ReconciledAt(ctx, withStatement, now)
		if err != nil {
			return nil, err
		}
		differences := map[string]int64{}
		for _, kind := range reconcile.Kinds() { // those without any show as zero
			differences[string(kind)] = kinds[kind]
		}
		overdue := func(due time.Time) time.Duration {
			if due.IsZero() {
				return 0
			}
			return max(0, now.Sub(due))
		}
		metrics.SetWatched(telemetry.Watched{
			Unknown: seen.Unknown, ManualReview: seen.ManualReview, Discrepancies: seen.Discrepancies, UnmatchedTransfers: seen.UnmatchedTransfers,
			Late: seen.Late, OldestLate: overdue(seen.LateSince),
			PayoutsStopped: seen.PayoutsStopped, Paused: seen.Paused,
			AccountsInReview: seen.AccountsInReview, CheckpointAt: seen.CheckpointAt,
			Differences: differences, ReconciledAt: reconciledAt,
			OldestUnsentMail: overdue(seen.MailQueued),
			OldestWebhook:    overdue(seen.WebhookSince), WebhooksFailing: seen.WebhooksFailing, WebhooksDisabled: seen.WebhooksDisabled,
			Overdue: map[string]time.Duration{
				payoutsLoop: overdue(seen.PayoutDue), accountsLoop: overdue(seen.AccountDue), salesLoop: overdue(seen.SaleDue),
				mailsLoop: overdue(seen.MailDue),
			},
		}, now)
		return nil, nil
	}
}
