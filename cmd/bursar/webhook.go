package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"bursar/internal/decision"
	"bursar/internal/webhook"
)

type webhookCmd struct {
	Add     webhookAddCmd     `cmd:"" help:"Have events delivered to a server of the marketplace."`
	List    webhookListCmd    `cmd:"" help:"List the endpoints and how deliveries go."`
	Test    webhookTestCmd    `cmd:"" help:"Send a test event now."`
	Replay  webhookReplayCmd  `cmd:"" help:"Send events again."`
	Rotate  webhookRotateCmd  `cmd:"" help:"Replace the secret that deliveries are signed with."`
	Enable  webhookEnableCmd  `cmd:"" help:"Have events delivered to a disabled endpoint again."`
	Disable webhookDisableCmd `cmd:"" help:"Have nothing delivered to an endpoint until it is enabled."`
	Remove  webhookRemoveCmd  `cmd:"" help:"Have nothing more delivered to an endpoint."`
}

// withEndpoints opens the datastore and hands its endpoints to a command.
func withEndpoints(ctx context.Context, e *env, run func(*webhook.Service) error) error {
	_, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	endpoints, err := datastore.Endpoints()
	if err != nil {
		return err
	}
	return run(endpoints)
}

// byOperator is a decision of the person who runs the command.
func byOperator() decision.By {
	return decision.By{Operator: operator()}
}

type webhookAddCmd struct {
	URL         string   `arg:"" name:"url" help:"Where events are posted to, such as https://shop.example/bursar."`
	Type        []string `placeholder:"TYPE" help:"A type of events that is delivered; repeat it for more. None is all."`
	Description string   `help:"What the endpoint is."`
	JSON        bool     `help:"Print the endpoint and its secret as JSON."`
}

func (webhookAddCmd) Help() string {
	return "Prints the secret that deliveries are signed with, once, alone on the last line of standard output. It works beside a running server.\n\n" +
		examples("bursar webhook add https://shop.example/bursar", "bursar webhook add https://shop.example/bursar --type payout.completed --type payout.failed")
}

// Run adds an endpoint and prints its secret.
func (c webhookAddCmd) Run(ctx context.Context, e *env) error {
	types, err := webhook.ParseTypes(c.Type)
	if err != nil {
		return err
	}
	return withEndpoints(ctx, e, func(endpoints *webhook.Service) error {
		added, secret, err := endpoints.Add(ctx, byOperator(), webhook.NewEndpoint{URL: c.URL, Types: types, Description: c.Description})
		if err != nil {
			return err
		}
		return writeSecret(e, c.JSON, added, secret)
	})
}

// writeSecret prints an endpoint's secret, which is shown once.
func writeSecret(e *env, asJSON bool, of webhook.Endpoint, secret string) error {
	if asJSON {
		return writeJSON(e.out, struct {
			endpointJSON
			Secret string `json:"secret"`
		}{endpointJSONOf(of), secret})
	}
	fmt.Fprintf(e.err, "The endpoint is %s. This is the only time its secret is shown.\n", of.ID)
	_, err := fmt.Fprintln(e.out, secret)
	return err
}

// endpointJSON is an endpoint as programs read it.
type endpointJSON struct {
	ID              string     `json:"id"`
	URL             string     `json:"url"`
	Types           []string   `json:"types"`
	Description     string     `json:"description"`
	Status          string     `json:"status"`
	Reason          string     `json:"reason,omitempty"`
	FailingSince    *time.Time `json:"failingSince"`
	LastDeliveredAt *time.Time `json:"lastDeliveredAt"`
	CreatedAt       time.Time  `json:"createdAt"`
}

func endpointJSONOf(e webhook.Endpoint) endpointJSON {
	out := endpointJSON{ID: e.ID, URL: e.URL, Types: []string{}, Description: e.Description, Status: endpointStatus(e), Reason: e.Reason, CreatedAt: e.CreatedAt}
	for _, t := range e.Types {
		out.Types = append(out.Types, string(t))
	}
	if !e.FailingSince.IsZero() {
		out.FailingSince = &e.FailingSince
	}
	if !e.LastDeliveredAt.IsZero() {
		out.LastDeliveredAt = &e.LastDeliveredAt
	}
	return out
}

