package oauth_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
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

func TestBegin_SendsStateNonceAndPKCE(t *testing.T) {
	p := newProvider(t)
	r, query, err := p.begin(p.client())
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256([]byte(r.Verifier))
	want := map[string]string{
		"response_type": "code", "client_id": clientID, "redirect_uri": redirectURL, "scope": "openid email",
		"state": r.State, "nonce": r.Nonce, "code_challenge_method": "S256",
		"code_challenge": base64.RawURLEncoding.EncodeToString(hash[:]),
	}
	for name, value := range want {
		if query.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, query.Get(name), value)
		}
	}
	if len(query) != len(want) {
		t.Errorf("the query is %v", query)
	}
}

func TestSignInWithAnIDToken(t *testing.T) {
	p := newProvider(t)
	client := p.client()
	who, err := p.signIn(client)
	want := auth.Identity{
		Issuer: client.Issuer(), Subject: "248289761001", Email: "asha@example.com", EmailVerified: true,
		Name: "Asha Rao", Avatar: "https://pictures.example/asha",
	}
	if err != nil || who != want {
		t.Fatalf("%+v, %v; want %+v", who, err, want)
	}
	if n := p.timesAsked("/userinfo"); n != 0 {
		t.Errorf("the userinfo endpoint was asked %d times for what was known", n)
	}
}

func TestIDToken_AcceptedClaims(t *testing.T) {
	hashOf := func(token string) string {
		hash := sha256.Sum256([]byte(token))
		return base64.RawURLEncoding.EncodeToString(hash[:16])
	}
	tests := map[string]struct {
		claim func(map[string]any)
		want  func(*auth.Identity)
	}{
		"several audiences, issued to us": {claim: func(c map[string]any) { c["aud"], c["azp"] = []string{"other", clientID}, clientID }},
		"the access token's hash":         {claim: func(c map[string]any) { c["at_hash"] = hashOf(accessToken) }},
		"a clock a little ahead":          {claim: func(c map[string]any) { c["iat"] = c["iat"].(int64) + 60 }},
		"verified, as a text": {
			claim: func(c map[string]any) { c["email_verified"] = "true" },
		},
		"not verified, as a text": {
			claim: func(c map[string]any) { c["email_verified"] = "false" },
			want:  func(i *auth.Identity) { i.EmailVerified = false },
		},
		"verified, as a number": {
			claim: func(c map[string]any) { c["email_verified"] = 1 },
			want:  func(i *auth.Identity) { i.EmailVerified = false },
		},
		"nothing about verification": {
			claim: func(c map[string]any) { c["email_verified"] = nil },
			want:  func(i *auth.Identity) { i.EmailVerified = false },
		},
		"no e-mail address": {
			claim: func(c map[string]any) { c["email"] = nil },
			want:  func(i *auth.Identity) { i.Email, i.EmailVerified = "asha@userinfo.example", true },
		},
		"an e-mail address that is none": {
			claim: func(c map[string]any) { c["email"] = "asha@example.com\r\nBcc: all@example.com" },
			want:  func(i *auth.Identity) { i.Email, i.EmailVerified = "", false },
		},
		"pictures and names that are none": {
			claim: func(c map[string]any) {
				c["picture"], c["name"] = "javascript:alert(1)", []string{"Asha"}
			},
			want: func(i *auth.Identity) { i.Avatar, i.Name = "", "" },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.claim = tt.claim
			want := auth.Identity{
				Issuer: p.URL, Subject: "248289761001", Email: "asha@example.com", EmailVerified: true,
				Name: "Asha Rao", Avatar: "https://pictures.example/asha",
			}
			if tt.want != nil {
				tt.want(&want)
			}
			if who, err := p.signIn(p.client()); err != nil || who != want {
				t.Errorf("%+v, %v; want %+v", who, err, want)
			}
		})
	}
}

