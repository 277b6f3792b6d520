package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/demo"
	"bursar/test/harness"
)

// TestDemo_ShowsEveryState looks in the demo for all that its table promises, and holds each seller's entries in the order of
// their times.
func TestDemo_ShowsEveryState(t *testing.T) {
	i := harness.NewInstance(t, "BURSAR_METRICS_ADDR=off", "BURSAR_LOGIN_THROTTLE=off")
	i.Program = []string{"demo"}
	i.Begin(t)
	harness.Until(t, "the demo is open", func() bool { return strings.Contains(i.Output(t, "stdout"), "The market is open") })
	signIn := func(email string) string {
		var in struct {
			Token string `json:"token"`
		}
		i.Call(t, "POST", "/api/auth/login", "", `{"email": "`+email+`", "password": "`+demo.Password+`"}`, &in)
		return in.Token
	}
	admin := signIn("admin@example.com")
	for _, state := range []string{"unknown", "manual_review", "late", "discrepancy", "returned", "failed", "cancelled", "completed"} {
		var found struct {
			Payouts []struct {
				ID string `json:"id"`
			} `json:"payouts"`
		}
		i.Call(t, "GET", "/api/admin/payouts?state="+state, admin, "", &found)
		if len(found.Payouts) == 0 {
			t.Errorf("no payout is %s", state)
		}
	}
	var account struct {
		Status string `json:"status"`
	}
	if i.Call(t, "GET", "/api/bank-account", signIn("imran@example.com"), "", &account); account.Status != "review" {
		t.Errorf("the bank account with another name is %s", account.Status)
	}
	var balance struct {
		Available float64 `json:"availableBalance"`
	}
	if i.Call(t, "GET", "/api/payouts/balance", signIn("rohit@example.com"), "", &balance); balance.Available >= 0 {
		t.Errorf("the balance that is to be below zero is %v", balance.Available)
	}
	for _, refused := range []struct{ path, token, body, code string }{
		{"/api/payouts/request", signIn("divya@example.com"), `{"amount": 500}`, "payouts_on_hold"},
		{"/api/auth/login", "", `{"email": "zoya@example.com", "password": "` + demo.Password + `"}`, "second_factor_required"},
	} {
		_, answer, err := harness.Send("POST", i.API+refused.path, refused.token, refused.body, nil)
		if err != nil || !strings.Contains(string(answer), `"code":"`+refused.code+`"`) {
			t.Errorf("%s is answered with %s, %v; want %s", refused.path, answer, err, refused.code)
		}
	}
	for _, p := range demo.People() {
		if p.Role == auth.Seller && p.Email != "zoya@example.com" { // who signs in with a code
			entriesAreInOrder(t, i, p.Email, signIn(p.Email))
		}
	}
}

// entriesAreInOrder reads a seller's statement of all times.
func entriesAreInOrder(t *testing.T, i *harness.Instance, email, token string) {
	t.Helper()
	var answer []byte
	harness.Until(t, "the statement of "+email, func() bool {
		status, text, err := harness.Send("GET", i.API+"/api/payouts/statement?from=2020-01-01", token, "", nil)
		answer = text
		return err == nil && status == http.StatusOK
	})
	type line struct {
		At time.Time `json:"at"`
	}
	var statement struct {
		Lines []line `json:"lines"`
	}
	if err := harness.ReadData(answer, &statement); err != nil || len(statement.Lines) < 4 {
		t.Fatalf("%s has %d lines, %v: %.300s", email, len(statement.Lines), err, answer)
	}
	if !slices.IsSortedFunc(statement.Lines, func(a, b line) int { return a.At.Compare(b.At) }) {
		t.Errorf("the entries of %s are not in the order of their times", email)
	}
}
