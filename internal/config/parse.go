package config

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a system without a zone database knows the time in India too

	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/web"
)

// razorpayXTestKey begins the keys of RazorpayX's test mode, and those of a sandbox.
const razorpayXTestKey = "rzp_test_"

// Parse makes a configuration of the settings, or fails with [Problems] that list all that is wrong
// with them. Problems of the sources are taken along.
func (s Settings) Parse(sources *Sources) (Config, error) {
	p := parser{problems: sources.Problems()}
	c := Config{
		DataDir:  s.DataDir,
		Database: p.database(s.DatabaseURL, s.DataDir),
		Keys:     s.Keys,
		KeysFile: s.KeysFile,

		AcceptKeysInDatabase: p.choice("KEYS_IN_DATABASE", s.KeysInDatabase, "refuse", "accept") == "accept",

		Addr:           p.listen("ADDR", s.Addr, "127.0.0.1:8080"),
		BaseURL:        p.origin("BASE_URL", s.BaseURL),
		TrustedProxies: p.prefixes("TRUSTED_PROXIES", s.TrustedProxies),
		Metrics:        p.optionalListen("METRICS_ADDR", s.MetricsAddr, "127.0.0.1:9090"),
		DrainDelay:     p.drainDelay(s.DrainDelay),

		AccountCooldown: p.duration("ACCOUNT_COOLDOWN", s.AccountCooldown),
		CancelWindow:    p.duration("CANCEL_WINDOW", s.CancelWindow),
		EarningsHold:    p.duration("EARNINGS_HOLD", s.EarningsHold),

		CheckpointEvery: p.checkpointEvery(s.CheckpointEvery),

		RefreshReuseGrace: p.duration("REFRESH_REUSE_GRACE", s.RefreshReuseGrace),
		LoginThrottle:     p.choice("LOGIN_THROTTLE", s.LoginThrottle, "on", "off") == "on",
		PasswordBlocklist: p.choice("PASSWORD_BLOCKLIST", s.PasswordBlocklist, "on", "off") == "on",

		AdminFactor:            p.choice("ADMIN_FACTOR", s.AdminFactor, "optional", "required") == "required",
		WebhookPrivateNetworks: p.choice("WEBHOOK_PRIVATE_NETWORKS", s.WebhookPrivateNetworks, "on", "off") == "on",
		RequireVerifiedEmail:   p.choice("REQUIRE_VERIFIED_EMAIL", s.RequireVerifiedEmail, "on", "off") == "on",

		Gateway:            p.gatewayName(s),
		Restored:           p.choice("RESTORED", s.Restored, "on", "off") == "on",
		BankVerifier:       BankVerifier(p.choice("BANK_VERIFIER", s.BankVerifier, string(ByGateway), string(ByHand))),
		Sandbox:            p.loopback("SANDBOX_ADDR", s.SandboxAddr, "127.0.0.1:8081"),
		SandboxSettleAfter: p.duration("SANDBOX_SETTLE_AFTER", s.SandboxSettleAfter),
		SandboxProfile:     p.choice("SANDBOX_PROFILE", s.SandboxProfile, "full", "limited"),

		LogLevel: p.level("LOG_LEVEL", s.LogLevel),
	}
	if s.LogFormat != "" {
		c.LogFormat = p.choice("LOG_FORMAT", s.LogFormat, "text", "json")
	}
	if c.Database.SQLite != "" {
		c.KeysFile = or(s.KeysFile, filepath.Join(s.DataDir, "keys.json"))
	}
	if s.Keys != "" && s.KeysFile != "" {
		p.problem("KEYS_FILE", s.KeysFile, "is set beside BURSAR_KEYS; keep one of the two")
	}
	p.money(s, &c)
	p.mail(s, &c)
	p.providers(s, &c)
	c.TrustedIssuer = p.trustedIssuer(s, c.BaseURL)
	p.gateway(s, &c)
	if len(p.problems) > 0 {
		return Config{}, p.problems
	}
	return c, nil
}

// parser reads settings one by one and notes what is wrong with each. What it returns for a setting
// with a problem is of no use.
type parser struct{ problems Problems }

func (p *parser) problem(name, value, message string) {
	p.problems.add(prefix+name, value, message)
}

