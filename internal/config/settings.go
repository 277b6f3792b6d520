// Package config reads what an operator may set, and tells everything that is wrong with it at once.
//
// Every setting has one name in three spellings: the flag --cancel-window is the environment variable
// BURSAR_CANCEL_WINDOW and the line BURSAR_CANCEL_WINDOW=… of the file that BURSAR_CONFIG names. A flag
// wins over the environment, and the environment over the file. A secret NAME may also be given as
// NAME_FILE, the path of a file that holds it.
//
// [Settings] holds the text as it was given; [Settings.Parse] makes the typed [Config] of it, so that
// nothing behind it sees a value that was not checked.
package config

import "strings"

// Settings is every setting as text. Its tags are read by kong, which fills it from flags and from
// [Sources]; the tag "secret" marks what is never shown.
type Settings struct {
	Config string `group:"data" placeholder:"FILE" help:"File of settings, one BURSAR_NAME=value on each line."`

	DataDir        string `group:"data" default:"./bursar-data" help:"Directory for the database and the key set."`
	DatabaseURL    string `group:"data" name:"database-url" secret:"" placeholder:"URL" help:"sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE for many instances; bursar.db in the data directory unless set."`
	Keys           string `group:"data" secret:"" placeholder:"JSON" help:"The key set itself, where it is not to be kept in a file."`
	KeysFile       string `group:"data" placeholder:"PATH" help:"File of the key set, made on first use; keys.json in the data directory, or with PostgreSQL the database, unless set."`
	KeysInDatabase string `group:"data" default:"refuse" help:"Whether a gateway that moves real money may be used while PostgreSQL keeps the key set: refuse, or accept. With accept, an attacker who can read and write the database can make the service pay: the keys that authenticate the journal lie beside it."`

	Addr           string `group:"listen" placeholder:"127.0.0.1:8080" help:"Listen address. Where only PORT is set, all addresses on that port."`
	BaseURL        string `group:"listen" name:"base-url" placeholder:"http://ADDRESS" help:"Public address, for links, redirects, cookies and the tokens' issuer."`
	TrustedProxies string `group:"listen" placeholder:"CIDR,…" help:"Proxies whose X-Forwarded-For is believed."`
	MetricsAddr    string `group:"listen" placeholder:"127.0.0.1:9090" help:"Where Prometheus metrics are served; a free port where this one is taken. \"off\" for nowhere."`
	DrainDelay     string `group:"listen" default:"0s" help:"How long a stopping service still takes requests while /readyz fails; 5s behind a load balancer that asks there."`

	Currency        string `group:"money" default:"INR" help:"ISO 4217 code. The ledger counts its minor unit, and it can't be changed later."`
	MinimumPayout   string `group:"money" default:"500" help:"Least that a seller may withdraw, in major units."`
	PayoutFee       string `group:"money" placeholder:"5+0.5%" help:"Fee of a payout: flat, percent or both, optionally with tax on it, as in \"5+0.5%+tax18%\". None unless set."`
	StepUpAbove     string `group:"money" placeholder:"AMOUNT" help:"Most that a seller may withdraw at once without proving again who they are, in major units. Any amount unless set."`
	AccountCooldown string `group:"money" default:"72h" help:"How long a seller can't request payouts after a verified bank account was replaced, or the sign-in was changed. 0s: no wait."`
	CancelWindow    string `group:"money" default:"30s" help:"How long a payout waits, and can be cancelled, before it is handed to the gateway."`
	EarningsHold    string `group:"money" default:"72h" help:"How long a sale stays pending where the marketplace gives no availableAt."`
	TimeZone        string `group:"money" placeholder:"ZONE" help:"Zone of months and of bank days; Asia/Kolkata for INR, otherwise UTC, unless set."`
	Holidays        string `group:"money" placeholder:"2026-11-08,…" help:"Bank holidays beside those that are known; 12-25 is one of every year."`

	CheckpointEvery string `group:"money" default:"1h" help:"How often a signed checkpoint of all journals is made."`

	RefreshReuseGrace string `group:"signin" default:"10s" help:"How long a used refresh token returns the same successor again."`
	LoginThrottle     string `group:"signin" default:"on" help:"Slow down guessing of passwords; \"off\" for load tests."`
	PasswordBlocklist string `group:"signin" default:"off" help:"Refuse common passwords."`

	AdminFactor          string `group:"signin" default:"optional" help:"\"required\" lets admins without a second factor do nothing but enrol one."`
	RequireVerifiedEmail string `group:"signin" default:"off" help:"\"on\" refuses payout requests of users who have not confirmed their e-mail address."`

	SMTPURL       string `group:"mail" name:"smtp-url" secret:"" placeholder:"URL" help:"Mail server: smtp://USER:PASSWORD@HOST:587, which has to offer STARTTLS unless it is on this machine, or smtps://. Without it, mails are files in outbox/ of the data directory."`
	MailFrom      string `group:"mail" placeholder:"ADDRESS" help:"Sender of mails, such as \"Payouts <payouts@example.com>\". Needed with a mail server."`
	MailTemplates string `group:"mail" placeholder:"DIR" help:"Folder of templates that take the place of the built-in ones with the same names."`

	TrustIssuer      string `group:"signin" placeholder:"URL" help:"Issuer of the marketplace's own sign-in. Its access tokens are accepted for sellers, by their external ids."`
	TrustAudience    string `group:"signin" placeholder:"AUDIENCE" help:"What such a token has to name as its audience. Needed with an issuer."`
	TrustSellerClaim string `group:"signin" default:"sub" help:"Claim of such a token that holds the seller's external id."`

	ProviderA ProviderSettings `embed:"" prefix:"provider-a-" set:"provider=a"`
	ProviderB ProviderSettings `embed:"" prefix:"provider-b-" set:"provider=b"`

	Gateway                 string `group:"gateway" default:"sandbox" help:"Payment gateway that pays: \"sandbox\", \"razorpayx\", or another adapter of this build, which then needs gateway-settings."`
	GatewayRate             string `group:"gateway" placeholder:"N" help:"Requests per second towards each gateway; 8 for razorpayx, \"none\" for the sandbox, unless set."`
	GatewaySettings         string `group:"gateway" secret:"" placeholder:"KEY=VALUE,…" help:"Settings of a gateway that has no variables of its own, as its adapter names them."`
	FormerGateway           string `group:"gateway" placeholder:"NAME" help:"Gateway that paid before: what is under way there goes on. Needs former-gateway-settings. If it is another account at the same gateway, name the new one such as razorpayx-2."`
	FormerGatewaySettings   string `group:"gateway" secret:"" placeholder:"KEY=VALUE,…" help:"Its settings, as its adapter names them. Those of razorpayx are key_id, key_secret, account_number, webhook_secrets and base_url."`
	BankVerifier            string `group:"gateway" default:"gateway" help:"Who verifies bank accounts: \"gateway\", or \"manual\" for an admin."`
	Restored                string `group:"gateway" default:"off" help:"\"on\" after a backup was put in place of the database: a gateway that can't list its payouts is sent nothing until it is off again."`
	SandboxAddr             string `group:"gateway" placeholder:"127.0.0.1:8081" help:"Where the built-in sandbox listens; a free port where this one is taken, and with PostgreSQL a port that the first instance chooses for all."`
	SandboxSettleAfter      string `group:"gateway" default:"5s" help:"How long the sandbox takes to finish a payout."`
	SandboxProfile          string `group:"gateway" default:"full" help:"What the sandbox offers: \"full\", or \"limited\": keys honoured for 24 hours, no lists, notes, cancelling, validations or statement."`
	RazorpayXKeyID          string `group:"gateway" name:"razorpayx-key-id" placeholder:"ID" help:"RazorpayX API key."`
	RazorpayXKeySecret      string `group:"gateway" name:"razorpayx-key-secret" secret:"" placeholder:"SECRET" help:"Its secret."`
	RazorpayXAccountNumber  string `group:"gateway" name:"razorpayx-account-number" secret:"" placeholder:"NUMBER" help:"The RazorpayX account that payouts are paid from."`
	RazorpayXWebhookSecrets string `group:"gateway" name:"razorpayx-webhook-secrets" secret:"" placeholder:"NEW,OLD" help:"Secrets of the webhook: one, or two while changing it."`
	RazorpayXBaseURL        string `group:"gateway" name:"razorpayx-base-url" default:"https://api.razorpay.com/v1" help:"Address of RazorpayX's API, with its version."`

	WebhookPrivateNetworks string `group:"webhooks" default:"off" help:"\"on\" lets webhook endpoints be in private networks. On this machine they may be while the service itself listens on a loopback address."`

	LogLevel  string `group:"log" default:"info" help:"Least level that is logged: debug, info, warn or error."`
	LogFormat string `group:"log" placeholder:"FORMAT" help:"\"text\" or \"json\"; text on a terminal and json elsewhere, unless set."`
}

