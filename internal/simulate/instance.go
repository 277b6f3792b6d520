package simulate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/event"
	port "bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/payout"
	"bursar/internal/proof"
	"bursar/internal/reconcile"
	"bursar/internal/sale"
	"bursar/internal/store"
	"bursar/internal/webhook"
)

// machine is where an instance of the service runs, dies, and is started again.
type machine struct {
	name   string
	offset time.Duration // of its clock
	on     *instance     // nil while none runs
	// restored says that the service runs as after a restore: nobody has compared what gateways without a list have made since.
	restored bool
}

// instance is one process of the service: everything in memory that is lost when it dies.
type instance struct {
	m           *market
	name        string
	machine     *machine
	db          *store.DB
	payouts     *payout.Service
	bank        *bank.Service
	sales       *sale.Service
	users       *auth.Service
	proofs      *proof.Service
	events      *event.Service
	webhooks    *webhook.Service
	reconciling *reconcile.Service
	dead        bool
	started     time.Time // by its clock
	// gateways are those that it is configured with. The first one is for new payouts.
	gateways []*gateway
	router   *port.Router
	// tariff is the fee of payouts that are requested here.
	tariff tariff
	// ready says that it has asked the gateways what they know, and asked which have answered to the end.
	ready bool
	asked map[port.Name]bool
	// lost are the transfers that it was the first to list as unmatched.
	lost    []*unmatchable
	lists   [lists]listing
	looking [loops]bool
}

// The loops that take what is due.
const (
	payouts = iota
	sales
	verifications
	loops
)

var loopNames = [loops]string{"payouts", "sales", "accounts"}

// nowhere knows no bank's branches.
type nowhere struct{}

func (nowhere) Branch(bank.IFSC) (bank.Branch, bool) { return bank.Branch{}, false }

// startUp starts an instance on a machine, as serve does.
func (m *market) startUp(mc *machine) {
	if mc.on != nil || m.restoring {
		return
	}
	on := &instance{m: m, name: mc.name, machine: mc, tariff: m.tariff()}
	on.started = on.now()
	if err := on.open(); err != nil {
		m.broken(datastoreReadable, "", "start an instance: "+err.Error())
		return
	}
	mc.on = on
	m.note("", "", mc.name+" starts")
	m.work(on, m.between(0, time.Second), "reconcile startup", func() { m.reconcileStartup(on) })
	m.lookOn(on)
}

func (on *instance) now() time.Time { return on.m.clock().Add(on.machine.offset) }

func (on *instance) open() (err error) {
	m := on.m
	if on.db, err = store.OpenUnsyncedSQLite(m.ctx, m.datastoreFile()); err != nil {
		return err
	}
	on.db.UseKeys(m.keys)
	logger := m.logger(on.name)
	router, err := on.openClients()
	if err != nil {
		return err
	}
	mailService, err := mail.New(mail.Options{Store: on.db.Mails(), Keys: m.keys, Now: on.now, Logger: logger})
	if err != nil {
		return err
	}
	mails := mailQueue{mailService, m}
	on.bank, err = bank.New(bank.Options{
		Mails: mails, Proofs: accountProofs{on},
		Store: bankStore{on.db.Bank(), on}, Keys: m.keys, Gateways: router, Directory: nowhere{},
		CoolDown: coolDown, Now: on.now, Logger: logger, IDs: m.ids, Jitter: m.jitter,
	})
	if err != nil {
		return err
	}
	on.sales, err = sale.New(sale.Options{Store: saleStore{on.db.Sales(), on}, Now: on.now, HoldingPeriod: usualHoldingPeriod, Zone: indianTime})
	if err != nil {
		return err
	}
	on.events, err = event.New(event.Options{Store: on.db, Now: on.now, IDs: m.ids, Mailer: func(ctx context.Context, tx event.MailTx, e event.Event) error {
		return on.payouts.MailFailure(ctx, tx, e.Owner, payout.ID(e.Subject))
	}})
	if err != nil {
		return err
	}
	if on.webhooks, err = on.newWebhooks(mails, logger); err != nil {
		return err
	}
	on.proofs, err = proof.New(proof.Options{
		Store: on.db.Proofs(), Signer: m.keys, Keys: m.keys, Currency: rupees(), Every: time.Hour, Zone: indianTime, Now: on.now, Logger: logger,
	})
	if err != nil {
		return err
	}
	on.users, err = auth.New(auth.Options{
		Store: authStore{on.db.Auth(), on}, Keys: m.keys, Encrypter: m.keys, Issuer: "http://bursar.simulated", Mails: mails, Now: on.now, Logger: logger,
		Providers: m.identities.asProviders(), RefreshGrace: refreshGrace, CoolDown: coolDown, Throttle: true, CheapHashes: true,
	})
	if err != nil {
		return err
	}
	fee, err := payout.ParseFee(on.tariff.text, rupees())
	if err != nil {
		return err
	}
	on.payouts, err = payout.New(payout.Options{
		Store: payoutStore{on.db.Payouts(), on}, Gateways: router, Beneficiaries: on.bank, Currency: rupees(),
		Minimum: minimum, Fee: fee, ProveAbove: proveAbove, Proofs: requestProofs{on}, Mails: mails, Arrival: payout.NewArrival(rupees(), indianTime, payout.Holidays{}),
		CancelWindow: cancelWindow, Lease: lease, GracePeriod: gracePeriod, Restored: on.machine.restored, ReversalsEvery: tickEvery / 2, Zone: indianTime, Now: on.now, Logger: logger,
		IDs: m.ids, Jitter: m.jitter, StateChanged: func(payout.State, payout.State) {},
	})
	if err != nil {
		return err
	}
	on.router = router
	on.reconciling, err = on.newReconciling(on.gateways[0].name)
	return err
}

