package dashboard_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/payout"
)

func adminPayout(id payout.ID) string { return adminHome + "/payouts/" + string(id) }

func TestAskGateway_ResolvesUnknownPayout(t *testing.T) {
	o := openAdminFixture(t)
	id := o.made(640_00)
	page := adminPayout(id)
	o.admin.get(adminHome+"/inbox").want(t, 200).says(t, `href="`+page+`"`).
		reads(t, "All clear", "Resolving automatically", "₹640.00 · Asha Rao", "First sent 0 s ago")
	o.admin.get(page).want(t, 200).
		reads(t, "Unknown", "it may have been paid", "Ask the gateway now", "Send to review", "Match a transfer", "not known").
		says(t, `href="`+page+`/review"`, `action="`+page+`/ask"`).saysNot(t, "give the money back", "/cancel")

	o.admin.then(o.admin.post(page+"/ask").leadsTo(t, page)).want(t, 200).
		reads(t, "The gateway was asked", "Asked the gateway", "Priya Menon").saysNot(t, "Send to review")
	if s := o.payout(id).State; s != payout.Submitted && s != payout.Completed {
		t.Errorf("the payout is %s", s)
	}
	o.wantDecisions(string(id), decision.AskGateway)
	o.admin.get(adminHome+"/inbox").want(t, 200).saysNot(t, page)
}

func TestRefundPage_OnlyAfterTheGracePeriod(t *testing.T) {
	o := openAdminFixture(t)
	id := o.unknown(640_00)
	page := adminPayout(id)
	o.admin.get(page+"/review").want(t, 200).reads(t, "It does not cancel the transfer", "₹640.00", "Asha Rao", string(id))

	// A decision needs a note, and what was typed stays.
	o.admin.post(page+"/review", "note", " \n ").want(t, 422).reads(t, "Note must say why")
	o.wantState(id, payout.Unknown)
	long := strings.Repeat("x", 1001)
	o.admin.post(page+"/review", "note", long).want(t, 422).says(t, long).reads(t, "Note must be at most 1000 characters")
	o.wantDecisions(string(id))

	o.admin.then(o.admin.post(page+"/review", "note", "Case 4711.\r\nThey have no trace of it.").leadsTo(t, page)).want(t, 200).
		reads(t, "The payout is in review.", "Case 4711. They have no trace of it.", "Possible from", "until then something may still be on its way").
		saysNot(t, `href="`+page+`/refund"`, `href="`+page+`/review"`)
	o.wantState(id, payout.ManualReview)
	o.admin.get(page+"/refund").want(t, 200).reads(t, "Possible from").saysNot(t, "<textarea")
	o.admin.post(page+"/refund", "looked", "yes", "note", "Not there.").want(t, 400).reads(t, "can be refunded from", "Try again in")
	o.wantState(id, payout.ManualReview)

	o.clock.advance(time.Hour)
	o.admin.get(page+"/refund").want(t, 200).reads(t, "Refund ₹640.00", "It can't be undone", "I searched the gateway's own dashboard for "+string(id))
	o.admin.post(page+"/refund", "note", "Not there.").want(t, 422).reads(t, "look at the gateway's own dashboard first").says(t, "Not there.</textarea>")
	o.admin.post(page+"/refund", "looked", "yes").want(t, 422).reads(t, "Note must say why").says(t, `value="yes" id="field-looked" checked`)
	o.wantState(id, payout.ManualReview)

	o.admin.then(o.admin.post(page+"/refund", "looked", "yes", "note", "Not there, in writing.").leadsTo(t, page)).want(t, 200).
		reads(t, "Its amount is back in the seller", "Payout failed: amount available again", "₹640.00 available −₹640.00 in transit an admin", "Refunded a payout to the balance").
		saysNot(t, `href="`+page+`/refund"`)
	o.wantState(id, payout.Failed)
	o.wantDecisions(string(id), decision.ReviewPayout, decision.RefundPayout)

	// Whoever had the page open is told that it is over.
	o.admin.then(o.admin.post(page+"/refund", "looked", "yes", "note", "Again.").leadsTo(t, page)).reads(t, "Nothing was changed")
	o.wantDecisions(string(id), decision.ReviewPayout, decision.RefundPayout)
}

func TestRefundToBalance_NotIfTheGatewayHasIt(t *testing.T) {
	o := openAdminFixture(t)
	id := o.sendToReview(o.made(640_00))
	o.clock.advance(time.Hour)
	o.admin.post(adminPayout(id)+"/refund", "looked", "yes", "note", "Not there.").want(t, 400).
		reads(t, "The gateway has this payout's transfer after all. Nothing was refunded")
	if s := o.payout(id).State; s != payout.Submitted && s != payout.Completed {
		t.Errorf("the payout is %s", s)
	}
	o.wantDecisions(string(id), decision.ReviewPayout)
}

