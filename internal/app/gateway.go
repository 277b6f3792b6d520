package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"bursar/internal/config"
	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/money"
	"bursar/internal/store"
	"bursar/internal/telemetry"
)

// adapters open the gateways that this build knows, by the setting that chooses one. A new adapter is a line here.
var adapters = map[config.Gateway]gateway.Open{
	config.RazorpayXPayments: razorpayx.Open,
	config.Sandbox:           razorpayx.Open, // the sandbox speaks the same wire
}

// gateways are those that are configured.
type gateways struct {
	router   *gateway.Router
	webhooks map[gateway.Name]gateway.ReadWebhook
	// accounts are those that the gateways pay from, if they say.
	accounts map[gateway.Name]string
}

// withStatement names the gateways whose statement is compared with the ledger.
func (g gateways) withStatement() []gateway.Name {
	var names []gateway.Name
	for _, one := range g.router.All() {
		if one.Capabilities().Statement {
			names = append(names, one.Name())
		}
	}
	return names
}

// paysFrom finds the gateway that pays from an account.
func (g gateways) paysFrom(account string) (name gateway.Name, isOne bool) {
	for name, one := range g.accounts {
		if account != "" && one == account {
			return name, true
		}
	}
	return "", false
}

// configured is a gateway as the operator set it.
type configured struct {
	name     config.Gateway
	rate     float64
	settings map[string]string
	// profile is what a sandbox offers.
	profile sandbox.Profile
	// nameIn and settingsIn are the variables that hold the name and the settings; the latter is empty if each has a variable of its own.
	nameIn, settingsIn string
}

// configuredGateways lists the current gateway first, and then the former one, if there is one.
func configuredGateways(cfg config.Config) []configured {
	current := configured{
		name: cfg.Gateway, rate: cfg.GatewayRate, settings: cfg.GatewaySettings, profile: sandbox.Profile(cfg.SandboxProfile),
		nameIn: "BURSAR_GATEWAY", settingsIn: "BURSAR_GATEWAY_SETTINGS",
	}
	if current.settings == nil {
		current.settings, current.settingsIn = razorpayxSettings(cfg.RazorpayX), ""
	}
	all := []configured{current}
	if former := cfg.FormerGateway; former != nil {
		all = append(all, configured{
			name: former.Name, rate: former.Rate, settings: former.Settings, nameIn: "BURSAR_FORMER_GATEWAY", settingsIn: "BURSAR_FORMER_GATEWAY_SETTINGS",
		})
	}
	return all
}

// openGateways makes the gateways that are configured. Their calls are counted where there are metrics.
func openGateways(cfg config.Config, db *store.DB, metrics *telemetry.Metrics) (gateways, error) {
	all := gateways{webhooks: map[gateway.Name]gateway.ReadWebhook{}, accounts: map[gateway.Name]string{}}
	var opened []gateway.Gateway
	for _, c := range configuredGateways(cfg) {
		one, err := c.open(cfg.Currency, db)
		if err != nil {
			return gateways{}, err
		}
		name := one.Gateway.Name()
		if other, isOne := all.paysFrom(one.Account); isOne {
			return gateways{}, fmt.Errorf("%s and %s pay from the same account, which ends in %s: its payouts would be taken for those of two gateways; "+
				"to change its key alone, keep the name and set no BURSAR_FORMER_GATEWAY", name, other, lastFour(one.Account))
		}
		all.accounts[name] = one.Account
		if one.ReadWebhook != nil {
			all.webhooks[name] = namedWebhook(name, one.ReadWebhook)
		}
		if metrics != nil {
			one.Gateway = newCounted(one.Gateway, metrics)
		}
		opened = append(opened, one.Gateway)
	}
	if cfg.Gateway == config.Sandbox { // which posts where RazorpayX would
		all.webhooks[razorpayx.DefaultName] = all.webhooks[gateway.Name(config.Sandbox)]
	}
	var err error
	all.router, err = gateway.NewRouter(cfg.Currency, gateway.Name(cfg.Gateway), opened...)
	return all, err
}

