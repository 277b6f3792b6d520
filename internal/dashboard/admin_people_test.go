package dashboard_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

func TestBankAccountReview_ShowsBothNames(t *testing.T) {
	o := openAdminFixture(t)
	vikram := o.signUp("Vikram Singh", auth.Seller)
	id := o.inReview(vikram, "ASHA <b>RAUT</b>")
	page := adminHome + "/bank-accounts/" + string(id)
	o.admin.get(adminHome+"/inbox").want(t, 200).says(t, `href="`+page+`"`).reads(t, "similar, and may be two people's (72 of 100)", "ASHA <b>RAUT</b>")
	o.admin.get(page).want(t, 200).
		reads(t, "The seller wrote Asha Rao", "The bank says ASHA <b>RAUT</b>", "Vikram Singh", "•••• 7777", "HDFC0000053", "In review").
		says(t, "<mark>Rao</mark>").saysNot(t, "<b>RAUT", "<mark>Asha")

	o.admin.post(page, "note", "x").want(t, 422).reads(t, "Your decision must be to accept or to reject.")
	o.admin.post(page, "decision", "reject", "note", "Another name.").want(t, 422).reads(t, "Reason for the seller must say").
		says(t, "Another name.</textarea>", `value="reject" checked`)
	o.admin.post(page, "decision", "reject", "reason", "Not yours.").want(t, 422).reads(t, "Note must say why").says(t, "Not yours.</textarea>")
	o.wantDecisions(string(id))

	o.admin.then(o.admin.post(page, "decision", "reject", "reason", "Not <i>yours</i>.", "note", "Another name.").leadsTo(t, page)).want(t, 200).
		reads(t, "The bank account is rejected.", "Vikram Singh Rejected", "Not <i>yours</i>.", "Rejected a bank account", "Another name.").saysNot(t, "<i>yours")
	vikram.get("/dashboard/bank-account").reads(t, "Not <i>yours</i>.").saysNot(t, "Another name.", "RAUT")

	o.clock.advance(time.Second)
	// It may still be accepted, and then there is nothing to decide any more.
	o.admin.post(page, "decision", "accept", "note", "They sent a cheque.", "seen", "review").want(t, 400).
		reads(t, "This bank account was rejected. Look at it again").says(t, `name="seen" value="rejected"`)
	o.admin.then(o.admin.post(page, "decision", "accept", "note", "They sent a cheque.", "seen", "rejected").leadsTo(t, page)).
		reads(t, "The bank account is accepted.", "Verified").saysNot(t, "<textarea")
	account, err := o.bank.Account(t.Context(), vikram.id)
	must(t, err)
	if account.Status != bank.StatusVerified {
		t.Errorf("the account is %s", account.Status)
	}
	o.admin.then(o.admin.post(page, "decision", "reject", "reason", "x", "note", "y").leadsTo(t, page)).reads(t, "Nothing was changed")
	o.wantDecisions(string(id), decision.RejectBankAccount, decision.AcceptBankAccount)

	meera := o.signUp("Meera Nair", auth.Seller)
	former := o.inReview(meera, "ASHA RAUT")
	o.withBank(meera, "1234")
	page = adminHome + "/bank-accounts/" + string(former)
	o.admin.get(page).want(t, 200).reads(t, "This account is not the seller's current one any more").saysNot(t, "<textarea")
	o.admin.then(o.admin.post(page, "decision", "accept", "note", "y").leadsTo(t, page)).reads(t, "Nothing was changed")
	o.wantDecisions(string(former))
}

