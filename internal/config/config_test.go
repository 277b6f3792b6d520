package config_test

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"bursar/internal/config"
)

// load reads settings as a command does.
func load(t *testing.T, environ []string, args ...string) (config.Config, *config.Sources, error) {
	t.Helper()
	var s config.Settings
	sources := config.NewSources(environ)
	parser, err := kong.New(&s, kong.Resolvers(sources))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args); err != nil {
		t.Fatal(err)
	}
	c, err := s.Parse(sources)
	return c, sources, err
}

func mustLoad(t *testing.T, environ []string, args ...string) config.Config {
	t.Helper()
	c, _, err := load(t, environ, args...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func file(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad_Defaults(t *testing.T) {
	c := mustLoad(t, nil)
	type promised struct {
		Addr, Origin, Database, Keys, Currency, Minimum, Zone string
		CancelWindow, Hold, Grace, Settle                     time.Duration
		Throttle, Blocklist                                   bool
		Gateway                                               config.Gateway
		Rate                                                  float64
		Level                                                 slog.Level
	}
	got := promised{
		c.Addr.Addr, c.Origin(), c.Database.SQLite, c.KeysFile, c.Currency.Code(), c.Currency.Format(c.MinimumPayout), c.Zone.String(),
		c.CancelWindow, c.EarningsHold, c.RefreshReuseGrace, c.SandboxSettleAfter,
		c.LoginThrottle, c.PasswordBlocklist, c.Gateway, c.GatewayRate, c.LogLevel,
	}
	want := promised{
		"127.0.0.1:8080", "http://127.0.0.1:8080", filepath.Join("bursar-data", "bursar.db"), filepath.Join("bursar-data", "keys.json"),
		"INR", "500", "Asia/Kolkata",
		30 * time.Second, 72 * time.Hour, 10 * time.Second, 5 * time.Second,
		true, false, config.Sandbox, 0, slog.LevelInfo,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if fee := c.PayoutFee.Of(100_000); fee != 0 {
		t.Errorf("without a fee, it is %d", fee)
	}
}

func TestLoad_FlagBeatsEnvironmentBeatsFile(t *testing.T) {
	path := file(t, "# a comment", "", `BURSAR_CURRENCY="USD"`, "BURSAR_CANCEL_WINDOW = 7s", "BURSAR_EARNINGS_HOLD=1h")
	environ := []string{"BURSAR_CONFIG=" + path, "BURSAR_CANCEL_WINDOW=8s", "BURSAR_EARNINGS_HOLD=2h", "BURSAR_MINIMUM_PAYOUT="}
	c := mustLoad(t, environ, "--earnings-hold", "3h")
	if c.Currency.Code() != "USD" || c.CancelWindow != 8*time.Second || c.EarningsHold != 3*time.Hour {
		t.Errorf("got %s from the file, %s from the environment, %s from the flag", c.Currency, c.CancelWindow, c.EarningsHold)
	}
	if c.Zone != time.UTC || c.MinimumPayout != 500_00 {
		t.Errorf("an empty variable is no value: got zone %s, minimum %d", c.Zone, c.MinimumPayout)
	}
	if c := mustLoad(t, environ, "--config", file(t, "BURSAR_CURRENCY=JPY")); c.Currency.Code() != "JPY" {
		t.Errorf("--config did not win over BURSAR_CONFIG: %s", c.Currency)
	}
}

// A program's arguments are read with ps by every user of the machine.
func TestSecretsAreNoFlags(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, flag := range []string{
		"--keys", "--gateway-settings", "--former-gateway-settings", "--razorpayx-key-secret", "--razorpayx-account-number", "--razorpayx-webhook-secrets",
		"--provider-a-client-secret", "--provider-b-client-secret",
	} {
		_, _, err := load(t, nil, flag, secret)
		problems, ok := errors.AsType[config.Problems](err)
		said := func(p config.Problem) bool {
			return p.Variable == flag && strings.Contains(p.Message, config.Variable(strings.TrimPrefix(flag, "--")))
		}
		if !ok || !slices.ContainsFunc(problems, said) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	for address, want := range map[string]bool{
		"sqlite:/var/lib/bursar/a.db": true, "postgres://bursar@db/bursar": true, "postgres:///bursar?host=/run": true,
		"postgres://bursar:" + secret + "@db/bursar": false, "postgres://db/bursar?user=bursar&password=" + secret: false,
		"postgres://bursar:" + secret + "%zz@db/bursar": false,
	} {
		_, _, err := load(t, nil, "--database-url", address)
		if (err == nil) != want || err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("--database-url %s: %v, want it taken: %v", address, err, want)
		}
	}
	if _, _, err := load(t, nil, "--mail-from", "payouts@example.com", "--smtp-url", "smtp://bursar:"+secret+"@mail.example:587"); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("--smtp-url with a password: %v", err)
	}
	mustLoad(t, nil, "--mail-from", "payouts@example.com", "--smtp-url", "smtp://mail.example:587")
	mustLoad(t, []string{"BURSAR_KEYS=" + secret, "BURSAR_DATABASE_URL=postgres://bursar:" + secret + "@db/bursar"})
}

func TestPort(t *testing.T) {
	for _, tt := range []struct {
		name       string
		environ    []string
		args       []string
		wantAddr   string
		wantOrigin string
	}{
		{"alone", []string{"PORT=5000"}, nil, ":5000", "http://localhost:5000"},
		{"beside an address", []string{"PORT=5000", "BURSAR_ADDR=127.0.0.1:9000"}, nil, "127.0.0.1:9000", "http://127.0.0.1:9000"},
		{"beside a flag", []string{"PORT=5000"}, []string{"--addr", "[::1]:9000"}, "[::1]:9000", "http://[::1]:9000"},
		{"with a public address", []string{"PORT=5000", "BURSAR_BASE_URL=https://pay.example.com/"}, nil, ":5000", "https://pay.example.com"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := mustLoad(t, tt.environ, tt.args...)
			if c.Addr.Addr != tt.wantAddr || c.Origin() != tt.wantOrigin {
				t.Errorf("got %s at %s, want %s at %s", c.Addr.Addr, c.Origin(), tt.wantAddr, tt.wantOrigin)
			}
		})
	}
}

func TestLoad_OnlyDefaultPortsMayChange(t *testing.T) {
	c := mustLoad(t, []string{"BURSAR_SANDBOX_ADDR=127.0.0.1:8081"})
	if c.Sandbox.OrFree || !c.Metrics.OrFree {
		t.Errorf("sandbox %+v was asked for, metrics %+v was not", c.Sandbox, c.Metrics)
	}
	if off := mustLoad(t, []string{"BURSAR_METRICS_ADDR=off"}).Metrics; off.Addr != "" {
		t.Errorf("metrics are off, and listen on %s", off.Addr)
	}
}

// TestGatewaySettings has a gateway that the configuration knows nothing of.
func TestGatewaySettings(t *testing.T) {
	for _, given := range []string{
		"BURSAR_GATEWAY_SETTINGS_FILE=" + file(t, "client_id=a\nclient_secret=b=c\n"),
		"BURSAR_GATEWAY_SETTINGS= client_id=a, client_secret=b=c,",
	} {
		c := mustLoad(t, []string{"BURSAR_GATEWAY=cashfree", given})
		if diff := cmp.Diff(map[string]string{"client_id": "a", "client_secret": "b=c"}, c.GatewaySettings); diff != "" || c.Gateway != "cashfree" {
			t.Errorf("%s (-want +got):\n%s", c.Gateway, diff)
		}
	}
	c := mustLoad(t, []string{"BURSAR_GATEWAY=cashfree", "BURSAR_GATEWAY_SETTINGS=client_id=a\n\n webhook_secrets=b,c"})
	if diff := cmp.Diff(map[string]string{"client_id": "a", "webhook_secrets": "b,c"}, c.GatewaySettings); diff != "" {
		t.Errorf("with a comma in a value (-want +got):\n%s", diff)
	}
	_, _, err := load(t, []string{"BURSAR_GATEWAY=cashfree", "BURSAR_GATEWAY_SETTINGS=hush"})
	if err == nil || !strings.Contains(err.Error(), "BURSAR_GATEWAY_SETTINGS has a part that is not name=value") || strings.Contains(err.Error(), "hush") {
		t.Errorf("err = %v", err)
	}
}

// TestFormerGateway has the gateway that paid before beside the one that pays now.
func TestFormerGateway(t *testing.T) {
	now := []string{"BURSAR_GATEWAY=cashfree", "BURSAR_GATEWAY_SETTINGS=client_id=a"}
	c := mustLoad(t, append(now, "BURSAR_FORMER_GATEWAY=razorpayx", "BURSAR_FORMER_GATEWAY_SETTINGS=key_id=k\nwebhook_secrets=b,c\nbase_url=http://127.0.0.1:9/v1"))
	want := &config.FormerGateway{Name: "razorpayx", Rate: 8, Settings: map[string]string{"key_id": "k", "webhook_secrets": "b,c", "base_url": "http://127.0.0.1:9/v1"}}
	if diff := cmp.Diff(want, c.FormerGateway); diff != "" || c.GatewayRate != 0 {
		t.Errorf("the rate now is %v, and before (-want +got):\n%s", c.GatewayRate, diff)
	}
	for setting, want := range map[string]string{
		"BURSAR_FORMER_GATEWAY=sandbox":    "BURSAR_FORMER_GATEWAY=sandbox can't stand beside or be the sandbox",
		"BURSAR_FORMER_GATEWAY=cashfree":   "BURSAR_FORMER_GATEWAY=cashfree is BURSAR_GATEWAY too; name the present account otherwise, such as cashfree-2",
		"BURSAR_FORMER_GATEWAY=Razorpay X": "BURSAR_FORMER_GATEWAY=Razorpay X is not the name of a gateway",
		"BURSAR_FORMER_GATEWAY=razorpayx":  "BURSAR_FORMER_GATEWAY_SETTINGS is not set, and BURSAR_FORMER_GATEWAY needs it",
	} {
		if _, _, err := load(t, append(now, setting)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", setting, err)
		}
	}
	_, _, err := load(t, append(slices.Clone(now), "BURSAR_FORMER_GATEWAY=razorpayx", "BURSAR_FORMER_GATEWAY_SETTINGS=key_id=rzp_live_1,base_url=http://10.0.0.7:8081/v1"))
	if err == nil || !strings.Contains(err.Error(), "BURSAR_FORMER_GATEWAY_SETTINGS=http://10.0.0.7:8081/v1 is not encrypted") {
		t.Errorf("a live key of a former gateway may be sent to an address that is not encrypted: %v", err)
	}
	_, _, err = load(t, append(now, "BURSAR_FORMER_GATEWAY=razorpayx", "BURSAR_FORMER_GATEWAY_SETTINGS=hush"))
	if err == nil || !strings.Contains(err.Error(), "BURSAR_FORMER_GATEWAY_SETTINGS has a part that is not name=value") || strings.Contains(err.Error(), "hush") {
		t.Errorf("err = %v", err)
	}
}

func TestRazorpayX(t *testing.T) {
	c := mustLoad(t, []string{
		"BURSAR_GATEWAY=razorpayx", "BURSAR_RAZORPAYX_KEY_ID=rzp_live_1",
		"BURSAR_RAZORPAYX_KEY_SECRET_FILE=" + file(t, "hush\n"),
		"BURSAR_RAZORPAYX_ACCOUNT_NUMBER=7878780080316316", "BURSAR_RAZORPAYX_WEBHOOK_SECRETS=new, old",
		"BURSAR_TRUSTED_PROXIES=10.0.0.0/8,192.0.2.7",
	})
	want := config.RazorpayX{
		KeyID: "rzp_live_1", KeySecret: "hush", AccountNumber: "7878780080316316",
		WebhookSecrets: []string{"new", "old"}, BaseURL: "https://api.razorpay.com/v1",
	}
	if diff := cmp.Diff(want, c.RazorpayX); diff != "" {
		t.Errorf("RazorpayX (-want +got):\n%s", diff)
	}
	if c.GatewayRate != 8 {
		t.Errorf("rate %v, want 8", c.GatewayRate)
	}
	wantProxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32")}
	if diff := cmp.Diff(wantProxies, c.TrustedProxies, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("proxies (-want +got):\n%s", diff)
	}
}

func TestMovesRealMoney(t *testing.T) {
	razorpayx := []string{
		"BURSAR_GATEWAY=razorpayx", "BURSAR_RAZORPAYX_KEY_ID=rzp_live_1", "BURSAR_RAZORPAYX_KEY_SECRET=hush",
		"BURSAR_RAZORPAYX_ACCOUNT_NUMBER=7878780080316316", "BURSAR_RAZORPAYX_WEBHOOK_SECRETS=new",
	}
	const at = "BURSAR_RAZORPAYX_BASE_URL="
	for name, tt := range map[string]struct {
		environ []string
		want    bool
	}{
		"the built-in sandbox":       {nil, false},
		"RazorpayX":                  {razorpayx, true},
		"RazorpayX elsewhere":        {append(slices.Clone(razorpayx), at+"https://gateway.example/v1"), true},
		"a sandbox on this machine":  {append(slices.Clone(razorpayx), at+"http://127.0.0.1:8081/v1"), false},
		"the same by name":           {append(slices.Clone(razorpayx), at+"http://localhost:8081/v1"), false},
		"the same on IPv6":           {append(slices.Clone(razorpayx), at+"http://[::1]:8081/v1"), false},
		"a name that begins like it": {append(slices.Clone(razorpayx), at+"https://localhost.example/v1"), true},
		"another machine of ours":    {append(slices.Replace(slices.Clone(razorpayx), 1, 2, "BURSAR_RAZORPAYX_KEY_ID=rzp_test_1"), at+"http://10.0.0.7:8081/v1"), true},
	} {
		if c := mustLoad(t, tt.environ); c.MovesRealMoney() != tt.want {
			t.Errorf("%s: %t, want %t", name, !tt.want, tt.want)
		}
	}
	const limited = "BURSAR_SANDBOX_PROFILE=limited"
	if _, _, err := load(t, append(slices.Clone(razorpayx), limited)); err == nil || !strings.Contains(err.Error(), limited+" is what a sandbox offers") {
		t.Errorf("a gateway that pays is taken for a limited one: %v", err)
	}
	if c := mustLoad(t, append(slices.Clone(razorpayx), limited, at+"http://127.0.0.1:8081/v1")); c.SandboxProfile != "limited" {
		t.Errorf("the profile of a sandbox on this machine is %q", c.SandboxProfile)
	}
	const problem = "BURSAR_RAZORPAYX_BASE_URL=http://10.0.0.7:8081/v1 is not encrypted"
	if _, _, err := load(t, append(slices.Clone(razorpayx), at+"http://10.0.0.7:8081/v1")); err == nil || !strings.Contains(err.Error(), problem) {
		t.Errorf("a live key may be sent to an address that is not encrypted: %v", err)
	}
	sandbox := config.RazorpayX{BaseURL: "http://127.0.0.1:8081/v1"}
	c := config.Config{Gateway: "cashfree", RazorpayX: sandbox}
	if !c.MovesRealMoney() {
		t.Error("the address of a gateway that is not used makes another one a sandbox")
	}
	for address, want := range map[string]bool{"http://[::1]:8082/v1": false, "https://api.razorpay.com/v1": true, "": true} {
		former := &config.FormerGateway{Name: "razorpayx", Settings: map[string]string{"base_url": address}}
		if c := (config.Config{Gateway: "razorpayx-2", RazorpayX: sandbox, FormerGateway: former}); c.MovesRealMoney() != want {
			t.Errorf("with a former gateway at %q: %t, want %t", address, !want, want)
		}
	}
}

func TestKeysInDatabase(t *testing.T) {
	for value, want := range map[string]bool{"": false, "refuse": false, "accept": true} {
		var environ []string
		if value != "" {
			environ = append(environ, "BURSAR_KEYS_IN_DATABASE="+value)
		}
		if c := mustLoad(t, environ); c.AcceptKeysInDatabase != want {
			t.Errorf("%q: %t, want %t", value, !want, want)
		}
	}
	if _, _, err := load(t, []string{"BURSAR_KEYS_IN_DATABASE=yes"}); err == nil || !strings.Contains(err.Error(), "BURSAR_KEYS_IN_DATABASE") {
		t.Errorf("err = %v", err)
	}
}

func TestLoad_WrongValue_SaysWhatToWrite(t *testing.T) {
	for _, tt := range []struct {
		setting string
		want    string
	}{
		{"BURSAR_ADDR=8080", "BURSAR_ADDR=8080 is not an address to listen on; write one such as 127.0.0.1:8080, or :8080 for all addresses"},
		{"BURSAR_ADDR=127.0.0.1:70000", "BURSAR_ADDR=127.0.0.1:70000 is not an address"},
		{"BURSAR_BASE_URL=payouts.example.com", "BURSAR_BASE_URL is not an address"},
		{"BURSAR_BASE_URL=https://example.com/pay", "BURSAR_BASE_URL has a path"},
		{"BURSAR_DATABASE_URL=postgres://u:secret@db:port/x", "BURSAR_DATABASE_URL is not the address of a PostgreSQL database; write postgres://"},
		{"BURSAR_DATABASE_URL=mysql://x", "BURSAR_DATABASE_URL is not a database; write sqlite:PATH or postgres://"},
		{"BURSAR_DRAIN_DELAY=soon", "BURSAR_DRAIN_DELAY=soon is not a length of time"},
		{"BURSAR_DRAIN_DELAY=-1s", "BURSAR_DRAIN_DELAY=-1s must not be negative"},
		{"BURSAR_DRAIN_DELAY=301s", "BURSAR_DRAIN_DELAY=301s is too long to wait for a stop"},
		{"BURSAR_CURRENCY=RUPEE", "BURSAR_CURRENCY=RUPEE is not an ISO 4217 currency code; write one such as INR"},
		{"BURSAR_MINIMUM_PAYOUT=0", "BURSAR_MINIMUM_PAYOUT=0 is not an amount in INR above zero"},
		{"BURSAR_MINIMUM_PAYOUT=1.005", "BURSAR_MINIMUM_PAYOUT=1.005 is not an amount"},
		{"BURSAR_PAYOUT_FEE=lots", "BURSAR_PAYOUT_FEE=lots is not a fee"},
		{"BURSAR_PAYOUT_FEE=500", "BURSAR_PAYOUT_FEE=500 is too high"},
		{"BURSAR_CANCEL_WINDOW=soon", "BURSAR_CANCEL_WINDOW=soon is not a length of time; write one such as 30s"},
		{"BURSAR_EARNINGS_HOLD=-1h", "BURSAR_EARNINGS_HOLD=-1h must not be negative; write a length of time such as 30s"},
		{"BURSAR_TIME_ZONE=Mars/Olympus", "BURSAR_TIME_ZONE=Mars/Olympus is not a time zone"},
		{"BURSAR_HOLIDAYS=Diwali", "BURSAR_HOLIDAYS=Diwali does not list days"},
		{"BURSAR_LOGIN_THROTTLE=no", "BURSAR_LOGIN_THROTTLE=no is not known; write on or off"},
		{"BURSAR_GATEWAY=stripe", "BURSAR_GATEWAY=stripe is not known; write sandbox, razorpayx or razorpayx-2, or give another adapter its BURSAR_GATEWAY_SETTINGS"},
		{"BURSAR_GATEWAY=sandbox-2", "BURSAR_GATEWAY=sandbox-2 is not known; write sandbox, razorpayx or razorpayx-2"},
		{"BURSAR_GATEWAY=razorpayx/2", "BURSAR_GATEWAY=razorpayx/2 is not known; write sandbox, razorpayx or razorpayx-2"},
		{"BURSAR_FORMER_GATEWAY=razorpayx", "BURSAR_FORMER_GATEWAY=razorpayx can't stand beside or be the sandbox"},
		{"BURSAR_FORMER_GATEWAY_SETTINGS=key_id=a", "BURSAR_FORMER_GATEWAY_SETTINGS is set without BURSAR_FORMER_GATEWAY"},
		{"BURSAR_SANDBOX_ADDR=0.0.0.0:8081", "BURSAR_SANDBOX_ADDR=0.0.0.0:8081 is open to other machines, and the sandbox's control API asks for no password; write a loopback address"},
		{"BURSAR_SANDBOX_ADDR=:8081", "BURSAR_SANDBOX_ADDR=:8081 is open to other machines"},
		{"BURSAR_SANDBOX_ADDR=[::]:8081", "BURSAR_SANDBOX_ADDR=[::]:8081 is open to other machines"},
		{"BURSAR_SANDBOX_ADDR=10.0.0.7:8081", "BURSAR_SANDBOX_ADDR=10.0.0.7:8081 is open to other machines"},
		{"BURSAR_SANDBOX_ADDR=8081", "BURSAR_SANDBOX_ADDR=8081 is not an address"},
		{"BURSAR_GATEWAY_SETTINGS=client_id=x", "BURSAR_GATEWAY_SETTINGS is set, and sandbox has variables of its own; remove it"},
		{"BURSAR_RESTORED=yes", "BURSAR_RESTORED=yes is not known; write on or off"},
		{"BURSAR_GATEWAY_RATE=fast", "BURSAR_GATEWAY_RATE=fast is not a number of requests per second"},
		{"BURSAR_GATEWAY_RATE=NaN", "BURSAR_GATEWAY_RATE=NaN is not a number"},
		{"BURSAR_BANK_VERIFIER=me", "BURSAR_BANK_VERIFIER=me is not known; write gateway or manual"},
		{"BURSAR_TRUSTED_PROXIES=cloud", `BURSAR_TRUSTED_PROXIES=cloud names "cloud", which is no network`},
		{"BURSAR_LOG_LEVEL=loud", "BURSAR_LOG_LEVEL=loud is not a level"},
		{"BURSAR_LOG_FORMAT=xml", "BURSAR_LOG_FORMAT=xml is not known; write text or json"},
		{"BURSAR_CONFIG=/no/such/file", "BURSAR_CONFIG=/no/such/file can't be read"},
		{"BURSAR_RAZORPAYX_KEY_SECRET_FILE=/no/such/file", "BURSAR_RAZORPAYX_KEY_SECRET_FILE=/no/such/file can't be read"},
	} {
		t.Run(tt.setting, func(t *testing.T) {
			_, _, err := load(t, []string{tt.setting})
			var problems config.Problems
			if !errors.As(err, &problems) || len(problems) != 1 {
				t.Fatalf("want one problem, got %v", err)
			}
			if !strings.HasPrefix(problems[0].String(), tt.want) {
				t.Errorf("got  %s\nwant %s…", problems[0], tt.want)
			}
		})
	}
}

func TestLoad_ReportsAllProblemsWithoutSecrets(t *testing.T) {
	path := file(t, "BURSAR_CURENCY=INR", "hush-hush", "BURSAR_LOG_LEVEL=loud", "\"seed\": \"hush+hush=\",")
	_, _, err := load(t, []string{
		"BURSAR_CONFIG=" + path, "BURSAR_GATEWAY=razorpayx", "BURSAR_CURRENCY=USD",
		"BURSAR_RAZORPAYX_KEY_SECRET=hush-hush", "BURSAR_RAZORPAYX_KEY_SECRET_FILE=" + path,
		"BURSAR_RAZORPAYX_WEBHOOK_SECRETS=hush-hush,b,c", "BURSAR_DATABASE_URL=postgres://u:hush-hush@db/x?hush-hush",
		"BURSAR_KEYS=hush-hush", "BURSAR_KEYS_FILE=k",
	}, "--cancel-window", "soon")
	if err == nil {
		t.Fatal("no problem was found")
	}
	text := err.Error()
	for _, want := range []string{
		"12 settings need correcting", path + ":1 sets BURSAR_CURENCY, which is no setting", path + ":2 is not a setting", path + ":4 is not a setting",
		"BURSAR_RAZORPAYX_KEY_SECRET_FILE=" + path + " is set beside", "BURSAR_LOG_LEVEL=loud", "BURSAR_CANCEL_WINDOW=soon",
		"BURSAR_CURRENCY=USD can't be paid by RazorpayX", "BURSAR_RAZORPAYX_KEY_ID is not set", "BURSAR_RAZORPAYX_ACCOUNT_NUMBER is not set",
		"BURSAR_RAZORPAYX_WEBHOOK_SECRETS holds 3 secrets", "BURSAR_DATABASE_URL is not the address of a PostgreSQL database", "BURSAR_KEYS_FILE=k is set beside",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "hush") {
		t.Errorf("a secret is told in:\n%s", text)
	}
}

func TestLoad_WrongCurrency_AmountsStillChecked(t *testing.T) {
	_, _, err := load(t, []string{"BURSAR_CURRENCY=RUPEE", "BURSAR_MINIMUM_PAYOUT=little", "BURSAR_PAYOUT_FEE=lots"})
	var problems config.Problems
	errors.As(err, &problems)
	var got []string
	for _, problem := range problems {
		got = append(got, problem.Variable)
	}
	want := []string{"BURSAR_CURRENCY", "BURSAR_MINIMUM_PAYOUT", "BURSAR_PAYOUT_FEE"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables with problems (-want +got):\n%s", diff)
	}
}

func TestSources_ListsUnknownVariables(t *testing.T) {
	_, sources, err := load(t, []string{"BURSAR_SERVICE_HOST=10.0.0.1", "BURSAR_CURENCY=INR", "BURSAR_ADDR=:1", "BURSAR_KEYS_FILE=k", "HOME=/"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"BURSAR_CURENCY", "BURSAR_SERVICE_HOST"}, sources.Unknown()); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
}

func TestPrint_CanBeLoadedAgain(t *testing.T) {
	var s config.Settings
	parser, err := kong.New(&s, kong.Resolvers(config.NewSources([]string{"BURSAR_CANCEL_WINDOW=9s", "BURSAR_RAZORPAYX_KEY_SECRET=hush"})))
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := parser.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	if err := config.Print(&printed, ctx.Model); err != nil {
		t.Fatal(err)
	}
	if text := printed.String(); strings.Contains(text, "hush") || !strings.Contains(text, "\n# BURSAR_RAZORPAYX_KEY_SECRET is set, and not shown\n") {
		t.Errorf("the secret is not left out well:\n%s", text)
	}
	if c := mustLoad(t, nil, "--config", file(t, printed.String())); c.CancelWindow != 9*time.Second {
		t.Errorf("read back %s, want 9s", c.CancelWindow)
	}
}
