package simulate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/id"
	"bursar/internal/keyset"
	"bursar/internal/mail"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/store"
)

// market is one marketplace in a world of its own: its clock, its dice, its sellers, the gateway, and the
// instances of the service. One thing happens at a time.
type market struct {
	ctx  context.Context //nolint:containedctx // a market is one run
	o    Options
	dir  string
	dice *rand.Rand
	ids  id.Source

	start  time.Time
	now    time.Duration // since start
	agenda agenda
	events uint64
	// inMinute is how much has happened in the present minute.
	inMinute int
	begun    uint64 // how often an actor has
	current  *actor
	actors   []*actor // all there ever were, and idle those who have nothing to do
	idle     []*actor

	keys       *keyset.Set
	gateways   *gateways
	machines   []*machine
	sellers    []*seller
	admin      string // a user's id
	model      *model
	recordings []recording
	saved      *backup
	lost       []loss
	// backUpSoon says that a backup is wanted, and replaceAt in which state of a payout another configuration is.
	backUpSoon bool
	// backUpUnknown says that it is wanted when next a payout becomes unknown.
	backUpUnknown bool
	replaceAt     payout.State
	ever          map[payout.ID]withdrawal // every payout as it was asked for, whatever the ledger has lost
	proofs        map[string]*proven       // fresh proofs that sellers got
	sessionEnds   map[string]time.Time     // the sessions that sellers signed in to
	decided       map[decided]int          // decisions on record
	numbers       map[string]bool          // every account number that was ever registered
	heard         map[string]bool          // events of the gateway that some datastore has on record

	faultProfile [numFaults]int
	disturbed    time.Duration // until when leases may be overrun, because a clock jumped or a worker hung
	fair         bool          // nothing goes wrong for a while, in a long run
	closing      bool          // nobody trades any more, and the weather is fair
	restoring    bool
	askEvery     time.Duration
	tally        tally
	log          log
	violation    *Violation
	// tampered is what is tampered with at present: the id of a sale, a payout or a seller.
	tampered string
	printed  hash.Hash
	stand    *stand
	// stopping are the sellers, or the platform, whose payouts an admin has stopped and is about to resume.
	stopping map[string]bool
	consumer consumer
	// receivers are its servers that events are delivered to.
	receivers []*receiver
	// adjusting are the amounts of the adjustments that an admin asked for, by their ids.
	adjusting map[string]money.Amount
	// kept is when the instances last kept house.
	kept time.Duration
	// mailed are the mails that the transaction under way has queued, and toldOf the payouts whose end a seller was mailed about.
	mailed []mail.Mail
	// identities is where people sign in through a provider, and undoing has each transaction of a sign-in be undone and run again.
	identities identities
	undoing    bool
	// leftAlone is a payout in review, or with a discrepancy, that admins do not decide about by themselves.
	leftAlone payout.ID
	// failing is what was made to fail, by who begins the transaction.
	failing map[caller]failureTurn
	toldOf  map[payout.ID]bool
	// lookedUp says until when a cancellation of a payout may wait for the gateway's answer.
	lookedUp map[payout.ID]time.Duration
	// openings are the balances that sellers began with.
	openings []sale.NewOpening
	// feesChanged is how often another fee was agreed on.
	feesChanged int
	// keysUsed are the idempotency keys that sellers used while there was trade, in order.
	keysUsed map[string][]string
	// rejectAtClaim is the payout whose bank account is rejected when a worker has checked it and claims the payout.
	rejectAtClaim payout.ID
	// recorders are the actors who recorded sales, by the sale's id, and refunds, by [refundKey]; "" is the marketplace without a service key.
	recorders map[string]string
	// cancels is how many payouts an admin has cancelled under an idempotency key.
	cancels int
}

// decided is what a decision is about, and which beginning of the admin's decided.
type decided struct {
	subject string
	by      uint64
}

// tally counts what happened.
type tally struct {
	sales, refunds, releases, asked, imported, sent, unknown                  int64
	calls, webhooks, crashes, restores, takeovers, onHold, stops, adjustments int64
	checks, audits, takes                                                     int64
	proven, unproven                                                          int64
	unmatched                                                                 int64
	faults                                                                    [numFaults]int64
}

// pace of the work, as with the real gateway.
const (
	lease        = 40 * time.Second
	gracePeriod  = 10 * time.Minute
	pollEvery    = 250 * time.Millisecond
	cancelWindow = 30 * time.Second
	// coolDown is short, so that sellers who often change their account still ask for payouts.
	coolDown           = 12 * time.Hour
	minimum            = money.Amount(500_00)
	usualHoldingPeriod = 72 * time.Hour
)

