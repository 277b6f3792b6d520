package api_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/payout"
)

// TestSelectPayouts lists, sums up and exports what an operator selects.
func TestSelectPayouts(t *testing.T) {
	h := openFixture(t)
	asha, vikram, admin := h.signUp("Asha", auth.Seller), h.signUp("Vikram", auth.Seller), h.signUp("Ada", auth.Admin)
	ids := map[string]string{}
	h.do(call{method: "PATCH", path: "/api/auth/me", token: vikram.token, body: `{"name":"=Vikram"}`}).want(t, 200)
	h.earn(asha, "s1", "9000")
	h.earn(vikram, "s2", "9000")
	h.withBank(asha, "6789")
	h.withBank(vikram, "6789")
	for _, p := range []struct {
		seller       user
		name, amount string
	}{{asha, "Asha", "700"}, {asha, "Asha", "600.5"}, {vikram, "=Vikram", "600.5"}, {vikram, "=Vikram", "700"}} {
		h.clock.advance(time.Second)
		id := h.request(p.seller, `{"amount":`+p.amount+`}`).want(t, 201).text(t, "data.payoutId")
		if len(ids) == 0 {
			h.work(t, id, payout.StatusCompleted)
		}
		ids[p.name+" "+p.amount] = id
	}
	find := func(query string) answer {
		return h.do(call{method: "GET", path: "/api/admin/payouts" + query, token: admin.token})
	}
	listed := func(a answer) (found []string) {
		for _, p := range a.want(t, 200).read(t, "data.payouts").([]any) {
			for name, id := range ids {
				if id == p.(map[string]any)["id"] {
					found = append(found, name)
				}
			}
		}
		return found
	}
	for query, want := range map[string][]string{
		"":                             {"=Vikram 700", "=Vikram 600.5", "Asha 600.5", "Asha 700"},
		"?status=all&sort=oldest":      {"Asha 700", "Asha 600.5", "=Vikram 600.5", "=Vikram 700"},
		"?sort=amount":                 {"=Vikram 700", "Asha 700", "=Vikram 600.5", "Asha 600.5"},
		"?state=completed":             {"Asha 700"},
		"?state=late":                  nil,
		"?status=processing&bank=hdfc": {"=Vikram 700", "=Vikram 600.5", "Asha 600.5"},
		"?sellerId=" + vikram.id + "&minAmount=600.51": {"=Vikram 700"},
		"?maxAmount=600.50":                            {"=Vikram 600.5", "Asha 600.5"},
		"?from=2026-11-20&to=2026-11-20":               {"=Vikram 700", "=Vikram 600.5", "Asha 600.5", "Asha 700"},
		"?from=2026-11-21":                             nil,
		"?date=completed&from=2026-11-20":              {"Asha 700"},
		"?date=ended&to=2026-11-19":                    nil,
		"?reason=gateway_not_configured":               nil,
		"?limit=1":                                     {"=Vikram 700"},
		"?limit=1&after=" + ids["=Vikram 600.5"]:       {"Asha 600.5"},
		"?sort=amount&after=" + ids["Asha 700"]:        {"=Vikram 600.5", "Asha 600.5"},
		"?sort=oldest&after=" + ids["=Vikram 700"]:     nil,
	} {
		if got := listed(find(query)); !slices.Equal(got, want) {
			t.Errorf("%s selects %v, want %v", query, got, want)
		}
	}
	page := find("?limit=2&status=processing").want(t, 200)
	if totals := page.read(t, "data.totals"); fmt.Sprint(totals) != "map[amount:1901 complete:true count:3 fee:0]" {
		t.Errorf("the totals are %v", totals)
	}
	if next := page.text(t, "data.next"); next != ids["=Vikram 600.5"] || find("?status=processing&limit=1&after="+next).read(t, "data.next") != nil {
		t.Errorf("the next page is %s", next)
	}

	file := find("?format=csv&sort=oldest&limit=1").want(t, 200)
	rows, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
	must(t, err)
	if len(rows) != 5 || rows[1][0] != ids["Asha 700"] || rows[1][3] != "700.00" || rows[1][8] != "completed" || rows[3][2] != "'=Vikram" ||
		strings.Contains(file.body, "1111") || file.header.Get("Content-Disposition") != `attachment; filename="payouts.csv"` {
		t.Errorf("the file is %v\n%s", file.header, file.body)
	}
	if !strings.Contains(h.log.String(), `"payouts exported","admin_id":"`+admin.id+`","rows":4`) {
		t.Errorf("the export is not in the log: %s", h.log)
	}
	if a := h.do(call{method: http.MethodHead, path: "/api/admin/payouts?format=csv", token: admin.token}); a.status != 200 || a.body != "" {
		t.Errorf("HEAD is answered with %d: %q", a.status, a.body)
	}
}

func TestSelectPayouts_BadInput(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	for query, field := range map[string]string{
		"status=done": "status", "state=gone": "state", "sellerId=asha": "sellerId", "date=never": "date", "from=tomorrow": "from", "to=2026-13-01": "to",
		"from=2026-11-21&to=2026-11-20": "to", "minAmount=x": "minAmount", "maxAmount=-1": "maxAmount", "minAmount=2&maxAmount=1": "maxAmount",
		"minAmount=1.005": "minAmount", "bank=HDFC0": "bank", "bank=%25": "bank", "reason=%00": "reason", "sort=best": "sort", "after=x": "after",
		"limit=0": "limit", "limit=101": "limit", "format=pdf": "format", "from=1999-12-31": "from", "state=late&state=late": "state",
		"format=csv&sort=best": "sort",
	} {
		h.do(call{method: "GET", path: "/api/admin/payouts?" + query, token: admin.token}).wantFailure(t, 422, "validation_failed", field)
	}
	h.do(call{method: "GET", path: "/api/admin/payouts?state=%zz", token: admin.token}).wantFailure(t, 400, "invalid_query")
	for _, query := range []string{"", "?format=csv"} {
		h.do(call{method: "GET", path: "/api/admin/payouts" + query, token: seller.token}).wantFailure(t, 403, "forbidden")
		h.do(call{method: "GET", path: "/api/admin/payouts" + query}).wantFailure(t, 401, "invalid_token")
	}
}