func (c configured) open(currency money.Currency, db *store.DB) (gateway.Opened, error) {
	open, isKnown := adapters[c.name.Adapter()]
	if !isKnown {
		return gateway.Opened{}, fmt.Errorf("%s=%s is not known to this build; write one of %v", c.nameIn, c.name, slices.Sorted(maps.Keys(adapters)))
	}
	setup := gateway.Setup{Name: gateway.Name(c.name), Currency: currency, Settings: c.settings, Turn: c.turns(db), Timeout: paceOf(c.name).call, Now: time.Now}
	if c.profile == sandbox.Limited {
		limited := c.profile.Capabilities(currency)
		setup.Capabilities = &limited
	}
	opened, err := open(setup)
	if err != nil && c.settingsIn != "" {
		err = fmt.Errorf("%s: %w", c.settingsIn, err)
	}
	return opened, err
}

// namedWebhook has what is read of a gateway's message say which gateway that is.
func namedWebhook(name gateway.Name, read gateway.ReadWebhook) gateway.ReadWebhook {
	return func(header http.Header, body []byte) (gateway.Notification, error) {
		notification, err := read(header, body)
		notification.Gateway = name
		return notification, err
	}
}

// openGatewaysOf is openGateways for a service, whose gateways have to pay from the accounts that they paid from before.
func openGatewaysOf(ctx context.Context, cfg config.Config, datastore *Datastore, metrics *telemetry.Metrics) (gateways, error) {
	all, err := openGateways(cfg, datastore.db, metrics)
	if err != nil {
		return all, err
	}
	for _, name := range slices.Sorted(maps.Keys(all.accounts)) {
		err = errors.Join(err, datastore.checkGatewayAccount(ctx, name, all.accounts[name], cfg.FormerGateway == nil))
	}
	return all, err
}

// accountSettings begins the names of the rows of the table settings that have the accounts that gateways pay from, encrypted.
const accountSettings = "account_of_gateway_"

func accountSetting(name gateway.Name) string { return accountSettings + string(name) }

// checkAccountName refuses an account from which a gateway of another name has paid, unless this one has paid from it too: what the account ever paid would
// be transfers of another gateway, which match no payout, and would stop every seller who was paid.
func (b *Datastore) checkAccountName(ctx context.Context, name gateway.Name, account string) error {
	kept, err := b.db.PinnedUnder(ctx, accountSettings)
	if err != nil {
		return err
	}
	paidBy := gateway.Name("")
	for _, other := range slices.Sorted(maps.Keys(kept)) {
		before, err := b.accountBefore(gateway.Name(other), kept[other])
		if err != nil {
			return err
		}
		if before != account {
			continue
		}
		hasTaken, err := b.db.MayHaveTaken(ctx, gateway.Name(other))
		if err != nil || hasTaken && gateway.Name(other) == name {
			return err
		}
		if hasTaken {
			paidBy = gateway.Name(other)
		}
	}
	if paidBy == "" {
		return nil
	}
	return fmt.Errorf("gateway %s is set to pay from the account that ends in %s, from which gateway %s has paid; an account keeps its gateway's name, "+
		"so set that name (docs/gateways.md, \"Change the gateway\")", name, lastFour(account), paidBy)
}

