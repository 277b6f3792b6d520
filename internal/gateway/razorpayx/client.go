// Package razorpayx speaks RazorpayX's API: it pays and verifies bank accounts there, and reads its
// webhooks.
//
// A [Client] never guesses. What the gateway did not clearly answer is gateway.Unclear, and only a
// request of which provably no byte was sent, or that the gateway turned away at the door, is
// gateway.NotTaken. A webhook makes us ask the gateway again; what it says is not believed.
//
// The wire types are shared with package sandbox, which is the other side of the same wire, and both
// are held to the samples in testdata. Account numbers and credentials are in no error of this package.
package razorpayx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/gateway/httpapi"
	"bursar/internal/money"
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
	// Timeout, Turn and Transport are as in [httpapi.Options].
	Timeout   time.Duration
	Turn      func(ctx context.Context) error
	Transport *http.Transport
	Now       func() time.Time
}

// Client is a client of one RazorpayX account. It is safe for concurrent use.
type Client struct {
	o            Options
	api          *httpapi.Client
	capabilities gateway.Capabilities
}

// New makes a client.
func New(o Options) (*Client, error) {
	switch {
	case o.KeyID == "" || o.KeySecret == "":
		return nil, errors.New("razorpayx: a client needs a key id and its secret")
	case o.AccountNumber == "":
		return nil, errors.New("razorpayx: a client needs the account number that payouts are taken from")
	case o.Currency == money.Currency{} || o.Now == nil:
		return nil, errors.New("razorpayx: a client needs a currency and a clock")
	}
	api, err := httpapi.New(httpapi.Options{
		BaseURL: o.BaseURL, Timeout: o.Timeout, Turn: o.Turn, Transport: o.Transport,
		Authorize: func(r *http.Request) { r.SetBasicAuth(o.KeyID, o.KeySecret) },
	})
	if err != nil {
		return nil, fmt.Errorf("razorpayx: %w", err)
	}
	if o.Name == "" {
		o.Name = DefaultName
	}
	capabilities := Capabilities(o.Currency)
	if o.Capabilities != nil {
		capabilities = *o.Capabilities
	}
	return &Client{o, api, capabilities}, nil
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
func call[T any](ctx context.Context, c *Client, r httpapi.Request) (T, error) {
	var out T
	res, lost := c.api.Do(ctx, r)
	if lost != nil {
		return out, lost
	}
	if !res.OK() {
		problem, _ := readProblem(res.Body)
		return out, &RefusedError{res.Status, problem}
	}
	err := httpapi.Decode(res.Body, &out)
	return out, err
}

// post makes a call whose body is in.
func post[T, In any](ctx context.Context, c *Client, path string, in In) (T, error) {
	body, err := json.Marshal(in)
	if err != nil {
		var none T
		return none, err
	}
	return call[T](ctx, c, httpapi.Request{Method: http.MethodPost, Path: path, Body: body})
}

// readProblem reads the body of a refusal and reports whether it is one.
func readProblem(body []byte) (Problem, bool) {
	var e ErrorBody
	if httpapi.Decode(body, &e) != nil || e.Error.Code == "" || e.Error.Description == "" {
		return Problem{}, false
	}
	e.Error.Description = httpapi.Redact(e.Error.Description)
	return e.Error, true
}
