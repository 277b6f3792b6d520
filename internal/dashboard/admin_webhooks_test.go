package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"bursar/internal/decision"
	"bursar/internal/webhook"
)

// deliverWebhooks numbers what happened, and delivers all that is due.
func (o *adminFixture) deliverWebhooks() {
	o.Helper()
	_, err := o.events.Number(o.Context())
	must(o.T, err)
	for {
		leases, err := o.webhooks.LeaseDue(o.Context(), 1)
		if must(o.T, err); len(leases) == 0 {
			return
		}
		must(o.T, o.webhooks.Step(o.Context(), leases[0]))
	}
}

// TestWebhooks_OnThePages adds an endpoint, sees it fail, replays an event, rotates its secret, disables and removes it.
func TestWebhooks_OnThePages(t *testing.T) {
	o := openAdminFixture(t)
	status, got := http.StatusTeapot, 0
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		got++
		w.WriteHeader(status)
		_, _ = w.Write([]byte("<b>short and stout</b>"))
	}))
	t.Cleanup(receiver.Close)
	const page = adminHome + "/webhooks"
	o.seller.get(page).want(t, 403)
	o.admin.get(adminHome+"/health").says(t, `href="`+page+`"`)
	empty := o.admin.get(page).want(t, 200).reads(t, "There is no endpoint.")
	checkPage(t, page, empty)
	checkPage(t, page+"/new", o.admin.get(page+"/new").want(t, 200))

	o.admin.post(page+"/new", "url", "http://shop.example").want(t, 422).reads(t, "Address must begin with https://")
	o.admin.post(page+"/new", "url", "https://shop.example", "types", "payout.lost").want(t, 422).reads(t, "Types of events must be types of events")
	secret := regexp.MustCompile(`whsec_[A-Za-z0-9+/=&#;]+`)
	added := o.admin.post(page+"/new", "url", receiver.URL+"/hooks?token=hush", "types", "sale.recorded, payout.completed", "description", "The shop.").
		want(t, 200).reads(t, "It is not shown again.", "sale.recorded").saysNot(t, "hush")
	checkPage(t, page, added)
	if !secret.MatchString(added.body) {
		t.Errorf("no secret is shown: %s", added.body)
	}
	o.admin.post(page+"/new", "url", receiver.URL+"/hooks?token=hush").want(t, 409).reads(t, "An endpoint has this address already.")

	all, err := o.webhooks.Endpoints(t.Context())
	must(t, err)
	one := page + "/" + all[0].ID
	o.earn(o.seller, "order-2", 500_00)
	o.deliverWebhooks()
	o.admin.get(page).want(t, 200).reads(t, "Failing", "The shop.").saysNot(t, "hush", "whsec_")
	failed := o.admin.get(one).want(t, 200).reads(t, "Trying again", "418 <b>short and stout</b>").saysNot(t, "<b>short", "whsec_", "hush")
	checkPage(t, one, failed)
	o.admin.post(one+"/test").want(t, 200).reads(t, "the endpoint answered 418")
	event := failed.hiddenValue(t, "event")
	status, got = http.StatusOK, 0
	o.admin.then(o.admin.post(one+"/replay", "event", event).leadsTo(t, one)).want(t, 200).reads(t, "The event is sent again.")
	o.deliverWebhooks()
	if o.admin.get(one).want(t, 200).reads(t, "Delivered"); got != 1 {
		t.Errorf("a replay was sent %d times", got)
	}
	o.admin.post(one+"/replay", "event", "evt_x").leadsTo(t, one)
	o.admin.post(one+"/test").want(t, 200).reads(t, "The test was delivered, and answered 200.")

	checkPage(t, one+"/rotate", o.admin.get(one+"/rotate").want(t, 200).reads(t, "Replace the secret", "Deliveries are signed with both for 24 hours."))
	rotated := o.admin.post(one+"/rotate", "note", "It leaked.").want(t, 200)
	if again := secret.FindString(rotated.body); again == "" || again == secret.FindString(added.body) {
		t.Errorf("rotated shows %q", again)
	}
	o.admin.then(o.admin.post(one+"/disable").leadsTo(t, one)).reads(t, "The endpoint is disabled.")
	o.admin.post(one+"/disable").leadsTo(t, one)
	o.admin.get(one+"/disable").leadsTo(t, one)
	o.admin.then(o.admin.post(one+"/enable").leadsTo(t, one)).reads(t, "The endpoint is enabled.")
	o.admin.get(one+"/nothing").want(t, 404)
	o.place.ByHand(t, `UPDATE webhook_endpoints SET description = 'x'`)
	o.admin.get(one).want(t, 200).reads(t, "Tampered with", "Remove it and add it again.").saysNot(t, one+"/rotate", one+"/test")
	o.admin.then(o.admin.post(one+"/remove").leadsTo(t, page)).reads(t, "The endpoint is removed.")
	o.admin.get(one).want(t, 404)
	o.wantDecisions(all[0].ID, decision.AddWebhook, decision.RotateWebhook, decision.ChangeWebhook, decision.ChangeWebhook, decision.RemoveWebhook)
	o.admin.get(adminHome+"/decisions").want(t, 200).reads(t, "Added a webhook endpoint", "Replaced a webhook secret", "It leaked.")
}

