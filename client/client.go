// Package client lets a marketplace's server use Bursar: record sales, look after sellers, request payouts for them, and
// follow what happens.
//
//	bursar, err := client.New(client.Config{BaseURL: "https://pay.example.com", Key: os.Getenv("SERVICE_KEY")})
//	…
//	sale, err := bursar.RecordSale(ctx, client.NewSale{
//		SaleID: "order-1001", SellerID: client.ExternalID("shop-17"), Amount: "1499.50",
//	})
//
// A request is sent again after 429, and after 503, 502, 504 and lost answers if to repeat it does no harm; so a payout is
// requested under an idempotency key, which [Client.RequestPayout] makes if the caller has none. Every failure that the
// service explains is an [*Error] with a stable code. Amounts are decimal text ([Amount]), so nothing is rounded.
//
// [Client.Events] and [Client.Follow] read the feed of events; [Webhooks] verifies the deliveries of the same events.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// APIVersion is the version of the API that this package was made for.
const APIVersion = "1"

// Bounds of a request, unless [Config] has others.
const (
	defaultAttempts = 4
	defaultTimeout  = 30 * time.Second
	defaultMaxWait  = 30 * time.Second
	firstWait       = 200 * time.Millisecond
	maxAnswer       = 16 << 20
)

// Config is how a [Client] reaches Bursar.
type Config struct {
	// BaseURL is the service's address, such as https://pay.example.com.
	BaseURL string
	// Key is a service key: "bursar apikey create --name NAME" makes one.
	Key string
	// HTTPClient sends the requests. By default it is one that gives up an attempt after 30 seconds and follows no redirect.
	HTTPClient *http.Client
	// Attempts is how often a request is sent at most; 4 by default, 1 for never again.
	Attempts int
	// MaxWait is the longest wait before another attempt, 30 seconds by default. If the service asks for a longer one, the
	// call fails with what it answered.
	MaxWait time.Duration
}

// Client calls Bursar with a service key. Many goroutines may use one.
type Client struct {
	base, key string
	http      *http.Client
	attempts  int
	maxWait   time.Duration
}

// New makes a client. It fails if the address or the key can't be right, and sends nothing.
func New(c Config) (*Client, error) {
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("the BaseURL must be an address such as https://pay.example.com")
	}
	if c.Key == "" || strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New(`the key must be a service key; "bursar apikey create --name NAME" makes one`)
	}
	if c.Attempts < 0 || c.MaxWait < 0 {
		return nil, errors.New("neither Attempts nor MaxWait may be negative")
	}
	if c.HTTPClient == nil {
		c.HTTPClient = &http.Client{
			Timeout:       defaultTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return &Client{
		base: strings.TrimRight(base.String(), "/"), key: c.Key, http: c.HTTPClient,
		attempts: cmp.Or(c.Attempts, defaultAttempts), maxWait: cmp.Or(c.MaxWait, defaultMaxWait),
	}, nil
}

// ExternalID names a seller by the marketplace's own id, wherever a seller's id is asked for.
func ExternalID(id string) string { return "ext:" + id }

// call is one request to the API.
type call struct {
	method string
	path   []string // its segments, which are escaped
	query  url.Values
	body   any
	// idempotencyKey makes a payout request repeatable.
	idempotencyKey string
	// repeatable says that to send it twice has the effect of once, so it is sent again if its answer was lost.
	repeatable bool
}

// do sends a request, again where it may, and reads the data of its answer.
func (c *Client) do(ctx context.Context, r call, data any) error {
	address, err := c.address(r)
	if err != nil {
		return err
	}
	var body []byte
	if r.body != nil {
		if body, err = json.Marshal(r.body); err != nil {
			return fmt.Errorf("the request can't be written as JSON: %w", err)
		}
	}
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx, r, address, body, data)
		wait, again := c.again(r, err, attempt)
		if !again {
			return err
		}
		if !sleep(ctx, wait) {
			return fmt.Errorf("%w; before that: %w", context.Cause(ctx), err)
		}
	}
}

// sleep waits, and reports whether the context goes on.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// address refuses an empty segment, which would be another route.
func (c *Client) address(r call) (string, error) {
	path := make([]string, len(r.path))
	for i, segment := range r.path {
		switch segment {
		case "", ".", "..", ExternalID(""):
			return "", fmt.Errorf("%q can't be an id", segment)
		}
		path[i] = url.PathEscape(segment)
	}
	address := c.base + "/api/" + strings.Join(path, "/")
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	return address, nil
}

