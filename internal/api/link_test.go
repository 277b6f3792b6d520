package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
)

// link makes a link for a seller, and returns the path that it is at.
func (h *fixture) link(seller string) string {
	h.t.Helper()
	made := h.marketplace("POST", "sellers/"+seller+"/session", "").want(h.t, 201)
	u, err := url.Parse(made.text(h.t, "data.url"))
	must(h.t, err)
	return u.RequestURI()
}

// open opens a link as a browser does, and returns the cookie; none if it leads to the page for signing in.
func (h *fixture) open(path, cookie string) string {
	h.t.Helper()
	a := h.do(call{method: "GET", path: path, header: map[string]string{"Cookie": cookie}}).want(h.t, 303)
	if a.header.Get("Referrer-Policy") != "no-referrer" || a.header.Get("Cache-Control") != "no-store" {
		h.t.Errorf("the headers are %v", a.header)
	}
	switch to := a.header.Get("Location"); {
	case to == "/dashboard":
		cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
		return cookie
	case strings.HasPrefix(to, "/login?error=This+link+was+used"):
		return ""
	default:
		h.t.Fatalf("the link leads to %s", to)
		return ""
	}
}

// as calls a route with a cookie.
func (h *fixture) as(cookie, method, path, body string) answer {
	h.t.Helper()
	return h.do(call{method: method, path: path, body: body, header: map[string]string{"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}})
}

func TestSessionLink(t *testing.T) {
	h := openFixture(t)
	seller := h.newSeller("17")
	path := h.link("ext:17")
	token := strings.TrimPrefix(path, "/api/auth/link?token=")
	for range 2 { // as a program that looks at links
		h.do(call{method: "HEAD", path: path}).want(t, 405)
	}
	for name, value := range map[string]string{"Sec-Purpose": "prefetch;prerender", "Purpose": "prefetch", "Sec-Fetch-Dest": "image"} {
		h.do(call{method: "GET", path: path, header: header(name, value)}).wantFailure(t, 400, "link_not_followed")
	}
	cookie := h.open(path, "")
	if got := h.as(cookie, "GET", "/api/auth/me", "").want(t, 200).text(t, "data.user.id"); got != seller.id {
		t.Errorf("the link signed %s in, want %s", got, seller.id)
	}
	if h.open(path, "") != "" {
		t.Error("a link was opened twice")
	}
	if methods := fmt.Sprint(h.as(cookie, "GET", "/api/auth/sessions", "").want(t, 200).read(t, "data.sessions.0.methods")); methods != "[link]" {
		t.Errorf("the session's methods are %s", methods)
	}
	second := h.open(h.link(seller.id), cookie)
	h.as(cookie, "GET", "/api/auth/me", "").wantFailure(t, 401, "invalid_token") // the browser has another session
	if strings.Contains(h.log.String(), token) {
		t.Error("the log has the token")
	}

	// What stays after the marketplace's word is the seller's own to change.
	h.as(second, "POST", "/api/auth/password/change", `{"currentPassword":"","newPassword":"monsoon-market-2"}`).wantFailure(t, 400, "sign_in_again")
	h.as(second, "POST", "/api/auth/factors", `{"type":"totp"}`).wantFailure(t, 400, "sign_in_again")
	h.as(second, "POST", "/api/auth/email/change", `{"email":"mallory@example.com"}`).wantFailure(t, 400, "sign_in_again")
	h.as(second, "DELETE", "/api/auth/me", `{}`).wantFailure(t, 400, "sign_in_again")
	if mails := h.mailbox.To("mallory@example.com"); len(mails) > 0 {
		t.Errorf("the other address got %v", mails)
	}

	h.clock.advance(time.Hour)
	h.as(second, "GET", "/api/auth/me", "").wantFailure(t, 401, "invalid_token")
	late := h.link(seller.id)
	h.clock.advance(time.Minute)
	if h.open(late, "") != "" || h.open("/api/auth/link", "") != "" || h.open("/api/auth/link?token=%00", "") != "" {
		t.Error("a link was opened that was too old, or none")
	}
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %s, %v", fmt.Sprint(report.Findings), err)
	}
}

func TestSessionLink_SecondFactor(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.enrol(seller)
	cookie := h.open(h.link(seller.id), "")
	factor := h.as(cookie, "GET", "/api/auth/factors", "").want(t, 200).text(t, "data.factors.0.id")
	h.as(cookie, "DELETE", "/api/auth/factors/"+factor, "").wantFailure(t, 401, "step_up_required", "methods")
	h.as(cookie, "PUT", "/api/bank-account", accountBody).wantFailure(t, 401, "step_up_required", "methods")
}

func TestSessionLink_Refused(t *testing.T) {
	h := openFixture(t)
	admin := h.signUp("Ada", auth.Admin)
	h.marketplace("POST", "sellers/"+admin.id+"/session", "").wantFailure(t, 404, "seller_not_found")
	access := func(u user, body string) {
		t.Helper()
		h.do(call{method: "POST", path: "/api/admin/users/" + u.id + "/access", token: admin.token, body: body}).want(t, 200)
	}
	const suspend, restore = `{"role":"seller","suspended":true}`, `{"role":"seller","suspended":false}`
	seller := h.newSeller("17")
	unused, session := h.link(seller.id), h.open(h.link(seller.id), "")
	access(seller, suspend)
	h.marketplace("POST", "sellers/ext:17/session", "").wantFailure(t, 409, "seller_suspended")
	if h.open(unused, "") != "" {
		t.Error("a link signed a suspended seller in")
	}
	access(seller, restore)
	h.as(session, "GET", "/api/auth/me", "").wantFailure(t, 401, "invalid_token")
	if h.open(unused, "") != "" {
		t.Error("a link from before the suspension signed the seller in")
	}

	promoted := h.newSeller("18")
	unused, session = h.link(promoted.id), h.open(h.link(promoted.id), "")
	access(promoted, `{"role":"admin","suspended":false}`)
	if h.open(unused, "") != "" {
		t.Error("a link signed an admin in")
	}
	h.as(session, "GET", "/api/auth/me", "").wantFailure(t, 401, "invalid_token") // nobody proved to be that admin

	byOperator := h.newSeller("19")
	session = h.open(h.link(byOperator.id), "")
	_, _, err := h.auth.SetRole(t.Context(), decision.By{Operator: "tests", Note: "moved"}, byOperator.id, auth.Buyer)
	must(t, err)
	h.as(session, "GET", "/api/auth/me", "").wantFailure(t, 401, "invalid_token")

	session = h.open(h.link(seller.id), "")
	key, _, err := h.auth.RotateServiceKey(t.Context(), "tests", 0, "operator:tests") // as after a leak
	must(t, err)
	h.serviceKey = key
	h.as(session, "GET", "/api/auth/me", "").wantFailure(t, 401, "invalid_token")
	unused, session = h.link(seller.id), h.open(h.link(seller.id), "")
	_, err = h.auth.RevokeServiceKey(t.Context(), "tests", "operator:tests")
	must(t, err)
	if h.open(unused, "") != "" {
		t.Error("a link of a revoked key was opened")
	}
	h.as(session, "GET", "/api/auth/me", "").wantFailure(t, 401, "invalid_token")

	h.serviceKey, _, err = h.auth.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "short", ExpiresAt: h.clock.Now().Add(10 * time.Minute)}, "operator:tests")
	must(t, err)
	session = h.open(h.link(seller.id), "")
	h.clock.advance(9 * time.Minute)
	h.as(session, "GET", "/api/auth/me", "").want(t, 200)
	h.clock.advance(time.Minute)
	h.as(session, "GET", "/api/auth/me", "").wantFailure(t, 401, "invalid_token") // its key expired
}

// TestSessionLink_Tampered has a link that was pointed at another seller in the database.
func TestSessionLink_Tampered(t *testing.T) {
	h := openFixture(t)
	h.newSeller("17")
	victim := h.newSeller("18")
	path := h.link("ext:17")
	h.place.ByHand(t, `UPDATE session_links SET user_id = '`+victim.id+`'`)
	if h.open(path, "") != "" {
		t.Error("the link signed another seller in")
	}
}

// TestSessionLink_AtOnce opens one link several times at once.
func TestSessionLink_AtOnce(t *testing.T) {
	h := openFixture(t)
	h.newSeller("17")
	path := h.link("ext:17")
	var opened atomic.Int64
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.server.URL+path, http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			response, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Error(err)
				return
			}
			if response.Header.Get("Set-Cookie") != "" {
				opened.Add(1)
			}
			_ = response.Body.Close()
		})
	}
	all.Wait()
	if opened.Load() != 1 {
		t.Errorf("one link was opened %d times", opened.Load())
	}
}
