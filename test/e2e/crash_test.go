//go:build unix

package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"bursar/internal/pgtest"
	"bursar/test/harness"
)

// The variables of `make crash`: how often something is killed, and the seed of what and when.
const (
	crashesVariable = "BURSAR_TEST_CRASHES"
	seedVariable    = "BURSAR_TEST_SEED"
)

// crashPlan is how often something is killed on SQLite, which on PostgreSQL is a third as often, and whether
// all is at full length.
func crashPlan(t *testing.T) (kills int, seed uint64, long bool) {
	t.Helper()
	seed = rand.Uint64N(1_000_000)
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s=%s is no number", seedVariable, text)
		}
	}
	text := os.Getenv(crashesVariable)
	if text == "" {
		return 5, seed, false
	}
	kills, err := strconv.Atoi(text)
	if err != nil || kills < 3 {
		t.Fatalf("%s=%s is no number of kills from 3 on", crashesVariable, text)
	}
	return kills, seed, true
}

// A marketplace trades while the service, the gateway, or both are killed at random moments, also while they start.
// After each, all that was acknowledged is in the ledger. In the end every payout has ended and moved money at most
// once, and the balances are right to the paisa.
func TestCrashes_NothingLostOrPaidTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	kills, seed, long := crashPlan(t)
	t.Run("SQLite", func(t *testing.T) {
		besides(t, long)
		url := "sqlite:" + filepath.Join(t.TempDir(), "bursar.db")
		newCrashes(t, url, 1, seed, long).run(kills)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		besides(t, long)
		newCrashes(t, pgtest.New(t), 3, seed+1, long).run(max(kills/3, 3))
	})
}

// besides lets short tests run beside each other, because they mostly wait.
func besides(t *testing.T, long bool) {
	t.Helper()
	if !long {
		t.Parallel()
	}
}

// crashes are a load on a fleet that is killed again and again.
type crashes struct {
	*load
	dice *rand.Rand
	seed uint64
	long bool

	killed  map[string]int // by what was killed
	back    []time.Duration
	audits  int
	longest int // of what was looked for after a kill
}

func newCrashes(t *testing.T, url string, instances int, seed uint64, long bool) *crashes {
	t.Helper()
	f := newFleet(t, url, instances, "BURSAR_CANCEL_WINDOW=200ms")
	f.endings = []string{nothingSpecial, transferFails, answerIsLost, eventsComeTwice, transferReturns, eventsNeverCome, eventsComeFirst, referenceIsLate}
	f.receive()
	return &crashes{load: newLoad(f, len(f.endings)), dice: rand.New(rand.NewPCG(seed, 0)), seed: seed, long: long, killed: map[string]int{}}
}

func (c *crashes) run(kills int) {
	c.t.Helper()
	c.say("%d instances, %d sellers, %d kills, seed %d", len(c.instances), len(c.sellers), kills, c.seed)
	c.begin()
	c.follow()
	for n := range kills {
		time.Sleep(c.pause())
		c.crash()
		c.look(n)
		if c.t.Failed() {
			break
		}
	}
	c.end()
	if c.t.Failed() {
		c.t.FailNow()
	}
	c.say("the load is over")
	for _, i := range c.all() { // with all that is under way
		i.Kill(c.t)
		i.Start(c.t)
	}
	c.settle()
	c.checkPayouts()
	c.checkMoves()
	c.checkSales()
	c.checkBalances()
	c.checkFeed()
	c.checkDeliveries()
	c.checkAccounts()
	c.report(c.command("audit"))
	for _, i := range c.all() {
		i.Stop(c.t)
	}
}

func (c *crashes) all() []*harness.Instance { return append(slices.Clone(c.instances), c.gateway) }

// pause is short most of the time, so that a kill also meets what the one before has left.
func (c *crashes) pause() time.Duration {
	if c.dice.IntN(3) == 0 {
		return time.Duration(c.dice.IntN(100)) * time.Millisecond
	}
	return time.Duration(200+c.dice.IntN(800)) * time.Millisecond
}

