package dashboard_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/dashboard"
	"bursar/internal/search"
	"bursar/internal/store"
	"bursar/internal/telemetry"
	"bursar/internal/web"
)

func TestRegisterPage_ThenLogoutAndLogin(t *testing.T) {
	h := openFixture(t)
	b := h.browse()
	b.get("/register").want(t, 200).says(t, `autocomplete="new-password"`, `value="seller" id="field-role" checked`)
	in := b.post("/register", "name", "Asha Rao", "email", "asha@example.com", "password", password, "role", "seller").leadsTo(t, "/dashboard")
	cookie := in.header.Values("Set-Cookie")[0]
	for _, part := range []string{"bursar=", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=604800"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie %s has no %s", strings.Split(cookie, "=")[0], part)
		}
	}
	b.get("/dashboard").want(t, 200).says(t, "Your account is ready", "Asha Rao")
	b.get("/dashboard").want(t, 200).saysNot(t, "Your account is ready")

	before := b.client.Jar.Cookies(mustURL(t, h.server.URL))
	b.post("/logout").leadsTo(t, "/login")
	b.get("/login").want(t, 200).says(t, "You are signed out.")
	b.get("/dashboard").leadsTo(t, "/login")
	b.client.Jar.SetCookies(mustURL(t, h.server.URL), before) // the old cookie is worth nothing
	b.get("/dashboard").leadsTo(t, "/login")
	b.post("/logout").leadsTo(t, "/login")

	b.post("/login?redirect=%2Fdashboard%2Fsales", "email", "ASHA@example.com", "password", password).leadsTo(t, "/dashboard/sales")
}

func TestForms_WrongInput_ErrorBesideField(t *testing.T) {
	h := openFixture(t)
	b := h.browse()
	a := b.post("/register", "name", "A", "email", "nobody", "password", "short", "role", "admin").want(t, 422)
	a.says(t, "Name must be 2 to 50 characters", `aria-invalid="true"`, `href="#field-email"`, `role="alert"`, "autofocus",
		`aria-describedby="field-password-error field-password-hint"`, `value="nobody"`, "<title>Error: ").saysNot(t, `value="short"`)
	checkPage(t, "register", a)
	h.signUp("Asha Rao", auth.Seller)
	b.post("/register", "name", "Another", "email", "asha.rao@example.com", "password", password, "role", "buyer").want(t, 400).
		says(t, `id="field-email-error"`, "already registered")

	b.post("/login", "email", "a\x00@example.com", "password", password).want(t, 400)
	wrong := b.post("/login", "email", "asha.rao@example.com", "password", "not the password").want(t, 401)
	wrong.says(t, "password is wrong", `value="asha.rao@example.com"`).saysNot(t, "not the password")
	checkPage(t, "login", wrong)
	if len(wrong.header.Values("Set-Cookie")) != 0 {
		t.Error("a refused sign-in sets a cookie")
	}
}

func TestLoginPage_TooManyTries_SaysWait(t *testing.T) {
	h := openFixture(t)
	b := h.browse()
	for range 30 {
		a := b.post("/login", "email", "nobody@example.com", "password", "wrong password")
		if a.status == http.StatusTooManyRequests {
			a.says(t, "Try again in ")
			if a.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			return
		}
	}
	t.Error("thirty wrong passwords in a row are all looked at")
}

func TestLoginPage_ForeignRedirect_Ignored(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	for _, evil := range []string{
		"//evil.example", "/\\evil.example", "https://evil.example", "https:evil.example", "javascript:alert(1)", "/%2F/evil.example",
		"/\t/evil.example", "@evil.example", "", "/api/auth/logout",
	} {
		b := h.browse()
		path := "/login?redirect=" + strings.NewReplacer("%", "%25", "\t", "%09", "\\", "%5C", "/", "%2F", ":", "%3A").Replace(evil)
		b.get(path).want(t, 200).saysNot(t, "evil.example", "javascript:")
		b.post(path, "email", seller.email, "password", password).leadsTo(t, "/dashboard")
		seller.get(path).leadsTo(t, "/dashboard")
	}
}

func TestLoginPage_ShowsOnlyKnownErrors(t *testing.T) {
	h := openFixture(t)
	b := h.browse()
	b.get("/login?error=Call+555-0100+to+unlock+your+account").want(t, 200).
		says(t, "The sign-in did not succeed").saysNot(t, "555-0100")
	b.get("/login?error="+url.QueryEscape(auth.ErrProviderDenied.Message)).want(t, 200).says(t, auth.ErrProviderDenied.Message, `role="alert"`)
	b.get("/login?error="+url.QueryEscape(auth.ErrProviderDenied.Message+" Call us.")).want(t, 200).saysNot(t, "Call us")
}

