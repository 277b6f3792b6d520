package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/mail"
)

// mailedTo is the newest mail of one kind to an address, of so many.
func mailedTo[D mail.Data](h *fixture, address string, of int) D {
	h.t.Helper()
	var all []D
	for _, d := range h.mailbox.To(address) {
		if m, ok := d.(D); ok {
			all = append(all, m)
		}
	}
	if len(all) != of {
		h.t.Fatalf("%d mails %T to %s, want %d", len(all), *new(D), address, of)
	}
	return all[of-1]
}

// answerMails does what the job does.
func (h *fixture) answerMails() {
	h.t.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = h.auth.AnswerMailRequest(h.t.Context())
		must(h.t, err)
	}
}

func (h *fixture) verified(u user) bool {
	h.t.Helper()
	verified, _ := h.do(call{method: "GET", path: "/api/auth/me", token: u.token}).want(h.t, 200).read(h.t, "data.user.isVerified").(bool)
	return verified
}

func verifyBy(field, value, token string) call {
	return call{method: "POST", path: "/api/auth/verify-email", body: fmt.Sprintf(`{%q:%q}`, field, value), token: token}
}

func TestVerifyEmail(t *testing.T) {
	h := openFixture(t)
	u := h.signUp("Asha", auth.Seller)
	m := mailedTo[mail.VerifyEmail](h, u.email, 1)
	for name, c := range map[string]call{
		"neither":      {method: "POST", path: "/api/auth/verify-email", body: `{}`},
		"both":         {method: "POST", path: "/api/auth/verify-email", body: `{"token":"a","code":"b"}`},
		"another type": {method: "POST", path: "/api/auth/verify-email", body: `{"token":1}`},
	} {
		t.Run(name, func(t *testing.T) { h.do(c).wantFailure(t, 400, "invalid_request", "token") })
	}
	h.do(verifyBy("token", "wrong", "")).wantFailure(t, 400, "invalid_token")
	h.do(verifyBy("code", m.Code, "")).wantFailure(t, 401, "invalid_token")
	h.do(verifyBy("code", "00000000", u.token)).wantFailure(t, 400, "invalid_code")
	if h.verified(u) {
		t.Fatal("the user is verified")
	}
	h.do(verifyBy("code", m.Code, u.token)).want(t, 200).wantBody(t, `{"success":true,"message":"Your e-mail address is confirmed."}`)
	if !h.verified(u) {
		t.Error("the user is not verified")
	}

	other := h.signUp("Ravi", auth.Buyer)
	token := mailedTo[mail.VerifyEmail](h, other.email, 1).Token
	h.do(verifyBy("token", token, "")).want(t, 200)
	h.do(verifyBy("token", token, "")).wantFailure(t, 400, "invalid_token")
	if !h.verified(other) || strings.Contains(h.log.String(), token) || strings.Contains(h.log.String(), m.Code) {
		t.Error("the user is not verified, or the log has the token")
	}
}

func TestResendVerification(t *testing.T) {
	h := openFixture(t)
	u := h.signUp("Asha", auth.Seller)
	resend := call{method: "POST", path: "/api/auth/verify-email/resend", token: u.token}
	h.do(call{method: "POST", path: resend.path}).wantFailure(t, 401, "invalid_token")
	first := mailedTo[mail.VerifyEmail](h, u.email, 1)
	const message = `{"success":true,"message":"If your e-mail address is not confirmed yet, a new link and code are on their way to it."}`
	h.do(resend).want(t, 200).wantBody(t, message)
	second := mailedTo[mail.VerifyEmail](h, u.email, 2)
	h.do(resend).want(t, 200).wantBody(t, message) // within the minute: no mail, and the last one works
	h.do(verifyBy("token", first.Token, "")).wantFailure(t, 400, "invalid_token")
	h.do(verifyBy("token", second.Token, "")).want(t, 200)
	h.clock.advance(time.Hour)
	h.do(resend).want(t, 200).wantBody(t, message)
	mailedTo[mail.VerifyEmail](h, u.email, 2)
}

