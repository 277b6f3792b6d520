package dashboard_test

import (
	"testing"
	"time"

	"bursar/internal/payout"
)

// TestLatePayouts lets payouts come to be late, and reads what the admin and the seller see.
func TestLatePayouts(t *testing.T) {
	o := openAdminFixture(t)
	waits := o.ask(o.seller, 640_00, "")
	o.clock.advance(waits.ArriveAt.Sub(o.clock.Now()))
	const inbox = adminHome + "/inbox?kind=late"
	o.admin.get(adminHome).want(t, 200).reads(t, "All clear.").saysNot(t, "late payout")
	o.seller.get("/dashboard/payouts/"+string(waits.ID)).want(t, 200).saysNot(t, "is late by")

	o.clock.advance(3*24*time.Hour + time.Minute)
	o.admin.get(adminHome).want(t, 200).reads(t, "1 late payout, which should have arrived, the oldest by 3 days").says(t, `href="`+inbox+`"`).saysNot(t, "All clear.")
	o.admin.get(inbox).want(t, 200).reads(t, "Late (1)", "₹640.00 · Asha Rao", "It is not sent yet", "Should have arrived").says(t, `href="`+adminPayout(waits.ID)+`"`)
	o.seller.get("/dashboard/payouts/"+string(waits.ID)).want(t, 200).
		reads(t, "This payout is late by 3 days. Your money is safe", "contact support with the payout's number")

	o.follow(waits.ID, payout.Completed)
	o.admin.get(adminHome).want(t, 200).reads(t, "All clear.")
	o.seller.get("/dashboard/payouts/"+string(waits.ID)).want(t, 200).saysNot(t, "is late by")
}

// TestLatePayouts_ListedOnce shows what is late and unknown as late, and what is in review as that.
func TestLatePayouts_ListedOnce(t *testing.T) {
	o := openAdminFixture(t)
	unknown, reviewed := o.unknown(640_00), o.sendToReview(o.unknown(650_00))
	o.clock.advance(3 * 24 * time.Hour)
	list := o.admin.get(adminHome+"/inbox").want(t, 200).reads(t, "Late (1)", "In review (1)", "The gateway's answer is missing", "₹640.00", "₹650.00")
	list.saysNot(t, "Unknown (")
	o.admin.get(adminHome+"/inbox?kind=late").want(t, 200).says(t, string(unknown)).saysNot(t, string(reviewed))
}
