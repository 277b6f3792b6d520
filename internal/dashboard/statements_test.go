package dashboard_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/proof"
)

// TestStatementsPage_Downloads follows each link of the page as a browser does, and checks the files.
func TestStatementsPage_Downloads(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	const page = "/dashboard/payouts/statements"
	seller.get("/dashboard/payouts").says(t, `href="`+page+`"`)
	seller.get(page).want(t, http.StatusOK).reads(t, "No statements yet").saysNot(t, "/api/payouts/statement")

	h.earn(seller, "order-1", 20_000_00)
	text := seller.get(page).want(t, http.StatusOK).reads(t, "November 2026 so far", "bursar verify statement.csv --key").body
	links := regexp.MustCompile(`href="(/api/payouts/statement[^"]*)"`).FindAllStringSubmatch(text, -1)
	if len(links) != 2 {
		t.Fatalf("there are %d links, want one of each format for the month since the seller joined: %s", len(links), text)
	}
	for _, link := range links {
		h.wantStatement(t, seller, html.UnescapeString(link[1]))
	}
	checkPage(t, page, seller.get(page))
	printed := html.UnescapeString(regexp.MustCompile(`href="(/dashboard/payouts/statements/print[^"]*)"`).FindStringSubmatch(text)[1])
	seller.get(printed).want(t, http.StatusOK).reads(t, "Sunday, 1 November 2026 to Monday, 30 November 2026", "Asha Rao")
	if to := seller.get(page+"?from=2026-11-01&to=2026-11-20&format=print").want(t, http.StatusSeeOther).header.Get("Location"); to != "/dashboard/payouts/statements/print?from=2026-11-01&to=2026-11-20" {
		t.Errorf("the form leads to %s", to)
	}
	seller.get("/dashboard/payouts/statements/print?from=2026-11-20&to=2026-11-01").leadsTo(t, page+"?format=print&from=2026-11-20&to=2026-11-01")
	h.wantStatement(t, seller, seller.get(page+"?from=2026-11-01&to=2026-11-20&format=csv").leadsToFile(t))
	seller.get(page+"?from=2026-11-20&to=2026-11-01&format=json").want(t, http.StatusUnprocessableEntity).
		reads(t, "Last day must be after the start of the period").says(t, `value="2026-11-20"`)
	seller.get(page+"?from=yesterday&to=&format=csv").want(t, http.StatusUnprocessableEntity).reads(t, "First day must be a day such as")
}

// TestStatementZone_NotTheViewers says of which zone the days are, because the times are of the viewer's. A statement on paper has times of the same zone.
func TestStatementZone_NotTheViewers(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha Rao", auth.Seller)
	h.earn(seller, "order-1", 20_000_00)
	seller.client.Jar.SetCookies(mustURL(t, h.server.URL), []*http.Cookie{{Name: "zone", Value: "Asia/Kolkata", Path: "/"}})
	const page, footer = "/dashboard/payouts/statements", "Times are in your time zone, Asia/Kolkata . Days and months of figures and statements begin at midnight in UTC."
	seller.get(page).want(t, http.StatusOK).reads(t, "Months begin and end at midnight in UTC.", "Days begin and end at midnight in UTC.", footer)
	seller.get(page+"/print?from=2026-11-01&to=2026-11-30").want(t, http.StatusOK).
		reads(t, "Times are in UTC. The signed CSV", "Times are in UTC . Days and months")
}

// leadsToFile is the file that an answer leads to.
func (a answer) leadsToFile(t *testing.T) string {
	t.Helper()
	to := a.want(t, http.StatusSeeOther).header.Get("Location")
	if !strings.HasPrefix(to, "/api/payouts/statement?") {
		t.Fatalf("it leads to %s", to)
	}
	return to
}

// wantStatement wants a file that proves itself, to be kept and not shown.
func (h *fixture) wantStatement(t *testing.T, seller person, path string) {
	t.Helper()
	a := seller.get(path).want(t, http.StatusOK)
	if got := a.header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment; ") {
		t.Errorf("%s is %q, want an attachment", path, got)
	}
	v, err := proof.Verify(strings.NewReader(a.body), nil)
	if err != nil || len(v.Problems) > 0 || v.Entries != 2 {
		t.Errorf("%s proves %d entries, %v, %v: %s", path, v.Entries, v.Problems, err, a.body)
	}
}
