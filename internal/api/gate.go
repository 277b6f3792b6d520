package api

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strings"

	"bursar/internal/auth"
	"bursar/internal/fault"
	"bursar/internal/payout"
	"bursar/internal/telemetry"
)

// caller is who asks, as far as the route's gate found out.
type caller struct {
	auth.Principal
	// byCookie says that a cookie, not a header, proved who they are.
	byCookie bool
	// confirm is set where only the token was read. It finds the caller as payoutRole does.
	confirm func() (caller, error)
	// service is the key that a service of the marketplace presented.
	service auth.ServiceKey
}

// isUnconfirmed says that the caller's session is still to be read.
func (c caller) isUnconfirmed() bool { return c.confirm != nil }

// onPayouts is the caller as the payout service knows them.
func (c caller) onPayouts() payout.Caller {
	return payout.Caller{User: c.UserID, Admin: c.Role == auth.Admin, IssuerActor: c.IssuerActor()}
}

// gate lets a request in or says why not, before anything else of it is read.
type gate func(*http.Request) (caller, error)

var (
	errCrossOrigin = fault.New(fault.Forbidden, "cross_origin",
		"A request from another site may not use this sign-in. Send an Authorization header instead of the cookie.")
	errNotJSON    = errCrossOrigin.WithMessage("With the cookie, a body must be sent as Content-Type: application/json.")
	errAdminsOnly = fault.New(fault.Forbidden, "forbidden", "Your role does not allow this. It is for admins.")
)

// anyone lets everybody in.
func (a *api) anyone(*http.Request) (caller, error) { return caller{}, nil }

// signedIn admits a caller with a live access token, in the header or else in the cookie. If there
// is a header, the cookie is ignored.
func (a *api) signedIn(r *http.Request) (caller, error) {
	return a.identify(r, func(context.Context, string) (auth.Principal, error) { return auth.Principal{}, auth.ErrSessionNeeded })
}

// sessionOrIssuer admits who signedIn does, and a seller with a token of the trusted issuer. They have no session.
func (a *api) sessionOrIssuer(r *http.Request) (caller, error) {
	return a.identify(r, a.o.Auth.AuthenticateTrusted)
}

// identify finds who holds an access token of ours, or else has ofIssuer find who holds one that says it is of the trusted
// issuer. Our own is checked first, so that another issuer costs it nothing.
func (a *api) identify(r *http.Request, ofIssuer func(context.Context, string) (auth.Principal, error)) (caller, error) {
	token, byCookie, err := a.accessToken(r)
	if err != nil {
		return caller{}, err
	}
	principal, err := a.o.Auth.Authenticate(r.Context(), token)
	if errors.Is(err, auth.ErrToken) && !byCookie && a.o.Auth.IsOfTrustedIssuer(token) {
		principal, err = ofIssuer(r.Context(), token)
	}
	if err != nil {
		return caller{}, err
	}
	telemetry.SetUser(r.Context(), principal.UserID)
	if principal.Session != "" { // a proof is of one session
		principal.Proof = r.Header.Get(stepUpHeader)
	}
	return caller{Principal: principal, byCookie: byCookie}, nil
}

// payoutRole lets in sellers and admins.
func (a *api) payoutRole(r *http.Request) (caller, error) {
	who, err := a.sessionOrIssuer(r)
	switch {
	case err != nil:
		return who, err
	case !who.Role.CanUsePayouts():
		return who, auth.ErrRole
	default:
		return who, a.o.Auth.CheckAdmin(r.Context(), who.Principal)
	}
}

// payoutRequester admits a caller with an access token of ours before the session is read: package payout confirms the session in the
// transaction of the request, which is cheaper (docs/adr/0005). Other callers pass payoutRole.
func (a *api) payoutRequester(r *http.Request) (caller, error) {
	token, byCookie, err := a.accessToken(r)
	if err != nil {
		return caller{}, err
	}
	named, err := a.o.Auth.ReadToken(token)
	if err != nil {
		return a.payoutRole(r)
	}
	named.Proof = r.Header.Get(stepUpHeader)
	return caller{Principal: named, byCookie: byCookie, confirm: func() (caller, error) { return a.payoutRole(r) }}, nil
}

// admin lets in admins.
func (a *api) admin(r *http.Request) (caller, error) {
	who, err := a.signedIn(r)
	switch {
	case errors.Is(err, auth.ErrSessionNeeded):
		return who, errAdminsOnly
	case err != nil:
		return who, err
	case who.Role != auth.Admin:
		return who, errAdminsOnly
	default:
		return who, a.o.Auth.CheckAdmin(r.Context(), who.Principal)
	}
}

// marketplace admits a caller with a service key that has the scope, in the Authorization header or else in X-Api-Key.
func (a *api) marketplace(scope auth.Scope) gate {
	return func(r *http.Request) (caller, error) {
		key, given := bearer(r.Header)
		if keys := r.Header.Values("X-Api-Key"); !given && len(keys) == 1 {
			key = keys[0]
		}
		if key == "" {
			return caller{}, auth.ErrServiceKey
		}
		service, err := a.o.Auth.AuthenticateService(r.Context(), key)
		if err == nil {
			err = service.RequireScope(scope)
		}
		return caller{service: service}, err
	}
}

// adminOr admits an admin, or a service key that has the scope.
func (a *api) adminOr(scope auth.Scope) gate {
	marketplace := a.marketplace(scope)
	return func(r *http.Request) (caller, error) {
		token, given := bearer(r.Header)
		if auth.IsServiceKey(token) || !given && len(r.Header.Values("X-Api-Key")) == 1 {
			return marketplace(r)
		}
		return a.admin(r)
	}
}

// marketplaceOrAdmin admits a service key that has the scope, or an admin with an access token. A caller with neither is taken for
// the marketplace's server, which the routes are for.
func (a *api) marketplaceOrAdmin(scope auth.Scope) gate {
	marketplace := a.marketplace(scope)
	return func(r *http.Request) (caller, error) {
		token, given := bearer(r.Header)
		byCookie := !given && len(r.Header.Values("X-Api-Key")) == 0 && a.cookies.Token(r) != ""
		if byCookie || strings.Count(token, ".") == 2 { // as an access token has
			return a.admin(r)
		}
		return marketplace(r)
	}
}

func (a *api) accessToken(r *http.Request) (token string, byCookie bool, err error) {
	if token, given := bearer(r.Header); given {
		if token == "" {
			return "", false, auth.ErrToken
		}
		return token, false, nil
	}
	token = a.cookies.Token(r)
	if token == "" {
		return "", false, auth.ErrToken
	}
	if err := a.sameOrigin.Check(r); err != nil {
		return "", false, errCrossOrigin
	}
	if !asOurPagesSend(r) {
		return "", false, errNotJSON
	}
	return token, true, nil
}

// asOurPagesSend reports whether a body that may change something is declared as JSON. A form of
// another site can't do so, and a script there would have to ask us first.
func asOurPagesSend(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.ContentLength == 0 {
		return true
	}
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && mediaType == "application/json"
}

// bearer takes the token from the Authorization header, and reports whether there is such a header
// at all. The token is "" when it is not one of the Bearer scheme, or there are two headers.
func bearer(h http.Header) (token string, given bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", len(values) > 0
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", true
	}
	return strings.TrimLeft(token, " "), true
}
