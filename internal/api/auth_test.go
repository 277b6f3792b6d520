package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/api"
	"bursar/internal/auth"
	"bursar/internal/web"
)

// blank replaces what differs from run to run, so that whole bodies can be compared.
func blank(body string) string {
	body = regexp.MustCompile(`(usr|pyt|bka)_[0-9A-Za-z]{24}`).ReplaceAllString(body, "${1}_X")
	body = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]+`).ReplaceAllString(body, "JWT")
	body = regexp.MustCompile(`brt_[\w.-]+`).ReplaceAllString(body, "REFRESH")
	return strings.TrimSpace(body)
}

func (a answer) wantBody(t *testing.T, want string) {
	t.Helper()
	if got := blank(a.body); got != want {
		t.Errorf("body\n%s\nwant\n%s", got, want)
	}
}

func TestSignInStory(t *testing.T) {
	h := openFixture(t)
	registered := h.do(call{
		method: "POST", path: "/api/auth/register",
		body: `{"name":"Asha <Rao> & Söhne","email":"Asha@Example.com","password":"correct horse battery","role":"seller","id":"usr_1","isVerified":true,"createdAt":1}`,
	})
	registered.want(t, 201).wantBody(t, `{"success":true,"message":"Welcome. Your account is ready.","data":{`+
		`"user":{"id":"usr_X","name":"Asha <Rao> & Söhne","email":"Asha@Example.com","role":"seller","isVerified":false,"createdAt":"2026-11-20T09:30:00.123Z"},`+
		`"token":"JWT","refreshToken":"REFRESH"}}`)

	again := call{method: "POST", path: "/api/auth/register", body: `{"name":"Asha","email":"aSHA@example.COM","password":"another password"}`}
	h.do(again).wantFailure(t, 400, "email_taken")

	in := h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"ASHA@example.com","password":"correct horse battery"}`}).want(t, 200)
	in.wantBody(t, `{"success":true,"message":"You are signed in.","data":{`+
		`"user":{"id":"usr_X","name":"Asha <Rao> & Söhne","email":"Asha@Example.com","role":"seller","isVerified":false},`+
		`"token":"JWT","expiresIn":"7d","refreshToken":"REFRESH"}}`)
	token := in.text(t, "data.token")

	h.do(call{method: "GET", path: "/api/auth/me", token: token}).want(t, 200).wantBody(t, `{"success":true,"data":{"user":{`+
		`"id":"usr_X","name":"Asha <Rao> & Söhne","email":"Asha@Example.com","role":"seller","isVerified":false,"createdAt":"2026-11-20T09:30:00.123Z",`+
		`"profile":{"avatar":"","bio":"","website":""},"stats":{"totalSales":0,"totalEarnings":0,"productsListed":0}}}}`)

	refreshed := h.do(call{method: "POST", path: "/api/auth/refresh", body: fmt.Sprintf(`{"refreshToken":%q}`, in.text(t, "data.refreshToken"))})
	refreshed.want(t, 200).wantBody(t, `{"success":true,"data":{"token":"JWT","expiresIn":"7d","refreshToken":"REFRESH"}}`)

	logout := call{method: "POST", path: "/api/auth/logout", token: token}
	h.do(logout).want(t, 200).wantBody(t, `{"success":true,"message":"You are signed out."}`)
	h.do(logout).wantFailure(t, 401, "invalid_token")
	for name, dead := range map[string]string{"its own": token, "the refreshed": refreshed.text(t, "data.token")} {
		t.Run(name, func(t *testing.T) {
			h.do(call{method: "GET", path: "/api/auth/me", token: dead}).wantFailure(t, 401, "invalid_token")
		})
	}
	body := fmt.Sprintf(`{"refreshToken":%q}`, refreshed.text(t, "data.refreshToken"))
	h.do(call{method: "POST", path: "/api/auth/refresh", body: body}).wantFailure(t, 401, "invalid_refresh_token")
}

