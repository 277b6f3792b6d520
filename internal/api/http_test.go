package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"bursar/internal/api"
	"bursar/internal/auth"
	"bursar/internal/fault"
)

func TestUnknownPath_NotFound(t *testing.T) {
	h := openFixture(t)
	for _, path := range []string{
		"/api", "/api/", "/api/nothing", "/api/auth", "/api/auth/me/more", "/api/Auth/me", "/api/payouts", "/nothing",
		"//api/auth/me", "/api//auth/me", "/api/./auth/me", "/api/auth/../auth/me", "/api/auth/me//", "/metrics", "/docs/nothing",
		"/api/auth/me%2F", "/api%2Fauth%2Fme", "/%00", "/api/auth/%6De/x",
	} {
		for _, method := range []string{"GET", "POST", "DELETE", "BREW"} {
			t.Run(method+" "+path, func(t *testing.T) {
				a := h.raw(t, method, path)
				if path == "/docs/nothing" && method != "GET" {
					a.wantFailure(t, 405, "method_not_allowed")
					return
				}
				a.wantFailure(t, 404, "not_found")
				if a.header.Get("Content-Type") != "application/json" || a.header.Get("Location") != "" {
					t.Errorf("headers %v", a.header)
				}
			})
		}
	}
}

// raw sends a request to a path as it is written, where a client would tidy it.
func (h *fixture) raw(t *testing.T, method, path string, namesAndValues ...string) answer {
	t.Helper()
	u, err := url.ParseRequestURI(path)
	must(t, err)
	r := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
	r.URL, r.RequestURI = u, path
	for name, value := range header(namesAndValues...) {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

func TestMethodNotAllowed(t *testing.T) {
	h := openFixture(t)
	tests := map[string]string{ // path → Allow
		"/api/auth/register":              "POST",
		"/api/auth/me":                    "DELETE, GET, HEAD, PATCH",
		"/api/auth/sessions":              "DELETE, GET, HEAD",
		"/api/auth/sessions/ses_x":        "DELETE",
		"/api/auth/password/change":       "POST",
		"/api/auth/logout":                "POST",
		"/api/auth/export":                "GET, HEAD",
		"/api/payouts/balance":            "GET, HEAD",
		"/api/payouts/request":            "POST",
		"/api/payouts/history":            "GET, HEAD",
		"/api/payouts/pyt_x":              "GET, HEAD",
		"/api/payouts/pyt_x/cancel":       "POST",
		"/api/bank-account":               "GET, HEAD, PUT",
		"/api/marketplace/sales":          "POST",
		"/api/marketplace/sellers/x":      "GET, HEAD, PUT",
		"/api/admin/users/x/access":       "POST",
		"/api/gateway/webhooks/razorpayx": "POST",
		"/healthz":                        "GET, HEAD",
		"/openapi.json":                   "GET, HEAD",
		"/":                               "GET, HEAD",
	}
	for path, allow := range tests {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if strings.Contains(allow, method) {
				continue
			}
			t.Run(method+" "+path, func(t *testing.T) {
				a := h.do(call{method: method, path: path})
				a.wantFailure(t, 405, "method_not_allowed")
				if got := a.header.Get("Allow"); got != allow {
					t.Errorf("Allow %q, want %q", got, allow)
				}
			})
		}
	}
}

func TestHeadAndTrailingSlash(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	get := h.do(call{method: "GET", path: "/api/auth/me", token: seller.token}).want(t, 200)
	head := h.do(call{method: "HEAD", path: "/api/auth/me", token: seller.token}).want(t, 200)
	if head.body != "" || head.header.Get("Content-Length") != get.header.Get("Content-Length") {
		t.Errorf("HEAD gives %q and length %s; GET has length %s", head.body, head.header.Get("Content-Length"), get.header.Get("Content-Length"))
	}
	h.do(call{method: "HEAD", path: "/api/auth/me"}).want(t, 401)

	slashed := h.raw(t, "POST", "/api/auth/login/")
	slashed.wantFailure(t, 400, "invalid_json")
	h.raw(t, "GET", "/docs/").want(t, 200)
	h.raw(t, "PUT", "/api/auth/me/").wantFailure(t, 405, "method_not_allowed")
}

// TestEndSession_NoText names sessions by what PostgreSQL takes as no text.
func TestEndSession_NoText(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	for _, id := range []string{"%00", "a%00b", "%ff", "%ed%a0%80"} {
		h.do(call{method: "DELETE", path: "/api/auth/sessions/" + id, token: seller.token}).wantFailure(t, 404, "session_not_found")
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	h := openFixture(t)
	for _, c := range []call{
		{method: "GET", path: "/api/auth/me"},
		{method: "GET", path: "/api/nothing"},
		{method: "PUT", path: "/api/auth/me"},
		{method: "POST", path: "/api/auth/register", body: `]`},
		{method: "GET", path: "/healthz"},
		{method: "GET", path: "/docs"},
		{method: "GET", path: "/"},
		{method: "GET", path: "/.well-known/jwks.json"},
	} {
		t.Run(c.path, func(t *testing.T) {
			a := h.do(c)
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
				"Cross-Origin-Opener-Policy": "same-origin", "Strict-Transport-Security": "",
			} {
				if got := a.header.Get(name); got != want {
					t.Errorf("%s %q, want %q", name, got, want)
				}
			}
			if policy := a.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
				t.Errorf("policy %q", policy)
			}
			if policy := a.header.Get("Permissions-Policy"); !strings.Contains(policy, "camera=()") || !strings.Contains(policy, "geolocation=()") {
				t.Errorf("permissions %q", policy)
			}
			if got := a.header.Get("Cache-Control"); strings.HasPrefix(c.path, "/api") && got != "no-store" {
				t.Errorf("Cache-Control %q", got)
			}
			if len(a.header.Values("Access-Control-Allow-Origin")) > 0 {
				t.Error("another site may read this")
			}
		})
	}
}

