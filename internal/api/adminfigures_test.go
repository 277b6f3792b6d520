package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/payout"
)

// TestFigures has payouts end on two days, and compares the figures with the lists that they stand for.
func TestFigures(t *testing.T) {
	h := openFixture(t)
	asha, vikram, admin := h.signUp("Asha", auth.Seller), h.signUp("Vikram", auth.Seller), h.signUp("Ada", auth.Admin)
	for seller, last4 := range map[user]string{asha: "6789", vikram: "0002"} {
		h.earn(seller, "s"+last4, "90000")
		h.withBank(seller, last4)
	}
	ask := func(seller user, amount string) string {
		return h.request(seller, `{"amount":`+amount+`}`).want(t, 201).text(t, "data.payoutId")
	}
	get := func(path string) answer { return h.do(call{method: "GET", path: path, token: admin.token}) }
	figures := func(period, part string) string {
		return fmt.Sprint(get("/api/admin/figures?period="+period).want(t, 200).read(t, "data."+part))
	}
	if got := figures("30days", "banks"); got != "[]" {
		t.Errorf("before any payout the banks are %s", got)
	}
	h.work(t, ask(asha, "1000"), payout.StatusCompleted)
	h.work(t, ask(vikram, "700"), payout.StatusFailed)
	day := h.clock.Now()
	if got := figures("today", "paid"); got != "map[30days:map[amount:1000 count:1] 7days:map[amount:1000 count:1] today:map[amount:1000 count:1]]" {
		t.Errorf("paid on the first day: %s", got)
	}
	h.clock.advance(24 * time.Hour)
	for range 2 { // the second time, yesterday is known
		if got := figures("yesterday", "banks"); got != "[map[bank:HDFC failed:map[amount:700 count:1] failureRate:0.500 paid:map[amount:1000 count:1]]]" {
			t.Errorf("the banks are %s", got)
		}
	}
	h.work(t, ask(asha, "500.5"), payout.StatusCompleted)
	waits := ask(asha, "600")
	for part, want := range map[string]string{
		"paid":            "map[30days:map[amount:1500.5 count:2] 7days:map[amount:1500.5 count:2] today:map[amount:500.5 count:1]]",
		"failedYesterday": "map[amount:700 count:1]",
		"inTransit":       "map[amount:600 count:1]",
		"oldestOpen":      "map[payoutId:" + waits + " requestedAt:" + strings.Replace(h.clock.Now().Format("2006-01-02T15:04:05.000Z"), "+", "", 1) + "]",
		"period":          fmt.Sprintf("map[from:%s name:yesterday to:%[1]s]", day.Format(time.DateOnly)),
		"days.29":         fmt.Sprintf("map[day:%s failed:map[amount:0 count:0] paid:map[amount:500.5 count:1]]", day.AddDate(0, 0, 1).Format(time.DateOnly)),
		"days.28":         fmt.Sprintf("map[day:%s failed:map[amount:700 count:1] paid:map[amount:1000 count:1]]", day.Format(time.DateOnly)),
		"days.27":         fmt.Sprintf("map[day:%s failed:map[amount:0 count:0] paid:map[amount:0 count:0]]", day.AddDate(0, 0, -1).Format(time.DateOnly)),
	} {
		if got := figures("yesterday", part); got != want {
			t.Errorf("%s is %s, want %s", part, got, want)
		}
	}
	days := "&from=" + day.Format(time.DateOnly) + "&to=" + day.Format(time.DateOnly)
	code := get("/api/admin/figures").want(t, 200).text(t, "data.reasons.0.code")
	for query, want := range map[string]string{
		"bank=HDFC&date=completed": "1000", "bank=HDFC&status=failed&date=ended": "700", "status=failed&date=ended&reason=" + code: "700",
	} {
		if got := fmt.Sprint(get("/api/admin/payouts?"+query+days).want(t, 200).read(t, "data.totals.amount")); got != want {
			t.Errorf("%s lists %s, want %s", query, got, want)
		}
	}
	h.do(call{method: "GET", path: "/api/admin/figures?period=year", token: admin.token}).wantFailure(t, 422, "validation_failed", "period")
	h.do(call{method: "GET", path: "/api/admin/figures", token: asha.token}).wantFailure(t, 403, "forbidden")
	h.do(call{method: "GET", path: "/api/admin/figures"}).wantFailure(t, 401, "invalid_token")
}
