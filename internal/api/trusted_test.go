package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/oauth"
)

// issuer is the marketplace's own sign-in.
type issuer struct {
	h      *fixture
	url    string
	signer jose.Signer
}

// trustIssuer opens the API with an issuer whose tokens it accepts.
func (h *fixture) trustIssuer() issuer {
	h.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(h.t, err)
	public := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "k", Algorithm: "ES256", Use: "sig"}}}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	h.t.Cleanup(server.Close)
	answer := func(path string, value any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(value) })
	}
	answer("/.well-known/openid-configuration", map[string]string{"issuer": server.URL, "jwks_uri": server.URL + "/jwks"})
	answer("/jwks", public)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	must(h.t, err)
	trusted, err := oauth.NewTrusted(oauth.TrustedOptions{Issuer: server.URL, Audience: "bursar", SellerClaim: "sub", Now: h.clock.Now})
	must(h.t, err)
	h.withAuth(func(o *auth.Options) { o.TrustedIssuer = trusted })
	return issuer{h, server.URL, signer}
}

// token is one for the seller with that external id; change alters what it says.
func (i issuer) token(externalID string, change map[string]any) string {
	i.h.t.Helper()
	now := i.h.clock.Now().Unix()
	said := map[string]any{"iss": i.url, "aud": "bursar", "sub": externalID, "iat": now, "exp": now + 3600}
	maps.Copy(said, change)
	payload, err := json.Marshal(said)
	must(i.h.t, err)
	signed, err := i.signer.Sign(payload)
	must(i.h.t, err)
	token, err := signed.CompactSerialize()
	must(i.h.t, err)
	return token
}

// TestTokenOfTrustedIssuer follows a seller who never signs in here, from a bank account to a cancelled payout.
func TestTokenOfTrustedIssuer(t *testing.T) {
	h := openFixture(t)
	i := h.trustIssuer()
	seller := h.newSeller("shop-17")
	seller.token = i.token("shop-17", map[string]any{"role": "admin"})
	me := h.do(call{method: "GET", path: "/api/auth/me", token: seller.token}).want(t, 200)
	if me.text(t, "data.user.id") != seller.id || me.text(t, "data.user.role") != "seller" {
		t.Errorf("the token is of %s", me.body)
	}
	h.earn(seller, "s1", "9000")
	account := h.withBank(seller, "6789")
	h.do(call{method: "GET", path: "/api/bank-account", token: seller.token}).want(t, 200)
	balance := h.do(call{method: "GET", path: "/api/payouts/balance", token: seller.token}).want(t, 200)
	if got := fmt.Sprint(balance.read(t, "data.availableBalance")); got != "9000" {
		t.Errorf("the balance is %s", got)
	}
	request := func(key string) answer {
		return h.do(call{method: "POST", path: "/api/payouts/request", token: seller.token, body: `{"amount":600}`, header: header("Idempotency-Key", key)})
	}
	made := request("k1").want(t, 201)
	id := made.text(t, "data.payoutId")
	h.clock.advance(time.Second)
	seller.token = i.token("shop-17", nil) // another one of the same seller
	if again := request("k1").want(t, 201); again.text(t, "data.payoutId") != id {
		t.Errorf("the same again made %s", again.body)
	}
	detail := h.do(call{method: "GET", path: "/api/payouts/" + id, token: seller.token}).want(t, 200)
	if detail.text(t, "data.source") != "seller" {
		t.Errorf("the payout is %s", detail.body)
	}
	h.do(call{method: "GET", path: "/api/payouts/" + id + "/events", token: seller.token}).want(t, 200)
	h.do(call{method: "GET", path: "/api/payouts/history", token: seller.token}).want(t, 200)
	h.do(call{method: "POST", path: "/api/payouts/" + id + "/cancel", token: seller.token}).want(t, 200)

	for subject, types := range map[string][]ledger.Type{id: {ledger.PayoutRequested, ledger.PayoutCancelled}, account: {ledger.BankAccountAdded}} {
		entries, err := h.db.EntriesAbout(t.Context(), seller.id, subject)
		must(t, err)
		for n, want := range types {
			if entries[n].Type != want || entries[n].Actor != "issuer:"+i.url {
				t.Errorf("%s of %s is by %s, want %s by the issuer's token", entries[n].Type, subject, entries[n].Actor, want)
			}
		}
	}
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %s, %v", fmt.Sprint(report.Findings), err)
	}
	h.clock.advance(time.Hour + time.Minute)
	h.do(call{method: "GET", path: "/api/payouts/balance", token: seller.token}).wantFailure(t, 401, "invalid_token")
}

