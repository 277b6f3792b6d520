package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/api"
	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/event"
	"bursar/internal/payout"
)

// feed reads events, numbered before.
func (h *fixture) feed(t *testing.T, query string) answer {
	t.Helper()
	if _, err := h.events.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h.do(call{method: "GET", path: "/api/events" + query, token: h.serviceKey})
}

type fedEvent struct {
	ID, Type, Timestamp string
	Number              int64
	Data                map[string]any
}

func eventsIn(t *testing.T, a answer) []fedEvent {
	t.Helper()
	var page struct{ Data struct{ Events []fedEvent } }
	must(t, json.Unmarshal([]byte(a.want(t, 200).body), &page))
	return page.Data.Events
}

// TestEvents follows a seller from the registration to a refund of money that was paid out.
func TestEvents(t *testing.T) {
	h := openFixture(t)
	admin := h.signUp("Ada", auth.Admin)
	if got := h.feed(t, "").want(t, 200).body; got != `{"success":true,"data":{"events":[],"next":0}}`+"\n" {
		t.Errorf("before the first event: %q", got)
	}
	seller := h.signUp("Asha", auth.Seller)
	h.signUp("Bina", auth.Buyer)
	h.withBank(seller, "6789")
	h.earn(seller, "s1", "2000")
	paid := h.request(seller, `{"amount":1500,"notes":"rent"}`).want(t, 201).text(t, "data.payoutId")
	h.work(t, paid, payout.StatusCompleted)
	cancelled := h.request(seller, `{"amount":500}`).want(t, 201).text(t, "data.payoutId")
	h.do(call{method: "POST", path: "/api/payouts/" + cancelled + "/cancel", token: seller.token}).want(t, 200)
	h.do(call{method: "POST", path: "/api/marketplace/sales/s1/refund", token: h.serviceKey, body: `{"refundId":"r1","amount":700.5}`}).want(t, 201)
	h.adjust(admin, seller.id, `{"adjustmentId":"a1","amount":300,"reason":"A fee was charged twice.","note":"Case 1."}`).want(t, 201)

	events := eventsIn(t, h.feed(t, ""))
	var told []string
	for i, e := range events {
		if e.Number != int64(i)+1 || e.Data["sellerId"] != seller.id {
			t.Errorf("event %d is %+v", i+1, e)
		}
		balance, _ := e.Data["balance"].(map[string]any)
		told = append(told, fmt.Sprint(e.Type, " ", e.Data["status"], " ", balance["available"], "+", balance["pending"], "+", balance["inTransit"]))
	}
	if diff := cmp.Diff([]string{
		"seller.registered <nil> <nil>+<nil>+<nil>",
		"bank_account.added unverified 0+0+0", "bank_account.verified verified 0+0+0",
		"sale.recorded pending 0+2000+0", "sale.released released 2000+0+0",
		"payout.requested processing 500+0+1500", "payout.submitted processing 500+0+1500", "payout.completed completed 500+0+0",
		"payout.requested processing 0+0+500", "payout.cancelled cancelled 500+0+0",
		"sale.refunded released -200.5+0+0", "balance.negative <nil> -200.5+0+0",
		"balance.adjusted <nil> 99.5+0+0",
	}, told); diff != "" {
		t.Errorf("the feed (-want +got):\n%s", diff)
	}

	// The newest event of an object has it as the API shows it.
	var object struct{ Data map[string]any }
	must(t, json.Unmarshal([]byte(h.do(call{method: "GET", path: "/api/payouts/" + paid, token: seller.token}).want(t, 200).body), &object))
	last := events[7].Data
	if last["entry"] == nil {
		t.Error("the event does not say which entry it is")
	}
	delete(last, "entry")
	delete(last, "balance")
	if diff := cmp.Diff(object.Data, last); diff != "" {
		t.Errorf("the payout and its event (-payout +event):\n%s", diff)
	}
	if got := events[10].Data["refund"]; !cmp.Equal(got, map[string]any{"refundId": "r1", "amount": 700.5}) {
		t.Errorf("the refund is told as %v", got)
	}
	if got := events[0].Data; got["name"] != "Asha" || got["email"] == "" || got["externalId"] != nil {
		t.Errorf("the seller is told as %v", got)
	}

	var bodies []string
	render := api.EventBodies(h.events, h.auth, h.bank, rupees(t))
	listed, _, err := h.events.After(t.Context(), 0, nil, event.MaxPage)
	must(t, err)
	for _, e := range listed {
		body, err := render(t.Context(), e)
		must(t, err)
		bodies = append(bodies, string(body))
	}
	for i, body := range bodies {
		var e fedEvent
		must(t, json.Unmarshal([]byte(body), &e))
		e.ID, e.Number = events[i].ID, events[i].Number
		if i == 7 {
			delete(e.Data, "entry")
			delete(e.Data, "balance")
		}
		if diff := cmp.Diff(events[i], e); diff != "" {
			t.Errorf("a webhook's body and event %d (-event +body):\n%s", i+1, diff)
		}
	}

	pages := []fedEvent{}
	for next := "0"; ; {
		page := h.feed(t, "?limit=5&after="+next)
		pages = append(pages, eventsIn(t, page)...)
		if now := fmt.Sprint(page.read(t, "data.next")); now == next {
			break
		} else {
			next = now
		}
	}
	if len(pages) != len(events) || pages[12].ID != events[12].ID {
		t.Errorf("pages of 5 have %d events, want %d", len(pages), len(events))
	}
	some := h.feed(t, "?type=payout.completed,payout.cancelled&after=2")
	if got := eventsIn(t, some); len(got) != 2 || got[0].Type != "payout.completed" || got[1].Type != "payout.cancelled" || fmt.Sprint(some.read(t, "data.next")) != "13" {
		t.Errorf("of two types: %s", some.body)
	}

	h.feed(t, "?type=payout.completed,nothing").wantFailure(t, 422, "validation_failed", "type")
	h.feed(t, "?after=-1&limit=101").wantFailure(t, 422, "validation_failed", "after", "limit")
	h.feed(t, "?after=13").want(t, 200)
	h.feed(t, "?after=14").wantFailure(t, 409, "cursor_ahead")
	h.do(call{method: "GET", path: "/api/events", token: admin.token}).wantFailure(t, 401, "invalid_service_key")
	h.do(call{method: "GET", path: "/api/events"}).wantFailure(t, 401, "invalid_service_key")
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %v, %v", report.Findings, err)
	}

	// An attacker changes the types of events. The feed then tells nothing of their entries.
	h.place.ByHand(t, `UPDATE events SET type = 'payout.completed' WHERE number = 2`)
	h.place.ByHand(t, `UPDATE events SET type = 'seller.registered' WHERE number = 3`)
	for i, e := range eventsIn(t, h.feed(t, "?after=1&limit=2")) {
		if e.Data["tampered"] != true || len(e.Data) != 2 {
			t.Errorf("event %d of another type tells %v", i+2, e.Data)
		}
	}
}

