package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bursar/internal/api"
	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/money"
	"bursar/internal/payout"
)

func TestBalanceOfANewSeller(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.do(call{method: "GET", path: "/api/payouts/balance", token: seller.token}).want(t, 200).wantBody(t,
		`{"success":true,"data":{"availableBalance":0,"pendingBalance":0,"totalEarnings":0,"totalWithdrawn":0,"currency":"INR",`+
			`"minimumPayout":500,"earnings":{"thisMonth":0,"lastMonth":0,"totalSales":0},`+
			`"bankAccount":{"isVerified":false,"accountNumber":"","ifsc":""}}}`)
}

// TestTamperedRecords expects a conflict that changes nothing, wherever the stored records are not the service's own.
func TestTamperedRecords(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.earn(seller, "s1", "1499.55")
	h.withBank(seller, "6789")
	request := call{method: "POST", path: "/api/payouts/request", token: seller.token, body: `{"amount":600}`, header: header("Idempotency-Key", "k1")}
	first := h.do(call{method: "POST", path: "/api/payouts/request", token: seller.token, body: `{"amount":500}`}).want(t, 201).text(t, "data.payoutId")
	cancel := call{method: "POST", path: "/api/payouts/" + first + "/cancel", token: seller.token}

	h.place.ByHand(t, `UPDATE payouts SET amount = amount + 1`)
	h.do(cancel).wantFailure(t, 409, "payout_tampered")
	h.place.ByHand(t, `UPDATE payouts SET amount = amount - 1`)

	h.place.ByHand(t, `UPDATE journals SET available = available + 100000`)
	h.do(request).wantFailure(t, 409, "records_tampered")
	h.do(cancel).wantFailure(t, 409, "records_tampered") // the payout itself is as it was
	sale := func(path, body string) call {
		return call{method: "POST", path: "/api/marketplace/sales" + path, token: h.serviceKey, body: body}
	}
	h.do(sale("", `{"saleId":"s2","sellerId":"`+seller.id+`","amount":10,"occurredAt":"2026-11-20T09:30:00Z"}`)).wantFailure(t, 409, "records_tampered")
	h.do(sale("/s1/refund", `{"refundId":"r1"}`)).wantFailure(t, 409, "records_tampered")
	h.place.ByHand(t, `UPDATE journals SET available = available - 100000`)

	h.do(request).want(t, 201) // the key kept no conflict
	h.do(cancel).want(t, 200)
}

