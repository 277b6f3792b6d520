package dashboard_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/dashboard"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// TestAdminsEnterACode decides on each page that moves money or access, as an admin with a second factor.
func TestAdminsEnterACode(t *testing.T) {
	o := openAdminFixture(t)
	secret := o.enrol(o.admin)
	decide := func(page string, want decision.Action, subject string, fields ...string) {
		t.Helper()
		o.admin.get(page).want(t, 200).says(t, `name="code"`)
		o.admin.post(page, fields...).want(t, 422).reads(t, "must be a code of your authenticator app")
		o.admin.post(page, append(fields, "code", "000000")...).want(t, 422).reads(t, "is wrong, was used already")
		o.wantDecisions(subject)
		o.admin.post(page, append(fields, "code", o.codeOf(secret))...).want(t, 303)
		o.wantDecisions(subject, want)
	}
	cancelled := o.ask(o.seller, 600_00, "")
	decide(adminPayout(cancelled.ID)+"/cancel", decision.CancelPayout, string(cancelled.ID))

	person := adminHome + "/sellers/" + o.seller.id
	now := o.clock.Now()
	hold, err := ledger.HoldPosting(o.seller.id, "user:"+o.seller.id, ledger.HoldPasswordReset, now, now.Add(72*time.Hour))
	must(t, err)
	must(t, o.db.Auth().InTx(t.Context(), func(tx auth.Tx) error { _, err := tx.Append(t.Context(), hold); return err }))
	decide(person+"/hold", decision.LiftHold, o.seller.id, "note", "Called the seller.")

	frozen := o.signUp("Kabir Gupta", auth.Seller).id
	decide(adminHome+"/sellers/"+frozen+"/freeze", decision.FreezePayouts, frozen, "note", "Ticket 813")
	decide(adminHome+"/pause", decision.PausePayouts, decision.Platform, "note", "The bank has trouble.")
	must(t, o.payouts.Resume(t.Context(), o.by("It is back.")))

	vikram := o.signUp("Vikram Singh", auth.Seller)
	account := string(o.inReview(vikram, "ASHA RAUT"))
	decide(adminHome+"/bank-accounts/"+account, decision.RejectBankAccount, account, "decision", "reject", "reason", "Not yours.", "note", "Another name.")
	decide(adminHome+"/sellers/"+vikram.id+"/access", decision.ChangeAccess, vikram.id,
		"seen", "seller active", "confirm", vikram.email, "role", "seller", "state", "suspended", "note", "Ticket 812")

	o.unmatched("pout_lost", "its seller is not in the ledger")
	decide(adminHome+"/unmatched-transfers/paper:pout_lost", decision.ResolveUnmatchedTransfer, "paper:pout_lost", "note", "Asha has it.")

	refunded := o.unknown(640_00)
	o.sendToReview(refunded)
	o.clock.advance(time.Hour)
	page := adminPayout(refunded) + "/refund"
	o.admin.get(page).want(t, 200).says(t, `name="code"`)
	o.admin.post(page, "looked", "yes", "note", "Not there.").want(t, 422).reads(t, "must be a code of your authenticator app")
	o.wantState(refunded, payout.ManualReview)
	o.admin.post(page, "looked", "yes", "note", "Not there.", "code", o.codeOf(secret)).want(t, 303)
	o.wantState(refunded, payout.Failed)

	matched := o.made(650_00)
	at, err := o.sandboxID(matched)
	must(t, err)
	decide(adminPayout(matched)+"/match", decision.MatchTransfer, string(matched), "gatewayId", at, "note", "Found it.")

	o.admin.get(adminPayout(o.unknown(660_00))+"/review").want(t, 200).saysNot(t, `name="code"`) // moves nothing
}

// strictAuth wants admins to have a second factor while it is strict.
type strictAuth struct {
	dashboard.Auth
	strict *atomic.Bool
}

func (s strictAuth) CheckAdmin(context.Context, auth.Principal) error {
	if s.strict.Load() {
		return auth.ErrAdminFactor
	}
	return nil
}

func TestAdminPages_WithoutFactor_LeadToEnrolment(t *testing.T) {
	strict := &atomic.Bool{}
	strict.Store(true)
	h := openFixture(t, func(o *dashboard.Options) { o.Auth = strictAuth{o.Auth, strict} })
	admin := h.signUp("Ada", auth.Admin)
	for _, path := range []string{adminHome, adminHome + "/inbox", adminHome + "/sellers/" + admin.id + "/access"} {
		admin.get(path).leadsTo(t, "/dashboard/profile/factors")
	}
	admin.post(adminHome+"/sellers/"+admin.id+"/access", "note", "x").leadsTo(t, "/dashboard/profile/factors")
	admin.get("/dashboard/profile/factors").want(t, 200).says(t, "Admins need a second factor here.")
	h.enrol(admin)
	strict.Store(false)
	admin.get(adminHome).want(t, 200)
}

// Without the password, a stolen session could add a factor and keep its access.
func TestFirstFactor_OldSignIn_RequiresPassword(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.clock.advance(15 * time.Minute)
	const factors = "/dashboard/profile/factors"
	seller.post(factors).want(t, 422).says(t, `name="password"`, "Your password is required")
	seller.post(factors, "password", "wrong").want(t, 400).says(t, `name="password"`, "Your password is wrong")
	seller.post(factors, "password", password).want(t, 200).hiddenValue(t, "secret")
}

// TestDeleteAccountPage_RequiresProof proves with the password, or with a code where there is a second factor.
func TestDeleteAccountPage_RequiresProof(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	const page = "/dashboard/profile/delete"
	seller.get("/dashboard/profile").want(t, 200).says(t, `href="`+page+`"`, `href="/api/auth/export"`)
	checkPage(t, page, seller.get(page).want(t, 200).says(t, `name="password"`))
	if export := seller.get("/api/auth/export").want(t, 200); export.header.Get("Content-Disposition") == "" {
		t.Error("the export is no file")
	}
	seller.post(page).want(t, 422).says(t, "Your password is required")
	seller.post(page, "password", "wrong").want(t, 400).says(t, "Your password is wrong")
	h.earn(seller, "order-1", 600_00)
	seller.post(page, "password", password).want(t, 409).says(t, "Withdraw or settle it first")
	seller.get("/dashboard").want(t, 200)

	other := h.signUp("Meera Nair", auth.Seller)
	secret := h.enrol(other)
	other.get(page).want(t, 200).says(t, `name="code"`)
	other.post(page, "code", "000000").want(t, 422).says(t, "is wrong, was used already")
	other.post(page, "code", h.codeOf(secret)).leadsTo(t, "/login")
	other.get("/login").want(t, 200).says(t, "Your account is deleted.")
	other.get("/dashboard").want(t, 303)
	other.post("/login", "email", other.email, "password", password).want(t, 401)
}
