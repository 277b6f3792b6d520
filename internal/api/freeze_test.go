package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/mail"
	"bursar/internal/payout"
	"bursar/internal/proof"
)

// TestStoppedPayouts freezes a seller's payouts, then pauses all, and resumes them.
func TestStoppedPayouts(t *testing.T) {
	for _, tt := range []struct {
		name             string
		stop, resume     func(seller string) string
		stopped, resumed string
		already, not     string
		others           int
	}{
		{
			"freeze", func(s string) string { return "sellers/" + s + "/freeze" }, func(s string) string { return "sellers/" + s + "/unfreeze" },
			`{"sellerId":"SELLER","frozen":true}`, `{"sellerId":"SELLER","frozen":false}`, "already_frozen", "not_frozen", 201,
		},
		{
			"pause", func(string) string { return "payouts/pause" }, func(string) string { return "payouts/resume" },
			`{"paused":true}`, `{"paused":false}`, "already_paused", "not_paused", 409,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := openFixture(t)
			seller, other, admin := h.signUp("Asha", auth.Seller), h.signUp("Vikram", auth.Seller), h.signUp("Ada", auth.Admin)
			for i, s := range []user{seller, other} {
				h.earn(s, fmt.Sprint("s", i), "9000")
				h.withBank(s, "6789")
			}
			waits := h.request(seller, `{"amount":600}`).want(t, 201).text(t, "data.payoutId")

			act := func(by user, what, body string) answer {
				return h.do(call{method: "POST", path: "/api/admin/" + what, token: by.token, body: body})
			}
			stop, resume := tt.stop(seller.id), tt.resume(seller.id)
			const why = `{"reason":"Case no. 4711."}`
			for _, what := range []string{stop, resume} {
				act(seller, what, why).wantFailure(t, 403, "forbidden")
				act(admin, what, `{}`).wantFailure(t, 400, "invalid_request", "reason")
				act(admin, what, `{"reason":" \n"}`).wantFailure(t, 422, "validation_failed", "reason")
			}
			act(admin, resume, why).wantFailure(t, 409, tt.not)
			if got := act(admin, stop, why).want(t, 200).body; !strings.Contains(got, strings.ReplaceAll(tt.stopped, "SELLER", seller.id)) {
				t.Errorf("stopping is answered with %s", got)
			}
			act(admin, stop, why).wantFailure(t, 409, tt.already)
			if own := "sellers/" + admin.id + "/unfreeze"; resume == "sellers/"+seller.id+"/unfreeze" {
				act(admin, own, why).wantFailure(t, 403, "own_account")
			}
			mails := func() (resumed []bool) {
				for _, d := range h.mailbox.To(seller.email) {
					if m, is := d.(mail.PayoutsFrozen); is {
						resumed = append(resumed, m.Resumed)
					}
				}
				return resumed
			}
			mailed := tt.name == "freeze"
			if got := mails(); mailed != slices.Equal(got, []bool{false}) || !mailed && len(got) > 0 {
				t.Errorf("the mails to the seller say that payouts are resumed: %v", got)
			}

			request := func() answer {
				return h.do(call{method: "POST", path: "/api/payouts/request", token: seller.token, body: `{"amount":700}`, header: header("Idempotency-Key", "k1")})
			}
			for range 2 { // a key keeps no such refusal
				f := request().wantFailure(t, 409, "payouts_on_hold", "reason")
				if strings.Contains(f.Error+f.Details["reason"], "no. 4711") || f.Details["until"] != "" {
					t.Errorf("the seller reads %+v", f)
				}
			}
			h.request(other, `{"amount":600}`).want(t, tt.others)
			h.do(call{method: "GET", path: "/readyz"}).want(t, 200)

			if got := act(admin, resume, why).want(t, 200).body; !strings.Contains(got, strings.ReplaceAll(tt.resumed, "SELLER", seller.id)) {
				t.Errorf("resuming is answered with %s", got)
			}
			if got := mails(); mailed != slices.Equal(got, []bool{false, true}) || !mailed && len(got) > 0 {
				t.Errorf("the mails to the seller say that payouts are resumed: %v", got)
			}
			request().want(t, 201)
			if p, err := h.db.Payout(t.Context(), payout.ID(waits)); err != nil || p.State != payout.Waiting {
				t.Errorf("the payout that waits is %+v, %v", p, err)
			}
			for _, f := range []string{"json", "csv"} {
				statement := h.do(call{method: "GET", path: "/api/payouts/statement?from=2026-11-20&to=2026-11-30&format=" + f, token: seller.token}).want(t, 200)
				keys, err := proof.ParseKeys([]byte(h.do(call{method: "GET", path: "/.well-known/jwks.json"}).want(t, 200).body))
				must(t, err)
				if v, err := proof.Verify(strings.NewReader(statement.body), keys); err != nil || len(v.Problems) > 0 ||
					strings.Contains(statement.body, "payouts.frozen") != (tt.name == "freeze") || strings.Contains(statement.body, "no. 4711") {
					t.Errorf("the statement proves %+v, %v:\n%s", v, err, statement.body)
				}
			}
			if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
				t.Errorf("the audit finds %s, %v", fmt.Sprint(report.Findings), err)
			}
		})
	}
	h := openFixture(t)
	admin := h.signUp("Ada", auth.Admin)
	for id, code := range map[string]string{"nobody": "user_not_found", "usr_" + strings.Repeat("0", 24): "seller_not_found"} {
		h.do(call{method: "POST", path: "/api/admin/sellers/" + id + "/freeze", token: admin.token, body: `{"reason":"?"}`}).wantFailure(t, 404, code)
	}
}