// crash kills something, and brings it back.
func (c *crashes) crash() {
	c.t.Helper()
	victims, name := []*harness.Instance{c.instances[c.dice.IntN(len(c.instances))]}, "the service"
	switch n := c.dice.IntN(10); {
	case n < 2:
		victims, name = []*harness.Instance{c.gateway}, "the gateway"
	case n < 4:
		victims, name = append(victims, c.gateway), "both"
	case n < 6 && len(c.instances) > 1:
		victims, name = c.instances, "all instances"
	}
	victims = slices.Clone(victims)
	c.dice.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	for _, v := range victims {
		v.Kill(c.t)
	}
	c.killed[name]++
	for c.dice.IntN(4) == 0 { // it takes a tenth of a second or two to start
		again := victims[c.dice.IntN(len(victims))]
		again.Begin(c.t)
		time.Sleep(time.Duration(c.dice.IntN(150)) * time.Millisecond)
		again.Kill(c.t)
		c.killed["while it started"]++
	}
	began := time.Now()
	for _, v := range victims {
		v.Begin(c.t)
	}
	for _, v := range victims {
		untilOften(c.t, v.API+" is ready", v.IsReady)
	}
	c.back = append(c.back, time.Since(began))
}

// look finds all that was acknowledged, and now and then audits the ledger, and takes up at once what was under
// way, which would otherwise rest until a lease runs out.
func (c *crashes) look(n int) {
	c.t.Helper()
	found := c.checkKept()
	c.longest = max(c.longest, found)
	if n%3 == 2 {
		c.makeDue("payouts", `status = 'processing'`)
		c.makeDue("bank_accounts", `TRUE`)
	}
	if n%10 == 9 {
		c.command("audit")
		c.audits++
		c.say("%d kills; %d acknowledged payouts and sales are all there; the ledger is right", n+1, found)
	}
}

// report writes what came of it, in short.
func (c *crashes) report(audit string) {
	w := tabwriter.NewWriter(c.t.Output(), 0, 0, 2, ' ', 0)
	defer w.Flush()
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	kills := 0
	var kinds []string
	for _, name := range []string{"the service", "all instances", "the gateway", "both", "while it started"} {
		if n := c.killed[name]; n > 0 {
			kinds = append(kinds, fmt.Sprintf("%s %d", name, n))
			kills += n
		}
	}
	slices.Sort(c.back)
	percentile := func(p int) time.Duration { return c.back[(len(c.back)-1)*p/100].Round(time.Millisecond) }
	fmt.Fprintln(w)
	row("kills", "%d: %s", kills, strings.Join(kinds, ", "))
	row("ready again after", "%s at the median, %s for 99 of 100, %s at most", percentile(50), percentile(99), percentile(100))
	row("calls answered", "%d", c.answered.Load())
	row("  after tries that were made again", "%d: %s", c.repeated.Load(), c.told())
	row("  made once more, and answered the same", "%d", c.replayed.Load())
	row("payouts acknowledged, all in the ledger", "%d", len(c.payouts)-c.imported)
	row("  made for a request without a key or an answer", "%d, of %d", c.imported, c.imported+len(c.lost))
	row("  paid and kept by the bank, each once", "%d", c.count(func(p *ackedPayout) bool { return p.isPaid() }))
	row("  failed or returned, and given back", "%d", c.count(func(p *ackedPayout) bool { return p.end() == "failed" }))
	row("  cancelled, and not paid", "%d", c.cancelled())
	row("sales acknowledged, all in the ledger", "%d", len(c.sales))
	row("balances right to the paisa", "%d of %d", len(c.sellers), len(c.sellers))
	row("audits", "%d in between, and one in the end: %s", c.audits, strings.TrimSpace(audit[strings.LastIndex(strings.TrimSpace(audit), "\n")+1:]))
	row("seed", "%d", c.seed)
	fmt.Fprintln(w)
}

// untilOften is until for what is measured.
func untilOften(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}

// The service is killed at random moments of its first start, in which it makes its files, its tables and its keys. The
// next start works like any other.
func TestFirstStart_Killed_NextStartWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	kills, seed, _ := crashPlan(t)
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	for range cmp.Or(kills/30, 1) {
		i := harness.NewInstance(t, "BURSAR_DATA_DIR="+t.TempDir(), "BURSAR_METRICS_ADDR=off", "BURSAR_SANDBOX_ADDR=127.0.0.1:0")
		for range 1 + dice.IntN(6) {
			i.Begin(t)
			time.Sleep(time.Duration(dice.IntN(120)) * time.Millisecond)
			i.Kill(t)
		}
		i.Start(t)
		if out, err := i.Command("audit").CombinedOutput(); err != nil {
			t.Errorf("audit: %v\n%s", err, out)
		}
		i.Stop(t)
	}
}
