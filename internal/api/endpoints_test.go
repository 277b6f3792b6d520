package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"bursar/internal/auth"
)

// deliver delivers all that is due.
func (h *fixture) deliverWebhooks(t *testing.T) {
	t.Helper()
	_, err := h.events.Number(t.Context())
	must(t, err)
	for {
		leases, err := h.endpoints.LeaseDue(t.Context(), 1)
		must(t, err)
		if len(leases) == 0 {
			return
		}
		must(t, h.endpoints.Step(t.Context(), leases[0]))
	}
}

// TestWebhookEndpoints is an endpoint's life as the marketplace's server leads it: what arrives there is what the feed has.
func TestWebhookEndpoints(t *testing.T) {
	h := openFixture(t)
	type delivered struct {
		header http.Header
		body   []byte
	}
	var mu sync.Mutex // deliveries to one endpoint come side by side
	var got []delivered
	status := http.StatusNoContent
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, delivered{r.Header, body})
		w.WriteHeader(status)
	}))
	t.Cleanup(receiver.Close)
	ask := func(method, path, body string) answer {
		t.Helper()
		return h.do(call{method: method, path: "/api/webhooks" + path, token: h.serviceKey, body: body})
	}

	key, _, err := h.auth.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "reader", Scopes: []string{"events:read"}}, "operator:tests")
	must(t, err)
	h.do(call{method: "GET", path: "/api/webhooks/endpoints", token: key}).wantFailure(t, 403, "scope_missing", "scope")
	h.do(call{method: "GET", path: "/api/webhooks/endpoints"}).wantFailure(t, 401, "invalid_service_key")
	ask("POST", "/endpoints", `{"types":1}`).wantFailure(t, 400, "invalid_request", "url", "types")
	ask("POST", "/endpoints", `{"url":"http://shop.example","types":["payout.lost"],"description":"`+strings.Repeat("x", 201)+`"}`).
		wantFailure(t, 422, "validation_failed", "url", "types", "description")
	created := ask("POST", "/endpoints", `{"url":"`+receiver.URL+`/hooks?token=hush","types":["sale.recorded","seller.registered"],"description":"shop"}`).want(t, 201)
	id, secret := created.text(t, "data.id"), created.text(t, "data.secret")
	ask("POST", "/endpoints", `{"url":"`+receiver.URL+`/hooks?token=hush"}`).wantFailure(t, 409, "endpoint_exists")

	seller := h.signUp("Asha", auth.Seller)
	h.withBank(seller, "6789")
	h.earn(seller, "s1", "2000")
	h.deliverWebhooks(t)
	feed := eventsIn(t, h.feed(t, "?type=sale.recorded,seller.registered"))
	if len(got) != 2 || len(feed) != 2 {
		t.Fatalf("delivered are %d of %d", len(got), len(feed))
	}
	oracle, err := standardwebhooks.NewWebhook(secret)
	must(t, err)
	byID := map[string]delivered{}
	for _, g := range got {
		must(t, oracle.VerifyIgnoringTimestamp(g.body, g.header))
		byID[g.header.Get("Webhook-Id")] = g
	}
	for _, e := range feed {
		want, err := json.Marshal(map[string]any{"type": e.Type, "timestamp": e.Timestamp, "data": e.Data})
		must(t, err)
		var sent any
		must(t, json.Unmarshal(byID[e.ID].body, &sent))
		if again, err := json.Marshal(sent); err != nil || string(again) != string(want) {
			t.Errorf("delivered is %s, and the feed has %s", byID[e.ID].body, want)
		}
	}
	if next := ask("GET", "/deliveries?limit=2&status=delivered&endpoint="+id, "").want(t, 200).read(t, "data.next"); next != nil {
		t.Errorf("the only page of deliveries names another one: %v", next)
	}
	for _, body := range []string{`{"endpointId":"\u0000"}`, `{"through":"\u0000","endpointId":"` + id + `"}`} {
		ask("POST", "/events/"+feed[0].ID+"/redeliver", body).want(t, 422)
	}
	deliveries := ask("GET", "/deliveries?limit=1&status=delivered&endpoint="+id, "").want(t, 200)
	if next := deliveries.text(t, "data.next"); ask("GET", "/deliveries?limit=1&before="+next, "").want(t, 200).text(t, "data.deliveries.0.id") == next {
		t.Error("a page begins with the last delivery of the page before")
	}
	ask("GET", "/deliveries?status=lost&endpoint=x&event=y&before=z&limit=0", "").wantFailure(t, 422, "validation_failed", "status", "endpoint", "event", "before", "limit")

	got = nil
	if a := ask("POST", "/endpoints/"+id+"/test", "").want(t, 200); a.read(t, "data.delivered") != true || len(got) != 1 || !strings.Contains(string(got[0].body), `"ping"`) {
		t.Errorf("a test answers %s", a.body)
	}
	rotated := ask("POST", "/endpoints/"+id+"/rotate-secret", "").want(t, 200)
	if rotated.text(t, "data.secret") == secret || rotated.text(t, "data.rotatedUntil") == "" {
		t.Errorf("rotated is %s", rotated.body)
	}
	got = nil
	first := feed[0].ID
	ask("POST", "/events/"+first+"/redeliver", "").want(t, 202)
	ask("POST", "/events/"+first+"/redeliver", `{"endpointId":"`+id+`","through":"`+feed[1].ID+`"}`).want(t, 202)
	h.deliverWebhooks(t)
	if len(got) != 2 {
		t.Errorf("%d are sent again, want 2", len(got))
	}
	ask("POST", "/events/evt_x/redeliver", "").wantFailure(t, 404, "event_not_found")
	ask("POST", "/events/"+first+"/redeliver", `{"through":"`+feed[1].ID+`"}`).wantFailure(t, 422, "validation_failed", "endpointId")
	ask("POST", "/events/"+first+"/redeliver", `{"endpointId":"`+id+`","through":"evt_x"}`).wantFailure(t, 422, "validation_failed", "through")

	changed := ask("PATCH", "/endpoints/"+id, `{"types":[],"status":"disabled","description":null}`).want(t, 200)
	if changed.text(t, "data.status") != "disabled" || changed.text(t, "data.reason") != "disabled" || changed.text(t, "data.description") != "shop" {
		t.Errorf("changed is %s", changed.body)
	}
	ask("POST", "/events/"+first+"/redeliver", `{"endpointId":"`+id+`"}`).wantFailure(t, 409, "endpoint_disabled")
	ask("PATCH", "/endpoints/"+id, `{"status":"open","url":"x"}`).wantFailure(t, 422, "validation_failed", "status", "url")
	ask("PATCH", "/endpoints/"+id, `{"status":"enabled"}`).want(t, 200)
	if list := ask("GET", "/endpoints", "").want(t, 200); list.text(t, "data.endpoints.0.id") != id || strings.Contains(list.body, "whsec_") {
		t.Errorf("the list is %s", list.body)
	}
	status = http.StatusGone
	h.earn(seller, "s2", "100")
	h.deliverWebhooks(t)
	if a := ask("GET", "/endpoints/"+id, "").want(t, 200); a.text(t, "data.reason") != "gone" {
		t.Errorf("after 410 it is %s", a.body)
	}
	admin := h.signUp("Ada", auth.Admin)
	inbox := func() string {
		return h.do(call{method: "GET", path: "/api/admin/inbox?kind=webhook-endpoint", token: admin.token}).want(t, 200).body
	}
	if listed := inbox(); !strings.Contains(listed, `"subject":"`+id+`"`) {
		t.Errorf("the inbox lacks an endpoint that answered 410: %s", listed)
	}
	ask("PATCH", "/endpoints/"+id, `{"status":"disabled"}`).want(t, 200)
	if listed := inbox(); strings.Contains(listed, id) {
		t.Errorf("the inbox has an endpoint that is kept disabled: %s", listed)
	}
	h.place.ByHand(t, `UPDATE webhook_endpoints SET status = 'enabled'`)
	if a := ask("GET", "/endpoints/"+id, "").want(t, 200); a.text(t, "data.status") != "tampered" {
		t.Errorf("enabled by hand it is %s", a.body)
	}
	ask("PATCH", "/endpoints/"+id, `{"status":"enabled"}`).wantFailure(t, 409, "endpoint_tampered")
	ask("DELETE", "/endpoints/"+id, "").want(t, 200)
	ask("DELETE", "/endpoints/"+id, "").wantFailure(t, 404, "endpoint_not_found")
	ask("GET", "/endpoints/whe_x", "").wantFailure(t, 404, "endpoint_not_found")
	if strings.Contains(h.log.String(), "hush") || strings.Contains(h.log.String(), "whsec_") {
		t.Error("the log holds a secret")
	}
	decisions := h.do(call{method: "GET", path: "/api/admin/decisions", token: admin.token}).want(t, 200).body
	for _, action := range []string{"add_webhook", "change_webhook", "rotate_webhook", "remove_webhook"} {
		if !strings.Contains(decisions, action) {
			t.Errorf("%s is not on record: %s", action, decisions)
		}
	}
	if !strings.Contains(decisions, `"by":"key:`) {
		t.Errorf("the key is not on record: %s", decisions)
	}
}

