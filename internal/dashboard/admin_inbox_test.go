package dashboard_test

import (
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
)

// TestAdminInbox_Claim has two admins claim the same task.
func TestAdminInbox_Claim(t *testing.T) {
	o := openAdminFixture(t)
	other := o.signUp("Ravi Shah", auth.Admin)
	reviewed := string(o.sendToReview(o.unknown(640_00)))
	const list = adminHome + "/inbox"
	claim := func(by person, more ...string) *browser {
		by.post(list+"/claim", append([]string{"subject", reviewed, "kind", "manual_review"}, more...)...).leadsTo(t, list+"?kind=manual_review")
		return by.browser
	}
	o.admin.get(list).want(t, 200).reads(t, "Payout in review: ₹640.00 · Asha Rao", "I'm on it").says(t, `<b class="count">1</b>`)
	claim(o.admin).get(list).want(t, 200).reads(t, "You are on it for an hour.", "You are on it since", "Release").saysNot(t, ">I'm on it<")
	claim(other).get(list).want(t, 200).reads(t, "Another admin took it on first.", "Priya Menon is on it since").saysNot(t, "Release")
	claim(other, "release", "1").get(list).want(t, 200).reads(t, "It was not yours any more.")
	claim(o.admin, "release", "1").get(list).want(t, 200).reads(t, "Released.", "I'm on it")
	claim(o.admin)
	o.clock.advance(time.Hour)
	claim(other).get(list).want(t, 200).reads(t, "You are on it since")
	page := o.admin.get(list).want(t, 200).reads(t, "Ravi Shah is on it since")
	checkPage(t, list, page)
	o.admin.post(list+"/claim", "subject", "pyt_none").leadsTo(t, list)
	o.admin.get(list).reads(t, "Nothing was changed")
}

// TestAdminInbox_Ask asks the gateway about several payouts, each by a decision of its own.
func TestAdminInbox_Ask(t *testing.T) {
	o := openAdminFixture(t)
	one, other := o.made(640_00), o.made(650_00)
	const list = adminHome + "/inbox"
	o.admin.get(list).want(t, 200).reads(t, "Ask the gateway about several payouts").says(t, `value="`+string(one)+`" form="ask"`)
	o.admin.post(list+"/ask", "note", "Delays are reported.").want(t, 422).reads(t, "payouts must be chosen in the list.").says(t, "Delays are reported.</textarea>")
	o.admin.post(list+"/ask", "payout", string(one)).want(t, 422).reads(t, "Note must say why")
	o.wantDecisions(string(one))
	asked := o.admin.post(list+"/ask", "payout", string(one), "note", "Delays are reported.").want(t, 200).
		reads(t, "What the gateway says", string(one)+" The payout is ") // at the gateway, or completed: the sandbox settles by itself
	checkPage(t, list+"/ask", asked)
	o.wantDecisions(string(one), decision.AskGateway)
	o.wantDecisions(string(other))
	o.admin.post(list+"/ask", "payout", "<b>", "note", "x").want(t, 200).reads(t, "There is no payout with this id.").saysNot(t, "<b>")
}

// TestAdminPages_HighlightTheirEntry looks at the navigation of pages that are below no entry's address.
func TestAdminPages_HighlightTheirEntry(t *testing.T) {
	o := openAdminFixture(t)
	account := o.inReview(o.seller, "ASHA RAUT")
	o.unmatched("pout_lost", "it has a transfer of 999999986758.25 INR, made at 2026-11-20T09:30:00Z")
	for path, entry := range map[string]string{
		"": "", "/inbox": "/inbox", "/bank-accounts/" + string(account): "/inbox", "/unmatched-transfers/paper:pout_lost": "/inbox",
		"/payouts": "/payouts", "/pause": "/payouts", "/reconciliation": "/ledger", "/decisions": "/ledger", "/mails": "/health", "/sellers/" + o.seller.id: "/sellers",
	} {
		page := o.admin.get(adminHome+path).want(t, 200)
		nav, _, _ := strings.Cut(page.body, "</nav>")
		if want := `href="` + adminHome + entry + `" aria-current="page"`; !strings.Contains(nav, want) || strings.Count(nav, "aria-current") != 1 {
			t.Errorf("%s lacks %s", path, want)
		}
	}
	if nav, _, _ := strings.Cut(o.admin.get(adminHome+"/search").body, "</nav>"); strings.Contains(nav, "aria-current") {
		t.Error("the search is said to be elsewhere")
	}
	o.admin.get(adminHome+"/inbox").want(t, 200).reads(t, "a transfer of ₹9,99,99,99,86,758.25, made at Fri 20 Nov 2026, 09:30:00 UTC.")
}
