package client

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Endpoint is a server of the marketplace that events are delivered to.
type Endpoint struct {
	ID  string `json:"id"`
	URL string `json:"url"`
	// Types are those that are delivered; none is all.
	Types       []EventType `json:"types"`
	Description string      `json:"description"`
	// Status is enabled, disabled or tampered: changed outside the service, so that nothing is delivered.
	Status string `json:"status"`
	// Reason is why it is disabled: disabled by a person, gone because it answered 410, failing for five days.
	Reason          string    `json:"reason"`
	FailingSince    time.Time `json:"failingSince"`
	RetryAt         time.Time `json:"retryAt"`
	LastDeliveredAt time.Time `json:"lastDeliveredAt"`
	// RotatedUntil is until when the secret before the last rotation signs too.
	RotatedUntil time.Time `json:"rotatedUntil"`
	CreatedAt    time.Time `json:"createdAt"`
	// Secret is what deliveries are signed with. Only [Client.AddEndpoint] and [Client.RotateSecret] return it.
	Secret string `json:"secret,omitempty"`
}

// NewEndpoint is where events are delivered to.
type NewEndpoint struct {
	// URL is an https address, or an http one on the service's own machine.
	URL         string      `json:"url"`
	Types       []EventType `json:"types,omitempty"`
	Description string      `json:"description,omitempty"`
}

// AddEndpoint has events delivered to a server from now on. Keep the Secret of what it returns. Scope, as of all that follow:
// webhooks:write.
func (c *Client) AddEndpoint(ctx context.Context, e NewEndpoint) (Endpoint, error) {
	var endpoint Endpoint
	return endpoint, c.do(ctx, call{method: http.MethodPost, path: endpoints(), body: e}, &endpoint)
}

// Endpoints lists all endpoints, the oldest first.
func (c *Client) Endpoints(ctx context.Context) ([]Endpoint, error) {
	var list struct {
		Endpoints []Endpoint `json:"endpoints"`
	}
	err := c.do(ctx, call{method: http.MethodGet, path: endpoints(), repeatable: true}, &list)
	return list.Endpoints, err
}

// Endpoint reads one endpoint.
func (c *Client) Endpoint(ctx context.Context, id string) (Endpoint, error) {
	var endpoint Endpoint
	return endpoint, c.do(ctx, call{method: http.MethodGet, path: endpoints(id), repeatable: true}, &endpoint)
}

// EndpointChange is what is to change. What is nil stays.
type EndpointChange struct {
	URL         *string      `json:"url,omitempty"`
	Types       *[]EventType `json:"types,omitempty"`
	Description *string      `json:"description,omitempty"`
	// Status is enabled or disabled.
	Status *string `json:"status,omitempty"`
}

// ChangeEndpoint changes, disables or enables an endpoint.
func (c *Client) ChangeEndpoint(ctx context.Context, id string, e EndpointChange) (Endpoint, error) {
	var endpoint Endpoint
	return endpoint, c.do(ctx, call{method: http.MethodPatch, path: endpoints(id), body: e, repeatable: true}, &endpoint)
}

// RemoveEndpoint ends deliveries to an endpoint.
func (c *Client) RemoveEndpoint(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: endpoints(id)}, nil)
}

// RotateSecret gives an endpoint another secret, which it returns. For a day deliveries are signed with both.
func (c *Client) RotateSecret(ctx context.Context, id string) (Endpoint, error) {
	var endpoint Endpoint
	return endpoint, c.do(ctx, call{method: http.MethodPost, path: endpoints(id, "rotate-secret")}, &endpoint)
}

// TestResult is how a test went.
type TestResult struct {
	Delivered bool `json:"delivered"`
	// ResponseStatus is 0 without an answer.
	ResponseStatus int `json:"responseStatus"`
	// Answer is the beginning of what the endpoint answered.
	Answer string `json:"answer"`
	// Problem is why there was no answer.
	Problem string `json:"problem"`
}

// TestEndpoint sends an event of type [Ping] and waits for the answer.
func (c *Client) TestEndpoint(ctx context.Context, id string) (TestResult, error) {
	var result TestResult
	return result, c.do(ctx, call{method: http.MethodPost, path: endpoints(id, "test")}, &result)
}

func endpoints(rest ...string) []string { return append([]string{"webhooks", "endpoints"}, rest...) }

// Delivery is an event on its way to an endpoint.
type Delivery struct {
	ID         string `json:"id"`
	EventID    string `json:"eventId"`
	EndpointID string `json:"endpointId"`
	// Attempt is how many attempts were begun.
	Attempt int `json:"attempt"`
	// Status is pending, delivered or failed.
	Status         string    `json:"status"`
	ResponseStatus int       `json:"responseStatus"` // 0 without an answer
	Answer         string    `json:"answer"`
	Problem        string    `json:"problem"`
	At             time.Time `json:"at"`     // when the last attempt ended
	NextAt         time.Time `json:"nextAt"` // zero if there is none to come
	CreatedAt      time.Time `json:"createdAt"`
}

// DeliveryFilter narrows [Client.Deliveries]. What is empty does not.
type DeliveryFilter struct {
	EndpointID, EventID string
	// Status is pending, delivered or failed.
	Status string
}