func or(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// money reads what depends on the currency.
func (p *parser) money(s Settings, c *Config) {
	var err error
	if c.Zone, err = time.LoadLocation(or(s.TimeZone, zoneOf(s.Currency))); err != nil || s.TimeZone == "Local" {
		p.problem("TIME_ZONE", s.TimeZone, "is not a time zone; write one such as Asia/Kolkata or UTC")
	}
	if c.Holidays, err = payout.ParseHolidays(s.Holidays); err != nil {
		p.problem("HOLIDAYS", s.Holidays, "does not list days: "+err.Error())
	}
	if c.Currency, err = money.ParseCurrency(s.Currency); err != nil {
		p.problem("CURRENCY", s.Currency, "is not an ISO 4217 currency code; write one such as INR, USD or JPY")
		c.Currency, _ = money.ParseCurrency("INR") // in its place, so that the amounts are checked too
	}
	known := len(p.problems)
	if c.MinimumPayout, err = c.Currency.Parse(s.MinimumPayout); err != nil || c.MinimumPayout <= 0 {
		p.problem("MINIMUM_PAYOUT", s.MinimumPayout, fmt.Sprintf("is not an amount in %s above zero; write one such as 500", c.Currency))
	}
	if s.StepUpAbove != "" {
		if c.StepUpAbove, err = c.Currency.Parse(s.StepUpAbove); err != nil || c.StepUpAbove <= 0 {
			p.problem("STEP_UP_ABOVE", s.StepUpAbove, fmt.Sprintf("is not an amount in %s above zero; write one such as 50000", c.Currency))
		}
	}
	if c.PayoutFee, err = payout.ParseFee(s.PayoutFee, c.Currency); err != nil {
		p.problem("PAYOUT_FEE", s.PayoutFee, "is not a fee: "+err.Error())
	}
	if len(p.problems) > known {
		return
	}
	if err := c.PayoutFee.CheckMinimum(c.MinimumPayout, 0); err != nil { // the service asks again with what its gateway transfers at least
		p.problem("PAYOUT_FEE", s.PayoutFee, "is too high: "+err.Error())
	}
}

func zoneOf(currency string) string {
	if currency == "INR" {
		return "Asia/Kolkata"
	}
	return "UTC"
}

// gatewayNames are an adapter, or an adapter with a label. They stand in addresses and in the database.
var gatewayNames = regexp.MustCompile(`^[a-z0-9]{1,20}(-[a-z0-9]{1,20})?$`)

// gatewayName reads who pays. One that has no variables of its own is known by its settings; whether this build has it
// is found when it is opened.
func (p *parser) gatewayName(s Settings) Gateway {
	g := Gateway(s.Gateway)
	switch {
	case !gatewayNames.MatchString(s.Gateway), g.Adapter() == Sandbox && g != Sandbox,
		s.GatewaySettings == "" && g.Adapter() != Sandbox && g.Adapter() != RazorpayXPayments:
		p.problem("GATEWAY", s.Gateway, "is not known; write sandbox, razorpayx or razorpayx-2, or give another adapter its BURSAR_GATEWAY_SETTINGS")
		return ""
	default:
		return g
	}
}

// gatewaySettings reads pairs, one on each line. On a single line commas separate them; a value with a comma needs lines.
// None of them is in a problem: they hold secrets.
func (p *parser) gatewaySettings(setting, text string) map[string]string {
	separator := ","
	if strings.Contains(text, "\n") {
		separator = "\n"
	}
	settings := map[string]string{}
	for pair := range strings.SplitSeq(text, separator) {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, isPair := strings.Cut(pair, "=")
		if !isPair || name == "" {
			p.problem(setting, "", "has a part that is not name=value; write pairs, separated by commas or each on its own line")
			return nil
		}
		settings[name] = value
	}
	return settings
}

// gateway reads what depends on who pays.
func (p *parser) gateway(s Settings, c *Config) {
	switch {
	case s.GatewaySettings == "":
	case c.Gateway.Adapter() == Sandbox || c.Gateway.Adapter() == RazorpayXPayments:
		p.problem("GATEWAY_SETTINGS", "", "is set, and "+string(c.Gateway)+" has variables of its own; remove it")
	default:
		c.GatewaySettings = p.gatewaySettings("GATEWAY_SETTINGS", s.GatewaySettings)
	}
	c.GatewayRate = p.gatewayRate(s, c.Gateway)
	c.FormerGateway = p.formerGateway(s, c.Gateway)
	if c.Gateway.Adapter() == RazorpayXPayments {
		c.RazorpayX = p.razorpayX(s)
		if code := c.Currency.Code(); code != "" && code != "INR" {
			p.problem("CURRENCY", code, "can't be paid by RazorpayX; write INR, or use another gateway")
		}
	}
	isTest := strings.HasPrefix(c.RazorpayX.KeyID, razorpayXTestKey) // of a sandbox on another machine
	if c.SandboxProfile == "limited" && !isTest && movesRealMoney(c.Gateway, c.RazorpayX.BaseURL) {
		p.problem("SANDBOX_PROFILE", s.SandboxProfile, "is what a sandbox offers, and payouts go to a gateway that is none; remove it")
	}
}

// gatewayRate is how many requests a second a gateway gets; zero for any number.
func (p *parser) gatewayRate(s Settings, g Gateway) float64 {
	rate := s.GatewayRate
	switch {
	case rate == "" && g.Adapter() == RazorpayXPayments:
		return 8
	case rate == "", rate == "none":
		return 0
	}
	n, err := strconv.ParseFloat(rate, 64)
	if err != nil || !(n > 0 && n <= 10_000) {
		p.problem("GATEWAY_RATE", rate, "is not a number of requests per second; write one such as 8, or none")
	}
	return n
}

// formerGateway reads who paid before.
func (p *parser) formerGateway(s Settings, now Gateway) *FormerGateway {
	name := Gateway(s.FormerGateway)
	switch {
	case name == "" && s.FormerGatewaySettings == "":
		return nil
	case name == "":
		p.problem("FORMER_GATEWAY_SETTINGS", "", "is set without BURSAR_FORMER_GATEWAY; name the gateway, or take the settings away")
	case !gatewayNames.MatchString(s.FormerGateway):
		p.problem("FORMER_GATEWAY", s.FormerGateway, "is not the name of a gateway; write the one that BURSAR_GATEWAY was before")
	case name == now:
		p.problem("FORMER_GATEWAY", s.FormerGateway, "is BURSAR_GATEWAY too; name the present account otherwise, such as "+string(name.Adapter())+"-2, or remove the former gateway")
	case name.Adapter() == Sandbox || now == Sandbox:
		p.problem("FORMER_GATEWAY", s.FormerGateway, "can't stand beside or be the sandbox, which pays nobody; remove it")
	case s.FormerGatewaySettings == "":
		p.problem("FORMER_GATEWAY_SETTINGS", "", "is not set, and BURSAR_FORMER_GATEWAY needs it; write that gateway's settings as name=value, separated by commas or each on its own line")
	default:
		former := &FormerGateway{Name: name, Rate: p.gatewayRate(s, name), Settings: p.gatewaySettings("FORMER_GATEWAY_SETTINGS", s.FormerGatewaySettings)}
		p.checkEncrypted("FORMER_GATEWAY_SETTINGS", former.Settings["base_url"], former.Settings["key_id"])
		return former
	}
	return nil
}

func (p *parser) razorpayX(s Settings) RazorpayX {
	x := RazorpayX{
		KeyID:         p.required("RAZORPAYX_KEY_ID", s.RazorpayXKeyID, "the API key from the RazorpayX dashboard"),
		KeySecret:     p.required("RAZORPAYX_KEY_SECRET", s.RazorpayXKeySecret, "that key's secret"),
		AccountNumber: p.required("RAZORPAYX_ACCOUNT_NUMBER", s.RazorpayXAccountNumber, "the RazorpayX account to pay from"),
		BaseURL:       p.address("RAZORPAYX_BASE_URL", s.RazorpayXBaseURL),
	}
	p.checkEncrypted("RAZORPAYX_BASE_URL", x.BaseURL, x.KeyID)
	secrets := p.required("RAZORPAYX_WEBHOOK_SECRETS", s.RazorpayXWebhookSecrets, "the secret given to the webhook in the RazorpayX dashboard")
	x.WebhookSecrets = fields(secrets)
	if len(x.WebhookSecrets) > 2 {
		p.problem("RAZORPAYX_WEBHOOK_SECRETS", "", fmt.Sprintf("holds %d secrets; write one, or the new and the old one while changing it", len(x.WebhookSecrets)))
	}
	return x
}

// checkEncrypted notes that the live key of a gateway would be sent to an address that is not encrypted.
func (p *parser) checkEncrypted(name, baseURL, keyID string) {
	if u, err := url.Parse(baseURL); err == nil && u.Scheme == "http" && !web.IsLoopback(u.Host) && !strings.HasPrefix(keyID, razorpayXTestKey) {
		p.problem(name, baseURL, "is not encrypted, and the key of a gateway that moves real money is sent there; write an https address")
	}
}

func (p *parser) required(name, value, what string) string {
	if value == "" {
		p.problem(name, "", "is not set, and BURSAR_GATEWAY=razorpayx needs it; set it to "+what)
	}
	return value
}

// database reads an address, which is in no problem: it may hold a password.
func (p *parser) database(text, dataDir string) Database {
	path, isSQLite := strings.CutPrefix(text, "sqlite:")
	switch {
	case text == "":
		return Database{SQLite: filepath.Join(dataDir, "bursar.db")}
	case strings.HasPrefix(text, "postgres://"), strings.HasPrefix(text, "postgresql://"):
		if _, err := postgresSettings(text); err != nil {
			p.problem("DATABASE_URL", "", "is not the address of a PostgreSQL database; write postgres://USER:PASSWORD@HOST:5432/DATABASE, or HOST1:5432,HOST2:5432 for several servers, with %40 for @ and %2F for / in a password")
		}
		return Database{Postgres: text}
	case !isSQLite || path == "":
		p.problem("DATABASE_URL", "", "is not a database; write sqlite:PATH or postgres://USER:PASSWORD@HOST:5432/DATABASE, or leave it unset")
	}
	return Database{SQLite: path}
}

// drainDelay is bounded, because the service manager waits for it, and kills the process at last.
func (p *parser) drainDelay(text string) time.Duration {
	const most = 5 * time.Minute
	d := p.duration("DRAIN_DELAY", text)
	if d > most {
		p.problem("DRAIN_DELAY", text, "is too long to wait for a stop; write a length of time up to 5m, such as 5s")
	}
	return d
}

// listen reads an address; without one it is the usual one, or a free port beside it.
func (p *parser) listen(name, text, usual string) Listen {
	addr := or(text, usual)
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		p.problem(name, text, "is not an address to listen on; write one such as 127.0.0.1:8080, or :8080 for all addresses")
	}
	return Listen{Addr: addr, OrFree: text == ""}
}

