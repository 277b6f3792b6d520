package dashboard_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/dashboard"
	"bursar/internal/mail"
)

// mailedTo is the newest mail of one kind to an address, of so many.
func mailedTo[D mail.Data](h *fixture, address string, of int) D {
	h.t.Helper()
	var all []D
	for _, d := range h.mailbox.To(address) {
		if m, ok := d.(D); ok {
			all = append(all, m)
		}
	}
	if len(all) != of {
		h.t.Fatalf("%d mails %T to %s, want %d", len(all), *new(D), address, of)
	}
	return all[of-1]
}

// answerMails does what the job does.
func (h *fixture) answerMails() {
	h.t.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = h.auth.AnswerMailRequest(h.t.Context())
		must(h.t, err)
	}
}

const ashas = "asha@example.com"

// registered is a browser of which asha registered.
func (h *fixture) registered(password string) *browser {
	h.t.Helper()
	b := h.browse()
	b.header.Set("User-Agent", "Firefox <script>")
	b.post("/register", "name", "Asha Rao", "email", ashas, "password", password, "role", "seller").leadsTo(h.t, "/dashboard")
	return b
}

// wantPrivate fails if the answer lets a token out.
func wantPrivate(t *testing.T, a answer, token string) {
	t.Helper()
	if got := a.header.Get("Referrer-Policy"); got != "no-referrer" {
		t.Errorf("Referrer-Policy: %q", got)
	}
	if strings.Contains(a.header.Get("Location"), token) || strings.Contains(strings.Join(a.header.Values("Set-Cookie"), " "), token) {
		t.Errorf("the answer's header has the token: %v", a.header)
	}
}

func TestVerifyEmailPage(t *testing.T) {
	h := openFixture(t)
	b := h.registered(password)
	b.get("/dashboard").want(t, 200).says(t, "We mailed you a link to confirm your e-mail address")
	m := mailedTo[mail.VerifyEmail](h, ashas, 1)
	scanner := h.browse()
	for range 2 { // opening it uses nothing up
		page := scanner.get(m.Path()).want(t, 200)
		page.says(t, "Asha Rao", ashas, "127.0.0.1", "Firefox &lt;script&gt;", "Confirm e-mail address", `action="/verify-email"`, m.Token).saysNot(t, "registration with this address before")
		checkPage(t, "verify", page)
		wantPrivate(t, page, m.Token)
	}
	b.get("/dashboard/profile").want(t, 200).says(t, "Confirm your e-mail address", "Code from the mail")
	done := b.post("/verify-email", "token", m.Token).leadsTo(t, "/dashboard")
	wantPrivate(t, done, m.Token)
	b.get("/dashboard").want(t, 200).says(t, "Your e-mail address is confirmed.")
	b.get("/dashboard/profile").want(t, 200).says(t, "Confirmed").saysNot(t, "Code from the mail")
	for _, path := range []string{m.Path(), "/verify-email", "/verify-email?token=wrong"} {
		page := b.get(path).want(t, 400).says(t, "This link is invalid, was used already, or is too old.").saysNot(t, "<button class=\"primary\"")
		checkPage(t, path, page)
	}
	b.post("/verify-email", "token", m.Token).want(t, 400).says(t, "This link is invalid")
	b.postFrom("https://evil.example", "/verify-email", "token", m.Token).want(t, 403)
	if strings.Contains(h.log.String(), m.Token) {
		t.Error("the log has the token")
	}
}

func TestVerifyEmailPage_AnotherRegistration(t *testing.T) {
	h := openFixture(t)
	squatter := h.registered(password)
	owner := h.browse()
	owner.post("/register", "name", "Asha R.", "email", ashas, "password", "another horse", "role", "buyer").want(t, 400).says(t, "already registered")
	m := mailedTo[mail.RegisteredAgain](h, ashas, 1)
	page := owner.get(m.Path()).want(t, 200)
	page.says(t, "Asha R.", "There was a registration with this address before")
	checkPage(t, "verify", page)
	owner.post("/verify-email", "token", m.Token).leadsTo(t, "/login")
	owner.get("/login").says(t, "Your e-mail address is confirmed.")
	squatter.get("/dashboard").leadsTo(t, "/login")
	owner.post("/login", "email", ashas, "password", "another horse").leadsTo(t, "/dashboard")
}

func TestEnterCode(t *testing.T) {
	h := openFixture(t)
	b := h.registered(password)
	first := mailedTo[mail.VerifyEmail](h, ashas, 1)
	wrong := b.post("/dashboard/profile/verify-email", "code", "00000000").want(t, 400)
	wrong.says(t, `id="field-code-error"`, "This code is wrong")
	checkPage(t, "profile", wrong)
	b.post("/dashboard/profile/verify-email/resend").leadsTo(t, "/dashboard/profile")
	b.get("/dashboard/profile").says(t, "A new link and code are on their way to you.")
	m := mailedTo[mail.VerifyEmail](h, ashas, 2)
	b.post("/dashboard/profile/verify-email", "code", first.Code).want(t, 400)
	b.post("/dashboard/profile/verify-email", "code", " "+m.Code+" ").leadsTo(t, "/dashboard/profile")
	b.get("/dashboard/profile").want(t, 200).says(t, "Your e-mail address is confirmed.").saysNot(t, "Code from the mail")
}