// checkGatewayAccount refuses a gateway that pays from another account than before, if it has taken a payout from the one before: the
// gateway would not find that payout, and an admin could refund one that was paid. Unless mayChange, it refuses any other
// account: beside a former gateway a new account has a name of its own, and the names may have been exchanged.
func (b *Datastore) checkGatewayAccount(ctx context.Context, name gateway.Name, account string, mayChange bool) error {
	if account == "" {
		return nil
	}
	setting := accountSetting(name)
	if err := b.checkAccountName(ctx, name, account); err != nil {
		return err
	}
	encrypted, err := b.keys.Encrypt(account, setting)
	if err != nil {
		return err
	}
	kept, err := b.db.Pin(ctx, setting, encrypted)
	if err != nil {
		return err
	}
	before, err := b.accountBefore(name, kept)
	if err != nil || before == account {
		return err
	}
	if mayChange {
		var hasTaken bool
		hasTaken, err = b.db.MayHaveTaken(ctx, name)
		mayChange = !hasTaken
	}
	switch {
	case err != nil:
		return err
	case !mayChange:
		return fmt.Errorf("gateway %s is set to pay from an account that ends in %s, and it paid from the one that ends in %s; "+
			"the account before keeps its name, in BURSAR_FORMER_GATEWAY, and the new one gets another (docs/gateways.md, \"Change the gateway\")",
			name, lastFour(account), lastFour(before))
	}
	done, err := b.db.Repin(ctx, setting, kept, encrypted)
	if err == nil && !done {
		err = fmt.Errorf("another instance has just changed the account that gateway %s pays from; start again", name)
	}
	return err
}

// sameGatewayAccount refuses a gateway that is set to pay from another account than the service does. It changes nothing.
func (b *Datastore) sameGatewayAccount(ctx context.Context, name gateway.Name, account string) error {
	kept, isKept, err := b.db.Pinned(ctx, accountSetting(name))
	if err != nil || !isKept || account == "" {
		return err
	}
	before, err := b.accountBefore(name, kept)
	if err == nil && before != account {
		err = fmt.Errorf("gateway %s is set to pay from an account that ends in %s here, and the service pays from the one that ends in %s; use the service's settings",
			name, lastFour(account), lastFour(before))
	}
	return err
}

// accountBefore reads the account that a gateway paid from.
func (b *Datastore) accountBefore(name gateway.Name, kept string) (string, error) {
	setting := accountSetting(name)
	before, err := b.keys.Decrypt(kept, setting)
	if err != nil {
		return "", fmt.Errorf("the database does not tell which account gateway %s paid from, because the row %q of its table settings was changed outside Bursar; "+
			"make sure that the gateway is set to pay from the account that it paid from before, delete that row, and start again: %w", name, setting, err)
	}
	return before, nil
}

func lastFour(number string) string { return number[max(0, len(number)-4):] }

// razorpayxSettings are the variables of RazorpayX by the names that its adapter gives them.
func razorpayxSettings(x config.RazorpayX) map[string]string {
	return map[string]string{
		razorpayx.SettingBaseURL: x.BaseURL, razorpayx.SettingKeyID: x.KeyID, razorpayx.SettingKeySecret: x.KeySecret,
		razorpayx.SettingAccountNumber: x.AccountNumber, razorpayx.SettingWebhookSecrets: strings.Join(x.WebhookSecrets, ","),
	}
}

