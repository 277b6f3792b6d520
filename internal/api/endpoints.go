package api

import (
	"context"
	"net/http"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/event"
	"bursar/internal/id"
	"bursar/internal/webhook"
)

// endpointJSON is a webhook endpoint without its secret.
type endpointJSON struct {
	ID              string       `json:"id"`
	URL             string       `json:"url"`
	Types           []event.Type `json:"types"`
	Description     string       `json:"description"`
	Status          string       `json:"status"`
	Reason          orNull       `json:"reason"`
	FailingSince    orNull       `json:"failingSince"`
	RetryAt         orNull       `json:"retryAt"`
	LastDeliveredAt orNull       `json:"lastDeliveredAt"`
	RotatedUntil    orNull       `json:"rotatedUntil"`
	CreatedAt       string       `json:"createdAt"`
}

// newEndpointJSON also has the secret, which is shown once.
type newEndpointJSON struct {
	endpointJSON
	Secret string `json:"secret"`
}

type endpointsJSON struct {
	Endpoints []endpointJSON `json:"endpoints"`
}

func (a *api) endpointOf(e webhook.Endpoint) endpointJSON {
	shown := endpointJSON{
		ID: e.ID, URL: e.URL, Types: e.Types, Description: e.Description, Status: string(e.Status), Reason: orNull(e.Reason),
		FailingSince: stampOrNull(e.FailingSince), RetryAt: stampOrNull(e.RetryAt), LastDeliveredAt: stampOrNull(e.LastDeliveredAt), CreatedAt: stamp(e.CreatedAt),
	}
	if e.Types == nil {
		shown.Types = []event.Type{}
	}
	if e.Tampered {
		shown.Status = "tampered"
	}
	if e.OldUntil.After(a.o.Now()) {
		shown.RotatedUntil = stampOrNull(e.OldUntil)
	}
	return shown
}

// eventTypes takes a list of types of events, and reports whether it was given.
func (in *input) eventTypes() (types []event.Type, given bool) {
	types, err := webhook.ParseTypes(in.optionalTexts("types", maxTypes))
	in.noteError(err)
	return types, in.member("types") != nil
}

type addEndpointRequest struct{ webhook.NewEndpoint }

func (req *addEndpointRequest) read(in *input) {
	req.URL = in.text("url", webhook.CheckURL)
	req.Types, _ = in.eventTypes()
	req.Description = in.optionalText("description", webhook.CheckDescription)
}

func (a *api) addEndpoint(ctx context.Context, c caller, req addEndpointRequest) (reply[newEndpointJSON], error) {
	by, err := a.decidesAs(ctx, c, decision.AddWebhook, req.URL, "")
	if err != nil {
		return reply[newEndpointJSON]{}, err
	}
	e, secret, err := a.o.Endpoints.Add(ctx, by, req.NewEndpoint)
	return reply[newEndpointJSON]{
		status: http.StatusCreated, message: "This is the only time the secret is shown.", data: newEndpointJSON{a.endpointOf(e), secret},
	}, err
}

func (a *api) listEndpoints(ctx context.Context, _ caller, _ none) (reply[endpointsJSON], error) {
	all, err := a.o.Endpoints.Endpoints(ctx)
	return answer(endpointsJSON{mapped(all, a.endpointOf)}, err)
}

type endpointRequest struct{ id string }

func (req *endpointRequest) read(in *input) {
	req.id = in.r.PathValue("endpointId")
	if !id.Valid(webhook.EndpointPrefix, req.id) {
		in.refuse(webhook.ErrNotFound)
	}
}

func (a *api) getEndpoint(ctx context.Context, _ caller, req endpointRequest) (reply[endpointJSON], error) {
	e, err := a.o.Endpoints.Endpoint(ctx, req.id)
	return answer(a.endpointOf(e), err)
}

type changeEndpointRequest struct {
	endpointRequest
	webhook.Change
}

func (req *changeEndpointRequest) read(in *input) {
	req.endpointRequest.read(in)
	if in.member("url") != nil {
		url := in.text("url", webhook.CheckURL)
		req.URL = &url
	}
	if types, given := in.eventTypes(); given {
		req.Types = &types
	}
	if in.member("description") != nil {
		description := in.text("description", webhook.CheckDescription)
		req.Description = &description
	}
	if in.member("status") != nil {
		status := webhook.Status(in.text("status", func(s string) string {
			if s != string(webhook.Enabled) && s != string(webhook.Disabled) {
				return "must be enabled or disabled"
			}
			return ""
		}))
		req.Status = &status
	}
}

func (a *api) changeEndpoint(ctx context.Context, c caller, req changeEndpointRequest) (reply[endpointJSON], error) {
	by, err := a.decidesAs(ctx, c, decision.ChangeWebhook, req.id, "")
	if err != nil {
		return reply[endpointJSON]{}, err
	}
	e, err := a.o.Endpoints.Change(ctx, by, req.id, req.Change)
	return answer(a.endpointOf(e), err)
}

func (a *api) removeEndpoint(ctx context.Context, c caller, req endpointRequest) (reply[none], error) {
	err := a.decide(ctx, c, decision.RemoveWebhook, req.id, "", a.o.Endpoints.Remove)
	return reply[none]{message: "Nothing more is delivered there."}, err
}

func (a *api) rotateEndpointSecret(ctx context.Context, c caller, req endpointRequest) (reply[newEndpointJSON], error) {
	by, err := a.decidesAs(ctx, c, decision.RotateWebhook, req.id, "")
	if err != nil {
		return reply[newEndpointJSON]{}, err
	}
	e, secret, err := a.o.Endpoints.Rotate(ctx, by, req.id)
	return reply[newEndpointJSON]{
		message: "Both secrets sign for a day. This is the only time the new one is shown.", data: newEndpointJSON{a.endpointOf(e), secret},
	}, err
}

