package dashboard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"bursar/internal/decision"
	"bursar/internal/webhook"
)

const (
	webhooksPath = adminHome + "/webhooks"
	// deliveriesShown is how many of an endpoint's newest deliveries are listed.
	deliveriesShown = 50
	// briefAnswer is how much of an answer the list shows, so that a page stays small.
	briefAnswer = 100
)

func webhookAddress(id string) string { return webhooksPath + "/" + id }

// webhookRoutes are the pages of webhook endpoints.
func (d *dashboard) webhookRoutes() []route {
	one := webhooksPath + "/{id}"
	return []route{
		{"GET", webhooksPath, admins, d.adminWebhooks},
		{"GET", webhooksPath + "/new", admins, d.newWebhook},
		{"POST", webhooksPath + "/new", admins, d.addWebhook},
		{"GET", one, admins, d.adminWebhook},
		{"POST", one + "/test", admins, d.testWebhook},
		{"POST", one + "/replay", admins, d.replayWebhook},
		{"GET", one + "/{decision}", admins, d.askAboutWebhook},
		{"POST", one + "/{decision}", admins, d.decideWebhook},
	}
}

// endpointRow is an endpoint as admins see it.
type endpointRow struct{ webhook.Endpoint }

// Path is its page.
func (e endpointRow) Path() string { return webhookAddress(e.ID) }

// Label says how it is.
func (e endpointRow) Label() label {
	switch {
	case e.Tampered:
		return label{"Tampered with", bad}
	case e.Status == webhook.Disabled && e.Reason == webhook.Gone:
		return label{"Disabled: answered 410", bad}
	case e.Status == webhook.Disabled && e.Reason == webhook.Failing:
		return label{"Disabled: failed for days", bad}
	case e.Status == webhook.Disabled:
		return label{"Disabled", neutral}
	case e.Failures > 0:
		return label{"Failing", busy}
	default:
		return label{"Enabled", good}
	}
}

// TypeList lists the types of events that are delivered.
func (e endpointRow) TypeList() string {
	if len(e.Types) == 0 {
		return "all"
	}
	texts := make([]string, len(e.Types))
	for i, t := range e.Types {
		texts[i] = string(t)
	}
	return strings.Join(texts, ", ")
}

// webhookDecision is something that an admin may decide about an endpoint.
type webhookDecision struct {
	Slug, Title, Does, DoesNot string
	done                       notice
	decides                    decision.Action
	fits                       func(webhook.Endpoint) bool
	// do returns a secret that is shown once, or "".
	do func(ctx context.Context, w *webhook.Service, by decision.By, id string) (string, error)
}

// To is the page on which a decision about the endpoint is made.
func (e endpointRow) To(a webhookDecision) string { return e.Path() + "/" + a.Slug }

func setWebhook(status webhook.Status) func(context.Context, *webhook.Service, decision.By, string) (string, error) {
	return func(ctx context.Context, w *webhook.Service, by decision.By, id string) (string, error) {
		_, err := w.Change(ctx, by, id, webhook.Change{Status: &status})
		return "", err
	}
}

var webhookDecisions = []webhookDecision{
	{
		Slug: "enable", Title: "Enable", done: "webhook-enabled", decides: decision.ChangeWebhook,
		Does:    "Events are delivered from now on, and what waited before is sent.",
		DoesNot: "Events from while it was disabled are not sent by themselves. Replay them.",
		fits:    func(e webhook.Endpoint) bool { return !e.Tampered && e.Status == webhook.Disabled },
		do:      setWebhook(webhook.Enabled),
	},
	{
		Slug: "disable", Title: "Disable", done: "webhook-disabled", decides: decision.ChangeWebhook,
		Does:    "Nothing is delivered until you enable it.",
		DoesNot: "No event is lost: the feed has them all.",
		fits:    func(e webhook.Endpoint) bool { return !e.Tampered && e.Status == webhook.Enabled },
		do:      setWebhook(webhook.Disabled),
	},
	{
		Slug: "keep-disabled", Title: "Keep it disabled", done: "webhook-disabled", decides: decision.ChangeWebhook,
		Does:    "The endpoint leaves the inbox. Nothing is delivered until you enable it.",
		DoesNot: "No event is lost: the feed has them all.",
		fits: func(e webhook.Endpoint) bool {
			return !e.Tampered && e.Status == webhook.Disabled && e.NeedsAttention()
		},
		do: setWebhook(webhook.Disabled),
	},
	{
		Slug: "rotate", Title: "Replace the secret", decides: decision.RotateWebhook,
		Does:    "The new secret is shown once. Deliveries are signed with both for 24 hours.",
		DoesNot: "A receiver that holds the one before works until then.",
		fits:    func(e webhook.Endpoint) bool { return !e.Tampered },
		do: func(ctx context.Context, w *webhook.Service, by decision.By, id string) (string, error) {
			_, secret, err := w.Rotate(ctx, by, id)
			return secret, err
		},
	},
	{
		Slug: "remove", Title: "Remove", done: "webhook-removed", decides: decision.RemoveWebhook,
		Does:    "Nothing more is delivered there, and what waits never is.",
		DoesNot: "No event is lost: the feed has them all.",
		fits:    func(webhook.Endpoint) bool { return true },
		do: func(ctx context.Context, w *webhook.Service, by decision.By, id string) (string, error) {
			return "", w.Remove(ctx, by, id)
		},
	},
}

