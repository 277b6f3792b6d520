package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/api"
	"bursar/internal/auth"
	"bursar/internal/fault"
)

// scripted is a provider that says what a test has it say.
type scripted struct {
	says     auth.Identity
	fails    error
	begun    atomic.Int64
	finished atomic.Int64
	deadline time.Duration // that the callback had
}

func (s *scripted) Label() string { return "Scripted" }

func (s *scripted) Issuer() string { return "https://a.example" }

func (s *scripted) Begin(_ context.Context, r auth.ProviderRequest) (string, error) {
	s.begun.Add(1)
	return "https://a.example/authorize?state=" + r.State, s.fails
}

func (s *scripted) Finish(ctx context.Context, _ auth.ProviderRequest, _ url.Values) (auth.Identity, error) {
	s.finished.Add(1)
	if at, ok := ctx.Deadline(); ok {
		s.deadline = time.Until(at)
	}
	return s.says, s.fails
}

// openStreet is a house with a provider, through which Asha comes.
func openStreet(t *testing.T, changes ...change) (*fixture, *scripted) {
	t.Helper()
	h := openFixture(t, changes...)
	p := &scripted{says: auth.Identity{Issuer: "https://a.example", Subject: "7", Email: "asha@example.com", EmailVerified: true, Name: "Asha"}}
	h.providers[auth.ProviderA], h.providers[auth.ProviderB] = p, p
	return h, p
}

// browser keeps cookies, and follows no redirect by itself.
type browser struct {
	h       *fixture
	cookies map[string]*http.Cookie
	host    string // as it is typed, where that is not the house's own
	secure  bool
	twice   bool // it sends each cookie twice, as when a sibling domain set one of the name
}

func (h *fixture) browser() *browser { return &browser{h: h, cookies: map[string]*http.Cookie{}} }

