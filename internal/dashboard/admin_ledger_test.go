package dashboard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"bursar/internal/health"
	"bursar/internal/ledger"
)

func TestLedgerPage_AuditsInTheBackground(t *testing.T) {
	o := openAdminFixture(t)
	const page = adminHome + "/ledger"
	o.admin.get(page).want(t, 200).reads(t, "No audit since this instance started", "Audit the ledger").saysNot(t, "data-live")
	o.admin.get(adminHome).reads(t, "Not audited since this instance started.")

	o.admin.post(page).leadsTo(t, page)
	o.admin.post(page).leadsTo(t, page) // joins the first
	if len(o.jobs) != 1 {
		t.Fatalf("%d audits were begun, want one", len(o.jobs))
	}
	o.clock.advance(90 * time.Second)
	o.admin.get(page).want(t, 200).reads(t, "Audit running", "Running for 1 min").
		says(t, "data-live", `<noscript><meta http-equiv="refresh"`).saysNot(t, "<form method=\"post\" action=\""+page)
	(<-o.jobs)(t.Context())
	o.admin.get(page).want(t, 200).reads(t, "All checks passed", "1 seller, 1 sale, 0 payouts", "took 1 min", "Passed", "journals-are-whole", "payouts-match-journal").
		saysNot(t, "data-live", "Broken")
	o.admin.get(adminHome).reads(t, "Audited 0 s ago.")

	// Again: what is broken, which the real audit finds.
	o.withDiscrepancy("its <i>transfer</i> is processed")
	o.admin.post(page).leadsTo(t, page)
	(<-o.jobs)(t.Context())
	o.admin.get(page).want(t, 200).reads(t, "Some checks failed", "checks failed", "Not balanced", "found: its <i>transfer</i> is processed").
		saysNot(t, "<i>transfer")
	o.admin.get(adminHome).reads(t, "Not balanced")
}

func TestLedgerPage_AuditUnfinished_ShowsNoResult(t *testing.T) {
	o := openAdminFixture(t)
	const page = adminHome + "/ledger"
	for name, audit := range map[string]func(context.Context) (ledger.Report, error){
		"fails":  func(context.Context) (ledger.Report, error) { return ledger.Report{}, errors.New("the disk is gone") },
		"panics": func(context.Context) (ledger.Report, error) { panic("the disk is gone") },
		"is stopped": func(ctx context.Context) (ledger.Report, error) {
			<-ctx.Done()
			return ledger.Report{}, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			o.audited.audit = audit
			o.admin.post(page).leadsTo(t, page)
			ctx, stop := context.WithCancel(t.Context())
			stop() // as the service does when it ends
			(<-o.jobs)(ctx)
			o.admin.get(page).want(t, 200).reads(t, "The last audit did not finish", "The database could not be read to the end").
				saysNot(t, "the disk is gone", "All checks passed")
		})
	}
	if !strings.Contains(o.log.String(), "the disk is gone") {
		t.Error("the log says nothing")
	}
}

func TestManyViolationsAreCut(t *testing.T) {
	o := openAdminFixture(t)
	o.audited.audit = func(context.Context) (ledger.Report, error) {
		f := ledger.Finding{Name: "floors-hold", Promise: "No balance is below zero."}
		for range ledger.MaxViolations {
			f.Violations = append(f.Violations, ledger.Violation{Seller: "usr_1", Problem: "the balance has -0.01 INR pending"})
		}
		return ledger.Report{Findings: []ledger.Finding{f}}, nil
	}
	o.admin.post(adminHome + "/ledger")
	(<-o.jobs)(t.Context())
	o.admin.get(adminHome+"/ledger").reads(t, "1 of 1 checks failed", "At most 20 are listed; there may be more.")
}

func TestHealthPage_ShowsLoops(t *testing.T) {
	o := openAdminFixture(t)
	now := o.clock.Now()
	o.health.loops = []health.Loop{
		{Name: "payouts", Every: time.Second, Steps: 41, Failures: 3, LastPollAt: now, LastStepAt: now.Add(-time.Minute), LastFailureAt: now.Add(-2 * time.Minute), LastError: "the <b>gateway</b> is down"},
		{Name: "sales", Every: time.Second, LastPollAt: now},
		{Name: "sweep_sign_in", Every: time.Hour, LastPollAt: now.Add(-50 * time.Minute)},
		{Name: "watch", Every: time.Second, LastPollAt: now.Add(-5 * time.Minute), LastFailureAt: now.Add(-time.Second), LastError: "no connection"},
		{Name: "late", Every: time.Second},
	}
	o.unknown(640_00)
	o.admin.get(adminHome+"/health").want(t, 200).reads(t,
		"Payouts Retrying 41 3", "Releasing sales Working", "Cleaning up sign-ins Working", "Metrics Stalled", "late Not started",
		"Payouts failed last 2 min ago: the <b>gateway</b> is down", "1.2.3-test", "Connections, read 3 of 7 in use waited 2 times, 1s in all",
		"Unknown 1", "Complete; sending payouts", "Sales to release none scheduled").saysNot(t, "<b>gateway")
	o.admin.get(adminHome).want(t, 200).reads(t, "Metrics Stalled", "payouts are sent", "1 unknown")
}
