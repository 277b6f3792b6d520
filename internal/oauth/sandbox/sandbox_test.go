package sandbox_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"bursar/internal/oauth/sandbox"
)

const (
	verifier     = "a-verifier-of-forty-three-characters-or-more"
	clientSecret = "hush: %/+&"
)

// fixture is a provider that answers, and its client.
type fixture struct {
	t        *testing.T
	provider *sandbox.Provider
	issuer   string
	config   oauth2.Config
	mu       sync.Mutex
	now      time.Time
}

func newPlace(t *testing.T) *fixture {
	t.Helper()
	p := &fixture{t: t, now: time.Now()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.provider.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	p.issuer = server.URL + "/sandbox/identity/a"
	p.config = oauth2.Config{
		ClientID: "bursar", ClientSecret: clientSecret, RedirectURL: "http://127.0.0.1:8080/callback", Scopes: []string{"openid", "email", "profile"},
		Endpoint: oauth2.Endpoint{AuthURL: p.issuer + "/authorize", TokenURL: p.issuer + "/token", AuthStyle: oauth2.AuthStyleInHeader},
	}
	p.restart()
	return p
}

// restart begins anew with nothing of before.
func (p *fixture) restart() {
	p.t.Helper()
	provider, err := sandbox.New(sandbox.Options{
		Label: "Sandbox A", Issuer: p.issuer, ClientID: "bursar", ClientSecret: clientSecret, RedirectURL: p.config.RedirectURL,
		Now: func() time.Time {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.now
		},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.provider = provider
}

func (p *fixture) advance(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(d)
}

// asked is what the client asks for, changed by a test.
func (p *fixture) asked(change ...func(url.Values)) url.Values {
	p.t.Helper()
	u, err := url.Parse(p.config.AuthCodeURL("state-1", oauth2.S256ChallengeOption(verifier), oidc.Nonce("nonce-1")))
	if err != nil {
		p.t.Fatal(err)
	}
	values := u.Query()
	for _, c := range change {
		c(values)
	}
	return values
}

func (p *fixture) do(method, path, body string, header ...string) (int, http.Header, string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.issuer+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

// decide answers the consent page, and returns what the client is told.
func (p *fixture) decide(typed url.Values, change ...func(url.Values)) url.Values {
	p.t.Helper()
	form := p.asked(change...)
	maps.Copy(form, typed)
	status, header, body := p.do(http.MethodPost, "/authorize", form.Encode())
	to, err := url.Parse(header.Get("Location"))
	if err != nil || status != http.StatusSeeOther || !strings.HasPrefix(to.String(), p.config.RedirectURL+"?") {
		p.t.Fatalf("the decision is answered with %d %s %s", status, to, body)
	}
	return to.Query()
}

func asha() url.Values { return url.Values{"person": {"asha@example.com"}} }

// exchange gets the claims for a code, as any client of OpenID Connect would.
func (p *fixture) exchange(code string, options ...oauth2.AuthCodeOption) (map[string]any, *oauth2.Token, error) {
	p.t.Helper()
	provider, err := oidc.NewProvider(p.t.Context(), p.issuer)
	if err != nil {
		p.t.Fatal(err)
	}
	token, err := p.config.Exchange(p.t.Context(), code, append([]oauth2.AuthCodeOption{oauth2.VerifierOption(verifier)}, options...)...)
	if err != nil {
		return nil, nil, err
	}
	raw, _ := token.Extra("id_token").(string)
	proven, err := provider.Verifier(&oidc.Config{ClientID: "bursar", Now: func() time.Time { return p.now }}).Verify(p.t.Context(), raw)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := proven.VerifyAccessToken(token.AccessToken); err != nil {
		p.t.Error(err)
	}
	var claims map[string]any
	if err := proven.Claims(&claims); err != nil {
		p.t.Fatal(err)
	}
	return claims, token, nil
}

func TestSignIn_IDTokenAndUserinfo(t *testing.T) {
	p := newPlace(t)
	answer := p.decide(url.Values{"name": {"Zoë Example"}, "email": {"Zoe@example.com"}})
	if answer.Get("state") != "state-1" || answer.Get("iss") != p.issuer {
		t.Errorf("the answer is %v", answer)
	}
	claims, token, err := p.exchange(answer.Get("code"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{"name": "Zoë Example", "email": "Zoe@example.com", "email_verified": false, "nonce": "nonce-1", "iss": p.issuer} {
		if claims[name] != want {
			t.Errorf("%s is %v, want %v", name, claims[name], want)
		}
	}
	status, _, body := p.do(http.MethodGet, "/userinfo", "", "Authorization", "Bearer "+token.AccessToken)
	var told map[string]any
	if err := json.Unmarshal([]byte(body), &told); err != nil || status != http.StatusOK || told["sub"] != claims["sub"] || told["email"] != "Zoe@example.com" {
		t.Errorf("userinfo says %d %s", status, body)
	}
	p.advance(time.Hour)
	if status, _, _ := p.do(http.MethodGet, "/userinfo", "", "Authorization", "Bearer "+token.AccessToken); status != http.StatusUnauthorized {
		t.Errorf("an old access token is answered with %d", status)
	}
}

func TestSubject_StableAcrossRestart(t *testing.T) {
	p := newPlace(t)
	before, _, err := p.exchange(p.decide(asha()).Get("code"))
	if err != nil {
		t.Fatal(err)
	}
	p.restart()
	after, _, err := p.exchange(p.decide(url.Values{"name": {"A. Rao"}, "email": {"ASHA@example.com"}, "verified": {"yes"}}).Get("code"))
	if err != nil || after["sub"] != before["sub"] || after["email_verified"] != true {
		t.Errorf("%v came back as %v (%v)", before, after, err)
	}
	ravi, _, err := p.exchange(p.decide(url.Values{"person": {"ravi@example.com"}}).Get("code"))
	if err != nil || ravi["sub"] == before["sub"] {
		t.Errorf("two people have one subject: %v (%v)", ravi, err)
	}
}

func TestScope_OnlyOpenID_HidesProfile(t *testing.T) {
	p := newPlace(t)
	claims, _, err := p.exchange(p.decide(asha(), func(v url.Values) { v.Set("scope", "openid") }).Get("code"))
	if err != nil || claims["email"] != nil || claims["name"] != nil || claims["sub"] == nil {
		t.Errorf("%v, %v", claims, err)
	}
}

func TestCode_UsedExpiredOrForeign_Refused(t *testing.T) {
	p := newPlace(t)
	refused := func(what, code, want string, options ...oauth2.AuthCodeOption) {
		t.Helper()
		if _, _, err := p.exchange(code, options...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	code := p.decide(asha()).Get("code")
	if _, _, err := p.exchange(code); err != nil {
		t.Fatal(err)
	}
	refused("a used code", code, "invalid_grant")
	refused("a made-up code", "made-up", "invalid_grant")

	code = p.decide(asha()).Get("code")
	p.advance(2 * time.Minute)
	refused("an old code", code, "invalid_grant")

	refused("another verifier", p.decide(asha()).Get("code"), "invalid_grant", oauth2.VerifierOption(verifier+"x"))
	refused("no verifier", p.decide(asha()).Get("code"), "invalid_grant", oauth2.SetAuthURLParam("code_verifier", ""))
	refused("another address", p.decide(asha()).Get("code"), "invalid_grant", oauth2.SetAuthURLParam("redirect_uri", "http://127.0.0.1:1/"))

	code = p.decide(asha()).Get("code")
	p.config.ClientSecret = "other"
	refused("another secret", code, "invalid_client")
	p.config.ClientSecret, p.config.Endpoint.AuthStyle = clientSecret, oauth2.AuthStyleInParams
	if _, _, err := p.exchange(code); err != nil {
		t.Errorf("the secret in the body: %v", err)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	p := newPlace(t)
	set := func(name string, values ...string) func(url.Values) { return func(v url.Values) { v[name] = values } }
	for name, tt := range map[string]struct {
		change func(url.Values)
		want   string
	}{
		"no challenge":      {set("code_challenge"), "invalid_request"},
		"a plain challenge": {set("code_challenge_method", "plain"), "invalid_request"},
		"half a challenge":  {set("code_challenge", "short"), "invalid_request"},
		"a token at once":   {set("response_type", "token"), "unsupported_response_type"},
		"without openid":    {set("scope", "email"), "invalid_scope"},
		"two states":        {set("state", "a", "b"), "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			status, header, _ := p.do(http.MethodGet, "/authorize?"+p.asked(tt.change).Encode(), "")
			to, err := url.Parse(header.Get("Location"))
			if err != nil || status != http.StatusSeeOther || to.Query().Get("error") != tt.want || to.Query().Get("iss") != p.issuer || to.Query().Has("code") {
				t.Errorf("answered with %d %s, want %s", status, to, tt.want)
			}
			if got := p.decide(asha(), tt.change); got.Get("error") != tt.want || got.Has("code") {
				t.Errorf("the form is answered with %v", got)
			}
		})
	}
	for name, change := range map[string]func(url.Values){
		"another client":     set("client_id", "other"),
		"another address":    set("redirect_uri", "https://evil.example/"),
		"an address further": set("redirect_uri", p.config.RedirectURL+"/.."),
	} {
		t.Run(name, func(t *testing.T) {
			values := p.asked(change).Encode()
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				path, body := "/authorize?"+values, ""
				if method == http.MethodPost {
					path, body = "/authorize", values+"&person=asha%40example.com"
				}
				if status, header, _ := p.do(method, path, body); status != http.StatusBadRequest || header.Get("Location") != "" {
					t.Errorf("%s is answered with %d, to %q", method, status, header.Get("Location"))
				}
			}
		})
	}
	if got := p.decide(url.Values{"cancel": {"yes"}}); got.Get("error") != "access_denied" || got.Get("state") != "state-1" || got.Has("code") {
		t.Errorf("Cancel is answered with %v", got)
	}
}

func TestConsentPage(t *testing.T) {
	p := newPlace(t)
	status, header, body := p.do(http.MethodGet, "/authorize?"+p.asked(func(v url.Values) { v.Set("state", `"><script>`) }).Encode(), "")
	if status != http.StatusOK || strings.Contains(body, "<script>") || strings.Contains(body, "style=") {
		t.Errorf("the page is %d %s", status, body)
	}
	policy := header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "style-src 'self'", "form-action 'self' http://127.0.0.1:8080", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy is %s, and lacks %s", policy, want)
		}
	}
	if status, header, _ := p.do(http.MethodGet, "/style.css", ""); status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/css") {
		t.Errorf("the style is %d %v", status, header)
	}

	form := p.asked()
	form.Set("name", "<i>"+strings.Repeat("x", 100))
	form.Set("email", "Asha <asha@example.com>")
	status, _, body = p.do(http.MethodPost, "/authorize", form.Encode())
	if status != http.StatusUnprocessableEntity || !strings.Contains(body, `aria-describedby="name-problem"`) ||
		!strings.Contains(body, `aria-describedby="email-problem"`) || !strings.Contains(body, "&lt;i&gt;") || strings.Contains(body, " checked") {
		t.Errorf("mistakes are answered with %d %s", status, body)
	}
	form.Set("person", "asha@example.com")
	if status, _, _ := p.do(http.MethodPost, "/authorize", form.Encode(), "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
		t.Errorf("a form of another site is answered with %d", status)
	}
	if status, _, _ := p.do(http.MethodPost, "/authorize", form.Encode()+"&x="+strings.Repeat("x", 1<<20)); status != http.StatusBadRequest {
		t.Errorf("a form without end is answered with %d", status)
	}
}

func TestCode_TooManyPending_Unavailable(t *testing.T) {
	p := newPlace(t)
	answer := url.Values{}
	for range 1001 {
		answer = p.decide(asha())
	}
	if answer.Get("error") != "temporarily_unavailable" {
		t.Errorf("after a thousand codes there is %v", answer)
	}
	p.advance(2 * time.Minute)
	if answer = p.decide(asha()); answer.Get("code") == "" {
		t.Errorf("when they are old there is %v", answer)
	}
}

func TestIsLocal(t *testing.T) {
	for _, tt := range []struct {
		peer, host, header string
		want               bool
	}{
		{"127.0.0.1:5000", "127.0.0.1:8080", "", true},
		{"[::1]:5000", "localhost:8080", "", true},
		{"192.168.1.9:5000", "127.0.0.1:8080", "", false},
		{"127.0.0.1:5000", "pay.example", "", false},
		{"127.0.0.1:5000", "", "", false},
		{"127.0.0.1:5000", "localhost", "X-Forwarded-For", false},
		{"127.0.0.1:5000", "localhost", "X-Real-Ip", false},
		{"127.0.0.1:5000", "localhost", "Forwarded", false},
		{"127.0.0.1:5000", "localhost", "X-Forwarded-Port", false},
		{"127.0.0.1:5000", "localhost", "Via", false},
		{"127.0.0.1:5000", "localhost", "CF-Connecting-IP", false},
		{"127.0.0.1:5000", "localhost", "True-Client-IP", false},
		{"127.0.0.1:5000", "localhost", "X-Envoy-External-Address", false},
		{"127.0.0.1:5000", "localhost", "Fly-Client-IP", false},
		{"127.0.0.1:5000", "localhost", "X-Original-Host", false},
		{"127.0.0.1:5000", "localhost", "X-Azure-ClientIP", false},
		{"127.0.0.1:5000", "localhost", "X-Appengine-User-Ip", false},
		{"127.0.0.1:5000", "localhost", "X-Remote-Ip", false},
		{"127.0.0.1:5000", "localhost", "X-ProxyUser-Ip", false},
		{"127.0.0.1:5000", "localhost", "Remote-Addr", false},
		{"127.0.0.1:5000", "localhost", "Cdn-Loop", false},
		{"127.0.0.1:5000", "localhost", "X-Amzn-Trace-Id", false},
		{"127.0.0.1:5000", "localhost", "Fastly-Ssl", false},
		{"127.0.0.1:5000", "localhost", "Sec-Fetch-Site", true},
		{"127.0.0.1:5000", "localhost", "X-Request-Id", true},
		{"127.0.0.1:5000", "localhost", "X-Requested-With", true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Host = tt.peer, tt.host
		if tt.header != "" {
			r.Header.Set(tt.header, "")
		}
		if sandbox.IsLocal(r) != tt.want {
			t.Errorf("%+v", tt)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "http://localhost:8080/", nil)
	r.RemoteAddr, r.Proto, r.ProtoMajor, r.ProtoMinor = "127.0.0.1:5000", "HTTP/1.0", 1, 0
	if sandbox.IsLocal(r) {
		t.Error("a proxy that speaks HTTP/1.0 is taken for a browser")
	}
}
