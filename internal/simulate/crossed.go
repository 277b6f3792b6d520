package simulate

import (
	"errors"
	"net/http"
	"time"

	"github.com/pquerna/otp/totp"

	"bursar/internal/auth"
	"bursar/internal/mail"
)

// app is an authenticator app of a member.
type app struct {
	id     string
	secret string
}

// checkCrossedChanges has a person change the account in pairs, in which the first change leaves something that the second has to end: what was mailed
// before, recovery codes, and a way in through a provider.
func (m *market) checkCrossedChanges() {
	m.playAccount("dev.rao@example.com", "", func(a *member) []func() {
		return []func(){a.endWhoChangesAddress, a.addWhileChangingAddress, a.proveByPasswordBefore, a.undoAfterFactor, a.undoSecondMove, a.moveUnconfirmed, a.leaveWithProvider}
	})
}

// askForAddress asks for another address, and returns what is mailed to it.
func (a *member) askForAddress(email string) string {
	a.m.pass(a.m.now + 2*time.Minute) // a mail of a kind goes to an address once a minute
	a.holds("a change of the address", a.tell("POST", "/api/auth/email/change", "email", email), http.StatusOK)
	mailed, isTold := mailTo[mail.ConfirmEmail](a.m, a.id)
	a.m.assert(sellersTold, isTold && mailed.Token != "", a.id, "%s asks for another address, and the mail to it is %+v", a.email, mailed)
	return mailed.Token
}

// endWhoChangesAddress ends a session that has asked for another address. The link that was mailed for it is of no use then.
func (a *member) endWhoChangesAddress() {
	thief := a.signIn()
	link := thief.askForAddress("thief.of.dev@example.com")
	for _, session := range thief.tell("GET", "/api/auth/sessions").Data.Sessions {
		if session.Current {
			a.holds("the end of a session", a.tell("DELETE", "/api/auth/sessions/"+session.ID), http.StatusOK)
		}
	}
	a.holds("a link for the address that an ended session asked for", a.tell("POST", "/api/auth/email/confirm", "token", link), http.StatusBadRequest)
}

// addApp adds an authenticator app, and returns the recovery codes that come with the first one.
func (a *member) addApp() (added app, recovery []string) {
	added = a.beginApp()
	return added, a.confirmApp(added)
}

func (a *member) beginApp() app {
	begun := a.tell("POST", "/api/auth/factors", "type", "totp")
	a.holds("another factor", begun, http.StatusCreated)
	return app{begun.Data.ID, begun.Data.Secret}
}

// confirmApp confirms an app, and returns the recovery codes that come with the first one.
func (a *member) confirmApp(added app) []string {
	confirmed := a.tell("POST", "/api/auth/factors/"+added.id+"/confirm", "code", a.code(added))
	a.holds("the confirmation of a factor", confirmed, http.StatusOK)
	return confirmed.Data.RecoveryCodes
}

// code is what an app shows now. It is one that was not used yet, once a minute has passed.
func (a *member) code(of app) string {
	code, err := totp.GenerateCode(of.secret, a.on.now())
	a.m.assert(answersAreKnown, err == nil, a.id, "a code of an app: %v", err)
	return code
}

// prove has an app prove something, and adds the proof to what follows.
func (a *member) prove(of app, action, factor string) {
	a.m.pass(a.m.now + time.Minute)
	fields := []string{"action", action, "code", a.code(of)}
	if factor != "" {
		fields = append(fields, "factorId", factor)
	}
	given := a.tell("POST", "/api/auth/step-up", fields...)
	a.holds("a proof", given, http.StatusOK)
	a.proof = given.Data.Proof
}

// addWhileChangingAddress adds the first factor while another address was asked for. A change needs a proof from then on. Then the factor is removed.
func (a *member) addWhileChangingAddress() {
	a.token = a.signIn().token // it has to be fresh
	link := a.askForAddress("other.dev@example.com")
	first, recovery := a.addApp()
	a.m.assert(accountsKept, len(recovery) == 10, a.id, "%s has a second factor, and %d recovery codes", a.email, len(recovery))
	a.holds("a link for the address that was asked for before the first factor", a.tell("POST", "/api/auth/email/confirm", "token", link), http.StatusBadRequest)
	a.removeFactors(first)
}

