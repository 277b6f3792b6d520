package simulate

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/event"
	"bursar/internal/mail"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// checkByAPI has an admin and a server of the marketplace read by API what the ledger has, and record and decide by it.
func (m *market) checkByAPI() {
	on, s := m.anyInstance(), m.payable()
	if on == nil || s == nil {
		return
	}
	f, err := m.openFront(on, s)
	if !m.assert(answersAreKnown, err == nil, s.id, "open the API: %v", err) {
		return
	}
	admins, err := f.openAdmin(on)
	shop, err2 := f.openShop(on, "till at "+m.now.String(), auth.AllScopes(), time.Time{})
	if !m.assert(answersAreKnown, err == nil && err2 == nil, s.id, "open the API: %v, %v", err, err2) {
		return
	}
	shop.checkSellers(on)
	for _, s := range m.sellers[:min(3, len(m.sellers))] {
		if m.hasAccount(on, s) {
			shop.checkSales(s)
		}
		admins.checkUser(s)
	}
	shop.checkBalance("/api/marketplace/sellers/"+s.id+"/balance", s)
	shop.checkHistory("/api/marketplace/sellers/"+s.id+"/payouts", s, "")
	admins.checkAllPayouts()
	admins.checkPayoutsExport()
	admins.checkPayouts()
	shop.checkBodies()
	for _, part := range []func(){
		func() { shop.checkSelling(on, s) }, func() { admins.checkAdjusting(on, s) }, func() { admins.checkFreezing(on, s) }, admins.checkDecisions,
		func() { admins.checkExport(on) }, admins.checkAskMany, func() { m.checkLastAdmin(on) },
	} {
		if m.violation == nil {
			part()
		}
	}
	m.follow(on, decision.Platform)
}

// checkSellers pages through the sellers, and wants each once who has an account.
func (f front) checkSellers(on *instance) {
	m := f.m
	listed, last, after := map[string]int{}, "", ""
	for more := true; more && m.violation == nil; {
		var page struct {
			Sellers []struct{ SellerID, Name, Email string }
			Next    string
		}
		f.read("/api/marketplace/sellers?limit=3"+after, &page)
		for _, s := range page.Sellers {
			m.assert(readsAgree, s.SellerID > last, s.SellerID, "seller %s is listed after %s", s.SellerID, last)
			listed[s.SellerID]++
			last = s.SellerID
		}
		m.assert(readsAgree, page.Next == "" || page.Next == last, last, "the next page of sellers is read from %q, and this one ends with %s", page.Next, last)
		more, after = page.Next != "", "&after="+page.Next
	}
	for _, s := range m.sellers {
		m.assert(readsAgree, m.violation != nil || !m.hasAccount(on, s) || listed[s.id] == 1, s.id, "%s is listed %d times among the sellers", s.id, listed[s.id])
	}
}

// hasAccount reports whether a seller has not deleted the account.
func (m *market) hasAccount(on *instance, s *seller) bool {
	u, _, err := on.users.User(m.ctx, s.id)
	return err == nil && mail.CheckAddress(u.Email) == ""
}

// checkSales pages through a seller's sales, the newest first.
func (f front) checkSales(s *seller) {
	m, n := f.m, int64(0)
	sold := m.model.row(s.id).Counts.Sales
	for page := 1; m.violation == nil; page++ {
		var got struct {
			Sales []struct {
				SaleID, SellerID, Status string
				Amount, RefundedAmount   json.Number
				OccurredAt, AvailableAt  time.Time
			}
			Pagination struct{ TotalItems int64 }
		}
		f.read(fmt.Sprintf("/api/marketplace/sellers/%s/sales?limit=50&page=%d", s.id, page), &got)
		m.assert(readsAgree, got.Pagination.TotalItems == sold, s.id, "%s has %d sales, and the marketplace is shown %d", s.id, sold, got.Pagination.TotalItems)
		for _, shown := range got.Sales {
			e := m.model.sales[shown.SaleID]
			isRight := e != nil && e.seller == s.id && shown.SellerID == s.id && isAmount(shown.Amount, e.amount) && isAmount(shown.RefundedAmount, e.refunded) &&
				(shown.Status == "released") == e.released && isStamp(shown.OccurredAt, e.occurredAt) && isStamp(shown.AvailableAt, e.availableAt)
			m.assert(readsAgree, isRight, s.id, "the marketplace is shown %+v, and the ledger has %+v", shown, e)
			n++
		}
		if len(got.Sales) == 0 {
			break
		}
	}
	m.assert(readsAgree, m.violation != nil || n == sold, s.id, "%s has %d sales, and the marketplace can page through %d", s.id, sold, n)
}

