package gateway

import (
	"fmt"
	"slices"

	"bursar/internal/money"
)

// Router knows the gateways that are configured: the one for what is new, and those that have what is under way.
type Router struct {
	all    []Gateway
	forNew Gateway
}

// NewRouter makes a router for payouts in a currency. The gateway for what is new must be among all, and pay in that currency.
func NewRouter(c money.Currency, forNew Name, all ...Gateway) (*Router, error) {
	r := &Router{all: slices.Clone(all)}
	for i, g := range r.all {
		if g.Name() == "" || slices.ContainsFunc(r.all[:i], func(o Gateway) bool { return o.Name() == g.Name() }) {
			return nil, fmt.Errorf("gateway: each gateway needs a name of its own, and one is %q", g.Name())
		}
	}
	var err error
	if r.forNew, err = r.Named(forNew); err != nil {
		return nil, err
	}
	if pays := r.forNew.Capabilities().Currency; pays != c.Code() {
		return nil, fmt.Errorf("gateway %s pays in %s, and payouts are in %s", forNew, pays, c.Code())
	}
	return r, nil
}

// Only is a router for a single gateway, in the currency that it pays.
func Only(g Gateway) *Router { return &Router{all: []Gateway{g}, forNew: g} }

// ForNew is the gateway for something new.
func (r *Router) ForNew() Gateway { return r.forNew }

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