func TestRegisterRules(t *testing.T) {
	h := openFixture(t)
	good := map[string]string{"name": `"Asha"`, "email": `"asha@example.com"`, "password": `"12345678"`, "role": `"buyer"`}
	tests := map[string]struct{ field, value string }{
		"name of one":               {"name", `"A"`},
		"name of blanks":            {"name", `"     "`},
		"name of 51":                {"name", `"` + strings.Repeat("é", 51) + `"`},
		"name with NUL":             {"name", `"As\u0000ha"`},
		"name with a line break":    {"name", `"As\nha"`},
		"empty name":                {"name", `""`},
		"e-mail without a domain":   {"email", `"asha"`},
		"e-mail without a dot":      {"email", `"asha@localhost"`},
		"e-mail with a name":        {"email", `"Asha <asha@example.com>"`},
		"e-mail with a blank":       {"email", `" asha@example.com"`},
		"e-mail with NUL":           {"email", `"asha\u0000@example.com"`},
		"e-mail with a line break":  {"email", `"asha@example.com\r\nBcc: x@example.com"`},
		"empty e-mail":              {"email", `""`},
		"long e-mail":               {"email", `"` + strings.Repeat("a", 250) + `@example.com"`},
		"password of seven":         {"password", `"1234567"`},
		"password of seven letters": {"password", `"ééééééé"`},
		"password of 1025 bytes":    {"password", `"` + strings.Repeat("a", 1025) + `"`},
		"admin":                     {"role", `"admin"`},
		"another case":              {"role", `"Seller"`},
		"no role":                   {"role", `""`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h.do(call{method: "POST", path: "/api/auth/register", body: with(good, test.field, test.value)}).
				wantFailure(t, 422, "validation_failed", test.field)
		})
	}
	t.Run("all at once", func(t *testing.T) {
		h.do(call{method: "POST", path: "/api/auth/register", body: `{"name":"A","email":"x","role":"king"}`}).
			wantFailure(t, 422, "validation_failed", "name", "email", "password", "role")
	})
	t.Run("a wrong type comes first", func(t *testing.T) {
		h.do(call{method: "POST", path: "/api/auth/register", body: `{"name":"A","email":7}`}).
			wantFailure(t, 400, "invalid_request", "email")
	})
	for name, value := range map[string]string{"absent role": ``, "null role": `,"role":null`} {
		t.Run(name+" is buyer", func(t *testing.T) {
			body := fmt.Sprintf(`{"name":"Jo","email":"%x@example.com","password":"%s"%s}`, name, strings.Repeat("é", 8), value)
			a := h.do(call{method: "POST", path: "/api/auth/register", body: body}).want(t, 201)
			if role := a.text(t, "data.user.role"); role != "buyer" {
				t.Errorf("role %s", role)
			}
		})
	}
}

// with is the good fields as a body, one of them replaced.
func with(good map[string]string, field, value string) string {
	var parts []string
	for name, v := range good {
		if name == field {
			v = value
		}
		parts = append(parts, fmt.Sprintf("%q:%s", name, v))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestLogin_FailuresLookAlike(t *testing.T) {
	h := openFixture(t)
	h.signUp("Asha", auth.Seller)
	const want = `{"success":false,"error":"The e-mail address or the password is wrong.","code":"invalid_credentials"}`
	for name, body := range map[string]string{
		"wrong password":   `{"email":"asha@example.com","password":"wrong horse battery"}`,
		"unknown user":     `{"email":"nobody@example.com","password":"correct horse battery"}`,
		"no e-mail":        `{"email":"","password":"correct horse battery"}`,
		"no password":      `{"email":"asha@example.com","password":""}`,
		"endless password": `{"email":"asha@example.com","password":"` + strings.Repeat("x", 5000) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			a := h.do(call{method: "POST", path: "/api/auth/login", body: body}).want(t, 401)
			a.wantBody(t, want)
			if got := a.header.Get("WWW-Authenticate"); got != "Bearer" {
				t.Errorf("WWW-Authenticate %q", got)
			}
		})
	}
}