func rupees() money.Currency {
	c, err := money.ParseCurrency("INR")
	if err != nil {
		panic(err)
	}
	return c
}

// indianTime has one zone, and no summer time.
var indianTime = time.FixedZone("IST", 5*3600+1800)

func newMarket(ctx context.Context, o Options, dir string, stand *stand) (*market, error) {
	m := &market{
		ctx: ctx, o: o, dir: dir, dice: rand.New(rand.NewPCG(o.Seed, 0x6275_7273_6172)),
		model: newModel(), ever: map[payout.ID]withdrawal{}, proofs: map[string]*proven{}, sessionEnds: map[string]time.Time{}, decided: map[decided]int{}, numbers: map[string]bool{}, heard: map[string]bool{}, stopping: map[string]bool{}, adjusting: map[string]money.Amount{}, toldOf: map[payout.ID]bool{}, failing: map[caller]failureTurn{}, lookedUp: map[payout.ID]time.Duration{}, keysUsed: map[string][]string{}, recorders: map[string]string{}, consumer: newConsumer(), printed: sha256.New(), stand: stand,
	}
	m.ids = id.Source{Random: reader{m.dice}}
	// Some time in two years, so that leap days, month ends and holidays are met.
	m.start = time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(m.dice.IntN(2*365*24)) * time.Hour)
	m.askEvery = o.askEvery()
	var err error
	if m.keys, err = keyset.Open(ctx, keyset.File(filepath.Join(dir, "keys.json"))); err != nil {
		return nil, err
	}
	if err := m.openGateways(dir); err != nil {
		return nil, err
	}
	if err := m.inviteSellers(); err != nil {
		m.gateways.close()
		return nil, err
	}
	return m, nil
}

// clock is what time it is.
func (m *market) clock() time.Time { return m.start.Add(m.now) }

// end is when trading ends.
func (m *market) end() time.Duration { return time.Duration(m.o.Days) * 24 * time.Hour }

// quiet is how long all is left to run out after it: the key of an order that is unknown, and the days in
// which banks return money, holidays among them.
const quiet = 16 * 24 * time.Hour

const adminsEmail = "admin@example.com"

// inviteSellers makes the ledger, with the sellers in it.
func (m *market) inviteSellers() error {
	db, err := store.OpenUnsyncedSQLite(m.ctx, m.datastoreFile())
	if err != nil {
		return err
	}
	db.UseKeys(m.keys)
	if _, err := db.Pin(m.ctx, "currency", rupees().Code()); err != nil { // as serve does, so that other commands read the ledger
		return err
	}
	m.admin = m.ids.New("usr_", m.start)
	err = db.Auth().InTx(m.ctx, func(tx auth.Tx) error {
		return tx.InsertUser(m.ctx, auth.User{ID: m.admin, Name: "Priya Menon", Email: adminsEmail, Role: auth.Admin, CreatedAt: m.start})
	})
	for n := range m.o.Sellers {
		s := m.newSeller(n)
		m.sellers = append(m.sellers, s)
		m.model.sellers[s.id] = &holder{months: map[string]money.Amount{}}
		err = errors.Join(err, db.Auth().InTx(m.ctx, func(tx auth.Tx) error {
			return tx.InsertUser(m.ctx, auth.User{
				ID: s.id, Name: s.name, Email: emailOf(s.id), Role: auth.Seller, CreatedAt: m.start,
			})
		}))
	}
	return errors.Join(err, db.Close())
}

func (m *market) datastoreFile() string { return filepath.Join(m.dir, "bursar.db") }

// run lets the market trade for its days, and then come to rest.
func (m *market) run() {
	m.open()
	m.pass(m.end())
	m.close()
	m.pass(max(m.end(), m.gateways.silentUntil) + quiet)
	if m.violation == nil && m.ctx.Err() == nil && !m.o.Limited {
		m.reconcileAll()
	}
	if m.violation == nil && m.ctx.Err() == nil {
		m.judge()
	}
	for _, part := range []func(){
		m.checkConditions, m.checkTampering, m.checkForgotten, m.checkTakeOver, m.checkReset, m.checkEmailChange, m.checkChangedMind, m.checkRejectedAtClaim, m.checkDeletion,
		m.checkStatementOrRestore, m.checkEndpoint, m.checkPending, m.checkVerifiers, m.checkLink, m.checkAccess, m.checkExpiry, m.checkToldAtOnce, m.checkFront,
		m.checkMailing, m.checkDoors, m.checkByAPI, m.checkAccount, m.checkCrossedChanges, m.checkGuarded, m.checkThieves, m.checkCancelledOften,
	} {
		if m.violation == nil && m.ctx.Err() == nil {
			part()
		}
	}
	m.leave()
}