type endpointTestJSON struct {
	Delivered      bool   `json:"delivered"`
	ResponseStatus *int   `json:"responseStatus"`
	Answer         orNull `json:"answer"`
	Problem        orNull `json:"problem"`
}

func (a *api) testEndpoint(ctx context.Context, _ caller, req endpointRequest) (reply[endpointTestJSON], error) {
	result, err := a.o.Endpoints.Test(ctx, req.id)
	return answer(endpointTestJSON{result.Succeeded(), numberOrNull(result.Status), orNull(result.Body), orNull(result.Problem)}, err)
}

// numberOrNull is a number of which 0 stands for none.
func numberOrNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

type deliveriesRequest struct{ webhook.Filter }

func (req *deliveriesRequest) read(in *input) {
	req.Limit = in.number("limit", event.MaxPage, event.MaxPage)
	for name, field := range map[string]struct {
		prefix string
		to     *string
	}{
		"endpoint": {webhook.EndpointPrefix, &req.Endpoint},
		"event":    {event.IDPrefix, &req.Event},
		"before":   {webhook.DeliveryPrefix, &req.Before},
	} {
		s, given := in.parameter(name)
		if given && !id.Valid(field.prefix, s) {
			in.noteInvalid(name, "must be an id that begins with "+field.prefix)
		}
		*field.to = s
	}
	if s, given := in.parameter("status"); given {
		req.Status = webhook.DeliveryStatus(s)
		if !req.Status.IsValid() {
			in.noteInvalid("status", "must be pending, delivered or failed")
		}
	}
}

type deliveryJSON struct {
	ID             string `json:"id"`
	EventID        string `json:"eventId"`
	EndpointID     string `json:"endpointId"`
	Attempt        int64  `json:"attempt"`
	Status         string `json:"status"`
	ResponseStatus *int   `json:"responseStatus"`
	Answer         orNull `json:"answer"`
	Problem        orNull `json:"problem"`
	At             orNull `json:"at"`
	NextAt         orNull `json:"nextAt"`
	CreatedAt      string `json:"createdAt"`
}

func deliveryOf(d webhook.Delivery) deliveryJSON {
	return deliveryJSON{
		d.ID, d.EventID, d.EndpointID, d.Attempt, string(d.Status), numberOrNull(d.ResponseStatus), orNull(d.Answer), orNull(d.Problem),
		stampOrNull(d.At), stampOrNull(d.DueAt), stamp(d.CreatedAt),
	}
}

type deliveriesJSON struct {
	Deliveries []deliveryJSON `json:"deliveries"`
	// Next is for the parameter before of the next page; null on the last one.
	Next orNull `json:"next"`
}

func (a *api) deliveries(ctx context.Context, _ caller, req deliveriesRequest) (reply[deliveriesJSON], error) {
	limit := req.Limit
	req.Limit++ // to know whether there is another page
	all, err := a.o.Endpoints.Deliveries(ctx, req.Filter)
	if err != nil {
		return reply[deliveriesJSON]{}, err
	}
	hasMore := len(all) > limit
	all = all[:min(len(all), limit)]
	shown := deliveriesJSON{Deliveries: mapped(all, deliveryOf)}
	if hasMore {
		shown.Next = orNull(all[len(all)-1].ID)
	}
	return reply[deliveriesJSON]{data: shown}, nil
}

type redeliverRequest struct{ webhook.Redelivery }

func (req *redeliverRequest) read(in *input) {
	req.Event = in.r.PathValue("eventId")
	if !id.Valid(event.IDPrefix, req.Event) {
		in.refuse(webhook.ErrEventNotFound)
	}
	if in.r.ContentLength == 0 {
		return
	}
	req.Through = in.optionalText("through", checkNoControls)
	req.Endpoint = in.optionalText("endpointId", checkNoControls)
}

type redeliveredJSON struct {
	Queued int `json:"queued"`
}

func (a *api) redeliver(ctx context.Context, _ caller, req redeliverRequest) (reply[redeliveredJSON], error) {
	n, err := a.o.Endpoints.Redeliver(ctx, req.Redelivery)
	return reply[redeliveredJSON]{status: http.StatusAccepted, data: redeliveredJSON{n}}, err
}

// endpointRoutes are those of webhooks.
func (a *api) endpointRoutes() []route {
	writes := a.marketplaceOrAdmin(auth.ScopeWebhooksWrite)
	return []route{
		{"POST", "/api/webhooks/endpoints", handle(a, writes, a.addEndpoint)},
		{"GET", "/api/webhooks/endpoints", handle(a, writes, a.listEndpoints)},
		{"GET", "/api/webhooks/endpoints/{endpointId}", handle(a, writes, a.getEndpoint)},
		{"PATCH", "/api/webhooks/endpoints/{endpointId}", handle(a, writes, a.changeEndpoint)},
		{"DELETE", "/api/webhooks/endpoints/{endpointId}", handle(a, writes, a.removeEndpoint)},
		{"POST", "/api/webhooks/endpoints/{endpointId}/rotate-secret", handle(a, writes, a.rotateEndpointSecret)},
		{"POST", "/api/webhooks/endpoints/{endpointId}/test", handle(a, writes, a.testEndpoint)},
		{"GET", "/api/webhooks/deliveries", handle(a, writes, a.deliveries)},
		{"POST", "/api/webhooks/events/{eventId}/redeliver", handle(a, writes, a.redeliver)},
	}
}