// TestEvents_OfTamperedRecords leaves out what the service did not write, and goes on behind it.
func TestEvents_OfTamperedRecords(t *testing.T) {
	h := openFixture(t)
	asha, bina := h.signUp("Asha", auth.Seller), h.signUp("Bina", auth.Seller)
	h.earn(asha, "s1", "2000")
	h.earn(bina, "s2", "3000")
	h.place.ByHand(t, `UPDATE entries SET data = REPLACE(data, '200000', '900000') WHERE owner = '`+asha.id+`' AND type = 'sale.recorded'`)
	events := eventsIn(t, h.feed(t, "?type=sale.recorded"))
	if len(events) != 2 {
		t.Fatalf("the feed has %v", events)
	}
	if diff := cmp.Diff(map[string]any{"sellerId": asha.id, "tampered": true}, events[0].Data); diff != "" {
		t.Errorf("what was tampered with (-want +got):\n%s", diff)
	}
	if events[1].Data["amount"] != 3000.0 {
		t.Errorf("the other seller's sale is told as %v", events[1].Data)
	}
	const nobody = "usr_000000000000000000000000"
	h.place.ByHand(t, `UPDATE events SET owner = '`+nobody+`' WHERE owner = '`+asha.id+`' AND type = 'seller.registered'`)
	registered := eventsIn(t, h.feed(t, "?type=seller.registered"))
	if len(registered) != 2 || registered[0].Data["tampered"] != true || registered[0].Data["sellerId"] != nobody || registered[1].Data["name"] != "Bina" {
		t.Errorf("the feed has the registrations as %v", registered)
	}
}