func (p *parser) optionalListen(name, text, usual string) Listen {
	if text == "off" {
		return Listen{}
	}
	return p.listen(name, text, usual)
}

// loopback reads an address that only this machine reaches.
func (p *parser) loopback(name, text, usual string) Listen {
	known := len(p.problems)
	l := p.listen(name, text, usual)
	if len(p.problems) == known && !l.IsLoopback() {
		p.problem(name, text, `is open to other machines, and the sandbox's control API asks for no password; write a loopback address such as 127.0.0.1:8081, or for several machines run one "bursar sandbox --addr ADDRESS --allow-public"`)
	}
	return l
}

// origin reads the address of a site, which has no path. Addresses are not quoted in problems: they
// may hold a password.
func (p *parser) origin(name, text string) string {
	address := p.address(name, text)
	if _, path, _ := strings.Cut(address, "://"); strings.Contains(path, "/") {
		p.problem(name, "", "has a path; write the address alone, such as https://payouts.example.com")
	}
	return address
}

// address reads an address and drops the slash at its end.
func (p *parser) address(name, text string) string {
	u, err := url.Parse(text)
	isAddress := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
	if text != "" && !isAddress {
		p.problem(name, "", "is not an address; write one such as https://payouts.example.com")
		return ""
	}
	return strings.TrimRight(text, "/")
}

