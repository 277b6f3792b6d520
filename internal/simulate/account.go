package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// member is a user who has an account of their own, and uses the API alone.
type member struct {
	front
	on              *instance
	id              string
	email, password string
	refreshToken    string
	role            auth.Role // "" for the default
	factor          app       // that they have, if any
}

// reply is what the API answers, a success or a failure.
type reply struct {
	status  int
	Code    string
	Details map[string]string
	Data    struct {
		ID, Secret, Token, RefreshToken, Proof string
		User                                   struct {
			ID, Email  string
			IsVerified bool
		}
		Sessions []struct {
			ID      string
			Current bool
		}
		Identities        []struct{ Provider string }
		Events            []struct{ Type ledger.Type }
		RecoveryCodes     []string
		RecoveryCodesLeft int
	}
}

// tell calls the API with fields, names and values in turn, and reads whatever it answers. A proof goes with the call if there is one.
func (f front) tell(method, path string, fields ...string) (got reply) {
	body := ""
	if len(fields) > 0 {
		object := map[string]string{}
		for pair := range slices.Chunk(fields, 2) {
			object[pair[0]] = pair[1]
		}
		text, err := json.Marshal(object)
		f.m.assert(answersAreKnown, err == nil, "", "write a body: %v", err)
		body = string(text)
	}
	w := f.ask(method, path, "", body)
	got.status = w.Code
	err := json.Unmarshal(w.Body.Bytes(), &got)
	f.m.assert(answersAreKnown, err == nil && w.Code < 500, "", "%s %s is answered with %d, and %s: %v", method, path, w.Code, w.Body, err)
	return got
}

// holds wants the answer to a call to have a status.
func (a *member) holds(what string, got reply, want int) {
	a.m.assert(accountsKept, got.status == want, a.id, "%s of %s is answered with %d %s %v; it is to be %d", what, a.email, got.status, got.Code, got.Details, want)
}

// checkAccount has a person register by API, confirm the address, sign in on several devices, end sessions, change the password, link and unlink a
// provider, guess at the password, add a second factor, and delete the account.
func (m *market) checkAccount() {
	m.playAccount("nia.rao@example.com", "", func(a *member) []func() {
		return []func(){a.endSessions, a.changePassword, a.refresh, a.unlinkProvider, a.guess, a.addFactor}
	})
}

// playAccount has a person register by API, confirm the address, and go on with some parts.
func (m *market) playAccount(email string, role auth.Role, parts func(*member) []func()) {
	on, s := m.anyInstance(), m.verified()
	if on == nil || s == nil {
		return
	}
	f, err := m.openFront(on, s)
	if !m.assert(answersAreKnown, err == nil, s.id, "open the API: %v", err) {
		return
	}
	f.token = ""
	a := &member{front: f, on: on, email: email, password: "a-long-password-7", role: role}
	for _, part := range append([]func(){a.register, a.confirm}, parts(a)...) {
		if m.violation == nil {
			part()
		}
	}
}

func (a *member) register() {
	fields := []string{"name", "Nia Rao", "email", a.email, "password", a.password}
	if a.role != "" {
		fields = append(fields, "role", string(a.role))
	}
	made := a.tell("POST", "/api/auth/register", fields...)
	a.holds("the registration", made, http.StatusCreated)
	a.id, a.token, a.refreshToken = made.Data.User.ID, made.Data.Token, made.Data.RefreshToken
	a.holds("another registration", a.tell("POST", "/api/auth/register", "name", "Nia Rao", "email", strings.ToUpper(a.email), "password", a.password), http.StatusBadRequest)
}

// confirm confirms the address by its code, which is good for five guesses, and by its link, which is good once.
func (a *member) confirm() {
	a.m.pass(a.m.now + 2*time.Minute) // a mail of a kind goes to an address once a minute
	a.holds("another mail", a.tell("POST", "/api/auth/verify-email/resend"), http.StatusOK)
	mailed, isTold := mailTo[mail.VerifyEmail](a.m, a.id)
	a.m.assert(sellersTold, isTold && mailed.Code != "" && mailed.Token != "", a.id, "%s is to confirm the address, and the mail about that is %+v", a.email, mailed)
	for range 5 {
		a.holds("a wrong code", a.tell("POST", "/api/auth/verify-email", "code", "x"+mailed.Code[1:]), http.StatusBadRequest)
	}
	a.holds("the right code after five wrong ones", a.tell("POST", "/api/auth/verify-email", "code", mailed.Code), http.StatusBadRequest)
	me := a.tell("GET", "/api/auth/me").Data.User
	a.m.assert(accountsKept, me.ID == a.id && me.Email == a.email && !me.IsVerified, a.id, "%s has confirmed nothing yet, and is %+v", a.email, me)
	a.holds("the link", a.tell("POST", "/api/auth/verify-email", "token", mailed.Token), http.StatusOK)
	a.holds("the link again", a.tell("POST", "/api/auth/verify-email", "token", mailed.Token), http.StatusBadRequest)
	a.m.assert(accountsKept, a.tell("GET", "/api/auth/me").Data.User.IsVerified, a.id, "%s has confirmed the address, and sees something else", a.email)
}

