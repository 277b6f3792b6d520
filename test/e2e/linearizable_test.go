//go:build unix

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"bursar/internal/money"
	"bursar/test/harness"
)

// Several callers at once request payouts of the same sellers, cancel them and read balances, at any instance, first
// undisturbed and then through a failover. One journal, used by one caller after another, could have given the same
// answers.
func TestBalances_Linearizable(t *testing.T) {
	pause, _ := calmTime(t)
	primary, standby := newPair(t)
	// Payouts wait for long, so that nothing moves by itself.
	f := newFleet(t, primary.URL("postgres", standby), 3, "BURSAR_CANCEL_WINDOW=10h")
	sellers := f.newSellers(6, purseBegins)
	calm, rough := newCounter(f, sellers[:3]), newCounter(f, sellers[3:])
	calm.serve(func() { time.Sleep(pause) })
	calm.check(t, "in calm")
	rough.serve(func() {
		time.Sleep(pause / 2)
		primary.Kill()
		standby.Promote()
		for _, i := range f.instances {
			harness.Until(t, i.API+" is ready", i.IsReady)
		}
		time.Sleep(pause / 2)
	})
	rough.check(t, "through a failover")
}

const (
	purseBegins    money.Amount = 10_000_00
	callersOfEach               = 3
	maxCalls                    = 2_000 // of each caller
	leftUnknown                 = 2     // of each caller: more make the search for an order long
	maxCheckedTime              = 2 * time.Minute
)

// counter is where callers come with what they want of a few sellers' balances, and all is noted.
type counter struct {
	*fleet
	*recorder
	sellers []*seller

	mu      sync.Mutex
	payouts map[*seller][]string // that may be cancelled, or were
	amounts map[string]money.Amount
}

func newCounter(f *fleet, sellers []*seller) *counter {
	return &counter{fleet: f, recorder: newRecorder(), sellers: sellers, payouts: map[*seller][]string{}, amounts: map[string]money.Amount{}}
}

// serve lets callers come while something happens, and on a slow machine until their history tells something.
func (c *counter) serve(while func()) {
	over := make(chan struct{})
	var callers sync.WaitGroup
	for i := range len(c.sellers) * callersOfEach {
		callers.Go(func() {
			who := &customer{counter: c, id: i, seller: c.sellers[i%len(c.sellers)], mayGiveUp: leftUnknown}
			for range maxCalls {
				who.act()
				select {
				case <-over:
					return
				case <-time.After(time.Duration(rand.IntN(25)) * time.Millisecond):
				}
			}
		})
	}
	while()
	harness.Until(c.t, "a payout was requested and another one refused", func() bool {
		outcomes := c.outcomes()
		return outcomes[refused] > 0 && outcomes[done] > 0
	})
	close(over)
	callers.Wait()
}

// outcomes counts what calls were answered.
func (c *counter) outcomes() map[outcome]int {
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	outcomes := map[outcome]int{}
	for _, op := range c.history {
		outcomes[op.Output.(seen).outcome]++
	}
	return outcomes
}

// check asks whether one journal could have answered so.
func (c *counter) check(t *testing.T, when string) {
	t.Helper()
	model := purses(purseBegins)
	result, info := porcupine.CheckOperationsVerbose(model, c.history, maxCheckedTime)
	outcomes := c.outcomes()
	t.Logf("%s: %d calls, of which %d were refused and %d left unknown", when, len(c.history), outcomes[refused], outcomes[unknown])
	if result != porcupine.Ok {
		picture := filepath.Join(t.ArtifactDir(), "history.html")
		t.Errorf("%s: the history is not linearizable (%s); see %s, kept with -artifacts: %v", when, result, picture, porcupine.VisualizePath(model, info, picture))
	}
}

// customer makes one call after another about one seller, at any instance. A call that was not answered
// is made again under its key until it is, or, now and then, given up, and then its outcome is unknown.
type customer struct {
	*counter
	id, calls int
	seller    *seller
	mayGiveUp int
}

