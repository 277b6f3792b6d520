package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/api"
	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/payout"
)

// summary is what the seller has.
func (h *fixture) summary(u user) payout.Summary {
	h.t.Helper()
	s, err := h.payouts.Summary(h.t.Context(), u.id)
	must(h.t, err)
	return s
}

// TestRequestPayout_SessionIsConfirmed asks with a token that is good in itself, for a session that is not, or not any more. The answer says nothing of
// the request, neither what is wrong with its body nor what its key was answered, and nothing is done.
func TestRequestPayout_SessionIsConfirmed(t *testing.T) {
	for name, test := range map[string]struct {
		end    func(h *fixture, u user)
		status int
		code   string
	}{
		"signed out": {func(h *fixture, u user) {
			h.do(call{method: "POST", path: "/api/auth/logout", token: u.token}).want(h.t, 200)
		}, 401, "invalid_token"},
		"suspended": {func(h *fixture, u user) {
			_, _, err := h.auth.SetSuspended(h.t.Context(), decision.By{Operator: "tests", Note: "fraud"}, u.id, true)
			must(h.t, err)
		}, 401, "invalid_token"},
		"no seller any more": {func(h *fixture, u user) {
			_, _, err := h.auth.SetRole(h.t.Context(), decision.By{Operator: "tests", Note: "moved"}, u.id, auth.Buyer)
			must(h.t, err)
		}, 403, "forbidden"},
		"the session's row was given to another user": {func(h *fixture, u user) {
			other := h.signUp("Bina", auth.Seller)
			h.place.ByHand(h.t, `UPDATE sessions SET user_id = '`+other.id+`' WHERE user_id = '`+u.id+`'`)
		}, 401, "invalid_token"},
		"the session's row was prolonged": {func(h *fixture, u user) {
			h.place.ByHand(h.t, `UPDATE sessions SET cap_at = cap_at + 1 WHERE user_id = '`+u.id+`'`)
		}, 401, "invalid_token"},
		"the user's row was changed": {func(h *fixture, u user) {
			h.place.ByHand(h.t, `UPDATE users SET verified = 1 - verified WHERE id = '`+u.id+`'`)
		}, 401, "invalid_token"},
		"the session's row is gone": {func(h *fixture, u user) {
			h.place.ByHand(h.t, `DELETE FROM sessions WHERE user_id = '`+u.id+`'`)
		}, 401, "invalid_token"},
	} {
		t.Run(name, func(t *testing.T) {
			h := openFixture(t)
			u := h.signUp("Asha", auth.Seller)
			h.earn(u, "s1", "5000")
			h.withBank(u, "6789")
			ask := func(body, key string) call {
				return call{method: "POST", path: "/api/payouts/request", token: u.token, body: body, header: header("Idempotency-Key", key)}
			}
			h.do(ask(`{"amount":600}`, "k1")).want(t, 201)
			before := h.summary(u)
			test.end(h, u)
			for _, again := range []call{ask(`{"amount":600}`, "k1"), ask(`{"amount":700}`, "k1"), ask(`{"amount":600}`, "k2"), ask(`{"amount":-1}`, "k3"), ask(`{`, "k4")} {
				h.do(again).wantFailure(t, test.status, test.code)
			}
			if diff := cmp.Diff(before, h.summary(u)); diff != "" {
				t.Errorf("what the seller has changed (-before +after):\n%s", diff)
			}
			if strings.Contains(name, "row was") && !strings.Contains(h.log.String(), `"level":"ERROR"`) {
				t.Error("the log does not say that a row was changed by hand")
			}
		})
	}
}

// TestRequestPayout_ByAdmin is let in, although an admin's session is never confirmed by its row alone.
func TestRequestPayout_ByAdmin(t *testing.T) {
	h := openFixture(t)
	u := h.signUp("Asha", auth.Seller)
	h.earn(u, "s1", "5000")
	h.withBank(u, "6789")
	_, _, err := h.auth.SetRole(t.Context(), decision.By{Operator: "tests", Note: "promoted"}, u.id, auth.Admin)
	must(t, err)
	u = h.again(u)
	h.do(call{method: "POST", path: "/api/payouts/request", token: u.token, body: `{"amount":600}`}).want(t, 201)
	h.do(call{method: "POST", path: "/api/payouts/request", token: u.token, body: `{"amount":1}`}).wantFailure(t, 422, "validation_failed", "amount")
}

// TestRequestPayout_SessionRunsOut refuses a token that outlives its session.
func TestRequestPayout_SessionRunsOut(t *testing.T) {
	h := openFixture(t)
	u := h.signUp("Asha", auth.Seller)
	h.earn(u, "s1", "5000")
	h.withBank(u, "6789")
	ask := call{method: "POST", path: "/api/payouts/request", token: u.token, body: `{"amount":600}`}
	h.clock.advance(10 * time.Minute)
	h.do(ask).want(t, 201)
	h.place.ByHand(t, `UPDATE sessions SET expires_at = created_at + 1 WHERE user_id = '`+u.id+`'`) // which its MAC does not cover
	h.do(ask).wantFailure(t, 401, "invalid_token")
}

// lost ends the seller's session while a request is under way, and loses the answer to its commit.
type lost struct {
	api.Payouts
	signOut func()
}

func (l lost) Request(context.Context, payout.Request) (payout.Payout, bool, error) {
	l.signOut()
	return payout.Payout{}, false, fault.New(fault.Unavailable, "outcome_unknown", "It is not known whether this was done.")
}

// TestRequestPayout_OutcomeUnknown stays unknown to a seller who is signed out by then: 401 would say that nothing was done.
func TestRequestPayout_OutcomeUnknown(t *testing.T) {
	var signOut func()
	h := openFixture(t, func(o *api.Options) { o.Payouts = lost{o.Payouts, func() { signOut() }} })
	u := h.signUp("Asha", auth.Seller)
	signOut = func() { h.do(call{method: "POST", path: "/api/auth/logout", token: u.token}).want(t, 200) }
	h.do(call{method: "POST", path: "/api/payouts/request", token: u.token, body: `{"amount":600}`}).wantFailure(t, 503, "outcome_unknown")
}
