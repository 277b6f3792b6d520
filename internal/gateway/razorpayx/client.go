// Package razorpayx speaks RazorpayX's API: it pays and verifies bank accounts there, and reads its
// webhooks.
//
// A [Client] never guesses. What the gateway did not clearly answer is gateway.Unclear, and only a
// request of which provably no byte was sent, or that the gateway turned away at the door, is
// gateway.NotTaken. A webhook is a hint to look again, never the truth.
//
// The wire types are shared with package sandbox, which is the other side of the same wire, and both
// are held to the samples in testdata. Account numbers and credentials are in no error of this package.
package razorpayx

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
	"bursar/internal/money"
	"bursar/internal/web"
)

var _ gateway.Gateway = (*Client)(nil)

// Options are what a client is made of.
type Options struct {
	// Name is what the gateway is called here; empty is [DefaultName].
	Name gateway.Name
	// Capabilities are what this account offers; nil is all that RazorpayX documents.
	Capabilities *gateway.Capabilities
	// BaseURL is the API's address with its version, such as https://api.razorpay.com/v1.
	BaseURL   string
	KeyID     string
	KeySecret string
	// AccountNumber is our own account, which payouts are taken from.
	AccountNumber string
	Currency      money.Currency
	// Timeout bounds one request, and the wait for its turn; zero is 15 seconds.
	Timeout time.Duration
	// Turn waits until the next request may be made, or fails when that is too long to wait; nil is no limit.
	Turn func(ctx context.Context) error
	// Transport may be nil. It is a concrete type because its reports of connections are the proof
	// that a request was not sent.
	Transport *http.Transport
	Now       func() time.Time
}

// Client is a client of one RazorpayX account. It is safe for concurrent use.
type Client struct {
	o            Options
	base         string
	http         *http.Client
	capabilities gateway.Capabilities
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
	case err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") || base.User != nil || base.RawQuery != "":
		return nil, errors.New("razorpayx: the base address must be an http or https address such as https://api.razorpay.com/v1")
	case o.KeyID == "" || o.KeySecret == "":
		return nil, errors.New("razorpayx: a client needs a key id and its secret")
	case o.AccountNumber == "":
		return nil, errors.New("razorpayx: a client needs the account number that payouts are taken from")
	case o.Currency == money.Currency{} || o.Now == nil:
		return nil, errors.New("razorpayx: a client needs a currency and a clock")
	case o.Timeout < 0:
		return nil, errors.New("razorpayx: the timeout must not be below zero")
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
	if o.Name == "" {
		o.Name = DefaultName
	}
	capabilities := Capabilities(o.Currency)
	if o.Capabilities != nil {
		capabilities = *o.Capabilities
	}
	return &Client{
		o: o, capabilities: capabilities,
		base: strings.TrimSuffix(base.String(), "/"),
		http: &http.Client{
			Transport:     web.NoUpgrades{Next: o.Transport},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
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

// request is one call of the API.
type request struct {
	method string
	path   string
	query  url.Values
	// key is the idempotency key; only a payout has one.
	key  string
	body []byte
}

// response is an answer that was read to its end.
type response struct {
	status int
	header http.Header
	body   []byte
}

// ok reports whether the call succeeded. The documents say 200; any other 2xx means the same.
func (r response) ok() bool { return r.status >= 200 && r.status <= 299 }

// lostError is a request without a whole answer.
type lostError struct {
	// code says how, for programs.
	code string
	// unsent means that provably no byte of the request left.
	unsent bool
	cause  error
}

func (e *lostError) Error() string { return fmt.Sprintf("%s: %v", e.code, e.cause) }
func (e *lostError) Unwrap() error { return e.cause }

// exchange sends a request and reads its answer. Its only errors are of type *lostError.
func (c *Client) exchange(ctx context.Context, r request) (response, *lostError) {
	if err := c.waitForRate(ctx); err != nil {
		return response{}, &lostError{code: gateway.ReasonRateLimited, unsent: true, cause: err}
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
		return response{}, &lostError{code: "no_request", unsent: true, cause: err}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return response{}, c.lost(err, !connected.Load())
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return response{}, c.lost(err, false)
	}
	if len(body) > maxAnswer {
		return response{}, &lostError{code: "answer_too_large", cause: fmt.Errorf("more than %d bytes", maxAnswer)}
	}
	return response{res.StatusCode, res.Header, body}, nil
}

// waitForRate waits until the rate allows a request.
func (c *Client) waitForRate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	return c.o.Turn(ctx)
}

func (c *Client) newRequest(ctx context.Context, r request) (*http.Request, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.body))
	if err != nil {
		return nil, errors.New("the request can't be made") // the cause would quote the address
	}
	req.SetBasicAuth(c.o.KeyID, c.o.KeySecret)
	req.Header.Set("Accept", "application/json")
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set(IdempotencyHeader, r.key)
	}
	return req, nil
}

