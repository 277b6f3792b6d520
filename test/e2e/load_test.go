//go:build unix

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bursar/internal/money"
)

// load is what a marketplace does all day: payouts asked for and cancelled, sales and refunds, looks at
// balances, sign-ins, other bank accounts. It keeps a model of all that was acknowledged, to compare the ledger with.
//
// Whoever gets no answer, or one that says that the service is not available, makes the same call again,
// under the same key where calls have one, until there is an answer. Payouts that are asked for without a key
// are asked for once.
type load struct {
	*fleet
	sellers []*seller
	began   time.Time
	over    chan struct{}
	doers   sync.WaitGroup
	// keyless payouts were asked for so often.
	keylessAsked atomic.Int64

	answered, repeated, refused, replayed atomic.Int64
	// unknown are calls of which a try may have been done without the caller's knowing, resolved by a repeat.
	unknown atomic.Int64
	writes  gap

	mu      sync.Mutex
	payouts map[string]*ackedPayout
	sales   map[string]*ackedSale
	codes   map[string]int // of tries that were answered with 503
	// lost are payouts that were asked for without a key, and may have been made. Of them so many were.
	lost     map[keyless]*seller
	imported int
	// accounts are the numbers of those that sellers registered last.
	accounts map[*seller]int
	feed     *follower
}

// keyless is a payout that was asked for without a key. No two are of the same amount.
type keyless struct {
	seller string
	amount money.Amount
}

type ackedPayout struct {
	seller    *seller
	amount    money.Amount
	cancelled bool
}

type ackedSale struct {
	seller           *seller
	amount, refunded money.Amount
}

// doers of each kind, for the hot seller and for all.
const (
	hotAskers = 4
	askers    = 8
	traders   = 3
	lookers   = 3
	signers   = 1
	movers    = 1
)

const firstEarnings money.Amount = 5_000_000_00

// newLoad makes sellers, of whom the first is asked to pay out far more often than the others.
func newLoad(f *fleet, sellers int) *load {
	f.t.Helper()
	l := &load{
		fleet: f, began: time.Now(), over: make(chan struct{}), payouts: map[string]*ackedPayout{}, sales: map[string]*ackedSale{},
		codes: map[string]int{}, lost: map[keyless]*seller{}, accounts: map[*seller]int{},
	}
	l.sellers = f.newSellers(sellers, firstEarnings)
	for i, s := range l.sellers {
		l.accounts[s] = i
		l.sales[fmt.Sprintf("first-%d", i)] = &ackedSale{seller: s, amount: firstEarnings}
	}
	return l
}

func (l *load) anySeller() *seller { return l.sellers[rand.IntN(len(l.sellers))] }

// begin lets everybody do their work until end.
func (l *load) begin() {
	l.writes.reset()
	hot := func() *seller { return l.sellers[0] }
	for i := range hotAskers {
		l.repeat(fmt.Sprintf("hot-%d", i), func(at int, name string) bool { return l.withdraw(at, name, hot()) })
	}
	for i := range askers {
		l.repeat(fmt.Sprintf("asker-%d", i), func(at int, name string) bool { return l.withdraw(at, name, l.anySeller()) })
	}
	for i := range traders {
		l.repeat(fmt.Sprintf("trader-%d", i), l.trade)
	}
	for i := range lookers {
		l.repeat(fmt.Sprintf("looker-%d", i), l.look)
	}
	for i := range signers {
		l.repeat(fmt.Sprintf("signer-%d", i), l.signIn)
	}
	for i := range movers {
		l.repeat(fmt.Sprintf("mover-%d", i), l.moveAccount)
	}
}

// say tells whoever watches what happens.
func (l *load) say(format string, args ...any) {
	fmt.Fprintf(l.t.Output(), "%6.1f s  %s\n", time.Since(l.began).Seconds(), fmt.Sprintf(format, args...))
}

// end lets all finish what they have begun.
func (l *load) end() {
	close(l.over)
	l.doers.Wait()
}

// maxRounds bounds a doer's work; the load is over long before.
const maxRounds = 100_000

// repeat does something again and again, at one instance after another, until the load is over or it fails.
func (l *load) repeat(name string, do func(at int, name string) bool) {
	l.doers.Go(func() {
		for round := range maxRounds {
			if !do(round, fmt.Sprintf("%s-%d", name, round)) {
				return
			}
			select {
			case <-l.over:
				return
			case <-time.After(time.Duration(rand.IntN(120)) * time.Millisecond):
			}
		}
	})
}

