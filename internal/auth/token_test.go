package auth_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
)

// forger makes tokens by hand, with the service's own key where it is given one.
type forger struct {
	kid    string
	key    ed25519.PrivateKey
	claims map[string]any // of a genuine token
}

func newForger(t *testing.T, w *fixture, in auth.SignIn) forger {
	t.Helper()
	f := forger{claims: map[string]any{}}
	f.kid, f.key = w.keys.SigningKey()
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(in.Token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(payload)))
	decoder.UseNumber()
	if err := decoder.Decode(&f.claims); err != nil {
		t.Fatal(err)
	}
	return f
}

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// header is ours, with more members at its end.
func (f forger) header(more string) string {
	return fmt.Sprintf(`{"alg":"EdDSA","kid":%q,"typ":"JWT"%s}`, f.kid, more)
}

// with is the genuine payload with one claim replaced by raw JSON, valid or not, or left out.
func (f forger) with(claim, raw string) string {
	claims := maps.Clone(f.claims)
	delete(claims, claim)
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err) // they came from JSON
	}
	if raw == "" {
		return string(payload)
	}
	return fmt.Sprintf("%s,%q:%s}", payload[:len(payload)-1], claim, raw)
}

func (f forger) sign(header, payload string) string {
	return signWith(f.key, header, payload)
}

func signWith(key ed25519.PrivateKey, header, payload string) string {
	input := b64(header) + "." + b64(payload)
	return input + "." + b64(string(ed25519.Sign(key, []byte(input))))
}

func hs256(secret, header, payload string) string {
	input := b64(header) + "." + b64(payload)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(input))
	return input + "." + b64(string(mac.Sum(nil)))
}

func TestToken_Claims(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	f := newForger(t, w, in)
	now := w.clock.Now().Unix()
	want := map[string]string{
		"userId": in.User.ID, "email": email, "role": "seller", "iat": fmt.Sprint(now), "exp": fmt.Sprint(now + 7*24*60*60),
		"iss": "https://pay.example", "aud": "https://pay.example/api",
	}
	for claim, value := range want {
		if got := fmt.Sprint(f.claims[claim]); got != value {
			t.Errorf("%s = %s, want %s", claim, got, value)
		}
	}
	for _, claim := range []string{"jti", "sid"} {
		if s, _ := f.claims[claim].(string); s == "" {
			t.Errorf("no %s", claim)
		}
	}
	if len(f.claims) != len(want)+2 {
		t.Errorf("claims = %v", f.claims)
	}
}