// turns spaces requests to the gateway evenly, those of all instances together: the gateway counts them
// so. What paces them is a row of the database, which one statement moves.
func (c configured) turns(db *store.DB) func(context.Context) error {
	if c.rate == 0 {
		return nil
	}
	every := time.Duration(float64(time.Second) / c.rate)
	return func(ctx context.Context) error {
		now := time.Now()
		timeout := paceOf(c.name).call / 2
		var end time.Time
		var mine bool
		err := db.Update(ctx, func(tx *store.Tx) (err error) {
			end, mine, err = tx.TakeThrottle(ctx, "gateway|"+string(c.name), now, every, timeout+every)
			return err
		})
		if err != nil {
			return fmt.Errorf("wait for the gateway's rate limit: %w", err)
		}
		if !mine {
			return fmt.Errorf("%w within %s", gateway.ErrRateLimited, timeout)
		}
		select {
		case <-time.After(end.Add(-every).Sub(now)):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// counted is a gateway whose calls are counted.
type counted struct {
	gateway.Gateway
	metrics *telemetry.Metrics
}

// submitOutcomes are what may come of a submission, in the words of the metrics.
var submitOutcomes = map[gateway.SubmitOutcome]string{
	gateway.Accepted: "ok", gateway.Refused: "refused", gateway.NotTaken: "not_taken", gateway.Unclear: "unclear",
}

// newCounted counts the calls of a gateway.
func newCounted(g gateway.Gateway, metrics *telemetry.Metrics) counted {
	metrics.ExpectGatewayCall("submit", append(slices.Collect(maps.Values(submitOutcomes)), gateway.ReasonRateLimited)...)
	for _, operation := range []string{"fetch", "find", "cancel", "transfers", "reversed", "lines", "beneficiary", "describe_beneficiary", "start_verification", "verification"} {
		metrics.ExpectGatewayCall(operation, "ok", "not_found", gateway.ReasonRateLimited, "error")
	}
	return counted{g, metrics}
}

// timed makes a call, and counts it. That the gateway knows no such transfer is an answer like another, and no failure of it.
func timed[T any](c counted, operation string, call func() (T, error)) (T, error) {
	began := time.Now()
	answer, err := call()
	outcome := "ok"
	switch {
	case errors.Is(err, gateway.ErrUnknownTransfer):
		outcome = "not_found"
	case errors.Is(err, gateway.ErrRateLimited):
		outcome = gateway.ReasonRateLimited
	case err != nil:
		outcome = "error"
	}
	c.metrics.GatewayCalled(operation, outcome, time.Since(began))
	return answer, err
}

func (c counted) Submit(ctx context.Context, key, body string) gateway.Submission {
	began := time.Now()
	s := c.Gateway.Submit(ctx, key, body)
	outcome := submitOutcomes[s.Outcome]
	if s.ReasonCode == gateway.ReasonRateLimited {
		outcome = gateway.ReasonRateLimited
	}
	c.metrics.GatewayCalled("submit", outcome, time.Since(began))
	return s
}

func (c counted) Fetch(ctx context.Context, gatewayID string) (gateway.Report, error) {
	return timed(c, "fetch", func() (gateway.Report, error) { return c.Gateway.Fetch(ctx, gatewayID) })
}

func (c counted) Find(ctx context.Context, reference string) (gateway.Report, error) {
	return timed(c, "find", func() (gateway.Report, error) { return c.Gateway.Find(ctx, reference) })
}

func (c counted) Cancel(ctx context.Context, gatewayID string) (gateway.Report, error) {
	return timed(c, "cancel", func() (gateway.Report, error) { return c.Gateway.Cancel(ctx, gatewayID) })
}

func (c counted) Transfers(ctx context.Context, since time.Time, after gateway.Cursor) (gateway.TransferPage, error) {
	return timed(c, "transfers", func() (gateway.TransferPage, error) { return c.Gateway.Transfers(ctx, since, after) })
}

func (c counted) Reversed(ctx context.Context, since time.Time, after gateway.Cursor) (gateway.TransferPage, error) {
	return timed(c, "reversed", func() (gateway.TransferPage, error) { return c.Gateway.Reversed(ctx, since, after) })
}

func (c counted) Lines(ctx context.Context, from, to time.Time, after gateway.Cursor) (gateway.LinePage, error) {
	return timed(c, "lines", func() (gateway.LinePage, error) { return c.Gateway.Lines(ctx, from, to, after) })
}

func (c counted) DescribeBeneficiary(ctx context.Context, beneficiary string) (gateway.Destination, error) {
	return timed(c, "describe_beneficiary", func() (gateway.Destination, error) { return c.Gateway.DescribeBeneficiary(ctx, beneficiary) })
}

func (c counted) EnsureBeneficiary(ctx context.Context, reference string, d gateway.Destination) (string, error) {
	return timed(c, "beneficiary", func() (string, error) { return c.Gateway.EnsureBeneficiary(ctx, reference, d) })
}

func (c counted) StartVerification(ctx context.Context, v gateway.VerificationRequest) (gateway.Verification, error) {
	return timed(c, "start_verification", func() (gateway.Verification, error) { return c.Gateway.StartVerification(ctx, v) })
}

func (c counted) Verification(ctx context.Context, v gateway.VerificationRequest, id string) (gateway.Verification, error) {
	return timed(c, "verification", func() (gateway.Verification, error) { return c.Gateway.Verification(ctx, v, id) })
}
