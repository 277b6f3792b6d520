package dashboard_test

import (
	"context"
	"html"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/dashboard"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// payoutsOf is what a seller asked for so far.
func (h *fixture) payoutsOf(p person) []payout.Payout {
	h.t.Helper()
	list, _, err := h.payouts.History(h.t.Context(), payout.Caller{User: p.id}, payout.Filter{Limit: 50})
	must(h.t, err)
	return list
}

func TestRequestPayout(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 1_50_000_00)

	form := seller.get("/dashboard/payouts/new").want(t, 200).says(t, "From ₹500.00 to ₹1,50,000.00", "/dashboard/payouts/new?amount=150000.00")
	key := form.hiddenValue(t, "key")
	review := seller.review("amount", "₹ 1,23,456.50", "notes", "Rent\r\nof May", "key", key).want(t, 200)
	review.says(t, "₹1,23,456.50", "−₹622.28", "₹1,22,834.22", "••••\u00a06789", "Asha Rao", "HDFC Bank", "20 Nov 2026, 09:30:30", "20 Nov 2026, 09:35<")
	checkPage(t, "review", review)
	if len(h.payoutsOf(seller)) != 0 {
		t.Fatal("a review makes a payout")
	}
	if again := review.hiddenValue(t, "key"); again != key {
		t.Errorf("the review has another key %s than its form %s", again, key)
	}
	review.says(t, "Confirming takes ₹1,23,456.50 from your balance")
	edit := seller.get(linkTo(t, review, "/dashboard/payouts/new?")).want(t, 200)
	edit.says(t, `value="123456.50"`, "Rent\nof May</textarea>")
	if again := edit.hiddenValue(t, "key"); again != key {
		t.Errorf("the form has another key %s than the review %s", again, key)
	}

	confirm := []string{"amount", review.hiddenValue(t, "amount"), "notes", "Rent\r\nof May", "key", key}
	made := seller.post("/dashboard/payouts", confirm...).want(t, 303)
	page := made.header.Get("Location")
	seller.get(page).want(t, 200).says(t, "Payout requested.", "Payout of", "Requested", "Rent\nof May", "Cancel payout")
	for range 3 { // a double click, a reload, the way back
		seller.post("/dashboard/payouts", confirm...).leadsTo(t, page)
	}
	if list := h.payoutsOf(seller); len(list) != 1 || list[0].Amount != 1_23_456_50 {
		t.Errorf("payouts %v", list)
	}
	for _, other := range []answer{
		seller.post("/dashboard/payouts", "amount", "700", "key", key),
		seller.review("amount", "700", "key", key),
	} {
		other.want(t, 422).says(t, "another amount was requested already")
		if again := other.hiddenValue(t, "key"); again == key {
			t.Error("a form that can't succeed with its key has the same key again")
		}
	}
}

// linkTo is the first link of a page whose address begins so.
func linkTo(t *testing.T, a answer, start string) string {
	t.Helper()
	_, rest, found := strings.Cut(a.body, `href="`+start)
	if !found {
		t.Fatalf("the page has no link to %s: %s", start, a.body)
	}
	rest, _, _ = strings.Cut(rest, `"`)
	return html.UnescapeString(start + rest)
}

// TestReviewPage_AfterConfirmation_ShowsSamePayout opens the review again after it was confirmed, when nothing is available
// any more: the page names the payout, and confirming again makes no other.
func TestReviewPage_AfterConfirmation_ShowsSamePayout(t *testing.T) {
	h := openFixture(t)
	seller, other := h.signUp("Asha Rao", auth.Seller), h.signUp("Eve", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 1_000_00)
	sent := []string{"amount", "1000", "notes", "Rent\r\nof May", "key", seller.get("/dashboard/payouts/new").hiddenValue(t, "key")}
	for range 2 {
		seller.review(sent...).want(t, 200).saysNot(t, "confirmed this already")
	}
	page := seller.post("/dashboard/payouts", sent...).want(t, 303).header.Get("Location")
	for range 2 {
		back := seller.review(sent...).want(t, 200).says(t, "You have confirmed this already", page, "Confirm payout", "Rent\nof May")
		checkPage(t, "back", back)
		seller.post("/dashboard/payouts", "amount", back.hiddenValue(t, "amount"), "notes", "Rent\r\nof May", "key", back.hiddenValue(t, "key")).leadsTo(t, page)
	}
	if n := len(h.payoutsOf(seller)); n != 1 {
		t.Errorf("%d payouts", n)
	}
	other.review(sent...).want(t, 422).saysNot(t, "confirmed this already", page)
}

