package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
)

func TestBankAccountStory(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	get := call{method: "GET", path: "/api/bank-account", token: seller.token}
	h.do(get).wantFailure(t, 404, "bank_account_not_found")

	const unverified = `"data":{"id":"bka_X","accountHolder":"Asha Rao","accountNumber":"****6789","ifsc":"HDFC0000053","bankName":"HDFC Bank","branch":null,` +
		`"isVerified":false,"status":"unverified","reason":null,"createdAt":"2026-11-20T09:30:00.123Z","verifiedAt":null}}`
	put := call{
		method: "PUT", path: "/api/bank-account", token: seller.token,
		body: `{"accountHolder":"Asha Rao","accountNumber":"050100123456789","ifsc":"hdfc0000053","isVerified":true,"status":"verified"}`,
	}
	registered := h.do(put).want(t, 200)
	registered.wantBody(t, `{"success":true,"message":"The bank account is registered. You can withdraw to it once it is verified.",`+unverified)
	h.do(get).want(t, 200).wantBody(t, `{"success":true,`+unverified)

	decide := call{
		method: "POST", path: "/api/admin/bank-accounts/" + registered.text(t, "data.id") + "/verification",
		token: admin.token, body: `{"verified":true}`,
	}
	h.do(decide).want(t, 200).wantBody(t, `{"success":true,"message":"The decision is recorded.",`+
		`"data":{"id":"bka_X","accountHolder":"Asha Rao","accountNumber":"****6789","ifsc":"HDFC0000053","bankName":"HDFC Bank","branch":null,`+
		`"isVerified":true,"status":"verified","reason":null,"createdAt":"2026-11-20T09:30:00.123Z","verifiedAt":"2026-11-20T09:30:00.123Z"}}`)
	h.do(decide).wantFailure(t, 400, "bank_account_decided")

	if strings.Contains(h.log.String(), "3456789") {
		t.Error("the log holds the account's number")
	}
}

func TestBankAccountRules(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	good := map[string]string{"accountHolder": `"Asha Rao"`, "accountNumber": `"50100123456789"`, "ifsc": `"HDFC0000053"`}
	tests := map[string]struct{ field, value string }{
		"eight digits":        {"accountNumber", `"12345678"`},
		"nineteen digits":     {"accountNumber", `"1234567890123456789"`},
		"letters":             {"accountNumber", `"12345678A"`},
		"digits of others":    {"accountNumber", `"१२३४५६७८९"`},
		"no number":           {"accountNumber", `""`},
		"nothing but zeros":   {"accountNumber", `"000000000000"`},
		"spaced digits":       {"accountNumber", `"5010 0123 4567"`},
		"spaces around IFSC":  {"ifsc", `" HDFC0000053 "`},
		"short IFSC":          {"ifsc", `"HDFC000053"`},
		"IFSC without a zero": {"ifsc", `"HDFC1000053"`},
		"IFSC of digits":      {"ifsc", `"12340000053"`},
		"no holder":           {"accountHolder", `""`},
		"blank holder":        {"accountHolder", `"   "`},
		"holder with NUL":     {"accountHolder", `"Asha\u0000Rao"`},
		"endless holder":      {"accountHolder", `"` + strings.Repeat("a", 121) + `"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h.do(call{method: "PUT", path: "/api/bank-account", token: seller.token, body: with(good, test.field, test.value)}).
				wantFailure(t, 422, "validation_failed", test.field)
		})
	}
	h.do(call{method: "PUT", path: "/api/bank-account", token: seller.token, body: `{"accountHolder":"","accountNumber":"1","ifsc":"x"}`}).
		wantFailure(t, 422, "validation_failed", "accountHolder", "accountNumber", "ifsc")
	h.do(call{method: "GET", path: "/api/bank-account", token: seller.token}).wantFailure(t, 404, "bank_account_not_found")
}

func TestAdminDecisions(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	for _, unknown := range []string{"bka_000000000000000000000000", "x", "%00"} {
		h.do(call{method: "POST", path: "/api/admin/bank-accounts/" + unknown + "/verification", token: admin.token, body: `{"verified":true}`}).
			wantFailure(t, 404, "bank_account_not_found")
	}
	for _, unknown := range []string{"usr_000000000000000000000000", "x", "%00"} {
		h.do(call{method: "POST", path: "/api/admin/users/" + unknown + "/access", token: admin.token, body: `{"role":"buyer","suspended":false}`}).
			wantFailure(t, 404, "user_not_found")
	}
	access := call{method: "POST", path: "/api/admin/users/" + seller.id + "/access", token: admin.token}
	access.body = `{"role":"king","suspended":false}`
	h.do(access).wantFailure(t, 422, "validation_failed", "role")

	balance := call{method: "GET", path: "/api/payouts/balance", token: seller.token}
	me := call{method: "GET", path: "/api/auth/me", token: seller.token}
	h.do(balance).want(t, 200)
	access.body = `{"role":"buyer","suspended":false}`
	h.do(access).want(t, 200).wantBody(t, `{"success":true,"message":"The change applies from the user's next request.","data":{"userId":"usr_X","role":"buyer","suspended":false}}`)
	h.do(balance).wantFailure(t, 403, "forbidden") // with the same token
	if got := h.do(me).want(t, 200).text(t, "data.user.role"); got != "buyer" {
		t.Errorf("role %s", got)
	}
	access.body = `{"role":"seller","suspended":true}`
	h.do(access).want(t, 200)
	h.do(me).wantFailure(t, 401, "invalid_token")
	h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"asha@example.com","password":"correct horse battery"}`}).
		wantFailure(t, 401, "invalid_credentials")
}

// heldBack is a body whose sender waits before they send it.
type heldBack struct {
	until func()
	body  io.Reader
}

func (b *heldBack) Read(p []byte) (int, error) {
	if b.until != nil {
		b.until()
		b.until = nil
	}
	return b.body.Read(p)
}

// TestBankAccount_SessionEndsBeforeBody_Refused sends the body of a request after its session has ended: else an
// intruder who was signed out could still redirect the payouts.
func TestBankAccount_SessionEndsBeforeBody_Refused(t *testing.T) {
	h := openFixture(t)
	token := h.signUp("Mallory", auth.Seller).token
	body := &heldBack{body: strings.NewReader(`{"accountHolder": "Mallory", "accountNumber": "50100234567812", "ifsc": "HDFC0000053"}`)}
	body.until = func() {
		h.do(call{method: "POST", path: "/api/auth/logout", token: token}).want(t, 200)
		h.clock.advance(time.Second)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/api/bank-account", body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	answer{w.Code, w.Header(), w.Body.String()}.want(t, http.StatusUnauthorized)
}