func (b *browser) ask(method, path string) answer {
	b.h.t.Helper()
	r, err := http.NewRequestWithContext(b.h.t.Context(), method, b.h.server.URL+path, nil)
	must(b.h.t, err)
	r.Host = b.host
	r.Header.Set("User-Agent", "Browser/1.0")
	for _, c := range b.cookies {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		if b.twice {
			r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
	}
	a := b.h.send(r, "")
	response := http.Response{Header: a.header}
	for _, c := range response.Cookies() {
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Secure != b.secure || c.Domain != "" {
			b.h.t.Errorf("cookie %s", c)
		}
		b.cookies[c.Name] = c
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return a
}

func (b *browser) get(path string) answer {
	b.h.t.Helper()
	return b.ask(http.MethodGet, path)
}

// named lists the names of the browser's cookies that begin so, oldest first.
func (b *browser) named(prefix string) []string {
	var names []string
	for name := range b.cookies {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// begin starts a sign-in and returns the path of the callback that ends it.
func (b *browser) begin(path string) string {
	b.h.t.Helper()
	a := b.get(path).want(b.h.t, 302)
	to, err := url.Parse(a.header.Get("Location"))
	must(b.h.t, err)
	if to.Host != "a.example" {
		b.h.t.Fatalf("sent to %s", to)
	}
	start, _, _ := strings.Cut(path, "?")
	return start + "/callback?code=the-code&" + to.RawQuery
}

// wantSentTo fails the test unless the answer sends the browser there.
func (a answer) wantSentTo(t *testing.T, to string) answer {
	t.Helper()
	a.want(t, 303)
	if got := a.header.Get("Location"); got != to {
		t.Errorf("sent to %s, want %s", got, to)
	}
	return a
}

// wantProblem fails the test unless the answer sends the browser to the sign-in page with that reason.
func (a answer) wantProblem(t *testing.T, problem *fault.Error, redirect string) {
	t.Helper()
	query := url.Values{"error": {problem.Message}}
	if redirect != "" {
		query.Set("redirect", redirect)
	}
	if !auth.IsSignInProblem(problem.Message) {
		t.Errorf("%v would not be shown", problem)
	}
	a.wantSentTo(t, "/login?"+query.Encode())
}

const flowCookie = "bursar-sign-in-"

func TestSignInThroughAProvider(t *testing.T) {
	h, p := openStreet(t)
	b := h.browser()
	start := b.get("/api/auth/provider-a?redirect=/payouts%3Fpage=2&role=seller").want(t, 302)
	flows := b.named(flowCookie)
	if len(flows) != 1 || b.cookies[flows[0]].MaxAge != 600 || len(b.cookies) != 1 {
		t.Fatalf("cookies %v", b.cookies)
	}
	to, err := url.Parse(start.header.Get("Location"))
	must(t, err)
	end := b.get("/api/auth/provider-a/callback?code=the-code&"+to.RawQuery).wantSentTo(t, "/payouts?page=2")
	for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"} {
		if start.header.Get(name) != want || end.header.Get(name) != want {
			t.Errorf("%s: %q and %q", name, start.header.Get(name), end.header.Get(name))
		}
	}
	if names := b.named(""); len(names) != 2 || len(b.named("bursar-device-")) != 1 || b.cookies["bursar"].MaxAge != 7*24*60*60 {
		t.Fatalf("cookies %v", b.cookies)
	}
	me := b.get("/api/auth/me").want(t, 200)
	if me.text(t, "data.user.email") != "asha@example.com" || me.text(t, "data.user.role") != "seller" || me.read(t, "data.user.isVerified") != true {
		t.Errorf("signed in as %s", me.body)
	}
	sessions, err := h.auth.Sessions(t.Context(), auth.Principal{UserID: me.text(t, "data.user.id")})
	if err != nil || len(sessions) != 1 || sessions[0].Agent != "Browser/1.0" || sessions[0].Address != "127.0.0.1" {
		t.Errorf("sessions %+v, %v", sessions, err)
	}
	if p.deadline < 10*time.Second || p.deadline > 15*time.Second {
		t.Errorf("the provider has %v", p.deadline)
	}
	if again := b.get(b.begin("/api/auth/provider-b")); again.header.Get("Location") != "/dashboard" {
		t.Errorf("by default sent to %s", again.header.Get("Location"))
	}
	log := h.log.String()
	for _, secret := range []string{"the-code", to.Query().Get("state"), b.cookies["bursar"].Value, "page=2"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %.20s", secret)
		}
	}
}

func TestProviderStart_InvalidQuery_Refused(t *testing.T) {
	h, p := openStreet(t)
	tests := map[string]struct {
		query  string
		fields []string
	}{
		"another site":          {"redirect=//evil.example", []string{"redirect"}},
		"a backslash":           {"redirect=/%5Cevil.example", []string{"redirect"}},
		"a whole address":       {"redirect=https://evil.example/", []string{"redirect"}},
		"a script":              {"redirect=javascript:alert(1)", []string{"redirect"}},
		"a line break":          {"redirect=/%0d%0aSet-Cookie:%20bursar=x", []string{"redirect"}},
		"an encoded line break": {"redirect=/%250d%250a", []string{"redirect"}},
		"the API":               {"redirect=/api/auth/logout", []string{"redirect"}},
		"nowhere":               {"redirect=", []string{"redirect"}},
		"two places":            {"redirect=/a&redirect=/b", []string{"redirect"}},
		"admin":                 {"role=admin", []string{"role"}},
		"another case":          {"role=Seller", []string{"role"}},
		"no role":               {"role=", []string{"role"}},
		"two roles":             {"role=buyer&role=seller", []string{"role"}},
		"both":                  {"role=admin&redirect=x", []string{"role", "redirect"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := h.do(call{method: "GET", path: "/api/auth/provider-a?" + test.query})
			a.wantFailure(t, 422, "validation_failed", test.fields...)
			if len(a.header.Values("Set-Cookie")) > 0 {
				t.Error("a cookie was set")
			}
		})
	}
	h.do(call{method: "GET", path: "/api/auth/provider-a?redirect=%zz"}).wantFailure(t, 400, "invalid_query")
	h.do(call{method: "GET", path: "/api/auth/provider-c"}).wantFailure(t, 404, "not_found")
	delete(h.providers, auth.ProviderB)
	h.do(call{method: "GET", path: "/api/auth/provider-b?role=admin"}).wantFailure(t, 404, "provider_not_configured")
	h.do(call{method: "GET", path: "/api/auth/provider-b/callback"}).wantFailure(t, 404, "provider_not_configured")
	if p.begun.Load() != 0 {
		t.Error("a sign-in was begun")
	}
}

func TestProviderSignIn_TwoTabsAtOnce(t *testing.T) {
	h, _ := openStreet(t)
	b := h.browser()
	first := b.begin("/api/auth/provider-a?redirect=/first")
	second := b.begin("/api/auth/provider-b?redirect=/second")
	b.get(first).wantSentTo(t, "/first")
	b.get(second).wantSentTo(t, "/second")
	b.get("/api/auth/me").want(t, 200)
}

func TestProviderStart_BoundsUnfinishedCookies(t *testing.T) {
	h, _ := openStreet(t)
	b := h.browser()
	var ends []string
	for range 12 {
		h.clock.advance(time.Second)
		ends = append(ends, b.begin("/api/auth/provider-a"))
		if n := len(b.named(flowCookie)); n > 5 {
			t.Fatalf("%d cookies", n)
		}
	}
	b.get(ends[0]).wantProblem(t, auth.ErrSignInExpired, "")
	b.get(ends[8]).wantSentTo(t, "/dashboard")
	b.get(ends[11]).wantSentTo(t, "/dashboard")

	b.cookies = map[string]*http.Cookie{} // a browser that was never tidied
	for i := range 20 {
		b.cookies[fmt.Sprint(flowCookie, 100+i)] = &http.Cookie{Name: fmt.Sprint(flowCookie, 100+i), Value: "x"}
	}
	if a := b.get("/api/auth/provider-a"); len(a.header.Values("Set-Cookie")) != 9 {
		t.Errorf("%d cookies are set", len(a.header.Values("Set-Cookie")))
	}
}

func TestProviderCallback_InvalidOrExpired_Refused(t *testing.T) {
	h, p := openStreet(t)
	tests := map[string]struct {
		do       func(b *browser, end string) answer
		redirect string
		keeps    int // cookies of sign-ins
	}{
		"another browser":   {func(_ *browser, end string) answer { return h.browser().get(end) }, "", 1},
		"another provider":  {func(b *browser, end string) answer { return b.get(strings.Replace(end, "provider-a", "provider-b", 1)) }, "/payouts", 0},
		"no state":          {func(b *browser, _ string) answer { return b.get("/api/auth/provider-a/callback?code=x") }, "", 1},
		"a made-up state":   {func(b *browser, _ string) answer { return b.get("/api/auth/provider-a/callback?code=x&state=x.y") }, "", 1},
		"another's state":   {func(b *browser, _ string) answer { return b.get(h.browser().begin("/api/auth/provider-a")) }, "", 1},
		"a changed state":   {func(b *browser, end string) answer { return b.get(end[:len(end)-2] + "zz") }, "/payouts", 0},
		"two states":        {func(b *browser, end string) answer { return b.get(end + "&state=x") }, "", 0},
		"a cookie, doubled": {func(b *browser, end string) answer { b.twice = true; return b.get(end) }, "", 0},
		"too late":          {func(b *browser, end string) answer { h.clock.advance(10 * time.Minute); return b.get(end) }, "/payouts", 0},
		"used already": {func(b *browser, end string) answer {
			flow := b.named(flowCookie)[0]
			kept := b.cookies[flow]
			b.get(end).wantSentTo(t, "/payouts")
			p.finished.Add(-1)
			delete(b.cookies, "bursar")
			b.cookies[flow] = kept
			return b.get(end)
		}, "/payouts", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := h.browser()
			a := test.do(b, b.begin("/api/auth/provider-a?redirect=/payouts"))
			a.wantProblem(t, auth.ErrSignInExpired, test.redirect)
			if _, in := b.cookies["bursar"]; in || len(b.named(flowCookie)) != test.keeps {
				t.Errorf("cookies %v", b.cookies)
			}
		})
	}
	if p.finished.Load() != 0 {
		t.Error("the provider was asked")
	}
	if log := h.log.String(); !strings.Contains(log, `"level":"INFO","msg":"sign-in through a provider failed","provider":"provider-a","code":"sign_in_expired","cause":"it took too long"`) {
		t.Errorf("log %s", log)
	}
}

func TestProviderSignIn_Failure_ShownAndLogged(t *testing.T) {
	tests := map[string]struct {
		err   error
		told  *fault.Error
		level string
	}{
		"denied":      {auth.ErrProviderDenied.Because(errors.New("access_denied")), auth.ErrProviderDenied, "INFO"},
		"no proof":    {auth.ErrProviderAnswer.Because(errors.New("wrong nonce")), auth.ErrProviderAnswer, "WARN"},
		"unavailable": {auth.ErrProviderUnavailable.Because(errors.New("refused")), auth.ErrProviderUnavailable, "WARN"},
		"a bug":       {errors.New("a secret that nobody must see"), auth.ErrSignInFailed, "ERROR"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h, p := openStreet(t)
			b := h.browser()
			end := b.begin("/api/auth/provider-a?redirect=/payouts")
			p.fails = test.err
			b.get(end).wantProblem(t, test.told, "/payouts")
			if len(b.cookies) != 0 {
				t.Errorf("cookies %v", b.cookies)
			}
			if n := strings.Count(h.log.String(), `"level":"`+test.level+`","msg":"sign-in through a provider failed"`); n != 1 {
				t.Errorf("%d lines at %s:\n%s", n, test.level, h.log)
			}
			b.get("/api/auth/provider-a?redirect=/payouts&role=seller").wantProblem(t, test.told, "/payouts")
			if len(b.cookies) != 0 {
				t.Errorf("cookies %v", b.cookies)
			}
		})
	}
	h, p := openStreet(t)
	p.says.Email = ""
	b := h.browser()
	b.get(b.begin("/api/auth/provider-a")).wantProblem(t, auth.ErrEmailMissing, "")
}