// TestReviewPage_ForgedLink_RequestsNothing follows links to the review page that another site could make.
func TestReviewPage_ForgedLink_RequestsNothing(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 20_000_00)
	for _, key := range []string{"", "short", strings.Repeat("k", 23), strings.Repeat("<", 22), strings.Repeat("é", 11)} {
		to := seller.review("amount", "600", "notes", "Rent", "key", key).want(t, 303).header.Get("Location")
		review := seller.get(to).want(t, 200).says(t, "₹600.00", "Rent")
		if made := review.hiddenValue(t, "key"); len(made) != 22 || !strings.Contains(to, "key="+made) {
			t.Errorf("the review at %s has the key %q", to, made)
		}
	}
	seller.get("/dashboard/payouts/review").want(t, 303)
	seller.get("/dashboard/payouts/review?amount=%ff&notes=%zz&key="+strings.Repeat("k", 22)).want(t, 422)
	seller.header.Set("Sec-Fetch-Site", "cross-site")
	seller.review("amount", "600", "key", strings.Repeat("k", 22)).want(t, 200)
	seller.header.Del("Sec-Fetch-Site")
	seller.post("/dashboard/payouts/review", "amount", "600").want(t, 405)
	if n := len(h.payoutsOf(seller)); n != 0 {
		t.Errorf("%d payouts", n)
	}
}

func TestRequestPayout_InvalidKey_RequestsNothing(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 20_000_00)
	for _, key := range []string{"", "short", strings.Repeat("k", 23), strings.Repeat("<", 22)} {
		a := seller.post("/dashboard/payouts", "amount", "600", "notes", "Rent", "key", key).want(t, 422)
		a.says(t, "nothing was requested", `value="600"`, "Rent</textarea>")
		if again := a.hiddenValue(t, "key"); len(again) != 22 || again == key {
			t.Errorf("the form that leads on has the key %q", again)
		}
		checkPage(t, "no key", a)
	}
	seller.post("/dashboard/payouts", "amount", "600").want(t, 422).says(t, "nothing was requested")
	if n := len(h.payoutsOf(seller)); n != 0 {
		t.Errorf("%d payouts", n)
	}
}

func TestRequestPayout_AtOnce_OnePayout(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 20_000_00)
	var group sync.WaitGroup
	answers := make([]answer, 8)
	for i := range answers {
		group.Go(func() {
			answers[i] = seller.post("/dashboard/payouts", "amount", "600", "key", strings.Repeat("k", 22))
		})
	}
	group.Wait()
	for _, a := range answers {
		a.leadsTo(t, answers[0].header.Get("Location"))
	}
	if n := len(h.payoutsOf(seller)); n != 1 {
		t.Errorf("%d payouts", n)
	}
}

// lostAnswer does what is asked, and says once that nobody knows whether it did.
type lostAnswer struct {
	dashboard.Payouts
	lost *atomic.Bool
}

func (l lostAnswer) Request(ctx context.Context, r payout.Request) (payout.Payout, bool, error) {
	p, replayed, err := l.Payouts.Request(ctx, r)
	if l.lost.CompareAndSwap(false, true) {
		return payout.Payout{}, false, fault.New(fault.Unavailable, "outcome_unknown", "Nobody knows.")
	}
	return p, replayed, err
}

