package api

import (
	"context"
	"net/http"

	"bursar/internal/fault"
)

var (
	errDraining = fault.New(fault.Unavailable, "draining", "The service is stopping. Try again in a moment.")
	errDatabase = fault.New(fault.Unavailable, "database_unavailable", "The database does not answer. Try again in a moment.")
)

// health says that the process answers; nothing more, so that a slow database does not get it killed.
func (a *api) health(context.Context, caller, none) (reply[none], error) {
	return reply[none]{message: "ok"}, nil
}

// ready says whether requests may be sent here.
func (a *api) ready(ctx context.Context, _ caller, _ none) (reply[none], error) {
	if a.o.Draining() {
		return reply[none]{}, errDraining
	}
	if err := a.o.Ping(ctx); fault.From(err) != nil {
		return reply[none]{}, err
	} else if err != nil {
		return reply[none]{}, errDatabase.Because(err)
	}
	if !a.o.Payouts.StartupReconciled() {
		return reply[none]{message: "ready; no payout is sent before the gateway has told what it knows"}, nil
	}
	return reply[none]{message: "ready"}, nil
}

// jwks serves the public keys to verifiers of our tokens. A new key signs at once, so a verifier asks again for a key that it lacks.
func (a *api) jwks(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=300")
	writeBytes(w, http.StatusOK, "application/jwk-set+json", a.o.Auth.JWKS())
}

// home redirects the bare address to the documentation.
func (a *api) home(w http.ResponseWriter, r *http.Request) {
	if a.o.Pages != nil {
		a.o.Pages.ServeHTTP(w, r)
		return
	}
	http.Redirect(w, r, "/docs", http.StatusFound)
}