// insist makes a call until it is answered, at one instance after another, and reports whether it was.
// An answer counts that tells what became of the call.
func (l *load) insist(at int, c call) (answer, bool) {
	unknown := false
	for try := range 600 {
		a, err := l.send(l.instances[(at+try)%len(l.instances)], c)
		switch {
		case err != nil:
			unknown = unknown || c.method != http.MethodGet
		case a.status < http.StatusInternalServerError:
			l.answered.Add(1)
			if unknown {
				l.unknown.Add(1)
			}
			if c.method != http.MethodGet && a.status < http.StatusMultipleChoices {
				l.writes.note()
			}
			return a, true
		case a.status != http.StatusServiceUnavailable || a.Code == "" || a.retryAfter == "":
			l.t.Errorf("%s %s was answered with %d %s, Retry-After %q: %s", c.method, c.path, a.status, a.Code, a.retryAfter, a.Error)
			return answer{}, false
		case a.isUnclear():
			unknown = true
		}
		l.again(a)
		time.Sleep(50*time.Millisecond + time.Duration(rand.IntN(100))*time.Millisecond)
	}
	l.t.Errorf("%s %s was never answered", c.method, c.path)
	return answer{}, false
}

func (l *load) again(a answer) {
	l.repeated.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.codes[cmp.Or(a.Code, "no answer")]++
}

// told lists what tries were answered with that were made again.
func (l *load) told() string {
	var told []string
	for _, code := range slices.Sorted(maps.Keys(l.codes)) {
		told = append(told, fmt.Sprintf("%d %s", l.codes[code], code))
	}
	return strings.Join(told, ", ")
}

// isUnclear says that what was asked for may have been done.
func (a answer) isUnclear() bool { return a.Code == "outcome_unknown" || a.Code == "timeout" }

// expect is insist for a call that may be answered in no other way than these. A call that came too often waits as the answer asks, and is made again.
func (l *load) expect(at int, c call, data any, statuses ...int) (answer, bool) {
	a, ok := l.insist(at, c)
	for range maxWaits {
		if !ok || a.status != http.StatusTooManyRequests || slices.Contains(statuses, a.status) {
			break
		}
		l.again(a)
		time.Sleep(a.wait(l.t))
		a, ok = l.insist(at, c)
	}
	if !ok {
		return a, false
	}
	for _, status := range statuses {
		if a.status != status {
			continue
		}
		if err := a.read(data); err != nil && a.status < 300 {
			l.t.Errorf("%s %s: %v", c.method, c.path, err)
			return a, false
		}
		return a, true
	}
	l.t.Errorf("%s %s was answered with %d %s, want %d: %s", c.method, c.path, a.status, a.Code, statuses, a.Error)
	return a, false
}

// withdraw asks for a payout; some are asked for once more under their key, and some are cancelled.
func (l *load) withdraw(at int, name string, s *seller) bool {
	if rand.IntN(5) == 0 {
		return l.withdrawWithoutKey(at, s)
	}
	amount := money.Amount(500_00 + rand.IntN(400_00))
	c := call{method: "POST", path: "/api/payouts/request", token: s.token, key: name, body: fmt.Sprintf(`{"amount":%s}`, inRupees(amount))}
	var made, again struct{ PayoutID string }
	a, ok := l.expect(at, c, &made, http.StatusCreated, http.StatusBadRequest)
	if !ok {
		return false
	}
	if a.status == http.StatusBadRequest {
		return l.refuse(a)
	}
	p := l.acknowledge(made.PayoutID, s, amount)

	if rand.IntN(8) == 0 {
		if _, ok := l.expect(at+1, c, &again, http.StatusCreated); !ok || again != made {
			l.t.Errorf("%s is payout %s, and at a repeat %s", name, made.PayoutID, again.PayoutID)
		}
		l.replayed.Add(1)
	}
	return rand.IntN(5) != 0 || l.cancel(at, name+"-cancel", made.PayoutID, p)
}

// acknowledge notes that a payout was made.
func (l *load) acknowledge(id string, s *seller, amount money.Amount) *ackedPayout {
	p := &ackedPayout{seller: s, amount: amount}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.payouts[id] != nil {
		l.t.Errorf("payout %s is the answer to two requests", id)
	}
	l.payouts[id] = p
	return p
}

// refuse notes that a payout was refused, and reports whether it may have been.
func (l *load) refuse(a answer) bool {
	l.refused.Add(1)
	if a.Code != "insufficient_balance" && a.Code != "bank_account_not_verified" { // the seller has registered another
		l.t.Errorf("a payout was refused with %d %s: %s", a.status, a.Code, a.Error)
		return false
	}
	return true
}