// After a lost answer the payout may exist, and the form that is shown again must find it.
func TestRequestPayout_LostAnswer_NoSecondPayout(t *testing.T) {
	h := openFixture(t, func(o *dashboard.Options) { o.Payouts = lostAnswer{o.Payouts, &atomic.Bool{}} })
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 20_000_00)
	key := strings.Repeat("k", 22)
	lost := seller.post("/dashboard/payouts", "amount", "600", "key", key).want(t, 503)
	if after := lost.header.Get("Retry-After"); after != "1" {
		t.Errorf("the browser is asked to wait %q seconds", after)
	}
	lost.says(t, "not known whether")
	if again := lost.hiddenValue(t, "key"); again != key {
		t.Errorf("the form comes back with another key %s", again)
	}
	seller.review("amount", "600", "key", key).want(t, 200).says(t, "You have confirmed this already.")
	seller.post("/dashboard/payouts", "amount", "600", "key", key).want(t, 303)
	if n := len(h.payoutsOf(seller)); n != 1 {
		t.Errorf("%d payouts", n)
	}
}

func TestRequestPayout_AccountReplaced_Refused(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 20_000_00)
	review := seller.review("amount", "600", "key", strings.Repeat("k", 22)).want(t, 200).says(t, "6789")
	confirm := []string{"amount", "600", "key", strings.Repeat("k", 22), "account", review.hiddenValue(t, "account")}
	h.withBank(seller, "4321")
	seller.post("/dashboard/payouts", confirm...).want(t, 400).says(t, "Another bank account was registered")
	if n := len(h.payoutsOf(seller)); n != 0 {
		t.Errorf("%d payouts", n)
	}
}

// TestRequestPayout_OnHold offers no form that can't succeed, and says why.
func TestRequestPayout_OnHold(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 20_000_00)
	key := strings.Repeat("k", 22)
	review := seller.review("amount", "600", "key", key).want(t, 200)
	now := h.clock.Now()
	hold, err := ledger.HoldPosting(seller.id, "user:"+seller.id, ledger.HoldPasswordReset, now, now.Add(72*time.Hour))
	must(t, err)
	must(t, h.db.Auth().InTx(t.Context(), func(tx auth.Tx) error { _, err := tx.Append(t.Context(), hold); return err }))
	seller.post("/dashboard/payouts", "amount", "600", "key", key, "account", review.hiddenValue(t, "account")).want(t, 409).
		says(t, "Payouts are on hold until", "because your bank account or your sign-in was changed")
	seller.get("/dashboard/payouts/new").want(t, 200).says(t, "Payouts are on hold until").saysNot(t, "Withdraw full balance")
	seller.review("amount", "600", "key", strings.Repeat("n", 22)).want(t, 200).says(t, "Payouts are on hold until").saysNot(t, "Confirm payout")

	must(t, h.payouts.Freeze(t.Context(), decision.By{Operator: "priya", Note: "Two buyers report goods that never came."}, seller.id))
	seller.post("/dashboard/payouts", "amount", "600", "key", key, "account", review.hiddenValue(t, "account")).want(t, 409).
		says(t, "Your balance is safe.").saysNot(t, "reason")
}

