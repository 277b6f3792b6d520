package api_test

import (
	"strings"
	"testing"

	"bursar/internal/auth"
)

// TestNotes adds notes about a seller, which no answer to the seller has.
func TestNotes(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	h.earn(seller, "s1", "9000")
	path := "/api/admin/sellers/" + seller.id + "/notes"
	do := func(method string, by user, body string) answer {
		return h.do(call{method: method, path: path, token: by.token, body: body})
	}
	if got := do("GET", admin, "").want(t, 200).body; !strings.Contains(got, `"notes":[]`) {
		t.Errorf("before the first: %s", got)
	}
	do("POST", seller, `{"note":"x"}`).wantFailure(t, 403, "forbidden")
	do("GET", seller, "").wantFailure(t, 403, "forbidden")
	do("POST", admin, `{}`).wantFailure(t, 400, "invalid_request", "note")
	do("POST", admin, `{"note":" "}`).wantFailure(t, 422, "validation_failed", "note")
	first := do("POST", admin, `{"note":"Case 4711: called."}`).want(t, 201)
	if again := do("POST", admin, `{"note":"Case 4711: called."}`).want(t, 200); again.body != first.body {
		t.Errorf("the same again is answered with %s, and was with %s", again.body, first.body)
	}
	do("POST", admin, `{"note":"Case 4712."}`).want(t, 201)
	list := do("GET", admin, "").want(t, 200).body
	if !strings.Contains(list, `"createdBy":"`+admin.id+`"`) || strings.Index(list, "Case 4712") > strings.Index(list, "Case 4711") || !strings.Contains(list, "Case 4711") {
		t.Errorf("listed are %s", list)
	}
	for _, path := range []string{
		"/api/auth/export", "/api/auth/security-events", "/api/payouts/statement?from=2026-11-20&to=2026-11-30&format=json", "/api/auth/me",
	} {
		if got := h.do(call{method: "GET", path: path, token: seller.token}).want(t, 200).body; strings.Contains(got, "Case 47") || strings.Contains(got, "note_user") {
			t.Errorf("%s tells the seller of the notes: %s", path, got)
		}
	}
	for _, nobody := range []string{"nobody", "usr_" + strings.Repeat("0", 24)} {
		h.do(call{method: "POST", path: "/api/admin/sellers/" + nobody + "/notes", token: admin.token, body: `{"note":"x"}`}).wantFailure(t, 404, "user_not_found")
	}
	h.do(call{method: "GET", path: "/api/admin/sellers/nobody/notes", token: admin.token}).wantFailure(t, 404, "user_not_found")
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %v, %v", report.Findings, err)
	}
}

// TestPauseState reads whether payouts are paused, through two pauses, and while its record was tampered with.
func TestPauseState(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	state := func() string {
		t.Helper()
		return h.do(call{method: "GET", path: "/api/admin/payouts/pause", token: admin.token}).want(t, 200).body
	}
	decide := func(what, reason string) {
		t.Helper()
		h.do(call{method: "POST", path: "/api/admin/payouts/" + what, token: admin.token, body: `{"reason":"` + reason + `"}`}).want(t, 200)
	}
	h.do(call{method: "GET", path: "/api/admin/payouts/pause", token: seller.token}).wantFailure(t, 403, "forbidden")
	const running = `{"paused":false,"since":null,"by":null,"reason":null}`
	if got := state(); !strings.Contains(got, running) {
		t.Errorf("before the first pause: %s", got)
	}
	decide("pause", "Case 4711.")
	if got := state(); !strings.Contains(got, `"paused":true,"since":"2026-11-`) || !strings.Contains(got, `"by":"admin:`+admin.id+`","reason":"Case 4711."`) {
		t.Errorf("with a pause: %s", got)
	}
	decide("resume", "It is back.")
	if got := state(); !strings.Contains(got, running) {
		t.Errorf("after the pause: %s", got)
	}
	decide("pause", "Case 4712.")
	if got := state(); !strings.Contains(got, "Case 4712.") {
		t.Errorf("with the second pause: %s", got)
	}
	h.place.ByHand(t, `UPDATE entries SET data = '{}' WHERE owner = 'platform' AND type = 'payouts.frozen'`)
	if got := state(); !strings.Contains(got, `{"paused":true,"since":null,"by":null,"reason":null}`) {
		t.Errorf("with its record tampered with: %s", got)
	}
}
