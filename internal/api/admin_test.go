package api_test

import (
	"strings"
	"testing"

	"bursar/internal/auth"
)

func TestSetAccess_ChecksNoteAndLastAdmin(t *testing.T) {
	h := openFixture(t)
	admin, seller := h.signUp("Ada", auth.Admin), h.signUp("Asha", auth.Seller)
	access := func(of user, body string) answer {
		return h.do(call{method: "POST", path: "/api/admin/users/" + of.id + "/access", token: admin.token, body: body})
	}
	access(seller, `{"role":"buyer","suspended":false,"note":"Three disputes.\nTicket 812."}`).want(t, 200)
	access(seller, `{"role":"seller","suspended":false,"note":null}`).want(t, 200)
	access(seller, `{"role":"seller","suspended":false,"note":"`+strings.Repeat("x", 1001)+`"}`).wantFailure(t, 422, "validation_failed", "note")
	access(seller, `{"role":"seller","suspended":false,"note":7}`).wantFailure(t, 400, "invalid_request", "note")
	access(admin, `{"role":"seller","suspended":false}`).wantFailure(t, 400, "last_admin")
	access(admin, `{"role":"admin","suspended":true}`).wantFailure(t, 400, "last_admin")
	h.do(call{method: "GET", path: "/api/auth/me", token: admin.token}).want(t, 200)
}