// isStamp reports whether an answer's time is t, to the millisecond.
func isStamp(got, t time.Time) bool { return got.Equal(t.Truncate(time.Millisecond)) }

// checkUser reads a user as admins do.
func (f front) checkUser(s *seller) {
	m, row := f.m, f.m.model.row(s.id)
	var got struct {
		ID                            string
		Balance                       struct{ Available, Pending, InTransit json.Number }
		TotalEarnings, TotalWithdrawn json.Number
		Frozen                        bool
		HoldUntil                     *time.Time
		BankAccount                   *struct{ Status, AccountNumber string }
	}
	f.read("/api/admin/users/"+s.id, &got)
	isRight := got.ID == s.id && isAmount(got.Balance.Available, row.Available) && isAmount(got.Balance.Pending, row.Pending) && isAmount(got.Balance.InTransit, row.InTransit) &&
		isAmount(got.TotalEarnings, row.Earned) && isAmount(got.TotalWithdrawn, row.Withdrawn) && got.Frozen == m.model.sellers[s.id].frozen.stopped
	if a := m.model.accounts[m.model.sellers[s.id].current]; isRight && a != nil {
		isRight = got.BankAccount != nil && got.BankAccount.Status == string(a.status) && a.last4 == got.BankAccount.AccountNumber[max(0, len(got.BankAccount.AccountNumber)-4):]
	}
	isOnHold := row.HoldUntil > m.clock().UnixMicro()
	isRight = isRight && (got.HoldUntil != nil) == isOnHold && (!isOnHold || isStamp(*got.HoldUntil, time.UnixMicro(row.HoldUntil)))
	m.assert(readsAgree, isRight, s.id, "an admin is shown %+v, and the ledger has %+v", got, row)
}

// listedPayout is a payout as admins see it.
type listedPayout struct {
	ID            payout.ID
	SellerID      string
	State         payout.State
	Status        payout.Status
	Amount, Fee   json.Number
	Gateway       string
	UTR           string
	FailureReason string
	Entries       []struct{ Number int64 }
	Tampered      bool
	Decisions     []struct{ Note, By string }
}

// isOf reports whether it is the payout that the model has.
func (p listedPayout) isOf(w *withdrawal) bool {
	return w != nil && p.SellerID == w.seller && p.State == w.state && p.Status == w.state.Status() && isAmount(p.Amount, w.amount) && isAmount(p.Fee, w.fee) && p.Gateway == string(w.at)
}

// checkAllPayouts pages through all payouts, the newest first.
func (f front) checkAllPayouts() {
	m := f.m
	var want []payout.ID
	var amount money.Amount
	for id, w := range m.model.payouts {
		want = append(want, id)
		amount += w.amount
	}
	slices.Sort(want)
	slices.Reverse(want)
	total, next := len(want), ""
	for page := 0; m.violation == nil && page <= total; page++ {
		var got struct {
			Payouts []listedPayout
			Totals  struct {
				Count  int
				Amount json.Number
			}
			Next *string
		}
		f.read("/api/admin/payouts?limit=40"+next, &got)
		m.assert(readsAgree, got.Totals.Count == total && isAmount(got.Totals.Amount, amount), "", "an admin is shown the totals %+v of %d payouts of %d in all", got.Totals, total, amount)
		for _, p := range got.Payouts {
			if !m.assert(readsAgree, len(want) > 0 && p.ID == want[0] && p.isOf(m.model.payouts[p.ID]), string(p.ID), "an admin is shown %+v, and the next payout is %v: %+v", p, want[:min(1, len(want))], m.model.payouts[p.ID]) {
				return
			}
			want = want[1:]
		}
		if got.Next == nil {
			break
		}
		next = "&after=" + *got.Next
	}
	m.assert(readsAgree, m.violation != nil || len(want) == 0, "", "an admin can page through all payouts but %d of %d", len(want), total)
}

