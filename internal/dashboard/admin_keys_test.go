package dashboard_test

import (
	"regexp"
	"strings"
	"testing"

	"bursar/internal/auth"
)

// TestAdminKeys creates, rotates and revokes a key on its pages. The key is on the page that makes it, and on no other.
func TestAdminKeys(t *testing.T) {
	o := openAdminFixture(t)
	const list = adminHome + "/keys"
	secretOn := func(p string) string {
		t.Helper()
		return regexp.MustCompile(`bsk_[0-9A-Za-z]{40}`).FindString(p)
	}
	o.admin.post(list+"/new", "name", " ", "scopes", "sales:write").want(t, 422).reads(t, "must not begin or end with a space")
	o.admin.post(list+"/new", "name", "shop", "scopes", "everything").want(t, 422).reads(t, "must be among sellers:read")
	o.admin.post(list+"/new", "name", "shop", "expiresAt", "soon").want(t, 422).reads(t, "must be a day such as 2027-12-31")
	made := o.admin.post(list+"/new", "name", "shop", "scopes", "payouts:read sales:write", "expiresAt", "2099-12-31").want(t, 200)
	first := secretOn(made.body)
	key, err := o.auth.AuthenticateService(t.Context(), first)
	must(t, err)
	if key.Scopes != "sales:write payouts:read" || key.ExpiresAt.Year() != 2100 {
		t.Errorf("the key is %+v", key)
	}
	checkPage(t, list+"/new", made)
	o.admin.post(list+"/new", "name", "shop").want(t, 422).reads(t, "was used before")
	page := o.admin.get(list).want(t, 200).reads(t, "shop", "Active", "sales:write, payouts:read")
	checkPage(t, list, page)
	if secretOn(page.body) != "" {
		t.Error("the list shows a key")
	}

	rotate, revoke := list+"/"+key.ID+"/rotate", list+"/"+key.ID+"/revoke"
	checkPage(t, rotate, o.admin.get(rotate).want(t, 200))
	checkPage(t, revoke, o.admin.get(revoke).want(t, 200))
	o.admin.post(rotate, "graceSeconds", "721").want(t, 422).reads(t, "must be a whole number from 0 to 720")
	second := secretOn(o.admin.post(rotate, "graceSeconds", "24").want(t, 200).body)
	for _, secret := range []string{first, second} {
		if _, err := o.auth.AuthenticateService(t.Context(), secret); err != nil {
			t.Error(err)
		}
	}
	o.admin.get(list).want(t, 200).reads(t, "The key before is accepted until")
	secret := o.enrol(o.admin)
	o.admin.post(revoke).want(t, 422).reads(t, "must be a code of your authenticator app")
	o.admin.post(revoke, "code", o.codeOf(secret)).leadsTo(t, list)
	if _, err := o.auth.AuthenticateService(t.Context(), second); err == nil {
		t.Error("a revoked key is accepted")
	}
	o.admin.get(list).want(t, 200).reads(t, "Revoked").saysNot(t, "Rotate shop")
	o.admin.get(list+"/key_"+strings.Repeat("0", 24)+"/revoke").want(t, 404)
	o.signUp("Kabir Gupta", auth.Buyer).post(list+"/new", "name", "x").want(t, 403)
}
