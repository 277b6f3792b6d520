package e2e

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"bursar/internal/money"
)

// A history is what callers saw of sellers' balances, each call with when it was made and answered. It
// is linearizable if every call can be given one moment between the two, so that a single ledger, used by
// one after another, would have answered the same. See https://github.com/anishathalye/porcupine.

// act is a call about a seller's balance: a payout that is asked for or cancelled, or a look.
type act struct {
	seller string
	kind   actKind
	amount money.Amount // of the payout
	payout string       // to cancel
}

type actKind string

const (
	request actKind = "request"
	cancel  actKind = "cancel"
	look    actKind = "look"
)

// seen is what a caller was told. Of a call whose outcome is unknown nobody knows whether it was done.
type seen struct {
	outcome   outcome
	payout    string       // that was requested
	available money.Amount // what a look was told, or a request that was refused
}

type outcome string

const (
	done    outcome = "done"
	refused outcome = "refused"
	unknown outcome = "unknown"
)

// purse is a seller's journal as far as a history shows it: what is available, and the payouts that may
// still be cancelled, each followed by a space.
type purse struct {
	available money.Amount
	held      string
}

// step says whether a purse would have answered so, and what is in it afterwards. What is unknown is
// taken for done, where it could be: such a call ends with the history, so it may as well come last, where
// nobody sees it.
func (p purse) step(a act, s seen) (bool, purse) {
	holds := strings.Contains(p.held, a.payout+" ")
	switch {
	case a.kind == look:
		return s.available == p.available || s.outcome == unknown, p
	case a.kind == request && s.outcome == refused:
		return a.amount > p.available && s.available == p.available, p
	case a.kind == request && a.amount > p.available:
		return s.outcome == unknown, p
	case a.kind == request:
		p.available -= a.amount
		if s.outcome == done {
			p.held += s.payout + " "
		}
		return true, p
	case !holds:
		return s.outcome != done, p
	case s.outcome == refused:
		return false, p
	default:
		p.available += a.amount
		p.held = strings.Replace(p.held, a.payout+" ", "", 1)
		return true, p
	}
}

