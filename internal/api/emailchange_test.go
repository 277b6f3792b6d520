package api_test

import (
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/mail"
)

// mailOf is the last mail of a kind to an address.
func mailOf[D mail.Data](h *fixture, to string) D {
	h.t.Helper()
	var last D
	found := false
	for _, d := range h.mailbox.To(to) {
		if m, is := d.(D); is {
			last, found = m, true
		}
	}
	if !found {
		h.t.Fatalf("%s got no %T", to, last)
	}
	return last
}

func TestEmailChange(t *testing.T) {
	h := openFixture(t)
	seller, other := h.signUp("Asha", auth.Seller), h.signUp("Ravi", auth.Seller)
	h.earn(seller, "s1", "9000")
	h.withBank(seller, "6789")
	verify := mailOf[mail.VerifyEmail](h, seller.email)
	h.do(call{method: "POST", path: "/api/auth/verify-email", body: `{"token":"` + verify.Token + `"}`}).want(t, 200)
	change := func(u user, to string) answer {
		return h.do(call{method: "POST", path: "/api/auth/email/change", token: u.token, body: `{"email":"` + to + `"}`})
	}
	confirm := func(token string) answer {
		return h.do(call{method: "POST", path: "/api/auth/email/confirm", body: `{"token":"` + token + `"}`})
	}
	me := func(u user) string {
		return h.do(call{method: "GET", path: "/api/auth/me", token: u.token}).want(t, 200).text(t, "data.user.email")
	}
	change(seller, "nonsense").wantFailure(t, 422, "validation_failed", "email")
	change(seller, strings.ToUpper(seller.email)).wantFailure(t, 422, "validation_failed", "email")
	taken, free := change(seller, other.email).want(t, 200), change(seller, "new@example.com").want(t, 200)
	if taken.body != free.body {
		t.Errorf("an address that is taken is answered with %s, and a free one with %s", taken.body, free.body)
	}
	mailOf[mail.AccountExists](h, other.email)
	old := mailOf[mail.ConfirmEmail](h, "new@example.com").Token
	h.clock.advance(time.Minute)
	change(seller, "new@example.com").want(t, 200)
	token := mailOf[mail.ConfirmEmail](h, "new@example.com").Token
	confirm(old).wantFailure(t, 400, "invalid_token") // the newest mail counts
	if got := me(seller); got != seller.email {
		t.Errorf("before it is confirmed, the address is %s", got)
	}
	confirm(token).want(t, 200)
	confirm(token).wantFailure(t, 400, "invalid_token")
	if got := me(seller); got != "new@example.com" {
		t.Errorf("the address is %s", got)
	}
	h.request(seller, `{"amount":600}`).wantFailure(t, 409, "payouts_on_hold", "until")
	h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"` + seller.email + `","password":"` + password + `"}`}).wantFailure(t, 401, "invalid_credentials")
	h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"new@example.com","password":"` + password + `"}`}).want(t, 200)

	notice := mailOf[mail.EmailChanged](h, seller.email)
	if notice.Now != "new@example.com" || notice.HoldUntil.IsZero() {
		t.Errorf("the old address got %+v", notice)
	}
	confirm(notice.Token).wantFailure(t, 400, "invalid_token") // it is for undoing
	// A thief changes it once more; the first address still undoes all of it.
	change(seller, "thief@example.com").want(t, 200)
	confirm(mailOf[mail.ConfirmEmail](h, "thief@example.com").Token).want(t, 200)
	later := mailOf[mail.EmailChanged](h, "new@example.com")
	h.clock.advance(6 * 24 * time.Hour)
	must(t, h.auth.UndoEmailChange(t.Context(), notice.Token, auth.Device{}))
	h.do(call{method: "GET", path: "/api/auth/me", token: seller.token}).wantFailure(t, 401, "invalid_token")
	in := h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"` + seller.email + `","password":"` + password + `"}`}).want(t, 200)
	if got := in.text(t, "data.user.email"); got != seller.email {
		t.Errorf("after it is undone, the address is %s", got)
	}
	if err := h.auth.UndoEmailChange(t.Context(), later.Token, auth.Device{}); err == nil {
		t.Error("the thief's address undoes the undoing")
	}
	if err := h.auth.UndoEmailChange(t.Context(), notice.Token, auth.Device{}); err == nil {
		t.Error("it is undone twice")
	}
	seller.token = in.text(t, "data.token")
	h.request(seller, `{"amount":600}`).wantFailure(t, 409, "payouts_on_hold", "until")

	// Another account may have taken the address meanwhile.
	change(seller, "both@example.com").want(t, 200)
	race := mailOf[mail.ConfirmEmail](h, "both@example.com").Token
	h.do(call{method: "POST", path: "/api/auth/register", body: `{"name":"Bela Rao","email":"both@example.com","password":"` + password + `"}`}).want(t, 201)
	confirm(race).wantFailure(t, 400, "invalid_token")

	_, _, recovery := h.enrol(seller)
	change(seller, "next@example.com").wantFailure(t, 401, "step_up_required", "methods")
	proof := h.stepUp(seller, `"action":"email.change","email":"Next@example.com","recoveryCode":"`+recovery[0]+`"`).want(t, 200).text(t, "data.proof")
	h.do(call{method: "POST", path: "/api/auth/email/change", token: seller.token, body: `{"email":"next@example.com"}`, header: header("Step-Up", proof)}).want(t, 200)
	mailOf[mail.ConfirmEmail](h, "next@example.com")
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %+v, %v", report.Findings, err)
	}
}

// TestEmailChange_NeverConfirmedAddress tells the reader of the old address of the change, who may be another person: no link
// to undo it, and not the new address.
func TestEmailChange_NeverConfirmedAddress(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.do(call{method: "POST", path: "/api/auth/email/change", token: seller.token, body: `{"email":"thief@example.com"}`}).want(t, 200)
	token := mailOf[mail.ConfirmEmail](h, "thief@example.com").Token
	h.do(call{method: "POST", path: "/api/auth/email/confirm", body: `{"token":"` + token + `"}`}).want(t, 200)
	notice := mailOf[mail.EmailChanged](h, seller.email)
	if notice.Token != "" || notice.Now != "" || notice.At.IsZero() || notice.HoldUntil.IsZero() {
		t.Errorf("the old address got %+v", notice)
	}
}

// TestEmailChange_BeforeTheFirstFactor has a change that a thief began end once the owner has a second factor.
func TestEmailChange_BeforeTheFirstFactor(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.do(call{method: "POST", path: "/api/auth/email/change", token: seller.token, body: `{"email":"thief@example.com"}`}).want(t, 200)
	token := mailOf[mail.ConfirmEmail](h, "thief@example.com").Token
	h.enrol(seller)
	h.do(call{method: "POST", path: "/api/auth/email/confirm", body: `{"token":"` + token + `"}`}).wantFailure(t, 400, "invalid_token")
}
