package app

import (
	"context"
	"log/slog"
	"time"

	"bursar/internal/api"
	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/bank/ifsc"
	"bursar/internal/config"
	"bursar/internal/event"
	"bursar/internal/gateway"
	"bursar/internal/inbox"
	"bursar/internal/mail"
	"bursar/internal/payout"
	"bursar/internal/proof"
	"bursar/internal/reconcile"
	"bursar/internal/sale"
	"bursar/internal/search"
	"bursar/internal/webhook"
)

// parts is what services are made of.
type parts struct {
	cfg       config.Config
	datastore *Datastore
	gateways  gateways
	now       func() time.Time
	logger    *slog.Logger
	moved     func(from, to payout.State)
	tampered  func(kind string)
	tried     func(action, outcome string)
	mailed    func(outcome string)
	posted    func(outcome string)
	// past says that what is done happened long ago: no user is mailed about it.
	past bool
	// providers are those that people can sign in through.
	providers map[auth.ProviderID]auth.Provider
	// issuer is the marketplace's own sign-in, or nil.
	issuer auth.TrustedIssuer
}

// Services are the domains at work.
type Services struct {
	Auth    *auth.Service
	Mails   *mail.Service
	Bank    *bank.Service
	Sales   *sale.Service
	Payouts *payout.Service
	Search  search.Service
	Inbox   inbox.Service
	Proofs  *proof.Service
	Events  *event.Service
	// Endpoints delivers events to the marketplace's servers.
	Endpoints *webhook.Service
	// Reconciling compares the statement of the current gateway with the ledger, and shows what differs at any.
	Reconciling *reconcile.Service
	// reconciling are such services of all gateways.
	reconciling []*reconcile.Service
	// withStatement are the gateways whose statement is compared.
	withStatement []gateway.Name
	// webhooks read the gateways' messages.
	webhooks map[gateway.Name]gateway.ReadWebhook
}

func newServices(p parts) (Services, error) {
	mails, err := newMails(p)
	if err != nil {
		return Services{}, err
	}
	var notifier mail.Queuer = mails
	if p.past {
		notifier = noMails{}
	}
	users, err := newAuth(p, notifier)
	if err != nil {
		return Services{}, err
	}
	accounts, err := bank.New(bank.Options{
		Store: p.datastore.db.Bank(), Keys: p.datastore.keys, Mails: notifier,
		Gateways: p.gateways.router, ByHand: p.cfg.BankVerifier == config.ByHand, Directory: ifsc.New(),
		CoolDown: p.cfg.AccountCooldown, Proofs: freshProofs{users},
		Now: p.now, Logger: p.logger,
	})
	if err != nil {
		return Services{}, err
	}
	sales, err := sale.New(sale.Options{Store: p.datastore.db.Sales(), Now: p.now, HoldingPeriod: p.cfg.EarningsHold, Zone: p.cfg.Zone})
	if err != nil {
		return Services{}, err
	}
	work := paceOf(p.cfg.Gateway)
	payouts, err := payout.New(payout.Options{
		Store: p.datastore.db.Payouts(), Gateways: p.gateways.router, Restored: p.cfg.Restored, Beneficiaries: accounts,
		Currency: p.cfg.Currency, Minimum: p.cfg.MinimumPayout, Fee: p.cfg.PayoutFee, ProveAbove: p.cfg.StepUpAbove, Proofs: freshProofs{users}, Mails: notifier,
		Arrival:      payout.NewArrival(p.cfg.Currency, p.cfg.Zone, p.cfg.Holidays),
		CancelWindow: p.cfg.CancelWindow, Lease: work.lease, GracePeriod: work.gracePeriod, ReversalsEvery: work.reversals, Zone: p.cfg.Zone,
		Now: p.now, Logger: p.logger, StateChanged: p.moved,
	})
	if err != nil {
		return Services{}, err
	}
	proofs, err := newProofs(p.cfg, p.datastore, p.now, p.logger)
	if err != nil {
		return Services{}, err
	}
	reconciling, err := newReconciling(p, payouts)
	if err != nil {
		return Services{}, err
	}
	events, err := event.New(event.Options{Store: p.datastore.db, Now: p.now, Mailer: mailEvents(payouts)})
	if err != nil {
		return Services{}, err
	}
	endpoints, err := newEndpoints(p, notifier, api.EventBodies(events, users, accounts, p.cfg.Currency))
	waits := inbox.Service{Payouts: payouts, Bank: accounts, Reconciling: reconciling[0], Webhooks: endpoints, Store: p.datastore.db.Inbox(), Now: p.now}
	finder := search.Service{Store: p.datastore.db, Currency: p.cfg.Currency}
	return Services{users, mails, accounts, sales, payouts, finder, waits, proofs, events, endpoints, reconciling[0], reconciling, p.gateways.withStatement(), p.gateways.webhooks}, err
}

