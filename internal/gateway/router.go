package gateway

import (
	"fmt"
	"slices"

	"bursar/internal/money"
)

// Router knows the gateways that are configured: the current one, which everything new goes through, and former ones, which have
// what is under way.
type Router struct {
	all     []Gateway
	current Gateway
}

// NewRouter makes a router for payouts in a currency. The current gateway must be among all, and pay in that currency.
func NewRouter(c money.Currency, current Name, all ...Gateway) (*Router, error) {
	r := &Router{all: slices.Clone(all)}
	for i, g := range r.all {
		if g.Name() == "" || slices.ContainsFunc(r.all[:i], func(o Gateway) bool { return o.Name() == g.Name() }) {
			return nil, fmt.Errorf("gateway: each gateway needs a name of its own, and one is %q", g.Name())
		}
	}
	var err error
	if r.current, err = r.Named(current); err != nil {
		return nil, err
	}
	if pays := r.current.Capabilities().Currency; pays != c.Code() {
		return nil, fmt.Errorf("gateway %s pays in %s, and payouts are in %s", current, pays, c.Code())
	}
	return r, nil
}

// Only is a router for a single gateway, in the currency that it pays.
func Only(g Gateway) *Router { return &Router{all: []Gateway{g}, current: g} }

// Current is the gateway that everything new goes through.
func (r *Router) Current() Gateway { return r.current }

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