// webhooksView lists the endpoints.
type webhooksView struct {
	Endpoints []endpointRow
	NewPath   string
}

func (d *dashboard) adminWebhooks(ctx context.Context, _ *pageRequest) (page, error) {
	all, err := d.o.Webhooks.Endpoints(ctx)
	shown := webhooksView{NewPath: webhooksPath + "/new"}
	for _, e := range all {
		shown.Endpoints = append(shown.Endpoints, endpointRow{e})
	}
	return show("admin-webhooks", "Webhooks", shown), err
}

// newWebhookView is the page on which an endpoint is added.
type newWebhookView struct {
	Back string
	Form *form
}

func (d *dashboard) newWebhookPage(ctx context.Context, v *pageRequest) (page, *form, error) {
	f := &form{Action: webhooksPath + "/new", Submit: "Add the endpoint", Fields: []field{
		{Name: "url", Label: "Address", Type: "url", Autocomplete: "off", Max: 2000, Hint: "Where events are posted to, such as https://shop.example/bursar"},
		{Name: "types", Label: "Types of events", Type: "text", Autocomplete: "off", Optional: true, Max: 2000, Hint: "Such as payout.completed payout.failed. Empty for all."},
		{Name: "description", Label: "Description", Type: "text", Autocomplete: "off", Optional: true, Max: 200},
		noteField(true),
	}}
	err := d.askForCode(ctx, v, f)
	return show("admin-webhook-new", "Add an endpoint", newWebhookView{webhooksPath, f}), f, err
}

func (d *dashboard) newWebhook(ctx context.Context, v *pageRequest) (page, error) {
	p, _, err := d.newWebhookPage(ctx, v)
	return p, err
}

// addWebhook adds an endpoint, and shows its secret once.
func (d *dashboard) addWebhook(ctx context.Context, v *pageRequest) (page, error) {
	by := byOf(v)
	n := webhook.NewEndpoint{URL: strings.TrimSpace(v.form.Get("url")), Description: strings.TrimSpace(v.form.Get("description"))}
	err := by.CheckNote()
	if err == nil {
		n.Types, err = webhook.ParseTypes(strings.FieldsFunc(v.form.Get("types"), func(c rune) bool { return c == ' ' || c == ',' }))
	}
	if err == nil {
		err = n.Check()
	}
	if err == nil {
		err = d.proveDecision(ctx, v, decision.AddWebhook, n.URL)
	}
	if err == nil {
		e, secret, addErr := d.o.Webhooks.Add(ctx, by, n)
		if addErr == nil {
			return d.webhookPage(ctx, e, secret)
		}
		err = addErr
	}
	p, f, drawErr := d.newWebhookPage(ctx, v)
	if drawErr != nil {
		return page{}, errors.Join(err, drawErr)
	}
	return d.again(ctx, p, f.fill(v.form), err)
}

// webhookView is the page of an endpoint.
type webhookView struct {
	endpointRow
	// Secret is new, and shown this once.
	Secret     string
	Decisions  []webhookDecision
	Deliveries []deliveryRow
	// Tested is how a test went, or nil.
	Tested *webhook.TestResult
}

// deliveryRow is a delivery as admins see it.
type deliveryRow struct{ webhook.Delivery }

// Brief is the beginning of the answer.
func (r deliveryRow) Brief() string {
	runes := []rune(r.Answer)
	if len(runes) > briefAnswer {
		return string(runes[:briefAnswer]) + "…"
	}
	return r.Answer
}

// Label says how far it is.
func (r deliveryRow) Label() label {
	switch {
	case r.Status == webhook.Delivered:
		return label{"Delivered", good}
	case r.Status == webhook.Failed:
		return label{"Given up", bad}
	case r.Attempt > 0:
		return label{"Trying again", busy}
	default:
		return label{"Queued", neutral}
	}
}

func (d *dashboard) webhookPage(ctx context.Context, e webhook.Endpoint, secret string) (page, error) {
	shown := &webhookView{endpointRow: endpointRow{e}, Secret: secret}
	for _, a := range webhookDecisions {
		if a.fits(e) {
			shown.Decisions = append(shown.Decisions, a)
		}
	}
	deliveries, err := d.o.Webhooks.Deliveries(ctx, webhook.Filter{Endpoint: e.ID, Limit: deliveriesShown})
	for _, one := range deliveries {
		shown.Deliveries = append(shown.Deliveries, deliveryRow{one})
	}
	return show("admin-webhook", "Webhook endpoint", shown), err
}