// TestWebhookEndpoints_Admin has admins do what the marketplace's server may, and proves each decision of one with a second factor.
func TestWebhookEndpoints_Admin(t *testing.T) {
	h := openFixture(t)
	admin, guarded, seller := h.signUp("Ada", auth.Admin), h.signUp("Grace", auth.Admin), h.signUp("Asha", auth.Seller)
	app, _, _ := h.enrol(guarded)
	ask := func(u user, method, path, body, proof string) answer {
		t.Helper()
		return h.do(call{method: method, path: "/api/webhooks" + path, token: u.token, body: body, header: header("Step-Up", proof)})
	}
	const url = "https://shop.example/hooks"
	ask(seller, "GET", "/endpoints", "", "").wantFailure(t, 403, "forbidden")
	ask(seller, "POST", "/endpoints", `{"url":"`+url+`"}`, "").wantFailure(t, 403, "forbidden")
	ask(user{token: "a.b.c"}, "GET", "/endpoints", "", "").wantFailure(t, 401, "invalid_token")
	ask(user{token: "nonsense"}, "GET", "/endpoints", "", "").wantFailure(t, 401, "invalid_service_key")

	id := ask(admin, "POST", "/endpoints", `{"url":"`+url+`"}`, "").want(t, 201).text(t, "data.id")
	ask(admin, "GET", "/endpoints/"+id, "", "").want(t, 200)
	ask(admin, "GET", "/deliveries", "", "").want(t, 200)
	decided, err := h.db.Decisions(t.Context(), id, 10)
	if err != nil || len(decided) != 1 || decided[0].Admin != admin.id || decided[0].Key != "" {
		t.Errorf("on record is %+v, %v", decided, err)
	}
	for _, guardedCall := range []struct{ method, path, body, action, subject string }{
		{"POST", "/endpoints", `{"url":"https://other.example/hooks"}`, "admin.add_webhook", "https://other.example/hooks"},
		{"PATCH", "/endpoints/" + id, `{"description":"shop"}`, "admin.change_webhook", id},
		{"POST", "/endpoints/" + id + "/rotate-secret", "", "admin.rotate_webhook", id},
		{"DELETE", "/endpoints/" + id, "", "admin.remove_webhook", id},
	} {
		c := guardedCall
		ask(guarded, c.method, c.path, c.body, "").wantFailure(t, 401, "step_up_required", "methods")
		proof := h.stepUp(guarded, `"action":"`+c.action+`","subject":"`+c.subject+`","code":"`+app.code()+`"`).want(t, 200).text(t, "data.proof")
		if a := ask(guarded, c.method, c.path, c.body, proof); a.status >= 300 {
			t.Errorf("%s %s with a proof: %d %s", c.method, c.path, a.status, a.body)
		}
	}
	if kept := ask(guarded, "GET", "/endpoints", "", ""); strings.Contains(kept.body, id) {
		t.Errorf("after it was removed there is %s", kept.body)
	}
}
