// Package httpapi calls a gateway's HTTP API. It says of a request without an answer whether a byte of it was sent, and it
// sends no request twice that could change anything. A payout may be paid twice where either is wrong, so every adapter builds on this package.
//
// No error of this package quotes an address, a header or a body: they may hold account numbers and credentials.
package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/web"
)

// Options are what a client is made of.
type Options struct {
	// BaseURL is the API's address with its version, such as https://api.gateway.example/v1.
	BaseURL string
	// Authorize adds our credentials to a request.
	Authorize func(*http.Request)
	// Timeout bounds one request, and the wait for its turn; zero is 15 seconds.
	Timeout time.Duration
	// Turn waits until the next request may be made, or fails when that is too long to wait; nil is no limit.
	Turn func(ctx context.Context) error
	// Transport may be nil. It is a concrete type because its reports of connections are the proof
	// that a request was not sent.
	Transport *http.Transport
}

// Client calls one API. It is safe for concurrent use.
type Client struct {
	o    Options
	http *http.Client
}

const (
	defaultTimeout = 15 * time.Second
	maxAnswer      = 1 << 20
	maxIdle        = 64
)

// New makes a client.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.BaseURL)
	switch {
	case err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") || base.User != nil || strings.ContainsAny(o.BaseURL, "?#"):
		return nil, errors.New("the base address must be an http or https address without user, query or fragment, such as https://api.gateway.example/v1")
	case o.Authorize == nil:
		return nil, errors.New("a client needs credentials")
	case o.Timeout < 0:
		return nil, errors.New("the timeout must not be below zero")
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Transport == nil {
		o.Transport = defaultTransport()
	}
	if o.Turn == nil {
		o.Turn = func(context.Context) error { return nil }
	}
	o.BaseURL = strings.TrimSuffix(base.String(), "/")
	return &Client{o, &http.Client{
		Transport:     web.NoUpgrades{Next: o.Transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func defaultTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	}
}

// Request is one call of the API.
type Request struct {
	Method string
	// Path follows the base address. What varies in it is escaped.
	Path  string
	Query url.Values
	// Header holds what this request has beside the credentials and the type of its body, such as an idempotency key.
	Header map[string]string
	// Body is JSON; nil is none.
	Body []byte
}

// Response is an answer that was read to its end.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// OK reports whether the call succeeded: any 2xx.
func (r Response) OK() bool { return r.Status >= 200 && r.Status <= 299 }

// LostError is a request without a whole answer.
type LostError struct {
	// Code says how, for programs.
	Code string
	// Unsent means that provably no byte of the request left.
	Unsent bool
	cause  error
}

func (e *LostError) Error() string { return fmt.Sprintf("%s: %v", e.Code, e.cause) }
func (e *LostError) Unwrap() error { return e.cause }

// Submission is what a lost request says of the transfer that it asked for: nothing, unless no byte of it was sent.
func (e *LostError) Submission() gateway.Submission {
	outcome := gateway.Unclear
	if e.Unsent {
		outcome = gateway.NotTaken
	}
	return gateway.Submission{Outcome: outcome, NotSent: e.Unsent, ReasonCode: e.Code, Reason: Redact(e.cause.Error())}
}

// Do sends a request once and reads its answer.
func (c *Client) Do(ctx context.Context, r Request) (Response, *LostError) {
	if err := c.waitForTurn(ctx); err != nil {
		return Response{}, &LostError{Code: gateway.ReasonRateLimited, Unsent: true, cause: err}
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()

	// The transport reports the connection before it writes to it, so a request that never got one
	// was never sent: refused or failed dials, name and handshake failures, a context that ended first.
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := c.newRequest(ctx, r)
	if err != nil {
		return Response{}, &LostError{Code: "no_request", Unsent: true, cause: err}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return Response{}, lost(err, !connected.Load())
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return Response{}, lost(err, false)
	}
	if len(body) > maxAnswer {
		return Response{}, &LostError{Code: "answer_too_large", cause: fmt.Errorf("more than %d bytes", maxAnswer)}
	}
	return Response{res.StatusCode, res.Header, body}, nil
}

func (c *Client) waitForTurn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	return c.o.Turn(ctx)
}

func (c *Client) newRequest(ctx context.Context, r Request) (*http.Request, error) {
	address := c.o.BaseURL + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, address, bytes.NewReader(r.Body))
	if err != nil {
		return nil, errors.New("the request can't be made") // the cause would quote the address
	}
	req.Header.Set("Accept", "application/json")
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	if r.Method != http.MethodGet {
		// net/http repeats a request whose body it can read again, also one that was sent: over HTTP/1 where it has an idempotency key,
		// and over HTTP/2 where the gateway resets the stream. The gateway could accept the first and refuse the repeat.
		req.Body, req.GetBody = io.NopCloser(bytes.NewReader(r.Body)), nil
	}
	c.o.Authorize(req)
	return req, nil
}

// lost makes an error of a failed call, without the address.
func lost(err error, unsent bool) *LostError {
	if withAddress, ok := errors.AsType[*url.Error](err); ok {
		err = withAddress.Err
	}
	switch {
	case unsent:
		return &LostError{Code: "unreachable", Unsent: true, cause: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &LostError{Code: "timeout", cause: err}
	default:
		return &LostError{Code: "connection_lost", cause: err}
	}
}

// Decode reads an answer. A field of another type than the adapter's is passed over, because nearly all
// of them decide nothing; the adapter checks those that do. Zero characters are dropped: PostgreSQL
// keeps no text that has one.
func Decode[T any](body []byte, out *T) error {
	err := json.Unmarshal([]byte(withoutZeros.Replace(string(body))), out)
	var mistyped *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &mistyped) {
		return errors.New("the gateway's answer is not readable")
	}
	return nil
}

// withoutZeros knows an escaped backslash, which is none of the zero's.
var withoutZeros = strings.NewReplacer(`\\`, `\\`, `\u0000`, "")

var longNumber = regexp.MustCompile(`[0-9]{6,}`)

// Redact masks what may be an account number in a gateway's text, and keeps it short.
func Redact(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return longNumber.ReplaceAllString(s, "****")
}

// RetryAfter reads how long we are asked to wait (RFC 9110 §10.2.3), an hour at most; zero is not said.
func (r Response) RetryAfter(now time.Time) time.Duration {
	text := r.Header.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(text); err == nil {
		wait = time.Duration(min(seconds, 3600)) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), time.Hour)
}
