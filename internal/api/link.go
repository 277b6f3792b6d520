package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/fault"
)

// linkPath is where a browser opens a link of the marketplace.
const linkPath = "/api/auth/link"

type sessionLinkJSON struct {
	sellerIDsJSON
	URL       string `json:"url"`
	ExpiresAt string `json:"expiresAt"`
}

func (a *api) createSessionLink(ctx context.Context, c caller, name sellerName) (reply[sessionLinkJSON], error) {
	user, err := a.sellerToActFor(ctx, name)
	if err != nil {
		return reply[sessionLinkJSON]{}, err
	}
	token, expires, err := a.o.Auth.CreateSessionLink(ctx, c.service, user.ID)
	if err != nil {
		return reply[sessionLinkJSON]{}, err
	}
	address := a.o.BaseURL.JoinPath(linkPath)
	address.RawQuery = url.Values{"token": {token}}.Encode()
	return reply[sessionLinkJSON]{status: http.StatusCreated, data: sessionLinkJSON{sellerIDsOf(user), address.String(), stamp(expires)}}, nil
}

// errNotFollowed keeps a browser from using a link up before its user follows it.
var errNotFollowed = fault.New(fault.Refused, "link_not_followed", "This link works when a person follows it in a browser. It was not used up: open it.")

// isFollowed reports whether a user goes to the address, as far as the browser says: it may also fetch it ahead of time, or
// for a script, a frame or an image of another site.
func isFollowed(h http.Header) bool {
	to := h.Get("Sec-Fetch-Dest")
	return (to == "" || to == "document") && !strings.Contains(h.Get("Sec-Purpose")+h.Get("Purpose"), "prefetch")
}

// openSessionLink signs a browser in, once. HEAD is for programs that look at links without following them, and uses nothing up.
func (a *api) openSessionLink(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		a.notAllowed(w, r, http.MethodGet)
		return
	}
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	if !isFollowed(r.Header) {
		a.fail(w, r, errNotFollowed)
		return
	}
	signIn, err := a.o.Auth.OpenSessionLink(r.Context(), r.URL.Query().Get("token"), a.cookies.Token(r), a.device(r))
	if f := fault.From(err); f != nil && f.Kind == fault.Unauthenticated {
		sendTo(w, http.StatusSeeOther, signInPage+"?"+url.Values{"error": {auth.ErrLink.Message}}.Encode())
		return
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	http.SetCookie(w, a.cookies.SignIn(signIn.Token, int(signIn.ExpiresIn/time.Second)))
	sendTo(w, http.StatusSeeOther, defaultRedirect)
}