// ProviderSettings are those of one identity provider.
type ProviderSettings struct {
	Issuer       string `group:"providers" placeholder:"URL" help:"Issuer of provider-${provider}, if it speaks OpenID Connect. Register BURSAR_BASE_URL/api/auth/provider-${provider}/callback there."`
	AuthURL      string `group:"providers" name:"auth-url" placeholder:"URL" help:"Or, if it speaks OAuth 2.0 alone, where it asks people."`
	TokenURL     string `group:"providers" name:"token-url" placeholder:"URL" help:"Where it exchanges codes."`
	UserinfoURL  string `group:"providers" name:"userinfo-url" placeholder:"URL" help:"Address of the profile of the signed-in user."`
	ClientID     string `group:"providers" name:"client-id" placeholder:"ID" help:"The id that it gave us."`
	ClientSecret string `group:"providers" name:"client-secret" secret:"" placeholder:"SECRET" help:"Its secret."`
	Scopes       string `group:"providers" placeholder:"SCOPES" help:"What to ask for; \"openid email profile\", or without OpenID Connect \"read:user user:email\", unless set."`
	Label        string `group:"providers" placeholder:"NAME" help:"What people call it; \"Provider A\" or \"Provider B\" unless set."`
}

// Groups titles the groups of settings, for help.
func Groups() map[string]string {
	return map[string]string{
		"data":      "Where things are kept:",
		"listen":    "Listening:",
		"money":     "Money:",
		"signin":    "Sign-in:",
		"mail":      "Mail:",
		"providers": "Identity providers:",
		"gateway":   "Payment gateway:",
		"webhooks":  "Webhooks:",
		"log":       "Log:",
	}
}

const prefix = "BURSAR_"

// Variable is the environment variable of a flag.
func Variable(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