func TestUnmatchedTransferPage_ResolvedOnce(t *testing.T) {
	o := openAdminFixture(t)
	o.unmatched("pout_lost", "its <b>seller</b> is not in the ledger")
	const page = adminHome + "/unmatched-transfers/paper:pout_lost"
	o.admin.get(adminHome+"/inbox?kind=unmatched-transfer").want(t, 200).says(t, `href="`+page+`"`).reads(t, "Unmatched transfer (1)", "₹700.00 · usr_gone").saysNot(t, "<b>seller")
	o.admin.get(page).want(t, 200).reads(t, "no payout matches it: its <b>seller</b> is not in the ledger.", "₹700.00", "Currency INR", "paid", "Bank reference (UTR) 627812345678", "pyt_lost", "usr_gone not in the ledger").
		saysNot(t, "<b>seller")
	o.admin.post(page).want(t, 422).reads(t, "Note must say why")
	o.wantDecisions("paper:pout_lost")
	o.admin.then(o.admin.post(page, "note", "Asha has it; she pays it back.").leadsTo(t, page)).
		reads(t, "The unmatched transfer is marked as resolved.", "paper:pout_lost is resolved.", "Asha has it").saysNot(t, "<textarea")
	o.admin.then(o.admin.post(page, "note", "Again.").leadsTo(t, page)).reads(t, "Nothing was changed")
	o.wantDecisions("paper:pout_lost", decision.ResolveUnmatchedTransfer)
	o.admin.get(adminHome+"/inbox").reads(t, "All clear.")
	o.admin.get(adminHome+"/decisions").want(t, 200).reads(t, "Resolved an unmatched transfer").says(t, `href="`+page+`"`)
}

func TestAdminInbox_BoundedAndOldestFirst(t *testing.T) {
	o := openAdminFixture(t)
	for i := range 60 {
		o.unmatched(fmt.Sprintf("pout_%03d", i), "its seller is not in the ledger")
		o.clock.advance(1)
	}
	o.clock.advance(1e9)
	inReview := o.sendToReview(o.unknown(640_00))
	list := o.admin.get(adminHome+"/inbox").want(t, 200).reads(t, "There are more. They come up as these are done.").saysNot(t, "pout_050", string(inReview))
	if strings.Index(list.body, "pout_000") > strings.Index(list.body, "pout_001") {
		t.Error("the newest comes first")
	}
	o.admin.get(adminHome+"/inbox?kind=manual_review").want(t, 200).says(t, string(inReview)).saysNot(t, "pout_000", "There are more")
	o.admin.get(adminHome).reads(t, "60 unmatched transfers", "1 payout in review,")
}

// TestAdminSearch finds what an admin has in hand, and leads to the only thing that there is.
func TestAdminSearch(t *testing.T) {
	o := openAdminFixture(t)
	const page = adminHome + "/search"
	id := o.ask(o.seller, 640_00, "").ID
	o.follow(id, payout.Completed)
	p := o.payout(id)
	vikram := o.signUp("Asha Raut", auth.Seller)
	vikram.post("/dashboard/profile", "name", "Asha <b>Raut</b>").leadsTo(t, "/dashboard/profile")
	o.withBank(vikram, "6789")
	o.earn(vikram, "order-77", 900_00)
	o.ask(o.seller, 700_00, "")
	find := func(query string) answer { return o.admin.get(page + "?q=" + url.QueryEscape(query)) }

	o.admin.get(page).want(t, 200).saysNot(t, "Nothing was found")
	for _, reference := range []string{string(id), p.GatewayID, p.UTR, "  " + p.UTR, "₹640", string(id)[8:20]} {
		find(reference).leadsTo(t, adminPayout(id))
	}
	find("asha.rao@").leadsTo(t, adminHome+"/sellers/"+o.seller.id)
	find("order-77").leadsTo(t, adminHome+"/sellers/"+vikram.id)
	find("ASHA").want(t, 200).reads(t, "Users", "Asha Rao", "Asha <b>Raut</b>").saysNot(t, "<b>Raut")
	find("6789").leadsTo(t, linkIn(t, o.admin.get(adminHome+"/sellers/"+vikram.id).body, `href="([^"]*/bank-accounts/[^"]*)"`))
	kabir := o.signUp("Kabir Gupta", auth.Seller)
	o.withBank(kabir, "6789")
	find("6789").want(t, 200).reads(t, "Bank accounts", "of Kabir Gupta", "HDFC0000053 •••• 6789 of Asha <b>Raut</b>").saysNot(t, accountDigits)
	find("nobody<b>").want(t, 200).reads(t, "Nothing was found.").saysNot(t, "nobody<b>")
	find("%").want(t, 200).reads(t, "Nothing was found.")
	for _, query := range []string{"\x00", "\xff", strings.Repeat("x", 300)} {
		find(query).want(t, 422).reads(t, "What you search for must be 1 to 254 characters")
	}
	for _, path := range []string{"", "/payouts", "/sellers"} {
		o.admin.get(adminHome+path).want(t, 200).says(t, `action="`+page+`"`)
	}
}