func TestMatchTransferPage_NeedsTheGatewaysConfirmation(t *testing.T) {
	o := openAdminFixture(t)
	other := o.ask(o.seller, 700_00, "")
	o.step(other.ID)
	theirs := o.payout(other.ID).GatewayID
	id := o.sendToReview(o.unknown(640_00))
	page := adminPayout(id) + "/match"
	for given, want := range map[string]struct {
		status int
		says   string
	}{
		"":                       {422, "The gateway's id of the transfer is required"},
		"../contacts":            {422, "must be the transfer's id as the gateway shows it"},
		"<b>":                    {422, "must be the transfer's id as the gateway shows it"},
		"pout_00000000000zzz":    {400, "knows no such transfer"},
		theirs:                   {400, "This transfer is not this payout's"},
		strings.Repeat("p", 500): {422, "must be the transfer's id as the gateway shows it"},
	} {
		o.admin.post(page, "gatewayId", given, "note", "Found it.").want(t, want.status).reads(t, want.says).says(t, "Found it.</textarea>")
	}
	o.admin.post(page, "gatewayId", theirs).want(t, 422).reads(t, "Note must say why")
	o.control("POST", "/control/faults", `{"path":"/v1/payouts/*","status":503,"times":5}`)
	o.admin.post(page, "gatewayId", theirs, "note", "Found it.").want(t, 503).reads(t, "The gateway gave no clear answer.")
	o.control("DELETE", "/control/faults", "")
	o.wantState(id, payout.ManualReview)
	o.wantDecisions(string(id), decision.ReviewPayout)

	made := o.sendToReview(o.made(650_00))
	found, err := o.sandboxID(made)
	must(t, err)
	o.admin.then(o.admin.post(adminPayout(made)+"/match", "gatewayId", " "+found+" ", "note", "It is in their list.").leadsTo(t, adminPayout(made))).
		reads(t, "The gateway confirmed the transfer", found)
	o.wantDecisions(string(made), decision.ReviewPayout, decision.MatchTransfer)

	waiting := adminPayout(o.ask(o.seller, 660_00, "").ID)
	o.admin.get(waiting).want(t, 200).saysNot(t, waiting+"/match")
	o.clock.advance(time.Hour) // a restored database may call it waiting though it was sent
	o.admin.get(waiting).want(t, 200).says(t, waiting+"/match")
}

func TestResolveDiscrepancy_ByTheAdminWhoSawIt(t *testing.T) {
	o := openAdminFixture(t)
	const says = `its transfer is <b>processed</b>, the payout is failed`
	id := o.withDiscrepancy(says)
	page := adminPayout(id)
	o.admin.get(page).want(t, 200).reads(t, "Discrepancy: "+says).saysNot(t, "<b>processed")
	form := o.admin.get(page+"/resolve").want(t, 200).reads(t, "It moves no money").saysNot(t, "<b>processed")
	if form.hiddenValue(t, "seen") == "" {
		t.Error("the form does not carry what was seen")
	}
	o.admin.post(page+"/resolve", "seen", says).want(t, 422).reads(t, "Note must say why")
	o.admin.post(page+"/resolve", "seen", "something else", "note", "Settled.").want(t, 400).reads(t, "Look at the payout again.").says(t, "Settled.</textarea>")
	o.wantDecisions(string(id))
	o.admin.then(o.admin.post(page+"/resolve", "seen", says, "note", "Settled.").leadsTo(t, page)).
		reads(t, "The discrepancy is marked as resolved.", "Settled.", "The gateway: "+says).saysNot(t, "Discrepancy:", "<b>processed")
	o.wantDecisions(string(id), decision.ResolveDiscrepancy)
}

// TestTamperedPayout_NotAttributedToGateway checks each page that shows an admin the tampered payout.
func TestTamperedPayout_NotAttributedToGateway(t *testing.T) {
	o := openAdminFixture(t)
	const found = "this payout or its bank account is not what was asked for: it was changed in the database outside the service, so it is frozen"
	page := adminPayout(o.withDiscrepancy(found))
	o.admin.get(page).want(t, 200).reads(t, "Changed outside Bursar: "+found).saysNot(t, "Discrepancy:")
	o.admin.get(page+"/resolve").want(t, 200).reads(t, "Found "+found).saysNot(t, "The gateway says")
	o.admin.get(adminHome+"/inbox").want(t, 200).reads(t, "Tampered with: "+found).saysNot(t, "The gateway says")
}

// TestFrozenPayout tells the seller that it is in review, and admins that it is frozen.
func TestFrozenPayout(t *testing.T) {
	o := openAdminFixture(t)
	id := o.ask(o.seller, 640_00, "").ID
	o.place.ByHand(t, `UPDATE payouts SET discrepancy = '`+payout.TamperedNote+`' WHERE id = '`+string(id)+`'`)
	o.seller.get("/dashboard/payouts/"+string(id)).want(t, 200).reads(t, "This payout is in review: our team is checking it").saysNot(t, "Frozen", "outside")
	o.admin.get(adminPayout(id)).want(t, 200).reads(t, "Frozen", "It was changed outside Bursar")
}