func TestRequestPayout_InvalidFields_ErrorBesideField(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	key := func() string {
		return seller.get("/dashboard/payouts/review").want(t, 303).header.Get("Location")[len("/dashboard/payouts/review?amount=&key="):][:22]
	}
	seller.review("amount", "600", "key", key()).want(t, 422).says(t, "Add one first")
	seller.post("/dashboard/payouts", "amount", "600", "key", key()).want(t, 400).says(t, "not verified yet")
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 1_000_00)
	const huge = "99999999999999999999"
	for path, problems := range map[string]map[string]string{
		"review": {
			"1,5": "must be an amount, e.g. 1,250.00", "499.99": "must be at least ₹500.00", "600.005": "at most 2 decimal places",
			"1000.01": "must be at most what is available, ₹1,000.00", huge: "must be at most what is available, ₹1,000.00",
			"": "Enter an amount, e.g. 1,250.00", "-600": "must be an amount",
		},
		"confirm": {"1,5": "must be an amount", "499": "must be at least ₹500.00", "1000.01": "exceeds the available balance", huge: "must be at most"},
	} {
		for typed, problem := range problems {
			fields := []string{"amount", typed, "notes", "Rent", "key", key()}
			a := seller.review(fields...)
			if path == "confirm" {
				a = seller.post("/dashboard/payouts", fields...)
			}
			a.says(t, problem, `id="field-amount-error"`, "Rent</textarea>")
			if a.status != 422 && a.status != 400 {
				t.Errorf("%s with %q: status %d", path, typed, a.status)
			}
			checkPage(t, path, a)
		}
	}
	seller.review("amount", "600", "notes", strings.Repeat("é", 1001), "key", key()).want(t, 422).says(t, "at most 1000 characters")
	if n := len(h.payoutsOf(seller)); n != 0 {
		t.Errorf("%d payouts", n)
	}
	// What was refused for want of money goes through once there is some, from the same page.
	refused := seller.post("/dashboard/payouts", "amount", "1500", "key", strings.Repeat("k", 22)).want(t, 400)
	h.earn(seller, "order-2", 1_000_00)
	seller.post("/dashboard/payouts", "amount", "1500", "key", refused.hiddenValue(t, "key")).want(t, 303)
}

func TestQuoteFragment(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	quote := seller.get("/dashboard/payouts/quote?amount=1,000").want(t, 200).says(t, "₹990.00", "₹10.00").saysNot(t, "<html")
	checkPage(t, "quote", quote)
	for _, typed := range []string{"", "1,5", "499", "9999999999999999999999"} {
		if a := seller.get("/dashboard/payouts/quote?amount="+typed).want(t, 200); strings.TrimSpace(a.body) != "" {
			t.Errorf("a quote of %q: %s", typed, a.body)
		}
	}
}

func TestCancelPayout(t *testing.T) {
	h := openFixture(t)
	seller, other := h.signUp("Asha Rao", auth.Seller), h.signUp("Eve", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 20_000_00)
	made := h.ask(seller, 600_00, "")
	page := "/dashboard/payouts/" + string(made.ID)

	for _, path := range []string{page, page + "/cancel"} {
		other.get(path).want(t, 404).says(t, "You have no such payout")
	}
	other.post(page+"/cancel").want(t, 404)
	other.get("/dashboard/payouts/new?again="+string(made.ID)).want(t, 404)
	seller.get("/dashboard/payouts/nonsense").want(t, 404)

	seller.get(page+"/cancel").want(t, 200).says(t, "₹600.00", "Keep it")
	seller.post(page+"/cancel").leadsTo(t, page)
	seller.get(page).want(t, 200).says(t, "The payout is cancelled", "It was cancelled").saysNot(t, page+"/cancel")
	seller.post(page+"/cancel").leadsTo(t, page) // twice is once
	seller.get(page).want(t, 200).says(t, "The payout is cancelled")
	seller.get("/dashboard").want(t, 200).says(t, "₹20,000.00")

	sent := h.ask(seller, 600_00, "")
	h.follow(sent.ID, payout.Completed)
	page = "/dashboard/payouts/" + string(sent.ID)
	seller.get(page+"/cancel").leadsTo(t, page)
	seller.post(page+"/cancel").leadsTo(t, page)
	seller.get(page).want(t, 200).says(t, "can no longer be cancelled", "Paid to your bank account", "Bank reference", "data-copy")
}

