package dashboard_test

import (
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/payout"
)

// TestFreeze_OnTheSellersPage freezes a seller's payouts, reads what both sides see, and resumes them.
func TestFreeze_OnTheSellersPage(t *testing.T) {
	o := openAdminFixture(t)
	waits := o.ask(o.seller, 640_00, "").ID
	person := adminHome + "/sellers/" + o.seller.id
	freeze, unfreeze := person+"/freeze", person+"/unfreeze"
	o.admin.get(person).want(t, 200).says(t, `href="`+freeze+`"`).saysNot(t, unfreeze)
	o.seller.get(freeze).want(t, 403)
	o.admin.get(freeze).want(t, 200).reads(t, "Freeze payouts", "asha.rao@example.com", "None of their payouts can be requested")
	o.admin.post(freeze, "note", " ").want(t, 422).reads(t, "Note must say why")
	o.admin.then(o.admin.post(freeze, "note", "Case 4711.").leadsTo(t, person)).want(t, 200).
		reads(t, "The seller's payouts are frozen.", "Payouts are frozen.", "Froze payouts", "Case 4711.").says(t, `href="`+unfreeze+`"`)
	o.admin.then(o.admin.post(freeze, "note", "Again.").leadsTo(t, person)).reads(t, "Nothing was changed")

	const why = "Our team has frozen the payouts of this account. Contact support to learn more."
	o.seller.get("/dashboard").want(t, 200).reads(t, why, "Your balance is safe.").saysNot(t, "Case 4711", `href="/dashboard/payouts/new"`)
	o.seller.get("/dashboard/payouts/new").want(t, 200).reads(t, why).saysNot(t, "<form class=\"stack\" method=\"get\"")
	o.clock.advance(time.Hour)
	if p := o.step(waits); p.State != payout.Waiting || !p.IsStopped() {
		t.Errorf("while payouts are frozen it is %+v", p)
	}
	o.seller.get("/dashboard/payouts/"+string(waits)).want(t, 200).reads(t, why, "Until then you can cancel it.").saysNot(t, "surely cancel")
	o.admin.get(adminPayout(waits)).want(t, 200).reads(t, "Not sent, because payouts are frozen for this seller or paused for all, or an unmatched transfer names the seller.")

	o.admin.then(o.admin.post(unfreeze, "note", "It was a mistake.").leadsTo(t, person)).reads(t, "Those that waited are sent.", "Resumed payouts").saysNot(t, "Payouts are frozen.")
	if p := o.step(waits); p.State == payout.Waiting {
		t.Errorf("after payouts are resumed it is %+v", p)
	}
	o.seller.get("/dashboard").want(t, 200).saysNot(t, why)
	o.wantDecisions(o.seller.id, decision.FreezePayouts, decision.UnfreezePayouts)
}

// TestPause_OnTheHomePage pauses all payouts.
func TestPause_OnTheHomePage(t *testing.T) {
	o := openAdminFixture(t)
	const pause, resume = adminHome + "/pause", adminHome + "/resume"
	o.admin.get(adminHome).want(t, 200).says(t, `href="`+pause+`"`).saysNot(t, "All payouts are paused", resume)
	o.admin.get(pause).want(t, 200).reads(t, "No payout of any seller can be requested")
	o.admin.then(o.admin.post(pause, "note", "The bank <b>has</b> trouble.").leadsTo(t, adminHome)).
		reads(t, "All payouts are paused. None can be requested", "The bank <b>has</b> trouble.").says(t, `href="`+resume+`"`).saysNot(t, `href="`+pause+`"`, "<b>has")
	o.seller.get("/dashboard").want(t, 200).reads(t, "Payouts are paused for all sellers at the moment.").saysNot(t, "trouble")
	o.admin.then(o.admin.post(resume, "note", "It is back.").leadsTo(t, adminHome)).reads(t, "Payouts are resumed.").saysNot(t, "All payouts are paused.")
	o.admin.get(adminHome+"/decisions").reads(t, "Paused all payouts", "Resumed all payouts")
	o.wantDecisions(decision.Platform, decision.PausePayouts, decision.ResumePayouts)
}

// TestAccess_SuspendedWithPayoutsFrozen suspends a seller and freezes their payouts with one decision.
func TestAccess_SuspendedWithPayoutsFrozen(t *testing.T) {
	o := openAdminFixture(t)
	access := adminHome + "/sellers/" + o.seller.id + "/access"
	o.admin.get(access).want(t, 200).reads(t, "Suspended, with payouts frozen")
	o.admin.then(o.admin.post(access, "role", "seller", "state", "suspended-frozen", "seen", "seller active", "confirm", "asha.rao@example.com", "note", "Case 4711.").
		leadsTo(t, adminHome+"/sellers/"+o.seller.id)).
		reads(t, "and their payouts are frozen.", "Suspended", "Payouts are frozen.", "Froze payouts", "Changed access")
	b, err := o.db.Balance(t.Context(), o.seller.id)
	if must(t, err); !b.Frozen {
		t.Error("the payouts are not frozen")
	}
	buyer := o.signUp("Ben", auth.Buyer)
	o.admin.get(adminHome+"/sellers/"+buyer.id+"/access").want(t, 200).saysNot(t, "suspended-frozen")
}
