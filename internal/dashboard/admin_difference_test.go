package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
)

const reconciliation = adminHome + "/reconciliation"

// paidTwice has the gateway move a payout's money twice, and the service find out.
func (o *adminFixture) paidTwice() (id payout.ID, page string) {
	o.Helper()
	id = o.ask(o.seller, 640_00, "").ID
	o.follow(id, payout.Completed)
	o.control("POST", "/control/statement", fmt.Sprintf(`{"change":"double","line":%q}`, id))
	o.reconcile()
	open, err := o.reconciling.Open(o.Context(), 10)
	must(o, err)
	if len(open) != 1 || open[0].Kind != reconcile.PaidTwice {
		o.Fatalf("found %+v", open)
	}
	return id, adminHome + "/differences/" + open[0].ID
}

// reconcile compares today with the ledger.
func (o *adminFixture) reconcile() {
	o.Helper()
	o.clock.advance(2 * time.Minute)
	today, err := o.reconciling.Period("today", "today")
	must(o, err)
	_, err = o.reconciling.Reconcile(o.Context(), today, true)
	must(o, err)
}

func TestResolveDifference_NeedsANote(t *testing.T) {
	o := openAdminFixture(t)
	o.admin.get(reconciliation).want(t, 200).reads(t, "No open discrepancies.", "No day compared yet.", "No comparisons yet.")
	id, page := o.paidTwice()
	o.admin.get(adminHome).reads(t, "1 difference between the gateway's statement and the ledger")
	o.admin.get(adminHome+"/inbox?kind=difference").want(t, 200).says(t, `href="`+page+`"`).
		reads(t, "Difference (1)", "· Asha Rao", "The gateway took money for one payout more than once.", "2 debits and no credit")
	shown := o.admin.get(page).want(t, 200).reads(t, "paid-twice", "The statement has 2 debits and no credit for it.", "Asha Rao", "Completed",
		"have the other one called back", "It moves no money", string(id)).saysNot(t, accountDigits)
	if n := strings.Count(shown.words(), "Takes ₹"); n != 2 {
		t.Errorf("%d lines are shown, want 2: %s", n, shown.words())
	}
	const seen = "The statement has 2 debits and no credit for it."
	o.admin.post(page, "seen", seen).want(t, 422).reads(t, "Note must say why")
	o.admin.then(o.admin.post(page, "seen", "something else", "note", "Called back.").leadsTo(t, page)).reads(t, "Nothing was changed")
	o.wantDecisions(page[len(adminHome+"/differences/"):])
	o.admin.then(o.admin.post(page, "seen", seen, "note", "Called back.").leadsTo(t, page)).
		reads(t, "The difference is marked as resolved.", "Resolved on", "Called back.").saysNot(t, "<textarea")
	o.wantDecisions(page[len(adminHome+"/differences/"):], decision.ResolveDifference)
	o.admin.then(o.admin.post(page, "seen", seen, "note", "Again.").leadsTo(t, page)).reads(t, "Nothing was changed")
	o.admin.get(adminHome+"/inbox").reads(t, "All clear.")
	o.admin.get(adminHome+"/decisions").reads(t, "Resolved a difference").says(t, `href="`+page+`"`)

	// It is listed again when it says something else.
	o.reconcile()
	o.admin.get(adminHome+"/inbox").reads(t, "All clear.")
	o.control("POST", "/control/statement", fmt.Sprintf(`{"change":"double","line":%q}`, id))
	o.reconcile()
	o.admin.get(adminHome+"/inbox").says(t, `href="`+page+`"`).reads(t, "3 debits")
	o.admin.get(reconciliation).want(t, 200).reads(t, "See 1 open discrepancy", "by hand", "Paid in the ledger")
}

func TestDifferencesOfNothing(t *testing.T) {
	o := openAdminFixture(t)
	for _, id := range []string{"nonsense", "dif_000000000000000000000000", "%00", "dif_%ff"} {
		o.admin.get(adminHome+"/differences/"+id).want(t, 404)
		o.admin.post(adminHome+"/differences/"+id, "note", "x").want(t, 404)
	}
}
