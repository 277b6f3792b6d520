package dashboard_test

import (
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/payout"
)

// TestAdminFigures reads what went out and what failed, and follows each number to its payouts.
func TestAdminFigures(t *testing.T) {
	o := openAdminFixture(t)
	o.admin.get(adminHome).want(t, 200).reads(t, "Paid today ₹0.00 0 payouts", "No payout was paid or failed in this time.").saysNot(t, "<svg class=\"plot\"")
	vikram := o.signUp("Vikram Singh", auth.Seller)
	o.withBank(vikram, "0002")
	o.earn(vikram, "order-2", 20_000_00)
	paid, failed := o.ask(o.seller, 640_00, "").ID, o.ask(vikram, 700_00, "").ID
	o.follow(paid, payout.Completed)
	o.follow(failed, payout.Failed)
	o.clock.advance(24 * time.Hour)
	o.ask(o.seller, 800_00, "")
	o.clock.advance(2 * time.Minute)

	home := o.admin.get(adminHome).want(t, 200).reads(t, "Paid today ₹0.00 0 payouts", "Paid in 7 days ₹640.00 1 payout", "Paid in 30 days ₹640.00",
		"Failed yesterday ₹700.00 1 payout", "In transit ₹800.00 1 payout, the oldest requested 2 min ago", "HDFC ₹640.00 (1) ₹700.00 (1) 50.0%",
		"Paid on each of the last 30 days", "20 November 2026 ₹640.00")
	checkPage(t, adminHome, home)
	for _, tt := range []struct{ around, lists string }{
		{`Failed yesterday</h2>\s*<p class="amount"><a href="([^"]+)"`, "1 payout, ₹700.00 in all"},
		{`In transit</h2>\s*<p class="amount"><a href="([^"]+)"`, "1 payout, ₹800.00 in all"},
		{`Paid in 7 days</h2>\s*<p class="amount"><a href="([^"]+)"`, "1 payout, ₹640.00 in all"},
		{`HDFC</th><td class="money"><a href="([^"]+)"`, "1 payout, ₹640.00 in all"},
		{`HDFC</th><td class="money">.*?</td><td class="money"><a href="([^"]+)"`, "1 payout, ₹700.00 in all"},
		{`class="rows">\s*<li><a href="([^"]+)"`, "1 payout, ₹700.00 in all"},
	} {
		o.admin.get(linkIn(t, home.body, tt.around)).want(t, 200).reads(t, tt.lists)
	}
	o.admin.get(adminHome+"?period=today").want(t, 200).reads(t, "No payout was paid or failed in this time.").says(t, `href="/dashboard/admin?period=today#banks" aria-current="true"`)
	if week := o.admin.get(adminHome+"?period=7days").want(t, 200).reads(t, "HDFC ₹640.00 (1)"); !strings.Contains(week.body, "from=2026-11-15&amp;") {
		t.Errorf("seven days begin elsewhere: %s", week.body)
	}
	o.admin.get(adminHome+"?period=%3Cscript%3E").want(t, 200).reads(t, "HDFC ₹640.00 (1)")
}