func TestAdminCancel_OnlyUnsentPayouts(t *testing.T) {
	o := openAdminFixture(t)
	id := o.ask(o.seller, 640_00, "").ID
	page := adminPayout(id)
	o.admin.get(page).want(t, 200).reads(t, "Not sent yet", "Cancel payout")
	o.admin.get(page+"/cancel").want(t, 200).reads(t, "returns the whole amount to the seller").says(t, "<textarea")
	o.wantState(id, payout.Waiting) // nothing changes by looking
	o.admin.then(o.admin.post(page+"/cancel", "note", "Asked for by phone").leadsTo(t, page)).
		reads(t, "The payout is cancelled", "Cancelled a payout", "Asked for by phone")
	o.wantState(id, payout.Cancelled)
	o.admin.post(page+"/cancel").leadsTo(t, page)
	o.wantDecisions(string(id), decision.CancelPayout)

	gone := o.ask(o.seller, 650_00, "").ID
	o.step(gone)
	o.admin.get(adminPayout(gone)).want(t, 200).reads(t, "−₹650.00 available ₹650.00 in transit").saysNot(t, "₹640.00")
	o.admin.get(page).want(t, 200).reads(t, "−₹640.00 available ₹640.00 in transit", "₹640.00 available −₹640.00 in transit").saysNot(t, "₹650.00")
	o.admin.then(o.admin.post(adminPayout(gone)+"/cancel")).reads(t, "Nothing was changed")
}

func TestAskingMayBringNothing(t *testing.T) {
	o := openAdminFixture(t)
	id := o.unknown(640_00)
	page := adminPayout(id)
	o.admin.then(o.admin.post(page+"/ask").leadsTo(t, page)).reads(t, "knows no transfer of this payout")
	o.control("POST", "/control/faults", `{"path":"/v1/payouts","status":503,"times":5}`)
	o.admin.post(page+"/ask", "note", "Once more").want(t, 503).reads(t, "The gateway gave no clear answer.").says(t, "Once more</textarea>")
	o.wantState(id, payout.Unknown)
	o.wantDecisions(string(id), decision.AskGateway, decision.AskGateway)
}

func TestAdminPages_PostFromElsewhere_Refused(t *testing.T) {
	o := openAdminFixture(t)
	id := o.unknown(640_00)
	paths := []string{
		adminPayout(id) + "/review", adminPayout(id) + "/ask", adminHome + "/sellers/" + o.seller.id + "/access", adminHome + "/ledger",
		adminHome + "/bank-accounts/bka_000000000000000000000000", adminHome + "/unmatched-transfers/paper:pout_1",
	}
	for _, path := range paths {
		o.admin.postFrom("https://evil.example", path, "note", "x").want(t, http.StatusForbidden).reads(t, "sent from another site")
		o.seller.post(path, "note", "x").want(t, http.StatusForbidden)
		o.browse().post(path, "note", "x").want(t, http.StatusSeeOther)
	}
	o.wantState(id, payout.Unknown)
	o.wantDecisions("", decision.AcceptBankAccount) // the one that the seller began with
	if len(o.jobs) > 0 {
		t.Error("an audit was begun")
	}
}

func TestAddressesOfNothing(t *testing.T) {
	o := openAdminFixture(t)
	id := o.unknown(640_00)
	for _, path := range []string{
		"/payouts/nonsense", "/payouts/pyt_000000000000000000000000", "/payouts/%00", adminPayout(id)[len(adminHome):] + "/explode",
		"/payouts/pyt_000000000000000000000000/review", "/bank-accounts/nonsense", "/bank-accounts/bka_000000000000000000000000",
		"/unmatched-transfers/paper:pout_none", "/unmatched-transfers/%2e%2e", "/unmatched-transfers/%00%ff", "/sellers/nobody", "/sellers/usr_000000000000000000000000", "/sellers/%00",
		"/sellers/usr_000000000000000000000000/access", "/nowhere", "/webhooks/%00",
	} {
		a := o.admin.get(adminHome+path).want(t, http.StatusNotFound)
		checkPage(t, path, a)
		if posted := o.admin.post(adminHome+path, "note", "x", "decision", "accept", "role", "buyer", "state", "active"); posted.status != 404 && posted.status != 405 {
			t.Errorf("POST %s: %d", path, posted.status)
		}
	}
	o.admin.post(adminHome+"/inbox/claim", "subject", "\x00", "release", "1").want(t, http.StatusBadRequest)
	o.admin.get(adminHome+"/payouts/nonsense").reads(t, "There is no payout with this id.")
	for _, path := range []string{
		"/payouts?page=-3", "/inbox?kind=%3Cscript%3E",
		"/sellers/" + o.seller.id + "?before=-4", "/sellers/" + o.seller.id + "?before=99999999999999999999",
	} {
		a := o.admin.get(adminHome+path).want(t, http.StatusOK).saysNot(t, "<script>")
		checkPage(t, path, a)
	}
	if strings.Contains(o.log.String(), `"level":"ERROR"`) {
		t.Errorf("the log has errors: %s", o.log)
	}
}
