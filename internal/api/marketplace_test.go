package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
)

func TestSaleStory(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	post := func(path, body string) answer {
		return h.do(call{method: "POST", path: "/api/marketplace/sales" + path, token: h.serviceKey, body: body})
	}
	sale := fmt.Sprintf(`{"saleId":"order/1 ü","sellerId":%q,"amount":1499.5,"occurredAt":"2026-11-20T15:00:00.5+05:30"}`, seller.id)
	const recorded = `{"success":true,"data":{"saleId":"order/1 ü","sellerId":"usr_X","amount":1499.5,"refundedAmount":0,"status":"pending",` +
		`"occurredAt":"2026-11-20T09:30:00.500Z","availableAt":"2026-11-23T09:30:00.500Z","releasedAt":null,"createdAt":"2026-11-20T09:30:00.123Z"}}`
	post("", sale).want(t, 201).wantBody(t, recorded)
	h.clock.advance(time.Second)
	post("", sale).want(t, 200).wantBody(t, recorded)
	post("", strings.Replace(sale, "1499.5", "1499.6", 1)).wantFailure(t, 409, "sale_conflict")
	const most = `{"saleId":"most%d","sellerId":%q,"amount":90071992547409.91,"occurredAt":"2026-11-20T09:30:00Z"}`
	other := h.signUp("Bina", auth.Seller)
	for i := range 128 { // as many of the greatest sales as the totals can count
		post("", fmt.Sprintf(most, i, other.id)).want(t, 201)
	}
	post("", fmt.Sprintf(most, 128, other.id)).wantFailure(t, 422, "total_too_large")
	post("", strings.Replace(sale, seller.id, "usr_000000000000000000000000", 1)).wantFailure(t, 404, "seller_not_found")

	const refundPath = "/order%2F1%20%C3%BC/refund"
	const refunded = `{"success":true,"data":{"refundId":"r1","amount":500,"createdAt":"2026-11-20T09:30:01.123Z","sale":{"saleId":"order/1 ü",` +
		`"sellerId":"usr_X","amount":1499.5,"refundedAmount":500,"status":"pending","occurredAt":"2026-11-20T09:30:00.500Z",` +
		`"availableAt":"2026-11-23T09:30:00.500Z","releasedAt":null,"createdAt":"2026-11-20T09:30:00.123Z"}}}`
	post(refundPath, `{"refundId":"r1","amount":5e2}`).want(t, 201).wantBody(t, refunded)
	post(refundPath, `{"refundId":"r1","amount":500}`).want(t, 200).wantBody(t, refunded)
	post(refundPath, `{"refundId":"r1","amount":501}`).wantFailure(t, 409, "refund_conflict")
	post(refundPath, `{"refundId":"r2","amount":999.51}`).wantFailure(t, 400, "refund_exceeds_sale")
	post("/nothing/refund", `{"refundId":"r1"}`).wantFailure(t, 404, "sale_not_found")
	post(refundPath, `{"refundId":"r3","amount":null}`).wantFailure(t, 400, "invalid_request", "amount") // which is not all that is left
	post(refundPath, `{"refundId":"r3","refundAmount":1}`).wantFailure(t, 400, "invalid_request", "refundAmount")
	if a := post(refundPath, `{"refundId":"r3"}`).want(t, 201); fmt.Sprint(a.read(t, "data.amount")) != "999.5" {
		t.Errorf("all that is left: %s", a.body)
	}
	post(refundPath, `{"refundId":"r4"}`).wantFailure(t, 400, "refund_exceeds_sale")

	keys, err := h.auth.ServiceKeys(t.Context())
	must(t, err)
	entries, err := h.db.Entries(t.Context(), seller.id, 0, 10)
	must(t, err)
	for _, e := range entries { // the sale and two refunds
		if e.Actor != keys[0].Actor() {
			t.Errorf("entry %d (%s) is by %s, want %s", e.Number, e.Type, e.Actor, keys[0].Actor())
		}
	}

	h.do(call{method: "PUT", path: "/api/marketplace/sellers/" + seller.id, token: h.serviceKey, body: `{"productsListed":7}`}).
		want(t, 200).wantBody(t, `{"success":true,"data":{"sellerId":"usr_X","externalId":null,"productsListed":7}}`)
	stats := h.do(call{method: "GET", path: "/api/auth/me", token: seller.token}).want(t, 200)
	if want := `"stats":{"totalSales":1,"totalEarnings":0,"productsListed":7}`; !strings.Contains(stats.body, want) {
		t.Errorf("%s lacks %s", stats.body, want)
	}
}