// signIn is another session of the same user.
func (a *member) signIn() *member {
	other := *a
	other.token = ""
	in := other.tell("POST", "/api/auth/login", "email", a.email, "password", a.password)
	a.holds("a sign-in", in, http.StatusOK)
	other.token, other.refreshToken = in.Data.Token, in.Data.RefreshToken
	return &other
}

// lives wants a session to be there, and isOver one to have ended: neither of its tokens is good.
func (a *member) lives(why string) {
	a.holds("a session that "+why, a.tell("GET", "/api/auth/me"), http.StatusOK)
}

func (a *member) isOver(why string) {
	a.holds("a session that "+why, a.tell("GET", "/api/auth/me"), http.StatusUnauthorized)
	a.holds("the refresh of a session that "+why, a.tell("POST", "/api/auth/refresh", "refreshToken", a.refreshToken), http.StatusUnauthorized)
	for _, body := range []string{`{"amount":` + rupees().FormatFixed(minimum) + `}`, `{"amount":0}`} {
		code := 0
		a.m.spawn(0, "seller "+a.id, func() { code = a.ask("POST", "/api/payouts/request", "", body).Code })
		a.m.pass(a.m.now + time.Minute)
		a.m.assert(accountsKept, a.m.violation != nil || code == http.StatusUnauthorized, a.id, "a request of %s for a payout, in a session that %s, is answered with %d; it is to be %d", body, why, code, http.StatusUnauthorized)
	}
}

func (a *member) endSessions() {
	phone, laptop, till := a.signIn(), a.signIn(), a.signIn()
	list := phone.tell("GET", "/api/auth/sessions").Data.Sessions
	current := ""
	for _, s := range list {
		if s.Current {
			current = s.ID
		}
	}
	a.m.assert(accountsKept, len(list) == 4 && current != "", a.id, "%s has four sessions, and is shown %+v", a.email, list)
	a.holds("the end of another user's session", a.tell("DELETE", "/api/auth/sessions/ses_0TMv3kQx8hPq2Zb7Lr4Wd9Wh"), http.StatusNotFound)
	a.holds("the end of a session", a.tell("DELETE", "/api/auth/sessions/"+current), http.StatusOK)
	phone.isOver("was ended from another one")
	laptop.lives("was not ended")
	a.holds("a sign-out", till.tell("POST", "/api/auth/logout"), http.StatusOK)
	till.isOver("has signed out")
	a.holds("the end of all others", a.tell("DELETE", "/api/auth/sessions"), http.StatusOK)
	laptop.isOver("was ended with all others")
	a.lives("ended all others")
}

func (a *member) changePassword() {
	phone := a.signIn()
	const next = "another-password-8"
	a.holds("a change of the password with a wrong one", a.tell("POST", "/api/auth/password/change", "currentPassword", "not-the-password", "newPassword", next), http.StatusBadRequest)
	phone.lives("saw a wrong password")
	a.holds("a change of the password", a.tell("POST", "/api/auth/password/change", "currentPassword", a.password, "newPassword", next), http.StatusOK)
	_, isTold := mailTo[mail.PasswordChanged](a.m, a.id)
	a.m.assert(sellersTold, isTold, a.id, "%s has changed the password, and there is no mail about that", a.email)
	phone.isOver("is of the former password")
	a.lives("changed the password")
	nobody := a.front
	nobody.token = ""
	a.holds("a sign-in with the former password", nobody.tell("POST", "/api/auth/login", "email", a.email, "password", a.password), http.StatusUnauthorized)
	a.password = next
}