// reconcileStartup asks the gateway until it has answered, as serve does.
func (m *market) reconcileStartup(on *instance) {
	asks := m.beginsToAsk(on)
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := on.payouts.ReconcileStartup(m.ctx)
		if err == nil {
			break
		}
		m.note("", "", on.name+" can't reconcile at startup: "+firstLine(err))
		m.pause(pause)
	}
	on.ready = true
	m.note("", "", on.name+" has asked the gateway")
	m.checkListed(on, asks)
	if m.saved != nil && m.saved.restored && on.knowsAll() {
		m.saved = nil
		m.checkAllImported()
	}
	m.lookOn(on)
}

// kill ends an instance in the middle of whatever it does; it starts again by itself.
func (m *market) kill(on *instance) {
	if on.dead {
		return
	}
	m.tally.crashes++
	m.note("", "", on.name+" is killed")
	m.shutDown(on)
	m.after(m.between(time.Second, 2*time.Minute), func() { m.startUp(on.machine) })
}

func (m *market) shutDown(on *instance) {
	on.dead, on.machine.on = true, nil
	if err := on.db.Close(); err != nil {
		m.broken(datastoreReadable, "", "close the ledger: "+err.Error())
	}
}

// anyInstance is where the next request arrives; nil when all are down.
func (m *market) anyInstance() *instance {
	var up []*instance
	for _, mc := range m.machines {
		if mc.on != nil {
			up = append(up, mc.on)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return one(m, up)
}

// due lets the loops look when something is due by their clocks, if it still is then.
func (m *market) due(loop int, due int64, still func() bool) {
	for i, mc := range m.machines {
		if m.chance(50) { // a loop looks all the time, and must find nothing until then
			early := time.UnixMicro(due).Sub(m.start) - mc.offset - m.between(0, time.Minute)
			m.at(early, func() {
				if mc.on != nil && still() {
					m.look(mc.on, loop)
				}
			})
		}
		m.at(time.UnixMicro(due).Sub(m.start)-mc.offset, func() {
			othersTurn := m.fair && due%int64(len(m.machines)) != int64(i) // they compete when the weather is foul
			if mc.on != nil && !othersTurn && still() {
				m.look(mc.on, loop)
			}
		})
		m.at(time.UnixMicro(due).Sub(m.start)+2*maxOff, func() { // whatever was in the way: a clock that was put back, or a failure
			if mc.on != nil && still() {
				m.look(mc.on, loop)
			}
		})
	}
}

func (m *market) payoutDue(id payout.ID, w *withdrawal, at time.Time) {
	w.due = microsOf(at)
	if due := w.due; due != 0 {
		m.due(payouts, due, func() bool { return w.due == due && m.model.payouts[id] == w })
	}
}

func (m *market) verificationDue(id bank.ID, a *account, at time.Time) {
	a.due = microsOf(at)
	if due := a.due; due != 0 {
		m.due(verifications, due, func() bool { return a.due == due && m.model.accounts[id] == a })
	}
}

func (m *market) saleDue(id string, at time.Time) {
	m.due(sales, microsOf(at), func() bool { return m.model.sales[id] != nil && !m.model.sales[id].released })
}

// microsOf is how the ledger keeps an instant.
func microsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// awaitAll puts on the agenda all that the model has due, after the ledger was put back.
func (m *market) awaitAll() {
	for _, id := range slices.Sorted(maps.Keys(m.model.payouts)) {
		if w := m.model.payouts[id]; w.due != 0 {
			m.payoutDue(id, w, time.UnixMicro(w.due))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.model.accounts)) {
		if a := m.model.accounts[id]; a.due != 0 {
			m.verificationDue(id, a, time.UnixMicro(a.due))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.model.sales)) {
		if e := m.model.sales[id]; !e.released {
			m.saleDue(id, e.availableAt)
		}
	}
}

func (m *market) pollAll() {
	for _, mc := range m.machines {
		if mc.on != nil {
			m.lookOn(mc.on)
		}
	}
}

func (m *market) lookOn(on *instance) {
	for loop := range loops {
		m.look(on, loop)
	}
}

// pollNow lets every instance's loop look soon.
func (m *market) pollNow(loop int) {
	for _, mc := range m.machines {
		if mc.on != nil {
			m.look(mc.on, loop)
		}
	}
}

// workers is how many steps one look may begin.
const workers = 6

// look lets an instance take what is due, once for all who want it to.
func (m *market) look(on *instance, loop int) {
	if on.looking[loop] {
		return
	}
	on.looking[loop] = true
	m.work(on, m.between(0, pollEvery), loopNames[loop], func() {
		on.looking[loop] = false
		switch loop {
		case payouts:
			takeDue(m, on, loop, on.payouts.LeaseDue, on.payouts.Step)
		case verifications:
			takeDue(m, on, loop, on.bank.LeaseDue, on.bank.Step)
		case sales:
			m.try(on, "release", func() error {
				before := m.tally.releases
				n, err := on.sales.ReleaseDue(m.ctx)
				m.assert(nothingSpins, n == 0 || m.tally.releases > before || errors.Is(err, ledger.ErrTampered), "", "%s says that it released %d sales, and nothing was", on.name, n)
				if n > 0 {
					m.look(on, loop)
				}
				return err
			})
		}
	})
}
