package app

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"bursar/internal/config"
	"bursar/internal/money"
	"bursar/internal/pgtest"
	"bursar/internal/telemetry"
)

// TestCheckKeysPlace opens datastores whose keys lie in PostgreSQL or in a file, for gateways that move real money and
// for sandboxes.
func TestCheckKeysPlace(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	const live, pretended = "https://api.razorpay.com/v1", "http://127.0.0.1:8081/v1"
	file := filepath.Join(t.TempDir(), "keys.json")
	for name, tt := range map[string]struct {
		postgres, keysFile string
		gateway            config.Gateway
		at                 string
		accept             bool
		refused, warned    bool
	}{
		"real money":                       {postgres: "yes", gateway: config.RazorpayXPayments, at: live, refused: true},
		"real money, accepted":             {postgres: "yes", gateway: config.RazorpayXPayments, at: live, accept: true, warned: true},
		"real money, keys in a file":       {postgres: "yes", keysFile: file, gateway: config.RazorpayXPayments, at: live},
		"real money on SQLite":             {keysFile: file, gateway: config.RazorpayXPayments, at: live},
		"another gateway":                  {postgres: "yes", gateway: "cashfree", refused: true},
		"a sandbox on a loopback address":  {postgres: "yes", gateway: config.RazorpayXPayments, at: pretended, warned: true},
		"the built-in sandbox":             {postgres: "yes", gateway: config.Sandbox, warned: true},
		"the built-in sandbox, other keys": {postgres: "yes", keysFile: file, gateway: config.Sandbox},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			dir := t.TempDir()
			cfg := config.Config{
				Currency: inr, DataDir: dir, KeysFile: tt.keysFile, BaseURL: "https://pay.example", AcceptKeysInDatabase: tt.accept,
				Gateway: tt.gateway, RazorpayX: config.RazorpayX{BaseURL: tt.at, KeyID: "k", KeySecret: "s", AccountNumber: "1", WebhookSecrets: []string{"w"}},
			}
			if cfg.Database.SQLite = filepath.Join(dir, "bursar.db"); tt.postgres != "" {
				cfg.Database = config.Database{Postgres: pgtest.New(t)}
			}
			if err := CheckSettings(cfg); (err != nil) != tt.refused || tt.refused && !strings.Contains(err.Error(), "BURSAR_KEYS_FILE is not set, and "+keysInDatabase) {
				t.Errorf("the settings: %v, want a problem: %t", err, tt.refused)
			}
			datastore, err := OpenDatastore(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer datastore.Close()
			var log bytes.Buffer
			logger, err := telemetry.NewLogger(&log, slog.LevelDebug, telemetry.JSON)
			if err != nil {
				t.Fatal(err)
			}
			err = checkKeysPlace(t.Context(), cfg, datastore, logger)
			if (err != nil) != tt.refused || tt.refused && !strings.Contains(err.Error(), "BURSAR_KEYS_IN_DATABASE=accept") {
				t.Errorf("err = %v, want one: %t", err, tt.refused)
			}
			if warned := strings.Contains(log.String(), "key set stored in the database"); warned != tt.warned {
				t.Errorf("the log says %q; want a warning: %t", log.String(), tt.warned)
			}
		})
	}
}

// TestCheckSettings_KeySet names what is wrong with a key set that is given, and quotes nothing of it.
func TestCheckSettings_KeySet(t *testing.T) {
	err := CheckSettings(config.Config{DataDir: t.TempDir(), Gateway: config.Sandbox, Keys: "s3cret"})
	if err == nil || !strings.Contains(err.Error(), "BURSAR_KEYS: ") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the settings: %v", err)
	}
}