// TestWebhooks_ThatWereDisabledAreInTheInbox decides what becomes of endpoints that the service disabled or did not write.
func TestWebhooks_ThatWereDisabledAreInTheInbox(t *testing.T) {
	o := openAdminFixture(t)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	t.Cleanup(receiver.Close)
	e, _, err := o.webhooks.Add(t.Context(), o.by(""), webhook.NewEndpoint{URL: receiver.URL + "/hooks?token=hush"})
	must(t, err)
	const list = adminHome + "/inbox"
	o.admin.get(list).want(t, 200).reads(t, "All clear")
	o.earn(o.seller, "order-2", 500_00)
	disable := func() {
		t.Helper()
		o.deliverWebhooks()
		checkPage(t, list, o.admin.get(list+"?kind=webhook-endpoint").want(t, 200).
			reads(t, "Webhook endpoint (1)", "Webhook endpoint: "+receiver.URL+"/hooks", "It answered 410", "Stopped taking events").
			says(t, `href="`+adminHome+"/webhooks/"+e.ID+`"`).saysNot(t, "hush"))
	}
	disable()
	o.admin.get(adminHome).want(t, 200).reads(t, "1 webhook endpoint that was disabled")
	one := adminHome + "/webhooks/" + e.ID
	o.admin.then(o.admin.post(one+"/keep-disabled", "note", "The shop closed it.").leadsTo(t, one)).
		reads(t, "The endpoint is disabled.").saysNot(t, "answered 410", one+"/keep-disabled")
	o.admin.get(list).want(t, 200).reads(t, "All clear")
	o.admin.get(adminHome).want(t, 200).saysNot(t, "webhook endpoint that was disabled")
	o.admin.post(one+"/keep-disabled").leadsTo(t, one)
	o.wantDecisions(e.ID, decision.AddWebhook, decision.ChangeWebhook)

	o.admin.post(one+"/enable").leadsTo(t, one)
	o.earn(o.seller, "order-3", 500_00)
	disable()
	o.admin.post(one+"/enable").leadsTo(t, one)
	o.admin.get(list).want(t, 200).reads(t, "All clear")
	o.place.ByHand(t, `UPDATE webhook_endpoints SET description = 'x'`)
	o.admin.get(list).want(t, 200).reads(t, "It was changed outside Bursar", "Added")
	o.admin.get(one).saysNot(t, one+"/keep-disabled")
}

// TestWebhooks_WithASecondFactor asks for a code before an endpoint is added or changed.
func TestWebhooks_WithASecondFactor(t *testing.T) {
	o := openAdminFixture(t)
	o.enrol(o.admin)
	const page = adminHome + "/webhooks"
	o.admin.get(page+"/new").want(t, 200).says(t, `name="code"`)
	o.admin.post(page+"/new", "url", "https://shop.example").want(t, 422).reads(t, "must be a code of your authenticator app")
	e, _, err := o.webhooks.Add(t.Context(), o.by(""), webhook.NewEndpoint{URL: "https://shop.example"})
	must(t, err)
	for _, slug := range []string{"disable", "rotate", "remove"} {
		o.admin.get(page+"/"+e.ID+"/"+slug).want(t, 200).says(t, `name="code"`)
		o.admin.post(page+"/"+e.ID+"/"+slug, "code", "000000").want(t, 422).reads(t, "is wrong, was used already")
	}
	if all, err := o.webhooks.Endpoints(t.Context()); err != nil || len(all) != 1 || all[0].Status != webhook.Enabled || len(all[0].OldSecrets) > 0 {
		t.Errorf("without a code it became %+v, %v", all, err)
	}
}