// The forger must be able to make tokens that are accepted, or the refusals below prove nothing.
func TestAuthenticate_SignedCopy_Accepted(t *testing.T) {
	w := newFixture(t)
	f := newForger(t, w, w.register())
	for name, token := range map[string]string{
		"copy":                  f.sign(f.header(""), f.with("", "")),
		"unknown claim":         f.sign(f.header(""), f.with("scope", `"all"`)),
		"nbf passed":            f.sign(f.header(""), f.with("nbf", "1")),
		"iat within clock skew": f.sign(f.header(""), f.with("iat", fmt.Sprint(w.clock.Now().Add(59*time.Second).Unix()))),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := w.Authenticate(t.Context(), token); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAuthenticate_ForgedHeader_Refused(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	f := newForger(t, w, in)
	payload := f.with("", "")
	public := string(f.key.Public().(ed25519.PublicKey))
	_, foreign, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	foreignJWK := fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","x":%q}`, b64(string(foreign.Public().(ed25519.PublicKey))))
	header := func(alg, kid string) string { return fmt.Sprintf(`{"alg":%q,"kid":%q,"typ":"JWT"}`, alg, kid) }
	unsigned := func(alg string) string { return b64(header(alg, f.kid)) + "." + b64(payload) + "." }

	tests := map[string]string{
		"alg none":              unsigned("none"),
		"alg NONE":              unsigned("NONE"),
		"alg nOnE":              unsigned("nOnE"),
		"alg empty":             unsigned(""),
		"alg none, signed":      f.sign(header("none", f.kid), payload),
		"no alg":                f.sign(fmt.Sprintf(`{"kid":%q,"typ":"JWT"}`, f.kid), payload),
		"alg eddsa":             f.sign(header("eddsa", f.kid), payload),
		"alg ES256":             f.sign(header("ES256", f.kid), payload),
		"alg Ed25519":           f.sign(header("Ed25519", f.kid), payload),
		"HS256 with public key": hs256(public, header("HS256", f.kid), payload),
		"HS256 with its kid":    hs256(f.kid, header("HS256", f.kid), payload),
		"HS256 with nothing":    hs256("", header("HS256", f.kid), payload),
		"alg twice":             f.sign(fmt.Sprintf(`{"alg":"none","alg":"EdDSA","kid":%q,"typ":"JWT"}`, f.kid), payload),
		"empty signature":       unsigned("EdDSA"),
		"foreign key":           signWith(foreign, f.header(""), payload),
		"own key in jwk":        signWith(foreign, `{"alg":"EdDSA","typ":"JWT","jwk":`+foreignJWK+`}`, payload),
		"own key beside kid":    signWith(foreign, f.header(`,"jwk":`+foreignJWK), payload),
		"jku":                   f.sign(f.header(`,"jku":"http://127.0.0.1:1/jwks"`), payload),
		"x5u":                   f.sign(f.header(`,"x5u":"http://127.0.0.1:1/cert"`), payload),
		"crit":                  f.sign(f.header(`,"crit":["exp"],"exp":1`), payload),
		"empty crit":            f.sign(f.header(`,"crit":[]`), payload),
		"b64 false":             f.sign(f.header(`,"b64":false,"crit":["b64"]`), payload),
		"zip":                   f.sign(f.header(`,"zip":"DEF"`), payload),
		"huge p2c":              f.sign(f.header(`,"p2c":2147483647`), payload),
		"nonce":                 f.sign(f.header(`,"nonce":"x"`), payload),
		"no kid":                f.sign(`{"alg":"EdDSA","typ":"JWT"}`, payload),
		"empty kid":             f.sign(header("EdDSA", ""), payload),
		"unknown kid":           f.sign(header("EdDSA", "unknown"), payload),
		"path as kid":           f.sign(header("EdDSA", "../../keys.json"), payload),
		"SQL as kid":            f.sign(header("EdDSA", "' OR 1=1 --"), payload),
		"kid as number":         f.sign(`{"alg":"EdDSA","kid":1,"typ":"JWT"}`, payload),
		"no typ":                f.sign(fmt.Sprintf(`{"alg":"EdDSA","kid":%q}`, f.kid), payload),
		"another typ":           f.sign(fmt.Sprintf(`{"alg":"EdDSA","kid":%q,"typ":"dpop+jwt"}`, f.kid), payload),
		"header no object":      f.sign(`"EdDSA"`, payload),
		"header null":           f.sign(`null`, payload),
	}
	wantNoneAccepted(t, w, tests)
}

func TestForgedClaimsAreRefused(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	other, err := w.Register(t.Context(), auth.Registration{Name: "Ravi", Email: "ravi@example.com", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	f, g := newForger(t, w, in), newForger(t, w, other)
	claim := func(name, raw string) string { return f.sign(f.header(""), f.with(name, raw)) }
	now := w.clock.Now()
	tests := map[string]string{
		"no exp":               claim("exp", ""),
		"exp null":             claim("exp", "null"),
		"exp zero":             claim("exp", "0"),
		"exp negative":         claim("exp", "-1"),
		"exp now":              claim("exp", fmt.Sprint(now.Unix())),
		"exp string":           claim("exp", fmt.Sprintf("%q", fmt.Sprint(now.Unix()+60))),
		"exp float":            claim("exp", fmt.Sprintf("%d.5", now.Unix()+60)),
		"exp 1e400":            claim("exp", "1e400"),
		"exp beyond 64 bits":   claim("exp", "99999999999999999999"),
		"exp array":            claim("exp", fmt.Sprintf("[%d]", now.Unix()+60)),
		"nbf in the future":    claim("nbf", fmt.Sprint(now.Add(2*time.Minute).Unix())),
		"iat in the future":    claim("iat", fmt.Sprint(now.Add(2*time.Minute).Unix())),
		"iat string":           claim("iat", `"1"`),
		"no iss":               claim("iss", ""),
		"another iss":          claim("iss", `"https://evil.example"`),
		"iss with a slash":     claim("iss", `"https://pay.example/"`),
		"no aud":               claim("aud", ""),
		"another aud":          claim("aud", `"https://evil.example/api"`),
		"aud array":            claim("aud", `["https://pay.example/api"]`),
		"no sid":               claim("sid", ""),
		"unknown sid":          claim("sid", `"ses_000000000000000000000000"`),
		"another's sid":        claim("sid", fmt.Sprintf("%q", g.claims["sid"])),
		"no user":              claim("userId", ""),
		"another user":         claim("userId", fmt.Sprintf("%q", other.User.ID)),
		"a user never made":    claim("userId", `"usr_000000000000000000000000"`),
		"payload no object":    f.sign(f.header(""), `"claims"`),
		"payload cut":          f.sign(f.header(""), `{"exp":`),
		"payload of two":       f.sign(f.header(""), f.with("", "")+f.with("", "")),
		"payload empty object": f.sign(f.header(""), `{}`),
	}
	wantNoneAccepted(t, w, tests)
}

func TestAuthenticate_MalformedToken_Refused(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	f := newForger(t, w, in)
	header, payload, signature := cut3(t, in.Token)
	key, _, err := w.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "marketplace"}, operator)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"empty":                   "",
		"dots":                    "..",
		"two parts":               header + "." + payload,
		"four parts":              in.Token + ".",
		"JWE":                     b64(`{"alg":"dir","enc":"A256GCM","zip":"DEF"}`) + ".." + b64("iv") + "." + b64("text") + "." + b64("tag"),
		"PBES2 JWE":               b64(`{"alg":"PBES2-HS256+A128KW","enc":"A128GCM","p2c":2147483647,"p2s":"c2FsdA"}`) + ".a.b.c.d",
		"JSON serialisation":      fmt.Sprintf(`{"protected":%q,"payload":%q,"signature":%q}`, header, payload, signature),
		"detached payload":        header + ".." + signature,
		"signature respelt":       header + "." + payload + "." + flipLast(signature),
		"signature flipped":       header + "." + payload + "." + flipFirst(signature),
		"payload flipped":         header + "." + flipFirst(payload) + "." + signature,
		"payload's end changed":   header + "." + flipLast(payload) + "." + signature,
		"header flipped":          flipFirst(header) + "." + payload + "." + signature,
		"header's end changed":    flipLast(header) + "." + payload + "." + signature,
		"signature cut":           in.Token[:len(in.Token)-1],
		"padded":                  in.Token + "==",
		"newline inside":          header + "." + payload[:8] + "\n" + payload[8:] + "." + signature,
		"newline after":           in.Token + "\n",
		"space before":            " " + in.Token,
		"Bearer":                  "Bearer " + in.Token,
		"other claims, signature": header + "." + b64(f.with("role", `"admin"`)) + "." + signature,
		"refresh token":           in.RefreshToken,
		"service key":             key,
		"password hash":           in.User.PasswordHash,
		"a megabyte":              in.Token + strings.Repeat("A", 1<<20),
		"a megabyte of dots":      strings.Repeat(".", 1<<20),
		"a large payload, signed": f.sign(f.header(""), f.with("pad", fmt.Sprintf("%q", strings.Repeat("A", 4096)))),
	}
	wantNoneAccepted(t, w, tests)
}

func flipFirst(s string) string {
	if s[0] == 'A' {
		return "B" + s[1:]
	}
	return "A" + s[1:]
}

// wantNoneAccepted tries each token twice: the second time, what the first left in memory is tried.
func wantNoneAccepted(t *testing.T, w *fixture, tokens map[string]string) {
	t.Helper()
	for name, token := range tokens {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				p, err := w.Authenticate(t.Context(), token)
				wantErr(t, err, auth.ErrToken)
				if p != (auth.Principal{}) {
					t.Errorf("principal = %+v", p)
				}
			}
		})
	}
}

