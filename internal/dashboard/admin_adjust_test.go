package dashboard_test

import (
	"testing"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/money"
)

// wantAvailable checks a seller's available balance.
func (o *adminFixture) wantAvailable(seller string, want money.Amount) {
	o.Helper()
	b, err := o.db.Balance(o.Context(), seller)
	if must(o.T, err); b.Available != want {
		o.Errorf("available is %d, want %d", b.Available, want)
	}
}

// TestAdjust_OnTheSellersPage adds to a seller's balance and takes from it, and reads what both sides see.
func TestAdjust_OnTheSellersPage(t *testing.T) {
	o := openAdminFixture(t)
	b, err := o.db.Balance(t.Context(), o.seller.id)
	must(t, err)
	had := b.Available
	person := adminHome + "/sellers/" + o.seller.id
	page := person + "/adjust"
	o.admin.get(person).want(t, 200).says(t, `href="`+page+`"`).saysNot(t, "Adjustments of the balance")
	o.seller.get(page).want(t, 403)
	o.seller.get("/dashboard/sales").want(t, 200).saysNot(t, "Corrections by our team")
	asked := o.admin.get(page).want(t, 200)
	checkPage(t, page, asked)
	key := asked.hiddenValue(t, "key")
	fields := func(direction, amount, reason, key string, more ...string) []string {
		return append([]string{"direction", direction, "amount", amount, "reason", reason, "note", "Case 4711.", "key", key}, more...)
	}

	o.admin.post(page, fields("", "", "", key)...).want(t, 422).reads(t, "Direction must be chosen", "Enter an amount", "Reason must tell the seller why")
	o.admin.post(page, "direction", "add", "amount", "50", "reason", "A fee.", "key", key).want(t, 422).reads(t, "Note must say why")
	o.admin.post(page, fields("add", "0", "A fee.", key)...).want(t, 422).reads(t, "Amount must be above zero")
	o.admin.post(page, fields("add", "50", "A fee.", "")...).want(t, 422).reads(t, "nothing was changed")
	review := o.admin.post(page, fields("add", "50.25", "A <b>fee</b> was charged twice.", key)...).want(t, 200).
		reads(t, "Review the adjustment", "Available after", "A <b>fee</b> was charged twice.", "Case 4711.", "Add ₹50.25").saysNot(t, "<b>fee", "below zero")
	checkPage(t, page, review)
	o.wantAvailable(o.seller.id, had) // nothing moved yet
	o.admin.post(page, fields("add", "50.25", "A fee.", key, "step", "edit")...).want(t, 200).says(t, `value="50.25"`, `value="A fee."`, "Case 4711.", key)

	confirm := fields("add", "50.25", "A <b>fee</b> was charged twice.", key, "step", "confirm")
	for range 2 { // clicked twice
		o.admin.then(o.admin.post(page, confirm...).leadsTo(t, person)).want(t, 200).
			reads(t, "The balance is adjusted.", "Adjustments of the balance", "+₹50.25", "Case 4711.", "Balance adjusted: A <b>fee</b> was charged twice.").saysNot(t, "<b>fee")
		o.wantAvailable(o.seller.id, had+50_25)
	}
	o.admin.post(page, fields("add", "51", "A fee.", key, "step", "confirm")...).want(t, 409).reads(t, "that adjustment is made").saysNot(t, `value="`+key+`"`)
	o.wantAvailable(o.seller.id, had+50_25)

	down := o.admin.get(page).hiddenValue(t, "key")
	o.admin.post(page, fields("take", "900000", "A sale was recorded twice.", down)...).want(t, 200).reads(t, "Take ₹9,00,000.00", "The balance would be below zero.")
	o.admin.post(page, fields("take", "900000", "A sale was recorded twice.", down, "step", "confirm")...).leadsTo(t, person)
	o.wantAvailable(o.seller.id, had+50_25-900_000_00)

	o.seller.get("/dashboard/sales").want(t, 200).reads(t, "Corrections by our team", "+₹50.25", "A <b>fee</b> was charged twice.", "A sale was recorded twice.").saysNot(t, "4711", "<b>fee")
	o.admin.get(adminHome+"/decisions").want(t, 200).reads(t, "Adjusted a balance", "Case 4711.").says(t, `href="`+person+`"`)
	o.wantDecisions("adjustment:page-"+key, decision.AdjustBalance)
}

// TestAdjust_WithASecondFactor proves once, and a second click needs no other code.
func TestAdjust_WithASecondFactor(t *testing.T) {
	o := openAdminFixture(t)
	secret := o.enrol(o.admin)
	b, err := o.db.Balance(t.Context(), o.seller.id)
	must(t, err)
	page := adminHome + "/sellers/" + o.seller.id + "/adjust"
	key := o.admin.get(page).saysNot(t, `name="code"`).hiddenValue(t, "key")
	fields := []string{"direction", "add", "amount", "50", "reason", "A fee.", "note", "Case 4711.", "key", key}
	o.admin.post(page, fields...).want(t, 200).says(t, `name="code"`)
	confirm := append(fields, "step", "confirm")
	o.admin.post(page, confirm...).want(t, 422).reads(t, "must be a code of your authenticator app", "Review the adjustment")
	o.admin.post(page, append(confirm, "code", "000000")...).want(t, 422).reads(t, "is wrong, was used already")
	o.wantAvailable(o.seller.id, b.Available)
	code := append(confirm, "code", o.codeOf(secret))
	for range 2 {
		o.admin.post(page, code...).leadsTo(t, adminHome+"/sellers/"+o.seller.id)
		o.wantAvailable(o.seller.id, b.Available+50_00)
	}
}

func TestAdjust_NotForThoseWhoDoNotSell(t *testing.T) {
	o := openAdminFixture(t)
	buyer := o.signUp("Ben", auth.Buyer)
	page := adminHome + "/sellers/" + buyer.id + "/adjust"
	o.admin.get(adminHome+"/sellers/"+buyer.id).want(t, 200).saysNot(t, page)
	o.admin.post(page, "direction", "add", "amount", "50", "reason", "A fee.", "note", "Case.", "key", "0123456789abcdefghijkl", "step", "confirm").want(t, 404)
}

// TestPages_TamperedAdjustmentsAndNotes shows everything else where an adjustment or a note was changed in the database.
func TestPages_TamperedAdjustmentsAndNotes(t *testing.T) {
	o := openAdminFixture(t)
	person := adminHome + "/sellers/" + o.seller.id
	key := o.admin.get(person+"/adjust").hiddenValue(t, "key")
	o.admin.post(person+"/adjust", "direction", "add", "amount", "50", "reason", "A fee.", "note", "Case 4711.", "key", key, "step", "confirm").leadsTo(t, person)
	o.admin.post(person+"/notes", "note", "Called.").leadsTo(t, person+"#notes")
	o.place.ByHand(t, `UPDATE entries SET actor = 'admin:usr_other' WHERE type = 'balance.adjusted' OR subject LIKE 'note:%'`)
	o.seller.get("/dashboard/sales").want(t, 200).saysNot(t, "Corrections by our team")
	o.admin.get(person).want(t, 200).reads(t, "The notes can't be shown").saysNot(t, "Adjustments of the balance")
	o.admin.post(person+"/notes", "note", "Again.").want(t, 409)
}