func TestPayoutStory(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.earn(seller, "s1", "1499.55")
	h.withBank(seller, "6789")

	requested := h.request(seller, `{"amount":600.5,"notes":"November\nrent & <more>"}`)
	requested.want(t, 201).wantBody(t, `{"success":true,"message":"Your payout was requested, and its amount is reserved.","data":{"payoutId":"pyt_X","amount":600.5,`+
		`"status":"processing","estimatedArrival":"2026-11-20T09:35:30.123Z","accountNumber":"****6789","requestedAt":"2026-11-20T09:30:00.123Z"}}`)
	id := requested.text(t, "data.payoutId")

	h.do(call{method: "GET", path: "/api/payouts/balance", token: seller.token}).wantBody(t,
		`{"success":true,"data":{"availableBalance":899.05,"pendingBalance":0,"totalEarnings":1499.55,"totalWithdrawn":0,"currency":"INR",`+
			`"minimumPayout":500,"earnings":{"thisMonth":1499.55,"lastMonth":0,"totalSales":1},`+
			`"bankAccount":{"isVerified":true,"accountNumber":"****6789","ifsc":"HDFC0000053"}}}`)
	h.do(call{method: "GET", path: "/api/payouts/" + id, token: seller.token}).want(t, 200).wantBody(t,
		`{"success":true,"data":{"id":"pyt_X","sellerId":"usr_X","amount":600.5,"fee":0,"netAmount":600.5,"status":"processing",`+
			`"bankAccount":{"accountNumber":"****6789","ifsc":"HDFC0000053","accountHolder":"Asha Rao"},`+
			`"requestedAt":"2026-11-20T09:30:00.123Z","processedAt":null,"completedAt":null,"utr":null,`+
			`"notes":"November\nrent & <more>","gatewayPayoutId":null,"failureReason":null,"source":"seller"}}`)
	h.do(call{method: "GET", path: "/api/payouts/history", token: seller.token}).want(t, 200).wantBody(t,
		`{"success":true,"data":{"payouts":[{"id":"pyt_X","amount":600.5,"status":"processing","accountNumber":"****6789",`+
			`"requestedAt":"2026-11-20T09:30:00.123Z","estimatedArrival":"2026-11-20T09:35:30.123Z"}],`+
			`"pagination":{"currentPage":1,"totalPages":1,"totalItems":1,"itemsPerPage":10}}}`)

	cancel := call{method: "POST", path: "/api/payouts/" + id + "/cancel", token: seller.token}
	h.do(cancel).want(t, 200).wantBody(t, `{"success":true,"message":"The payout is cancelled. Its amount is back in your balance.",`+
		`"data":{"payoutId":"pyt_X","status":"cancelled","refundedAmount":600.5}}`)
	h.do(cancel).wantFailure(t, 400, "payout_not_cancellable")
	h.do(call{method: "GET", path: "/api/payouts/history?status=cancelled", token: seller.token}).want(t, 200).wantBody(t,
		`{"success":true,"data":{"payouts":[{"id":"pyt_X","amount":600.5,"status":"cancelled","accountNumber":"****6789",`+
			`"requestedAt":"2026-11-20T09:30:00.123Z"}],"pagination":{"currentPage":1,"totalPages":1,"totalItems":1,"itemsPerPage":10}}}`)
	h.do(call{method: "GET", path: "/api/payouts/" + id + "/events", token: seller.token}).want(t, 200).wantBody(t,
		`{"success":true,"data":{"events":[`+
			`{"at":"2026-11-20T09:30:00.123Z","from":"waiting","to":"cancelled","reason":null}]}}`)
	if balance := h.do(call{method: "GET", path: "/api/payouts/balance", token: seller.token}); fmt.Sprint(balance.read(t, "data.availableBalance")) != "1499.55" {
		t.Errorf("after cancelling: %s", balance.body)
	}
}

