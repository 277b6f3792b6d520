package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/fault"
	"bursar/internal/web"
)

// Sign-ins through a provider are for browsers: they come by links, so they are GETs, though they write;
// and they are answered by a redirect, whatever happens.

const (
	// flowCookie begins the plain name of a sign-in's own cookie; its name ends it, so that sign-ins in
	// two tabs do not disturb each other.
	flowCookie = "bursar-sign-in-"
	// Older sign-ins are forgotten when another begins, a few at a time: headers are bounded.
	flowsKept    = 4
	flowsDropped = 8

	// callbackTimeout leaves time to write when the provider took all of its own.
	callbackTimeout = requestTimeout + 5*time.Second

	defaultRedirect = "/dashboard"
	signInPage      = "/login"
)

// beginSignIn sends a browser to a provider.
func (a *api) beginSignIn(p auth.ProviderID) http.HandlerFunc {
	return a.byLink(p, requestTimeout, func(w http.ResponseWriter, r *http.Request) {
		in := input{api: a, w: w, r: r}
		redirect, role := in.redirect(), in.newcomersRole()
		if err := in.problem(); err != nil {
			a.fail(w, r, err)
			return
		}
		if address := a.startAtOrigin(r); address != "" {
			sendTo(w, http.StatusFound, address)
			return
		}
		begun, err := a.o.Auth.BeginSignIn(r.Context(), auth.ProviderStart{Provider: p, Redirect: redirect, Role: role})
		if err != nil {
			a.backToLogin(w, r, p, redirect, err)
			return
		}
		a.dropOldFlows(w, r)
		http.SetCookie(w, a.cookies.Make(a.cookies.Named(flowCookie+begun.Flow), begun.Encrypted, int(auth.FlowLife/time.Second)))
		sendTo(w, http.StatusFound, begun.URL)
	})
}

// finishSignIn signs in who comes back from a provider. The sign-in's cookie is taken away whatever
// becomes of it: each is used once.
func (a *api) finishSignIn(p auth.ProviderID) http.HandlerFunc {
	return a.byLink(p, callbackTimeout, func(w http.ResponseWriter, r *http.Request) {
		answer := r.URL.Query()
		cookie := flowCookie + auth.FlowOf(answer.Get("state"))
		if name := a.cookies.Named(cookie); len(r.CookiesNamed(name)) > 0 {
			http.SetCookie(w, a.cookies.Make(name, "", -1))
		}
		signIn, redirect, err := a.o.Auth.FinishSignIn(r.Context(), auth.ProviderReturn{
			Provider: p, Answer: answer, Encrypted: a.cookies.Value(r, cookie),
			Presented: a.cookies.Token(r), Device: a.device(r),
		})
		if errors.Is(err, auth.ErrSecondFactor) {
			http.SetCookie(w, a.cookies.Make(a.cookies.Named(web.ChallengeCookie), fault.From(err).Details["challenge"], int(auth.ChallengeLife/time.Second)))
			sendTo(w, http.StatusSeeOther, web.FactorPath+"?"+url.Values{"redirect": {cmp.Or(redirect, defaultRedirect)}}.Encode())
			return
		}
		if err != nil {
			a.backToLogin(w, r, p, redirect, err)
			return
		}
		http.SetCookie(w, a.cookies.SignIn(signIn.Token, int(signIn.ExpiresIn/time.Second)))
		a.setDevice(w, r, knownDevice(signIn))
		sendTo(w, http.StatusSeeOther, cmp.Or(redirect, defaultRedirect))
	})
}

// byLink is what both ends of a sign-in have in common. HEAD is for those who look at links without
// following them, and must change nothing.
func (a *api) byLink(p auth.ProviderID, timeout time.Duration, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !a.o.Auth.HasProvider(p):
			a.fail(w, r, auth.ErrProviderNotConfigured)
		case r.Method != http.MethodGet:
			a.notAllowed(w, r, http.MethodGet)
		default:
			ctx, cancel := context.WithTimeout(r.Context(), timeout)
			defer cancel()
			next(w, r.WithContext(ctx))
		}
	}
}

// redirect takes where to go in the end, if that was given.
func (in *input) redirect() string {
	to, given := in.parameter("redirect")
	if given && !web.LocalPath(to) {
		in.noteInvalid("redirect", "must be a path of this site such as /dashboard, in plain characters and outside of /api")
	}
	return to
}

// newcomersRole takes the role for a user who is new, if that was given.
func (in *input) newcomersRole() auth.Role {
	name, given := in.parameter("role")
	role, ok := auth.ParseRole(name)
	if given && (!ok || name == "") {
		in.noteInvalid("role", "must be seller or buyer")
	}
	return role
}

// startAtOrigin is the address of the same start at our own origin, for a browser that calls this machine
// by another of its names, and "" for all others. The provider will send it to the origin, where cookies
// that it got under another name would be missing.
func (a *api) startAtOrigin(r *http.Request) string {
	origin, asked := a.o.BaseURL, &url.URL{Scheme: "http", Host: r.Host}
	if origin.Scheme != "http" || !web.IsLoopback(origin.Host) || !web.IsLoopback(asked.Host) || port(origin) != port(asked) ||
		strings.EqualFold(origin.Hostname(), asked.Hostname()) {
		return ""
	}
	return origin.Scheme + "://" + origin.Host + r.URL.RequestURI()
}

func port(u *url.URL) string { return cmp.Or(u.Port(), "80") }

// dropOldFlows takes cookies of sign-ins away that were begun and never ended, but for the newest. Their
// names begin with their time.
func (a *api) dropOldFlows(w http.ResponseWriter, r *http.Request) {
	var flows []string
	for _, cookie := range r.Cookies() {
		if strings.HasPrefix(cookie.Name, a.cookies.Named(flowCookie)) {
			flows = append(flows, cookie.Name)
		}
	}
	slices.Sort(flows)
	for _, name := range flows[:min(max(len(flows)-flowsKept, 0), flowsDropped)] {
		http.SetCookie(w, a.cookies.Make(name, "", -1))
	}
}

// backToLogin sends a browser to the sign-in page with the reason, and logs more of it. Nothing of the
// callback's query is logged.
func (a *api) backToLogin(w http.ResponseWriter, r *http.Request, p auth.ProviderID, redirect string, err error) {
	problem := auth.SignInProblem(err)
	level := slog.LevelInfo // the user changed their mind, or may not sign in
	switch {
	case problem == auth.ErrSignInFailed && r.Context().Err() == nil && fault.From(err) == nil:
		level = slog.LevelError
	case problem.Kind == fault.Unavailable || problem == auth.ErrProviderAnswer:
		level = slog.LevelWarn
	}
	a.o.Logger.LogAttrs(r.Context(), level, "sign-in through a provider failed",
		slog.String("provider", string(p)), slog.String("code", problem.Code), slog.Any("cause", causeOf(err)))

	query := url.Values{"error": {problem.Message}}
	if redirect != "" {
		query.Set("redirect", redirect)
	}
	sendTo(w, http.StatusSeeOther, signInPage+"?"+query.Encode())
}

// causeOf is what an operator should know of a failure: the cause that a fault carries, if it does.
func causeOf(err error) error {
	if f := fault.From(err); f != nil && errors.Unwrap(f) != nil {
		return errors.Unwrap(f)
	}
	return err
}

// sendTo redirects without a body, which nobody would read.
func sendTo(w http.ResponseWriter, status int, address string) {
	w.Header().Set("Location", address)
	w.WriteHeader(status)
}
