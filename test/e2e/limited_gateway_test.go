//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"bursar/test/harness"
)

// TestLimitedGateway pays through a gateway that lists, verifies and cancels nothing: an admin verifies accounts, an order whose answer was
// lost is paid once, and a start waits for no list.
func TestLimitedGateway(t *testing.T) { onEachDatabase(t, testLimitedGateway) }

func testLimitedGateway(t *testing.T, url string) {
	t.Helper()
	f := prepareFleet(t, url, 1, "BURSAR_CANCEL_WINDOW=0s", "BURSAR_SANDBOX_PROFILE=limited")
	f.gateway.Program = append(f.gateway.Program, "--profile", "limited")
	f.endings = []string{answerIsLost}
	f.start()
	service := f.instances[0]
	s := f.registerSellers(1, 5_000_00)[0]
	f.verifyByHand(s)

	lost := f.request(s, "lost")
	f.untilStatus(s, lost, "completed")

	control(t, f.gateway, "settle-after", `{"settle_after":"10h"}`)
	sent := f.request(s, "sent")
	harness.Until(t, "the second payout is at the gateway", func() bool { return len(moves(t, f.gateway)) == 2 })
	if a := f.once(call{method: "POST", path: "/api/payouts/" + sent + "/cancel", token: s.token}); a.Code != "payout_not_cancellable" {
		t.Errorf("a payout that the gateway can't cancel: %d %s, want payout_not_cancellable", a.status, a.Code)
	}
	service.Kill(t)
	service.Start(t)
	harness.Until(t, "the start has ended", func() bool { return f.gauge(service, "bursar_startup_reconciled") == 1 })
	third := f.request(s, "third")
	harness.Until(t, "a payout is sent after the start", func() bool { return len(moves(t, f.gateway)) == 3 })
	for _, payout := range []string{sent, third} {
		control(t, f.gateway, "payouts/"+payout, `{"status":"processed"}`)
		f.untilStatus(s, payout, "completed")
	}

	control(t, f.gateway, "payouts/"+third, `{"status":"reversed","reason":"beneficiary_bank_offline"}`)
	f.untilStatus(s, third, "failed")
	for _, paid := range moves(t, f.gateway) {
		if paid.Count != 1 {
			t.Errorf("payout %s was made %d times", paid.ReferenceID, paid.Count)
		}
	}
	if got := rupees(t, f.balance(s).AvailableBalance); got != 4_000_00 {
		t.Errorf("the balance is %d paisa after two payouts of 500 were paid", got)
	}
	f.command("audit")
	out, err := service.Command("reconcile").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "statement") {
		t.Errorf("reconciling with a gateway that has no statement: %v\n%s", err, out)
	}
}

func (f *fleet) untilStatus(s *seller, payout, status string) {
	f.t.Helper()
	harness.Until(f.t, "the payout is "+status, func() bool { return f.statusOf(s, payout) == status })
}

// verifyByHand has an admin accept a seller's account, which nobody else does.
func (f *fleet) verifyByHand(s *seller) {
	f.t.Helper()
	const email = "priya@example.com"
	create := f.instances[0].Command("user", "create", "--name", "Priya Menon", "--email", email, "--role", "admin", "--password-stdin")
	create.Stdin = strings.NewReader(sellersPassword + "\n")
	if out, err := create.CombinedOutput(); err != nil {
		f.t.Fatalf("user create: %v\n%s", err, out)
	}
	var admin struct{ Token string }
	f.must(call{method: "POST", path: "/api/auth/login", body: fmt.Sprintf(`{"email":%q,"password":%q}`, email, sellersPassword)}, &admin)
	var account struct{ ID, Status string }
	f.must(call{method: "GET", path: "/api/bank-account", token: s.token}, &account)
	if account.Status != "review" {
		f.t.Errorf("an account that the gateway can't verify is %s, want review", account.Status)
	}
	f.must(call{method: "POST", path: "/api/admin/bank-accounts/" + account.ID + "/verification", token: admin.Token, body: `{"verified":true}`}, nil)
}