func TestAuthorizationHeader(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	accepted := map[string]string{
		"as it is":       "Bearer " + seller.token,
		"lower case":     "bearer " + seller.token,
		"upper case":     "BEARER " + seller.token,
		"several blanks": "Bearer    " + seller.token,
	}
	for name, header := range accepted {
		t.Run(name, func(t *testing.T) {
			h.do(call{method: "GET", path: "/api/auth/me", header: map[string]string{"Authorization": header}}).want(t, 200)
		})
	}
	refused := map[string]string{
		"none":           "",
		"scheme alone":   "Bearer",
		"empty token":    "Bearer ",
		"no scheme":      seller.token,
		"another scheme": "Basic " + seller.token,
		"token scheme":   "Token " + seller.token,
		"two tokens":     "Bearer " + seller.token + " " + seller.token,
		"two in one":     "Bearer " + seller.token + ", Bearer " + seller.token,
		"flipped byte":   "Bearer " + flipped(seller.token),
		"refresh token":  "Bearer " + seller.refreshToken,
		"service key":    "Bearer " + h.serviceKey,
		"unsigned":       "Bearer eyJhbGciOiJub25lIn0.eyJ1c2VySWQiOiJ4In0.",
		"very long":      "Bearer " + strings.Repeat("x", 100_000),
	}
	for name, header := range refused {
		t.Run(name, func(t *testing.T) {
			a := h.do(call{method: "GET", path: "/api/auth/me", header: map[string]string{
				"Authorization": header, "Cookie": "bursar=" + seller.token, // a good cookie makes up for nothing
			}})
			a.wantFailure(t, 401, "invalid_token")
			if got := a.header.Get("WWW-Authenticate"); got != "Bearer" {
				t.Errorf("WWW-Authenticate %q", got)
			}
		})
	}
	t.Run("two headers", func(t *testing.T) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.server.URL+"/api/auth/me", nil)
		must(t, err)
		r.Header["Authorization"] = []string{"Bearer " + seller.token, "Bearer " + seller.token}
		h.send(r, "").wantFailure(t, 401, "invalid_token")
	})
	t.Run("in the query", func(t *testing.T) {
		for _, name := range []string{"token", "access_token", "Authorization"} {
			h.do(call{method: "GET", path: "/api/auth/me?" + name + "=" + seller.token}).wantFailure(t, 401, "invalid_token")
		}
		if strings.Contains(h.log.String(), seller.token) {
			t.Error("the log holds the token")
		}
	})
}

func flipped(token string) string {
	b := []byte(token)
	i := len(b) - 10
	b[i] ^= 1
	return string(b)
}