func TestHTTPSStays(t *testing.T) {
	h := openFixture(t, func(o *api.Options) { o.BaseURL = &url.URL{Scheme: "https", Host: "pay.example"} })
	for _, path := range []string{"/api/auth/me", "/api/nothing", "/docs", "/healthz"} {
		if got := h.do(call{method: "GET", path: path}).header.Values("Strict-Transport-Security"); len(got) != 1 || got[0] != "max-age=31536000" {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestRequestID(t *testing.T) {
	h := openFixture(t)
	ask := func(id string) string {
		return h.do(call{method: "GET", path: "/api/nothing", header: header("X-Request-Id", id)}).header.Get("X-Request-Id")
	}
	for _, sane := range []string{"a", "0a1b-2c3d_4e.5f", strings.Repeat("x", 64)} {
		if got := ask(sane); got != sane {
			t.Errorf("%q became %q", sane, got)
		}
	}
	own := regexp.MustCompile(`^[0-9A-Za-z]{20}$`)
	for _, strange := range []string{"", "a b", "a\"b", "a;b", "é", strings.Repeat("x", 65)} {
		if got := ask(strange); !own.MatchString(got) {
			t.Errorf("%q became %q", strange, got)
		}
	}
	if first, second := ask(""), ask(""); first == second {
		t.Error("the same id twice")
	}
	if !strings.Contains(h.log.String(), `"request_id":"0a1b-2c3d_4e.5f"`) {
		t.Error("the log lacks the id")
	}
}

func TestPanics(t *testing.T) {
	h := openFixture(t)
	api.Panics(h.handler, "/api/panic", false)
	api.Panics(h.handler, "/api/panic-late", true)
	a := h.raw(t, "GET", "/api/panic", "X-Request-Id", "panic-1")
	a.wantFailure(t, 500, "internal_error")
	if strings.Contains(a.body, "secret") || a.header.Get("X-Request-Id") != "panic-1" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("answer %s %v", a.body, a.header)
	}
	log := h.log.String()
	if !strings.Contains(log, `"msg":"panic"`) || !strings.Contains(log, `"request_id":"panic-1"`) || !strings.Contains(log, "http_test") && !strings.Contains(log, "export_test") {
		t.Errorf("log %s", log)
	}

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.server.URL+"/api/panic-late", nil)
	must(t, err)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		_, err = io.ReadAll(response.Body)
		must(t, response.Body.Close())
	}
	if err == nil {
		t.Error("half an answer passed for a whole one")
	}
	h.do(call{method: "GET", path: "/healthz"}).want(t, 200)
}

// failing is an auth service that fails in a given way.
type failing struct {
	api.Auth
	err error
}

func (f *failing) Authenticate(context.Context, string) (auth.Principal, error) {
	return auth.Principal{}, f.err
}

