package oauth_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"bursar/internal/auth"
	"bursar/internal/oauth"
)

const audience = "https://payouts.example/api"

func (p *provider) trusted(change ...func(*oauth.TrustedOptions)) *oauth.Trusted {
	p.t.Helper()
	o := oauth.TrustedOptions{Issuer: p.URL, Audience: audience, SellerClaim: "sub", Now: p.clock.Now}
	for _, c := range change {
		c(&o)
	}
	trusted, err := oauth.NewTrusted(o)
	if err != nil {
		p.t.Fatal(err)
	}
	return trusted
}

// accessToken is a token for a seller; change alters what it says.
func (p *provider) claims(change func(map[string]any)) []byte {
	p.t.Helper()
	now := p.clock.Now().Unix()
	said := map[string]any{"iss": p.URL, "aud": audience, "sub": "shop-17", "iat": now, "exp": now + 3600}
	if change != nil {
		change(said)
	}
	payload, err := json.Marshal(said)
	if err != nil {
		p.t.Fatal(err)
	}
	return payload
}

// compact signs by an algorithm with a header of the test's choice.
func compact(t *testing.T, algorithm jose.SignatureAlgorithm, key any, kid string, header map[string]any, payload []byte) string {
	t.Helper()
	o := &jose.SignerOptions{}
	for name, value := range header {
		o.WithHeader(jose.HeaderKey(name), value)
	}
	if kid != "" {
		o.WithHeader("kid", kid)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestTrustedToken_WhatItSays(t *testing.T) {
	const hour = 3600
	tests := map[string]struct {
		change func(map[string]any)
		claim  string
		want   string // the external id, or "" if it is refused
	}{
		"as it should be":           {nil, "sub", "shop-17"},
		"for several":               {func(c map[string]any) { c["aud"] = []string{"other", audience} }, "sub", "shop-17"},
		"another claim":             {func(c map[string]any) { c["https://shop.example/seller"] = "s-1" }, "https://shop.example/seller", "s-1"},
		"a number beyond a float's": {func(c map[string]any) { c["seller"] = json.Number("9007199254740993") }, "seller", "9007199254740993"},
		"a role in it":              {func(c map[string]any) { c["role"] = "admin" }, "sub", "shop-17"},
		"expired within the leeway": {func(c map[string]any) {
			c["exp"] = c["iat"]
			c["iat"] = c["iat"].(int64) - hour
			c["exp"] = c["exp"].(int64) - 59
		}, "sub", "shop-17"},
		"another issuer":                  {func(c map[string]any) { c["iss"] = "https://id.example" }, "sub", ""},
		"no issuer":                       {func(c map[string]any) { delete(c, "iss") }, "sub", ""},
		"issuer by another name's case":   {func(c map[string]any) { c["ISS"] = c["iss"]; delete(c, "iss") }, "sub", ""},
		"another audience":                {func(c map[string]any) { c["aud"] = "other" }, "sub", ""},
		"no audience":                     {func(c map[string]any) { delete(c, "aud") }, "sub", ""},
		"a longer audience":               {func(c map[string]any) { c["aud"] = audience + "/" }, "sub", ""},
		"expired":                         {func(c map[string]any) { c["iat"] = c["iat"].(int64) - hour; c["exp"] = c["exp"].(int64) - hour - 60 }, "sub", ""},
		"no expiry":                       {func(c map[string]any) { delete(c, "exp") }, "sub", ""},
		"an expiry that is a text":        {func(c map[string]any) { c["exp"] = "4102444800" }, "sub", ""},
		"no time of issue":                {func(c map[string]any) { delete(c, "iat") }, "sub", ""},
		"issued later":                    {func(c map[string]any) { c["iat"] = c["iat"].(int64) + 61 }, "sub", ""},
		"valid later":                     {func(c map[string]any) { c["nbf"] = c["iat"].(int64) + 61 }, "sub", ""},
		"a start that is no time":         {func(c map[string]any) { c["nbf"] = "now" }, "sub", ""},
		"valid for a day":                 {func(c map[string]any) { c["exp"] = c["iat"].(int64) + 24*hour }, "sub", "shop-17"},
		"valid for more than a day":       {func(c map[string]any) { c["exp"] = c["iat"].(int64) + 24*hour + 1 }, "sub", ""},
		"no seller":                       {func(c map[string]any) { delete(c, "sub") }, "sub", ""},
		"an empty seller":                 {func(c map[string]any) { c["sub"] = "" }, "sub", ""},
		"a seller that is a list":         {func(c map[string]any) { c["sub"] = []string{"shop-17"} }, "sub", ""},
		"a fraction":                      {func(c map[string]any) { c["sub"] = 1.5 }, "sub", ""},
		"bound to a key of its holder":    {func(c map[string]any) { c["cnf"] = map[string]string{"jkt": "x"} }, "sub", ""},
		"without the claim that is asked": {nil, "seller_id", ""},
	}
	p := newProvider(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			trusted := p.trusted(func(o *oauth.TrustedOptions) { o.SellerClaim = tt.claim })
			got, err := trusted.Verify(t.Context(), p.properly(p.claims(tt.change)))
			if got != tt.want || (tt.want == "") != errors.Is(err, auth.ErrToken) {
				t.Errorf("the token is about %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestTrustedToken_HowItIsSigned(t *testing.T) {
	p := newProvider(t)
	rsaKey := generate(t, func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })
	short := generate(t, func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 1024) })
	other := generate(t, func() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) })
	big := generate(t, func() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) })
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte("a secret that both sides of a connection may know")
	p.public.Keys = append(p.public.Keys,
		jose.JSONWebKey{Key: &rsaKey.PublicKey, KeyID: "rsa"},
		jose.JSONWebKey{Key: &rsaKey.PublicKey, KeyID: "rs256", Algorithm: "RS256", Use: "sig"},
		jose.JSONWebKey{Key: &rsaKey.PublicKey, KeyID: "encrypts", Use: "enc"},
		jose.JSONWebKey{Key: &short.PublicKey, KeyID: "short"},
		jose.JSONWebKey{Key: &big.PublicKey, KeyID: "p384"},
		jose.JSONWebKey{Key: edwards.Public(), KeyID: "edwards"},
		jose.JSONWebKey{Key: secret, KeyID: "secret"},
		jose.JSONWebKey{Key: &other.PublicKey, KeyID: "twice"},
		jose.JSONWebKey{Key: &rsaKey.PublicKey, KeyID: "twice"},
	)
	der, err := x509.MarshalPKIXPublicKey(&rsaKey.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	payload := p.claims(nil)
	part := base64.RawURLEncoding.EncodeToString
	ours := p.key.Key
	tests := map[string]struct {
		token string
		good  bool
	}{
		"RS256":                            {compact(t, jose.RS256, rsaKey, "rsa", nil, payload), true},
		"PS256":                            {compact(t, jose.PS256, rsaKey, "rsa", nil, payload), true},
		"ES256":                            {compact(t, jose.ES256, ours, "first", nil, payload), true},
		"EdDSA":                            {compact(t, jose.EdDSA, edwards, "edwards", nil, payload), true},
		"typ at+jwt":                       {compact(t, jose.ES256, ours, "first", map[string]any{"typ": "at+JWT"}, payload), true},
		"typ logout+jwt":                   {compact(t, jose.ES256, ours, "first", map[string]any{"typ": "logout+jwt"}, payload), false},
		"PS256 by a key for RS256":         {compact(t, jose.PS256, rsaKey, "rs256", nil, payload), false},
		"a key that encrypts":              {compact(t, jose.RS256, rsaKey, "encrypts", nil, payload), false},
		"a short key":                      {compact(t, jose.RS256, short, "short", nil, payload), false},
		"ES384":                            {compact(t, jose.ES384, big, "p384", nil, payload), false},
		"HS256, with the public key":       {compact(t, jose.HS256, der, "rsa", nil, payload), false},
		"HS256, with a published one":      {compact(t, jose.HS256, secret, "secret", nil, payload), false},
		"another key":                      {compact(t, jose.ES256, other, "first", nil, payload), false},
		"a key id that two have":           {compact(t, jose.ES256, other, "twice", nil, payload), false},
		"a key id that two have, the last": {compact(t, jose.RS256, rsaKey, "twice", nil, payload), false},
		"an unknown key id":                {compact(t, jose.ES256, ours, "nobody's", nil, payload), false},
		"no key id":                        {compact(t, jose.ES256, ours, "", nil, payload), false},
		"a key of its own": {compact(t, jose.ES256, other, "first", map[string]any{
			"jwk": jose.JSONWebKey{Key: &other.PublicKey},
		}, payload), false},
		"crit":               {compact(t, jose.ES256, ours, "first", map[string]any{"crit": []string{"exp"}, "exp": 1}, payload), false},
		"none":               {part([]byte(`{"alg":"none","kid":"first"}`)) + "." + part(payload) + ".", false},
		"a signature of air": {part([]byte(`{"alg":"ES256","kid":"first"}`)) + "." + part(payload) + ".", false},
		"two parts":          {"a.b", false},
		"too long":           {compact(t, jose.ES256, ours, "first", nil, p.claims(func(c map[string]any) { c["x"] = strings.Repeat("x", 8<<10) })), false},
	}
	trusted := p.trusted()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := trusted.Verify(t.Context(), tt.token)
			if (got == "shop-17") != tt.good || (err == nil) != tt.good || (!tt.good && !errors.Is(err, auth.ErrToken)) {
				t.Errorf("the token is about %q, %v", got, err)
			}
		})
	}
	tampered := strings.Split(p.properly(payload), ".")
	tampered[1] = part(p.claims(func(c map[string]any) { c["sub"] = "shop-18" }))
	if got, err := trusted.Verify(t.Context(), strings.Join(tampered, ".")); err == nil {
		t.Errorf("a changed token is about %q", got)
	}
}

