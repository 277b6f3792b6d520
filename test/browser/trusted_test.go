package browser

import (
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"bursar/test/harness"
)

// TestTokensOfAnIssuerOfNpm has sellers sign in at the marketplace alone, where oidc-provider from npm issues their tokens.
func TestTokensOfAnIssuerOfNpm(t *testing.T) {
	for _, algorithm := range []string{"RS256", "ES256"} {
		t.Run(algorithm, func(t *testing.T) {
			const resource, back = "https://payouts.example", "http://127.0.0.1:1/back"
			issuer := npmProvider(t, map[string]any{
				"algorithm": algorithm, "clientId": "shop", "clientSecret": "shop-secret", "redirectUri": back, "resource": resource,
			})
			i := newDefaultInstance(t, "BURSAR_TRUST_ISSUER="+issuer, "BURSAR_TRUST_AUDIENCE="+resource)
			i.Start(t)
			made, err := i.Command("apikey", "create", "--name", "shop").Output()
			if err != nil {
				t.Fatal(err)
			}
			key := strings.TrimSpace(string(made))
			mustAnswer(t, i, "POST", "/api/marketplace/sellers", key, `{"externalId":"ravi","name":"Ravi Shah","email":"ravi@shop.example"}`, http.StatusCreated)

			token := npmAccessToken(t, issuer, back, "ravi")
			mustAnswer(t, i, "GET", "/api/auth/me", token, "", http.StatusOK)
			mustAnswer(t, i, "PUT", "/api/bank-account", token, `{"accountHolder":"Ravi Shah","accountNumber":"50100123456789","ifsc":"HDFC0000053"}`, http.StatusOK)
			mustAnswer(t, i, "POST", "/api/payouts/request", token, `{"amount":600}`, http.StatusBadRequest) // the account is being verified, or nothing is there
			mustAnswer(t, i, "GET", "/api/auth/sessions", token, "", http.StatusForbidden)
			mustAnswer(t, i, "GET", "/api/payouts/balance", npmAccessToken(t, issuer, back, "meera"), "", http.StatusForbidden) // nobody made meera a seller

			header, rest, _ := strings.Cut(token, ".")
			payload, _, _ := strings.Cut(rest, ".")
			unsigned := encodePart(t, map[string]string{"alg": "none", "kid": "only"}) + "." + payload + "."
			mustAnswer(t, i, "GET", "/api/payouts/balance", unsigned, "", http.StatusUnauthorized)
			mustAnswer(t, i, "GET", "/api/payouts/balance", header+"."+payload+".AAAA", "", http.StatusUnauthorized)
			if algorithm == "RS256" {
				mustAnswer(t, i, "GET", "/api/payouts/balance", withPublicKeyAsSecret(t, issuer, payload), "", http.StatusUnauthorized)
			}
			other := npmProvider(t, map[string]any{
				"algorithm": algorithm, "clientId": "shop", "clientSecret": "shop-secret", "redirectUri": back, "resource": resource,
			})
			mustAnswer(t, i, "GET", "/api/payouts/balance", npmAccessToken(t, other, back, "ravi"), "", http.StatusUnauthorized)
			if strings.Contains(i.Output(t, "stderr"), payload) {
				t.Error("the log holds a token")
			}
		})
	}
}

// mustAnswer calls the API and fails the test unless the answer has the status.
func mustAnswer(t *testing.T, i *instance, method, path, token, body string, want int) {
	t.Helper()
	status, answer, err := harness.Send(method, i.API+path, token, body, nil)
	if err != nil || status != want {
		t.Fatalf("%s %s: %d %s, %v; want %d", method, path, status, answer, err, want)
	}
}

func encodePart(t *testing.T, part any) string {
	t.Helper()
	text, err := json.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// withPublicKeyAsSecret signs a payload by HS256, with the issuer's public key as the secret.
func withPublicKeyAsSecret(t *testing.T, issuer, payload string) string {
	t.Helper()
	p := harness.NewVisitor(t).Get(issuer + "/jwks")
	var set jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(p.Body), &set); err != nil {
		t.Fatal(err)
	}
	public, ok := set.Keys[0].Key.(*rsa.PublicKey)
	if !ok {
		t.Fatalf("the key is %T", set.Keys[0].Key)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	signed := encodePart(t, map[string]string{"alg": "HS256", "kid": "only"}) + "." + payload
	mac := hmac.New(sha256.New, der)
	_, _ = io.WriteString(mac, signed)
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// npmAccessToken signs somebody in at npm's provider, as the marketplace's own pages would, and returns the access token.
func npmAccessToken(t *testing.T, issuer, back, login string) string {
	t.Helper()
	const verifier = "a verifier that is long enough for everyone to like it"
	challenge := sha256.Sum256([]byte(strings.ReplaceAll(verifier, " ", "-")))
	ask := url.Values{
		"client_id": {"shop"}, "response_type": {"code"}, "scope": {"openid"}, "redirect_uri": {back}, "state": {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}
	b := harness.NewVisitor(t)
	asked := b.Submit(b.Follow(b.Get(issuer+"/auth?"+ask.Encode()), ""), url.Values{"login": {login}, "password": {"any"}})
	agreed := b.Submit(b.Follow(asked, ""), nil)
	to, err := url.Parse(b.Follow(agreed, back).LeadsTo())
	if err != nil {
		t.Fatal(err)
	}
	exchange := url.Values{
		"grant_type": {"authorization_code"}, "code": {to.Query().Get("code")}, "redirect_uri": {back},
		"code_verifier": {strings.ReplaceAll(verifier, " ", "-")},
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, issuer+"/token", strings.NewReader(exchange.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth("shop", "shop-secret")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &said); err != nil || said.AccessToken == "" {
		t.Fatalf("the issuer gave no token: %s", body)
	}
	return said.AccessToken
}