// purses is the model of sellers who begin with the same amount.
func purses(begin money.Amount) porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			sellers := map[string][]porcupine.Operation{}
			for _, op := range history {
				s := op.Input.(act).seller
				sellers[s] = append(sellers[s], op)
			}
			return slices.Collect(maps.Values(sellers))
		},
		Init: func() any { return purse{available: begin} },
		Step: func(state, input, output any) (bool, any) {
			ok, next := state.(purse).step(input.(act), output.(seen))
			return ok, next
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

// recorder writes a history.
type recorder struct {
	began   time.Time
	mu      sync.Mutex
	history []porcupine.Operation
}

func newRecorder() *recorder { return &recorder{began: time.Now()} }

// record makes a call and notes it. What is unknown may be done at any time after the call.
func (r *recorder) record(client int, a act, do func() seen) seen {
	op := porcupine.Operation{ClientId: client, Input: a, Call: int64(time.Since(r.began))}
	s := do()
	op.Output, op.Return = s, int64(time.Since(r.began))
	if s.outcome == unknown {
		op.Return = math.MaxInt64
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, op)
	return s
}

// told is a call of an invented history: who called, when, what, and what they were told.
type told struct {
	from, to int64
	act
	seen
}

const forEver = math.MaxInt64

func TestHistory_NotLinearizableIsRefused(t *testing.T) {
	const sum = 1000
	ask := func(from, to int64, amount money.Amount, payout string) told {
		return told{from, to, act{kind: request, amount: amount}, seen{outcome: done, payout: payout}}
	}
	sees := func(from, to int64, available money.Amount) told {
		return told{from, to, act{kind: look}, seen{outcome: done, available: available}}
	}
	calledOff := func(from, to int64, amount money.Amount, payout string, o outcome) told {
		return told{from, to, act{kind: cancel, amount: amount, payout: payout}, seen{outcome: o}}
	}
	lost := told{1, forEver, act{kind: request, amount: 700}, seen{outcome: unknown}}
	for name, test := range map[string]struct {
		history []told
		want    bool
	}{
		"one after another":                  {[]told{sees(0, 1, 1000), ask(2, 3, 700, "a"), sees(4, 5, 300), calledOff(6, 7, 700, "a", done), sees(8, 9, 1000)}, true},
		"a look beside a request sees it":    {[]told{ask(0, 9, 700, "a"), sees(1, 2, 300)}, true},
		"a look beside a request misses it":  {[]told{ask(0, 9, 700, "a"), sees(1, 2, 1000)}, true},
		"two looks see it and then not":      {[]told{ask(0, 9, 700, "a"), sees(1, 2, 300), sees(3, 4, 1000)}, false},
		"a stale look":                       {[]told{ask(0, 1, 700, "a"), sees(2, 3, 1000)}, false},
		"a lost payout":                      {[]told{ask(0, 1, 700, "a"), sees(2, 3, 300), sees(4, 5, 1000)}, false},
		"a payout taken twice":               {[]told{ask(0, 1, 400, "a"), sees(2, 3, 200)}, false},
		"a balance spent twice":              {[]told{ask(0, 9, 700, "a"), ask(1, 8, 700, "b")}, false},
		"refused for good reason":            {[]told{ask(0, 1, 700, "a"), {2, 3, act{kind: request, amount: 500}, seen{outcome: refused, available: 300}}}, true},
		"refused for none":                   {[]told{ask(0, 1, 500, "a"), {2, 3, act{kind: request, amount: 500}, seen{outcome: refused, available: 300}}}, false},
		"refused with the wrong balance":     {[]told{ask(0, 1, 700, "a"), {2, 3, act{kind: request, amount: 500}, seen{outcome: refused, available: 400}}}, false},
		"cancelled twice":                    {[]told{ask(0, 1, 700, "a"), calledOff(2, 9, 700, "a", done), calledOff(3, 8, 700, "a", done)}, false},
		"cancelled once of two":              {[]told{ask(0, 1, 700, "a"), calledOff(2, 9, 700, "a", done), calledOff(3, 8, 700, "a", refused), sees(10, 11, 1000)}, true},
		"not cancelled, for no reason":       {[]told{ask(0, 1, 700, "a"), calledOff(2, 3, 700, "a", refused)}, false},
		"a cancel that gave nothing back":    {[]told{ask(0, 1, 700, "a"), calledOff(2, 3, 700, "a", done), sees(4, 5, 300)}, false},
		"unknown and not done":               {[]told{lost, sees(2, 3, 1000), ask(4, 5, 1000, "b")}, true},
		"unknown and done":                   {[]told{lost, sees(2, 3, 300)}, true},
		"unknown and done late":              {[]told{lost, sees(2, 3, 1000), sees(4, 5, 300)}, true},
		"unknown and undone":                 {[]told{lost, sees(2, 3, 300), sees(4, 5, 1000)}, false},
		"unknown and done twice":             {[]told{lost, sees(2, 3, 300), ask(4, 5, 300, "b"), sees(6, 7, -700)}, false},
		"done before it was asked for":       {[]told{sees(0, 1, 300), {2, forEver, act{kind: request, amount: 700}, seen{outcome: unknown}}}, false},
		"an unknown cancel, done":            {[]told{ask(0, 1, 700, "a"), calledOff(2, forEver, 700, "a", unknown), sees(3, 4, 1000), calledOff(5, 6, 700, "a", refused)}, true},
		"an unknown cancel, and another one": {[]told{ask(0, 1, 700, "a"), calledOff(2, forEver, 700, "a", unknown), calledOff(5, 6, 700, "a", done), sees(7, 8, 1000)}, true},
	} {
		var history []porcupine.Operation
		for i, c := range test.history {
			history = append(history, porcupine.Operation{ClientId: i, Input: c.act, Call: c.from, Output: c.seen, Return: c.to})
		}
		// Another seller's journal has nothing to do with it.
		history = append(history, porcupine.Operation{Input: act{seller: "other", kind: look}, Call: 0, Output: seen{available: sum}, Return: 1})
		if got := porcupine.CheckOperations(purses(sum), history); got != test.want {
			t.Errorf("%s: linearizable is %t, want %t", name, got, test.want)
		}
	}
}