// checkStatementOrRestore plays what only a gateway with a statement can be asked, or only one that can't list its transfers makes necessary.
func (m *market) checkStatementOrRestore() {
	if m.o.Limited {
		m.checkRestored()
	} else {
		m.checkMisstatements()
	}
}

// open puts the first events on the agenda.
func (m *market) open() {
	m.machines = []*machine{{name: "a"}}
	if m.o.Faults[rival] {
		m.machines = append(m.machines, &machine{name: "b"})
	}
	for _, mc := range m.machines {
		m.startUp(mc)
	}
	m.openReceivers(m.machines[0].on)
	for _, s := range m.sellers {
		m.settleIn(s)
	}
	if m.anyFaults() {
		m.spawn(0, admin, m.openBalances)
		m.operate()
		m.often(m.spaced(stopEvery), admin, m.stopSome)
		m.often(m.spaced(adjustEvery), admin, m.adjustSome)
		m.often(m.changeFeeEvery(), "marketplace", m.changeFee)
	}
	m.often(m.spaced(numberEvery), "events", m.numberEvents)
	m.often(m.spaced(followEvery), "consumer", m.followFeed)
	m.after(0, m.changeFaultProfile)
	m.after(tickEvery, m.tick)
	m.after(m.auditEvery(), m.auditNowAndThen)
	m.awaitMonth()
	m.after(m.end()/2, m.rotateKeys)
	if m.o.Faults[outage] { // towards the end, since there is little to see in it
		lasts := m.between(m.gateways.main().runsOut(), m.gateways.main().capabilities().KeyLifetime+48*time.Hour)
		m.after(m.end()-m.between(0, min(24*time.Hour, m.end()/3)), func() { m.fallSilent(lasts) })
	}
	if m.o.Faults[restore] && !m.o.Limited {
		m.after(m.between(m.restoreEvery()/4, m.restoreEvery()), m.wantBackUp)
	}
	if len(m.gateways.all) > 1 {
		m.after(m.around(m.replaceEvery()/3), m.wantReplacement)
	}
	m.gateways.wake()
}

// pass lets time pass until a moment, a broken promise, or the end of the run's context.
func (m *market) pass(until time.Duration) {
	for len(m.agenda) > 0 && m.agenda[0].at <= until && m.violation == nil && m.ctx.Err() == nil {
		e := m.agenda.next()
		m.advance(e.at)
		m.happen(e)
	}
	m.now = max(m.now, until)
}

// advance moves the time, and counts how much happens in a minute.
func (m *market) advance(to time.Duration) {
	if to/time.Minute != m.now/time.Minute {
		m.inMinute = 0
	}
	m.now = to
	if m.inMinute++; m.inMinute > maxInAMinute {
		m.broken(nothingSpins, "", fmt.Sprintf("%d steps were taken within one minute", m.inMinute))
	}
}

// maxInAMinute is many times what a marketplace does in its busiest minute.
const maxInAMinute = 300_000

func (m *market) happen(e scheduled) {
	defer func() { m.excuse(recover()) }()
	e.do()
}

// close ends trading and all bad weather.
func (m *market) close() {
	m.closing = true
	m.beFair()
	m.configure(m.gateways.all)
	m.note("", "", "trading ends, and the weather is fair")
	m.after(0, m.pollAll)
}

// leave ends everybody who is still there, and closes the files.
func (m *market) leave() {
	for _, a := range m.actors {
		a.stop()
	}
	for _, mc := range m.machines {
		if mc.on != nil {
			_ = mc.on.db.Close()
		}
	}
	m.gateways.close()
}

// tickEvery is how often the ledger is swept, the gateway is asked for returns, and everybody looks whether anything is
// due that nobody noticed.
const tickEvery = 6 * time.Hour

// tick is what happens now and then, whatever else does.
func (m *market) tick() {
	m.reportStand()
	if m.now-m.kept >= m.maintenanceEvery() {
		m.kept = m.now
		m.maintain()
	}
	m.pollAll()
	m.after(tickEvery, m.tick)
}