// TestTamperedEntries_TakeNothingElseAway has entries that nobody can read. What the admin and the seller look at them with shows the rest.
func TestTamperedEntries_TakeNothingElseAway(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	h.earn(seller, "s1", "9000")
	h.withBank(seller, "4321")
	id := fmt.Sprint(h.request(seller, `{"amount":500}`).want(t, 201).read(t, "data.payoutId"))
	for _, subject := range []string{"freeze", "unfreeze"} {
		h.do(call{method: "POST", path: "/api/admin/sellers/" + seller.id + "/" + subject, token: admin.token, body: `{"reason":"A test."}`}).want(t, 200)
	}
	h.place.ByHand(t, `UPDATE entries SET data = '{' WHERE owner = '`+seller.id+`' AND type IN ('payout.requested', 'payouts.frozen')`)
	shown := h.do(call{method: "GET", path: "/api/admin/payouts/" + id, token: admin.token}).want(t, 200)
	if shown.read(t, "data.tampered") != true {
		t.Errorf("the payout is shown as %s", shown.body)
	}
	h.do(call{method: "GET", path: "/api/payouts/" + id + "/events", token: seller.token}).want(t, 200)
	decisions := h.do(call{method: "GET", path: "/api/admin/decisions", token: admin.token}).want(t, 200)
	if list := decisions.read(t, "data.decisions").([]any); len(list) != 2 {
		t.Errorf("of three decisions two can be read, and shown are %v", list)
	}
}

// TestEventTypes_AreDescribed compares the types with those of the description.
func TestEventTypes_AreDescribed(t *testing.T) {
	spec := loadSpec(t).doc
	described := spec.Components.Schemas["Event"].Value.Properties["type"].Value.Enum
	table := spec.Paths.Find("/api/events").Get.Description
	for _, name := range event.Types() {
		if !slices.Contains(described, any(string(name))) || !strings.Contains(table, "`"+string(name)+"`") {
			t.Errorf("%s is not described", name)
		}
	}
	if len(described) != len(event.Types()) {
		t.Errorf("described are %v", described)
	}
}

// TestEvents_NameSellersAsTheMarketplaceDoes makes an event of each kind for a seller with an external id, and reads them as the
// feed and as webhooks.
func TestEvents_NameSellersAsTheMarketplaceDoes(t *testing.T) {
	h := openFixture(t)
	admin, seller := h.signUp("Ada", auth.Admin), h.newSeller("shop-17")
	account := h.marketplace("PUT", "sellers/ext:shop-17/bank-account", accountBody).want(t, 200).text(t, "data.id")
	_, err := h.bank.Resolve(t.Context(), decision.By{Admin: admin.id}, bank.ID(account), bank.Verdict{Verified: true})
	must(t, err)
	h.earn(seller, "s1", "2000")
	h.marketplace("POST", "sellers/ext:shop-17/payouts", `{"amount":1500}`).want(t, 201)
	h.marketplace("POST", "sales/s1/refund", `{"refundId":"r1"}`).want(t, 201)
	h.adjust(admin, seller.id, `{"adjustmentId":"a1","amount":300,"reason":"A fee.","note":"Case 1."}`).want(t, 201)
	none := h.signUp("Bina", auth.Seller)
	h.earn(none, "s2", "100")

	kinds := map[string]bool{}
	for _, e := range eventsIn(t, h.feed(t, "")) {
		kind, _, _ := strings.Cut(e.Type, ".")
		kinds[kind] = true
		if got, has := e.Data["externalId"]; e.Data["sellerId"] == seller.id && got != "shop-17" || e.Data["sellerId"] == none.id && has && got != nil {
			t.Errorf("%s names the seller %v", e.Type, got)
		}
	}
	if len(kinds) != 5 {
		t.Errorf("the kinds of events are %v", kinds)
	}
	render := api.EventBodies(h.events, h.auth, h.bank, rupees(t))
	listed, _, err := h.events.After(t.Context(), 0, nil, event.MaxPage)
	must(t, err)
	for _, e := range listed {
		body, err := render(t.Context(), e)
		must(t, err)
		if strings.Contains(string(body), `"externalId":"shop-17"`) != (e.Owner == seller.id) {
			t.Errorf("a webhook delivers %s", body)
		}
	}

	h.place.ByHand(t, `UPDATE users SET external_id = 'shop-18' WHERE id = '`+seller.id+`'`)
	about := 0
	for _, e := range eventsIn(t, h.feed(t, "")) {
		if e.Data["sellerId"] != seller.id {
			continue
		}
		if about++; e.Data["tampered"] != true || e.Data["externalId"] != nil {
			t.Errorf("the event of a seller whose external id was changed by hand is %+v", e)
		}
	}
	if about == 0 {
		t.Error("the feed has no event of the seller whose external id was changed by hand")
	}
}