// Deliveries reads deliveries, the newest first, until the first error. They are kept for 30 days.
func (c *Client) Deliveries(ctx context.Context, f DeliveryFilter) iter.Seq2[Delivery, error] {
	return byCursor(func(before string) ([]Delivery, string, error) {
		var page struct {
			Deliveries []Delivery `json:"deliveries"`
			Next       string     `json:"next"`
		}
		query := url.Values{}
		for name, value := range map[string]string{"endpoint": f.EndpointID, "event": f.EventID, "status": f.Status, "before": before} {
			if value != "" {
				query.Set(name, value)
			}
		}
		err := c.do(ctx, call{method: http.MethodGet, path: []string{"webhooks", "deliveries"}, query: query, repeatable: true}, &page)
		return page.Deliveries, page.Next, err
	})
}

// Redelivery is where events are sent again.
type Redelivery struct {
	// EndpointID is one endpoint; without it the event goes to all that are enabled and want its type.
	EndpointID string `json:"endpointId,omitempty"`
	// Through is the id of the last event of a range of at most 1000. It needs EndpointID.
	Through string `json:"through,omitempty"`
}

// Redeliver sends an event again, or a range that begins with it, and returns how many deliveries that makes.
func (c *Client) Redeliver(ctx context.Context, eventID string, to Redelivery) (int, error) {
	var answer struct {
		Queued int `json:"queued"`
	}
	err := c.do(ctx, call{method: http.MethodPost, path: []string{"webhooks", "events", eventID, "redeliver"}, body: to}, &answer)
	return answer.Queued, err
}

const (
	secretPrefix = "whsec_"
	// tolerance is how far a delivery's time may be from ours, before or after.
	tolerance = 5 * time.Minute
	// maxDelivery bounds the body of a delivery.
	maxDelivery = 1 << 20
)

// ErrNotVerified says that a delivery is not from Bursar, or too old, or was changed on the way.
var ErrNotVerified = errors.New("the delivery can't be verified")

// Webhooks verifies deliveries, as Standard Webhooks 1.0 has them. Many goroutines may use one.
type Webhooks struct {
	secrets [][]byte
	// Now is the clock; it is there for tests.
	Now func() time.Time
}

// NewWebhooks makes what verifies deliveries with an endpoint's secret. While the secret is rotated, hand in both.
func NewWebhooks(secrets ...string) (*Webhooks, error) {
	w := &Webhooks{Now: time.Now}
	for _, secret := range secrets {
		text, found := strings.CutPrefix(secret, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(text)
		if !found || err != nil || len(key) == 0 {
			return nil, errors.New("an endpoint's secret is " + secretPrefix + " and base64, as it was shown when the endpoint was added")
		}
		w.secrets = append(w.secrets, key)
	}
	if len(w.secrets) == 0 {
		return nil, errors.New("a secret is needed")
	}
	return w, nil
}

// Verify reads the event of a delivery: of its header and its body as it came, byte by byte. It fails with [ErrNotVerified].
// Events are delivered at least once and in no promised order: store each under its ID, and do nothing if it is there.
func (w *Webhooks) Verify(header http.Header, body []byte) (Event, error) {
	id, sent := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(sent, 10, 64)
	if id == "" || err != nil {
		return Event{}, fmt.Errorf("%w: webhook-id or webhook-timestamp is missing", ErrNotVerified)
	}
	if off := w.Now().Sub(time.Unix(seconds, 0)).Abs(); off > tolerance {
		return Event{}, fmt.Errorf("%w: it was sent more than %d minutes before or after now; check both clocks", ErrNotVerified, int(tolerance.Minutes()))
	}
	if !w.signed(header.Get("webhook-signature"), id+"."+sent+".", body) {
		return Event{}, fmt.Errorf("%w: no signature is by the secret; verify the body as it came, and hand in the endpoint's own secret", ErrNotVerified)
	}
	e := Event{}
	if err := json.Unmarshal(body, &e); err != nil {
		return Event{}, fmt.Errorf("the delivery %s can't be read: %w", id, err)
	}
	e.ID = id
	return e, nil
}

// signed reports whether one of the signatures is by one of the secrets.
func (w *Webhooks) signed(signatures, prefix string, body []byte) bool {
	for signature := range strings.FieldsSeq(signatures) {
		text, found := strings.CutPrefix(signature, "v1,")
		given, err := base64.StdEncoding.DecodeString(text)
		if !found || err != nil {
			continue // of another version
		}
		for _, secret := range w.secrets {
			mac := hmac.New(sha256.New, secret)
			mac.Write([]byte(prefix))
			mac.Write(body)
			if hmac.Equal(given, mac.Sum(nil)) {
				return true
			}
		}
	}
	return false
}

// Handler receives deliveries, and hands each one that is verified to take. If take succeeds, the delivery is answered 204 and
// not sent again; if it fails, 500, and Bursar sends it again later. Answer within 15 seconds: store the event and do the work
// afterwards.
func (w *Webhooks) Handler(take func(context.Context, Event) error) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			response.Header().Set("Allow", http.MethodPost)
			http.Error(response, "Deliveries are POST requests.", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(response, r.Body, maxDelivery))
		if err != nil {
			http.Error(response, "The body can't be read.", http.StatusBadRequest)
			return
		}
		e, err := w.Verify(r.Header, body)
		if err != nil {
			http.Error(response, "The delivery can't be verified.", http.StatusBadRequest)
			return
		}
		if err := take(r.Context(), e); err != nil {
			http.Error(response, "The event was not taken.", http.StatusInternalServerError)
			return
		}
		response.WriteHeader(http.StatusNoContent)
	})
}
