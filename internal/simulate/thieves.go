package simulate

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"bursar/internal/auth"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/payout"
)

// checkThieves has a thief with a session of a seller try what needs a proof, and wants the seller to hear of it, and money to stay after each change
// of how the seller signs in.
func (m *market) checkThieves() {
	m.playAccount("tara.sen@example.com", auth.Seller, func(a *member) []func() {
		return []func(){a.comeByProvider, a.refuseAccounts, a.proveElsewhere, a.undoFactors, a.leaveMoved}
	})
}

// comeByProvider signs in through a provider in a browser that has a session. That one ends.
func (a *member) comeByProvider() {
	before := *a
	in, err := a.m.comeBack(a.on, auth.Identity{Issuer: simulatedIssuer, Subject: a.id, Email: a.email, EmailVerified: true, Name: "Tara Sen"}, a.token)
	a.m.assert(accountsKept, err == nil && in.User.ID == a.id, a.id, "%s comes through a provider that knows the address, and gets the account %q, and %v", a.email, in.User.ID, err)
	a.token, a.refreshToken = in.Token, in.RefreshToken
	before.isOver("the browser had before another sign-in")
	a.lives("began in a browser that had another one")
}

// refuseAccounts has the thief register a bank account with no proof, and with that of another account. Both are refused, and the seller hears of each.
func (a *member) refuseAccounts() {
	a.token = a.signIn().token // it has to be fresh
	first, _ := a.addApp()
	const number, others, branch = "500000001234", "500000005678", "SBIN0000053"
	a.m.numbers[number], a.m.numbers[others] = true, true
	a.m.pass(a.m.now + time.Minute)
	given := a.tell("POST", "/api/auth/step-up", "action", string(auth.ActionReplaceAccount), "accountNumber", others, "ifsc", branch, "code", a.code(first))
	a.holds("a proof for a bank account", given, http.StatusOK)
	thief := *a
	for i, proof := range []string{"", given.Data.Proof} {
		thief.proof = proof
		a.m.spawn(0, "thief", func() {
			a.holds("a bank account that nobody proved", thief.tell("PUT", "/api/bank-account", "accountHolder", "Tara Sen", "accountNumber", number, "ifsc", branch), http.StatusUnauthorized)
			told, isTold := mailTo[mail.BankAccountRefused](a.m, a.id)
			a.m.assert(sellersTold, isTold && told.Now == number[len(number)-4:], a.id, "a bank account of %s was refused for want of a proof, and the mail about that is %+v (there: %t)", a.email, told, isTold)
		})
		a.m.pass(a.m.now + time.Minute)
		a.m.assert(sellersTold, a.m.violation != nil || a.countEvents(ledger.AccountProofMissing) == i+1, a.id,
			"%d bank accounts of %s were refused for want of a proof, and %d are in the security events", i+1, a.email, a.countEvents(ledger.AccountProofMissing))
	}
	a.factor = first
}

// countEvents is how many security events of a type a user is shown.
func (a *member) countEvents(of ledger.Type) (n int) {
	for _, e := range a.tell("GET", "/api/auth/security-events?limit=100").Data.Events {
		n += btoi(e.Type == of)
	}
	return n
}

// signInByCode is another session of a user who has an app.
func (a *member) signInByCode() *member {
	a.m.pass(a.m.now + time.Minute) // the code of before is used up
	other := *a
	other.token = ""
	first := other.tell("POST", "/api/auth/login", "email", a.email, "password", a.password)
	a.holds("the first step of a sign-in", first, http.StatusUnauthorized)
	in := other.tell("POST", "/api/auth/login/factor", "challenge", first.Details["challenge"], "code", a.code(a.factor))
	a.holds("the second step of a sign-in", in, http.StatusOK)
	other.token, other.refreshToken = in.Data.Token, in.Data.RefreshToken
	return &other
}

// proveElsewhere has the thief use proofs that the seller made in another session. They are good in that one alone, where the last one removes the app.
func (a *member) proveElsewhere() {
	thief, own := *a, a.signInByCode()
	const next = "another-password-8"
	app := "/api/auth/factors/" + a.factor.id
	for _, proven := range []struct {
		action auth.Action
		factor string
		try    func(of *member) reply
	}{
		{auth.ActionDeleteAccount, "", func(of *member) reply { return of.tell("DELETE", "/api/auth/me") }},
		{auth.ActionChangeEmail, "", func(of *member) reply {
			return of.tell("POST", "/api/auth/email/change", "email", "thief.of.tara@example.com")
		}},
		{auth.ActionChangePassword, "", func(of *member) reply {
			return of.tell("POST", "/api/auth/password/change", "currentPassword", a.password, "newPassword", next)
		}},
		{auth.ActionRemoveFactor, a.factor.id, func(of *member) reply { return of.tell("DELETE", app) }},
	} {
		own.proveFor(a.factor, proven.action, proven.factor)
		thief.proof = own.proof
		got := proven.try(&thief)
		a.m.assert(accountsKept, got.Code == "step_up_required", a.id, "%s by %s with the proof of another session is answered with %d %s", proven.action, a.email, got.status, got.Code)
	}
	a.holds("a factor that is removed with the proof of the session", own.tell("DELETE", app), http.StatusOK)
	told, isTold := mailTo[mail.FactorChanged](a.m, a.id)
	a.isOnHold("a second factor was removed", told.HoldUntil, isTold && !told.Added)
	a.token, a.refreshToken = own.token, own.refreshToken
}

