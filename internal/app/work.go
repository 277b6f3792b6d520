package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bursar/internal/config"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/telemetry"
	"bursar/internal/webhook"
	"bursar/internal/work"
)

// How long loops rest when nothing is due. Looking costs one indexed read.
const (
	pollEvery           = 250 * time.Millisecond
	releaseEvery        = 500 * time.Millisecond
	mailsEvery          = 500 * time.Millisecond
	watchEvery          = 15 * time.Second
	sweepEvery          = time.Hour
	checkpointPollEvery = time.Minute
	reversalsEvery      = 5 * time.Second // the gateway is asked more seldom, see pace
	// reconcileEvery is how often it is looked whether a day is to be reconciled.
	reconcileEvery = time.Minute
)

// pace is how the work is done: how many steps run at once, how long one call to the gateway and one
// step may take, and when a step that was not heard of again is taken up by another worker.
type pace struct {
	workers           int
	call, step, lease time.Duration
	// gracePeriod is how long after its last sending an order may still turn up at the gateway.
	gracePeriod time.Duration
	// reversals is how often the gateway is asked which transfers came back.
	reversals time.Duration
}

// paceOf fits the work to who pays. The real gateway bounds its clients' rate, not their number, so a
// few workers keep that rate busy; the sandbox is next door and answers at once.
func paceOf(g config.Gateway) pace {
	if g.Adapter() == config.Sandbox {
		return pace{workers: 16, call: 4 * time.Second, step: 8 * time.Second, lease: 10 * time.Second, gracePeriod: 5 * time.Second, reversals: 15 * time.Second}
	}
	return pace{workers: 6, call: 15 * time.Second, step: 30 * time.Second, lease: 40 * time.Second, gracePeriod: 10 * time.Minute, reversals: 5 * time.Minute}
}

const (
	bankWorkers = 4
	mailWorkers = 4
)

// The loops that take what is due.
const (
	payoutsLoop  = "payouts"
	accountsLoop = "bank_accounts"
	salesLoop    = "sales"
	mailsLoop    = "mails"
	eventsLoop   = "events"
	webhooksLoop = "webhooks"
)

// newWork is the stage of all that happens by itself. Its loops tell how they do to h.
func newWork(cfg config.Config, s Services, b *Datastore, h *healthOf, metrics *telemetry.Metrics, logger *slog.Logger) stage {
	p := paceOf(cfg.Gateway)
	bounded := func(name string, every, step time.Duration, workers int, take take) stage {
		metrics.ExpectLoop(name)
		l := &work.Loop{
			Name: name, Every: every, Workers: workers, StepTimeout: step, Take: take,
			Done: func(loop string, took time.Duration, err error) {
				metrics.WorkStepped(loop, took, err)
				if errors.Is(err, ledger.ErrTampered) {
					metrics.Tampered(ledger.TamperedKind)
				}
			}, Logger: logger, Now: time.Now,
		}
		h.loops = append(h.loops, l)
		return l.Run
	}
	loop := func(name string, every time.Duration, workers int, take take) stage {
		return bounded(name, every, p.step, workers, take)
	}
	return beside(
		reconcileStartup(s.Payouts, metrics, logger),
		watchStorage(cfg, b, logger),
		loop(payoutsLoop, pollEvery, p.workers, work.Each(s.Payouts.LeaseDue, s.Payouts.Step)),
		loop("reversals", reversalsEvery, 1, work.Batch(s.Payouts.PollReversals)),
		loop(accountsLoop, pollEvery, bankWorkers, work.Each(s.Bank.LeaseDue, s.Bank.Step)),
		loop(salesLoop, releaseEvery, 1, work.Batch(s.Sales.ReleaseDue)),
		loop(eventsLoop, pollEvery, 1, work.Batch(s.Events.Number)),
		loop("mail_requests", mailsEvery, 1, work.Batch(s.Auth.AnswerMailRequest)),
		bounded(mailsLoop, mailsEvery, mail.StepTimeout, mailWorkers, work.Each(s.Mails.LeaseDue, s.Mails.Step)),
		bounded(webhooksLoop, pollEvery, webhook.StepTimeout, webhook.MaxEndpoints, work.Each(s.Endpoints.LeaseDue, s.Endpoints.Step)),
		loop("checkpoints", min(checkpointPollEvery, cfg.CheckpointEvery), 1, work.Batch(s.Proofs.MakeDue)),
		loop("reconcile", reconcileEvery, 1, work.Batch(onceReconciled(s))),
		loop("watch", watchEvery, 1, watch(b, s.withStatement, metrics)),
		loop("sweep_sign_in", sweepEvery, 1, work.Batch(s.Auth.Sweep)),
		loop("sweep_mails", sweepEvery, 1, work.Batch(s.Mails.Sweep)),
		loop("sweep_webhooks", sweepEvery, 1, work.Batch(s.Endpoints.Sweep)),
		loop("sweep_payouts", sweepEvery, 1, work.Batch(s.Payouts.Sweep)),
	)
}

// onceReconciled reconciles once startup reconciliation listed transfers: before, a journal that was put
// back differs from the statement in all that it is about to learn.
func onceReconciled(s Services) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		if !s.Payouts.StartupReconciled() {
			return 0, nil
		}
		var failed error
		for _, one := range s.reconciling {
			_, err := one.RunDue(ctx)
			failed = errors.Join(failed, err)
		}
		return 0, failed
	}
}

// take is how a loop finds what is due.
type take = func(ctx context.Context, limit int) ([]work.Step, error)