func TestFailures(t *testing.T) {
	var broken failing
	h := openFixture(t, func(o *api.Options) {
		broken.Auth = o.Auth
		o.Auth = &broken
	})
	const secret = "pq: password authentication failed"
	tests := map[string]struct {
		err        error
		status     int
		code       string
		retryAfter string
	}{
		"unknown":           {errors.New(secret), 500, "internal_error", ""},
		"wrapped":           {fmt.Errorf("read: %w", errors.New(secret)), 500, "internal_error", ""},
		"known, wrapped":    {fmt.Errorf("%s: %w", secret, auth.ErrToken), 401, "invalid_token", ""},
		"busy":              {auth.ErrBusy.Because(errors.New(secret)), 503, "busy", "1"},
		"busy for a while":  {auth.ErrBusy.After(1500 * time.Millisecond), 503, "busy", "2"},
		"too many":          {auth.ErrThrottled.After(time.Minute), 429, "too_many_attempts", "60"},
		"too many, nearly":  {auth.ErrThrottled.After(59*time.Second + time.Nanosecond), 429, "too_many_attempts", "60"},
		"a kind of nothing": {fault.New(0, "odd", "Odd."), 500, "odd", ""},
		"a conflict":        {fault.New(fault.Conflict, "odd", "Odd."), 409, "odd", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			broken.err = test.err
			id := strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")
			h.raw(t, "GET", "/api/auth/me").wantFailure(t, 401, "invalid_token") // without a token, auth is not asked
			a := h.raw(t, "GET", "/api/auth/me", "Authorization", "Bearer x", "X-Request-Id", id)
			a.wantFailure(t, test.status, test.code)
			if strings.Contains(a.body, secret) {
				t.Errorf("the caller is told %s", a.body)
			}
			if got := a.header.Get("Retry-After"); got != test.retryAfter {
				t.Errorf("Retry-After %q, want %q", got, test.retryAfter)
			}
			why := regexp.MustCompile(`"msg":"request failed","error":"[^"]*` + secret + `","request_id":"` + id + `"`)
			if logged := why.MatchString(h.log.String()); logged != (test.code == "internal_error") {
				t.Errorf("that the log says why is %v", logged)
			}
		})
	}
}

func TestClientGone_LogsNoError(t *testing.T) {
	h := openFixture(t, func(o *api.Options) { o.Auth = &failing{o.Auth, context.Canceled} })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/auth/me", nil)
	r.Header.Set("Authorization", "Bearer x")
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	answer{w.Code, w.Header(), w.Body.String()}.wantFailure(t, 503, "timeout")
	if strings.Contains(h.log.String(), `"level":"ERROR"`) {
		t.Errorf("log %s", h.log.String())
	}
}