// lost makes an error of a failed exchange, without the address, which may hold our account number.
func (c *Client) lost(err error, unsent bool) *lostError {
	if withAddress, ok := errors.AsType[*url.Error](err); ok {
		err = withAddress.Err
	}
	switch {
	case unsent:
		return &lostError{code: "unreachable", unsent: true, cause: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &lostError{code: "timeout", cause: err}
	default:
		return &lostError{code: "connection_lost", cause: err}
	}
}

// RefusedError is an answer that is not a success.
type RefusedError struct {
	Status int
	// Problem is what the gateway said, with long numbers masked. Its zero value means that the body
	// was not readable.
	Problem Problem
}

// Is makes it a [gateway.ErrRefused].
func (e *RefusedError) Is(target error) bool { return target == gateway.ErrRefused }

func (e *RefusedError) Error() string {
	if e.Problem.Code == "" {
		return fmt.Sprintf("the gateway answered %d without saying why", e.Status)
	}
	return fmt.Sprintf("the gateway answered %d: %s", e.Status, e.Problem.Description)
}

// call makes a call and reads its answer. It fails with a *RefusedError, or with another error when
// there was no whole and readable answer.
func call[T any](ctx context.Context, c *Client, r request) (T, error) {
	var out T
	res, lost := c.exchange(ctx, r)
	if lost != nil {
		return out, lost
	}
	if !res.ok() {
		problem, _ := readProblem(res.body)
		return out, &RefusedError{res.status, problem}
	}
	err := decode(res.body, &out)
	return out, err
}

// post makes a call whose body is in.
func post[T, In any](ctx context.Context, c *Client, path string, in In) (T, error) {
	body, err := json.Marshal(in)
	if err != nil {
		var none T
		return none, err
	}
	return call[T](ctx, c, request{method: http.MethodPost, path: path, body: body})
}

// decode reads an answer. A field of another type than documented is passed over, because nearly all
// of them decide nothing; the caller checks those that do. Zero characters are dropped: PostgreSQL
// keeps no text that has one.
func decode[T any](body []byte, out *T) error {
	err := json.Unmarshal([]byte(withoutZeros.Replace(string(body))), out)
	var mistyped *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &mistyped) {
		return errors.New("the gateway's answer is not readable")
	}
	return nil
}

// withoutZeros knows an escaped backslash, which is none of the zero's.
var withoutZeros = strings.NewReplacer(`\\`, `\\`, `\u0000`, "")

// readProblem reads the body of a refusal and reports whether it is one.
func readProblem(body []byte) (Problem, bool) {
	var e ErrorBody
	if decode(body, &e) != nil || e.Error.Code == "" || e.Error.Description == "" {
		return Problem{}, false
	}
	e.Error.Description = redact(e.Error.Description)
	return e.Error, true
}

var longNumber = regexp.MustCompile(`[0-9]{6,}`)

// redact masks what may be an account number, and keeps a text short.
func redact(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return longNumber.ReplaceAllString(s, "****")
}

// retryAfter reads how long we are asked to wait (RFC 9110 §10.2.3), an hour at most; zero is not said.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(text); err == nil {
		wait = time.Duration(min(seconds, 3600)) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), time.Hour)
}