func TestPayoutPage_Failed_ShowsReasonAndRemedy(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Vikram Singh", auth.Seller)
	h.withBank(seller, "0002")
	h.earn(seller, "order-1", 20_000_00)
	made := h.ask(seller, 600_00, "Rent")
	h.follow(made.ID, payout.Failed)
	page := seller.get("/dashboard/payouts/"+string(made.ID)).want(t, 200)
	page.says(t, "The bank account is closed. Register another bank account.", "Failed", "The whole amount is back in your balance",
		`class="button primary" href="/dashboard/bank-account"`, "/dashboard/payouts/new?again="+string(made.ID))
	checkPage(t, "failed", page)
	seller.get("/dashboard/payouts/new?again="+string(made.ID)).want(t, 200).says(t, `value="600.00"`, "Rent</textarea>")
	seller.get("/dashboard/payouts?status=failed").want(t, 200).says(t, "1 payout,", "₹600.00")
}

func TestPayoutPage_Late_SaysSo(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Farhan Khan", auth.Seller)
	h.withBank(seller, "0004")
	h.earn(seller, "order-1", 20_000_00)
	made := h.ask(seller, 600_00, "")
	h.follow(made.ID, payout.Submitted)
	h.clock.advance(time.Hour)
	seller.get("/dashboard/payouts/"+string(made.ID)).want(t, 200).says(t, "Accepted by the payment gateway", "Taking longer than expected", "data-live")
}

func TestBankAccountPage_Registration(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	const number = "50100234567812"
	fields := func(change ...string) []string {
		all := []string{"accountHolder", "Asha Rao", "accountNumber", number, "accountNumberAgain", number, "ifsc", "HDFC0000053"}
		return append(all, change...)
	}
	for _, c := range []struct {
		change []string
		says   string
	}{
		{[]string{"accountNumberAgain", "50100234567813"}, "Confirm account number must be the same as the account number"},
		{[]string{"accountNumber", "1234"}, "Account number must be the account&#39;s 9 to 18 digits"},
		{[]string{"ifsc", "HDFC9000053"}, "IFSC must be a code such as"},
		{[]string{"accountHolder", "?"}, "Account holder must be the holder&#39;s name"},
	} {
		a := seller.post("/dashboard/bank-account", fields(c.change...)...).want(t, 422).says(t, c.says).saysNot(t, number, "50100234567813")
		checkPage(t, "bank account", a)
	}
	seller.post("/dashboard/bank-account", fields("accountNumber", "5010 0234 5678 12", "ifsc", " hdfc0000053 ")...).leadsTo(t, "/dashboard/bank-account")
	seller.get("/dashboard/bank-account").want(t, 200).
		says(t, "••••\u00a07812", "Being verified", "HDFC Bank", "data-live", "Bank account saved").saysNot(t, number, "50100")

	account, err := h.bank.Account(t.Context(), seller.id)
	must(t, err)
	_, err = h.bank.Resolve(t.Context(), decision.By{Admin: "usr_an_admin"}, account.ID, bank.Verdict{Reason: "The bank has it under <another> name."})
	must(t, err)
	rejected := seller.get("/dashboard/bank-account").want(t, 200).says(t, "Rejected<", "under &lt;another&gt; name", "/dashboard/bank-account/new").saysNot(t, "data-live")
	checkPage(t, "rejected", rejected)
	seller.get("/dashboard/payouts/new").want(t, 200).says(t, "was rejected")
	seller.get("/dashboard").want(t, 200).says(t, "was rejected").saysNot(t, number)
	seller.get("/dashboard/bank-account/new").want(t, 200).says(t, "Replaces ••••", `value="Asha Rao"`).saysNot(t, "50100")
	if strings.Contains(h.log.String(), number) {
		t.Error("the log has the account number")
	}
}