// webhookOf finds the endpoint that the address names.
func (d *dashboard) webhookOf(ctx context.Context, v *pageRequest) (webhook.Endpoint, error) {
	e, err := d.o.Webhooks.Endpoint(ctx, v.r.PathValue("id"))
	if errors.Is(err, webhook.ErrNotFound) {
		err = errNoPage
	}
	return e, err
}

func (d *dashboard) adminWebhook(ctx context.Context, v *pageRequest) (page, error) {
	e, err := d.webhookOf(ctx, v)
	if err != nil {
		return page{}, err
	}
	return d.webhookPage(ctx, e, "")
}

// testWebhook sends a ping, and shows how that went.
func (d *dashboard) testWebhook(ctx context.Context, v *pageRequest) (page, error) {
	e, err := d.webhookOf(ctx, v)
	if err != nil {
		return page{}, err
	}
	result, err := d.o.Webhooks.Test(ctx, e.ID)
	switch {
	case errors.Is(err, webhook.ErrTestedOften):
		return goTo(webhookAddress(e.ID)).saying("webhook-tested-often"), nil
	case errors.Is(err, webhook.ErrTampered):
		return goTo(webhookAddress(e.ID)).saying("no-longer-fits"), nil
	case err != nil:
		return page{}, err
	}
	p, err := d.webhookPage(ctx, e, "")
	if shown, is := p.data.(*webhookView); is {
		shown.Tested = &result
	}
	return p, err
}

// replayWebhook has an event delivered again.
func (d *dashboard) replayWebhook(ctx context.Context, v *pageRequest) (page, error) {
	e, err := d.webhookOf(ctx, v)
	if err != nil {
		return page{}, err
	}
	_, err = d.o.Webhooks.Redeliver(ctx, webhook.Redelivery{Event: v.form.Get("event"), Endpoint: e.ID})
	switch {
	case errors.Is(err, webhook.ErrDisabled), errors.Is(err, webhook.ErrTampered), errors.Is(err, webhook.ErrEventNotFound):
		return goTo(webhookAddress(e.ID)).saying("no-longer-fits"), nil
	case err != nil:
		return page{}, err
	default:
		return goTo(webhookAddress(e.ID)).saying("webhook-replayed"), nil
	}
}

// webhookDecisionPage is what asks for a decision about an endpoint, drawn as the one about stopping payouts.
func (d *dashboard) webhookDecisionPage(ctx context.Context, v *pageRequest) (webhook.Endpoint, webhookDecision, *stopView, error) {
	e, err := d.webhookOf(ctx, v)
	if err != nil {
		return e, webhookDecision{}, nil, err
	}
	i := slices.IndexFunc(webhookDecisions, func(a webhookDecision) bool { return a.Slug == v.r.PathValue("decision") })
	if i < 0 {
		return e, webhookDecision{}, nil, errNoPage
	}
	a := webhookDecisions[i]
	s := &stopView{
		stopAction: stopAction{Title: a.Title + ": " + e.Where(), Submit: a.Title, Does: a.Does, DoesNot: a.DoesNot},
		Back:       webhookAddress(e.ID), Form: &form{Action: v.r.URL.Path, Submit: a.Title, Fields: []field{noteField(true)}},
	}
	return e, a, s, d.askForCode(ctx, v, s.Form)
}

func (d *dashboard) askAboutWebhook(ctx context.Context, v *pageRequest) (page, error) {
	e, a, s, err := d.webhookDecisionPage(ctx, v)
	switch {
	case err != nil:
		return page{}, err
	case !a.fits(e):
		return goTo(s.Back).saying("no-longer-fits"), nil
	default:
		return show("admin-stop", s.Title, s), nil
	}
}

// decideWebhook carries a decision about an endpoint out.
func (d *dashboard) decideWebhook(ctx context.Context, v *pageRequest) (page, error) {
	e, a, s, err := d.webhookDecisionPage(ctx, v)
	if err != nil {
		return page{}, err
	}
	if !a.fits(e) {
		return goTo(s.Back).saying("no-longer-fits"), nil
	}
	by, secret := byOf(v), ""
	if err = by.CheckNote(); err == nil {
		err = d.proveDecision(ctx, v, a.decides, e.ID)
	}
	if err == nil {
		secret, err = a.do(ctx, d.o.Webhooks, by, e.ID)
	}
	switch {
	case err != nil:
		return d.again(ctx, show("admin-stop", s.Title, s), s.Form.fill(v.form), err)
	case secret != "":
		return d.webhookPage(ctx, e, secret)
	case a.decides == decision.RemoveWebhook:
		return goTo(webhooksPath).saying(a.done), nil
	default:
		return goTo(s.Back).saying(a.done), nil
	}
}
