package simulate

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	port "bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/payout"
)

// another is the profile of a second gateway, if there is one. A few of eight seeds have it. This is not drawn with the
// other dice, so that the seeds without it are the same whether or not the fault is chosen.
func (o Options) another() (sandbox.Profile, bool) {
	dice := rand.New(rand.NewPCG(o.Seed, 4695))
	if !o.Faults[replace] || dice.IntN(8) >= 3 {
		return "", false
	}
	if o.Limited || dice.IntN(3) == 0 {
		return sandbox.Full, true
	}
	return sandbox.Limited, true
}

// replaceEvery spaces changes of the configuration.
func (m *market) replaceEvery() time.Duration { return max(8*time.Hour, m.end()/30) }

// wantReplacement has the gateways configured otherwise when next a payout comes to some state: what is under way is what this is most
// about.
func (m *market) wantReplacement() {
	m.replaceAt = one(m, []payout.State{payout.Waiting, payout.Waiting, payout.Unknown, payout.Submitted})
}

// replaceSoon has them configured otherwise within moments, if a payout has come to the state that was waited for.
func (m *market) replaceSoon(is payout.State) {
	if m.replaceAt == is {
		m.replaceAt = ""
		m.after(m.between(0, cancelWindow), m.replaceGateways)
	}
}

// replaceGateways has the gateways configured otherwise, and the instances started again.
func (m *market) replaceGateways() {
	main, another := m.gateways.all[0], m.gateways.all[1]
	isPutBack := m.saved != nil && m.saved.restored // all gateways are asked first
	if m.closing {
		return
	}
	lasts := m.between(m.replaceEvery()/2, m.replaceEvery()*3/2)
	if !isPutBack && !m.restoring {
		others := slices.DeleteFunc([][]*gateway{{main, another}, {another, main}, {main}, {another}}, func(c []*gateway) bool {
			return slices.Equal(c, m.gateways.configured)
		})
		configured := one(m, others)
		m.configure(configured)
		if len(configured) == 1 {
			m.cancelWithoutGateway(configured[0].name)
			lasts = m.between(time.Minute, one(m, []time.Duration{time.Hour, 12 * time.Hour, 36 * time.Hour}))
		}
	}
	m.after(lasts, m.wantReplacement)
}

// cancelWithoutGateway has sellers and then an admin stop what another gateway than this one has turned away, while that is not configured.
func (m *market) cancelWithoutGateway(is port.Name) {
	for _, id := range slices.Sorted(maps.Keys(m.model.payouts)) {
		if w := m.model.payouts[id]; w.state == payout.Waiting && w.at != is && !w.sentAt.IsZero() {
			s := m.sellerOf(w.seller)
			m.spawn(m.between(time.Minute, 4*time.Minute), "seller "+s.name, func() { m.cancel(s, id) })
			m.spawn(4*time.Minute, admin, func() { m.cancelAsAdmin(id) })
		}
	}
}

// configure has the instances started again with these gateways, one after the other. The first gateway is for new payouts.
func (m *market) configure(gateways []*gateway) {
	if slices.Equal(gateways, m.gateways.configured) {
		return
	}
	m.gateways.configured = gateways
	m.strike(replace)
	m.note("", "", "configured from now on: "+namesOf(gateways))
	for _, mc := range m.machines {
		m.after(m.between(0, one(m, []time.Duration{time.Second, 2 * time.Minute})), func() {
			if mc.on == nil || slices.Equal(mc.on.gateways, m.gateways.configured) {
				return
			}
			m.note("", "", mc.name+" is stopped, to be configured otherwise")
			m.shutDown(mc.on)
			m.after(m.between(time.Second, 20*time.Second), func() { m.startUp(mc) })
		})
	}
}

func namesOf(gateways []*gateway) string {
	names := make([]string, len(gateways))
	for i, g := range gateways {
		names[i] = string(g.name)
	}
	return strings.Join(names, ", ")
}

// openClients makes the clients of the gateways that are configured now, with the router that chooses among them.
func (on *instance) openClients() (*port.Router, error) {
	on.gateways, on.asked = on.m.gateways.configured, map[port.Name]bool{}
	clients := make([]port.Gateway, len(on.gateways))
	for i, g := range on.gateways {
		capabilities := g.capabilities()
		client, err := razorpayx.New(razorpayx.Options{
			Name: g.name, Capabilities: &capabilities,
			BaseURL: "http://gateway.simulated/v1", KeyID: keyID, KeySecret: keySecret, AccountNumber: ourAccount,
			Currency: rupees(), Timeout: 1000 * time.Hour, Transport: wire{on, g}.transport(), Now: on.now,
		})
		if err != nil {
			return nil, err
		}
		clients[i] = client
	}
	return port.NewRouter(rupees(), on.gateways[0].name, clients...)
}

// knows reports whether an instance is configured with the gateway of that name.
func (on *instance) knows(name port.Name) bool {
	return slices.ContainsFunc(on.gateways, func(g *gateway) bool { return g.name == name })
}

// knowsAll reports whether an instance is configured with all gateways that ever paid.
func (on *instance) knowsAll() bool { return len(on.gateways) == len(on.m.gateways.all) }

// checkGateway holds a request to a gateway that is about a payout against the one that the payout is at.
func (w wire) checkGateway() {
	m := w.on.m
	id := m.current.about
	if known := m.model.payouts[id]; known != nil {
		m.assert(ownGateway, known.at == w.g.name, string(id), "payout %s is at gateway %s, and %s is asked about it", id, known.at, w.g.name)
	}
}

// checkWaits wants a payout to wait for its gateway, and to tell why, where a worker of an instance without that gateway takes its step.
func (m *market) checkWaits(on *instance, w *withdrawal, p payout.Payout) {
	if on.knows(w.at) || m.current.about != p.ID || m.current.name != stepName(on) {
		return
	}
	tells := p.ReasonCode == payout.CodeNoGateway || p.ReasonCode == possibleDuplicate ||
		w.state == payout.Unknown || w.state == payout.ManualReview || kindOf(w.state) != underWay || p.Discrepancy != ""
	m.assert(waitsForGateway, p.State == w.state && tells, string(p.ID),
		"payout %s was %s, its gateway %s is not configured, and it is %s now, because of %q", p.ID, w.state, w.at, p.State, p.ReasonCode)
	m.assert(endsWatched, !p.DueAt.IsZero() || m.now-w.changed > leastOfDays+keptWithoutGateway-2*maxOff, string(p.ID),
		"payout %s is %s for %s, its gateway %s is not configured, and it is given up", p.ID, p.State, m.now-w.changed, w.at)
}

// keptWithoutGateway is how much longer a payout that has ended is watched where its gateway is not configured.
const keptWithoutGateway = 7 * 24 * time.Hour
