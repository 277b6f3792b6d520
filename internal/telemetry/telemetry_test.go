package telemetry_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"bursar/internal/telemetry"
)

func TestLogRedactsSecrets(t *testing.T) {
	const secret = "hunter2"
	keys := []string{
		"password", "new_password", "token", "access_token", "refreshToken", "Authorization", "cookie", "Set-Cookie",
		"secret", "webhook_secret", "api_key", "X-Api-Key", "service_key", "account_number", "accountNumber", "database_url",
	}
	for _, format := range []telemetry.Format{telemetry.JSON, telemetry.Text} {
		t.Run(string(format), func(t *testing.T) {
			var out strings.Builder
			logger, err := telemetry.NewLogger(&out, slog.LevelInfo, format)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				logger.Info("said", key, secret)
				logger.With(key, secret).Info("with")
				logger.Info("grouped", slog.Group("request", slog.String(key, secret)))
				logger.WithGroup("group").Info("in a group", key, secret)
			}
			if strings.Contains(out.String(), secret) {
				t.Errorf("the log holds the secret:\n%s", out.String())
			}
			if got, want := strings.Count(out.String(), "[redacted]"), 4*len(keys); got != want {
				t.Errorf("%d values redacted, want %d", got, want)
			}
			logger.Info("plain", "user", "usr_1", "path", "/api", "keys", 2)
			if !strings.Contains(out.String(), "usr_1") {
				t.Error("too much is redacted")
			}
		})
	}
}

func TestLogNamesTheRequest(t *testing.T) {
	var out strings.Builder
	logger, err := telemetry.NewLogger(&out, slog.LevelInfo, telemetry.Text)
	if err != nil {
		t.Fatal(err)
	}
	ctx := telemetry.WithRequest(t.Context(), &telemetry.Request{ID: "r1"})
	logger.InfoContext(ctx, "before")
	telemetry.SetUser(ctx, "usr_1")
	logger.With("a", 1).InfoContext(ctx, "after")
	telemetry.SetUser(t.Context(), "nobody asked")
	logger.InfoContext(t.Context(), "outside")

	lines := strings.Split(out.String(), "\n")
	wants := []string{`msg=before request_id=r1`, `msg=after a=1 request_id=r1 caller=usr_1`, `msg=outside`}
	for i, want := range wants {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("line %d is %s, want an end of %s", i, lines[i], want)
		}
	}
}

func TestLogLevelAndFormat(t *testing.T) {
	var out strings.Builder
	var level slog.LevelVar
	logger, err := telemetry.NewLogger(&out, &level, telemetry.JSON)
	if err != nil {
		t.Fatal(err)
	}
	logger.Debug("quiet")
	level.Set(slog.LevelDebug)
	logger.Debug("loud")
	if strings.Contains(out.String(), "quiet") || !strings.Contains(out.String(), `"msg":"loud"`) {
		t.Errorf("log %s", out.String())
	}
	logger.Info("asked again", slog.Duration("pause", 1500*time.Millisecond))
	if !strings.Contains(out.String(), `"pause":"1.5s"`) {
		t.Errorf("a duration is logged without its unit: %s", out.String())
	}
	if _, err := telemetry.NewLogger(&out, &level, "xml"); err == nil || !strings.Contains(err.Error(), "xml") {
		t.Errorf("format xml: %v", err)
	}
	if logger.Enabled(context.Background(), slog.LevelDebug-1) {
		t.Error("a level below the set one is enabled")
	}
}

