package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bursar/test/harness"
)

// TestStepUpAbove has a seller withdraw more than the operator lets a session withdraw alone.
func TestStepUpAbove(t *testing.T) {
	t.Parallel()
	i := newMailInstance(t, "BURSAR_STEP_UP_ABOVE=1000")
	var in struct {
		Token string
		User  struct{ ID string }
	}
	i.Call(t, "POST", "/api/auth/register", "", `{"name":"Asha Rao","email":"asha@example.com","password":"correct horse","role":"seller"}`, &in)
	i.Call(t, "PUT", "/api/bank-account", in.Token, `{"accountHolder":"Asha Rao","accountNumber":"50100234567812","ifsc":"HDFC0000053"}`, new(struct{}))
	harness.Until(t, "the bank account is verified", func() bool {
		var account struct{ IsVerified bool }
		i.Call(t, "GET", "/api/bank-account", in.Token, "", &account)
		return account.IsVerified
	})
	i.earn(t, in.User.ID, "order-1", 9000)
	harness.Until(t, "the sale is released", func() bool {
		var balance struct{ AvailableBalance int }
		i.Call(t, "GET", "/api/payouts/balance", in.Token, "", &balance)
		return balance.AvailableBalance == 9000
	})
	request := func(amount int, header http.Header) (int, string) {
		t.Helper()
		status, text, err := harness.Send("POST", i.API+"/api/payouts/request", in.Token, fmt.Sprintf(`{"amount":%d}`, amount), header)
		if err != nil {
			t.Fatal(err)
		}
		return status, string(text)
	}
	if status, text := request(1000, nil); status != http.StatusCreated {
		t.Errorf("as much as the limit: %d %s", status, text)
	}
	if status, text := request(1001, nil); status != http.StatusUnauthorized || !strings.Contains(text, "step_up_required") {
		t.Errorf("above the limit: %d %s", status, text)
	}
	var proven struct{ Proof string }
	i.Call(t, "POST", "/api/auth/step-up", in.Token, `{"action":"payout.request","amount":1001,"password":"correct horse"}`, &proven)
	if status, text := request(1001, http.Header{"Step-Up": {proven.Proof}}); status != http.StatusCreated {
		t.Errorf("with a proof: %d %s", status, text)
	}
	i.Stop(t)
}

// TestAdminFactorRequired has an admin sign in who has yet to enrol a second factor.
func TestAdminFactorRequired(t *testing.T) {
	t.Parallel()
	i := newMailInstance(t, "BURSAR_ADMIN_FACTOR=required")
	i.makeAdmin(t, "ada@example.com", "correct horse")
	var in struct{ Token string }
	i.Call(t, "POST", "/api/auth/login", "", `{"email":"ada@example.com","password":"correct horse"}`, &in)
	status, text, err := harness.Send("GET", i.API+"/api/payouts/history", in.Token, "", nil)
	if err != nil || status != http.StatusForbidden || !strings.Contains(string(text), "admin_factor_required") {
		t.Errorf("before the enrolment: %d %s, %v", status, text, err)
	}
	i.Call(t, "POST", "/api/auth/factors", in.Token, `{"type":"totp"}`, new(struct{}))
	i.Stop(t)
}