func (c *Client) attempt(ctx context.Context, r call, address string, body []byte, data any) error {
	var reader io.Reader
	if r.body != nil {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, r.method, address, reader)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("User-Agent", "bursar-go/"+APIVersion)
	if r.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", r.idempotencyKey)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(answer) > maxAnswer {
		err = fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	if err != nil {
		return fmt.Errorf("%s %s: can't read the answer: %w", r.method, address, err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return failure(response, answer)
	}
	var envelope struct {
		Success bool `json:"success"`
		Data    any  `json:"data"`
	}
	envelope.Data = data
	if err := json.Unmarshal(answer, &envelope); err != nil || !envelope.Success {
		return fmt.Errorf("%s %s was answered %d, and not by Bursar: %w", r.method, address, response.StatusCode, cmp.Or(err, errors.New("success is missing")))
	}
	return nil
}

// again decides whether a request is sent once more, and after which wait.
func (c *Client) again(r call, err error, attempt int) (time.Duration, bool) {
	if err == nil || attempt >= c.attempts {
		return 0, false
	}
	wait := min(firstWait<<min(attempt-1, 20), c.maxWait) // bounded, so that it cannot overflow
	wait = wait/2 + mathrand.N(wait/2+1)                  // so that many callers don't come back at once
	refused, answered := errors.AsType[*Error](err)
	if !answered {
		return wait, r.repeatable
	}
	switch refused.Status {
	case http.StatusTooManyRequests: // nothing was done
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if !r.repeatable {
			return 0, false
		}
	default:
		return 0, false
	}
	if refused.RetryAfter > 0 {
		wait += refused.RetryAfter
		return wait, refused.RetryAfter <= c.maxWait
	}
	return wait, true
}

// Error is an answer that says no.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is a stable word for programs, such as insufficient_balance; the API's documentation lists them. It is empty if
	// the answer was not Bursar's but that of a proxy on the way.
	Code string
	// Message is a sentence for people.
	Message string
	// Details is what is wrong with which field, if fields are at fault.
	Details map[string]string
	// RequestID finds the request in the service's log.
	RequestID string
	// RetryAfter is how long the service asks to wait, or 0.
	RetryAfter time.Duration
}

// Error writes the message, the fields and the code.
func (e *Error) Error() string {
	parts := []string{e.Message}
	for _, field := range slices.Sorted(maps.Keys(e.Details)) {
		parts = append(parts, fmt.Sprintf("%s: %s.", field, strings.TrimSuffix(e.Details[field], ".")))
	}
	return fmt.Sprintf("%s (%s)", strings.Join(parts, " "), cmp.Or(e.Code, strconv.Itoa(e.Status)))
}

// HasCode reports whether err is an answer of Bursar with this code.
func HasCode(err error, code string) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && refused.Code == code
}

func failure(response *http.Response, answer []byte) *Error {
	e := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id")}
	if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	var body struct {
		Error   string            `json:"error"`
		Code    string            `json:"code"`
		Details map[string]string `json:"details"`
	}
	if json.Unmarshal(answer, &body) == nil && body.Code != "" {
		e.Code, e.Message, e.Details = body.Code, body.Error, body.Details
	} else {
		e.Message = fmt.Sprintf("The answer is %s, and not Bursar's.", response.Status)
	}
	return e
}

// newIdempotencyKey makes a key that no other request has.
func newIdempotencyKey() string { return rand.Text() }

// Page is one page of a list with numbered pages, newest first.
type Page struct {
	// Number counts from 1, which is the default.
	Number int
	// Size is how many there are on a page: 50 at most and by default.
	Size int
}

func (p Page) query() url.Values {
	return url.Values{"page": {strconv.Itoa(max(p.Number, 1))}, "limit": {strconv.Itoa(cmp.Or(p.Size, maxPageSize))}}
}

const maxPageSize = 50

// Pagination says where a page is in its list.
type Pagination struct {
	CurrentPage  int `json:"currentPage"`
	TotalPages   int `json:"totalPages"`
	TotalItems   int `json:"totalItems"`
	ItemsPerPage int `json:"itemsPerPage"`
}

// byCursor reads page after page of a list until one names no next one.
func byCursor[T any](read func(cursor string) (page []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := ""; ; {
			page, next, err := read(cursor)
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
			}
			if err != nil {
				var none T
				yield(none, err)
			}
			if err != nil || next == "" {
				return
			}
			cursor = next
		}
	}
}