func (p *parser) prefixes(name, text string) []netip.Prefix {
	var all []netip.Prefix
	for _, field := range fields(text) {
		one, err := netip.ParsePrefix(field)
		if addr, addrErr := netip.ParseAddr(field); addrErr == nil {
			one, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			p.problem(name, text, fmt.Sprintf("names %q, which is no network; write addresses or networks such as 10.0.0.0/8, separated by commas", field))
		}
		all = append(all, one)
	}
	return all
}

func (p *parser) duration(name, text string) time.Duration {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		p.problem(name, text, "is not a length of time; write one such as 30s, 15m or 72h")
	case d < 0:
		p.problem(name, text, "must not be negative; write a length of time such as 30s, 15m or 72h")
	}
	return d
}

func (p *parser) checkpointEvery(text string) time.Duration {
	known := len(p.problems)
	d := p.duration("CHECKPOINT_EVERY", text)
	if d == 0 && len(p.problems) == known {
		p.problem("CHECKPOINT_EVERY", text, "must be above zero; write a length of time such as 15m or 1h")
	}
	return d
}

func (p *parser) choice(name, text string, choices ...string) string {
	for _, choice := range choices {
		if text == choice {
			return choice
		}
	}
	p.problem(name, text, "is not known; write "+strings.Join(choices, " or "))
	return ""
}

func (p *parser) level(name, text string) slog.Level {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, known := levels[text]
	if !known {
		p.problem(name, text, "is not a level; write debug, info, warn or error")
	}
	return level
}

// fields splits a list at its commas.
func fields(text string) []string {
	var all []string
	for field := range strings.SplitSeq(text, ",") {
		if field = strings.TrimSpace(field); field != "" {
			all = append(all, field)
		}
	}
	return all
}