// refresh wants each refresh token to give the next one, for a moment again, and one that comes back later to end the session.
func (a *member) refresh() {
	phone := a.signIn()
	first := phone.refreshToken
	next := phone.tell("POST", "/api/auth/refresh", "refreshToken", first)
	phone.token, phone.refreshToken = next.Data.Token, next.Data.RefreshToken
	phone.lives("was refreshed")
	a.holds("a refresh at once again", phone.tell("POST", "/api/auth/refresh", "refreshToken", first), http.StatusOK)
	link := phone.askForAddress("thief.of.nia@example.com")
	a.m.pass(a.m.now + refreshGrace + time.Second)
	a.holds("a refresh with an older token", phone.tell("POST", "/api/auth/refresh", "refreshToken", first), http.StatusUnauthorized)
	phone.isOver("was refreshed with an older token")
	a.holds("a link for the address that a copied session asked for", a.tell("POST", "/api/auth/email/confirm", "token", link), http.StatusBadRequest)
}

// unlinkProvider has a thief sign in through a provider whose account was the user's, and the user unlink it. The thief's session ends, and the provider
// is not linked again because it knows the address.
func (a *member) unlinkProvider() {
	who := auth.Identity{Issuer: simulatedIssuer, Subject: a.id, Email: a.email, EmailVerified: true, Name: "Nia Rao"}
	in, err := a.m.comeBack(a.on, who)
	told, isTold := mailTo[mail.IdentityChanged](a.m, a.id)
	a.m.assert(sellersTold, err == nil && in.User.ID == a.id && isTold && told.Added, a.id, "a provider was linked to %s (error %v), and the mail about that is %+v (there: %t)", a.email, err, told, isTold)
	thief := *a
	thief.token, thief.refreshToken = in.Token, in.RefreshToken
	listed := a.tell("GET", "/api/auth/identities").Data.Identities
	a.m.assert(accountsKept, len(listed) == 1 && listed[0].Provider == string(auth.ProviderA), a.id, "%s has linked a provider, and is shown %+v", a.email, listed)
	const path = "/api/auth/identities/provider-a"
	a.holds("a provider that is unlinked without the password", thief.tell("DELETE", path), http.StatusBadRequest)
	a.holds("a provider that is unlinked with a wrong password", a.tell("DELETE", path, "password", "not-the-password"), http.StatusBadRequest)
	thief.lives("began with a provider that is linked")
	a.holds("a provider that is unlinked", a.tell("DELETE", path, "password", a.password), http.StatusOK)
	told, isTold = mailTo[mail.IdentityChanged](a.m, a.id)
	a.m.assert(sellersTold, isTold && !told.Added, a.id, "%s has unlinked a provider, and the mail about that is %+v (there: %t)", a.email, told, isTold)
	thief.isOver("began with a provider that was unlinked")
	a.lives("unlinked a provider")
	_, err = a.m.comeBack(a.on, who)
	a.m.assert(takeoversEndAccess, errors.Is(err, auth.ErrIdentityUnlinked), a.id, "%s has unlinked a provider, and a sign-in through it was answered with %v", a.email, err)
	a.holds("a provider that is not linked", a.tell("DELETE", path, "password", a.password), http.StatusNotFound)
}

// guess has an attacker guess at the password. After twenty guesses none is looked at for a while, and the owner's session goes on.
func (a *member) guess() {
	a.m.pass(a.m.now + 24*time.Hour) // no guess of before counts
	nobody := a.front
	nobody.token = ""
	try := func(password string) int {
		return nobody.tell("POST", "/api/auth/login", "email", a.email, "password", password).status
	}
	for n := range 20 {
		status := try(fmt.Sprint("guess ", n))
		a.m.assert(accountsKept, status == http.StatusUnauthorized, a.id, "guess %d at the password of %s is answered with %d", n+1, a.email, status)
	}
	for _, password := range []string{"guess 21", a.password} {
		status := try(password)
		a.m.assert(accountsKept, status == http.StatusTooManyRequests, a.id, "after twenty guesses at the password of %s another attempt is answered with %d", a.email, status)
	}
	a.lives("is not guessed at")
	a.m.pass(a.m.now + 91*time.Second)
	a.m.assert(accountsKept, try(a.password) == http.StatusOK, a.id, "%s can't sign in a minute and a half after twenty guesses at the password", a.email)
	a.m.pass(a.m.now + 24*time.Hour)
	a.guessFromManyPlaces()
}