// linkIn finds an address in a page by a pattern around it.
func linkIn(t *testing.T, body, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("nothing like %s in %s", pattern, body)
	}
	return html.UnescapeString(found[1])
}

// TestAdminPayouts selects payouts by what stands above the list, and leads from page to page.
func TestAdminPayouts(t *testing.T) {
	o := openAdminFixture(t)
	vikram := o.signUp("Vikram Singh", auth.Seller)
	o.withBank(vikram, "6789")
	o.earn(vikram, "order-2", 20_000_00)
	const page = adminHome + "/payouts"
	for range 24 {
		o.ask(vikram, 500_00, "")
		o.clock.advance(time.Second)
	}
	paid := o.ask(o.seller, 640_00, "").ID
	o.follow(paid, payout.Completed)
	o.ask(o.seller, 700_50, "")

	all := o.admin.get(page).want(t, 200).reads(t, "26 payouts, ₹13,340.50 in all", "Next page", o.payout(paid).UTR, "HDFC •••• 6789")
	o.admin.get(linkIn(t, all.body, `rel="next" href="([^"]+)"`)).want(t, 200).reads(t, "26 payouts, ₹13,340.50 in all", "First page").saysNot(t, "Next page", "₹700.50")
	o.admin.get(page+"?state=waiting&sellerId="+o.seller.id).want(t, 200).reads(t, "1 payout, ₹700.50 in all", "Payouts of Asha Rao").
		says(t, `name="sellerId" value="`+o.seller.id+`"`, `state=late`, `href="/api/admin/payouts?format=csv&amp;sellerId=`+o.seller.id+`&amp;state=waiting"`)
	o.admin.get(page+"?minAmount=600&sort=amount&status=completed").want(t, 200).reads(t, "1 payout, ₹640.00 in all").says(t, `<option value="amount" selected>`, "<details open>")
	o.admin.get(page+"?from=2026-11-20&to=2026-11-19").want(t, 422).reads(t, "Last day must not be before from.").says(t, "<details open>")
	o.admin.get(page+"?status=x&minAmount=lots").want(t, 422).reads(t, "status must be all, processing, completed, failed or cancelled.", "Least amount must be an amount above zero").
		saysNot(t, "in all")
	o.clock.advance(4 * 24 * time.Hour)
	o.admin.get(page+"?state=late&minAmount=600").want(t, 200).reads(t, "1 payout, ₹700.50 in all", "₹700.50 Late Asha Rao")
}

func TestHistory_AddsUpToTheBalance(t *testing.T) {
	o := openAdminFixture(t) // entries 1 to 3 are about the bank account, 4 and 5 earn and release ₹20,000.00
	page := adminHome + "/sellers/" + o.seller.id
	cancelled := o.ask(o.seller, 700_00, "").ID // 6
	_, _, err := o.payouts.Cancel(t.Context(), payout.Caller{User: o.seller.id}, cancelled, "")
	must(t, err) // 7
	paid := o.ask(o.seller, 1_000_00, "").ID
	o.follow(paid, payout.Completed) // 8 to 12, of which one names the account at the gateway
	_, _, err = o.auth.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "Shop & Sons"}, "operator:tests")
	must(t, err)
	keys, err := o.auth.ServiceKeys(t.Context())
	must(t, err)
	_, _, _, err = o.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "return-1", Amount: 500_00, Actor: keys[0].Actor()})
	must(t, err) // 13
	const seller = "by the seller "
	o.admin.get(page).want(t, 200).reads(t,
		"asha.rao@example.com", "Seller", "password", "•••• 0008", "Available ₹18,500.00", "Paid out ₹1,000.00 ₹19,500.00 total earnings after refunds",
		"Refund by service key Shop & Sons order-1 −₹500.00 available ₹500.00 sales ₹18,500.00 ₹0.00 ₹0.00",
		"Payout paid to the bank by the gateway "+string(paid)+" −₹1,000.00 in transit ₹990.00 gateway ₹10.00 fees ₹19,000.00 ₹0.00 ₹0.00",
		"Payout cancelled: amount available again "+seller+string(cancelled)+" ₹700.00 available −₹700.00 in transit ₹20,000.00 ₹0.00 ₹0.00",
		"Payout requested: amount reserved "+seller+string(cancelled)+" −₹700.00 available ₹700.00 in transit ₹19,300.00 ₹0.00 ₹700.00",
		"Sale released by Bursar order-1 −₹20,000.00 pending ₹20,000.00 available ₹20,000.00 ₹0.00 ₹0.00",
		"Sale by the marketplace order-1 ₹20,000.00 pending −₹20,000.00 sales ₹0.00 ₹20,000.00 ₹0.00",
		"Bank account verified by an admin", "Bank account added "+seller,
	).says(t, `href="`+adminPayout(cancelled)+`"`).saysNot(t, accountDigits, "Older entries")

	for i := range 38 { // 76 more, so three pages
		o.earn(o.seller, fmt.Sprintf("more-%d", i), 10_00)
	}
	first := o.admin.get(page).want(t, 200).reads(t, "Available ₹18,880.00", "Older entries").says(t, `href="`+page+`?before=60#history"`)
	checkPage(t, page, first)
	oldest := o.admin.get(page+"?before=30").want(t, 200).says(t, `href="`+page+`#history"`).reads(t,
		"Sale by the marketplace order-1 ₹20,000.00 pending −₹20,000.00 sales ₹0.00 ₹20,000.00 ₹0.00").saysNot(t, "Older entries")
	checkPage(t, page, oldest)
}

