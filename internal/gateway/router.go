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
	all    []Gateway
	forNew Gateway
}

// NewRouter makes a router for payouts in a currency. The preferred gateway must be among all, and one of them must
// pay in that currency.
func NewRouter(c money.Currency, preferred Name, all ...Gateway) (*Router, error) {
	r := &Router{all: slices.Clone(all)}
	for i, g := range r.all {
		if g.Name() == "" || slices.ContainsFunc(r.all[:i], func(o Gateway) bool { return o.Name() == g.Name() }) {
			return nil, fmt.Errorf("gateway: each gateway needs a name of its own, and one is %q", g.Name())
		}
	}
	if _, err := r.Named(preferred); err != nil {
		return nil, err
	}
	for _, g := range r.all {
		if g.Capabilities().Currency == c.Code() && (r.forNew == nil || g.Name() == preferred) {
			r.forNew = g
		}
	}
	if r.forNew == nil {
		return nil, errors.New("gateway: no configured gateway pays in " + c.Code())
	}
	return r, nil
}

// Only is a router for a single gateway, in the currency that it pays.
func Only(g Gateway) *Router { return &Router{all: []Gateway{g}, forNew: g} }

// ForNew is the gateway for something new: the preferred one if it pays in the currency, else the first that does.
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
