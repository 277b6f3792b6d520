package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

func TestABankAccountIsReviewedWithBothNames(t *testing.T) {
	o := openOffice(t)
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
		reads(t, "The bank account is rejected.", "Not accepted", "Not <i>yours</i>.", "Rejected a bank account", "Another name.").saysNot(t, "<i>yours")
	vikram.get("/dashboard/bank-account").reads(t, "Not <i>yours</i>.").saysNot(t, "Another name.", "RAUT")

	o.clock.advance(time.Second)
	// It may still be accepted, and then there is nothing to decide any more.
	o.admin.then(o.admin.post(page, "decision", "accept", "note", "They sent a cheque.").leadsTo(t, page)).
		reads(t, "The bank account is accepted.", "Verified").saysNot(t, "<textarea")
	account, err := o.bank.Account(t.Context(), vikram.id)
	must(t, err)
	if account.Status != bank.StatusVerified {
		t.Errorf("the account is %s", account.Status)
	}
	o.admin.then(o.admin.post(page, "decision", "reject", "reason", "x", "note", "y").leadsTo(t, page)).reads(t, "Nothing was done")
	o.wantDecisions(string(id), decision.RejectBankAccount, decision.AcceptBankAccount)

	meera := o.signUp("Meera Nair", auth.Seller)
	former := o.inReview(meera, "ASHA RAUT")
	o.withBank(meera, "1234")
	page = adminHome + "/bank-accounts/" + string(former)
	o.admin.get(page).want(t, 200).reads(t, "The seller has registered another account since").saysNot(t, "<textarea")
	o.admin.then(o.admin.post(page, "decision", "accept", "note", "y").leadsTo(t, page)).reads(t, "Nothing was done")
	o.wantDecisions(string(former))
}

func TestAStrayIsSettledOnce(t *testing.T) {
	o := openOffice(t)
	o.stray("pout_lost", "its <b>seller</b> is not in the book")
	const page = adminHome + "/strays/pout_lost"
	o.admin.get(adminHome+"/inbox?kind=stray").want(t, 200).says(t, `href="`+page+`"`).reads(t, "Stray transfer (1)", "₹700.00 · usr_gone").saysNot(t, "<b>seller")
	o.admin.get(page).want(t, 200).reads(t, "no payout in the book can be made of it: its <b>seller</b> is not in the book.", "₹700.00", "paid", "pyt_lost", "usr_gone not in the book").
		saysNot(t, "<b>seller")
	o.admin.post(page).want(t, 422).reads(t, "Note must say why")
	o.wantDecisions("pout_lost")
	o.admin.then(o.admin.post(page, "note", "Asha has it; she pays it back.").leadsTo(t, page)).
		reads(t, "The stray transfer is settled.", "pout_lost is settled.", "Asha has it").saysNot(t, "<textarea")
	o.admin.then(o.admin.post(page, "note", "Again.").leadsTo(t, page)).reads(t, "Nothing was done")
	o.wantDecisions("pout_lost", decision.SettleStray)
	o.admin.get(adminHome+"/inbox").reads(t, "Nothing needs you.")
	o.admin.get(adminHome+"/decisions").want(t, 200).reads(t, "Settled a stray transfer").says(t, `href="`+page+`"`)
}

func TestTheInboxIsBoundedAndOldestFirst(t *testing.T) {
	o := openOffice(t)
	for i := range 60 {
		o.stray(fmt.Sprintf("pout_%03d", i), "its seller is not in the book")
		o.clock.advance(1)
	}
	o.clock.advance(1e9)
	held := o.hold(o.unknown(640_00))
	list := o.admin.get(adminHome+"/inbox").want(t, 200).reads(t, "There are more. They come up as these are done.").saysNot(t, "pout_050", string(held))
	if strings.Index(list.body, "pout_000") > strings.Index(list.body, "pout_001") {
		t.Error("the newest comes first")
	}
	o.admin.get(adminHome+"/inbox?kind=held").want(t, 200).says(t, string(held)).saysNot(t, "pout_000", "There are more")
	o.admin.get(adminHome).reads(t, "60 stray transfers", "1 held payout,")
}