func TestProviderSignIn_HEAD_Refused(t *testing.T) {
	h, p := openStreet(t)
	b := h.browser()
	if a := b.ask(http.MethodHead, "/api/auth/provider-a").want(t, 405); a.header.Get("Allow") != "GET" || len(b.cookies) != 0 {
		t.Errorf("%v, cookies %v", a.header, b.cookies)
	}
	begun := p.begun.Load()
	end := b.begin("/api/auth/provider-a")
	b.ask(http.MethodHead, end).want(t, 405)
	if begun != 0 || p.finished.Load() != 0 || len(b.named(flowCookie)) != 1 {
		t.Errorf("begun %d, ended %d, cookies %v", begun, p.finished.Load(), b.cookies)
	}
	h.do(call{method: "POST", path: "/api/auth/provider-a"}).wantFailure(t, 405, "method_not_allowed")
	b.get(end).wantSentTo(t, "/dashboard")
}

func TestProviderCallback_EndsBrowsersPreviousSession(t *testing.T) {
	h, p := openStreet(t)
	b := h.browser()
	b.get(b.begin("/api/auth/provider-a"))
	asha := b.cookies["bursar"].Value
	fixed := h.signUp("Mallory", auth.Seller) // whose cookie was put into the browser
	b.cookies["bursar"].Value = fixed.token
	b.get(b.begin("/api/auth/provider-a"))
	if now := b.cookies["bursar"].Value; now == fixed.token || now == asha {
		t.Error("the cookie was not replaced")
	}
	h.do(call{method: "GET", path: "/api/auth/me", token: fixed.token}).wantFailure(t, 401, "invalid_token")
	h.do(call{method: "GET", path: "/api/auth/me", token: asha}).want(t, 200) // of no browser that came back

	p.fails = auth.ErrProviderUnavailable
	b.get("/api/auth/provider-a")
	b.get("/api/auth/me").want(t, 200) // a failure signs nobody out
}

