package config

import (
	"log/slog"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/web"
)

// Config is what the settings mean, checked.
type Config struct {
	Database Database
	DataDir  string
	// Keys is the key set itself, or empty where KeysFile holds it. Both are empty where the database does.
	Keys     string
	KeysFile string
	// AcceptKeysInDatabase lets a gateway move real money while the database keeps the key set.
	AcceptKeysInDatabase bool

	Addr Listen
	// BaseURL has no slash at its end; empty stands for the address that is listened on.
	BaseURL        string
	TrustedProxies []netip.Prefix
	Metrics        Listen
	// DrainDelay is how long new requests are still taken after readiness fails.
	DrainDelay time.Duration

	Currency      money.Currency
	MinimumPayout money.Amount
	PayoutFee     payout.Fee
	// StepUpAbove is the most that a seller may withdraw without a fresh proof; zero is any amount.
	StepUpAbove     money.Amount
	AccountCooldown time.Duration
	CancelWindow    time.Duration
	EarningsHold    time.Duration
	Zone            *time.Location
	Holidays        payout.Holidays
	// CheckpointEvery is how often a checkpoint of all journals is made.
	CheckpointEvery time.Duration

	RefreshReuseGrace time.Duration
	LoginThrottle     bool
	PasswordBlocklist bool
	// AdminFactor lets admins without a second factor do nothing but enrol one.
	AdminFactor bool
	// RequireVerifiedEmail refuses payout requests of users whose address is not verified.
	RequireVerifiedEmail bool

	// TrustedIssuer is nil where no tokens but our own are accepted.
	TrustedIssuer *TrustedIssuer

	// MailServer is nil where mails are kept as files in OutboxDir.
	MailServer *MailServer
	MailFrom   *mail.Address
	// MailTemplates is a folder of templates that take the place of the built-in ones, or empty.
	MailTemplates string

	// ProviderA and ProviderB are nil where they are not set up.
	ProviderA, ProviderB *Provider

	Gateway Gateway
	// GatewayRate is requests per second; zero is no limit.
	GatewayRate float64
	// FormerGateway is where what was under way goes on since Gateway is another one; nil for none.
	FormerGateway *FormerGateway
	// GatewaySettings are those of a gateway that has no variables of its own, by the names that its adapter gives them.
	GatewaySettings map[string]string
	BankVerifier    BankVerifier
	// Restored says that the database was put back to an older state, and nobody has compared it with the gateway yet.
	Restored           bool
	Sandbox            Listen
	SandboxSettleAfter time.Duration
	// SandboxProfile is what the sandbox that pays offers: "full" or "limited".
	SandboxProfile string
	// RazorpayX is set where Gateway is.
	RazorpayX RazorpayX

	// WebhookPrivateNetworks lets webhook endpoints be in private networks.
	WebhookPrivateNetworks bool

	LogLevel slog.Level
	// LogFormat is "text", "json", or empty: as fits where the log goes.
	LogFormat string
}

// Origin is the public address: BaseURL, or else the address that is listened on. A service that
// listens on all addresses is reached as localhost.
func (c Config) Origin() string {
	if c.BaseURL != "" {
		return c.BaseURL
	}
	host, port, _ := net.SplitHostPort(c.Addr.Addr) // it was checked
	if ip, err := netip.ParseAddr(host); host == "" || (err == nil && ip.IsUnspecified()) {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// OutboxDir is where mails are kept as files while there is no mail server.
func (c Config) OutboxDir() string { return filepath.Join(c.DataDir, "outbox") }

// MovesRealMoney reports whether payouts go to a gateway outside of this machine. What answers on a loopback address is
// a sandbox.
func (c Config) MovesRealMoney() bool {
	if f := c.FormerGateway; f != nil && movesRealMoney(f.Name, f.Settings["base_url"]) {
		return true
	}
	return movesRealMoney(c.Gateway, c.RazorpayX.BaseURL)
}

func movesRealMoney(g Gateway, address string) bool {
	switch g.Adapter() {
	case Sandbox:
		return false
	case RazorpayXPayments:
		at, err := url.Parse(address)
		return err != nil || !web.IsLoopback(at.Host)
	default:
		return true
	}
}

// HasProviders reports whether an identity provider is set up.
func (c Config) HasProviders() bool { return c.ProviderA != nil || c.ProviderB != nil }

// Listen is an address to listen on.
type Listen struct {
	// Addr is empty where nothing is to be listened on.
	Addr string
	// OrFree says that a free port will do where this one is taken: nobody asked for it.
	OrFree bool
}

// IsLoopback reports whether only this machine reaches the address.
func (l Listen) IsLoopback() bool { return web.IsLoopback(l.Addr) }

// Gateway names who pays: an adapter, and for one of several accounts at the same gateway a label, such as "razorpayx-2".
type Gateway string

// Adapter is the part of the name that tells the adapter.
func (g Gateway) Adapter() Gateway {
	adapter, _, _ := strings.Cut(string(g), "-")
	return Gateway(adapter)
}

// FormerGateway is a gateway through which nothing new is paid.
type FormerGateway struct {
	Name Gateway
	// Rate is requests per second; zero is no limit.
	Rate float64
	// Settings are those that its adapter asks for. They hold secrets.
	Settings map[string]string
}

// Gateways.
const (
	Sandbox           Gateway = "sandbox"
	RazorpayXPayments Gateway = "razorpayx"
)

// BankVerifier names who verifies bank accounts.
type BankVerifier string

// Verifiers.
const (
	ByGateway BankVerifier = "gateway"
	ByHand    BankVerifier = "manual"
)

// RazorpayX is what its API asks of a client.
type RazorpayX struct {
	KeyID         string
	KeySecret     string
	AccountNumber string
	// WebhookSecrets are one, or two while it is being changed.
	WebhookSecrets []string
	BaseURL        string
}

// TrustedIssuer is the marketplace's own sign-in, whose access tokens are accepted for sellers.
type TrustedIssuer struct {
	Issuer, Audience string
	// SellerClaim is the claim that holds the seller's external id.
	SellerClaim string
}

// Provider is an identity provider: one with an issuer speaks OpenID Connect, one with addresses OAuth 2.0
// alone.
type Provider struct {
	Label                          string
	Issuer                         string
	AuthURL, TokenURL, UserinfoURL string
	ClientID, ClientSecret         string
	Scopes                         []string
}