func TestPayoutsAreFound(t *testing.T) {
	o := openOffice(t)
	const page = adminHome + "/payouts"
	o.admin.get(page).want(t, 200).reads(t, "No seller has requested a payout yet.")
	id := o.ask(o.seller, 640_00, "").ID
	o.follow(id, payout.Completed)
	p := o.payout(id)
	o.signUp("Asha Raut", auth.Seller)
	others := o.ask(o.seller, 700_00, "").ID
	for _, reference := range []string{string(id), p.GatewayID, p.UTR, "  " + p.UTR} {
		o.admin.get(page+"?q="+strings.ReplaceAll(reference, " ", "+")).want(t, 200).reads(t, "Found by reference", "₹640.00", "Asha Rao").saysNot(t, string(others))
	}
	for _, seller := range []string{o.seller.id, "asha.rao@example.com", "ASHA.RAO@"} {
		o.admin.get(page+"?q="+seller).want(t, 200).reads(t, "Payouts of Asha Rao", "₹640.00", "₹700.00")
		o.admin.get(page+"?status=completed&q="+seller).want(t, 200).reads(t, "₹640.00").saysNot(t, "₹700.00")
	}
	o.admin.get(page+"?q=asha").want(t, 200).reads(t, "Whose payouts?", "Asha Rao asha.rao@example.com", "Asha Raut").saysNot(t, "₹640.00")
	o.admin.get(page+"?q=nobody%3Cb%3E").want(t, 200).reads(t, "No payout has this reference, and no user this id or e-mail.").saysNot(t, "nobody<b>")
	o.admin.get(page+"?status=failed").want(t, 200).reads(t, "There are no such payouts.")
	o.admin.get(page+"?page=7").want(t, 200).reads(t, "The list ends before this page.")
}

func TestASellersBookAddsUpToTheBalance(t *testing.T) {
	o := openOffice(t) // ₹20,000.00 were earned and released: transfers 1 and 2
	page := adminHome + "/sellers/" + o.seller.id
	cancelled := o.ask(o.seller, 700_00, "").ID // 3
	_, _, err := o.payouts.Cancel(t.Context(), payout.Caller{User: o.seller.id}, cancelled, "")
	must(t, err)
	o.follow(o.ask(o.seller, 1_000_00, "").ID, payout.Completed) // 5, and when it is paid 6 and the fee, 7
	_, _, _, err = o.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "return-1", Amount: 500_00})
	must(t, err) // 8
	o.admin.get(page).want(t, 200).reads(t,
		"asha.rao@example.com", "Seller", "password", "•••• 0008", "Available ₹18,500.00", "Paid out ₹1,000.00 ₹19,500.00 earned, less refunds",
		"Refund available → the platform's sales order-1 ₹500.00 ₹18,500.00 ₹0.00 ₹0.00",
		"Payout: fee in transit → the platform's fees",
		"Payout: given back in transit → available "+string(cancelled)+" ₹700.00 ₹20,000.00 ₹0.00 ₹0.00",
		"Payout: set aside available → in transit "+string(cancelled)+" ₹700.00 ₹19,300.00 ₹0.00 ₹700.00",
		"Sale released pending → available order-1 ₹20,000.00 ₹20,000.00 ₹0.00 ₹0.00",
		"Sale the platform's sales → pending order-1 ₹20,000.00 ₹0.00 ₹20,000.00 ₹0.00",
	).says(t, `href="`+adminPayout(cancelled)+`"`).saysNot(t, accountDigits, "Older transfers")

	for i := range 40 { // 81 more, so three pages
		o.earn(o.seller, fmt.Sprintf("more-%d", i), 10_00)
	}
	first := o.admin.get(page).want(t, 200).reads(t, "Available ₹18,900.00", "Older transfers").says(t, `href="`+page+`?before=59#book"`)
	checkPage(t, page, first)
	oldest := o.admin.get(page+"?before=29").want(t, 200).says(t, `href="`+page+`#book"`).reads(t,
		"Sale the platform's sales → pending order-1 ₹20,000.00 ₹0.00 ₹20,000.00 ₹0.00").saysNot(t, "Older transfers")
	checkPage(t, page, oldest)
}

func TestABookThatMovesIsShownForWhatItIs(t *testing.T) {
	o := openOffice(t)
	page := adminHome + "/sellers/" + o.seller.id
	reads := 0
	o.books.meanwhile = func() {
		if reads++; reads == 1 {
			o.earn(o.seller, "meanwhile", 10_00)
		}
	}
	o.admin.get(page).want(t, 200).reads(t, "Available ₹20,010.00", "Sale released pending → available meanwhile ₹10.00 ₹20,010.00 ₹0.00 ₹0.00")
	if reads != 2 {
		t.Errorf("the balance was read %d times, want again once it had moved", reads)
	}
	o.books.meanwhile = func() {
		reads++
		o.earn(o.seller, fmt.Sprintf("meanwhile-%d", reads), 10_00)
	}
	o.admin.get(page).want(t, 200).reads(t, "What the accounts held is not shown here: the balance moved", "Sale released pending → available meanwhile-5 ₹10.00").
		saysNot(t, "worked out back from the balance")
}