func TestBranchFragment(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	seller.get("/dashboard/bank-account/branch?ifsc=hdfc0000053").want(t, 200).says(t, "HDFC Bank").saysNot(t, "<html")
	seller.get("/dashboard/bank-account/branch?ifsc=ZZZZ0000053").want(t, 200).says(t, "No bank with this code")
	for _, typed := range []string{"", "HDFC", "<script>"} {
		if a := seller.get("/dashboard/bank-account/branch?ifsc="+typed).want(t, 200); strings.TrimSpace(a.body) != "" {
			t.Errorf("a branch for %q: %s", typed, a.body)
		}
	}
}

func TestProfilePage(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	phone := person{h.browse(), seller.id, seller.email}
	phone.header.Set("User-Agent", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) Version/18.1 Mobile Safari/604.1")
	phone.post("/login", "email", seller.email, "password", password).leadsTo(t, "/dashboard")

	seller.post("/dashboard/profile", "name", "A", "website", "javascript:alert(1)").want(t, 422).
		says(t, "Name must be 2 to 50 characters", "Website must be empty, or an address", `value="javascript:alert(1)"`)
	seller.post("/dashboard/profile", "name", "Asha Rao-Menon", "bio", "Pots\r\nand pans", "avatar", "https://pictures.example/a.png").leadsTo(t, "/dashboard/profile")
	page := seller.get("/dashboard/profile").want(t, 200).
		says(t, "Your profile is saved", "Asha Rao-Menon", "Pots\nand pans</textarea>", ">AR</span>", "Safari on iPhone", "This device").
		saysNot(t, `src="https://pictures.example`)
	checkPage(t, "profile", page)

	session := page.hiddenValue(t, "session")
	seller.post("/dashboard/profile/sessions/end", "session", session).leadsTo(t, "/dashboard/profile")
	phone.get("/dashboard").leadsTo(t, "/login")
	phone.post("/login", "email", seller.email, "password", password).leadsTo(t, "/dashboard")
	seller.post("/dashboard/profile/sessions/end-others").leadsTo(t, "/dashboard/profile")
	phone.get("/dashboard").leadsTo(t, "/login")

	wrong := seller.post("/dashboard/profile/password", "currentPassword", "not mine at all", "newPassword", "another horse battery").want(t, 400)
	wrong.says(t, "Current password is wrong").saysNot(t, "not mine at all", "another horse battery")
	checkPage(t, "password", wrong)
	seller.post("/dashboard/profile/password", "currentPassword", password, "newPassword", "another horse battery").leadsTo(t, "/dashboard/profile")
	seller.get("/dashboard/profile").want(t, 200).says(t, "Your password is set")
	phone.post("/login", "email", seller.email, "password", password).want(t, 401)
	phone.post("/login", "email", seller.email, "password", "another horse battery").leadsTo(t, "/dashboard")
}

func TestBankAccountPage_TooMany_SaysWait(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	for i := range 12 {
		number := "5010023456" + string(rune('0'+i/10)) + string(rune('0'+i%10)) + "12"
		a := seller.post("/dashboard/bank-account", "accountHolder", "Asha Rao", "accountNumber", number, "accountNumberAgain", number, "ifsc", "HDFC0000053")
		if a.status == 429 {
			a.says(t, "Too many bank accounts", "Try again in 3 hours.").saysNot(t, number)
			checkPage(t, "too many", a)
			return
		}
		a.want(t, 303)
	}
	t.Error("twelve accounts in a row are taken")
}