func TestCookie(t *testing.T) {
	const evil = "https://evil.example"
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	own := h.server.URL
	tests := map[string]struct {
		call
		want int
		code string
	}{
		"a read":                     {call{method: "GET", path: "/api/auth/me", header: header("Cookie", "bursar="+seller.token)}, 200, ""},
		"a read from anywhere":       {call{method: "GET", path: "/api/auth/me", header: header("Cookie", "bursar="+seller.token, "Origin", evil, "Sec-Fetch-Site", "cross-site")}, 200, ""},
		"a bad cookie":               {call{method: "GET", path: "/api/auth/me", header: header("Cookie", "bursar=x")}, 401, "invalid_token"},
		"an empty cookie":            {call{method: "GET", path: "/api/auth/me", header: header("Cookie", "bursar=")}, 401, "invalid_token"},
		"two cookies":                {call{method: "GET", path: "/api/auth/me", header: header("Cookie", "bursar="+seller.token+"; bursar="+seller.token)}, 401, "invalid_token"},
		"the other cookie's name":    {call{method: "GET", path: "/api/auth/me", header: header("Cookie", "__Host-bursar="+seller.token)}, 401, "invalid_token"},
		"a write from our page":      {call{method: "POST", path: "/api/payouts/request", body: `{}`, header: header("Cookie", "bursar="+seller.token, "Origin", own, "Sec-Fetch-Site", "same-origin")}, 400, "invalid_request"},
		"a write from our address":   {call{method: "POST", path: "/api/payouts/request", body: `{}`, header: header("Cookie", "bursar="+seller.token, "Origin", "http://127.0.0.1:8080")}, 400, "invalid_request"},
		"a write from elsewhere":     {call{method: "POST", path: "/api/payouts/request", body: `{}`, header: header("Cookie", "bursar="+seller.token, "Origin", evil)}, 403, "cross_origin"},
		"a write from nowhere":       {call{method: "POST", path: "/api/payouts/request", body: `{}`, header: header("Cookie", "bursar="+seller.token, "Origin", "null")}, 403, "cross_origin"},
		"a cross-site write":         {call{method: "POST", path: "/api/auth/logout", header: header("Cookie", "bursar="+seller.token, "Sec-Fetch-Site", "cross-site")}, 403, "cross_origin"},
		"a same-site write":          {call{method: "POST", path: "/api/auth/logout", header: header("Cookie", "bursar="+seller.token, "Sec-Fetch-Site", "same-site")}, 403, "cross_origin"},
		"JSON with a parameter":      {call{method: "POST", path: "/api/payouts/request", body: `{}`, header: header("Cookie", "bursar="+seller.token, "Content-Type", "application/json; charset=utf-8")}, 400, "invalid_request"},
		"a body of text":             {call{method: "POST", path: "/api/payouts/request", body: `{}`, header: header("Cookie", "bursar="+seller.token, "Content-Type", "text/plain")}, 403, "cross_origin"},
		"a form":                     {call{method: "POST", path: "/api/payouts/request", body: `{}`, header: header("Cookie", "bursar="+seller.token, "Content-Type", "application/x-www-form-urlencoded")}, 403, "cross_origin"},
		"a body of no type":          {call{method: "POST", path: "/api/payouts/request", body: `{}`, header: header("Cookie", "bursar="+seller.token, "Content-Type", "")}, 403, "cross_origin"},
		"a body of nearly JSON":      {call{method: "POST", path: "/api/payouts/request", body: `{}`, header: header("Cookie", "bursar="+seller.token, "Content-Type", "application/jsonp")}, 403, "cross_origin"},
		"text with a header":         {call{method: "POST", path: "/api/payouts/request", body: `{}`, token: seller.token, header: header("Content-Type", "text/plain")}, 400, "invalid_request"},
		"a header from elsewhere":    {call{method: "POST", path: "/api/payouts/request", body: `{}`, token: seller.token, header: header("Origin", evil, "Sec-Fetch-Site", "cross-site")}, 400, "invalid_request"},
		"a cookie for a service key": {call{method: "POST", path: "/api/marketplace/sales", body: `{}`, header: header("Cookie", "bursar="+h.serviceKey)}, 401, "invalid_service_key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := h.do(test.call).want(t, test.want)
			if test.code != "" && a.text(t, "code") != test.code {
				t.Errorf("code %s, want %s", a.text(t, "code"), test.code)
			}
		})
	}
	t.Run("login sets none that signs in", func(t *testing.T) {
		a := h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"asha@example.com","password":"correct horse battery"}`}).want(t, 200)
		got := a.header.Values("Set-Cookie")
		if len(got) != 1 || !strings.HasPrefix(got[0], "bursar-device-"+seller.id+"=") ||
			!strings.HasSuffix(got[0], "; Path=/; Max-Age=15552000; HttpOnly; SameSite=Lax") {
			t.Fatalf("Set-Cookie %q", got)
		}
		device, _, _ := strings.Cut(got[0], ";")
		_, value, _ := strings.Cut(device, "=")
		for _, cookie := range []string{device, "bursar=" + value} {
			h.do(call{method: "GET", path: "/api/auth/me", header: header("Cookie", cookie)}).wantFailure(t, 401, "invalid_token")
		}
	})
	t.Run("logout takes it away", func(t *testing.T) {
		a := h.do(call{method: "POST", path: "/api/auth/logout", header: header("Cookie", "bursar="+seller.token)}).want(t, 200)
		if got := a.header.Get("Set-Cookie"); !strings.HasPrefix(got, "bursar=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax") {
			t.Errorf("Set-Cookie %q", got)
		}
	})
}

// Whoever guesses may come from the owner's own address; the owner's browser has a cookie.
func TestLogin_GuessingIsThrottled(t *testing.T) {
	proxies := func(o *api.Options) { o.TrustedProxies = web.Proxies{netip.MustParsePrefix("127.0.0.0/8")} }
	h := openFixture(t, proxies)
	registered := h.do(call{
		method: "POST", path: "/api/auth/register", header: header("X-Forwarded-For", "203.0.113.7"),
		body: `{"name":"Asha","email":"asha@example.com","password":"correct horse battery"}`,
	}).want(t, 201)
	device, _, _ := strings.Cut(registered.header.Get("Set-Cookie"), ";")
	login := func(password, address string, more ...string) answer {
		return h.do(call{
			method: "POST", path: "/api/auth/login", header: header(append(more, "X-Forwarded-For", address)...),
			body: fmt.Sprintf(`{"email":"asha@example.com","password":%q}`, password),
		})
	}
	const right = "correct horse battery"
	for range 20 {
		login("a-guess-at-it", "198.51.100.1, 203.0.113.7").wantFailure(t, 401, "invalid_credentials") // what stands first is made up
	}
	refused := login(right, "203.0.113.7")
	refused.wantFailure(t, 429, "too_many_attempts")
	if refused.header.Get("Retry-After") != "90" || refused.header.Get("Set-Cookie") != "" {
		t.Errorf("headers %v", refused.header)
	}
	login(right, "203.0.113.8").want(t, 200)
	login(right, "203.0.113.7", "Cookie", device).want(t, 200)
	for outcome, want := range map[string]string{"wrong": "20", "throttled": "1", "right": "2"} {
		if line := `bursar_attempts_total{action="password",outcome="` + outcome + `"} ` + want; !strings.Contains(h.scrape(t), line) {
			t.Errorf("no %s in the metrics", line)
		}
	}
}

func TestLog_FloodOfRefusals(t *testing.T) {
	h := openFixture(t)
	login := call{method: "POST", path: "/api/auth/login", body: `{"email":"asha@example.com","password":"a-guess-at-it"}`}
	for range 20 {
		h.do(login).want(t, 401)
	}
	before := strings.Count(h.log.String(), "\n")
	for range 50 {
		h.do(login).want(t, 429)
	}
	h.clock.advance(10 * time.Second)
	h.do(login).want(t, 429)
	lines := strings.Split(h.log.String(), "\n")[before:]
	if len(lines) != 3 || !strings.Contains(lines[0], `"status":429`) || !strings.Contains(lines[1], `"suppressed":49`) { // and the end of the last
		t.Errorf("51 refusals wrote %d lines: %s", len(lines)-1, lines)
	}
}

func TestLog_BusyIsNoError(t *testing.T) {
	h := openFixture(t)
	h.pingError = errors.New("the database is gone")
	for range 20 {
		h.do(call{method: "GET", path: "/readyz"}).want(t, 503)
	}
	if log := h.log.String(); strings.Contains(log, `"level":"ERROR"`) || strings.Count(log, `"status":503`) != 1 {
		t.Errorf("the log:\n%s", log)
	}
}

func TestCookies_EightAccountsKnowABrowser(t *testing.T) {
	h := openFixture(t)
	var cookies []string
	for i := range 9 {
		a := h.do(call{
			method: "POST", path: "/api/auth/register", header: header("Cookie", strings.Join(cookies, "; ")),
			body: fmt.Sprintf(`{"name":"Asha","email":"asha%d@example.com","password":"correct horse battery"}`, i),
		}).want(t, 201)
		set := a.header.Values("Set-Cookie")
		if want := 1 + max(0, i-7); len(set) != want {
			t.Fatalf("registration %d sets %q, want %d", i, set, want)
		}
		if i == 8 && (!strings.Contains(set[1], "Max-Age=0") || !strings.HasPrefix(set[1], strings.Split(cookies[7], "=")[0]+"=;")) {
			t.Errorf("the one too many: %q", set[1])
		}
		cookie, _, _ := strings.Cut(set[0], ";")
		cookies = append(cookies, cookie)
	}
}

func TestCookieUnderHTTPS(t *testing.T) {
	h := openFixture(t, func(o *api.Options) { o.BaseURL.Scheme = "https" })
	seller := h.signUp("Asha", auth.Seller)
	h.do(call{method: "GET", path: "/api/auth/me", header: header("Cookie", "bursar="+seller.token)}).wantFailure(t, 401, "invalid_token")
	a := h.do(call{method: "POST", path: "/api/auth/logout", header: header("Cookie", "__Host-bursar="+seller.token)}).want(t, 200)
	if got := a.header.Get("Set-Cookie"); got != "__Host-bursar=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax" {
		t.Errorf("Set-Cookie %q", got)
	}
}

// header makes a call's headers of names and values in turn.
func header(namesAndValues ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(namesAndValues); i += 2 {
		m[namesAndValues[i]] = namesAndValues[i+1]
	}
	return m
}

// Who may call is decided before anything else of the request is looked at.
func TestRoles(t *testing.T) {
	h := openFixture(t)
	buyer, seller, admin := h.signUp("Bo", auth.Buyer), h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	const id = "pyt_000000000000000000000000"
	sellers := []call{
		{method: "GET", path: "/api/payouts/balance"},
		{method: "POST", path: "/api/payouts/request", body: `]`},
		{method: "GET", path: "/api/payouts/history?page=x"},
		{method: "GET", path: "/api/payouts/" + id},
		{method: "GET", path: "/api/payouts/" + id + "/events"},
		{method: "POST", path: "/api/payouts/" + id + "/cancel"},
		{method: "GET", path: "/api/bank-account"},
		{method: "PUT", path: "/api/bank-account", body: `]`},
	}
	admins := []call{
		{method: "POST", path: "/api/admin/bank-accounts/x/verification", body: `]`},
		{method: "POST", path: "/api/admin/users/x/access", body: `]`},
	}
	services := []call{
		{method: "POST", path: "/api/marketplace/sales", body: `]`},
		{method: "POST", path: "/api/marketplace/sales/s/refund", body: `]`},
		{method: "PUT", path: "/api/marketplace/sellers/x", body: `]`},
	}
	try := func(calls []call, token string, status int, code string) {
		t.Helper()
		for _, c := range calls {
			c.token = token
			h.do(c).wantFailure(t, status, code)
		}
	}
	try(append(sellers, admins...), "", 401, "invalid_token")
	try(append(sellers, admins...), h.serviceKey, 401, "invalid_token")
	try(sellers, buyer.token, 403, "forbidden")
	try(admins, buyer.token, 403, "forbidden")
	try(admins, seller.token, 403, "forbidden")
	for _, token := range []string{"", buyer.token, seller.token, admin.token, "bsk_wrong", h.serviceKey + "x"} {
		try(services, token, 401, "invalid_service_key")
	}
	for _, u := range []user{seller, admin} {
		h.do(call{method: "GET", path: "/api/payouts/balance", token: u.token}).want(t, 200)
	}
}

func TestServiceKey_InItsOwnHeader(t *testing.T) {
	h := openFixture(t)
	c := call{method: "POST", path: "/api/marketplace/sales", body: `{}`, header: header("X-Api-Key", h.serviceKey)}
	h.do(c).wantFailure(t, 400, "invalid_request", "saleId", "sellerId", "amount")
	c.token = "bsk_wrong" // the Authorization header goes first
	h.do(c).wantFailure(t, 401, "invalid_service_key")
	h.do(call{method: "GET", path: "/api/auth/me", header: header("X-Api-Key", h.serviceKey)}).wantFailure(t, 401, "invalid_token")
}

func TestToken_ExpiresAfterSevenDays(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	me := call{method: "GET", path: "/api/auth/me", token: seller.token}
	h.clock.advance(7*24*time.Hour - time.Minute)
	h.do(me).want(t, 200)
	h.clock.advance(2 * time.Minute)
	h.do(me).wantFailure(t, 401, "invalid_token")
}

func TestProviderSignIn_NotConfigured_Answers404(t *testing.T) {
	h := openFixture(t)
	for _, path := range []string{"provider-a", "provider-a/callback", "provider-b", "provider-b/callback"} {
		h.do(call{method: "GET", path: "/api/auth/" + path}).wantFailure(t, 404, "provider_not_configured")
	}
}

func TestAccount_Profile(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	patch := func(body string) answer {
		return h.do(call{method: "PATCH", path: "/api/auth/me", token: seller.token, body: body})
	}
	a := patch(`{"name":"Asha Rao","bio":"Pots","isVerified":true,"role":"admin","email":"eve@example.com","id":"usr_0TMv3kQx8hPq2Zb7Lr4Wd9Yc"}`).want(t, 200)
	for field, want := range map[string]any{
		"name": "Asha Rao", "email": "asha@example.com", "role": "seller", "isVerified": false, "id": seller.id, "profile.bio": "Pots", "profile.website": "",
	} {
		if got := a.read(t, "data.user."+field); got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
	patch(`{"website":"https://a.example","bio":null}`).want(t, 200)
	if a := patch(`{}`).want(t, 200); a.text(t, "data.user.profile.bio") != "Pots" || a.text(t, "data.user.profile.website") != "https://a.example" {
		t.Errorf("an empty change answers %s", a.body)
	}
	if a := patch(`{"bio":""}`).want(t, 200); a.text(t, "data.user.profile.bio") != "" {
		t.Error("the bio is still there")
	}
	patch(`{"name":"","website":"javascript:alert(1)"}`).wantFailure(t, 422, "validation_failed", "name", "website")
	patch(`{"name":7}`).wantFailure(t, 400, "invalid_request", "name")
	patch(`[]`).want(t, 400)
	h.do(call{method: "PATCH", path: "/api/auth/me", body: `{}`}).wantFailure(t, 401, "invalid_token")
	h.do(call{method: "PATCH", path: "/api/auth/me", body: `{}`, header: header("Cookie", "bursar="+seller.token, "Sec-Fetch-Site", "cross-site")}).wantFailure(t, 403, "cross_origin")
}

func TestAccount_Sessions(t *testing.T) {
	h := openFixture(t)
	seller, other := h.signUp("Asha", auth.Seller), h.signUp("Ravi", auth.Buyer)
	login := func() string {
		h.clock.advance(time.Minute)
		return h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"asha@example.com","password":"correct horse battery"}`, header: header("User-Agent", "Phone/1.0")}).
			want(t, 200).text(t, "data.token")
	}
	phone, tablet := login(), login()
	list := func(token string) []any {
		sessions, _ := h.do(call{method: "GET", path: "/api/auth/sessions", token: token}).want(t, 200).read(t, "data.sessions").([]any)
		return sessions
	}
	sessions := list(phone)
	if len(sessions) != 4 { // the sign-up makes two
		t.Fatalf("%d sessions", len(sessions))
	}
	var ids []string
	for i, at := range []string{"2026-11-20T09:32:00.123Z", "2026-11-20T09:31:00.123Z"} {
		session, _ := sessions[i].(map[string]any)
		ids = append(ids, fmt.Sprint(session["id"]))
		want := map[string]any{
			"id": session["id"], "current": i == 1, "createdAt": at, "lastUsedAt": at,
			"userAgent": "Phone/1.0", "address": "127.0.0.1", "methods": []any{"pwd"},
		}
		if diff := cmp.Diff(want, session); diff != "" {
			t.Error(diff)
		}
	}
	alive := func(token string, want int) {
		t.Helper()
		h.do(call{method: "GET", path: "/api/auth/me", token: token}).want(t, want)
	}
	end := func(token, id string) answer {
		return h.do(call{method: "DELETE", path: "/api/auth/sessions/" + id, token: token})
	}
	end(other.token, ids[0]).wantFailure(t, 404, "session_not_found")
	alive(tablet, 200)
	end(phone, ids[0]).want(t, 200)
	alive(tablet, 401)
	end(phone, ids[0]).wantFailure(t, 404, "session_not_found")
	end(phone, "ses_nothing").wantFailure(t, 404, "session_not_found")
	h.do(call{method: "DELETE", path: "/api/auth/sessions", token: phone}).want(t, 200)
	alive(seller.token, 401)
	alive(other.token, 200)
	if sessions := list(phone); len(sessions) != 1 {
		t.Errorf("%d sessions", len(sessions))
	}
	a := h.do(call{method: "DELETE", path: "/api/auth/sessions/" + ids[1], header: header("Cookie", "bursar="+phone)}).want(t, 200)
	if !strings.HasPrefix(a.header.Get("Set-Cookie"), "bursar=;") {
		t.Errorf("a sign-out leaves the cookie: %q", a.header.Values("Set-Cookie"))
	}
	alive(phone, 401)
}