func TestForgotPassword(t *testing.T) {
	h := openFixture(t)
	u := h.signUp("Asha", auth.Seller)
	forgot := func(email string) answer {
		return h.do(call{method: "POST", path: "/api/auth/password/forgot", body: fmt.Sprintf(`{"email":%q}`, email)})
	}
	const message = `{"success":true,"message":"If there is an account with this e-mail address, a mail is on its way to it."}`
	for _, email := range []string{u.email, "ASHA@example.com", "nobody@example.com", "no address", strings.Repeat("x", 300)} {
		forgot(email).want(t, 200).wantBody(t, message)
	}
	h.do(call{method: "POST", path: "/api/auth/password/forgot", body: `{}`}).wantFailure(t, 400, "invalid_request", "email")
	h.do(call{method: "POST", path: "/api/auth/password/forgot", body: `{"email":1}`}).wantFailure(t, 400, "invalid_request", "email")
	h.answerMails()
	token := mailedTo[mail.ResetPassword](h, u.email, 1).Token

	reset := func(token, password string) answer {
		return h.do(call{method: "POST", path: "/api/auth/password/reset", body: fmt.Sprintf(`{"token":%q,"password":%q}`, token, password)})
	}
	reset(token, "short").wantFailure(t, 422, "validation_failed", "password")
	reset("wrong", "a new password").wantFailure(t, 400, "invalid_token")
	reset(token, "a new password").want(t, 200).wantBody(t, `{"success":true,"message":"Your password is set. All sessions were signed out; sign in with the new password."}`)
	reset(token, "another password").wantFailure(t, 400, "invalid_token")
	h.do(call{method: "GET", path: "/api/auth/me", token: u.token}).wantFailure(t, 401, "invalid_token")
	h.do(call{method: "POST", path: "/api/auth/refresh", body: fmt.Sprintf(`{"refreshToken":%q}`, u.refreshToken)}).wantFailure(t, 401, "invalid_refresh_token")
	login := func(password string) answer {
		return h.do(call{method: "POST", path: "/api/auth/login", body: fmt.Sprintf(`{"email":%q,"password":%q}`, u.email, password)})
	}
	login(password).wantFailure(t, 401, "invalid_credentials")
	login("a new password").want(t, 200)
	mailedTo[mail.PasswordChanged](h, u.email, 1)

	forgot(u.email).want(t, 200)
	h.clock.advance(time.Minute)
	forgot(u.email).want(t, 200)
	h.answerMails()
	late := mailedTo[mail.ResetPassword](h, u.email, 2).Token
	h.clock.advance(30 * time.Minute)
	reset(late, "another password").wantFailure(t, 400, "invalid_token")
	if strings.Contains(h.log.String(), token) || strings.Contains(h.log.String(), late) {
		t.Error("the log has a token")
	}
}

// TestRegisterAgain has the answers of registering again say nothing of whether the account is verified.
func TestRegisterAgain(t *testing.T) {
	h := openFixture(t)
	u := h.signUp("Asha", auth.Seller)
	again := func() answer {
		return h.do(call{method: "POST", path: "/api/auth/register", body: fmt.Sprintf(`{"name":"Asha","email":%q,"password":"a new password"}`, u.email)})
	}
	unverified := again()
	unverified.wantFailure(t, 400, "email_taken")
	h.do(verifyBy("token", mailedTo[mail.RegisteredAgain](h, u.email, 1).Token, "")).want(t, 200)
	h.do(call{method: "GET", path: "/api/auth/me", token: u.token}).wantFailure(t, 401, "invalid_token")
	h.do(call{method: "POST", path: "/api/auth/login", body: fmt.Sprintf(`{"email":%q,"password":"a new password"}`, u.email)}).want(t, 200)
	if verified := again(); verified.body != unverified.body || verified.status != unverified.status {
		t.Errorf("verified %s, before %s", verified.body, unverified.body)
	}
	mailedTo[mail.AccountExists](h, u.email, 1)
}

func TestRequireVerifiedEmail(t *testing.T) {
	h := openFixture(t)
	h.withAuth(func(o *auth.Options) { o.RequireVerifiedEmail = true })
	u := h.signUp("Asha", auth.Seller)
	request := call{method: "POST", path: "/api/payouts/request", body: `{"amount":500}`, token: u.token}
	h.do(request).wantFailure(t, 403, "email_not_verified")
	h.do(call{method: "POST", path: request.path, body: `{"amount":1}`, token: u.token}).wantFailure(t, 422, "validation_failed", "amount")
	h.do(call{method: "GET", path: "/api/payouts/balance", token: u.token}).want(t, 200)
	h.do(verifyBy("token", mailedTo[mail.VerifyEmail](h, u.email, 1).Token, "")).want(t, 200)
	h.do(request).wantFailure(t, 400, "bank_account_not_verified")
}