func TestMarketplaceRules(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	good := map[string]string{
		"saleId": `"s1"`, "sellerId": fmt.Sprintf("%q", seller.id), "amount": "10",
		"occurredAt": `"2026-11-20T09:30:00Z"`, "availableAt": `"2026-11-20T09:30:00Z"`,
	}
	tests := map[string]struct{ field, value string }{
		"no sale":             {"saleId", `""`},
		"endless sale":        {"saleId", `"` + strings.Repeat("s", 129) + `"`},
		"sale with NUL":       {"saleId", `"s\u00001"`},
		"no seller":           {"sellerId", `""`},
		"zero":                {"amount", `0`},
		"negative":            {"amount", `-1`},
		"too precise":         {"amount", `0.001`},
		"too much":            {"amount", `1e30`},
		"a date":              {"occurredAt", `"2026-11-20"`},
		"no zone":             {"occurredAt", `"2026-11-20T09:30:00"`},
		"no time":             {"occurredAt", `""`},
		"the year 1":          {"occurredAt", `"0001-01-01T00:00:00Z"`},
		"milliseconds":        {"occurredAt", `"58868-01-01T00:00:00Z"`},
		"a far future":        {"availableAt", `"9999-12-31T23:59:59Z"`},
		"no such day":         {"availableAt", `"2026-02-30T00:00:00Z"`},
		"available too early": {"availableAt", `"2026-11-20T09:29:59Z"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h.do(call{method: "POST", path: "/api/marketplace/sales", token: h.serviceKey, body: with(good, test.field, test.value)}).
				wantFailure(t, 422, "validation_failed", test.field)
		})
	}
	for name, value := range map[string]string{"negative": "-1", "half": "1.5", "exponent": "1e400", "too many": "9007199254740992"} {
		t.Run("products "+name, func(t *testing.T) {
			h.do(call{method: "PUT", path: "/api/marketplace/sellers/" + seller.id, token: h.serviceKey, body: `{"productsListed":` + value + `}`}).
				wantFailure(t, 422, "validation_failed", "productsListed")
		})
	}
	buyer := h.signUp("Bo", auth.Buyer)
	for _, unknown := range []string{"usr_000000000000000000000000", buyer.id, "x", "%00", "%ff"} {
		h.do(call{method: "PUT", path: "/api/marketplace/sellers/" + unknown, token: h.serviceKey, body: `{"productsListed":1}`}).
			wantFailure(t, 404, "seller_not_found")
	}
	for name, value := range map[string]string{"zero": "0", "negative": "-1", "too precise": "0.001", "far too precise": "1.234e-9223372036854775808"} {
		t.Run("refund of "+name, func(t *testing.T) {
			h.do(call{method: "POST", path: "/api/marketplace/sales/s1/refund", token: h.serviceKey, body: `{"refundId":"r","amount":` + value + `}`}).
				wantFailure(t, 422, "validation_failed", "amount")
		})
	}
	for _, unknown := range []string{"s2", "%00", "%ff"} {
		h.do(call{method: "POST", path: "/api/marketplace/sales/" + unknown + "/refund", token: h.serviceKey, body: `{"refundId":"r"}`}).
			wantFailure(t, 404, "sale_not_found")
	}
}
