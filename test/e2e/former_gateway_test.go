//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"bursar/internal/app"
	"bursar/internal/gateway/sandbox"
	"bursar/test/harness"
)

// TestFormerGateway changes the account that payouts are paid from while one is under way: it goes on at the former account, and new
// ones go through the new account.
func TestFormerGateway(t *testing.T) { onEachDatabase(t, testFormerGateway) }

func testFormerGateway(t *testing.T, url string) {
	t.Helper()
	f := newFleet(t, url, 1, "BURSAR_CANCEL_WINDOW=0s")
	s := f.newSellers(1, 5_000_00)[0]
	former, service := f.gateway, f.instances[0]
	control(t, former, "settle-after", `{"settle_after":"10h"}`)
	first := f.request(s, "first")
	harness.Until(t, "the first payout is at the gateway", func() bool { return len(moves(t, former)) == 1 })
	service.Stop(t)

	next := harness.NewInstance(t, "BURSAR_RAZORPAYX_KEY_ID=rzp_test_next", "BURSAR_RAZORPAYX_KEY_SECRET=another-secret", "BURSAR_RAZORPAYX_ACCOUNT_NUMBER=2323230041626999",
		"BURSAR_SANDBOX_SETTLE_AFTER=200ms", "BURSAR_LOG_LEVEL=warn")
	next.Program = []string{
		"sandbox", "--file", filepath.Join(next.Dir, "sandbox.db"), "--webhook-secret", "secret-of-the-next", "--webhook-url", service.API + "/api/gateway/webhooks/razorpayx-2",
	}
	next.Health = "/control/health"
	next.Start(t)
	service.Environ = append(service.Environ, "BURSAR_GATEWAY=razorpayx-2", "BURSAR_RAZORPAYX_BASE_URL="+next.API+"/v1",
		"BURSAR_RAZORPAYX_KEY_ID=rzp_test_next", "BURSAR_RAZORPAYX_KEY_SECRET=another-secret", "BURSAR_RAZORPAYX_ACCOUNT_NUMBER=2323230041626999",
		"BURSAR_RAZORPAYX_WEBHOOK_SECRETS=secret-of-the-next",
		"BURSAR_FORMER_GATEWAY=razorpayx",
		fmt.Sprintf("BURSAR_FORMER_GATEWAY_SETTINGS=base_url=%s/v1,key_id=%s,key_secret=%s,account_number=%s,webhook_secrets=%s",
			former.API, app.SandboxKeyID, sandboxSecret, app.SandboxAccountNumber, sandboxSecret))
	service.Start(t)

	second := f.request(s, "second")
	harness.Until(t, "the second payout is completed", func() bool { return f.statusOf(s, second) == "completed" })
	if status := f.statusOf(s, first); status != "processing" {
		t.Errorf("the first payout is %s while the former gateway has it under way", status)
	}
	control(t, former, "payouts/"+first, `{"status":"processed"}`)
	harness.Until(t, "the first payout is completed", func() bool { return f.statusOf(s, first) == "completed" })
	for gateway, want := range map[*harness.Instance]string{former: first, next: second} {
		if paid := moves(t, gateway); len(paid) != 1 || paid[0].ReferenceID != want || paid[0].Count != 1 || paid[0].Status != "processed" {
			t.Errorf("a gateway paid %+v, want %s alone", paid, want)
		}
	}
	control(t, former, "payouts/"+first, `{"status":"reversed","reason":"beneficiary_bank_offline"}`)
	harness.Until(t, "the service learns of the bank's return at the former gateway", func() bool { return f.statusOf(s, first) == "failed" })
	f.command("audit")
	for _, gateway := range []string{"razorpayx", "razorpayx-2"} { // of yesterday, when nothing was paid: this is about the names alone
		f.command("reconcile", "--statement", gateway)
	}
	out, err := service.Command("reconcile", "--statement", "razorpayx-3").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "statement: names no gateway that is configured; write one of [razorpayx razorpayx-2]") {
		t.Errorf("a gateway that is not configured: %v\n%s", err, out)
	}
}

// request is a payout of 500 rupees of a seller.
func (f *fleet) request(s *seller, key string) string {
	f.t.Helper()
	var made struct{ PayoutID string }
	f.must(call{method: "POST", path: "/api/payouts/request", token: s.token, key: key, body: `{"amount":500}`}, &made)
	return made.PayoutID
}

// statusOf is how a payout of a seller stands.
func (f *fleet) statusOf(s *seller, payout string) string {
	f.t.Helper()
	var p struct{ Status string }
	f.must(call{method: "GET", path: "/api/payouts/" + payout, token: s.token}, &p)
	return p.Status
}

// control has a sandbox change its ways.
func control(t *testing.T, gateway *harness.Instance, what, body string) {
	t.Helper()
	if status, said, err := harness.Send("PUT", gateway.API+"/control/"+what, "", body, nil); err != nil || status >= 300 {
		t.Fatalf("%s: %d %s %v", what, status, said, err)
	}
}

// moves are what a sandbox paid.
func moves(t *testing.T, gateway *harness.Instance) (all []sandbox.Move) {
	t.Helper()
	_, body, err := harness.Send("GET", gateway.API+"/control/moves", "", "", nil)
	if err == nil {
		err = json.Unmarshal(body, &all)
	}
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return all
}
