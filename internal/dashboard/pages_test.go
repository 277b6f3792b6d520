package dashboard_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// look is what a page answers to each who asks: a status, or a path that it leads to.
type look struct {
	path                         string
	stranger, buyer, seller, adm string
}

func TestPages_AccessByRole(t *testing.T) {
	h := openFixture(t)
	seller, buyer, admin := h.signUp("Asha Rao", auth.Seller), h.signUp("Kabir Gupta", auth.Buyer), h.signUp("Priya Menon", auth.Admin)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 20_000_00)
	waiting := h.ask(seller, 600_00, "Rent")
	page := "/dashboard/payouts/" + string(waiting.ID)

	to := func(path string) string { return "/login?redirect=" + strings.ReplaceAll(path, "/", "%2F") }
	forSellers := func(path string) look { return look{path, to(path), "403", "200", "403"} }
	looks := []look{
		{"/", "/login", "/dashboard", "/dashboard", "/dashboard"},
		{"/login", "200", "/dashboard", "/dashboard", "/dashboard"},
		{"/register", "200", "/dashboard", "/dashboard", "/dashboard"},
		{"/dashboard", "/login", "200", "200", "/dashboard/admin"},
		{"/dashboard/profile", to("/dashboard/profile"), "200", "200", "200"},
		forSellers("/dashboard/payouts"),
		forSellers("/dashboard/payouts/new"),
		forSellers("/dashboard/payouts/statements"),
		{"/dashboard/payouts/review", to("/dashboard/payouts/review"), "403", "303", "403"},
		forSellers("/dashboard/payouts/quote"),
		forSellers(page),
		forSellers(page + "/cancel"),
		forSellers("/dashboard/bank-account"),
		forSellers("/dashboard/bank-account/new"),
		forSellers("/dashboard/bank-account/branch"),
		forSellers("/dashboard/sales"),
		{"/dashboard/nowhere", "404", "404", "404", "404"},
		{"/favicon.ico", "404", "404", "404", "404"},
		{"/logout", "405", "405", "405", "405"},
	}
	for _, l := range looks {
		for who, want := range map[*browser]string{h.browse(): l.stranger, buyer.browser: l.buyer, seller.browser: l.seller, admin.browser: l.adm} {
			a := who.get(l.path)
			got := fmt.Sprint(a.status)
			if a.status == http.StatusSeeOther && want != "303" {
				got = a.header.Get("Location")
			}
			if got != want {
				t.Errorf("GET %s: %s, want %s: %s", l.path, got, want, a.body)
			}
			checkPage(t, l.path, a)
		}
	}
	if allow := seller.get("/logout").header.Get("Allow"); allow != "POST" {
		t.Errorf("a page that is posted to allows %q", allow)
	}
	if strings.Contains(h.log.String(), `"level":"ERROR"`) {
		t.Errorf("the log has errors: %s", h.log)
	}
}

var (
	inlineText  = regexp.MustCompile(`(?i)<style|<script(?:\s[^>]*)?>[^<]|"\s*javascript:`)
	inlineInTag = regexp.MustCompile(`(?i)\s(?:style|on[a-z]+)=`)
	quoted      = regexp.MustCompile(`"[^"]*"`)
	heading     = regexp.MustCompile(`<h1[\s>]`)
	elementID   = regexp.MustCompile(`\sid="([^"]*)"`)
)

// checkPage holds what is so for every page: headers, one heading, nothing inline, and tags that match.
func checkPage(t *testing.T, path string, a answer) {
	t.Helper()
	if got := a.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("%s: Cache-Control %q", path, got)
	}
	csp := a.header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(csp, part) {
			t.Errorf("%s: the policy %q lacks %s", path, csp, part)
		}
	}
	if a.header.Get("X-Request-Id") == "" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s: headers that every answer has are missing: %v", path, a.header)
	}
	if found := inlineText.FindString(a.body); found != "" {
		t.Errorf("%s: inline %q, which the policy forbids", path, found)
	}
	for _, m := range tag.FindAllString(a.body, -1) {
		if inlineInTag.MatchString(quoted.ReplaceAllString(m, `""`)) {
			t.Errorf("%s: inline in %q, which the policy forbids", path, m)
		}
	}
	if problem := mismatched(a.body); problem != "" {
		t.Errorf("%s: %s: %s", path, problem, a.body)
	}
	if a.status == http.StatusSeeOther || !strings.Contains(a.body, "<!doctype html>") { // a part of a page
		return
	}
	if n := len(heading.FindAllString(a.body, -1)); n != 1 {
		t.Errorf("%s: %d headings of the first level, want one", path, n)
	}
	for _, landmark := range []string{`<html lang="en">`, "<main id=\"main\"", `href="#main"`, "<title>", "<footer>"} {
		if !strings.Contains(a.body, landmark) {
			t.Errorf("%s: has no %s", path, landmark)
		}
	}
	var ids []string
	for _, id := range elementID.FindAllStringSubmatch(a.body, -1) {
		ids = append(ids, id[1])
	}
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("%s: an id is there twice: %v", path, ids)
	}
	if len(a.body) > 60_000 {
		t.Errorf("%s: %d bytes, which with style and script is more than a page may have", path, len(a.body))
	}
}