func TestPeopleAreFound(t *testing.T) {
	o := openOffice(t)
	const page = adminHome + "/sellers"
	o.admin.get(page).want(t, 200).reads(t, "Asha Rao Seller asha.rao@example.com Active", "Priya Menon Admin")
	o.admin.get(page+"?q=asha.r").want(t, 200).reads(t, "Asha Rao").saysNot(t, "priya.menon@")
	o.admin.get(page+"?q="+o.seller.id).want(t, 200).reads(t, "Asha Rao").saysNot(t, "priya.menon@")
	o.admin.get(page+"?q=nobody").want(t, 200).reads(t, "Nobody has this id")
	for i := range 26 {
		_, err := o.auth.CreateUser(t.Context(), auth.Registration{Name: "Kabir", Email: fmt.Sprintf("kabir%d@example.com", i), Password: password, Role: auth.Buyer})
		must(t, err)
	}
	o.admin.get(page+"?q=kabir").want(t, 200).reads(t, "There are more.")
	buyer, err := o.auth.FindUsers(t.Context(), "kabir1@", 1)
	must(t, err)
	o.admin.get(page+"/"+buyer[0].ID).want(t, 200).reads(t, "Buyer", "None is registered.").saysNot(t, "Every transfer")
}

func TestAccessIsChangedWithANote(t *testing.T) {
	o := openOffice(t)
	person := adminHome + "/sellers/" + o.seller.id
	page := person + "/access"
	o.admin.get(page).want(t, 200).reads(t, "Asha Rao, asha.rao@example.com , is now a seller.").says(t, `value="seller" checked`, `value="active" id="field-state" checked`)
	o.admin.post(page, "seen", "seller active", "confirm", "Asha.Rao@example.com ", "role", "seller", "state", "active", "note", "x").want(t, 400).reads(t, "That is their access already.")
	o.admin.post(page, "seen", "seller active", "confirm", "Asha.Rao@example.com ", "role", "seller", "state", "suspended").want(t, 422).reads(t, "Note must say why").says(t, `value="suspended" checked`)
	o.admin.post(page, "seen", "seller active", "confirm", "Asha.Rao@example.com ", "role", "owner", "state", "active", "note", "x").want(t, 422).reads(t, "Role must be buyer, seller or admin")
	o.admin.post(page, "seen", "seller active", "confirm", "Asha.Rao@example.com ", "role", "seller", "note", "x").want(t, 422).reads(t, "must be active or suspended")
	o.admin.post(page, "seen", "seller active", "confirm", "vikram@example.com", "role", "buyer", "state", "active", "note", "Ticket 812").want(t, 422).
		reads(t, "Their e-mail address must be asha.rao@example.com.").says(t, "Ticket 812</textarea>", `value="vikram@example.com"`)
	o.wantDecisions(o.seller.id)
	o.seller.get("/dashboard").want(t, 200)

	o.admin.then(o.admin.post(page, "seen", "seller active", "confirm", "Asha.Rao@example.com ", "role", "seller", "state", "suspended", "note", "Ticket <b>812</b>").leadsTo(t, person)).
		reads(t, "The change holds from their next request on.", "Suspended", "Now seller, suspended. Ticket <b>812</b>").saysNot(t, "<b>812")
	o.seller.get("/dashboard").leadsTo(t, "/login")
	o.wantDecisions(o.seller.id, decision.ChangeAccess)
	o.admin.post(page, "seen", "seller active", "confirm", "Asha.Rao@example.com ", "role", "buyer", "state", "active", "note", "an older page").want(t, 400).
		reads(t, "Somebody changed their access").says(t, `value="seller suspended"`, `value="suspended" checked`)
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

func TestTheDeskSaysWhatNeedsAPerson(t *testing.T) {
	o := openOffice(t)
	o.admin.get(adminHome).want(t, 200).reads(t, "Nothing needs you.", "No seller has requested a payout yet.", "payouts are sent")
	o.hold(o.unknown(640_00))
	o.contradicted("its transfer is processed, the payout is waiting")
	o.stray("pout_lost", "its seller is not in the book")
	o.inReview(o.signUp("Vikram Singh", auth.Seller), "VIKRAM")
	o.unknown(money.Amount(650_00))
	o.admin.get(adminHome).want(t, 200).
		reads(t, "1 payout that is contradicted", "1 stray transfer at the gateway", "1 held payout, whose outcome nobody knows", "1 bank account to compare", "1 unknown").
		says(t, `href="/dashboard/admin/inbox?kind=held"`).saysNot(t, "Nothing needs you.")
}

func TestDecisionsAreListed(t *testing.T) {
	o := openOffice(t)
	empty := o.admin.get(adminHome+"/decisions").want(t, 200).reads(t, "Accepted a bank account") // the seller's own, when the office opened
	checkPage(t, "decisions", empty)
	id := o.hold(o.unknown(640_00))
	o.admin.get(adminHome+"/decisions").want(t, 200).reads(t, "Held a payout", "to be asked in writing", "Priya Menon").says(t, `href="`+adminPayout(id)+`"`)
}