// rotateKeys has the service sign with another key from now on.
func (m *market) rotateKeys() {
	err := m.keys.Rotate(m.ctx, m.clock(), 0)
	m.assert(datastoreReadable, err == nil, "", "rotate the keys: %v", err)
}

// awaitMonth has sellers' overviews and sales read soon after the last day of each month begins in India, which the month before may not have had, and
// soon after the next month begins there, while the last one goes on in most of the world.
func (m *market) awaitMonth() {
	now := m.clock().In(indianTime)
	next := time.Date(now.Year(), now.Month()+1, 1, 0, 30, 0, 0, indianTime)
	if last := next.AddDate(0, 0, -1); last.After(now) {
		m.after(last.Sub(now), m.readAll)
	}
	m.after(next.Sub(now), func() {
		m.readAll()
		m.awaitMonth()
	})
}

// readAll reads every seller's overview and sales; in a large marketplace, those of some.
func (m *market) readAll() {
	on := m.anyInstance()
	if on == nil || m.tampered != "" { // the rows are shown as an attacker has them
		return
	}
	const enough = 25
	for _, s := range m.sellers {
		if m.o.Sellers <= enough || m.chance(1000*enough/m.o.Sellers) {
			m.readOverview(on, s)
			m.readSales(on, s)
		}
	}
}

// spaced has what people and consumers do every so often done as often in a long run as in the shortest of those, so that trade takes most of the time.
func (m *market) spaced(every time.Duration) time.Duration {
	return max(every, time.Duration(float64(every)*float64(m.end())/float64(longRun)))
}

// maintenanceEvery spaces what an instance does each hour or night so that it takes a small part of a long run.
func (m *market) maintenanceEvery() time.Duration { return max(tickEvery, m.end()/60) }

// maintain has each instance do what it does by itself now and then.
func (m *market) maintain() {
	for _, mc := range m.machines {
		if on := mc.on; on != nil {
			m.work(on, m.between(0, time.Hour), "checkpoint", func() { m.try(on, "checkpoint", func() error { _, err := on.proofs.MakeDue(m.ctx); return err }) })
			m.work(on, 0, "sweep", func() { m.try(on, "sweep", func() error { _, err := on.payouts.Sweep(m.ctx); return err }) })
			m.work(on, m.between(0, time.Hour), "reconcile", func() {
				if !on.payouts.StartupReconciled() {
					return // as serve has it
				}
				m.try(on, "reconcile", func() error { _, err := on.reconciling.RunDue(m.ctx); return err })
			})
			m.work(on, 0, "reversals", func() {
				m.try(on, "look for returns", func() error { _, err := on.payouts.PollReversals(m.ctx); return err })
			})
		}
	}
}

// reportStand reports how far the run is.
func (m *market) reportStand() {
	m.stand.at.Store(int64(m.now))
	m.stand.payouts.Store(m.tally.asked)
	var faults int64
	for _, n := range m.tally.faults {
		faults += n
	}
	m.stand.faults.Store(faults)
}

// auditEvery spaces the audits so that they take a small part of a long run.
func (m *market) auditEvery() time.Duration { return max(12*time.Hour, m.end()/8) }

func (m *market) auditNowAndThen() {
	if m.closing {
		return
	}
	if on := m.anyInstance(); on != nil {
		m.audit(on)
	}
	m.after(m.auditEvery(), m.auditNowAndThen)
}

// try runs a piece of an instance's own work; what goes wrong is tried again by the service itself.
func (m *market) try(on *instance, what string, do func() error) {
	if err := do(); err != nil {
		m.guard(err)
		m.note("", "", on.name+" "+what+": "+firstLine(err))
	}
}

func firstLine(err error) string {
	text := err.Error()
	for i, c := range text {
		if c == '\n' || i > 160 {
			return text[:i] + " …"
		}
	}
	return text
}

// print adds to what two runs of the same seed must have in common.
func (m *market) print(format string, args ...any) { fmt.Fprintf(m.printed, format, args...) }

// strikes reports whether a fault strikes now.
func (m *market) strikes(f trouble) bool {
	if m.faultProfile[f] == 0 || m.closing || m.dice.IntN(1000) >= m.faultProfile[f] {
		return false
	}
	m.tally.faults[f]++
	return true
}

