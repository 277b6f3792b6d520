package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/proof"
)

// TestCoolDown replaces a verified bank account, as a thief would, and asks for the money.
func TestCoolDown(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	h.earn(seller, "s1", "9000")
	h.withBank(seller, "6789")
	h.request(seller, `{"amount":600}`).want(t, 201) // the first account has no cool-down

	request := func(key string) answer {
		return h.do(call{method: "POST", path: "/api/payouts/request", token: seller.token, body: `{"amount":700}`, header: header("Idempotency-Key", key)})
	}
	onHold := func(until string) {
		t.Helper()
		for _, key := range []string{"k1", "k1"} { // a key keeps no such refusal
			f := request(key).wantFailure(t, 409, "payouts_on_hold", "until")
			if f.Details["until"] != until {
				t.Errorf("on hold until %s, want %s", f.Details["until"], until)
			}
		}
	}
	h.withBank(seller, "4321")
	onHold("2026-11-23T09:30:00.123Z")
	h.clock.advance(71 * time.Hour)
	h.withBank(seller, "6789") // another replacement waits as long
	onHold("2026-11-26T08:30:00.123Z")

	statement := h.do(call{method: "GET", path: "/api/payouts/statement?from=2026-11-20&to=2026-11-30", token: seller.token}).want(t, 200)
	keys, err := proof.ParseKeys([]byte(h.do(call{method: "GET", path: "/.well-known/jwks.json"}).want(t, 200).body))
	must(t, err)
	if v, err := proof.Verify(strings.NewReader(statement.body), keys); err != nil || len(v.Problems) > 0 || !strings.Contains(statement.body, `"holdUntil":"2026-11-26T08:30:00`) {
		t.Errorf("the statement proves %+v, %v", v, err)
	}

	lift := func(by user, of, body string) answer {
		return h.do(call{method: "POST", path: "/api/admin/sellers/" + of + "/lift-hold", token: by.token, body: body})
	}
	lift(seller, seller.id, `{"note":"It was me."}`).wantFailure(t, 403, "forbidden")
	lift(admin, seller.id, `{"note":" "}`).wantFailure(t, 422, "validation_failed", "note")
	lift(admin, seller.id, `{}`).wantFailure(t, 400, "invalid_request", "note")
	lift(admin, "usr_"+strings.Repeat("0", 24), `{"note":"?"}`).wantFailure(t, 400, "no_hold")
	lift(admin, "nobody", `{"note":"?"}`).wantFailure(t, 404, "user_not_found")
	onHold("2026-11-26T08:30:00.123Z")
	lift(admin, seller.id, `{"note":"Called the seller."}`).want(t, 200)
	lift(admin, seller.id, `{"note":"Called the seller."}`).wantFailure(t, 400, "no_hold")
	request("k1").want(t, 201)

	h.withBank(seller, "4321")
	h.clock.advance(72*time.Hour - time.Millisecond)
	request("k2").wantFailure(t, 409, "payouts_on_hold", "until")
	h.clock.advance(time.Millisecond)
	request("k2").want(t, 201)
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %s, %v", fmt.Sprint(report.Findings), err)
	}
}