func generate[K any](t *testing.T, one func() (K, error)) K {
	t.Helper()
	key, err := one()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestTrustedKeys_RotationAndOutage(t *testing.T) {
	p := newProvider(t)
	trusted := p.trusted()
	verify := func(token string, want error) {
		t.Helper()
		got, err := trusted.Verify(t.Context(), token)
		if want == nil && (err != nil || got != "shop-17") || want != nil && !errors.Is(err, want) {
			t.Fatalf("the token is about %q, %v; want %v", got, err, want)
		}
	}
	asked := func(want int) {
		t.Helper()
		if got := p.timesAsked("/jwks"); got != want {
			t.Fatalf("the keys were asked for %d times, want %d", got, want)
		}
	}
	asked(0)
	old := p.properly(p.claims(func(c map[string]any) { c["exp"] = c["iat"].(int64) + 86400 }))
	verify(old, nil)
	verify(old, nil)
	asked(1)

	// A made-up key id is asked for once in a while.
	for range 5 {
		verify(compact(t, jose.ES256, p.key.Key, "made-up", nil, p.claims(nil)), auth.ErrToken)
	}
	asked(1) // the keys were fetched a moment ago
	p.clock.advance(10 * time.Second)
	for range 5 {
		verify(compact(t, jose.ES256, p.key.Key, "made-up", nil, p.claims(nil)), auth.ErrToken)
	}
	asked(2)

	// A rotated key is found, and the one before is refused once it is not published.
	p.clock.advance(10 * time.Second)
	p.rotate("second")
	fresh := p.properly(p.claims(func(c map[string]any) { c["exp"] = c["iat"].(int64) + 86400 }))
	verify(fresh, nil)
	asked(3)
	verify(old, auth.ErrToken)

	// While the issuer is down, known keys go on and new ones are 503.
	p.answers["/jwks"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	p.clock.advance(2 * time.Hour)
	verify(fresh, nil)
	asked(4)
	verify(fresh, nil)
	asked(4)
	p.rotate("third")
	third := p.properly(p.claims(nil))
	verify(third, auth.ErrIssuerUnavailable)
	asked(4)
	p.clock.advance(10 * time.Second)
	verify(third, auth.ErrIssuerUnavailable)
	asked(5)
	delete(p.answers, "/jwks")
	p.clock.advance(10 * time.Second)
	verify(third, nil)
}

func TestTrustedKeys_IssuerThatMisbehaves(t *testing.T) {
	tests := map[string]func(p *provider){
		"another issuer": func(p *provider) { p.describe = func(d map[string]any) { d["issuer"] = "https://id.example" } },
		"keys at a private address": func(p *provider) {
			p.describe = func(d map[string]any) { d["jwks_uri"] = "https://169.254.169.254/jwks" }
		},
		"keys without encryption": func(p *provider) { p.describe = func(d map[string]any) { d["jwks_uri"] = "http://id.example/jwks" } },
		"keys elsewhere": func(p *provider) {
			p.answers["/jwks"] = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) }
		},
		"keys without end": func(p *provider) {
			p.answers["/jwks"] = func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`{"keys":[` + strings.Repeat(" ", 1<<20) + `]}`))
			}
		},
		"no keys": func(p *provider) { p.public.Keys = nil },
	}
	for name, misbehave := range tests {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			token := p.properly(p.claims(nil))
			misbehave(p)
			got, err := p.trusted().Verify(t.Context(), token)
			if !errors.Is(err, auth.ErrIssuerUnavailable) {
				t.Errorf("the token is about %q, %v", got, err)
			}
		})
	}
}

func TestNewTrusted_RefusesAddresses(t *testing.T) {
	for address, good := range map[string]bool{"https://id.example": true, "http://127.0.0.1:9": true, "http://id.example": false, "id.example": false} {
		_, err := oauth.NewTrusted(oauth.TrustedOptions{Issuer: address, Audience: "a", SellerClaim: "sub", Now: time.Now})
		if (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
}
