package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/config"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/money"
	"bursar/internal/store"
	"bursar/internal/telemetry"
)

// TestOpenGateways opens the gateway that the settings choose, with an address for its webhooks.
func TestOpenGateways(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "bursar.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	set := config.RazorpayX{BaseURL: "https://api.razorpay.com/v1", KeyID: "k", KeySecret: "s", AccountNumber: "1", WebhookSecrets: []string{"new", "old"}}
	for name, paths := range map[config.Gateway][]gateway.Name{"razorpayx": {"razorpayx"}, "sandbox": {"razorpayx", "sandbox"}, "cashfree": nil} {
		cfg := config.Config{Gateway: name, Currency: inr, RazorpayX: set}
		got, err := openGateways(cfg, db, nil)
		if paths == nil {
			if err == nil || !strings.Contains(err.Error(), "BURSAR_GATEWAY=cashfree is not known") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if g, err := got.router.Named(gateway.Name(name)); err != nil || g.Name() != gateway.Name(name) || got.router.Current().Name() != g.Name() {
			t.Errorf("%s: %v", name, err)
		}
		if addresses := slices.Sorted(maps.Keys(got.webhooks)); !slices.Equal(addresses, paths) {
			t.Errorf("%s takes webhooks at %v, want %v", name, addresses, paths)
		}
		const reference = "pyt_0Tz3aB9xQ2mK7LpW4sYd1eHc"
		body := []byte(`{"event":"payout.processed","payload":{"payout":{"entity":{"id":"pout_1","reference_id":"` + reference + `"}}}}`)
		for _, secret := range set.WebhookSecrets {
			header := http.Header{razorpayx.SignatureHeader: {razorpayx.Sign(secret, body)}, razorpayx.EventIDHeader: {"evt_1"}}
			notification, err := got.webhooks["razorpayx"](header, body)
			if err != nil || notification.Gateway != gateway.Name(name) || notification.Reference != reference || notification.EventID != "evt_1" {
				t.Errorf("%s: the notification is %+v, %v", name, notification, err)
			}
		}
		if _, err := got.webhooks["razorpayx"](http.Header{}, body); fault.From(err) == nil || !errors.Is(err, razorpayx.ErrSignature) {
			t.Errorf("%s: an unsigned message is answered with %v", name, err)
		}
	}
}

// An adapter that this build lacks is refused with the names of those that it has.
func TestOpenGateways_UnknownAdapter(t *testing.T) {
	_, err := openGateways(config.Config{Gateway: "paypal"}, nil, nil)
	if err == nil || err.Error() != "BURSAR_GATEWAY=paypal is not known to this build; write one of [razorpayx sandbox]" {
		t.Errorf("it fails with %v", err)
	}
}

// TestOpenGateways_OtherAdapter opens one that takes its settings from BURSAR_GATEWAY_SETTINGS, and whose gateway sends no
// webhooks, so that there is no address for them.
func TestOpenGateways_OtherAdapter(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	const quiet config.Gateway = "quiet"
	adapters[quiet] = func(s gateway.Setup) (gateway.Opened, error) {
		s.Settings[razorpayx.SettingWebhookSecrets] = "unused"
		opened, err := razorpayx.Open(s)
		opened.ReadWebhook = nil
		return opened, err
	}
	t.Cleanup(func() { delete(adapters, quiet) })
	settings := map[string]string{razorpayx.SettingBaseURL: "https://api.razorpay.com/v1", razorpayx.SettingKeyID: "k", razorpayx.SettingKeySecret: "s"}
	cfg := config.Config{Gateway: quiet, Currency: inr, GatewaySettings: settings}
	if _, err := openGateways(cfg, nil, nil); err == nil || !strings.HasPrefix(err.Error(), "BURSAR_GATEWAY_SETTINGS: ") {
		t.Errorf("without an account number: %v", err)
	}
	settings[razorpayx.SettingAccountNumber] = "1"
	got, err := openGateways(cfg, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if at := got.router.Current().Name(); len(got.webhooks) != 0 || at != gateway.Name(quiet) {
		t.Errorf("%s takes webhooks at %v", at, slices.Collect(maps.Keys(got.webhooks)))
	}
}

// TestOpenGateways_Former opens the account that paid before beside the one that pays now, at the same gateway.
func TestOpenGateways_Former(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{
		razorpayx.SettingBaseURL: "https://api.razorpay.com/v1", razorpayx.SettingKeyID: "k", razorpayx.SettingKeySecret: "s", razorpayx.SettingWebhookSecrets: "before",
	}
	cfg := config.Config{
		Gateway: "razorpayx-2", Currency: inr,
		RazorpayX:     config.RazorpayX{BaseURL: "https://api.razorpay.com/v1", KeyID: "k", KeySecret: "s", AccountNumber: "2", WebhookSecrets: []string{"now"}},
		FormerGateway: &config.FormerGateway{Name: "razorpayx", Settings: settings},
	}
	for name, check := range map[string]func() error{
		"serve":        func() error { _, err := openGateways(cfg, nil, nil); return err },
		"config check": func() error { kept := cfg; kept.AcceptKeysInDatabase = true; return CheckSettings(kept) },
	} {
		if err := check(); err == nil || !strings.HasPrefix(err.Error(), "BURSAR_FORMER_GATEWAY_SETTINGS: ") {
			t.Errorf("%s without an account number: %v", name, err)
		}
	}
	settings[razorpayx.SettingAccountNumber] = "1"
	got, err := openGateways(cfg, nil, telemetry.NewMetrics())
	if err != nil {
		t.Fatal(err)
	}
	if at := got.router.Current().Name(); at != "razorpayx-2" {
		t.Errorf("the current gateway is %s", at)
	}
	if diff := cmp.Diff(map[gateway.Name]string{"razorpayx": "1", "razorpayx-2": "2"}, got.accounts); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}
	if with := got.withStatement(); !slices.Equal(with, []gateway.Name{"razorpayx-2", "razorpayx"}) {
		t.Errorf("the statements of %v are compared", with)
	}
	body := []byte(`{"event":"payout.processed","payload":{"payout":{"entity":{"id":"pout_1"}}}}`)
	for at, secret := range map[gateway.Name]string{"razorpayx": "before", "razorpayx-2": "now"} {
		header := http.Header{razorpayx.SignatureHeader: {razorpayx.Sign(secret, body)}, razorpayx.EventIDHeader: {"evt_1"}}
		if notification, err := got.webhooks[at](header, body); err != nil || notification.Gateway != at {
			t.Errorf("the notification of %s is of %q, %v", at, notification.Gateway, err)
		}
	}
	settings[razorpayx.SettingAccountNumber] = "2"
	if _, err := openGateways(cfg, nil, nil); err == nil || !strings.Contains(err.Error(), "razorpayx and razorpayx-2 pay from the same account") {
		t.Errorf("with one account under two names: %v", err)
	}
	cfg.FormerGateway.Name = "paypal"
	if _, err := openGateways(cfg, nil, nil); err == nil || !strings.HasPrefix(err.Error(), "BURSAR_FORMER_GATEWAY=paypal is not known to this build") {
		t.Errorf("it fails with %v", err)
	}
}

// TestCounted_TurnedAway counts an order that the gateway turned away apart from one that our own rate limit kept back: the
// alert is about the first.
func TestCounted_TurnedAway(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	t.Cleanup(busy.Close)
	var noRoom error
	opened, err := razorpayx.Open(gateway.Setup{
		Name: "razorpayx", Currency: inr, Timeout: time.Minute, Now: time.Now, Turn: func(context.Context) error { return noRoom },
		Settings: map[string]string{
			razorpayx.SettingBaseURL: busy.URL, razorpayx.SettingKeyID: "k", razorpayx.SettingKeySecret: "s",
			razorpayx.SettingAccountNumber: "1", razorpayx.SettingWebhookSecrets: "w",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	metrics := telemetry.NewMetrics()
	g := newCounted(opened.Gateway, metrics)
	g.Submit(t.Context(), "key", "{}")
	noRoom = gateway.ErrRateLimited
	g.Submit(t.Context(), "key", "{}")
	g.Submit(t.Context(), "key", "{}")
	w := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	for outcome, want := range map[string]int{"not_taken": 1, "rate_limited": 2} {
		if line := fmt.Sprintf(`bursar_gateway_calls_total{operation="submit",outcome=%q} %d`, outcome, want); !strings.Contains(w.Body.String(), line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}