func TestProviderLinks_KeepRedirectAndRole(t *testing.T) {
	h := openFixture(t)
	b := h.browse()
	b.get("/login").want(t, 200).says(t, `href="/api/auth/provider-a"`, "Continue with Example &lt;ID&gt;").saysNot(t, "provider-b", "as a seller")
	b.get("/login?redirect=%2Fdashboard%2Fsales").want(t, 200).
		says(t, `href="/api/auth/provider-a?redirect=%2Fdashboard%2Fsales"`, `href="/register?redirect=%2Fdashboard%2Fsales"`)
	b.get("/register").want(t, 200).says(t, `href="/api/auth/provider-a?role=seller"`, "as a seller")
	b.get("/register?role=buyer").want(t, 200).says(t, `href="/api/auth/provider-a?role=buyer"`, `value="buyer" checked`)
	b.get("/register?role=admin").want(t, 200).saysNot(t, "role=admin")
}

func TestLoginPage_ReplacesPlantedSession(t *testing.T) {
	h := openFixture(t)
	attacker, victim := h.signUp("Eve", auth.Seller), h.signUp("Asha Rao", auth.Seller)
	at := mustURL(t, h.server.URL)
	planted := attacker.client.Jar.Cookies(at)

	b := h.browse()
	b.client.Jar.SetCookies(at, planted)
	b.post("/login", "email", victim.email, "password", password).leadsTo(t, "/dashboard")
	b.get("/dashboard").want(t, 200).says(t, "Asha Rao")
	if now := b.client.Jar.Cookies(at); now[0].Value == planted[0].Value {
		t.Error("the cookie that was there before the sign-in is still the one")
	}
	attacker.get("/dashboard").leadsTo(t, "/login") // the planted session is over
}

func TestSessionCookie_RenewedWhileUsed(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.clock.advance(23 * time.Hour)
	if a := seller.get("/dashboard").want(t, 200); len(a.header.Values("Set-Cookie")) != 0 {
		t.Error("a token of today is renewed")
	}
	for range 20 { // days; a token lives for seven
		h.clock.advance(25 * time.Hour)
		seller.get("/dashboard").want(t, 200)
	}
	h.clock.advance(8 * 24 * time.Hour)
	a := seller.get("/dashboard").leadsTo(t, "/login")
	if !strings.Contains(a.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Error("a cookie that is worth nothing is left where it is")
	}
}

func TestForms_CrossSite_Refused(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 20_000_00)
	for _, path := range []string{"/dashboard/payouts", "/logout", "/login", "/dashboard/profile", "/dashboard/bank-account"} {
		for _, origin := range []string{"https://evil.example", "null", "http://127.0.0.1:1"} {
			a := seller.postFrom(origin, path, "amount", "600", "key", strings.Repeat("a", 22), "name", "Eve").want(t, 403)
			a.says(t, "nothing was changed")
			checkPage(t, path, a)
		}
	}
	seller.header.Set("Sec-Fetch-Site", "cross-site")
	seller.postFrom("", "/dashboard/payouts", "amount", "600").want(t, 403)
	seller.header.Del("Sec-Fetch-Site")
	seller.get("/dashboard/payouts").want(t, 200).says(t, "No payouts yet", "Asha Rao")
}

func TestForms_InvalidBody_Refused(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	send := func(contentType, body string) answer {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.server.URL+"/dashboard/profile", strings.NewReader(body))
		must(t, err)
		r.Header.Set("Origin", h.server.URL)
		r.Header.Set("Content-Type", contentType)
		return seller.do(r)
	}
	send("application/json", `{"name":"Eve"}`).want(t, 400)
	send("text/plain", "name=Eve").want(t, 400)
	send("application/x-www-form-urlencoded", "name=%zz").want(t, 400)
	send("application/x-www-form-urlencoded", "name=%ff%fe").want(t, 400)
	a := send("application/x-www-form-urlencoded", "bio="+strings.Repeat("a", 70<<10)).want(t, 413)
	checkPage(t, "too large", a)
	seller.get("/dashboard/profile").want(t, 200).says(t, `value="Asha Rao"`)
}

// TestForms_WithoutBody posts forms with an empty body, as a program may.
func TestForms_WithoutBody(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 20_000_00)
	page := "/dashboard/payouts/" + string(h.ask(seller, 600_00, "").ID)
	send := func(origin, path string) answer {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.server.URL+path, http.NoBody)
		must(t, err)
		r.Header.Set("Origin", origin)
		return seller.do(r)
	}
	send("https://evil.example", page+"/cancel").want(t, 403)
	send(h.server.URL, page+"/cancel").leadsTo(t, page)
	send(h.server.URL, "/dashboard/profile/sessions/end-others").leadsTo(t, "/dashboard/profile")
	send(h.server.URL, "/dashboard/profile").want(t, 422)
	send(h.server.URL, "/dashboard/payouts").want(t, 422)
	seller.get("/dashboard/profile").want(t, 200).says(t, `value="Asha Rao"`)
	send(h.server.URL, "/logout").leadsTo(t, "/login")
}