func TestCookiesUnderHTTPS(t *testing.T) {
	h, _ := openStreet(t, func(o *api.Options) { o.BaseURL = &url.URL{Scheme: "https", Host: "pay.example"} })
	b := h.browser()
	b.secure = true
	end := b.begin("/api/auth/provider-a")
	if len(b.named("__Host-"+flowCookie)) != 1 || len(b.cookies) != 1 {
		t.Fatalf("cookies %v", b.cookies)
	}
	sibling := h.browser() // what a sibling domain can set has another name
	for name, c := range b.cookies {
		sibling.cookies["x"] = &http.Cookie{Name: strings.TrimPrefix(name, "__Host-"), Value: c.Value}
	}
	sibling.get(end).wantProblem(t, auth.ErrSignInExpired, "")
	b.get(end).wantSentTo(t, "/dashboard")
	if names := b.named(""); len(names) != 2 || len(b.named("__Host-bursar-device-")) != 1 || b.cookies["__Host-bursar"] == nil {
		t.Errorf("cookies %v", b.cookies)
	}
}

// Cookies belong to a host name, and the provider sends the browser back to that of the origin.
func TestProviderStart_OtherLoopbackName_MovesToOrigin(t *testing.T) {
	const path = "/api/auth/provider-a?redirect=/payouts&role=seller"
	tests := map[string]struct {
		origin, host string
		moves        bool
	}{
		"localhost":           {"http://127.0.0.1:8080", "localhost:8080", true},
		"in capitals":         {"http://127.0.0.1:8080", "LOCALHOST:8080", true},
		"by version 6":        {"http://127.0.0.1:8080", "[::1]:8080", true},
		"the other way":       {"http://localhost:8080", "127.0.0.1:8080", true},
		"on the usual port":   {"http://127.0.0.1", "localhost:80", true},
		"the origin itself":   {"http://127.0.0.1:8080", "127.0.0.1:8080", false},
		"the origin, capital": {"http://localhost:8080", "LocalHost:8080", false},
		"another port":        {"http://127.0.0.1:8080", "localhost:9090", false},
		"another machine":     {"http://127.0.0.1:8080", "pay.example:8080", false},
		"made up":             {"http://127.0.0.1:8080", "localhost.evil.example:8080", false},
		"a public origin":     {"http://pay.example", "localhost", false},
		"a secure origin":     {"https://localhost:8080", "127.0.0.1:8080", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			origin, err := url.Parse(test.origin)
			must(t, err)
			h, p := openStreet(t, func(o *api.Options) { o.BaseURL = origin })
			b := h.browser()
			b.host, b.secure = test.host, origin.Scheme == "https"
			a := b.get(path).want(t, 302)
			if moved := a.header.Get("Location") == test.origin+path; moved != test.moves {
				t.Errorf("sent to %s", a.header.Get("Location"))
			}
			if (p.begun.Load() == 0) != test.moves || (len(b.cookies) == 0) != test.moves {
				t.Errorf("begun %d times, cookies %v", p.begun.Load(), b.cookies)
			}
			b.host = origin.Host
			if a := b.get(path).want(t, 302); !strings.HasPrefix(a.header.Get("Location"), "https://a.example/") {
				t.Errorf("at the origin sent to %s", a.header.Get("Location"))
			}
		})
	}
	h, p := openStreet(t)
	b := h.browser()
	b.host = "localhost:8080"
	b.get("/api/auth/provider-a?role=admin").wantFailure(t, 422, "validation_failed", "role")
	if p.begun.Load() != 0 {
		t.Error("begun")
	}
}

func TestProviderCallback_ClientGone_LogsNoError(t *testing.T) {
	h, _ := openStreet(t)
	b := h.browser()
	end := b.begin("/api/auth/provider-a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, end, nil)
	for _, c := range b.cookies {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	a := answer{w.Code, w.Header(), w.Body.String()}.want(t, http.StatusSeeOther)
	if to := a.header.Get("Location"); !strings.HasPrefix(to, "/login?error=") || len(w.Result().Cookies()) != 1 { // the flow's end
		t.Errorf("sent to %s with the cookies %v", to, w.Result().Cookies())
	}
	if strings.Contains(h.log.String(), `"level":"ERROR"`) {
		t.Errorf("log %s", h.log.String())
	}
}