func TestAccessLog(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.do(call{method: "GET", path: "/api/auth/me?token=query-secret", token: seller.token}).want(t, 200)
	h.do(call{method: "GET", path: "/api/payouts/pyt_x", token: seller.token}).want(t, 404)
	h.do(call{method: "GET", path: "/api/" + strings.Repeat("long", 1000)}).want(t, 404)

	log := h.log.String()
	for _, want := range []string{
		`"level":"DEBUG","msg":"request","method":"GET","route":"/api/auth/me","path":"/api/auth/me","status":200`,
		`"level":"INFO","msg":"request","method":"POST","route":"/api/auth/register"`,
		`"level":"INFO","msg":"request","method":"GET","route":"/api/payouts/{payoutId}","path":"/api/payouts/pyt_x","status":404`,
		`"level":"INFO","msg":"request","method":"GET","route":"","path":"/api/longlong`,
		`"caller":"` + seller.id + `"`,
		`"client":"127.0.0.1"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	for _, secret := range []string{"query-secret", seller.token, seller.refreshToken, password, h.serviceKey, strings.Repeat("long", 100)} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %.40s", secret)
		}
	}
}

func TestAccessLog_TookInMilliseconds(t *testing.T) {
	var h *fixture
	h = openFixture(t, func(o *api.Options) {
		o.Now = func() time.Time {
			h.clock.advance(12_345_678 * time.Nanosecond)
			return h.clock.Now()
		}
	})
	h.do(call{method: "GET", path: "/api/nothing"}).want(t, 404)
	if want := `"took_ms":12.345,`; !strings.Contains(h.log.String(), want) {
		t.Errorf("the log lacks %s:\n%s", want, h.log)
	}
}

// scrape is the metrics as Prometheus reads them.
func (h *fixture) scrape(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.metrics.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	h := openFixture(t)
	for _, path := range []string{"/api/payouts/pyt_a", "/api/payouts/pyt_b", "/made/up", "/api/auth/me"} {
		h.do(call{method: "GET", path: path})
	}
	metrics := h.scrape(t)
	for _, want := range []string{
		`bursar_http_requests_total{method="GET",route="/api/payouts/{payoutId}",status="4xx"} 2`,
		`bursar_http_requests_total{method="GET",route="none",status="4xx"} 1`,
		`bursar_http_requests_total{method="GET",route="/api/auth/me",status="4xx"} 1`,
		`bursar_http_requests_in_flight 0`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(metrics, "pyt_a") || strings.Contains(metrics, "/made") {
		t.Error("a path became a label")
	}
}

func TestClientAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	tests := map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"no proxy":                {"203.0.113.7:1234", nil, "203.0.113.7"},
		"no proxy, made up":       {"203.0.113.7:1234", []string{"1.1.1.1"}, "203.0.113.7"},
		"one proxy":               {"10.0.0.1:1234", []string{"203.0.113.7"}, "203.0.113.7"},
		"one proxy, made up":      {"10.0.0.1:1234", []string{"1.1.1.1, 203.0.113.7"}, "203.0.113.7"},
		"two proxies":             {"10.0.0.1:1234", []string{"1.1.1.1, 203.0.113.7, 10.0.0.2"}, "203.0.113.7"},
		"two headers":             {"10.0.0.1:1234", []string{"1.1.1.1", "203.0.113.7"}, "203.0.113.7"},
		"a proxy alone":           {"10.0.0.1:1234", nil, "10.0.0.1"},
		"a proxy without address": {"10.0.0.1:1234", []string{"unknown"}, "10.0.0.1"},
		"nonsense further left":   {"10.0.0.1:1234", []string{"nonsense, 10.0.0.2"}, "10.0.0.2"},
		"version 6":               {"[fd00::1]:1234", []string{"2001:db8::1"}, "2001:db8::1"},
		"version 4 in 6":          {"[::ffff:10.0.0.1]:1234", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
	}
	h := openFixture(t, func(o *api.Options) { o.TrustedProxies = trusted })
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)
			r.RemoteAddr = test.peer
			r.Header["X-Forwarded-For"] = test.forwarded
			id := strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")
			r.Header.Set("X-Request-Id", id)
			h.handler.ServeHTTP(httptest.NewRecorder(), r)
			if want := `"client":"` + test.want + `","request_id":"` + id + `"`; !strings.Contains(h.log.String(), want) {
				t.Errorf("the log lacks %s", want)
			}
		})
	}
}

// behind is a payout service whose gateway has not told yet what it knows.
type behind struct{ api.Payouts }

func (behind) StartupReconciled() bool { return false }

func TestReadyz_SaysPayoutsAreNotSent(t *testing.T) {
	h := openFixture(t, func(o *api.Options) { o.Payouts = behind{o.Payouts} })
	if body := h.do(call{method: "GET", path: "/readyz"}).want(t, 200).body; !strings.Contains(body, "no payout is sent") {
		t.Error(body)
	}
}

func TestProbesAndKeys(t *testing.T) {
	h := openFixture(t)
	h.do(call{method: "GET", path: "/healthz"}).want(t, 200).wantBody(t, `{"success":true,"message":"ok"}`)
	h.do(call{method: "GET", path: "/readyz"}).want(t, 200).wantBody(t, `{"success":true,"message":"ready"}`)
	h.draining = true
	h.do(call{method: "GET", path: "/readyz"}).wantFailure(t, 503, "draining")
	h.do(call{method: "GET", path: "/healthz"}).want(t, 200)
	h.draining, h.pingError = false, errors.New("disk on fire")
	if f := h.do(call{method: "GET", path: "/readyz"}).wantFailure(t, 503, "database_unavailable"); strings.Contains(f.Error, "fire") {
		t.Errorf("tells %s", f.Error)
	}
	h.do(call{method: "GET", path: "/healthz"}).want(t, 200)

	keys := h.do(call{method: "GET", path: "/.well-known/jwks.json"}).want(t, 200)
	if keys.header.Get("Content-Type") != "application/jwk-set+json" || keys.header.Get("Cache-Control") != "public, max-age=300" {
		t.Errorf("headers %v", keys.header)
	}
	if keys.text(t, "keys.0.crv") != "Ed25519" || strings.Contains(keys.body, `"d":`) {
		t.Errorf("keys %s", keys.body)
	}
}

func TestNew_RefusesIncompleteOptions(t *testing.T) {
	breaks := map[string]func(*api.Options){
		"no auth":        func(o *api.Options) { o.Auth = nil },
		"no bank":        func(o *api.Options) { o.Bank = nil },
		"no sales":       func(o *api.Options) { o.Sales = nil },
		"no payouts":     func(o *api.Options) { o.Payouts = nil },
		"no webhooks":    func(o *api.Options) { o.Webhooks = nil },
		"no address":     func(o *api.Options) { o.BaseURL = nil },
		"another scheme": func(o *api.Options) { o.BaseURL.Scheme = "ftp" },
		"no probe":       func(o *api.Options) { o.Ping = nil },
		"no draining":    func(o *api.Options) { o.Draining = nil },
		"no clock":       func(o *api.Options) { o.Now = nil },
		"no logger":      func(o *api.Options) { o.Logger = nil },
		"no metrics":     func(o *api.Options) { o.Metrics = nil },
	}
	var good api.Options
	openFixture(t, func(o *api.Options) { good = *o })
	for name, breakIt := range breaks {
		t.Run(name, func(t *testing.T) {
			broken := good
			address := *good.BaseURL
			broken.BaseURL = &address
			breakIt(&broken)
			if _, err := api.New(broken); err == nil {
				t.Error("accepted")
			}
		})
	}
}
