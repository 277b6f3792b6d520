package sandbox

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// discovery describes the provider (OpenID Connect Discovery §3).
func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer":                                         p.o.Issuer,
		"authorization_endpoint":                         p.o.Issuer + "/authorize",
		"token_endpoint":                                 p.o.Issuer + "/token",
		"userinfo_endpoint":                              p.o.Issuer + "/userinfo",
		"jwks_uri":                                       p.o.Issuer + "/jwks",
		"scopes_supported":                               []string{"openid", "email", "profile"},
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{"authorization_code"},
		"subject_types_supported":                        []string{"public"},
		"id_token_signing_alg_values_supported":          []string{string(jose.ES256)},
		"token_endpoint_auth_methods_supported":          []string{"client_secret_basic", "client_secret_post"},
		"code_challenge_methods_supported":               []string{"S256"},
		"claims_supported":                               []string{"iss", "sub", "aud", "exp", "iat", "nonce", "at_hash", "name", "email", "email_verified"},
		"authorization_response_iss_parameter_supported": true,
	})
}

func (p *Provider) jwks(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{p.key.Public()}})
}

// token exchanges a code (RFC 6749 §4.1.3). The first client that brings the code uses it up, rightly or not.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || r.PostForm.Get("grant_type") != "authorization_code" {
		refuseToken(w, http.StatusBadRequest, "unsupported_grant_type")
		return
	}
	if !p.isClient(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="sandbox"`)
		refuseToken(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	given, ok := p.grants.useCode(r.PostForm.Get("code"))
	proof := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	isSame := subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(proof[:])), []byte(given.request.Challenge)) == 1
	if !ok || !isSame || r.PostForm.Get("redirect_uri") != p.o.RedirectURL {
		refuseToken(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	access, ok := p.grants.newToken(given)
	if !ok {
		refuseToken(w, http.StatusServiceUnavailable, "temporarily_unavailable")
		return
	}
	idToken, err := p.idToken(given, access)
	if err != nil {
		refuseToken(w, http.StatusInternalServerError, "server_error")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": access, "token_type": "Bearer", "expires_in": int(tokenLife / time.Second), "scope": given.request.Scope, "id_token": idToken,
	})
}

// isClient checks a client's id and secret, in the header or in the form (RFC 6749 §2.3.1).
func (p *Provider) isClient(r *http.Request) bool {
	id, secret := r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	if user, password, ok := r.BasicAuth(); ok {
		id, _ = url.QueryUnescape(user)
		secret, _ = url.QueryUnescape(password)
	}
	sameID := subtle.ConstantTimeCompare([]byte(id), []byte(p.o.ClientID))
	sameSecret := subtle.ConstantTimeCompare([]byte(secret), []byte(p.o.ClientSecret))
	return sameID&sameSecret == 1
}

func (p *Provider) idToken(given grant, access string) (string, error) {
	now := p.o.Now()
	hash := sha256.Sum256([]byte(access))
	claims := p.claims(given)
	claims["iss"], claims["aud"] = p.o.Issuer, p.o.ClientID
	claims["iat"], claims["exp"] = now.Unix(), now.Add(tokenLife).Unix()
	claims["at_hash"] = base64.RawURLEncoding.EncodeToString(hash[:len(hash)/2])
	if given.request.Nonce != "" {
		claims["nonce"] = given.request.Nonce
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := p.signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// claims are what the client asked to know of the person.
func (p *Provider) claims(given grant) map[string]any {
	all := map[string]any{"sub": p.subject(given.email)}
	if given.request.wants("email") {
		all["email"], all["email_verified"] = given.email, given.verified
	}
	if given.request.wants("profile") {
		all["name"] = given.name
	}
	return all
}

// subject is the same whenever a user comes with the same e-mail address, also after a restart.
func (p *Provider) subject(email string) string {
	sum := sha256.Sum256([]byte(p.issuer.Path + "\n" + strings.ToLower(email)))
	return hex.EncodeToString(sum[:12])
}

func (p *Provider) userinfo(w http.ResponseWriter, r *http.Request) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given, ok := p.grants.byToken(token)
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	writeJSON(w, http.StatusOK, p.claims(given))
}

func refuseToken(w http.ResponseWriter, status int, code string) {
	writeJSON(w, status, map[string]string{"error": code})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "The answer can't be written.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone reads nothing
}