func TestIDToken_Forged_Refused(t *testing.T) {
	claim := func(name string, value any) func(*provider) {
		return func(p *provider) { p.claim = func(c map[string]any) { c[name] = value } }
	}
	tests := map[string]struct {
		by    func(*provider)
		cause string
	}{
		"another issuer":           {claim("iss", "https://other.example"), "issued by a different provider"},
		"an issuer with a slash":   {func(p *provider) { p.claim = func(c map[string]any) { c["iss"] = p.URL + "/" } }, "issued by a different provider"},
		"another audience":         {claim("aud", "client-2"), "expected audience"},
		"no audience":              {claim("aud", nil), "expected audience"},
		"issued to another party":  {claim("azp", "client-2"), "issued to another party"},
		"several audiences":        {claim("aud", []string{clientID, "client-2"}), "issued to another party"},
		"another nonce":            {claim("nonce", "other"), "another nonce"},
		"no nonce":                 {claim("nonce", nil), "another nonce"},
		"expired":                  {claim("exp", time.Now().Add(-time.Hour).Unix()), "expired"},
		"without an end":           {claim("exp", nil), "expired"},
		"of the future":            {claim("iat", time.Now().Add(time.Hour).Unix()), "of the future"},
		"not yet good":             {claim("nbf", time.Now().Add(time.Hour).Unix()), "not before"},
		"nobody":                   {claim("sub", nil), "names nobody"},
		"a subject without end":    {claim("sub", strings.Repeat("x", 256)), "names nobody"},
		"a subject that hides":     {claim("sub", "248289761001\x00"), "names nobody"},
		"a subject of no letters":  {claim("sub", "2482\ufffd"), "names nobody"},
		"a subject that is a list": {claim("sub", []string{"248289761001"}), "unmarshal"},
		"another access token":     {claim("at_hash", "AAAAAAAAAAAAAAAAAAAAAA"), "hash"},
		"no token at all":          {func(p *provider) { p.sign = func([]byte) string { return "" } }, "no ID token"},
		"not signed": {func(p *provider) {
			p.sign = func(payload []byte) string {
				encode := base64.RawURLEncoding.EncodeToString
				return encode([]byte(`{"alg":"none"}`)) + "." + encode(payload) + "."
			}
		}, "malformed jwt"},
		"signed with the public key as a secret": {func(p *provider) {
			p.sign = func(payload []byte) string {
				public, err := x509.MarshalPKIXPublicKey(p.key.Key.(*ecdsa.PrivateKey).Public())
				if err != nil {
					p.t.Error(err)
				}
				return p.signed(jose.HS256, jose.JSONWebKey{Key: public, KeyID: p.key.KeyID}, payload)
			}
		}, "malformed jwt"},
		"signed with the client's secret": {func(p *provider) {
			p.sign = func(payload []byte) string {
				return p.signed(jose.HS256, []byte(strings.Repeat(clientSecret, 2)), payload)
			}
		}, "malformed jwt"},
		"signed with a key of the same name": {func(p *provider) {
			stale := p.key
			p.rotate(stale.KeyID)
			p.sign = func(payload []byte) string { return p.signed(jose.ES256, stale, payload) }
		}, "failed to verify"},
		"signed with a key that brings itself along": {func(p *provider) {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				p.t.Fatal(err)
			}
			p.sign = func(payload []byte) string {
				signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, &jose.SignerOptions{EmbedJWK: true})
				if err != nil {
					p.t.Error(err)
				}
				jws, err := signer.Sign(payload)
				if err != nil {
					p.t.Error(err)
				}
				token, _ := jws.CompactSerialize()
				return token
			}
		}, "failed to verify"},
		"signed in another form": {func(p *provider) {
			p.sign = func(payload []byte) string {
				parts := strings.Split(p.properly(payload), ".")
				return fmt.Sprintf(`{"payload":%q,"protected":%q,"signature":%q,"x":".."}`, parts[1], parts[0], parts[2])
			}
		}, "no ID token"},
		"one letter changed": {func(p *provider) {
			p.sign = func(payload []byte) string {
				token := p.properly(payload)
				at, other := len(token)-10, "A"
				if token[at] == 'A' {
					other = "B"
				}
				return token[:at] + other + token[at+1:]
			}
		}, "failed to verify"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			tt.by(p)
			_, err := p.signIn(p.client())
			refused(t, err, auth.ErrProviderAnswer, tt.cause)
		})
	}
}

