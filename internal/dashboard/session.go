package dashboard

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/fault"
	"bursar/internal/telemetry"
	"bursar/internal/web"
)

// renewAfter is the age from which an access token is replaced by a fresh one, so that a user who comes by
// now and then is not signed out after a week.
const renewAfter = 24 * time.Hour

var (
	errCrossOrigin = fault.New(fault.Forbidden, "cross_origin",
		"This form was sent from another site, so nothing was changed. If you meant it, do it again from here.")
	errRole = fault.New(fault.Forbidden, "forbidden", "You don't have access to this page.")
	// errSignIn sends a visitor to the sign-in page, and back here after it.
	errSignIn = errors.New("dashboard: not signed in")
)

// admit finds out who is asking and lets them in, or says why not, before anything else of the request is read.
func (d *dashboard) admit(ctx context.Context, v *pageRequest, who audience) error {
	if err := d.sameOrigin.Check(v.r); err != nil {
		return errCrossOrigin
	}
	if err := d.identify(ctx, v); err != nil {
		return err
	}
	switch {
	case who == everyone:
		return nil
	case !v.signedIn():
		return errSignIn
	case !who.admits(v.who.Role):
		return errRole
	case who == admins:
		return d.o.Auth.CheckAdmin(ctx, v.who)
	default:
		return nil
	}
}

// identify finds the visitor behind the cookie. A cookie that is not worth anything is taken away.
func (d *dashboard) identify(ctx context.Context, v *pageRequest) error {
	token := d.cookies.Token(v.r)
	if token == "" {
		return nil
	}
	who, err := d.o.Auth.Authenticate(ctx, token)
	if errors.Is(err, auth.ErrToken) {
		v.cookies = append(v.cookies, d.cookies.SignIn("", -1))
		return nil
	}
	if err != nil {
		return err
	}
	v.who = who
	telemetry.SetUser(ctx, who.UserID)
	if d.o.Now().Sub(issuedAt(token)) < renewAfter {
		return nil
	}
	fresh, err := d.o.Auth.Renew(who)
	if err != nil {
		return err
	}
	v.cookies = append(v.cookies, d.cookies.SignIn(fresh, cookieAge))
	return nil
}

// cookieAge is how long a browser keeps the sign-in cookie, in seconds: as long as a token may live.
const cookieAge = 7 * 24 * 60 * 60

// issuedAt reads when a token that was found right was made.
func issuedAt(token string) time.Time {
	var claims struct {
		IssuedAt int64 `json:"iat"`
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return time.Time{}
	}
	return time.Unix(claims.IssuedAt, 0)
}

// begin signs the browser in. It drops the cookies that were set before, so others are set after it. The session that the browser
// had before ends, so that a cookie which an attacker else put there is worth nothing afterwards.
func (d *dashboard) begin(ctx context.Context, v *pageRequest, s auth.SignIn) error {
	if v.signedIn() {
		if err := d.o.Auth.Logout(ctx, v.who); err != nil {
			return err
		}
	}
	v.cookies = []*http.Cookie{d.cookies.SignIn(s.Token, int(s.ExpiresIn.Seconds()))}
	d.rememberDevice(v, s.User.ID, s.DeviceToken)
	return nil
}

// rememberDevice lets the user's account know the browser from now on.
func (d *dashboard) rememberDevice(v *pageRequest, user, token string) {
	v.cookies = append(v.cookies, d.cookies.Device(v.r, user, token, int(auth.DeviceLife/time.Second))...)
}

// signInAddress is the sign-in page that leads back to where the visitor wanted to go.
func signInAddress(r *http.Request) string {
	back := home
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		back = r.URL.RequestURI()
	}
	if !web.LocalPath(back) {
		back = home
	}
	return withBack("/login", back)
}

// home is where people are taken once they are signed in.
const home = "/dashboard"