func TestAuthenticate_CachedTokenExpired_Refused(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	w.clock.advance(7*24*time.Hour - time.Second)
	w.wantAlive(in)
	w.clock.advance(time.Second)
	_, err := w.Authenticate(t.Context(), in.Token)
	wantErr(t, err, auth.ErrToken)
	w.wantAlive(w.refresh(in.RefreshToken))
}

func TestAuthenticate_CachedTokenOfRetiredKey_Refused(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	w.wantAlive(in)
	if err := w.keys.Rotate(t.Context(), w.clock.Now(), 0); err != nil {
		t.Fatal(err)
	}
	w.wantAlive(in)
	if err := w.keys.Rotate(t.Context(), w.clock.Now().Add(8*24*time.Hour), 0); err != nil {
		t.Fatal(err)
	}
	_, err := w.Authenticate(t.Context(), in.Token)
	wantErr(t, err, auth.ErrToken)
	w.wantAlive(w.refresh(in.RefreshToken)) // which other keys vouch for
}

func TestAuthenticate_OtherInstallation_Refused(t *testing.T) {
	w, other := newFixture(t), newFixture(t)
	in := w.register()
	_, err := other.Authenticate(t.Context(), in.Token)
	wantErr(t, err, auth.ErrToken)
	moved := w.again(func(o *auth.Options) { o.Issuer = "https://other.example" })
	_, err = moved.Authenticate(t.Context(), in.Token)
	wantErr(t, err, auth.ErrToken)
}

func FuzzBearerToken(f *testing.F) {
	w := newFixture(f)
	in := w.register()
	f.Add(in.Token)
	f.Add(in.Token[:len(in.Token)-1])
	f.Add(in.RefreshToken)
	f.Add("..")
	f.Add(b64(`{"alg":"none"}`) + "." + b64(`{}`) + ".")
	f.Add(b64(`{"alg":"EdDSA","crit":["b64"],"b64":false}`) + ".{}.AAAA")
	f.Fuzz(func(t *testing.T, token string) {
		_, err := w.Authenticate(t.Context(), token)
		if token == in.Token {
			return
		}
		wantErr(t, err, auth.ErrToken)
	})
}
