package api_test

import (
	"net/url"
	"strings"
	"testing"

	"bursar/internal/auth"
)

// TestSearch finds users, payouts, bank accounts and sales.
func TestSearch(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	h.earn(seller, "s1", "9000")
	h.withBank(seller, "6789")
	id := h.request(seller, `{"amount":600.5}`).want(t, 201).text(t, "data.payoutId")
	find := func(query string) answer {
		return h.do(call{method: "GET", path: "/api/admin/search?q=" + url.QueryEscape(query), token: admin.token})
	}
	whose := `"sellerId":"usr_X","sellerName":"Asha"`
	found := `{"success":true,"data":{"users":[USERS],"payouts":[PAYOUTS],"bankAccounts":[ACCOUNTS],"sales":[SALES]}}`
	for query, want := range map[string][2]string{
		"aSH": {"USERS", `{"id":"usr_X","name":"Asha","email":"asha@example.com","role":"seller","suspended":false,"externalId":null}`},
		id[10:]: {"PAYOUTS", `{` + whose + `,"id":"pyt_X","amount":600.5,"status":"processing","state":"waiting","accountNumber":"****6789",` +
			`"requestedAt":"2026-11-20T09:30:00.123Z","utr":null,"gatewayPayoutId":null}`},
		"s1": {"SALES", `{` + whose + `,"saleId":"s1","amount":9000,"refundedAmount":0,"occurredAt":"2026-11-20T09:30:00.123Z"}`},
		"no": {"", ""},
	} {
		body := found
		for _, kind := range []string{"USERS", "PAYOUTS", "ACCOUNTS", "SALES"} {
			if kind == want[0] {
				body = strings.Replace(body, kind, want[1], 1)
			} else {
				body = strings.Replace(body, kind, "", 1)
			}
		}
		find(query).want(t, 200).wantBody(t, body)
	}
	accounts := find("6789").want(t, 200).read(t, "data.bankAccounts").([]any)
	if a := accounts[0].(map[string]any); len(accounts) != 1 || a["accountNumber"] != "****6789" || a["status"] != "verified" || a["current"] != true {
		t.Errorf("found %v", accounts)
	}
	for _, query := range []string{"", "\x00", strings.Repeat("x", 255)} {
		find(query).wantFailure(t, 422, "validation_failed", "q")
	}
	h.do(call{method: "GET", path: "/api/admin/search?q=asha", token: seller.token}).wantFailure(t, 403, "forbidden")
	h.do(call{method: "GET", path: "/api/admin/search?q=asha"}).wantFailure(t, 401, "invalid_token")
}