func TestMetrics(t *testing.T) {
	m := telemetry.NewMetrics()
	m.RequestStarted()
	m.RequestStarted()
	m.RequestDone("/api/auth/me", http.MethodGet, 200, 30*time.Millisecond)
	m.RequestStarted()
	m.RequestDone("", "MADE-UP", 404, time.Millisecond)
	m.PayoutMoved("", "waiting")
	m.PayoutMoved("waiting", "submitting")
	m.SetStartupReconciled()
	m.ExpectMove("completed", "returned")
	m.ExpectGatewayCall("submit", "unclear", "refused")
	m.ExpectLoop("sales")
	m.SetWatched(telemetry.Watched{
		Unknown: 2, ManualReview: 3, Discrepancies: 4, UnmatchedTransfers: 5, AccountsInReview: 6, PayoutsStopped: 7, Paused: true, Late: 8, OldestLate: time.Hour, OldestWebhook: time.Minute, WebhooksFailing: 9, WebhooksDisabled: 10, Overdue: map[string]time.Duration{"payouts": 90 * time.Second},
	}, time.UnixMilli(1_700_000_000_500))
	m.SetBuild("v1.2.3", "go1.26")
	m.WatchDatabase(func() telemetry.DatabaseStats {
		return telemetry.DatabaseStats{
			Pools:  map[string]sql.DBStats{"read": {MaxOpenConnections: 8, InUse: 5, Idle: 1, WaitCount: 7, WaitDuration: 1500 * time.Millisecond}},
			Queues: map[string]telemetry.QueueStats{"rows": {Waiting: 6, Groups: 3, Grouped: 12, UpTo: map[int]uint64{1: 1, 2: 2, 256: 3}}},
		}
	})
	m.GatewayCalled("submit", "unclear", 2*time.Second)
	m.WorkStepped("payouts", time.Second, nil)
	m.WorkStepped("payouts", time.Second, errors.New("no"))

	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`bursar_http_requests_in_flight 1`,
		`bursar_http_requests_total{method="GET",route="/api/auth/me",status="2xx"} 1`,
		`bursar_http_request_seconds_bucket{method="GET",route="/api/auth/me",status="2xx",le="0.05"} 1`,
		`bursar_http_request_seconds_bucket{method="GET",route="/api/auth/me",status="2xx",le="0.025"} 0`,
		`bursar_http_requests_total{method="other",route="none",status="4xx"} 1`,
		`bursar_payout_moves_total{from="",to="waiting"} 1`,
		`bursar_payout_moves_total{from="waiting",to="submitting"} 1`,
		`bursar_payout_moves_total{from="completed",to="returned"} 0`,
		`bursar_payouts_unknown 2`,
		`bursar_payouts_manual_review 3`,
		`bursar_startup_reconciled 1`,
		`bursar_unmatched_transfers 5`,
		`bursar_payouts_stopped 7`,
		`bursar_payouts_paused 1`,
		`bursar_payouts_late 8`,
		`bursar_payouts_late_oldest_seconds 3600`,
		`bursar_bank_accounts_in_review 6`,
		`bursar_webhook_oldest_undelivered_seconds 60`,
		`bursar_webhook_endpoints_failing 9`,
		`bursar_webhook_endpoints_disabled 10`,
		`bursar_payouts_with_discrepancy 4`,
		`bursar_work_overdue_seconds{loop="payouts"} 90`,
		`bursar_watch_timestamp_seconds 1.7000000005e+09`,
		`bursar_build_info{goversion="go1.26",version="v1.2.3"} 1`,
		`bursar_database_connections{pool="read",state="in_use"} 5`,
		`bursar_database_connections{pool="read",state="idle"} 1`,
		`bursar_database_connections_max{pool="read"} 8`,
		`bursar_database_connection_waits_total{pool="read"} 7`,
		`bursar_database_connection_wait_seconds_total{pool="read"} 1.5`,
		`bursar_database_queue_length{queue="rows"} 6`,
		`bursar_database_group_size_bucket{queue="rows",le="2"} 2`,
		`bursar_database_group_size_bucket{queue="rows",le="+Inf"} 3`,
		`bursar_database_group_size_sum{queue="rows"} 12`,
		`bursar_gateway_calls_total{operation="submit",outcome="unclear"} 1`,
		`bursar_gateway_calls_total{operation="submit",outcome="refused"} 0`,
		`bursar_gateway_call_seconds_sum{operation="submit"} 2`,
		`bursar_work_steps_total{loop="payouts",outcome="ok"} 1`,
		`bursar_work_steps_total{loop="payouts",outcome="error"} 1`,
		`bursar_work_steps_total{loop="sales",outcome="error"} 0`,
		`bursar_work_step_seconds_count{loop="payouts"} 2`,
		`go_goroutines`,
		`process_start_time_seconds`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

func TestMetricsShareNothing(t *testing.T) {
	a, b := telemetry.NewMetrics(), telemetry.NewMetrics()
	a.PayoutMoved("", "waiting")
	w := httptest.NewRecorder()
	b.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if strings.Contains(w.Body.String(), "bursar_payout_moves_total{") {
		t.Error("one registry's count shows in another")
	}
}