func TestDeviceNames(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36":                            "Chrome on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0":        "Edge on Windows",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile Safari/604.1": "Safari on iPhone",
		"Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36":            "Chrome on Android",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:144.0) Gecko/20100101 Firefox/144.0":                                             "Firefox on macOS",
		"curl/8.5.0": "curl", "till 3": "till 3", "": "Unknown device",
	} {
		if got := dashboard.DeviceName(agent); got != want {
			t.Errorf("%q is %q, want %q", agent, got, want)
		}
	}
}

func TestPanic_ShowsPageAndLogs(t *testing.T) {
	h := openFixture(t)
	log := &logBuffer{}
	logger, err := telemetry.NewLogger(log, slog.LevelDebug, telemetry.JSON)
	must(t, err)
	pages, err := dashboard.Panics(dashboard.Options{
		Auth: h.auth, Bank: h.bank, Sales: h.sales, Payouts: h.payouts, Search: search.Service{Store: h.db, Currency: rupees(t)}, Inbox: h.inbox(), Ledger: h.audited, Reconciling: h.reconciling, Health: h.health, Audits: h.audits, Statements: h.proofs, Mails: h.mails, Webhooks: h.webhooks,
		Currency: rupees(t), BaseURL: mustURL(t, "https://pay.example"), Zone: time.UTC, Now: h.clock.Now, Logger: logger,
	})
	must(t, err)
	w := httptest.NewRecorder()
	w.Header().Set("X-Request-Id", "request-17")
	pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/panics", nil))
	if body := w.Body.String(); w.Code != 500 || !strings.Contains(body, "request-17") || strings.Contains(body, "nil pointer") {
		t.Errorf("status %d: %s", w.Code, body)
	}
	if !strings.Contains(log.String(), "nil pointer") {
		t.Errorf("the log says nothing of it: %s", log)
	}
}

func TestLogin_SecondStep_TakesItsCookieAway(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	secret := h.enrol(seller)
	b := h.browse()
	b.post("/login", "email", seller.email, "password", password).leadsTo(t, "/login/factor")
	b.post("/login/factor", "code", "000000").want(t, 401)
	b.post("/login/factor", "code", h.codeOf(secret)).leadsTo(t, "/dashboard")
	for _, c := range b.client.Jar.Cookies(mustURL(t, h.server.URL)) {
		if c.Name == web.ChallengeCookie {
			t.Error("the browser keeps the cookie of the second step")
		}
	}
	b.get("/dashboard").want(t, 200)
}

// TestUnlinkPage_RequiresProof unlinks a provider with the password, or with a code where there is a second factor.
func TestUnlinkPage_RequiresProof(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	link := func() {
		must(t, h.db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddIdentity(t.Context(), seller.id, auth.Identity{Issuer: "https://id.example", Subject: "7", Email: seller.email}, h.clock.Now())
			return err
		}))
	}
	const page = "/dashboard/profile/providers/provider-a/unlink"
	seller.get("/dashboard/profile").want(t, 200).says(t, `href="/api/auth/provider-a?redirect=%2Fdashboard%2Fprofile"`, "Link Example &lt;ID&gt;")
	seller.get(page).want(t, 404)
	seller.post(page, "password", password).want(t, 404)
	link()
	profile := seller.get("/dashboard/profile").want(t, 200).says(t, "Example &lt;ID&gt;", `href="`+page+`"`)
	if strings.Contains(profile.body, "Link Example") {
		t.Error("what is linked can be linked")
	}
	checkPage(t, page, seller.get(page).want(t, 200).says(t, "You can't sign in through Example &lt;ID&gt; any more", `name="password"`))
	seller.get("/dashboard/profile/providers/provider-b/unlink").want(t, 404)
	seller.post(page).want(t, 422).says(t, "Your password is required")
	seller.post(page, "password", "wrong").want(t, 400).says(t, "Your password is wrong")
	seller.postFrom("https://evil.example", page, "password", password).want(t, 403)
	seller.post(page, "password", password).leadsTo(t, "/dashboard/profile")
	seller.get("/dashboard/profile").want(t, 200).says(t, "The provider is unlinked.", "Sign-in through a provider removed")
	seller.get(page).want(t, 404)

	link()
	secret := h.enrol(seller)
	seller.get(page).want(t, 200).says(t, `name="code"`)
	seller.post(page, "code", "000000").want(t, 422).says(t, "is wrong, was used already")
	seller.post(page, "code", h.codeOf(secret)).leadsTo(t, "/dashboard/profile")
	seller.get(page).want(t, 404)
}