// proveByPasswordBefore proves with the password that a factor may be added, and adds one without the proof, as a fresh sign-in may. The proof is
// of no use then: a thief who knows the password may have made it.
func (a *member) proveByPasswordBefore() {
	a.token = a.signIn().token
	given := a.tell("POST", "/api/auth/step-up", "action", "factor.add", "password", a.password)
	a.holds("a proof by the password", given, http.StatusOK)
	first, _ := a.addApp()
	a.proof = given.Data.Proof
	a.holds("another factor, proven by the password alone", a.tell("POST", "/api/auth/factors", "type", "totp"), http.StatusUnauthorized)
	a.proof = ""
	a.removeFactors(first)
}

// undoSecondMove has a thief move the account twice and undo the second move. That takes nothing from the owner, who undoes the first one.
func (a *member) undoSecondMove() {
	former, undo := a.email, []string{}
	for _, email := range []string{"first.thief@example.com", "second.thief@example.com"} {
		link := a.askForAddress(email)
		a.holds("another address", a.tell("POST", "/api/auth/email/confirm", "token", link), http.StatusOK)
		changed, isTold := mailTo[mail.EmailChanged](a.m, "")
		a.m.assert(sellersTold, isTold && changed.Now == email && changed.Token != "", a.id, "the address of %s is %s now, and the mail about that is %+v", former, email, changed)
		undo = append(undo, changed.Token)
	}
	var link mail.ResetPassword
	for _, token := range []string{undo[1], undo[0]} {
		err := a.on.users.UndoEmailChange(a.m.ctx, token, auth.Device{})
		a.m.assert(takeoversEndAccess, err == nil, a.id, "%s was moved twice, and the second change and then the first are undone: %v", former, err)
		link, _ = mailTo[mail.ResetPassword](a.m, a.id)
	}
	a.returns(link)
}

// returns has the owner sign in after an undone change of the address. The password, which a thief may know, is not good any more, and the link that was mailed sets it again.
func (a *member) returns(link mail.ResetPassword) {
	in := a.tell("POST", "/api/auth/login", "email", a.email, "password", a.password)
	a.holds("the password of before an undone change of the address", in, http.StatusUnauthorized)
	err := a.on.users.SetForgottenPassword(a.m.ctx, link.Token, a.password, auth.Device{})
	a.m.assert(takeoversEndAccess, err == nil, a.id, "%s has the address again, and can't set a password by the link that was mailed: %v", a.email, err)
	a.token = a.signIn().token // by the password alone
}

// moveUnconfirmed has a person who never confirmed an address change it. The former one may be another person's, so the mail to it has neither the
// new address nor a way into the account.
func (a *member) moveUnconfirmed() {
	other := &member{front: a.front, on: a.on, email: "kiran.rao@example.com", password: a.password}
	other.token, other.proof = "", ""
	other.register()
	link := other.askForAddress("moved.kiran@example.com")
	other.holds("another address", other.tell("POST", "/api/auth/email/confirm", "token", link), http.StatusOK)
	told, isTold := mailTo[mail.EmailChanged](a.m, "")
	a.m.assert(sellersTold, isTold && told.Now == "" && told.Token == "", other.id, "%s never confirmed the address and has another one, and the mail to the former one is %+v (there: %t)", other.email, told, isTold)
}

