// Package web is what the API and the pages have in common: the sign-in cookie, and where a request
// comes from.
package web

import (
	"net/http"
	"strings"
)

// Cookies makes and reads the sign-in cookie, which holds an access token.
type Cookies struct {
	// Secure says that the public address is https. Plain http is for localhost alone.
	Secure bool
}

const signInCookie = "bursar"

// Name is the cookie's. The prefix makes browsers refuse one that a sibling domain set.
func (c Cookies) Name() string { return c.Named(signInCookie) }

// Named is how a cookie of ours is called here, whose plain name is given.
func (c Cookies) Named(plain string) string {
	if c.Secure {
		return "__Host-" + plain
	}
	return plain
}

// SignIn is the cookie that keeps a browser signed in for maxAge seconds; a negative age takes it away.
func (c Cookies) SignIn(token string, maxAge int) *http.Cookie {
	return c.Make(c.Name(), token, maxAge)
}

// Make is a cookie that scripts can't read and other sites can't use to change anything.
func (c Cookies) Make(name, value string, maxAge int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // plain http is for localhost, where browsers would drop a Secure cookie
		Name: name, Value: value, Path: "/", MaxAge: maxAge,
		Secure: c.Secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// Value is the value of a request's cookie whose plain name is given, or "" where there is none, or more
// than one: then one of them is not ours.
func (c Cookies) Value(r *http.Request, plain string) string {
	cookies := r.CookiesNamed(c.Named(plain))
	if len(cookies) != 1 {
		return ""
	}
	return cookies[0].Value
}

// deviceCookie begins the plain name of the cookie by which an account knows a browser; the account's id ends it.
const deviceCookie = "bursar-device-"

// devicesKept bounds how many accounts know one browser: headers are bounded.
const devicesKept = 8

// Device is the cookies by which a user's account knows the browser for maxAge seconds. With them go those that are
// too many beside it.
func (c Cookies) Device(r *http.Request, user, token string, maxAge int) []*http.Cookie {
	name := c.Named(deviceCookie + user)
	cookies := []*http.Cookie{c.Make(name, token, maxAge)}
	others := 0
	for _, cookie := range r.Cookies() {
		if cookie.Name == name || !strings.HasPrefix(cookie.Name, c.Named(deviceCookie)) {
			continue
		}
		if others++; others >= devicesKept {
			cookies = append(cookies, c.Make(cookie.Name, "", -1))
		}
	}
	return cookies
}

// Devices is the device tokens of a request, of whichever accounts.
func (c Cookies) Devices(r *http.Request) []string {
	var tokens []string
	for _, cookie := range r.Cookies() {
		if strings.HasPrefix(cookie.Name, c.Named(deviceCookie)) {
			tokens = append(tokens, cookie.Value)
		}
	}
	return tokens
}

// Token is the access token of a request's sign-in cookie, or "" where there is none, or more than one.
func (c Cookies) Token(r *http.Request) string { return c.Value(r, signInCookie) }