func TestHistory_ThatMovesWhileItIsRead(t *testing.T) {
	o := openAdminFixture(t)
	page := adminHome + "/sellers/" + o.seller.id
	reads := 0
	o.audited.meanwhile = func() {
		if reads++; reads == 1 {
			o.earn(o.seller, "meanwhile", 10_00)
		}
	}
	o.admin.get(page).want(t, 200).reads(t, "Available ₹20,010.00", "meanwhile −₹10.00 pending ₹10.00 available ₹20,010.00 ₹0.00 ₹0.00")
	if reads != 2 {
		t.Errorf("the balance was read %d times, want again once it had moved", reads)
	}
	o.audited.meanwhile = func() {
		reads++
		o.earn(o.seller, fmt.Sprintf("meanwhile-%d", reads), 10_00)
	}
	o.admin.get(page).want(t, 200).reads(t, // each row says what the accounts held after it, whatever came since
		"meanwhile-3 −₹10.00 pending ₹10.00 available ₹20,020.00 ₹0.00 ₹0.00", "meanwhile-4 −₹10.00 pending ₹10.00 available ₹20,030.00 ₹0.00 ₹0.00")
	if reads != 4 {
		t.Errorf("the balance was read %d times, want no more than twice for a page", reads)
	}
}

// TestPersonPage_WithoutHistory though an admin decided about them, which is an entry.
func TestPersonPage_WithoutHistory(t *testing.T) {
	o := openAdminFixture(t)
	buyer := o.signUp("Bela Shah", auth.Buyer)
	page := adminHome + "/sellers/" + buyer.id
	o.admin.post(page+"/access", "seen", "buyer active", "confirm", buyer.email, "role", "buyer", "state", "suspended", "note", "Case 12.").leadsTo(t, page)
	o.admin.get(page).want(t, 200).reads(t, "Changed access", "Case 12.").saysNot(t, `id="history"`, "Paid out")
}

// TestPersonPage_ShowsRepair checks that the journal shows a repair and the operator who ran it.
func TestPersonPage_ShowsRepair(t *testing.T) {
	o := openAdminFixture(t)
	page := adminHome + "/sellers/" + o.seller.id
	o.place.ByHand(t, `UPDATE journals SET available = available + 1000000 WHERE sales > 0`)
	o.admin.get(page).want(t, 200).reads(t, "The balance was changed outside Bursar, so it is not shown.", "₹20,000.00 available ₹20,000.00 ₹0.00 ₹0.00").saysNot(t, "30,000.00", "Paid out")
	if repairs, err := o.db.Repair(t.Context(), o.audited.keys, "asha", o.clock.Now(), true); err != nil || len(repairs) != 1 {
		t.Errorf("repaired were %+v, %v; want one row", repairs, err)
	}
	o.admin.get(page).want(t, 200).reads(t, "Available ₹20,000.00", "Record repaired by an operator by operator asha "+o.seller.id)
}