// withdrawWithoutKey asks for a payout once, as whoever has no key does, of an amount that nobody else asks for.
func (l *load) withdrawWithoutKey(at int, s *seller) bool {
	const first money.Amount = 1_000_00 // above those with keys
	amount := first + money.Amount(l.keylessAsked.Add(1))
	a, err := l.send(l.instances[at%len(l.instances)], call{
		method: "POST", path: "/api/payouts/request", token: s.token, body: fmt.Sprintf(`{"amount":%s}`, inRupees(amount)),
	})
	switch {
	case err != nil, a.status == http.StatusServiceUnavailable && a.isUnclear():
		l.again(a)
		l.mu.Lock()
		l.lost[keyless{s.id, amount}] = s
		l.mu.Unlock()
		return true
	case a.status == http.StatusServiceUnavailable: // nothing was done
		l.again(a)
		return true
	case a.status == http.StatusBadRequest:
		return l.refuse(a)
	}
	var made struct{ PayoutID string }
	if err := a.read(&made); err != nil || a.status != http.StatusCreated {
		l.t.Errorf("a payout without a key was answered with %d %s (%v): %s", a.status, a.Code, err, a.Error)
		return false
	}
	l.answered.Add(1)
	l.writes.note()
	l.acknowledge(made.PayoutID, s, amount)
	return true
}

// moveAccount registers another bank account, which is verified anew. Too many a day are refused.
func (l *load) moveAccount(at int, _ string) bool {
	select {
	case <-l.over:
		return false
	case <-time.After(500 * time.Millisecond):
	}
	s := l.sellers[at%len(l.sellers)]
	number := len(l.sellers) + at
	a, ok := l.expect(at, s.bankAccount(number), nil, http.StatusOK, http.StatusTooManyRequests)
	if ok && a.status == http.StatusOK {
		l.mu.Lock()
		l.accounts[s] = number
		l.mu.Unlock()
	}
	return ok
}

func (l *load) cancel(at int, name, id string, p *ackedPayout) bool {
	time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
	a, ok := l.expect(at+2, call{method: "POST", path: "/api/payouts/" + id + "/cancel", token: p.seller.token, key: name}, nil,
		http.StatusOK, http.StatusBadRequest)
	if ok && a.status == http.StatusBadRequest && a.Code != "payout_not_cancellable" {
		l.t.Errorf("%s was refused: %s", name, a.Error)
	}
	l.mu.Lock()
	p.cancelled = a.status == http.StatusOK
	l.mu.Unlock()
	return ok
}

// trade records a sale; of some, a part is refunded.
func (l *load) trade(at int, name string) bool {
	s := &ackedSale{seller: l.anySeller(), amount: money.Amount(100_00 + rand.IntN(900_00))}
	if _, ok := l.expect(at, l.sale(name, s.seller, s.amount), nil, http.StatusCreated, http.StatusOK); !ok {
		return false
	}
	l.mu.Lock()
	l.sales[name] = s
	l.mu.Unlock()
	return rand.IntN(3) != 0 || l.refund(at+1, name, s)
}

func (l *load) refund(at int, sale string, s *ackedSale) bool {
	amount := 1 + money.Amount(rand.IntN(99_99))
	_, ok := l.expect(at, call{
		method: "POST", path: "/api/marketplace/sales/" + sale + "/refund", token: l.serviceKey,
		body: fmt.Sprintf(`{"refundId":"r","amount":%s}`, inRupees(amount)),
	}, nil, http.StatusCreated, http.StatusOK)
	if ok {
		l.mu.Lock()
		s.refunded = amount
		l.mu.Unlock()
	}
	return ok
}

func (l *load) look(at int, _ string) bool {
	_, ok := l.expect(at, call{method: "GET", path: "/api/payouts/balance", token: l.anySeller().token}, nil, http.StatusOK)
	return ok
}

// signIn signs in, renews the sign-in twice, and uses what it got.
func (l *load) signIn(at int, _ string) bool {
	s := l.anySeller()
	var session struct{ Token, RefreshToken string }
	body := fmt.Sprintf(`{"email":%q,"password":%q}`, s.email, sellersPassword)
	for i, path := range []string{"/api/auth/login", "/api/auth/refresh", "/api/auth/refresh"} {
		if _, ok := l.expect(at+i, call{method: "POST", path: path, body: body}, &session, http.StatusOK); !ok {
			return false
		}
		body = fmt.Sprintf(`{"refreshToken":%q}`, session.RefreshToken)
	}
	_, ok := l.expect(at, call{method: "GET", path: "/api/auth/me", token: session.Token}, nil, http.StatusOK)
	return ok
}

// gap measures the longest time without an event.
type gap struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
	events  int
}

func (g *gap) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last, g.longest, g.events = time.Now(), 0, 0
}

func (g *gap) note() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.longest = max(g.longest, now.Sub(g.last))
	g.last = now
	g.events++
}

func (g *gap) read() (longest time.Duration, events int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(g.longest, time.Since(g.last)), g.events
}
