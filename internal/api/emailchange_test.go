package api_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/mail"
	"bursar/internal/store"
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
	h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"` + seller.email + `","password":"` + password + `"}`}).wantFailure(t, 401, "invalid_credentials")
	h.setByLink(seller)
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

// TestEmailChange_EndsWithTheSessions has a thief's change of the address end with all that an owner, an admin and the operator do
// against a thief.
func TestEmailChange_EndsWithTheSessions(t *testing.T) {
	for name, against := range map[string]func(h *fixture, owner user){
		"the mailed removal of the factors": func(h *fixture, owner user) {
			must(t, h.auth.UndoFactors(t.Context(), mailOf[mail.FirstFactor](h, owner.email).Token, auth.Device{}))
		},
		"the operator's new password": func(h *fixture, owner user) {
			_, err := h.auth.ResetPassword(t.Context(), decision.By{Operator: "bela"}, owner.id, "another horse", true)
			must(t, err)
		},
		"a suspension": func(h *fixture, owner user) {
			by := decision.By{Admin: owner.id, Note: "A thief is in it."}
			must(t, h.auth.SetAccess(t.Context(), by, owner.id, auth.Seller, true))
			must(t, h.auth.SetAccess(t.Context(), by, owner.id, auth.Seller, false))
		},
		"the end of the other sessions": func(h *fixture, owner user) {
			h.do(call{method: "DELETE", path: "/api/auth/sessions", token: owner.token}).want(t, 200)
		},
		"the end of the thief's session": func(h *fixture, owner user) {
			list := h.do(call{method: "GET", path: "/api/auth/sessions", token: owner.token}).want(t, 200)
			sessions, _ := list.read(t, "data.sessions").([]any)
			for _, s := range sessions {
				if session, _ := s.(map[string]any); session["current"] == false {
					h.do(call{method: "DELETE", path: "/api/auth/sessions/" + session["id"].(string), token: owner.token}).want(t, 200)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := openFixture(t)
			owner := h.signUp("Asha", auth.Seller)
			thief := owner
			login := h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"` + owner.email + `","password":"` + password + `"}`}).want(t, 200)
			thief.token = login.text(t, "data.token")
			a, _, _ := h.enrol(thief)
			proof := h.stepUp(thief, `"action":"email.change","email":"thief@example.com","code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof")
			h.do(call{method: "POST", path: "/api/auth/email/change", token: thief.token, body: `{"email":"thief@example.com"}`, header: header("Step-Up", proof)}).want(t, 200)
			confirm := call{method: "POST", path: "/api/auth/email/confirm", body: `{"token":"` + mailOf[mail.ConfirmEmail](h, "thief@example.com").Token + `"}`}
			against(h, owner)
			h.do(confirm).wantFailure(t, 400, "invalid_token")
		})
	}
}

// TestUndoEmailChange_EndsLaterLinks has a thief's mailbox keep no link that removes the owner's next factor.
func TestUndoEmailChange_EndsLaterLinks(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.do(call{method: "POST", path: "/api/auth/verify-email", body: `{"token":"` + mailOf[mail.VerifyEmail](h, seller.email).Token + `"}`}).want(t, 200)
	h.do(call{method: "POST", path: "/api/auth/email/change", token: seller.token, body: `{"email":"thief@example.com"}`}).want(t, 200)
	h.do(call{method: "POST", path: "/api/auth/email/confirm", body: `{"token":"` + mailOf[mail.ConfirmEmail](h, "thief@example.com").Token + `"}`}).want(t, 200)
	h.enrol(seller)
	theirs := mailOf[mail.FirstFactor](h, "thief@example.com").Token
	must(t, h.auth.UndoEmailChange(t.Context(), mailOf[mail.EmailChanged](h, seller.email).Token, auth.Device{}))
	if err := h.auth.UndoFactors(t.Context(), theirs, auth.Device{}); !errors.Is(err, auth.ErrMailToken) {
		t.Errorf("the thief's link: %v", err)
	}
}

// TestUndoEmailChange_UnlinksLaterIdentities has a thief sign in through a provider with the address that was theirs for a while.
func TestUndoEmailChange_UnlinksLaterIdentities(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.do(call{method: "POST", path: "/api/auth/verify-email", body: `{"token":"` + mailOf[mail.VerifyEmail](h, seller.email).Token + `"}`}).want(t, 200)
	link := func(subject string) {
		must(t, h.db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddIdentity(t.Context(), seller.id, auth.Identity{Issuer: "https://a.example", Subject: subject, Email: seller.email}, h.clock.Now())
			return err
		}))
	}
	link("the owner's")
	h.clock.advance(10 * time.Minute)
	h.do(call{method: "POST", path: "/api/auth/email/change", token: seller.token, body: `{"email":"thief@example.com"}`}).want(t, 200)
	h.do(call{method: "POST", path: "/api/auth/email/confirm", body: `{"token":"` + mailOf[mail.ConfirmEmail](h, "thief@example.com").Token + `"}`}).want(t, 200)
	link("the thief's")
	must(t, h.auth.UndoEmailChange(t.Context(), mailOf[mail.EmailChanged](h, seller.email).Token, auth.Device{}))
	left, err := h.auth.Identities(t.Context(), seller.id)
	must(t, err)
	if len(left) != 1 || left[0].Subject != "the owner's" {
		t.Errorf("left are %+v", left)
	}
}

// TestConfirmEmailChange_OfAnUnconfirmedAddress leaves no link that removes factors in a mailbox that may be another person's.
func TestConfirmEmailChange_OfAnUnconfirmedAddress(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	a, _, _ := h.enrol(seller)
	theirs := mailOf[mail.FirstFactor](h, seller.email).Token
	proof := h.stepUp(seller, `"action":"email.change","email":"right@example.com","code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof")
	h.do(call{method: "POST", path: "/api/auth/email/change", token: seller.token, body: `{"email":"right@example.com"}`, header: header("Step-Up", proof)}).want(t, 200)
	h.do(call{method: "POST", path: "/api/auth/email/confirm", body: `{"token":"` + mailOf[mail.ConfirmEmail](h, "right@example.com").Token + `"}`}).want(t, 200)
	if err := h.auth.UndoFactors(t.Context(), theirs, auth.Device{}); !errors.Is(err, auth.ErrMailToken) {
		t.Errorf("the first address's link: %v", err)
	}
}

// setByLink sets a user's password by the link that was mailed when the change of the address was undone.
func (h *fixture) setByLink(u user) {
	h.t.Helper()
	token := mailOf[mail.ResetPassword](h, u.email).Token
	h.do(call{method: "POST", path: "/api/auth/password/reset", body: `{"token":"` + token + `","password":"` + password + `"}`}).want(h.t, 200)
}