// checkPayoutsExport exports all payouts. Each is there once with its amounts, and has a time of completion if it was ever completed.
func (f front) checkPayoutsExport() {
	m := f.m
	rows, err := csv.NewReader(f.ask(http.MethodGet, "/api/admin/payouts?format=csv", "", "").Body).ReadAll()
	if !m.assert(readsAgree, err == nil && len(rows) == len(m.model.payouts)+1, "", "%d lines are exported of %d payouts (%v)", len(rows), len(m.model.payouts), err) {
		return
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	seen := map[string]bool{}
	for _, row := range rows[1:] {
		of := func(name string) string { return row[column[name]] }
		w := m.model.payouts[payout.ID(of("id"))]
		right := w != nil && !seen[of("id")] && of("seller_id") == w.seller && of("status") == string(w.state.Status()) &&
			(of("completed_at") != "") == (w.state == payout.Completed || w.state == payout.Returned) && of("gateway") == string(w.at) &&
			of("amount") == rupees().FormatFixed(w.amount) && of("fee") == rupees().FormatFixed(w.folded.Fee) && of("net") == rupees().FormatFixed(w.amount-w.folded.Fee) &&
			of("state") == string(w.state) && (w.state != payout.Completed || of("utr") == w.last.UTR)
		seen[of("id")] = true
		if !m.assert(readsAgree, right, of("id"), "the payout %+v is exported as %q", w, row) {
			return
		}
	}
}

// checkPayouts reads one payout in each state.
func (f front) checkPayouts() {
	m := f.m
	read := make(map[payout.State]bool)
	for _, s := range m.sellers {
		for _, id := range m.model.historyOf(s.id, "") {
			w := m.model.payouts[id]
			if read[w.state] {
				continue
			}
			read[w.state] = true
			var got listedPayout
			f.read("/api/admin/payouts/"+string(id), &got)
			m.assert(readsAgree, got.ID == id && got.isOf(w) && len(got.Entries) > 0 && !got.Tampered && (w.state != payout.Completed || got.UTR == w.last.UTR) && (w.state != payout.Failed || got.FailureReason == w.last.Reason), string(id), "an admin is shown %+v, and the ledger has %+v", got, w)
		}
	}
}

// checkSelling has the marketplace record a sale by API, again, otherwise, among others, and refund a part of it, again and all that is left.
func (f front) checkSelling(on *instance, s *seller) {
	m := f.m
	at := m.clock().Add(-time.Hour).Truncate(time.Second)
	body := func(id, amount string) string {
		return fmt.Sprintf(`{"saleId":%q,"sellerId":%q,"amount":%s,"occurredAt":%q}`, id, s.id, amount, at.Format(time.RFC3339))
	}
	post := func(path, body string, data any) (status int) {
		m.spawn(0, "marketplace", func() { status, _ = f.call(http.MethodPost, path, "", body, data) })
		m.pass(m.now + time.Minute)
		m.follow(on, s.id)
		return status
	}
	for _, subject := range []string{"by-api-1", "by-api-2", "by-api-4", refundKey("by-api-1", "r1"), refundKey("by-api-1", "r3")} {
		m.recorders[subject] = f.key.Actor()
	}
	var none struct{}
	status := post("/api/marketplace/sales", body("by-api-1", "1234.56"), &none)
	e := m.model.sales["by-api-1"]
	m.assert(answersAreTrue, m.violation != nil || status == http.StatusCreated && e != nil && e.amount == 123456 && isStamp(at, e.occurredAt) && e.availableAt.Equal(at.Add(usualHoldingPeriod)), s.id,
		"a sale of 1234.56 by API was answered with %d, and the ledger has %+v", status, e)
	again, other := post("/api/marketplace/sales", body("by-api-1", "1234.560"), &none), post("/api/marketplace/sales", body("by-api-1", "1234.57"), &none)
	m.assert(oncePerID, m.violation != nil || again == http.StatusOK && other == http.StatusConflict, s.id, "a sale again was answered with %d, and another one under its id with %d", again, other)
	var batch struct {
		Results []struct {
			SaleID  string
			Success bool
			Code    string
		}
	}
	status = post("/api/marketplace/sales:batch", `{"sales":[`+body("by-api-2", "10")+`,`+body("by-api-1", "1")+`,`+body("by-api-3", "-5")+`,`+body("by-api-2", "10.0")+`,`+body("by-api-4", "0.01")+`]}`, &batch)
	var outcomes []string
	for _, r := range batch.Results {
		outcomes = append(outcomes, fmt.Sprint(r.SaleID, " ", r.Success))
	}
	wanted := []string{"by-api-2 true", "by-api-1 false", "by-api-3 false", "by-api-2 true", "by-api-4 true"}
	m.assert(answersAreTrue, m.violation != nil || status == http.StatusOK && slices.Equal(outcomes, wanted) && m.model.sales["by-api-2"] != nil && m.model.sales["by-api-3"] == nil && m.model.sales["by-api-4"] != nil, s.id,
		"a batch of sales was answered with %d and %v; it is to be %v", status, outcomes, wanted)
	refund := func(body string, left money.Amount, want int) {
		status := post("/api/marketplace/sales/by-api-1/refund", body, &none)
		m.assert(refundsAreDue, m.violation != nil || status == want && m.model.sales["by-api-1"].left() == left, s.id, "the refund %s was answered with %d, and of the sale %d is left; it is to be %d", body, status, m.model.sales["by-api-1"].left(), left)
	}
	refund(`{"refundId":"r1","amount":34.56}`, 120000, http.StatusCreated)
	refund(`{"refundId":"r1","amount":34.56}`, 120000, http.StatusOK)
	refund(`{"refundId":"r2","amount":1200.01}`, 120000, http.StatusBadRequest)
	refund(`{"refundId":"r3"}`, 0, http.StatusCreated)
	refund(`{"refundId":"r3"}`, 0, http.StatusOK)
}

// asAdmin has the admin post something.
func (f front) asAdmin(subject, path, body string, data any) (status int) {
	m := f.m
	m.spawn(0, admin, func() {
		m.current.about = payout.ID(subject)
		status, _ = f.call(http.MethodPost, path, "", body, data)
	})
	m.pass(m.now + time.Minute)
	return status
}

// checkAdjusting has the admin correct a balance, up and down, again, and without a reason.
func (f front) checkAdjusting(on *instance, s *seller) {
	m := f.m
	for i, amount := range []money.Amount{12345, -4500} {
		before := m.model.row(s.id).Available
		id := fmt.Sprintf("by-api-%d", i)
		m.adjusting[correctionID(s.id, id)] = amount
		body := fmt.Sprintf(`{"adjustmentId":%q,"amount":%s,"reason":"A fee was wrong.","note":%q}`, id, decimal(amount), m.by().Note)
		var got struct {
			Amount, AvailableBalance json.Number
			CreatedBy, Note          string
		}
		path := "/api/admin/sellers/" + s.id + "/adjustments"
		made, again := f.asAdmin(s.id, path, body, &got), f.asAdmin(s.id, path, body, &got)
		m.follow(on, s.id)
		isRight := made == http.StatusCreated && again == http.StatusOK && m.model.row(s.id).Available == before+amount && isAmount(got.Amount, amount) &&
			isAmount(got.AvailableBalance, before+amount) && got.CreatedBy == m.admin && got.Note == m.by().Note
		m.assert(adjustmentsDue, m.violation != nil || isRight, s.id, "an adjustment by %d of %d was answered with %d, again with %d and %+v, and %d is available", amount, before, made, again, got, m.model.row(s.id).Available)
	}
	status := f.asAdmin(s.id, "/api/admin/sellers/"+s.id+"/adjustments", `{"adjustmentId":"by-api-9","amount":1,"reason":"A fee was wrong.","note":" "}`, &struct{}{})
	m.assert(decisionsKept, m.violation != nil || status == http.StatusUnprocessableEntity, s.id, "an adjustment without a note was answered with %d", status)
}

// decimal writes an amount as people do, with its sign.
func decimal(a money.Amount) string {
	if a < 0 {
		return "-" + rupees().FormatFixed(-a)
	}
	return rupees().FormatFixed(a)
}

// checkFreezing has the admin freeze a seller's payouts and resume them. Between the two the seller requests none.
func (f front) checkFreezing(on *instance, s *seller) {
	m := f.m
	if m.model.row(s.id).Available < minimum {
		return
	}
	m.stopping[s.id] = true // no other admin resumes it meanwhile
	defer delete(m.stopping, s.id)
	path, body := "/api/admin/sellers/"+s.id, fmt.Sprintf(`{"reason":%q}`, m.by().Note)
	status := f.asAdmin(s.id, path+"/freeze", body, &struct{}{})
	again := f.asAdmin(s.id, path+"/freeze", body, &struct{}{})
	a := &ask{seller: s.id, amount: minimum, notes: "while frozen"}
	m.spawn(0, "seller "+s.name, func() { m.send(a) })
	m.pass(m.now + time.Minute)
	f.checkUser(s)
	m.assert(stopsKept, m.violation != nil || status == http.StatusOK && again == http.StatusConflict && m.model.sellers[s.id].frozen.stopped && a.made == "", s.id,
		"a freeze by API was answered with %d, again with %d, and payout %q was made", status, again, a.made)
	status = f.asAdmin(s.id, path+"/unfreeze", body, &struct{}{})
	m.assert(stopsKept, m.violation != nil || (status == http.StatusOK) != m.model.sellers[s.id].frozen.stopped, s.id, "the end of a freeze by API was answered with %d, and payouts are frozen: %t", status, m.model.sellers[s.id].frozen.stopped)
	m.follow(on, s.id)
}

// checkDecisions reads the newest decisions: the admin's on a seller, with the reason.
func (f front) checkDecisions() {
	m := f.m
	var got struct {
		Decisions []struct {
			Action           decision.Action
			By, Subject      string
			SellerID, ByName *string
			Note             string
			At               time.Time
		}
	}
	f.read("/api/admin/decisions?limit=50", &got)
	m.assert(decisionsKept, len(got.Decisions) > 1 && len(got.Decisions) <= 50, "", "an admin is shown %d decisions", len(got.Decisions))
	for i, d := range got.Decisions {
		m.assert(decisionsKept, i == 0 || !d.At.After(got.Decisions[i-1].At), d.Subject, "decision %d, of %s, is listed after an older one", i, d.At)
	}
}

// payoutStatuses are those that a payout has at its events.
//
//exhaustive:ignore
var payoutStatuses = map[event.Type]payout.Status{
	event.PayoutRequested: payout.StatusProcessing, event.PayoutSubmitted: payout.StatusProcessing, event.PayoutReview: payout.StatusProcessing, event.PayoutCompleted: payout.StatusCompleted,
	event.PayoutFailed: payout.StatusFailed, event.PayoutReturned: payout.StatusFailed, event.PayoutCancelled: payout.StatusCancelled,
}

// checkBodies reads the feed to its end. Each event shows its object as it was after its entry, whatever became of it since.
func (f front) checkBodies() {
	m, taken := f.m, map[string]int{}
	for next, more := int64(0), true; more && m.violation == nil; {
		var page struct {
			Events []struct {
				Number int64
				Type   event.Type
				Data   struct {
					ID, SellerID, SaleID string
					Status               string
					RefundedAmount       json.Number
					Entry                int64
					Tampered             bool
				}
			}
			Next int64
		}
		f.read(fmt.Sprintf("/api/events?limit=100&after=%d", next), &page)
		for _, e := range page.Events {
			if e.Type == event.SellerRegistered {
				continue
			}
			seller := e.Data.SellerID
			n, expected := taken[seller], m.model.journal(seller).events
			taken[seller]++
			isNext := !e.Data.Tampered && n < len(expected) && expected[n].Type == e.Type && expected[n].Entry == e.Data.Entry
			m.assert(feedTellsAll, isNext, seller, "event %d is %s, entry %d of %s (tampered: %t), and is number %d of theirs", e.Number, e.Type, e.Data.Entry, seller, e.Data.Tampered, n+1)
			if status, isPayouts := payoutStatuses[e.Type]; isPayouts {
				m.assert(feedTellsAll, e.Data.Status == string(status), seller, "event %d is %s, and shows payout %s as %s", e.Number, e.Type, e.Data.ID, e.Data.Status)
			}
			if e.Type == event.SaleRecorded {
				m.assert(feedTellsAll, e.Data.Status == "pending" && isAmount(e.Data.RefundedAmount, 0), seller, "event %d is %s, and shows sale %s as %s, refunded %s", e.Number, e.Type, e.Data.SaleID, e.Data.Status, e.Data.RefundedAmount)
			}
		}
		more, next = page.Next > next, page.Next
	}
}

// checkExport exports all decisions, each of which is there once.
func (f front) checkExport(on *instance) {
	m := f.m
	m.checkOnRecord(on)
	all, err := on.db.Decisions(m.ctx, "", 1_000_000)
	rows, err2 := csv.NewReader(f.ask(http.MethodGet, "/api/admin/decisions?format=csv", "", "").Body).ReadAll()
	seen := map[string]bool{}
	for _, row := range rows {
		seen[row[0]] = true
	}
	m.assert(decisionsKept, err == nil && err2 == nil && len(rows) == len(all)+1 && len(seen) == len(rows), "", "%d decisions are on record (%v), and %d lines are exported, of which %d differ (%v)", len(all), err, len(rows), len(seen), err2)
}

// checkAskMany asks the gateway about several payouts, of which one is unknown and one is none. The others are asked all the same.
func (f front) checkAskMany() {
	m := f.m
	var known []string
	for _, s := range m.sellers {
		for _, id := range m.model.historyOf(s.id, payout.StatusCompleted) {
			known = append(known, string(id))
		}
	}
	if len(known) < 2 {
		return
	}
	asked := []string{"none", unknownPayout, known[0], known[1]}
	var got struct {
		Results []struct {
			PayoutID string
			Success  bool
			Code     string
		}
	}
	text, err := json.Marshal(map[string]any{"payoutIds": asked, "note": m.by().Note})
	m.assert(answersAreKnown, err == nil, "", "write a body: %v", err)
	var status int
	m.spawn(0, admin, func() { status, _ = f.call(http.MethodPost, "/api/admin/inbox/ask", "", string(text), &got) })
	m.pass(m.now + 10*time.Minute)
	isRight := status == http.StatusOK && len(got.Results) == len(asked)
	for i := 0; isRight && i < len(asked); i++ {
		r := got.Results[i]
		isRight = r.PayoutID == asked[i] && (i >= 2 || !r.Success && r.Code != "") && (i < 2 || r.Success || r.Code != "")
	}
	m.assert(answersAreTrue, m.violation != nil || isRight, "", "the gateway was to be asked about %v, and the answer is %d and %+v", asked, status, got)
}

// checkLastAdmin wants the only admin to stay one.
func (m *market) checkLastAdmin(on *instance) {
	for _, to := range []struct {
		role      auth.Role
		suspended bool
	}{{auth.Seller, false}, {auth.Admin, true}} {
		err := on.users.SetAccess(m.ctx, decision.By{Operator: "asha", Note: "They have left."}, m.admin, to.role, to.suspended)
		m.assert(doorsKept, errors.Is(err, auth.ErrLastAdmin), "", "the last admin became %s (suspended: %t), and the answer is %v", to.role, to.suspended, err)
	}
}
