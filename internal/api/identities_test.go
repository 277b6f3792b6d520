package api_test

import (
	"fmt"
	"strings"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/mail"
)

// confirmAddress confirms a user's address by the mailed link.
func (h *fixture) confirmAddress(u user) {
	h.t.Helper()
	h.do(call{method: "POST", path: "/api/auth/verify-email", body: `{"token":"` + mailOf[mail.VerifyEmail](h, u.email).Token + `"}`}).want(h.t, 200)
}

func TestUnlinkIdentity(t *testing.T) {
	h, p := openStreet(t)
	seller := h.signUp("Asha", auth.Seller)
	h.confirmAddress(seller)
	p.says.Email = seller.email
	list := call{method: "GET", path: "/api/auth/identities", token: seller.token}
	if none := h.do(list).want(t, 200); !strings.Contains(none.body, `"identities":[]`) {
		t.Errorf("listed are %s", none.body)
	}
	unlink := func(provider, body string) answer {
		return h.do(call{method: "DELETE", path: "/api/auth/identities/" + provider, token: seller.token, body: body})
	}
	right := fmt.Sprintf(`{"password":%q}`, password)
	unlink("provider-a", right).wantFailure(t, 404, "identity_not_found")

	b := h.browser()
	b.get(b.begin("/api/auth/provider-a")).wantSentTo(t, "/dashboard")
	listed := h.do(list).want(t, 200)
	if listed.text(t, "data.identities.0.provider") != "provider-a" || listed.text(t, "data.identities.0.issuer") != "https://a.example" || listed.text(t, "data.identities.0.subject") != "7" {
		t.Errorf("listed are %s", listed.body)
	}
	if export := h.do(call{method: "GET", path: "/api/auth/export", token: seller.token}).want(t, 200); export.text(t, "data.signIns.0.provider") != "provider-a" {
		t.Errorf("the export is %s", export.body)
	}
	if told := mailOf[mail.IdentityChanged](h, seller.email); !told.Added || told.Address != "127.0.0.1" {
		t.Errorf("mailed %+v", told)
	}

	unlink("provider-a", "").wantFailure(t, 400, "invalid_request", "password")
	unlink("provider-a", `{`).wantFailure(t, 400, "invalid_json")
	unlink("provider-a", `{"password":"a-guess-at-it"}`).wantFailure(t, 400, "wrong_password", "password")
	unlink("provider-b", right).wantFailure(t, 404, "identity_not_found")
	unlink("provider-c", right).wantFailure(t, 404, "identity_not_found")
	b.get("/api/auth/me").want(t, 200)
	unlink("provider-a", right).want(t, 200)
	b.get("/api/auth/me").want(t, 401)
	h.do(call{method: "GET", path: "/api/auth/me", token: seller.token}).want(t, 200)
	h.wantEvents(seller, "account.identity_linked", "account.identity_unlinked")
	b.get(b.begin("/api/auth/provider-a?redirect=/payouts")).wantProblem(t, auth.ErrIdentityUnlinked, "/payouts")
	h.wantCleanAudit()
}

// TestUnlinkIdentity_ByProof takes the proof of a passkey, which is then the only way to sign in.
func TestUnlinkIdentity_ByProof(t *testing.T) {
	h, seller := withoutPassword(t)
	unlink := func(proof string) answer {
		return h.do(call{method: "DELETE", path: "/api/auth/identities/provider-a", token: seller.token, header: header("Step-Up", proof)})
	}
	unlink("").wantFailure(t, 409, "last_way_in")
	h.stepUp(seller, `"action":"identity.unlink"`).wantFailure(t, 400, "invalid_request", "provider")
	early := h.stepUp(seller, `"action":"identity.unlink","provider":"provider-a"`).want(t, 200).text(t, "data.proof")
	unlink(early).wantFailure(t, 409, "last_way_in")
	d, _, _ := h.withPasskey(seller)
	unlink(early).wantFailure(t, 401, "step_up_required", "methods", "options") // it is of before
	prove := func(provider string) string {
		action := `"action":"identity.unlink","provider":"` + provider + `"`
		asked := h.stepUp(seller, action).wantFailure(t, 401, "step_up_required", "methods", "options")
		return h.stepUp(seller, action+`,"assertion":`+d.get(asked.Details["options"])).want(t, 200).text(t, "data.proof")
	}
	unlink(prove("provider-b")).wantFailure(t, 401, "step_up_required", "methods", "options")
	unlink(prove("provider-a")).want(t, 200)
	if left, err := h.auth.Identities(t.Context(), seller.id); err != nil || len(left) > 0 {
		t.Errorf("linked are %+v, %v", left, err)
	}
	h.loginPasskey(d.get(h.passkeyOptions())).want(t, 200)
}

// An app alone signs nobody in.
func TestUnlinkIdentity_AppIsNoWayIn(t *testing.T) {
	h, seller := withoutPassword(t)
	a, _, _ := h.enrol(seller)
	proof := h.stepUp(seller, `"action":"identity.unlink","provider":"provider-a","code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof")
	h.do(call{method: "DELETE", path: "/api/auth/identities/provider-a", token: seller.token, header: header("Step-Up", proof)}).wantFailure(t, 409, "last_way_in")
}

// withoutPassword is a seller who can sign in through one provider alone.
func withoutPassword(t *testing.T) (*fixture, user) {
	t.Helper()
	h, p := openStreet(t)
	p.says.Email = "asha@example.com"
	b := h.browser()
	b.get(b.begin("/api/auth/provider-a?role=seller")).wantSentTo(t, "/dashboard")
	me := b.get("/api/auth/me").want(t, 200)
	return h, user{me.text(t, "data.user.id"), me.text(t, "data.user.email"), b.cookies["bursar"].Value, ""}
}