var (
	tag  = regexp.MustCompile(`<(/?)([a-zA-Z][a-zA-Z0-9]*)(?:"[^"]*"|[^">])*?(/?)>`)
	void = []string{"meta", "link", "input", "br", "img", "hr"}
)

// mismatched tells of the first tag that is not closed as it was opened. A parser of browsers would mend
// it silently, and not always as it was meant.
func mismatched(page string) string {
	var open []string
	for _, m := range tag.FindAllStringSubmatch(page, -1) {
		closing, name, empty := m[1] != "", m[2], m[3] != ""
		switch {
		case slices.Contains(void, name) || empty:
		case !closing:
			open = append(open, name)
		case len(open) == 0 || open[len(open)-1] != name:
			return fmt.Sprintf("</%s> closes %v", name, open)
		default:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("%v are not closed", open)
	}
	return ""
}

func TestAssetsAreSmallAndKept(t *testing.T) {
	h := openFixture(t)
	b := h.browse()
	page := b.get("/login").want(t, 200)
	total := len(page.body)
	for _, m := range regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`).FindAllStringSubmatch(page.body, -1) {
		a := b.get(m[1]).want(t, 200)
		total += len(a.body)
		if !strings.Contains(a.header.Get("Cache-Control"), "immutable") || a.header.Get("ETag") == "" {
			t.Errorf("%s may not be kept: %v", m[1], a.header)
		}
		if strings.HasSuffix(m[1], ".js") && len(a.body) > 10<<10 {
			t.Errorf("the script has %d bytes", len(a.body))
		}
		kept := h.browse()
		kept.header.Set("If-None-Match", a.header.Get("ETag"))
		kept.get(m[1]).want(t, 304)
	}
	if total > 40_000 {
		t.Errorf("the smallest page and its assets have %d bytes", total)
	}
	b.get("/assets/style.000000000000.css").want(t, 404)
	b.get("/assets/").want(t, 404)
}

func TestPages_EscapeUserInput(t *testing.T) {
	h := openFixture(t)
	const evil = `<script>alert(1)</script>"><img src=x onerror=alert(2)>`
	seller := h.signUp("Eve", auth.Seller)
	seller.post("/dashboard/profile", "name", `<b>Eve</b>"'><script>`, "bio", evil).leadsTo(t, "/dashboard/profile")
	h.withBank(seller, "6789")
	h.earn(seller, evil, 20_000_00)
	made := h.ask(seller, 600_00, evil)
	for _, path := range []string{
		"/dashboard", "/dashboard/profile", "/dashboard/sales", "/dashboard/payouts/" + string(made.ID),
		"/dashboard/payouts/new?again=" + string(made.ID), "/dashboard/payouts/new?amount=%22%3E%3Cscript%3E",
		"/login?error=%3Cscript%3Ealert(1)%3C/script%3E", "/dashboard/payouts?status=%3Cscript%3E",
	} {
		a := seller.get(path)
		a.saysNot(t, "<script>alert", "<img src=x", "<b>Eve</b>")
		checkPage(t, path, a)
	}
	review := seller.review("amount", "600", "notes", evil, "key", strings.Repeat("k", 22)).want(t, 200)
	review.saysNot(t, "<script>alert", "<img src=x")
	checkPage(t, "review", review)
}

func TestNewSeller_PagesShowNextStep(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Lakshmi Iyer", auth.Seller)
	seller.get("/dashboard").want(t, 200).says(t, "How you get paid", "Add bank account")
	seller.get("/dashboard/payouts").want(t, 200).says(t, "No payouts yet")
	seller.get("/dashboard/sales").want(t, 200).says(t, "No sales yet")
	seller.get("/dashboard/payouts/new").want(t, 200).says(t, "Add one first").saysNot(t, `name="amount"`)
	seller.get("/dashboard/bank-account").want(t, 200).says(t, `name="accountNumber"`)
	h.signUp("Kabir Gupta", auth.Buyer).get("/dashboard").want(t, 200).says(t, "signed in as a buyer")
}

func TestOverviewPage_AddsUp(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 1_23_456_50)
	later := h.clock.Now().Add(48 * time.Hour)
	_, _, err := h.sales.Record(t.Context(), sale.NewSale{ID: "order-2", Seller: seller.id, Amount: 999_00, OccurredAt: h.clock.Now(), AvailableAt: later})
	must(t, err)
	h.ask(seller, 3_456_50, "")
	seller.get("/dashboard").want(t, 200).says(t,
		"₹1,20,000.00", // available
		"₹999.00", "22 Nov",
		"₹3,456.50", // in transit
		"November 2026: ₹1,24,455.50",
		"••••\u00a06789", "Verified",
	).saysNot(t, "How you get paid", accountDigits)

	seller.get("/dashboard").want(t, 200).says(t, "₹1,24,455.50 total earnings after refunds")
	_, _, _, err = h.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "return-1"})
	must(t, err)
	seller.get("/dashboard").want(t, 200).says(t, "−₹3,456.50", "Your next sales make up for it").saysNot(t, "/dashboard/payouts/new")
}

