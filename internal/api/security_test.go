package api_test

import (
	"strings"
	"testing"

	"bursar/internal/auth"
)

func TestSecurityEvents(t *testing.T) {
	h := openFixture(t)
	seller, other, admin := h.signUp("Asha", auth.Seller), h.signUp("Ravi", auth.Seller), h.signUp("Ada", auth.Admin)
	own := call{method: "GET", path: "/api/auth/security-events", token: seller.token}
	h.do(own).want(t, 200).wantBody(t, `{"success":true,"data":{"events":[]}}`)
	h.withBank(seller, "6789")
	h.withBank(seller, "4321")
	h.do(call{method: "POST", path: "/api/admin/sellers/" + seller.id + "/lift-hold", token: admin.token, body: `{"note":"Called the seller."}`}).want(t, 200)

	const stamp = `"at":"2026-11-20T09:30:00.123Z"`
	const decided = `{"number":N,` + stamp + `,"type":"admin.decided","by":"admin","action":"lift_hold","address":null,"userAgent":null}`
	const lifted = `{"number":N,` + stamp + `,"type":"payouts.hold_lifted","by":"admin","address":null,"userAgent":null}`
	const held = `{"number":N,` + stamp + `,"type":"payouts.on_hold","by":"user","address":null,"userAgent":null}`
	unnumbered := func(a answer) string {
		for _, n := range []string{"5", "9", "10"} {
			a.body = strings.ReplaceAll(a.body, `"number":`+n+`,`, `"number":N,`)
		}
		return strings.TrimSpace(a.body)
	}
	all := `{"success":true,"data":{"events":[` + decided + `,` + lifted + `,` + held + `]}}`
	if got := unnumbered(h.do(own).want(t, 200)); got != all {
		t.Errorf("the seller's events are\n%s, want\n%s", got, all)
	}
	own.path += "?limit=2"
	if first := h.do(own).want(t, 200).body; !strings.Contains(first, `"next":9}`) {
		t.Errorf("the first page is %s", first)
	}
	own.path += "&before=9"
	if got := unnumbered(h.do(own).want(t, 200)); !strings.Contains(got, `"events":[`+held+`]`) {
		t.Errorf("the second page is %s", got)
	}
	own.path = "/api/auth/security-events?limit=1&before=9"
	if last := h.do(own).want(t, 200).body; strings.Contains(last, "next") {
		t.Errorf("the last page names another one: %s", last)
	}
	own.path = "/api/auth/security-events?before=0&limit=101"
	h.do(own).wantFailure(t, 422, "validation_failed", "before", "limit")

	of := call{method: "GET", path: "/api/admin/users/" + seller.id + "/security-events", token: admin.token}
	if got := unnumbered(h.do(of).want(t, 200)); got != all {
		t.Errorf("an admin sees\n%s, want\n%s", got, all)
	}
	of.token = other.token
	h.do(of).wantFailure(t, 403, "forbidden")
	of.token, of.path = admin.token, "/api/admin/users/nobody/security-events"
	h.do(of).wantFailure(t, 404, "user_not_found")
}