// guessFromManyPlaces has guesses come from more places than are looked at together.
func (a *member) guessFromManyPlaces() {
	for n := range 60 {
		place := auth.Device{Address: fmt.Sprintf("198.%d.100.7", n)}
		_, err := a.on.users.Login(a.m.ctx, auth.Credentials{Email: a.email, Password: fmt.Sprint("guess ", n), Device: place})
		a.m.assert(accountsKept, err != nil && errors.Is(err, auth.ErrCredentials) == (n < 50), a.id, "guess %d at the password of %s, each from another place, is answered with %v", n+1, a.email, err)
	}
	a.m.pass(a.m.now + 24*time.Hour)
}

// addFactor adds an authenticator app. From then on a password is not enough, each code is good once, and so is each recovery code.
func (a *member) addFactor() {
	a.token = a.signIn().token // it has to be fresh
	added, recovery := a.addApp()
	code := func() string { return a.code(added) }
	used := code() // with which it was confirmed
	if !a.m.assert(accountsKept, len(recovery) == 10, a.id, "%s has a second factor, and %d recovery codes", a.email, len(recovery)) {
		return
	}
	nobody := a.front
	nobody.token = ""
	begin := func() string {
		first := nobody.tell("POST", "/api/auth/login", "email", a.email, "password", a.password)
		a.m.assert(accountsKept, first.status == http.StatusUnauthorized && first.Code == "second_factor_required" && first.Data.Token == "", a.id, "%s has a second factor, and a password is answered with %d %s", a.email, first.status, first.Code)
		return first.Details["challenge"]
	}
	finish := func(what, challenge, field, value string, want int) (got reply) {
		got = nobody.tell("POST", "/api/auth/login/factor", "challenge", challenge, field, value)
		a.holds(what, got, want)
		return got
	}
	finish("a sign-in with a code that was used", begin(), "code", used, http.StatusUnauthorized)
	a.m.pass(a.m.now + time.Minute)
	used = code()
	challenge := begin()
	in := finish("a sign-in with a code", challenge, "code", used, http.StatusOK)
	finish("the same second step again", challenge, "code", used, http.StatusUnauthorized)
	finish("a sign-in with the same code", begin(), "code", used, http.StatusUnauthorized)
	finish("a sign-in with a recovery code", begin(), "recoveryCode", recovery[0], http.StatusOK)
	finish("a sign-in with the same recovery code", begin(), "recoveryCode", recovery[0], http.StatusUnauthorized)
	late := begin()
	a.m.pass(a.m.now + 6*time.Minute)
	finish("a second step after six minutes", late, "code", code(), http.StatusUnauthorized)
	a.token, a.refreshToken = in.Data.Token, in.Data.RefreshToken
	a.m.assert(accountsKept, a.tell("GET", "/api/auth/factors").Data.RecoveryCodesLeft == 9, a.id, "%s has used one of ten recovery codes, and sees something else", a.email)
	a.m.pass(a.m.now + time.Minute)
	a.holds("a factor that is removed without a proof", a.tell("DELETE", "/api/auth/factors/"+added.id), http.StatusUnauthorized)
	a.holds("a password that is changed without a proof", a.tell("POST", "/api/auth/password/change", "currentPassword", a.password, "newPassword", "yet-another-one-9"), http.StatusUnauthorized)
	a.leave(code)
}

// leave deletes the account, for which the password alone is not enough any more. The proof is good once.
func (a *member) leave(code func() string) {
	a.holds("a deletion by the password alone", a.tell("DELETE", "/api/auth/me", "password", a.password), http.StatusUnauthorized)
	proof := func(action string) string {
		a.m.pass(a.m.now + time.Minute)
		given := a.tell("POST", "/api/auth/step-up", "action", action, "code", code())
		a.holds("a proof", given, http.StatusOK)
		return given.Data.Proof
	}
	other := *a
	other.proof = proof("factor.add")
	a.holds("a deletion with the proof for something else", other.tell("DELETE", "/api/auth/me"), http.StatusUnauthorized)
	other.proof = proof("account.delete")
	a.m.pass(a.m.now + 6*time.Minute)
	a.holds("a deletion with a proof of six minutes ago", other.tell("DELETE", "/api/auth/me"), http.StatusUnauthorized)
	a.lives("deleted nothing")
	other.proof = proof("account.delete")
	a.holds("a deletion", other.tell("DELETE", "/api/auth/me"), http.StatusOK)
	a.isGone(a.email)
	a.isOver("was of an account that is deleted")
	other.token, other.proof = "", ""
	a.holds("a sign-in to an account that is deleted", other.tell("POST", "/api/auth/login", "email", a.email, "password", a.password), http.StatusUnauthorized)
}