// TestTamperedJournal_PagesShowWarning checks both pages that list entries: the person's and the payout's.
func TestTamperedJournal_PagesShowWarning(t *testing.T) {
	o := openAdminFixture(t)
	id := o.ask(o.seller, 700_00, "").ID // 6
	page := adminHome + "/sellers/" + o.seller.id
	tampered := []string{"The list ends at an entry that was changed in the database", "Some of these entries were not written by Bursar"}
	o.admin.get(page).want(t, 200).saysNot(t, tampered...)
	o.admin.get(adminPayout(id)).want(t, 200).saysNot(t, tampered...)

	o.place.ByHand(t, `UPDATE entries SET actor = 'admin:nobody' WHERE number = 6`)
	o.admin.get(adminPayout(id)).want(t, 200).reads(t, tampered[1])
	o.place.ByHand(t, `UPDATE entries SET after = 'mine' WHERE number = 4`)
	a := o.admin.get(page).want(t, 200).reads(t, tampered[0], "Available ₹19,300.00", "Payout requested: amount reserved", "Sale released").saysNot(t, "Bank account added", "Older entries")
	checkPage(t, page, a)
}

func TestPeopleAreListed(t *testing.T) {
	o := openAdminFixture(t)
	const page = adminHome + "/sellers"
	o.admin.get(page).want(t, 200).reads(t, "Asha Rao Seller asha.rao@example.com Active", "Priya Menon Admin")
	for i := range 26 {
		_, err := o.auth.CreateUser(t.Context(), auth.Registration{Name: "Kabir", Email: fmt.Sprintf("kabir%d@example.com", i), Password: password, Role: auth.Buyer})
		must(t, err)
	}
	o.admin.get(page).want(t, 200).reads(t, "There are more.")
	buyer, err := o.auth.FindUsers(t.Context(), "kabir1@", 1)
	must(t, err)
	o.admin.get(page+"/"+buyer[0].ID).want(t, 200).reads(t, "Buyer", "No bank account.").saysNot(t, "Every transfer")
}

func TestAccess_ChangeNeedsNote(t *testing.T) {
	o := openAdminFixture(t)
	person := adminHome + "/sellers/" + o.seller.id
	page := person + "/access"
	o.admin.get(page).want(t, 200).reads(t, "Asha Rao, asha.rao@example.com , is now a seller.", "Nobody has confirmed this e-mail address").says(t, `value="seller" checked`, `value="active" id="field-state" checked`)
	o.admin.post(page, "seen", "seller active", "confirm", "Asha.Rao@example.com ", "role", "seller", "state", "active", "note", "x").want(t, 400).reads(t, "That is their access already.")
	o.admin.post(page, "seen", "seller active", "confirm", "Asha.Rao@example.com ", "role", "seller", "state", "suspended").want(t, 422).reads(t, "Note must say why").says(t, `value="suspended" checked`)
	o.admin.post(page, "seen", "seller active", "confirm", "Asha.Rao@example.com ", "role", "owner", "state", "active", "note", "x").want(t, 422).reads(t, "Role must be buyer, seller or admin")
	o.admin.post(page, "seen", "seller active", "confirm", "Asha.Rao@example.com ", "role", "seller", "note", "x").want(t, 422).reads(t, "must be active or suspended")
	o.admin.post(page, "seen", "seller active", "confirm", "vikram@example.com", "role", "buyer", "state", "active", "note", "Ticket 812").want(t, 422).
		reads(t, "Their e-mail address must be asha.rao@example.com.").says(t, "Ticket 812</textarea>", `value="vikram@example.com"`)
	o.wantDecisions(o.seller.id)
	o.seller.get("/dashboard").want(t, 200)

	o.admin.then(o.admin.post(page, "seen", "seller active", "confirm", "Asha.Rao@example.com ", "role", "seller", "state", "suspended", "note", "Ticket <b>812</b>").leadsTo(t, person)).
		reads(t, "The change applies from the user's next request.", "Suspended", "Now seller, suspended. Ticket <b>812</b>").saysNot(t, "<b>812")
	o.seller.get("/dashboard").leadsTo(t, "/login")
	o.wantDecisions(o.seller.id, decision.ChangeAccess)
	o.admin.post(page, "seen", "seller active", "confirm", "Asha.Rao@example.com ", "role", "buyer", "state", "active", "note", "an older page").want(t, 400).
		reads(t, "Another admin changed this user").says(t, `value="seller suspended"`, `value="suspended" checked`)
	o.wantDecisions(o.seller.id, decision.ChangeAccess)

	// The last admin stays one.
	own := adminHome + "/sellers/" + o.admin.id + "/access"
	o.admin.get(own).want(t, 200).reads(t, "This is you.")
	o.admin.post(own, "seen", "admin active", "confirm", o.admin.email, "role", "buyer", "state", "active", "note", "I leave").want(t, 400).reads(t, "admin").says(t, "I leave</textarea>", `value="buyer" id="field-role" checked`)
	o.admin.get(adminHome).want(t, 200)
	o.signUp("Ada", auth.Admin)
	o.admin.post(own, "seen", "admin active", "confirm", o.admin.email, "role", "buyer", "state", "active", "note", "I leave").leadsTo(t, "/dashboard")
	o.admin.get(adminHome).want(t, 403)
}