func TestTokenOfTrustedIssuer_NeedsASellerOfOurs(t *testing.T) {
	h := openFixture(t)
	i := h.trustIssuer()
	seller, admin := h.newSeller("17"), h.newSeller("18")
	root := h.signUp("Ada", auth.Admin)
	balance := func(token string) answer {
		return h.do(call{method: "GET", path: "/api/payouts/balance", token: token})
	}
	access := func(u user, role auth.Role, suspended bool) {
		t.Helper()
		must(t, h.auth.SetAccess(t.Context(), decision.By{Admin: root.id, Note: "Case 1"}, u.id, role, suspended))
	}
	token := i.token("17", nil)
	balance(token).want(t, 200)
	balance(i.token("17", map[string]any{"aud": "other"})).wantFailure(t, 401, "invalid_token")
	balance(i.token("17", map[string]any{"iss": "https://id.example"})).wantFailure(t, 401, "invalid_token")
	balance(i.token("19", map[string]any{"role": "seller"})).wantFailure(t, 403, "unknown_seller")
	balance(i.token(seller.id, nil)).wantFailure(t, 403, "unknown_seller") // that is our id, not theirs
	balance(i.token("ext:17", nil)).wantFailure(t, 403, "unknown_seller")
	balance(i.token(strings.Repeat("x", 300), nil)).wantFailure(t, 403, "unknown_seller")

	// The row says who somebody is, at once.
	access(admin, auth.Admin, false)
	balance(i.token("18", nil)).wantFailure(t, 403, "forbidden")
	h.do(call{method: "GET", path: "/api/admin/figures", token: i.token("18", nil)}).wantFailure(t, 403, "forbidden")
	access(seller, auth.Buyer, false)
	balance(token).wantFailure(t, 403, "forbidden")
	access(seller, auth.Seller, true)
	balance(token).wantFailure(t, 403, "seller_suspended")
	h.request(user{token: token}, `{"amount":600}`).wantFailure(t, 403, "seller_suspended")
	access(seller, auth.Seller, false)
	balance(token).want(t, 200)

	// A cookie holds tokens of ours alone.
	h.do(call{method: "GET", path: "/api/payouts/balance", header: header("Cookie", "bursar="+token)}).wantFailure(t, 401, "invalid_token")
	// Without an issuer such a token is nothing.
	h.withAuth(func(*auth.Options) {})
	balance(token).wantFailure(t, 401, "invalid_token")
}

func TestTokenOfTrustedIssuer_HasNoSession(t *testing.T) {
	h := openFixture(t)
	i := h.trustIssuer()
	h.newSeller("17")
	token := i.token("17", nil)
	for _, c := range []call{
		{method: "PATCH", path: "/api/auth/me", body: `{"bio":"x"}`},
		{method: "DELETE", path: "/api/auth/me", body: `{"password":"x"}`},
		{method: "GET", path: "/api/auth/security-events"},
		{method: "POST", path: "/api/auth/email/change", body: `{"email":"other@example.com"}`},
		{method: "GET", path: "/api/auth/factors"},
		{method: "POST", path: "/api/auth/factors", body: `{"type":"totp"}`},
		{method: "POST", path: "/api/auth/step-up", body: `{"action":"payout.request","amount":600,"password":"x"}`},
		{method: "POST", path: "/api/auth/logout"},
		{method: "GET", path: "/api/auth/export"},
		{method: "GET", path: "/api/auth/sessions"},
		{method: "DELETE", path: "/api/auth/sessions"},
		{method: "POST", path: "/api/auth/password/change", body: `{"currentPassword":"x","newPassword":"long enough"}`},
		{method: "POST", path: "/api/auth/verify-email/resend"},
	} {
		c.token = token
		h.do(c).wantFailure(t, 403, "session_needed")
	}
}

// TestTokenOfTrustedIssuer_GivesNoProof: what needs a proof of a seller who signs in here can't be done by another token.
func TestTokenOfTrustedIssuer_GivesNoProof(t *testing.T) {
	h := openFixture(t)
	i := h.trustIssuer()
	seller := h.newSeller("17")
	h.do(call{method: "POST", path: "/api/auth/password/forgot", body: `{"email":"` + seller.email + `"}`}).want(t, 200)
	h.answerMails()
	h.do(call{method: "POST", path: "/api/auth/password/reset", body: `{"token":"` + mailedTo[mail.ResetPassword](h, seller.email, 1).Token + `","password":"` + password + `"}`}).want(t, 200)
	h.clock.advance(73 * time.Hour) // the hold after that is over
	own := h.again(seller)
	h.earn(seller, "s1", "2000000")
	other := seller
	other.token = i.token("17", nil)
	account := h.withBank(other, "6789") // without a second factor no proof is needed

	above := fmt.Sprintf("%d", proveAbove/100+1)
	h.requestWith(other, above, "", "").wantFailure(t, 403, "seller_proof_required")
	proof := h.stepUp(own, `"action":"payout.request","amount":`+above+`,"password":"`+password+`"`).want(t, 200).text(t, "data.proof")
	h.requestWith(other, above, proof, "").wantFailure(t, 403, "seller_proof_required") // which is of a session
	h.requestWith(other, "600", "", "").want(t, 201)

	h.enrol(own)
	body := strings.Replace(accountBody, "6789", "2222", 1)
	h.do(call{method: "PUT", path: "/api/bank-account", token: other.token, body: body}).wantFailure(t, 403, "seller_proof_required")
	if a, err := h.bank.Account(t.Context(), seller.id); err != nil || a.ID != bank.ID(account) {
		t.Errorf("the account is %+v, %v", a, err)
	}
	told := false
	for _, d := range h.mailbox.To(seller.email) {
		_, is := d.(mail.BankAccountRefused)
		told = told || is
	}
	if !told {
		t.Error("the seller got no mail about the attempt")
	}
	h.requestWith(other, "600", "", "").want(t, 201) // it goes to the account that they confirmed
	h.requestWith(own, above, proof, "").wantFailure(t, 401, "step_up_required", "methods")
}