func endpointStatus(e webhook.Endpoint) string {
	if e.Tampered {
		return "tampered"
	}
	return string(e.Status)
}

type webhookListCmd struct {
	JSON bool `help:"Print the list as JSON."`
}

func (webhookListCmd) Help() string {
	return "Shows the oldest endpoint first. One that was changed in the database by hand is marked as tampered; nothing is delivered there.\n\n" +
		examples("bursar webhook list", "bursar webhook list --json | jq -r '.[] | select(.failingSince) | .url'")
}

// Run lists the endpoints.
func (c webhookListCmd) Run(ctx context.Context, e *env) error {
	return withEndpoints(ctx, e, func(endpoints *webhook.Service) error {
		all, err := endpoints.Endpoints(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			shown := make([]endpointJSON, 0, len(all))
			for _, one := range all {
				shown = append(shown, endpointJSONOf(one))
			}
			return writeJSON(e.out, shown)
		}
		return writeEndpoints(e.out, all)
	})
}

func writeEndpoints(w io.Writer, all []webhook.Endpoint) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "There are no webhook endpoints. Add one with: bursar webhook add URL")
		return err
	}
	const padding = 2
	table := tabwriter.NewWriter(w, 0, 0, padding, ' ', 0)
	fmt.Fprintln(table, "ID\tSTATUS\tREASON\tLAST DELIVERED\tFAILING SINCE\tURL")
	for _, one := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", one.ID, endpointStatus(one), orDash(one.Reason), timeOrDash(one.LastDeliveredAt), timeOrDash(one.FailingSince), one.URL)
	}
	return table.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func timeOrDash(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}

type webhookTestCmd struct {
	Endpoint string `arg:"" help:"The endpoint's id, as \"bursar webhook list\" shows it."`
	JSON     bool   `help:"Print the result as JSON."`
}

func (webhookTestCmd) Help() string {
	return "Sends an event of type ping, from this machine, and fails unless the endpoint takes it.\n\n" + examples("bursar webhook test whe_0V4xkPzj1Kq8mZ3tYb6RcW2N")
}

var errNotTaken = errors.New("the endpoint did not take the test")

// Run sends a test event.
func (c webhookTestCmd) Run(ctx context.Context, e *env) error {
	return withEndpoints(ctx, e, func(endpoints *webhook.Service) error {
		result, err := endpoints.Test(ctx, c.Endpoint)
		if err != nil {
			return err
		}
		said := "answered " + strconv.Itoa(result.Status)
		if result.Status == 0 {
			said = "gave no answer: " + result.Problem
		}
		if c.JSON {
			err = writeJSON(e.out, struct {
				Delivered      bool   `json:"delivered"`
				ResponseStatus int    `json:"responseStatus,omitempty"`
				Answer         string `json:"answer,omitempty"`
				Problem        string `json:"problem,omitempty"`
			}{result.Succeeded(), result.Status, result.Body, result.Problem})
		} else {
			_, err = fmt.Fprintf(e.out, "The endpoint %s.\n", said)
		}
		if err == nil && !result.Succeeded() {
			err = errNotTaken
		}
		return err
	})
}

type webhookReplayCmd struct {
	Event    string `arg:"" help:"The event's id."`
	Endpoint string `placeholder:"ID" help:"The endpoint to send it to; all that are enabled and want it unless set."`
	Through  string `placeholder:"EVENT" help:"The last event of a range, which needs --endpoint."`
	JSON     bool   `help:"Print how many deliveries this makes as JSON."`
}

func (webhookReplayCmd) Help() string {
	return "Events are sent by a running server, under their first ids and signed with the current secret.\n\n" +
		examples("bursar webhook replay evt_0V4xkPzj1Kq8mZ3tYb6RcW2N", "bursar webhook replay evt_0V4x… --through evt_0V4y… --endpoint whe_0V4x…")
}

// Run has events sent again.
func (c webhookReplayCmd) Run(ctx context.Context, e *env) error {
	return withEndpoints(ctx, e, func(endpoints *webhook.Service) error {
		n, err := endpoints.Redeliver(ctx, webhook.Redelivery{Event: c.Event, Through: c.Through, Endpoint: c.Endpoint})
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(e.out, map[string]int{"queued": n})
		}
		_, err = fmt.Fprintf(e.out, "Queued: %d.\n", n)
		return err
	})
}