func TestSignIn_InvalidAnswer_Refused(t *testing.T) {
	set := func(name string, values ...string) func(url.Values) {
		return func(answer url.Values) { answer[name] = values }
	}
	tests := map[string]struct {
		by    func(url.Values)
		want  *fault.Error
		cause string
	}{
		"the person said no":          {func(a url.Values) { a.Del("code"); a.Set("error", "access_denied") }, auth.ErrProviderDenied, "access_denied"},
		"the provider wants more":     {set("error", "interaction_required"), auth.ErrProviderDenied, "interaction_required"},
		"the provider is ill":         {set("error", "server_error"), auth.ErrProviderUnavailable, "server_error"},
		"the provider complains":      {func(a url.Values) { a.Set("error", "invalid_scope"); a.Set("error_description", "a\r\nb") }, auth.ErrProviderAnswer, `"a  b"`},
		"an error beside a code":      {set("error", ""), auth.ErrProviderAnswer, "error"},
		"a complaint without end":     {set("error", strings.Repeat("x", 5000)), auth.ErrProviderAnswer, "xxx…"},
		"no code":                     {set("code"), auth.ErrProviderAnswer, "no code"},
		"two codes":                   {set("code", goodCode, goodCode), auth.ErrProviderAnswer, "2 values"},
		"two states":                  {func(a url.Values) { a.Add("state", a.Get("state")) }, auth.ErrProviderAnswer, "2 values"},
		"no state":                    {set("state"), auth.ErrProviderAnswer, "another state"},
		"another state":               {set("state", "x"), auth.ErrProviderAnswer, "another state"},
		"another code":                {set("code", "shh-other"), auth.ErrProviderAnswer, "invalid_grant"},
		"another issuer":              {set("iss", "https://other.example"), auth.ErrProviderAnswer, "another issuer"},
		"no issuer, though promised":  {set("iss"), auth.ErrProviderAnswer, "names no issuer"},
		"two issuers":                 {func(a url.Values) { a.Add("iss", "https://other.example") }, auth.ErrProviderAnswer, "2 values"},
		"a no, from another issuer":   {func(a url.Values) { a.Set("iss", "https://other.example"); a.Set("error", "access_denied") }, auth.ErrProviderAnswer, "another issuer"},
		"a no, without a valid state": {func(a url.Values) { a.Set("state", "x"); a.Set("error", "access_denied") }, auth.ErrProviderAnswer, "another state"},
	}
	p := newProvider(t)
	client := p.client()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := p.signIn(client, tt.by)
			refused(t, err, tt.want, tt.cause)
		})
	}
}

func TestSignIn_UnpromisedIssuer_MayBeMissing(t *testing.T) {
	p := newProvider(t)
	p.describe = func(d map[string]any) { delete(d, "authorization_response_iss_parameter_supported") }
	if _, err := p.signIn(p.client(), func(a url.Values) { a.Del("iss") }); err != nil {
		t.Error(err)
	}
	_, err := p.signIn(p.client(), func(a url.Values) { a.Set("iss", "https://other.example") })
	refused(t, err, auth.ErrProviderAnswer, "another issuer")
}

// A browser that began at A comes back to A with what B gave it (RFC 9700 §4.4).
func TestProvidersAreNotMixedUp(t *testing.T) {
	a, b := newProvider(t), newProvider(t)
	b.answers["/token"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }
	_, err := a.signIn(a.client(), func(answer url.Values) { answer.Set("iss", b.URL) })
	refused(t, err, auth.ErrProviderAnswer, "another issuer")

	a.sign = func(payload []byte) string { return b.properly(payload) }
	_, err = a.signIn(a.client())
	refused(t, err, auth.ErrProviderAnswer, "failed to verify")
	if n := b.timesAsked("/token"); n != 0 {
		t.Errorf("b was given a code %d times", n)
	}
}