// proveFor has an app prove an action.
func (a *member) proveFor(of app, action auth.Action, factor string) {
	a.proof = ""
	if action != auth.ActionChangeEmail {
		a.prove(of, string(action), factor)
		return
	}
	a.m.pass(a.m.now + time.Minute)
	given := a.tell("POST", "/api/auth/step-up", "action", string(action), "email", "thief.of.tara@example.com", "code", a.code(of))
	a.holds("a proof", given, http.StatusOK)
	a.proof = given.Data.Proof
}

// isOnHold wants the payouts of a seller to be on hold for a whole cool-down from now on, and the mail about it to say so.
func (a *member) isOnHold(why string, told time.Time, isTold bool) {
	e, err := a.on.payouts.Explain(a.m.ctx, a.id)
	until := a.on.now().Add(coolDown)
	isBlocked := slices.ContainsFunc(e.Blockers, func(b payout.Blocker) bool { return b.Code == payout.BlockedOnHold })
	a.m.assert(holdsKept, err == nil && isBlocked && time.UnixMicro(e.HoldUntil).Sub(until).Abs() < time.Second, a.id,
		"%s: %s, and payouts are on hold until %d (blocked: %t, error %v), and should be until %s", a.email, why, e.HoldUntil, isBlocked, err, until)
	a.m.assert(sellersTold, isTold && microsOf(told) == e.HoldUntil, a.id, "%s: %s, payouts are on hold until %d, and the mail says %s (there: %t)", a.email, why, e.HoldUntil, told, isTold)
}

// undoFactors has the thief add an app, when the hold is over, and the seller remove it by the mailed link. Payouts are on hold again.
func (a *member) undoFactors() {
	a.m.pass(a.m.now + coolDown + time.Hour)
	a.proof = ""
	a.token = a.signIn().token
	a.addApp()
	about, isTold := mailTo[mail.FirstFactor](a.m, a.id)
	a.m.assert(sellersTold, isTold && about.Token != "", a.id, "%s has added the first factor, and the mail about that is %+v", a.email, about)
	err := a.on.users.UndoFactors(a.m.ctx, about.Token, auth.Device{})
	a.m.assert(answersAreKnown, err == nil, a.id, "%s can't remove a factor by the link that was mailed: %v", a.email, err)
	told, isTold := mailTo[mail.FactorChanged](a.m, a.id)
	a.isOnHold("all second factors were removed by a link", told.HoldUntil, isTold && told.All)
	a.isOver("was there when factors were removed by a link")
	a.token = a.signIn().token
}

// leaveMoved has the thief move the account to another address, and then delete it. Both addresses hear of that.
func (a *member) leaveMoved() {
	former, moved := a.email, "moved.tara@example.com"
	link := a.askForAddress(moved)
	a.holds("another address", a.tell("POST", "/api/auth/email/confirm", "token", link), http.StatusOK)
	changed, isTold := mailTo[mail.EmailChanged](a.m, "")
	a.isOnHold("the address was changed", changed.HoldUntil, isTold)
	a.m.pass(a.m.now + time.Hour)
	a.email = moved
	a.token = a.signIn().token
	a.holds("a deletion", a.tell("DELETE", "/api/auth/me", "password", a.password), http.StatusOK)
	a.isGone(moved, former)
	err := a.on.users.UndoEmailChange(a.m.ctx, changed.Token, auth.Device{})
	a.m.assert(accountsKept, errors.Is(err, auth.ErrMailToken), a.id, "%s was deleted, and the change of its address was undone: %v", a.email, err)
}

// isGone wants some addresses, and no other, to hear that the account was deleted.
func (a *member) isGone(addresses ...string) {
	var told []string
	for _, of := range a.m.mailed {
		if _, is := of.Data.(mail.AccountDeleted); is {
			told = append(told, of.To)
		}
	}
	a.m.assert(sellersTold, slices.Equal(told, addresses), a.id, "%s has deleted the account, and the mails about that went to %v, and should go to %v", a.email, told, addresses)
}