// TestRequestPayout_AboveLimit_RequiresProof proves with the password, with a code, and with a recent sign-in.
func TestRequestPayout_AboveLimit_RequiresProof(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 90_00_000_00)
	key := func(i int) string { return strings.Repeat("k", 21) + strconv.Itoa(i) }
	confirm := func(amount string, i int, proof ...string) answer {
		return seller.post("/dashboard/payouts", append([]string{
			"amount", amount, "notes", "", "key", key(i), "account", seller.review("amount", amount, "key", key(i)).want(t, 200).hiddenValue(t, "account"),
		}, proof...)...)
	}
	seller.review("amount", "500000", "key", key(0)).want(t, 200).saysNot(t, `name="password"`)
	confirm("500000", 0).want(t, 303)

	review := seller.review("amount", "500000.01", "key", key(1)).want(t, 200).says(t, `name="password"`)
	checkPage(t, "review", review)
	confirm("500000.01", 1).want(t, 422).says(t, "Your password is required", "Confirm payout")
	confirm("500000.01", 1, "password", "wrong").want(t, 400).says(t, "Your password is wrong").saysNot(t, `value="wrong"`)
	if n := len(h.payoutsOf(seller)); n != 1 {
		t.Fatalf("%d payouts", n)
	}
	made := confirm("500000.01", 1, "password", password).want(t, 303).header.Get("Location")
	seller.review("amount", "500000.01", "key", key(1)).want(t, 200).says(t, "You have confirmed this already.").saysNot(t, `name="password"`)
	confirm("500000.01", 1).leadsTo(t, made)

	secret := h.enrol(seller)
	seller.review("amount", "500001", "key", key(2)).want(t, 200).says(t, `name="code"`).saysNot(t, `name="password"`)
	confirm("500001", 2, "code", "000000").want(t, 422).says(t, "is wrong, was used already")
	code := h.codeOf(secret)
	made = confirm("500001", 2, "code", code).want(t, 303).header.Get("Location")
	confirm("500001", 2, "code", code).leadsTo(t, made) // a form that is sent twice
	confirm("500001", 3, "code", code).want(t, 422).says(t, "was used already")

	// Without a password and a factor, a sign-in of a short time ago is the proof.
	asif := h.signUp("Asif Khan", auth.Seller)
	seller = asif
	h.withBank(seller, "6789")
	h.earn(seller, "order-2", 90_00_000_00)
	must(t, h.db.Auth().InTx(t.Context(), func(tx auth.Tx) error { return tx.TakeUserOver(t.Context(), asif.id, auth.Seller, "") }))
	seller.review("amount", "600000", "key", key(4)).want(t, 200).saysNot(t, `name="code"`, `name="password"`)
	confirm("600000", 4, "signIn", "recent").want(t, 303)
	h.clock.advance(15 * time.Minute)
	confirm("600000", 5, "signIn", "recent").want(t, 400).says(t, "sign in again through the provider", "Confirm payout")
}

// TestFirstBankAccount_WithFactor asks a seller with a second factor for a code with the first account too.
func TestFirstBankAccount_WithFactor(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	secret := h.enrol(seller)
	fields := []string{"accountHolder", "Asha Rao", "accountNumber", "50100234567812", "accountNumberAgain", "50100234567812", "ifsc", "HDFC0000053"}
	seller.get("/dashboard/bank-account").want(t, 200).reads(t, "Add bank account").says(t, `name="code"`)
	refused := seller.post("/dashboard/bank-account", fields...)
	refused.want(t, 422).says(t, `id="field-code-dashboard-bank-account-error"`)
	checkPage(t, "without a code", refused)
	seller.post("/dashboard/bank-account", append(fields, "code", h.codeOf(secret))...).leadsTo(t, "/dashboard/bank-account")
	seller.get("/dashboard/bank-account").want(t, 200).reads(t, "Bank account saved.")
}

// TestPayoutPage_WithoutMoney says nothing of what is received where the bank got nothing.
func TestPayoutPage_WithoutMoney(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 20_000_00)
	made := h.ask(seller, 600_00, "")
	page := "/dashboard/payouts/" + string(made.ID)
	seller.get(page).want(t, 200).reads(t, "You receive", "just now").says(t, "data-until=")
	h.clock.advance(5 * time.Second)
	_, _, err := h.payouts.Cancel(t.Context(), payout.Caller{User: seller.id}, made.ID, "")
	must(t, err)
	h.clock.advance(2 * time.Hour)
	seller.get(page).want(t, 200).reads(t, "Cancelled", "2 h ago").saysNot(t, "You receive", "data-until=")
}