func TestAdminHome_ShowsTheReviewQueue(t *testing.T) {
	o := openAdminFixture(t)
	o.admin.get(adminHome).want(t, 200).reads(t, "All clear.", "No seller has requested a payout yet.", "payouts are sent")
	o.sendToReview(o.unknown(640_00))
	o.withDiscrepancy("its transfer is processed, the payout is waiting")
	o.unmatched("pout_lost", "its seller is not in the ledger")
	o.inReview(o.signUp("Vikram Singh", auth.Seller), "VIKRAM")
	o.unknown(money.Amount(650_00))
	o.admin.get(adminHome).want(t, 200).
		reads(t, "1 payout with a discrepancy", "1 unmatched transfer at the gateway", "1 payout in review, whose outcome is not known", "1 bank account to compare", "1 unknown").
		says(t, `href="/dashboard/admin/inbox?kind=manual_review"`).saysNot(t, "All clear.")
}

func TestDecisionsAreListed(t *testing.T) {
	o := openAdminFixture(t)
	empty := o.admin.get(adminHome+"/decisions").want(t, 200).reads(t, "Accepted a bank account") // the seller's own, when the office opened
	checkPage(t, "decisions", empty)
	id := o.sendToReview(o.unknown(640_00))
	o.admin.get(adminHome+"/decisions").want(t, 200).reads(t, "Sent a payout to review", "to be asked in writing", "Priya Menon").says(t, `href="`+adminPayout(id)+`"`)
}

// TestLiftHold_OfAnotherHold lifts the hold that the admin has seen, and none that began since.
func TestLiftHold_OfAnotherHold(t *testing.T) {
	o := openAdminFixture(t)
	hold := func() {
		t.Helper()
		now := o.clock.Now()
		hold, err := ledger.HoldPosting(o.seller.id, "user:"+o.seller.id, ledger.HoldPasswordReset, now, now.Add(72*time.Hour))
		must(t, err)
		must(t, o.db.Auth().InTx(t.Context(), func(tx auth.Tx) error { _, err := tx.Append(t.Context(), hold); return err }))
	}
	hold()
	person := adminHome + "/sellers/" + o.seller.id
	_, until, _ := strings.Cut(o.admin.get(person+"/hold").want(t, 200).body, `name="until" value="`)
	until, _, _ = strings.Cut(until, `"`)
	o.clock.advance(time.Hour)
	hold()
	o.admin.post(person+"/hold", "note", "They changed banks.", "until", until).want(t, 400).
		reads(t, "Another hold on this seller's payouts has begun.").saysNot(t, until)
	o.wantDecisions(o.seller.id)
	o.admin.then(o.admin.post(person+"/hold", "note", "They changed banks.").leadsTo(t, person)).reads(t, "The hold is lifted.")
	o.wantDecisions(o.seller.id, decision.LiftHold)
}
