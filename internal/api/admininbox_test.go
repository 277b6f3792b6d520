package api_test

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
)

// TestInbox lists what waits, claims it, and asks the gateway about it.
func TestInbox(t *testing.T) {
	h := openFixture(t)
	seller, admin, other := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin), h.signUp("Bela", auth.Admin)
	h.earn(seller, "s1", "9000")
	h.withBank(seller, "6789")
	id := h.request(seller, `{"amount":600.5}`).want(t, 201).text(t, "data.payoutId")
	get := func(path string) answer { return h.do(call{method: "GET", path: path, token: admin.token}) }
	post := func(by user, path, body string) answer {
		return h.do(call{method: "POST", path: "/api/admin/inbox/" + path, token: by.token, body: body})
	}
	if tasks := get("/api/admin/inbox").want(t, 200).read(t, "data.tasks"); len(tasks.([]any)) != 0 {
		t.Errorf("before anything waits there are %v", tasks)
	}
	post(admin, id+"/claim", "").wantFailure(t, 404, "task_not_found")
	h.clock.advance(4 * 24 * time.Hour)
	task := func() string { return fmt.Sprint(get("/api/admin/inbox?kind=late").want(t, 200).read(t, "data.tasks")) }
	want := "[map[amount:600.5 claim:%s kind:late sellerId:" + seller.id + " sellerName:Asha since:2026-11-20T09:35:30.123Z subject:" + id + "]]"
	if got := task(); got != fmt.Sprintf(want, "<nil>") {
		t.Errorf("late is %s", got)
	}
	if counts := get("/api/admin/inbox?kind=unknown").want(t, 200).read(t, "data"); !strings.Contains(fmt.Sprint(counts), "late:1") || !strings.Contains(fmt.Sprint(counts), "tasks:[]") {
		t.Errorf("the unknown ones are %v", counts)
	}
	post(admin, id+"/claim", "").want(t, 200)
	post(admin, id+"/claim", "").want(t, 200)
	post(other, id+"/claim", "").wantFailure(t, 409, "task_claimed")
	post(other, id+"/release", "").wantFailure(t, 409, "task_not_claimed")
	if got := task(); got != fmt.Sprintf(want, "map[adminId:"+admin.id+" adminName:Ada at:2026-11-24T09:30:00.123Z until:2026-11-24T10:30:00.123Z]") {
		t.Errorf("claimed, it is %s", got)
	}
	post(admin, id+"/release", "").want(t, 200)
	post(other, id+"/claim", "").want(t, 200)
	h.clock.advance(time.Hour)
	if got := task(); got != fmt.Sprintf(want, "<nil>") {
		t.Errorf("after an hour it is %s", got)
	}
	post(admin, id+"/claim", "").want(t, 200)

	results := post(admin, "ask", `{"payoutIds":["`+id+`","pyt_none"],"note":"They =report delays."}`).want(t, 200).read(t, "data.results").([]any)
	if got := fmt.Sprint(results[1].(map[string]any)["code"]); len(results) != 2 || got != "payout_not_found" {
		t.Errorf("asking came to %v", results)
	}
	post(admin, "ask", `{"payoutIds":[],"note":"x"}`).wantFailure(t, 422, "validation_failed", "payoutIds")
	post(admin, "ask", `{"payoutIds":["`+strings.Repeat(`x","`, 20)+`"],"note":"x"}`).wantFailure(t, 422, "validation_failed", "payoutIds")
	post(admin, "ask", `{"payoutIds":["x"],"note":" "}`).wantFailure(t, 422, "validation_failed", "note")
	for _, ids := range []string{`"x"`, `null`, `{}`, `["x",null]`, `[1]`} {
		post(admin, "ask", `{"payoutIds":`+ids+`,"note":"x"}`).wantFailure(t, 400, "invalid_request", "payoutIds")
	}
	h.do(call{method: "GET", path: "/api/admin/inbox?kind=all", token: admin.token}).wantFailure(t, 422, "validation_failed", "kind")

	decision := get("/api/admin/decisions?subject="+id).want(t, 200).read(t, "data.decisions.0").(map[string]any)
	if decision["action"] != "ask_gateway" || decision["by"] != "admin:"+admin.id || decision["byName"] != "Ada" || decision["sellerId"] != seller.id {
		t.Errorf("the decision is %v", decision)
	}
	rows, err := csv.NewReader(strings.NewReader(get("/api/admin/decisions?format=csv").want(t, 200).body)).ReadAll()
	must(t, err)
	if len(rows) != 3 || rows[1][2] != "ask_gateway" || rows[1][6] != id || rows[1][7] != "They =report delays." {
		t.Errorf("the file is %q", rows)
	}
	if !strings.Contains(h.log.String(), `"decisions exported"`) {
		t.Error("the export is not in the log")
	}
	get("/api/admin/decisions?limit=0").wantFailure(t, 422, "validation_failed", "limit")
	get("/api/admin/decisions?format=csv&subject=%00").wantFailure(t, 422, "validation_failed", "subject")
	for _, path := range []string{"/api/admin/inbox", "/api/admin/decisions", "/api/admin/decisions?format=csv"} {
		h.do(call{method: "GET", path: path, token: seller.token}).wantFailure(t, 403, "forbidden")
		h.do(call{method: "GET", path: path}).wantFailure(t, 401, "invalid_token")
	}
	post(seller, id+"/claim", "").wantFailure(t, 403, "forbidden")
	post(seller, "ask", `{"payoutIds":["x"],"note":"x"}`).wantFailure(t, 403, "forbidden")
}