func TestProvidersThatMisbehave(t *testing.T) {
	answer := func(path string, handler http.HandlerFunc) func(*provider) {
		return func(p *provider) { p.answers[path] = handler }
	}
	status := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte("shh-access-token"))
		}
	}
	long := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token": "` + accessToken + `", "x": "`))
		for range 10 << 10 {
			if _, err := w.Write([]byte(strings.Repeat("x", 1<<10))); err != nil {
				return
			}
		}
		_, _ = w.Write([]byte(`"}`))
	}
	elsewhere := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusTemporaryRedirect)
	}
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection would not be noticed
		<-r.Context().Done()
	}
	cut := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	noEmail := func(do func(*provider)) func(*provider) {
		return func(p *provider) {
			p.claim = func(c map[string]any) { c["email"] = nil }
			do(p)
		}
	}
	endpoint := func(name, address string) func(*provider) {
		return func(p *provider) { p.describe = func(d map[string]any) { d[name] = address } }
	}
	const discovery = "/.well-known/openid-configuration"
	tests := map[string]struct {
		by    func(*provider)
		want  *fault.Error
		cause string
	}{
		"discovery fails":                {answer(discovery, status(500)), auth.ErrProviderUnavailable, "status 500"},
		"discovery is not there":         {answer(discovery, status(404)), auth.ErrProviderUnavailable, "status 404"},
		"discovery hangs":                {answer(discovery, hang), auth.ErrProviderUnavailable, "xceeded"},
		"discovery is cut":               {answer(discovery, cut), auth.ErrProviderUnavailable, "EOF"},
		"discovery is no JSON":           {answer(discovery, status(200)), auth.ErrProviderUnavailable, "discovery"},
		"discovery redirects":            {answer(discovery, elsewhere), auth.ErrProviderUnavailable, "redirect"},
		"discovery has no end":           {answer(discovery, long), auth.ErrProviderUnavailable, "longer than"},
		"discovery is of another":        {endpoint("issuer", "https://other.example"), auth.ErrProviderUnavailable, "did not match"},
		"discovery lacks an endpoint":    {endpoint("token_endpoint", ""), auth.ErrProviderUnavailable, "token_endpoint"},
		"an endpoint without TLS":        {endpoint("token_endpoint", "http://provider.example/token"), auth.ErrProviderUnavailable, "https"},
		"an endpoint in a cloud's hands": {endpoint("token_endpoint", "https://169.254.169.254/token"), auth.ErrProviderUnavailable, "no service can be"},
		"an endpoint in our network":     {endpoint("token_endpoint", "https://10.1.2.3/token"), auth.ErrProviderUnavailable, "private address"},
		"an endpoint beside us":          {endpoint("token_endpoint", "http://localhost:1/token"), auth.ErrProviderUnavailable, "nobody set it up"},
		"keys in our network":            {endpoint("jwks_uri", "https://192.168.0.1/jwks"), auth.ErrProviderUnavailable, "private address"},
		"people in our network":          {noEmail(endpoint("userinfo_endpoint", "https://[fd00:ec2::254]/")), auth.ErrProviderUnavailable, "private address"},
		"people in a file":               {noEmail(endpoint("userinfo_endpoint", "file:///etc/passwd")), auth.ErrProviderUnavailable, "not an"},
		"the token endpoint fails":       {answer("/token", status(503)), auth.ErrProviderUnavailable, "status 503"},
		"the token endpoint is busy":     {answer("/token", status(429)), auth.ErrProviderUnavailable, "429"},
		"the token endpoint refuses":     {answer("/token", status(403)), auth.ErrProviderAnswer, "403"},
		"the token endpoint hangs":       {answer("/token", hang), auth.ErrProviderUnavailable, "xceeded"},
		"the token endpoint is cut":      {answer("/token", cut), auth.ErrProviderUnavailable, "EOF"},
		"the token endpoint redirects":   {answer("/token", elsewhere), auth.ErrProviderAnswer, "redirect"},
		"the token endpoint has no end":  {answer("/token", long), auth.ErrProviderAnswer, "longer than"},
		"the token endpoint gives none":  {answer("/token", status(200)), auth.ErrProviderAnswer, "missing access_token"},
		"the keys are not there":         {answer("/jwks", status(404)), auth.ErrProviderUnavailable, "status 404"},
		"the keys hang":                  {answer("/jwks", hang), auth.ErrProviderUnavailable, "xceeded"},
		"the keys redirect":              {answer("/jwks", elsewhere), auth.ErrProviderUnavailable, "redirect"},
		"userinfo fails":                 {noEmail(answer("/userinfo", status(500))), auth.ErrProviderUnavailable, "status 500"},
		"userinfo refuses":               {noEmail(answer("/userinfo", status(401))), auth.ErrProviderAnswer, "status 401"},
		"userinfo hangs":                 {noEmail(answer("/userinfo", hang)), auth.ErrProviderUnavailable, "xceeded"},
		"userinfo redirects":             {noEmail(answer("/userinfo", elsewhere)), auth.ErrProviderAnswer, "redirect"},
		"userinfo is no JSON":            {noEmail(answer("/userinfo", status(200))), auth.ErrProviderAnswer, "userinfo"},
		"userinfo is about another": {noEmail(answer("/userinfo", func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, map[string]any{"sub": "1", "email": "victim@example.com", "email_verified": true})
		})), auth.ErrProviderAnswer, "another subject"},
		"userinfo is about nobody": {noEmail(answer("/userinfo", func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, map[string]any{"email": "victim@example.com", "email_verified": true})
		})), auth.ErrProviderAnswer, "another subject"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			tt.by(p)
			short := func(o *oauth.Options) {
				if strings.Contains(name, "hang") {
					o.Timeout = 300 * time.Millisecond
				}
			}
			_, err := p.signIn(p.client(short))
			refused(t, err, tt.want, tt.cause)
		})
	}
}