// removeFactors adds another factor and removes both. The recovery codes go with the last one, and the password is enough again.
func (a *member) removeFactors(first app) {
	a.prove(first, "factor.add", "")
	second, recovery := a.addApp()
	a.m.assert(accountsKept, len(recovery) == 0, a.id, "%s has another factor, and %d more recovery codes", a.email, len(recovery))
	for i, gone := range []app{first, second} {
		left := 10
		if i == 1 {
			left = 0
		}
		a.prove(second, "factor.remove", gone.id)
		a.holds("a factor that is removed", a.tell("DELETE", "/api/auth/factors/"+gone.id), http.StatusOK)
		a.proof = ""
		told, isTold := mailTo[mail.FactorChanged](a.m, a.id)
		a.m.assert(sellersTold, isTold && !told.Added && !told.All, a.id, "%s has removed a factor, and the mail about that is %+v (there: %t)", a.email, told, isTold)
		factors := a.tell("GET", "/api/auth/factors").Data
		a.m.assert(accountsKept, factors.RecoveryCodesLeft == left, a.id, "%s has removed %d of two factors, and has %d recovery codes", a.email, i+1, factors.RecoveryCodesLeft)
	}
	a.token = a.signIn().token
}

// undoAfterFactor has a thief change the address and add a factor, begun before that, whose mail goes to the thief. Its owner undoes the
// change. The factor goes with it, and the link that was mailed about the factor.
func (a *member) undoAfterFactor() {
	former := a.email
	begun := a.beginApp()
	another := a.askForAddress("another.dev@example.com")
	link := a.askForAddress("taken.dev@example.com")
	a.holds("a link to the address that was asked for before", a.tell("POST", "/api/auth/email/confirm", "token", another), http.StatusBadRequest)
	a.holds("another address", a.tell("POST", "/api/auth/email/confirm", "token", link), http.StatusOK)
	changed, isTold := mailTo[mail.EmailChanged](a.m, "")
	a.m.assert(sellersTold, isTold && changed.Token != "", a.id, "the address of %s was changed, and the mail about that is %+v", former, changed)
	a.email = "taken.dev@example.com"
	a.confirmApp(begun)
	about, isTold := mailTo[mail.FirstFactor](a.m, a.id)
	a.m.assert(sellersTold, isTold && about.Token != "", a.id, "%s has added the first factor, and the mail about that is %+v", a.email, about)
	err := a.on.users.UndoEmailChange(a.m.ctx, changed.Token, auth.Device{})
	again, _ := mailTo[mail.ResetPassword](a.m, a.id)
	a.m.assert(answersAreKnown, err == nil, a.id, "%s can't undo that the address was changed: %v", former, err)
	err = a.on.users.UndoFactors(a.m.ctx, about.Token, auth.Device{})
	a.m.assert(takeoversEndAccess, errors.Is(err, auth.ErrMailToken), a.id, "the change of the address of %s was undone, and a link about a factor that was mailed to the other one is answered with %v", former, err)
	a.email = former
	a.returns(again)
}

// leaveWithProvider deletes an account that has a profile and a way in through a provider. Nothing of both is left, and who comes back gets another account.
func (a *member) leaveWithProvider() {
	who := auth.Identity{Issuer: simulatedIssuer, Subject: a.id, Email: a.email, EmailVerified: true, Name: "Dev Rao"}
	in, err := a.m.comeBack(a.on, who)
	a.m.assert(accountsKept, err == nil && in.User.ID == a.id, a.id, "%s comes through a provider that knows the address, and gets the account %q, and %v", a.email, in.User.ID, err)
	a.holds("a profile", a.tell("PATCH", "/api/auth/me", "bio", "I sell rugs.", "website", "https://rugs.example", "avatar", "https://rugs.example/dev.png"), http.StatusOK)
	a.holds("a deletion", a.tell("DELETE", "/api/auth/me", "password", a.password), http.StatusOK)
	left, err := a.on.users.FindUser(a.m.ctx, a.id)
	a.m.assert(accountsKept, err == nil && left.Profile == (auth.Profile{}) && left.Name != "Nia Rao" && left.Email != a.email, a.id,
		"%s has deleted the account, of which is left %s, %s, %+v, %v", a.email, left.Name, left.Email, left.Profile, err)
	again, err := a.m.comeBack(a.on, who)
	a.m.assert(accountsKept, err == nil && again.User.ID != a.id, a.id, "%s has deleted the account, comes back through a provider, and gets the account %q, and %v", a.email, again.User.ID, err)
}