func (c *customer) act() {
	c.calls++
	payout := c.anyPayout()
	switch n := rand.IntN(10); {
	case n < 4:
		c.request()
	case n < 7 && payout != "":
		c.cancel(payout)
	default:
		c.look()
	}
}

func (c *customer) anyPayout() string {
	c.counter.mu.Lock()
	defer c.counter.mu.Unlock()
	mine := c.payouts[c.seller]
	if len(mine) == 0 {
		return ""
	}
	return mine[rand.IntN(len(mine))]
}

// told by a refusal.
var available = regexp.MustCompile(`available balance of ([0-9.]+) INR`)

func (c *customer) request() {
	a := act{seller: c.seller.id, kind: request, amount: money.Amount(500_00 + rand.IntN(2000_00))}
	s := c.record(c.id, a, func() seen {
		answer := c.insist("POST", "/api/payouts/request", fmt.Sprintf(`{"amount":%s}`, inRupees(a.amount)))
		var made struct{ PayoutID string }
		switch told := available.FindStringSubmatch(answer.Error); {
		case answer.status == http.StatusCreated && answer.read(&made) == nil:
			return seen{outcome: done, payout: made.PayoutID}
		case answer.status == http.StatusBadRequest && told != nil:
			sum, err := inr.Parse(told[1])
			if err != nil {
				c.t.Error(err)
			}
			return seen{outcome: refused, available: sum}
		default:
			return c.strange(answer)
		}
	})
	if s.outcome == done {
		c.counter.mu.Lock()
		defer c.counter.mu.Unlock()
		c.payouts[c.seller] = append(c.payouts[c.seller], s.payout)
		c.amounts[s.payout] = a.amount
	}
}

func (c *customer) cancel(payout string) {
	c.counter.mu.Lock()
	a := act{seller: c.seller.id, kind: cancel, amount: c.amounts[payout], payout: payout}
	c.counter.mu.Unlock()
	c.record(c.id, a, func() seen {
		answer := c.insist("POST", "/api/payouts/"+payout+"/cancel", "")
		switch {
		case answer.status == http.StatusOK:
			return seen{outcome: done}
		case answer.Code == "payout_not_cancellable", answer.Code == "payout_not_found":
			return seen{outcome: refused}
		default:
			return c.strange(answer)
		}
	})
}

func (c *customer) look() {
	c.record(c.id, act{seller: c.seller.id, kind: look}, func() seen {
		var b balance
		answer := c.insist("GET", "/api/payouts/balance", "")
		if answer.status == http.StatusOK && answer.read(&b) == nil {
			return seen{outcome: done, available: rupees(c.t, b.AvailableBalance)}
		}
		return c.strange(answer)
	})
}

// strange is what a caller makes of an answer that does not tell.
func (c *customer) strange(a answer) seen {
	if a.status != 0 {
		c.t.Errorf("a call was answered with %d %s: %s", a.status, a.Code, a.Error)
	}
	return seen{outcome: unknown}
}

// insist makes a call until it is answered, under one key, or gives it up: then the answer is empty.
func (c *customer) insist(method, path, body string) answer {
	call := call{method: method, path: path, token: c.seller.token, body: body, key: fmt.Sprintf("%d-%d", c.id, c.calls)}
	for try := range 600 {
		a, err := c.send(c.instances[rand.IntN(len(c.instances))], call)
		if err == nil && a.status == http.StatusTooManyRequests {
			time.Sleep(a.wait(c.t))
			continue
		}
		if err == nil && a.status < http.StatusInternalServerError {
			return a
		}
		if err == nil && (a.status != http.StatusServiceUnavailable || a.retryAfter == "") {
			return a
		}
		if method != http.MethodGet && try == 0 && c.mayGiveUp > 0 && rand.IntN(2) == 0 {
			c.mayGiveUp--
			return answer{}
		}
		time.Sleep(time.Duration(20+rand.IntN(50)) * time.Millisecond)
	}
	c.t.Errorf("%s %s was never answered", method, path)
	return answer{}
}
