package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Watched is what operators keep an eye on, as it stands at one moment.
type Watched struct {
	// Unknown, ManualReview and Discrepancies count payouts that need attention.
	Unknown, ManualReview, Discrepancies int64
	// UnmatchedTransfers counts transfers under our references that match no payout.
	UnmatchedTransfers int64
	// PayoutsStopped counts payouts that wait because payouts are frozen or paused; Paused says that those of all sellers are.
	PayoutsStopped int64
	Paused         bool
	// Late counts payouts under way that should have arrived, and OldestLate is since when the first of them should have.
	Late       int64
	OldestLate time.Duration
	// AccountsInReview counts bank accounts that wait for a person.
	AccountsInReview int64
	// Overdue is for how long the longest waiting of what each loop does has been due.
	Overdue map[string]time.Duration
	// OldestUnsentMail is for how long the oldest mail that is not sent has waited.
	OldestUnsentMail time.Duration
	// OldestWebhook is for how long the oldest event has waited that an enabled webhook endpoint did not take. The others count
	// the endpoints that only fail, and those that the service disabled.
	OldestWebhook                     time.Duration
	WebhooksFailing, WebhooksDisabled int64
	// CheckpointAt is when the newest checkpoint was made; zero for never.
	CheckpointAt time.Time
	// Differences counts those between the gateway's statement and the ledger that wait for a person, by kind.
	Differences map[string]int64
	// ReconciledAt is when the service last compared the gateway's statement with the ledger by itself; zero for never.
	ReconciledAt time.Time
}

// watched shows the last look.
type watched struct {
	unknown, manualReview, discrepancies, unmatched, inReview prometheus.Gauge
	stopped, paused, late, oldestLate                         prometheus.Gauge

	overdue     *prometheus.GaugeVec
	unsentMail  prometheus.Gauge
	webhooks    struct{ oldest, failing, disabled prometheus.Gauge }
	checkpoint  prometheus.Gauge
	differences *prometheus.GaugeVec
	reconciled  prometheus.Gauge
	at          prometheus.Gauge
}

func newWatched(registry *prometheus.Registry) watched {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	w := watched{
		unknown:       gauge("bursar_payouts_unknown", "Payouts whose outcome is unknown and being found out."),
		manualReview:  gauge("bursar_payouts_manual_review", "Payouts in manual review. Should be 0."),
		discrepancies: gauge("bursar_payouts_with_discrepancy", "Payouts with a discrepancy: the gateway's report disagrees with the journal, or the payout was changed outside Bursar. Should be 0."),
		unmatched:     gauge("bursar_unmatched_transfers", "Unmatched transfers: the gateway made them under our references, and no payout matches. Should be 0."),
		stopped:       gauge("bursar_payouts_stopped", "Payouts that wait because payouts are frozen for their seller or paused for all."),
		paused:        gauge("bursar_payouts_paused", "1 while the payouts of all sellers are paused, else 0."),
		late:          gauge("bursar_payouts_late", "Payouts under way that should have arrived by their estimate. Should be 0."),
		oldestLate:    gauge("bursar_payouts_late_oldest_seconds", "For how long the payout that is late the longest should have arrived; 0 for none."),
		inReview:      gauge("bursar_bank_accounts_in_review", "Bank accounts that wait for a person to accept or reject them."),
		overdue: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "bursar_work_overdue_seconds",
			Help: "For how long the longest waiting of what a work loop does has been due.",
		}, []string{"loop"}),
		unsentMail: gauge("bursar_mail_oldest_unsent_seconds", "For how long the oldest mail that is not sent has waited; 0 for none."),
		checkpoint: gauge("bursar_checkpoint_timestamp_seconds", "When the newest checkpoint of the ledger was made; 0 for never."),
		differences: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "bursar_reconcile_differences",
			Help: "Differences between the gateway's statement and the ledger that wait for a person, by kind. Should be 0.",
		}, []string{"kind"}),
		reconciled: gauge("bursar_reconcile_timestamp_seconds", "When the gateway's statement was last compared with the ledger by itself; 0 for never."),

		at: gauge("bursar_watch_timestamp_seconds", "When the payouts and the work that is due were last looked at."),
	}
	w.webhooks.oldest = gauge("bursar_webhook_oldest_undelivered_seconds", "For how long the oldest event has waited that an enabled webhook endpoint did not take; 0 for none.")
	w.webhooks.failing = gauge("bursar_webhook_endpoints_failing", "Enabled webhook endpoints that took nothing since their last failure.")
	w.webhooks.disabled = gauge("bursar_webhook_endpoints_disabled", "Webhook endpoints that the service disabled, until a person enables them, keeps them disabled or removes them.")
	registry.MustRegister(w.webhooks.oldest, w.webhooks.failing, w.webhooks.disabled)
	registry.MustRegister(w.unknown, w.manualReview, w.discrepancies, w.unmatched, w.stopped, w.paused, w.late, w.oldestLate, w.inReview, w.overdue, w.unsentMail, w.checkpoint, w.differences, w.reconciled, w.at)
	return w
}

// SetWatched shows what a look at the given time saw. It is the same on every instance.
func (m *Metrics) SetWatched(w Watched, at time.Time) {
	m.watched.unknown.Set(float64(w.Unknown))
	m.watched.manualReview.Set(float64(w.ManualReview))
	m.watched.discrepancies.Set(float64(w.Discrepancies))
	m.watched.unmatched.Set(float64(w.UnmatchedTransfers))
	m.watched.stopped.Set(float64(w.PayoutsStopped))
	m.watched.paused.Set(0)
	if w.Paused {
		m.watched.paused.Set(1)
	}
	m.watched.late.Set(float64(w.Late))
	m.watched.oldestLate.Set(w.OldestLate.Seconds())
	m.watched.inReview.Set(float64(w.AccountsInReview))
	for kind, n := range w.Differences {
		m.watched.differences.WithLabelValues(kind).Set(float64(n))
	}
	for loop, overdue := range w.Overdue {
		m.watched.overdue.WithLabelValues(loop).Set(overdue.Seconds())
	}
	m.watched.unsentMail.Set(w.OldestUnsentMail.Seconds())
	m.watched.webhooks.oldest.Set(w.OldestWebhook.Seconds())
	m.watched.webhooks.failing.Set(float64(w.WebhooksFailing))
	m.watched.webhooks.disabled.Set(float64(w.WebhooksDisabled))
	if !w.CheckpointAt.IsZero() {
		m.watched.checkpoint.Set(float64(w.CheckpointAt.UnixMilli()) / 1000)
	}
	if !w.ReconciledAt.IsZero() {
		m.watched.reconciled.Set(float64(w.ReconciledAt.UnixMilli()) / 1000)
	}
	m.watched.at.Set(float64(at.UnixMilli()) / 1000)
}

// SetBuild says which program this is.
func (m *Metrics) SetBuild(version, goVersion string) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "bursar_build_info",
		Help:        "Always 1; the labels say which version runs.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": goVersion},
	}, func() float64 { return 1 }))
}