// TestPayout_PaidAndFailedByGateway sends a payout to each outcome at the gateway, and checks how the API shows it.
func TestPayout_PaidAndFailedByGateway(t *testing.T) {
	h := openFixture(t)
	tests := map[string]struct{ last4, status, want string }{
		"paid":   {"6789", "completed", `"processedAt":"T","completedAt":"T","utr":"U","notes":null,"gatewayPayoutId":"G","failureReason":null,"source":"seller"}`},
		"failed": {"0002", "failed", `"processedAt":"T","completedAt":null,"utr":null,"notes":null,"gatewayPayoutId":"G","failureReason":"R","source":"seller"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			seller := h.signUp("Asha"+test.last4, auth.Seller)
			h.earn(seller, "s"+test.last4, "1000")
			h.withBank(seller, test.last4)
			id := h.request(seller, `{"amount":1000}`).want(t, 201).text(t, "data.payoutId")
			h.work(t, id, payout.Status(test.status))

			detail := h.do(call{method: "GET", path: "/api/payouts/" + id, token: seller.token}).want(t, 200)
			if got := detail.text(t, "data.status"); got != test.status {
				t.Fatalf("status %s, want %s", got, test.status)
			}
			blanked := blank(detail.body)
			for field, mark := range map[string]string{"processedAt": "T", "completedAt": "T", "utr": "U", "gatewayPayoutId": "G", "failureReason": "R"} {
				if s, ok := detail.read(t, "data."+field).(string); ok {
					blanked = strings.Replace(blanked, fmt.Sprintf("%q:%q", field, s), fmt.Sprintf("%q:%q", field, mark), 1)
				}
			}
			if !strings.Contains(blanked, test.want) {
				t.Errorf("detail\n%s\nlacks\n%s", blanked, test.want)
			}
			item := h.do(call{method: "GET", path: "/api/payouts/history?status=" + test.status, token: seller.token}).want(t, 200)
			completed := strings.Contains(item.body, `"completedAt":"`) && strings.Contains(item.body, `"utr":"`)
			if completed != (test.status == "completed") || strings.Contains(item.body, "estimatedArrival") {
				t.Errorf("history item %s", item.body)
			}
			h.do(call{method: "POST", path: "/api/payouts/" + id + "/cancel", token: seller.token}).wantFailure(t, 400, "payout_not_cancellable")
		})
	}
}

// work takes steps until the payout has the status, moving the clock along.
func (h *fixture) work(t *testing.T, id string, want payout.Status) {
	t.Helper()
	ctx := t.Context()
	for range 200 {
		due, err := h.payouts.LeaseDue(ctx, 10)
		must(t, err)
		for _, d := range due {
			if err := h.payouts.Step(ctx, d); err != nil {
				t.Logf("step: %v", err)
			}
		}
		p, err := h.payouts.Payout(ctx, payout.Caller{Admin: true}, payout.ID(id))
		must(t, err)
		if p.Status() == want {
			return
		}
		h.clock.advance(5 * time.Second)
		time.Sleep(5 * time.Millisecond) // the sandbox settles in its own time
	}
	t.Fatalf("payout %s never became %s", id, want)
}

func TestRequestRules(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.earn(seller, "s1", "1e6")
	h.withBank(seller, "6789")
	tests := map[string]struct {
		body    string
		details []string
	}{
		"below the minimum":       {`{"amount":499.99}`, []string{"amount"}},
		"zero":                    {`{"amount":0}`, []string{"amount"}},
		"zero with an exponent":   {`{"amount":0e99}`, []string{"amount"}},
		"negative":                {`{"amount":-600}`, []string{"amount"}},
		"three decimals":          {`{"amount":600.005}`, []string{"amount"}},
		"a tiny bit too much":     {`{"amount":600.0000000000000000000000001}`, []string{"amount"}},
		"a tiny exponent":         {`{"amount":1e-400}`, []string{"amount"}},
		"beyond all money":        {`{"amount":1e30}`, []string{"amount"}},
		"beyond all exponents":    {`{"amount":1e999999999999999999999}`, []string{"amount"}},
		"beyond 2^53 minor units": {`{"amount":90071992547409.92}`, []string{"amount"}},
		"long notes":              {`{"amount":600,"notes":"` + strings.Repeat("é", 1001) + `"}`, []string{"notes"}},
		"notes with NUL":          {`{"amount":600,"notes":"a\u0000b"}`, []string{"notes"}},
		"notes with an escape":    {`{"amount":600,"notes":"\u001b[31m"}`, []string{"notes"}},
		"both":                    {`{"amount":1,"notes":"\u0007"}`, []string{"amount", "notes"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h.request(seller, test.body).wantFailure(t, 422, "validation_failed", test.details...)
		})
	}
	accepted := map[string]struct{ amount, want string }{
		"the minimum":       {"500", "500"},
		"an exponent":       {"1e3", "1000"},
		"a capital one":     {"6.005E2", "600.5"},
		"zeros at the end":  {"600.5000000000000000000000", "600.5"},
		"a minor unit":      {"1000.01", "1000.01"},
		"what floats can't": {"8399.95", "8399.95"},
	}
	for name, test := range accepted {
		t.Run(name, func(t *testing.T) {
			a := h.request(seller, `{"amount":`+test.amount+`,"notes":"`+strings.Repeat("é", 1000)+`","sellerId":"usr_x","fee":9}`).want(t, 201)
			if got := fmt.Sprint(a.read(t, "data.amount")); got != test.want {
				t.Errorf("amount %s, want %s", got, test.want)
			}
		})
	}
}

func TestRequestChecksInOrder(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.request(seller, `{"amount":1}`).wantFailure(t, 422, "validation_failed", "amount")
	h.request(seller, `{"amount":600}`).wantFailure(t, 400, "bank_account_not_verified")
	account := h.do(call{
		method: "PUT", path: "/api/bank-account", token: seller.token,
		body: `{"accountHolder":"Asha Rao","accountNumber":"50100123456789","ifsc":"HDFC0000053"}`,
	}).want(t, 200)
	h.request(seller, `{"amount":600}`).wantFailure(t, 400, "bank_account_not_verified")
	_, err := h.bank.Resolve(t.Context(), decision.By{Admin: "usr_an_admin"}, bank.ID(account.text(t, "data.id")), bank.Verdict{Verified: true})
	must(t, err)
	h.earn(seller, "s1", "550.25")
	f := h.request(seller, `{"amount":600}`).wantFailure(t, 400, "insufficient_balance")
	if !strings.Contains(f.Error, "550.25") {
		t.Errorf("the message names no balance: %s", f.Error)
	}
}

func TestIdempotencyKeys(t *testing.T) {
	h := openFixture(t)
	seller, other := h.signUp("Asha", auth.Seller), h.signUp("Ravi", auth.Seller)
	for i, u := range []user{seller, other} {
		h.earn(u, fmt.Sprint("s", i), "5000")
		h.withBank(u, "6789")
	}
	request := func(u user, key, body string) answer {
		return h.do(call{method: "POST", path: "/api/payouts/request", token: u.token, body: body, header: header("Idempotency-Key", key)})
	}
	same := func(t *testing.T, first, second answer) {
		t.Helper()
		if first.status != second.status || first.body != second.body {
			t.Errorf("the repeat differs:\n%d %s\n%d %s", first.status, first.body, second.status, second.body)
		}
		if got := first.header.Get("Idempotent-Replayed") + second.header.Get("Idempotent-Replayed"); got != "true" {
			t.Errorf("Idempotent-Replayed %q", got)
		}
	}
	first := request(seller, "k1", `{"amount":600,"notes":"a"}`).want(t, 201)
	h.clock.advance(time.Hour)
	same(t, first, request(seller, "k1", ` {"notes":"a", "amount":6e2} `))

	t.Run("another body", func(t *testing.T) {
		a := request(seller, "k1", `{"amount":601,"notes":"a"}`)
		a.wantFailure(t, 422, "idempotency_key_reused")
		if a.header.Get("Idempotent-Replayed") != "" {
			t.Error("said to be replayed")
		}
	})
	t.Run("another user", func(t *testing.T) {
		a := request(other, "k1", `{"amount":601}`).want(t, 201)
		if a.text(t, "data.payoutId") == first.text(t, "data.payoutId") {
			t.Error("the same payout")
		}
	})
	t.Run("no key", func(t *testing.T) {
		a, b := h.request(other, `{"amount":602}`).want(t, 201), h.request(other, `{"amount":602}`).want(t, 201)
		if a.text(t, "data.payoutId") == b.text(t, "data.payoutId") {
			t.Error("the same payout")
		}
	})
	t.Run("a refusal", func(t *testing.T) {
		refused := request(seller, "k2", `{"amount":600000}`)
		refused.wantFailure(t, 400, "insufficient_balance")
		h.earn(seller, "more", "999999")
		same(t, refused, request(seller, "k2", `{"amount":600000}`))
	})
	t.Run("a body that was refused", func(t *testing.T) {
		request(seller, "k3", `{"amount":1}`).wantFailure(t, 422, "validation_failed", "amount")
		request(seller, "k3", `{"amount":600}`).want(t, 201)
	})
	t.Run("cancel", func(t *testing.T) {
		cancel := call{method: "POST", path: "/api/payouts/" + first.text(t, "data.payoutId") + "/cancel", token: seller.token, header: header("Idempotency-Key", "k4")}
		cancelled := h.do(cancel).want(t, 200)
		same(t, cancelled, h.do(cancel))
		same(t, first, request(seller, "k1", `{"amount":600,"notes":"a"}`)) // as it was, not as it is
		cancel.header = header("Idempotency-Key", "k1")
		h.do(cancel).wantFailure(t, 422, "idempotency_key_reused")
	})
	bad := map[string]string{"empty": "", "long": strings.Repeat("x", 256), "not ASCII": "schlüssel", "a tab": "a\tb"}
	for name, key := range bad {
		t.Run(name, func(t *testing.T) {
			request(seller, key, `{"amount":1}`).wantFailure(t, 422, "validation_failed", "Idempotency-Key", "amount")
		})
	}
	request(seller, strings.Repeat("~", 255), `{"amount":700}`).want(t, 201)
	h.options.Payouts = underMinimum{h.payouts, 800_00}
	h.reopen()
	t.Run("under a minimum that was raised since", func(t *testing.T) { same(t, first, request(seller, "k1", `{"amount":600,"notes":"a"}`)) })
}

// underMinimum is payouts whose minimum was changed.
type underMinimum struct {
	api.Payouts
	minimum money.Amount
}

func (u underMinimum) Minimum() money.Amount { return u.minimum }

func TestPayoutsOfOthers(t *testing.T) {
	h := openFixture(t)
	seller, other, admin := h.signUp("Asha", auth.Seller), h.signUp("Ravi", auth.Seller), h.signUp("Ada", auth.Admin)
	h.earn(seller, "s1", "5000")
	h.withBank(seller, "6789")
	id := h.request(seller, `{"amount":600}`).want(t, 201).text(t, "data.payoutId")

	for _, c := range []call{
		{method: "GET", path: "/api/payouts/" + id},
		{method: "GET", path: "/api/payouts/" + id + "/events"},
		{method: "POST", path: "/api/payouts/" + id + "/cancel"},
	} {
		c.token = other.token
		h.do(c).wantFailure(t, 404, "payout_not_found")
	}
	for _, unknown := range []string{"pyt_000000000000000000000000", "pyt_", "x", id + "x", strings.ToLower(id), "%00", "..%2Fbalance", "usr_" + id[4:]} {
		if unknown == id {
			continue
		}
		for _, c := range []call{
			{method: "GET", path: "/api/payouts/" + unknown},
			{method: "GET", path: "/api/payouts/" + unknown + "/events"},
			{method: "POST", path: "/api/payouts/" + unknown + "/cancel"},
		} {
			c.token = seller.token
			h.do(c).wantFailure(t, 404, "payout_not_found")
		}
	}
	list := func(u user, query string) answer {
		return h.do(call{method: "GET", path: "/api/payouts/history" + query, token: u.token}).want(t, 200)
	}
	for name, test := range map[string]struct {
		who   user
		query string
		want  string
	}{
		"the seller":             {seller, "", "1"},
		"another seller":         {other, "", "0"},
		"another seller's trick": {other, "?sellerId=" + seller.id, "0"},
		"an admin":               {admin, "", "1"},
		"an admin, by seller":    {admin, "?sellerId=" + seller.id, "1"},
		"an admin, by another":   {admin, "?sellerId=" + other.id, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(list(test.who, test.query).read(t, "data.pagination.totalItems")); got != test.want {
				t.Errorf("%s payouts, want %s", got, test.want)
			}
		})
	}
	if got := list(admin, "").text(t, "data.payouts.0.sellerId"); got != seller.id {
		t.Errorf("an admin sees the seller %q", got)
	}
	h.do(call{method: "GET", path: "/api/payouts/" + id, token: admin.token}).want(t, 200)
	h.do(call{method: "POST", path: "/api/payouts/" + id + "/cancel", token: admin.token}).want(t, 200)
}

func TestHistoryPages(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.earn(seller, "s1", "50000")
	h.withBank(seller, "6789")
	var ids []string
	for i := range 12 {
		h.clock.advance(time.Second)
		a := h.request(seller, fmt.Sprintf(`{"amount":%d}`, 600+i)).want(t, 201)
		ids = append([]string{a.text(t, "data.payoutId")}, ids...)
	}
	pages := map[string]struct {
		query string
		want  []string
		pages string
	}{
		"default":      {"", ids[:10], `"pagination":{"currentPage":1,"totalPages":2,"totalItems":12,"itemsPerPage":10}`},
		"second":       {"?page=2", ids[10:], `"pagination":{"currentPage":2,"totalPages":2,"totalItems":12,"itemsPerPage":10}`},
		"past the end": {"?page=3", nil, `"payouts":[],"pagination":{"currentPage":3,"totalPages":2,"totalItems":12,"itemsPerPage":10}`},
		"far past it":  {"?page=10000000&limit=50", nil, `"pagination":{"currentPage":10000000,"totalPages":1,"totalItems":12,"itemsPerPage":50}`},
		"five":         {"?limit=5&page=2", ids[5:10], `"pagination":{"currentPage":2,"totalPages":3,"totalItems":12,"itemsPerPage":5}`},
		"all":          {"?status=all&limit=50", ids, `"pagination":{"currentPage":1,"totalPages":1,"totalItems":12,"itemsPerPage":50}`},
		"processing":   {"?status=processing&limit=50", ids, `"totalItems":12`},
		"completed":    {"?status=completed", nil, `"payouts":[],"pagination":{"currentPage":1,"totalPages":0,"totalItems":0,"itemsPerPage":10}`},
		"failed":       {"?status=failed", nil, `"totalItems":0`},
		"unknown name": {"?colour=red", ids[:10], `"totalItems":12`},
	}
	for name, test := range pages {
		t.Run(name, func(t *testing.T) {
			a := h.do(call{method: "GET", path: "/api/payouts/history" + test.query, token: seller.token}).want(t, 200)
			if !strings.Contains(a.body, test.pages) {
				t.Errorf("%s\nlacks %s", a.body, test.pages)
			}
			last := -1
			for _, id := range test.want {
				at := strings.Index(a.body, id)
				if at <= last {
					t.Errorf("%s is missing or out of order", id)
				}
				last = at
			}
			if got := strings.Count(a.body, `"id":`); got != len(test.want) {
				t.Errorf("%d items, want %d", got, len(test.want))
			}
		})
	}
	bad := map[string]string{
		"?page=0": "page", "?page=-1": "page", "?page=x": "page", "?page=1.5": "page", "?page=": "page", "?page=1e1": "page",
		"?page=%2B1": "page", "?page=99999999999999999999": "page", "?page=1&page=2": "page",
		"?limit=0": "limit", "?limit=51": "limit", "?limit=-1": "limit", "?limit=ten": "limit",
		"?status=": "status", "?status=COMPLETED": "status", "?status=returned": "status", "?status=x": "status",
		"?sellerId=": "sellerId", "?sellerId=x": "sellerId", "?sellerId=%00": "sellerId",
	}
	for query, field := range bad {
		t.Run(query, func(t *testing.T) {
			h.do(call{method: "GET", path: "/api/payouts/history" + query, token: seller.token}).wantFailure(t, 422, "validation_failed", field)
		})
	}
	h.do(call{method: "GET", path: "/api/payouts/history?page=0&limit=0&status=x&sellerId=x", token: seller.token}).
		wantFailure(t, 422, "validation_failed", "page", "limit", "status", "sellerId")
	h.do(call{method: "GET", path: "/api/payouts/history?page=%zz", token: seller.token}).wantFailure(t, 400, "invalid_query")
}
