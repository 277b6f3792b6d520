package oauth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"bursar/internal/auth"
	"bursar/internal/fault"
	"bursar/internal/oauth"
)

// What must never be seen outside of a conversation with a provider.
const (
	clientID     = "client-1"
	clientSecret = "shh-client-secret"
	goodCode     = "shh-code"
	accessToken  = "shh-access-token"
)

// clock stands still unless it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// provider is an OpenID Connect provider that does as it should, except where a test makes it hostile.
type provider struct {
	*httptest.Server
	t     *testing.T
	clock *clock
	key   jose.JSONWebKey

	// describe, claim and sign change what it says of itself and of people, and how it signs that.
	describe func(map[string]any)
	claim    func(map[string]any)
	sign     func(payload []byte) string
	// answers stand in for endpoints.
	answers map[string]http.HandlerFunc
	// public are its keys.
	public jose.JSONWebKeySet

	mu        sync.Mutex
	asked     map[string]int
	challenge string
	nonce     string
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{
		t: t, clock: &clock{now: time.Now()}, asked: map[string]int{}, answers: map[string]http.HandlerFunc{},
		describe: func(map[string]any) {}, claim: func(map[string]any) {},
	}
	p.rotate("first")
	p.sign = p.properly
	mux := http.NewServeMux()
	for path, usual := range map[string]http.HandlerFunc{
		"/.well-known/openid-configuration": p.discovery, "/jwks": p.jwks, "/token": p.token, "/userinfo": p.userinfo,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			p.mu.Lock()
			p.asked[path]++
			p.mu.Unlock()
			if own, ok := p.answers[path]; ok {
				own(w, r)
				return
			}
			usual(w, r)
		})
	}
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// rotate gives the provider another key.
func (p *provider) rotate(kid string) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	p.key = jose.JSONWebKey{Key: key, KeyID: kid, Algorithm: "ES256", Use: "sig"}
	p.public = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{p.key.Public()}}
}

func (p *provider) timesAsked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

func (p *provider) discovery(w http.ResponseWriter, _ *http.Request) {
	document := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
		"jwks_uri": p.URL + "/jwks", "userinfo_endpoint": p.URL + "/userinfo",
		"id_token_signing_alg_values_supported":          []string{"ES256", "RS256", "HS256", "none"},
		"authorization_response_iss_parameter_supported": true,
	}
	p.describe(document)
	writeJSON(w, document)
}

func (p *provider) jwks(w http.ResponseWriter, _ *http.Request) { writeJSON(w, p.public) }

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	hash := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	proof := base64.RawURLEncoding.EncodeToString(hash[:])
	if r.Method != http.MethodPost || id != clientID || secret != clientSecret || r.FormValue("code") != goodCode ||
		proof != p.challenge || r.FormValue("redirect_uri") != redirectURL {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error": "invalid_grant", "error_description": "shh-code is not good", "access_token": "shh-access-token"}`))
		return
	}
	claims := map[string]any{
		"iss": p.URL, "aud": clientID, "sub": "248289761001", "nonce": p.nonce,
		"iat": p.clock.Now().Unix(), "exp": p.clock.Now().Add(time.Hour).Unix(),
		"email": "asha@example.com", "email_verified": true, "name": "Asha Rao", "picture": "https://pictures.example/asha",
	}
	p.claim(claims)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	payload, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}
	writeJSON(w, map[string]any{"access_token": accessToken, "token_type": "Bearer", "expires_in": 60, "id_token": p.sign(payload)})
}

func (p *provider) userinfo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+accessToken {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	writeJSON(w, map[string]any{"sub": "248289761001", "email": "asha@userinfo.example", "email_verified": "true"})
}

// properly signs with the provider's key.
func (p *provider) properly(payload []byte) string { return p.signed(jose.ES256, p.key, payload) }

func (p *provider) signed(algorithm jose.SignatureAlgorithm, key any, payload []byte) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		p.t.Error(err)
	}
	return token
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) //nolint:errchkjson // an answer that can't be had fails the test
}

const redirectURL = "http://127.0.0.1:8080/api/auth/provider-a/callback"

func (p *provider) client(change ...func(*oauth.Options)) *oauth.Client {
	p.t.Helper()
	o := oauth.Options{
		Label: "Test", ClientID: clientID, ClientSecret: clientSecret, RedirectURL: redirectURL, Issuer: p.URL,
		Scopes: []string{"openid", "email"}, Now: p.clock.Now,
	}
	for _, c := range change {
		c(&o)
	}
	client, err := oauth.New(o)
	if err != nil {
		p.t.Fatal(err)
	}
	return client
}

// begin begins a sign-in, and takes note of what the provider was told.
func (p *provider) begin(client *oauth.Client) (auth.ProviderRequest, url.Values, error) {
	r := auth.ProviderRequest{State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text()}
	address, err := client.Begin(p.t.Context(), r)
	if err != nil {
		return r, nil, err
	}
	u, err := url.Parse(address)
	if err != nil {
		return r, nil, err
	}
	query := u.Query()
	p.mu.Lock()
	p.challenge, p.nonce = query.Get("code_challenge"), query.Get("nonce")
	p.mu.Unlock()
	return r, query, nil
}

// signIn goes the whole way. The answer is what the provider would send back, changed by the test.
func (p *provider) signIn(client *oauth.Client, change ...func(url.Values)) (auth.Identity, error) {
	r, query, err := p.begin(client)
	if err != nil {
		return auth.Identity{}, err
	}
	answer := url.Values{"code": {goodCode}, "state": {query.Get("state")}, "iss": {p.URL}}
	for _, c := range change {
		c(answer)
	}
	return client.Finish(context.WithoutCancel(p.t.Context()), r, answer)
}

// signInAtLast signs in after a fetch of the keys. For a moment after its end the library still gives out what it came
// to, so that a sign-in which comes that soon is tried again.
func (p *provider) signInAtLast(client *oauth.Client) (err error) {
	for range 100 {
		if _, err = p.signIn(client); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// refused checks that a sign-in failed as it should: with the right fault, a cause for the log, and
// without a secret in either.
func refused(t *testing.T, err error, want *fault.Error, cause string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("the sign-in ended with %v, want %s", err, want.Code)
	}
	f := fault.From(err)
	if f.Message != want.Message {
		t.Errorf("people read %q, want %q", f.Message, want.Message)
	}
	if f.Unwrap() == nil || !strings.Contains(f.Unwrap().Error(), cause) {
		t.Errorf("the log reads %v, want it to hold %q", f.Unwrap(), cause)
	}
	if strings.Contains(err.Error(), "shh-") || strings.Contains(err.Error(), "eyJ") || len(err.Error()) > 1000 {
		t.Errorf("the log reads too much: %v", err)
	}
}