// changeFaultProfile chooses what goes wrong in the next hours, and how often.
func (m *market) changeFaultProfile() {
	if m.closing {
		return
	}
	usual, strengths := 350, []int{20, 4, 1}
	if m.chance(250) { // a storm: what seldom meets, meets
		usual, strengths = 800, []int{3, 2, 1}
	}
	for f := range numFaults {
		m.faultProfile[f] = 0
		if m.o.Faults[f] && f != replace && m.chance(usual) {
			m.faultProfile[f] = max(1, catalogue[f].most/one(m, strengths))
		}
	}
	lasts := m.between(20*time.Minute, 12*time.Hour)
	if m.faultProfile[outage] > 0 && m.chance(300) {
		m.fallSilent(m.between(time.Minute, 3*time.Hour))
	}
	if m.faultProfile[broke] > 0 && m.chance(500) {
		m.strike(broke)
		m.gateways.fund(0)
		m.after(m.between(10*time.Minute, lasts), func() {
			m.cancelQueued()
			m.after(30*time.Second, func() { m.gateways.fund(plenty) })
		})
	}
	if m.faultProfile[clock] > 0 {
		m.jump()
	}
	if m.anyFaults() {
		m.gateways.settle(one(m, []time.Duration{50 * time.Millisecond, usualSettling, usualSettling, 20 * time.Minute}))
	}
	m.fair = false
	if m.isLong() {
		m.after(lasts, m.clearUp)
		lasts += m.fairAfter(lasts)
	}
	m.after(lasts, m.changeFaultProfile)
}

// longRun is how much of a run has foul weather. In a longer one there is fair weather in between: what goes wrong takes
// the most time, and soon shows the same again.
const longRun = 40 * 24 * time.Hour

// isLong reports whether the weather is fair now and then.
func (m *market) isLong() bool { return m.anyFaults() && m.end() > longRun }

// fairAfter is how long the weather is fair after so much that is not.
func (m *market) fairAfter(foul time.Duration) time.Duration {
	return time.Duration(int64(foul) * int64((m.end()-longRun)/time.Hour) / int64(longRun/time.Hour))
}

// clearUp ends the foul weather for a while.
func (m *market) clearUp() {
	if m.closing {
		return
	}
	m.fair = true
	m.beFair()
	m.disturbed = max(m.disturbed, m.now+2*maxOff)
	m.after(maxOff+time.Second, m.pollAll)
}

// beFair ends all that goes wrong; only a gateway that has fallen silent stays so for its time.
func (m *market) beFair() {
	m.faultProfile = [numFaults]int{}
	m.gateways.fund(plenty)
	m.gateways.settle(usualSettling)
	for _, mc := range m.machines {
		mc.offset = 0
	}
}

func (m *market) anyFaults() bool { return m.o.Faults != Faults{} }

// strike counts a fault that is not a matter of chance.
func (m *market) strike(f trouble) { m.tally.faults[f]++ }

func (m *market) fallSilent(lasts time.Duration) {
	m.strike(outage)
	m.gateways.silentUntil = max(m.gateways.silentUntil, m.now+lasts)
	m.note("", "", "the gateway falls silent for "+lasts.String())
}

// jump moves an instance's clock.
func (m *market) jump() {
	mc := one(m, m.machines)
	mc.offset = one(m, []time.Duration{0, m.between(-maxOff, maxOff), m.between(-maxOff, maxOff)})
	m.disturbed = m.now + 2*maxOff
	m.strike(clock)
	m.note("", "", "the clock of "+mc.name+" is off by "+mc.offset.String())
	m.after(maxOff+time.Second, m.pollAll)
	m.pollAll()
}

// maxOff is how far a clock may be off. The service allows for ten minutes between itself and the gateway.
const maxOff = 4 * time.Minute

// leasesHold reports whether leases can be relied on: no clock is off, and nobody hung lately.
func (m *market) leasesHold() bool {
	for _, mc := range m.machines {
		if mc.offset != 0 {
			return false
		}
	}
	return m.now >= m.disturbed
}

// logger reads all that the service logs, and tells the last events what it warns of.
func (m *market) logger(on string) *slog.Logger {
	return slog.New(slog.NewTextHandler(warnings{m, on}, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

type warnings struct {
	m  *market
	on string
}

func (w warnings) Write(p []byte) (int, error) {
	w.m.keepSecret(string(p))
	if text, isError := strings.CutPrefix(strings.TrimSpace(string(p)), "level=ERROR "); isError {
		w.m.note("", "", w.on+" logs "+text)
	}
	return len(p), nil
}

// copyFile puts one file in the place of another.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from) //nolint:gosec // both are the run's own
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // both are the run's own
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
