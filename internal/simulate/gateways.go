package simulate

import (
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	port "bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/payout"
)

// gateways are all through which the sellers are paid, and what was sent to any of them: a payout is one gateway's.
type gateways struct {
	m *market
	// all has the main gateway first. With [replace] there is another one.
	all []*gateway
	// configured are those that an instance has from its next start on. The first one is for new payouts.
	configured []*gateway
	// made are the transfers that were made, by reference, and by whom.
	made map[payout.ID]*gateway
	// orders are what was sent, by key.
	orders map[string]*order
	// lies are the last things that a gateway said that can't be true, by payout.
	lies map[payout.ID]*gatewayLie
	// changedMind is what the gateways say of a payout by now; nil for the truth.
	changedMind *changedMind
	// reversedAt is when the money of transfers came back that had been paid a moment before, by the gateway's ids.
	reversedAt map[string]time.Duration
	// unmatchable are the transfers that were made under a reference of ours and that no payout can be made of.
	unmatchable []*unmatchable
	// settleAfter is how long a step of a payout takes.
	settleAfter time.Duration
	balance     int64
	silentUntil time.Duration
}

// anotherName is what the gateway is called that takes the main one's place.
const anotherName port.Name = "another"

func (m *market) openGateways(dir string) error {
	g := &gateways{m: m, made: map[payout.ID]*gateway{}, orders: map[string]*order{}, lies: map[payout.ID]*gatewayLie{}, reversedAt: map[string]time.Duration{}, settleAfter: usualSettling, balance: plenty}
	m.gateways = g
	err := m.openGateway(razorpayx.DefaultName, m.o.profile(), filepath.Join(dir, "gateway.db"))
	if another, isThere := m.o.another(); err == nil && isThere {
		err = m.openGateway(anotherName, another, filepath.Join(dir, "gateway-another.db"))
	}
	g.configured = g.all
	return err
}

func (g *gateways) main() *gateway { return g.all[0] }

// any is one of them.
func (g *gateways) any() *gateway {
	if len(g.all) == 1 { // so that nothing is drawn
		return g.main()
	}
	return one(g.m, g.all)
}

// named finds the gateway with a name; nil for none.
func (g *gateways) named(name port.Name) *gateway {
	for _, one := range g.all {
		if one.name == name {
			return one
		}
	}
	return nil
}

func nameOfGateway(g *gateway) port.Name {
	if g == nil {
		return "nobody"
	}
	return g.name
}

// has reports whether a gateway has made a payout's transfer.
func (g *gateways) has(id payout.ID) bool { return g.made[id] != nil }

// transfers are what the gateways have under a payout's id.
func (g *gateways) transfers(id payout.ID) []razorpayx.Payout {
	if !g.has(id) {
		return nil
	}
	return g.made[id].transfers(id)
}

// move is money that moved at a gateway.
type move struct {
	sandbox.Move
	at *gateway
}

// moves are all money that moved.
func (g *gateways) moves() (all []move, err error) {
	for _, one := range g.all {
		var list []sandbox.Move
		if err := one.ask(http.MethodGet, "/control/moves", nil, &list); err != nil {
			return nil, err
		}
		for _, m := range list {
			all = append(all, move{m, one})
		}
	}
	return all, nil
}

func (g *gateways) settle(after time.Duration) {
	g.settleAfter = after
	for _, one := range g.all {
		if err := one.ask(http.MethodPut, "/control/settle-after", sandbox.SettleAfter{SettleAfter: after.String()}, nil); err != nil {
			g.m.broken(datastoreReadable, "", err.Error())
		}
	}
}

// fund sets what our account at each gateway holds.
func (g *gateways) fund(amount int64) {
	if g.balance == amount {
		return
	}
	g.balance = amount
	for _, one := range g.all {
		if err := one.ask(http.MethodPut, "/control/balance", sandbox.Balance{Amount: &amount}, nil); err != nil {
			g.m.broken(datastoreReadable, "", err.Error())
		}
		one.wake()
	}
}

func (g *gateways) wake() {
	for _, one := range g.all {
		one.wake()
	}
}

func (g *gateways) close() {
	for _, one := range g.all {
		_ = one.box.Close()
	}
}

// transferIDs lists the ids of all transfers at a gateway.
func (g *gateway) transferIDs() []string { return slices.Sorted(maps.Keys(g.madeAt)) }