func TestAccount_Password(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	elsewhere := h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"asha@example.com","password":"correct horse battery"}`}).want(t, 200).text(t, "data.token")
	change := func(body string) answer {
		return h.do(call{method: "POST", path: "/api/auth/password/change", token: seller.token, body: body})
	}
	change(`{"newPassword":"another horse battery"}`).wantFailure(t, 400, "invalid_request", "currentPassword")
	change(`{"currentPassword":"correct horse battery"}`).wantFailure(t, 400, "invalid_request", "newPassword")
	change(`{"currentPassword":"correct horse battery","newPassword":"short"}`).wantFailure(t, 422, "validation_failed", "newPassword")
	change(`{"currentPassword":"a-guess-at-it","newPassword":"another horse battery"}`).wantFailure(t, 400, "wrong_password", "currentPassword")
	a := change(`{"currentPassword":"correct horse battery","newPassword":"another horse battery"}`).want(t, 200)
	if !strings.HasPrefix(a.header.Get("Set-Cookie"), "bursar-device-"+seller.id+"=") {
		t.Errorf("the device is not known: %q", a.header.Values("Set-Cookie"))
	}
	h.do(call{method: "GET", path: "/api/auth/me", token: elsewhere}).want(t, 401)
	h.do(call{method: "GET", path: "/api/auth/me", token: seller.token}).want(t, 200)
	for range 20 {
		change(`{"currentPassword":"a-guess-at-it","newPassword":"another horse battery"}`).wantFailure(t, 400, "wrong_password", "currentPassword")
	}
	refused := change(`{"currentPassword":"another horse battery","newPassword":"correct horse battery"}`)
	refused.wantFailure(t, 429, "too_many_attempts")
	if refused.header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After %q", refused.header.Get("Retry-After"))
	}
}
