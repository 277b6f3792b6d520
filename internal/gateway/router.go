package gateway

import (
	"errors"
	"fmt"
	"slices"

	"bursar/internal/money"
)

// Router knows the gateways that are configured. It picks one for what is new, and finds the one that has what is
// under way.
type Router struct {
	currency  string
	preferred Name
	all       []Gateway
}

// NewRouter makes a router for payouts in a currency. The preferred gateway must be among all, and one of them must
// pay bank accounts in that currency.
func NewRouter(c money.Currency, preferred Name, all ...Gateway) (*Router, error) {
	r := &Router{currency: c.Code(), preferred: preferred, all: slices.Clone(all)}
	for i, g := range r.all {
		if g.Name() == "" || slices.ContainsFunc(r.all[:i], func(o Gateway) bool { return o.Name() == g.Name() }) {
			return nil, fmt.Errorf("gateway: each gateway needs a name of its own, and one is %q", g.Name())
		}
	}
	if _, err := r.Named(preferred); err != nil {
		return nil, err
	}
	if _, isOne := r.Pick(BankAccount); !isOne {
		return nil, errors.New("gateway: no configured gateway pays bank accounts in " + r.currency)
	}
	return r, nil
}

// Only is a router for a single gateway, in the currency that it pays.
func Only(g Gateway) *Router {
	return &Router{currency: g.Capabilities().Currency, preferred: g.Name(), all: []Gateway{g}}
}

// Pick chooses the gateway for something new: the preferred one if it pays such a destination, else the first that
// does. It reports false if none does.
func (r *Router) Pick(kind DestinationKind) (Gateway, bool) {
	var picked Gateway
	for _, g := range r.all {
		if g.Capabilities().Pays(kind, r.currency) && (picked == nil || g.Name() == r.preferred) {
			picked = g
		}
	}
	return picked, picked != nil
}

// Named finds the gateway with a stored name, or fails with [ErrNotConfigured].
func (r *Router) Named(name Name) (Gateway, error) {
	for _, g := range r.all {
		if g.Name() == name {
			return g, nil
		}
	}
	return nil, fmt.Errorf("gateway %q: %w", name, ErrNotConfigured)
}

// All lists the gateways that are configured.
func (r *Router) All() []Gateway { return slices.Clone(r.all) }
