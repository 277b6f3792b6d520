//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"bursar/internal/pgtest"
	"bursar/test/harness"
)

// failoverVariable makes the tests of failovers run at full length, one after another: it says for how
// long all is calm after each incident.
const failoverVariable = "BURSAR_TEST_FAILOVER"

// calmTime is how long all is calm after each incident, and whether the tests run at full length. In
// short they run beside each other, because they mostly wait.
func calmTime(t *testing.T) (calm time.Duration, long bool) {
	t.Helper()
	text := os.Getenv(failoverVariable)
	if text == "" {
		t.Parallel()
		return time.Second, false
	}
	calm, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s=%s is no length of time such as 10s", failoverVariable, text)
	}
	return calm, true
}

// A marketplace trades while its database server, and then one instance of the service, is killed. At full length
// servers also come back, are failed back to, are missed, and hang. In the end all that was acknowledged is in the
// ledger, and nothing else is; the gateway paid each payout once; and no instance had to be restarted for any of it.
func TestFailover_NothingLostOrDoubled(t *testing.T) {
	f := newFailover(t)
	f.say("%d instances, %d sellers, calm for %s", len(f.instances), len(f.sellers), f.calm)
	f.begin()
	f.follow()
	time.Sleep(f.calm)

	f.incident("the primary is killed, the standby promoted", f.failOver)
	f.incident("an instance is killed and started again", func() {
		f.instances[1].Kill(t)
		f.instances[1].Start(t)
	})
	if f.long {
		f.incident("the old primary comes back as the standby", f.rejoin)
		f.incident("the new primary is killed, the old one promoted", f.failOver)
		f.incident("the other comes back as the standby", f.rejoin)
		f.incident("the standby is lost for a while", f.loseStandby)
		f.incident("the primary hangs for a while", f.hang)
		f.incident("the primary hangs, the standby is promoted", f.failOverFromAHang)
		f.standby.Kill()
	}
	f.end()
	if t.Failed() {
		t.FailNow()
	}
	f.say("the load is over")
	f.settle()
	f.checkPayouts()
	f.checkMoves()
	f.checkSales()
	f.checkBalances()
	f.checkFeed()
	f.checkDeliveries()
	report := strings.TrimSpace(f.command("audit"))
	f.checkLeaks()
	f.report(report)
}

// failover is a load on a fleet whose parts fail.
type failover struct {
	*load
	// primary takes writes; standby has all that primary acknowledged, or is what failed.
	primary, standby *pgtest.Server

	long      bool
	calm      time.Duration
	incidents []incident

	goroutines, goroutinesBefore, connections, logLines int
}

// incident is what happened and what came of it.
type incident struct {
	name string
	// took is how long whoever looks after the servers had to do with it, gap the longest time without an
	// answer to a write, and back when the last instance wrote again.
	took, gap, back time.Duration
}

func newFailover(t *testing.T) *failover {
	t.Helper()
	f := &failover{}
	f.calm, f.long = calmTime(t)
	sellers := 6
	if f.long {
		sellers = 30
	}
	primary, standby := newPair(t)
	fleet := newFleet(t, primary.URL("postgres", standby), 3, "BURSAR_CANCEL_WINDOW=300ms")
	fleet.receive()
	f.load = newLoad(fleet, sellers)
	f.primary, f.standby = primary, standby
	f.goroutinesBefore = f.countGoroutines()
	return f
}

// incident lets something happen, and waits until every instance writes again.
func (f *failover) incident(name string, happen func()) {
	f.t.Helper()
	f.say("%s", name)
	in, began := incident{name: name}, time.Now()
	f.writes.reset()
	happen()
	in.took = time.Since(began)
	for n, i := range f.instances {
		f.awaitWrite(i, fmt.Sprintf("probe-%d-%d", len(f.incidents), n))
	}
	in.back = time.Since(began)
	time.Sleep(f.calm)
	var writes int
	in.gap, writes = f.writes.read()
	f.say("  no write was answered for %d ms; %d since", in.gap.Milliseconds(), writes)
	f.incidents = append(f.incidents, in)
}

// awaitWrite waits until an instance has recorded a sale, of one paisa.
func (f *failover) awaitWrite(i *harness.Instance, id string) {
	f.t.Helper()
	s := &ackedSale{seller: f.sellers[0], amount: 1}
	harness.Until(f.t, i.API+" writes again", func() bool {
		a, err := f.send(i, f.sale(id, s.seller, s.amount))
		return err == nil && a.status < http.StatusMultipleChoices
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sales[id] = s
}

// failOver kills the primary, sees that instances say so, and promotes the standby.
func (f *failover) failOver() {
	f.t.Helper()
	f.primary.Kill()
	f.checkReadiness()
	f.promote()
}

func (f *failover) promote() {
	f.t.Helper()
	f.standby.Promote()
	f.primary, f.standby = f.standby, f.primary
}

// rejoin makes the server that failed the standby of the one that took over.
func (f *failover) rejoin() {
	f.t.Helper()
	f.standby.Rejoin(f.primary)
}

// A server that is away for this long is longer away than a read is waited for, or a write.
const (
	readsGiveUp  = 6 * time.Second
	writesGiveUp = 15 * time.Second
)

// loseStandby takes the standby away for a while: writes wait for it.
func (f *failover) loseStandby() {
	f.t.Helper()
	f.standby.Kill()
	time.Sleep(readsGiveUp)
	f.standby.Start()
}

func (f *failover) hang() {
	f.primary.Hang()
	time.Sleep(writesGiveUp)
	f.primary.Resume()
}

// failOverFromAHang promotes the standby while the primary still takes connections and answers none.
// Whoever promotes a standby has to make sure that the old primary never goes on: it is killed after this.
func (f *failover) failOverFromAHang() {
	f.t.Helper()
	f.primary.Hang()
	f.promote()
}

// checkReadiness sees that every instance says that it has no database that takes writes.
func (f *failover) checkReadiness() {
	f.t.Helper()
	for _, i := range f.instances {
		harness.Until(f.t, "readiness fails", func() bool {
			a, err := f.send(i, call{method: "GET", path: "/readyz"})
			return err == nil && a.status == http.StatusServiceUnavailable && a.Code == "database_unavailable"
		})
	}
}