// newReconciling makes what compares the statement of each gateway, that of the current one first.
func newReconciling(p parts, payouts *payout.Service) (all []*reconcile.Service, err error) {
	for _, statement := range p.gateways.router.All() {
		one, err := reconcile.New(reconcile.Options{
			Store: p.datastore.db.Reconciling(statement.Name()), Statement: statement, Payouts: payouts, Currency: p.cfg.Currency,
			GracePeriod: paceOf(config.Gateway(statement.Name())).gracePeriod, Zone: p.cfg.Zone, Now: p.now, Logger: p.logger,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// mailEvents queues the mails that tell sellers of events.
func mailEvents(payouts *payout.Service) event.Mailer {
	return func(ctx context.Context, tx event.MailTx, e event.Event) error {
		return payouts.MailFailure(ctx, tx, e.Owner, payout.ID(e.Subject)) // of a payout, as all events that are mailed
	}
}

// newProofs makes the service that makes checkpoints of the ledger.
func newProofs(cfg config.Config, b *Datastore, now func() time.Time, logger *slog.Logger) (*proof.Service, error) {
	return proof.New(proof.Options{
		Store: b.db.Proofs(), Signer: b.keys, Keys: b.keys, Currency: cfg.Currency, Every: cfg.CheckpointEvery, Zone: cfg.Zone, Now: now, Logger: logger,
	})
}

// Proofs makes the service for checkpoints and statements, for a command.
func (b *Datastore) Proofs(logger *slog.Logger) (*proof.Service, error) {
	return newProofs(b.cfg, b, time.Now, logger)
}

// newAuth makes the service that knows users.
func newAuth(p parts, mails mail.Queuer) (*auth.Service, error) {
	return auth.New(auth.Options{
		Store: p.datastore.db.Auth(), Keys: p.datastore.keys, Encrypter: p.datastore.keys, Mails: mails, Now: p.now, Logger: p.logger, Tampered: p.tampered,
		Providers:         p.providers,
		TrustedIssuer:     p.issuer,
		Issuer:            p.datastore.issuer,
		PublicAddress:     p.cfg.Origin(),
		CoolDown:          p.cfg.AccountCooldown,
		RefreshGrace:      p.cfg.RefreshReuseGrace,
		Throttle:          p.cfg.LoginThrottle,
		Tried:             p.tried,
		PasswordBlocklist: p.cfg.PasswordBlocklist,

		AdminFactor:          p.cfg.AdminFactor,
		RequireVerifiedEmail: p.cfg.RequireVerifiedEmail,
	})
}

// Importing makes the services that an import adds to. Nobody is mailed about what another system knew.
func (b *Datastore) Importing() (*auth.Service, *bank.Service, *sale.Service, error) {
	users, err := b.Auth()
	if err != nil {
		return nil, nil, nil, err
	}
	cfg := b.cfg
	if cfg.Gateway == config.Sandbox { // it may not run, and an import calls no gateway
		x := &cfg.RazorpayX
		x.BaseURL, x.KeyID, x.KeySecret, x.AccountNumber, x.WebhookSecrets = "http://127.0.0.1", SandboxKeyID, "none", SandboxAccountNumber, []string{"none"}
	}
	all, err := openGateways(cfg, b.db, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	accounts, err := bank.New(bank.Options{
		Store: b.db.Bank(), Keys: b.keys, Mails: noMails{}, Gateways: all.router, Directory: ifsc.New(), CoolDown: b.cfg.AccountCooldown,
		Proofs: freshProofs{users}, Now: time.Now, Logger: quiet(),
	})
	if err != nil {
		return nil, nil, nil, err
	}
	sales, err := sale.New(sale.Options{Store: b.db.Sales(), Now: time.Now, HoldingPeriod: b.cfg.EarningsHold, Zone: b.cfg.Zone})
	return users, accounts, sales, err
}

// Auth makes the service that knows users, for a command: it signs nobody in through a provider, and logs nothing.
func (b *Datastore) Auth() (*auth.Service, error) {
	mails, err := mail.New(mail.Options{Store: b.db.Mails(), Keys: b.keys, Now: time.Now, Logger: quiet()})
	if err != nil {
		return nil, err
	}
	return newAuth(parts{cfg: b.cfg, datastore: b, now: time.Now, logger: quiet()}, mails)
}