func TestForgotPasswordPages(t *testing.T) {
	h := openFixture(t)
	signedIn := h.registered(password)
	b := h.browse()
	b.get("/login").want(t, 200).says(t, `href="/forgot-password"`)
	checkPage(t, "forgot", b.get("/forgot-password").want(t, 200).says(t, `autocomplete="username"`))
	var answers []answer
	for _, email := range []string{ashas, "nobody@example.com", "no address", ""} {
		answers = append(answers, b.post("/forgot-password", "email", email).leadsTo(t, "/login"))
		b.get("/login").want(t, 200).says(t, "If there is an account with this e-mail address, a link is on its way to it.")
	}
	for _, a := range answers {
		if a.body != answers[0].body || len(a.header) != len(answers[0].header) {
			t.Errorf("the answers differ: %v, %v", a, answers[0])
		}
	}
	h.answerMails()
	m := mailedTo[mail.ResetPassword](h, ashas, 1)
	for range 2 {
		page := b.get(m.Path()).want(t, 200).says(t, `action="/reset-password"`, `autocomplete="new-password"`)
		checkPage(t, "reset", page)
		wantPrivate(t, page, m.Token)
	}
	wrong := b.post("/reset-password", "token", m.Token, "password", "short").want(t, 422)
	wrong.says(t, `id="field-password-error"`, m.Token)
	checkPage(t, "reset", wrong)
	done := b.post("/reset-password", "token", m.Token, "password", "another horse").leadsTo(t, "/login")
	wantPrivate(t, done, m.Token)
	b.get("/login").says(t, "Your password is set. Sign in with it.")
	signedIn.get("/dashboard").leadsTo(t, "/login")
	b.post("/login", "email", ashas, "password", password).want(t, 401)
	b.post("/login", "email", ashas, "password", "another horse").leadsTo(t, "/dashboard")
	b.get(m.Path()).want(t, 400).says(t, "This link is invalid").saysNot(t, "New password")
	b.post("/reset-password", "token", m.Token, "password", "a third horse").want(t, 400).says(t, "This link is invalid")
	if strings.Contains(h.log.String(), m.Token) {
		t.Error("the log has the token")
	}
}

func TestResetPasswordPage_Expired(t *testing.T) {
	h := openFixture(t)
	b := h.registered(password)
	b.post("/forgot-password", "email", ashas)
	h.answerMails()
	m := mailedTo[mail.ResetPassword](h, ashas, 1)
	h.clock.advance(30 * time.Minute)
	b.post("/reset-password", "token", m.Token, "password", "another horse").want(t, 400).says(t, "This link is invalid")
	b.post("/login", "email", ashas, "password", password).leadsTo(t, "/dashboard")
}

// unverifiable is a service that asks for verified addresses.
type unverifiable struct{ dashboard.Auth }

func (unverifiable) CheckMayRequestPayout(p auth.Principal) error {
	if p.Verified {
		return nil
	}
	return auth.ErrEmailNotVerified
}

func TestReviewPage_UnverifiedEmail_Refused(t *testing.T) {
	h := openFixture(t, func(o *dashboard.Options) { o.Auth = unverifiable{o.Auth} })
	seller := h.signUp("Asha Rao", auth.Seller)
	h.earn(seller, "order-1", 100000)
	h.withBank(seller, "7812")
	review := seller.then(seller.review("amount", "600")).want(t, http.StatusForbidden)
	review.says(t, "Confirm your e-mail address first.")
	checkPage(t, "review", review)
	if made := h.payoutsOf(seller); len(made) > 0 {
		t.Errorf("payouts %+v", made)
	}
}

func TestRemoveFactorsPage(t *testing.T) {
	h := openFixture(t)
	b := h.registered(password)
	h.enrol(person{browser: b})
	m := mailedTo[mail.FirstFactor](h, ashas, 1)
	owner := h.browse()
	for range 2 { // opening it uses nothing up
		page := owner.get(m.Path()).want(t, 200).says(t, "Use this if you did not add it.", `action="/remove-factors"`, m.Token)
		checkPage(t, "remove factors", page)
		wantPrivate(t, page, m.Token)
	}
	owner.postFrom("https://evil.example", "/remove-factors", "token", m.Token).want(t, 403)
	wantPrivate(t, owner.post("/remove-factors", "token", m.Token).leadsTo(t, "/forgot-password"), m.Token)
	owner.get("/forgot-password").want(t, 200).says(t, "Your account has no second factor now, and all sessions ended.")
	b.get("/dashboard").leadsTo(t, "/login")
	owner.post("/login", "email", ashas, "password", password).leadsTo(t, "/dashboard")
	for _, path := range []string{m.Path(), "/remove-factors", "/remove-factors?token=wrong"} {
		checkPage(t, path, owner.get(path).want(t, 400).says(t, "This link is invalid, was used already, or is too old."))
	}
	owner.post("/remove-factors", "token", m.Token).want(t, 400).says(t, "This link is invalid")
}