type webhookRotateCmd struct {
	Endpoint string `arg:"" help:"The endpoint's id, as \"bursar webhook list\" shows it."`
	JSON     bool   `help:"Print the endpoint and its new secret as JSON."`
}

func (webhookRotateCmd) Help() string {
	return "Prints the new secret, once, alone on the last line of standard output. For 24 hours deliveries are signed with the old one too, so the " +
		"receiver can change over meanwhile.\n\n" + examples("bursar webhook rotate whe_0V4xkPzj1Kq8mZ3tYb6RcW2N")
}

// Run replaces an endpoint's secret and prints the new one.
func (c webhookRotateCmd) Run(ctx context.Context, e *env) error {
	return withEndpoints(ctx, e, func(endpoints *webhook.Service) error {
		rotated, secret, err := endpoints.Rotate(ctx, byOperator(), c.Endpoint)
		if err != nil {
			return err
		}
		return writeSecret(e, c.JSON, rotated, secret)
	})
}

type webhookEnableCmd struct {
	Endpoint string `arg:"" help:"The endpoint's id, as \"bursar webhook list\" shows it."`
	JSON     bool   `help:"Print the endpoint as JSON."`
}

func (webhookEnableCmd) Help() string {
	return "What waited is sent at once. What happened while the endpoint was disabled is not, until you replay it.\n\n" +
		examples("bursar webhook enable whe_0V4xkPzj1Kq8mZ3tYb6RcW2N", "bursar webhook replay evt_0V4x… --through evt_0V4y… --endpoint whe_0V4x…")
}

// Run enables an endpoint.
func (c webhookEnableCmd) Run(ctx context.Context, e *env) error {
	return setWebhookStatus(ctx, e, c.Endpoint, webhook.Enabled, c.JSON)
}

type webhookDisableCmd struct {
	Endpoint string `arg:"" help:"The endpoint's id, as \"bursar webhook list\" shows it."`
	JSON     bool   `help:"Print the endpoint as JSON."`
}

func (webhookDisableCmd) Help() string {
	return "What waits stays for when it is enabled again. What happens meanwhile is not kept for it; the feed has it. " +
		"One that Bursar disabled leaves the inbox and the alerts.\n\n" +
		examples("bursar webhook disable whe_0V4xkPzj1Kq8mZ3tYb6RcW2N")
}

// Run disables an endpoint.
func (c webhookDisableCmd) Run(ctx context.Context, e *env) error {
	return setWebhookStatus(ctx, e, c.Endpoint, webhook.Disabled, c.JSON)
}

func setWebhookStatus(ctx context.Context, e *env, id string, status webhook.Status, asJSON bool) error {
	return withEndpoints(ctx, e, func(endpoints *webhook.Service) error {
		changed, err := endpoints.Change(ctx, byOperator(), id, webhook.Change{Status: &status})
		if err != nil {
			return err
		}
		if asJSON {
			return writeJSON(e.out, endpointJSONOf(changed))
		}
		_, err = fmt.Fprintf(e.out, "The endpoint %s is %s.\n", changed.ID, changed.Status)
		return err
	})
}

type webhookRemoveCmd struct {
	Endpoint string `arg:"" help:"The endpoint's id, as \"bursar webhook list\" shows it."`
	JSON     bool   `help:"Print the id as JSON."`
}

func (webhookRemoveCmd) Help() string {
	return "What was not delivered never is. It works beside a running server.\n\n" + examples("bursar webhook remove whe_0V4xkPzj1Kq8mZ3tYb6RcW2N")
}

// Run removes an endpoint.
func (c webhookRemoveCmd) Run(ctx context.Context, e *env) error {
	return withEndpoints(ctx, e, func(endpoints *webhook.Service) error {
		if err := endpoints.Remove(ctx, byOperator(), c.Endpoint); err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(e.out, map[string]string{"removed": c.Endpoint})
		}
		_, err := fmt.Fprintf(e.out, "The endpoint %s is removed.\n", c.Endpoint)
		return err
	})
}