// The client authenticates with a method that the provider's description lists.
func TestClientSecret_SentAsProviderDeclares(t *testing.T) {
	for want, methods := range map[string][]string{
		"header": {"private_key_jwt", "client_secret_basic", "client_secret_post"}, "body": {"client_secret_post"},
	} {
		p := newProvider(t)
		p.describe = func(d map[string]any) { d["token_endpoint_auth_methods_supported"] = methods }
		p.answers["/token"] = func(w http.ResponseWriter, r *http.Request) {
			how := "header"
			if r.PostFormValue("client_secret") == clientSecret {
				how = "body"
			}
			if how != want {
				t.Errorf("with %v, the secret is in the %s", methods, how)
			}
			r.SetBasicAuth(clientID, clientSecret)
			p.token(w, r)
		}
		if _, err := p.signIn(p.client()); err != nil {
			t.Error(err)
		}
	}
}

// A provider answers everything but the question for its description, which is old. Who is on the way back signs in all the same.
func TestDiscovery_Hangs_LastOneIsUsed(t *testing.T) {
	p := newProvider(t)
	client := p.client(func(o *oauth.Options) { o.Timeout = 4 * time.Second })
	if _, err := p.signIn(client); err != nil {
		t.Fatal(err)
	}
	r, query, err := p.begin(client)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	defer close(over)
	p.answers["/.well-known/openid-configuration"] = func(http.ResponseWriter, *http.Request) { <-over }
	p.clock.advance(2 * time.Hour)
	if _, err = client.Finish(t.Context(), r, url.Values{"code": {goodCode}, "state": {query.Get("state")}, "iss": {p.URL}}); err != nil {
		t.Error(err)
	}
}

func TestDiscovery_ProviderDown_RetriedLater(t *testing.T) {
	p := newProvider(t)
	const discovery = "/.well-known/openid-configuration"
	p.answers[discovery] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	client := p.client()
	for range 20 {
		_, err := p.signIn(client)
		refused(t, err, auth.ErrProviderUnavailable, "status 502")
	}
	if n := p.timesAsked(discovery); n != 1 {
		t.Errorf("a provider that is down was asked %d times at once", n)
	}
	delete(p.answers, discovery)
	p.clock.advance(time.Minute)
	if _, err := p.signIn(client); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := p.signIn(client); err != nil {
			t.Error(err)
		}
	}
	if n := p.timesAsked(discovery); n != 2 {
		t.Errorf("the description was asked for %d times, want 2", n)
	}

	p.answers[discovery] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	p.clock.advance(2 * time.Hour)
	if _, err := p.signIn(client); err != nil {
		t.Errorf("what was known is no use when the description can't be had: %v", err)
	}
	delete(p.answers, discovery)
	p.describe = func(d map[string]any) { d["authorization_endpoint"] = p.URL + "/new" }
	p.clock.advance(time.Minute)
	if address, err := client.Begin(t.Context(), auth.ProviderRequest{State: "s", Nonce: "n", Verifier: "v"}); err != nil || !strings.HasPrefix(address, p.URL+"/new?") {
		t.Errorf("the way there is %q (%v) after the provider moved", address, err)
	}
}

func TestDiscovery_Concurrent_FetchedOnce(t *testing.T) {
	p := newProvider(t)
	client := p.client()
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			if _, err := client.Begin(t.Context(), auth.ProviderRequest{State: "s", Nonce: "n", Verifier: "v"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := p.timesAsked("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("the description was asked for %d times", n)
	}
}

func TestKeys_UnknownKeys_LimitFetches(t *testing.T) {
	p := newProvider(t)
	client := p.client()
	if _, err := p.signIn(client); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		p.sign = func(payload []byte) string {
			stranger := p.key
			stranger.KeyID = fmt.Sprintf("made-up-%d", i)
			return p.signed(jose.ES256, stranger, payload)
		}
		if _, err := p.signIn(client); err == nil {
			t.Fatal("a key that is not in the set signed somebody in")
		}
	}
	if n := p.timesAsked("/jwks"); n != 2 {
		t.Errorf("the keys were fetched %d times, want 2", n)
	}
	p.sign = p.properly
	if _, err := p.signIn(client); err != nil {
		t.Errorf("known keys are no good any more: %v", err)
	}

	p.rotate("second")
	_, err := p.signIn(client)
	refused(t, err, auth.ErrProviderUnavailable, "a moment ago")
	p.clock.advance(time.Minute)
	if err := p.signInAtLast(client); err != nil {
		t.Errorf("a new key is never fetched: %v", err)
	}
}

func TestKeys_Rotated_SignInWorks(t *testing.T) {
	p := newProvider(t)
	client := p.client()
	for _, kid := range []string{"second", "third"} {
		if err := p.signInAtLast(client); err != nil {
			t.Fatal(err)
		}
		p.rotate(kid)
		p.clock.advance(time.Minute)
	}
	if err := p.signInAtLast(client); err != nil {
		t.Error(err)
	}
}
