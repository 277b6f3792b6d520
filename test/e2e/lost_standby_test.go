//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"bursar/test/harness"
)

// The standby is killed, and every call is tried again and again: none may be answered with success, not even a repeat
// that finds what the first one did, because it was done on one machine alone. Then that machine is lost, and the
// standby takes over as it was left. The same calls are answered with success now, and were done once.
func TestStandby_Lost_NothingAcknowledged(t *testing.T) {
	if _, long := calmTime(t); !long {
		t.Skip("takes half a minute, because each write is waited for; `make failover` runs it")
	}
	primary, standby := newPair(t)
	f := newFleet(t, primary.URL("postgres", standby), 3, "BURSAR_CANCEL_WINDOW=10h")
	calls := f.separateCalls(f.newSellers(7, 10_000_00))
	standby.Kill()

	var callers sync.WaitGroup
	for name, c := range calls {
		callers.Go(func() {
			for n, i := range f.instances { // whichever is asked
				a, err := f.send(i, c)
				if err != nil || a.status < http.StatusMultipleChoices { // a refusal promises nothing
					t.Errorf("%s, try %d: answered with %d %s (%v), though no standby has it", name, n+1, a.status, a.Code, err)
				}
			}
		})
	}
	callers.Wait()
	primary.Kill()
	standby.Start()
	standby.Promote()
	for name, c := range calls {
		harness.Until(t, name+" is done", func() bool {
			a, err := f.send(f.instances[0], c)
			if err == nil && a.status < http.StatusInternalServerError && a.status >= http.StatusMultipleChoices {
				t.Fatalf("%s was answered with %d %s: %s", name, a.status, a.Code, a.Error)
			}
			return err == nil && a.status < http.StatusMultipleChoices
		})
	}
	payouts, refunds := 0, 0
	f.sql(`SELECT (SELECT COUNT(*) FROM payouts), (SELECT COUNT(*) FROM sale_refunds)`, func(r row) error { return r.Scan(&payouts, &refunds) })
	if payouts != 2 || refunds != 1 {
		t.Errorf("%d payouts and %d refunds are in the ledger, want 2 and 1", payouts, refunds)
	}
	f.command("audit")
}

// separateCalls are of all kinds that write, each of a seller of its own, so that none waits for another.
func (f *fleet) separateCalls(s []*seller) map[string]call {
	f.t.Helper()
	request := func(s *seller) call {
		return call{method: "POST", path: "/api/payouts/request", token: s.token, key: "request", body: `{"amount":700}`}
	}
	var made struct{ PayoutID string }
	f.must(request(s[0]), &made)
	var session struct{ RefreshToken string }
	login := call{method: "POST", path: "/api/auth/login", body: fmt.Sprintf(`{"email":%q,"password":%q}`, s[1].email, sellersPassword)}
	f.must(login, &session)
	return map[string]call{
		"a payout":       request(s[2]),
		"a cancellation": {method: "POST", path: "/api/payouts/" + made.PayoutID + "/cancel", token: s[0].token, key: "cancel"},
		"a sale":         f.sale("late", s[3], 100_00),
		"a refund":       {method: "POST", path: "/api/marketplace/sales/first-4/refund", token: f.serviceKey, body: `{"refundId":"r","amount":1}`},
		"a sign-in":      login,
		"a refresh":      {method: "POST", path: "/api/auth/refresh", body: fmt.Sprintf(`{"refreshToken":%q}`, session.RefreshToken)},
		"a bank account": {method: "PUT", path: "/api/bank-account", token: s[5].token, body: `{"accountHolder":"Seller 5","accountNumber":"50100239991234","ifsc":"HDFC0000053"}`},
		"a registration": {method: "POST", path: "/api/auth/register", body: `{"name":"Meera Nair","email":"meera@example.com","password":"monsoon-market"}`},
	}
}