func TestListsHavePages(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	for i := range 45 {
		h.earn(seller, fmt.Sprintf("order-%d", i), 1_000_00)
		h.clock.advance(time.Minute)
	}
	for range 25 {
		h.ask(seller, 500_00, "")
	}
	seller.get("/dashboard/sales").want(t, 200).says(t, "45 sales", "Page 1 of 3", "order-44", `href="/dashboard/sales?page=2"`).saysNot(t, ">order-24<")
	seller.get("/dashboard/sales?page=3").want(t, 200).says(t, "order-4<", `href="/dashboard/sales?page=2"`)
	seller.get("/dashboard/sales?page=9").want(t, 200).says(t, "past the end")
	seller.get("/dashboard/sales?page=-1").want(t, 200).says(t, "Page 1 of 3")
	seller.get("/dashboard/payouts?status=processing&page=2").want(t, 200).says(t, "Page 2 of 2", `href="/dashboard/payouts?status=processing"`)
	seller.get("/dashboard/payouts?status=failed").want(t, 200).says(t, "No failed payouts")
	seller.get("/dashboard/payouts?status=nonsense").want(t, 200).says(t, "25 payouts")
}

func TestTimesAreTheViewersOwn(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 20_000_00)
	made := h.ask(seller, 600_00, "") // at 09:30 UTC
	h.clock.advance(24 * time.Hour)   // before, a page says how long ago it was
	page := "/dashboard/payouts/" + string(made.ID)
	for cookie, want := range map[string]string{
		"":                                  "20 Nov 2026, 09:30<",
		"zone=Asia%2FKolkata":               "20 Nov 2026, 15:00<",
		"zone=America/New_York":             "20 Nov 2026, 04:30<",
		"zone=Mars/Phobos":                  "20 Nov 2026, 09:30<",
		"zone=..%2F..%2Fetc%2Fpasswd":       "20 Nov 2026, 09:30<",
		"zone=Local":                        "20 Nov 2026, 09:30<",
		"zone=" + strings.Repeat("A", 1000): "20 Nov 2026, 09:30<",
		`zone=<script>alert(1)</script>`:    "20 Nov 2026, 09:30<",
	} {
		seller.header.Del("Cookie")
		if cookie != "" {
			seller.header.Set("Cookie", cookie)
		}
		token := seller.client.Jar.Cookies(mustURL(t, h.server.URL))
		for _, c := range token {
			seller.header.Set("Cookie", strings.TrimPrefix(seller.header.Get("Cookie")+"; "+c.Name+"="+c.Value, "; "))
		}
		jar := seller.client.Jar
		seller.client.Jar = nil
		seller.get(page).want(t, 200).says(t, want, `datetime="2026-11-20T09:30:00Z"`).saysNot(t, "<script>alert")
		seller.client.Jar = jar
	}
}

func TestTimeZone_ShownByCurrentName(t *testing.T) {
	h := openFixture(t)
	for zone, want := range map[string]string{
		"":                        `data-zone="">UTC<`,
		"Asia/Kolkata":            `data-zone="Asia/Kolkata">your time zone, Asia/Kolkata<`,
		"Asia/Calcutta":           `data-zone="Asia/Calcutta">your time zone, Asia/Kolkata<`,
		"Asia/Katmandu":           `data-zone="Asia/Katmandu">your time zone, Asia/Kathmandu<`,
		"Asia/Saigon":             `data-zone="Asia/Saigon">your time zone, Asia/Ho_Chi_Minh<`,
		"Asia/Rangoon":            `data-zone="Asia/Rangoon">your time zone, Asia/Yangon<`,
		"Europe/Kiev":             `data-zone="Europe/Kiev">your time zone, Europe/Kyiv<`,
		"America/Argentina/Salta": `data-zone="America/Argentina/Salta">your time zone, America/Argentina/Salta<`,
		"Mars/Phobos":             `data-zone="">UTC<`,
	} {
		b := h.browse()
		if zone != "" {
			b.header.Set("Cookie", "zone="+zone)
		}
		b.get("/login").want(t, 200).says(t, "Times are in <span "+want)
	}
}

func TestPayoutPage_LiveFragment(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "order-1", 20_000_00)
	made := h.ask(seller, 600_00, "")
	page := "/dashboard/payouts/" + string(made.ID)
	seller.get(page).want(t, 200).says(t, "data-live", `<noscript><meta http-equiv="refresh"`)

	seller.header.Set("X-Fragment", "live")
	part := seller.get(page).want(t, 200).saysNot(t, "<html", "<title>")
	if part.header.Get("X-Fragment") == "" {
		t.Error("a part that is under way does not say so")
	}
	checkPage(t, "part", part)
	h.follow(made.ID, payout.Completed)
	if ended := seller.get(page).want(t, 200).says(t, "Paid to your bank account"); ended.header.Get("X-Fragment") != "" {
		t.Error("a part that is done says that it is under way")
	}
	seller.header.Del("X-Fragment")
	seller.get(page).want(t, 200).saysNot(t, "data-live", "<noscript>")
}
