package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"time"

	"bursar/internal/razorpayx"
)

// wire carries an instance's requests to the gateway, or does not.
type wire struct{ on *instance }

// transport is what a client takes, with the wire in the place of HTTP.
func (w wire) transport() *http.Transport {
	t := &http.Transport{}
	t.RegisterProtocol("http", w)
	return t
}

// callTimeout is how long the client waits for an answer. The clock is not its own, so the wire tells it
// when its time is up.
const callTimeout = 15 * time.Second

var (
	errRefusedConnection = errors.New("connection refused")
	errReset             = errors.New("connection reset by peer")
)

// RoundTrip carries one request through whatever weather there is.
func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	m, g := w.on.m, w.on.m.gateway
	m.tally.calls++
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_ = req.Body.Close()
	m.step(w.on, time.Millisecond, 20*time.Millisecond)
	if silent := m.now < g.silentUntil; (silent && m.chance(300)) || (!silent && m.chance(300) && m.strikes(cut)) {
		m.pause(m.between(0, time.Second))
		return nil, errRefusedConnection // without a connection, so that the client knows that nothing was sent
	}
	connected(req)
	key := req.Header.Get(razorpayx.IdempotencyHeader)
	if key != "" {
		o := g.sending(w.on, key, body)
		defer func() {
			if o.by == w.on {
				o.by = nil
			}
		}()
	}
	if stopped, res, err := w.before(req, key, body); stopped {
		return res, err
	}
	a := g.arrive(w.copyOf(req, body), body)
	w.misreport(req, a)
	return w.after(req, a)
}

// connected reports a connection to the client, as a transport does before it writes.
func connected(req *http.Request) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
}

// before is what may come in place of the request's arrival, and reports whether something did.
func (w wire) before(req *http.Request, key string, body []byte) (stopped bool, res *http.Response, err error) {
	m := w.on.m
	switch {
	case m.now < m.gateway.silentUntil, m.strikes(cut):
		err = w.lost()
	case m.strikes(throttle):
		res = w.said(req, http.StatusTooManyRequests, "Throttling Error")
		if m.chance(500) {
			res.Header.Set("Retry-After", strconv.Itoa(1+m.dice.IntN(120)))
		}
	case m.chance(500) && m.strikes(serverError):
		res = w.said(req, 500+m.dice.IntN(5), "We are facing some trouble completing your request at the moment. Please try again shortly.")
	case m.chance(300) && m.strikes(html):
		res = w.page(req)
	case key != "" && m.strikes(refuse):
		res = w.said(req, http.StatusBadRequest, "The fund account is inactive.")
	case m.chance(500) && m.strikes(slow):
		late := w.copyOf(req, body)
		m.after(callTimeout+m.between(0, mostLate), func() { m.gateway.arrive(late, body) })
		err = w.timeout()
	default:
		return false, nil, nil
	}
	if err == nil {
		m.pause(m.between(10*time.Millisecond, 200*time.Millisecond))
	}
	return true, res, err
}

// mostLate is how much later than its sender's patience a request may arrive. It is less than a restore takes.
const mostLate = 2 * time.Minute

// after is the way of the answer.
func (w wire) after(req *http.Request, a *answer) (*http.Response, error) {
	m := w.on.m
	m.step(w.on, 10*time.Millisecond, 200*time.Millisecond)
	switch {
	case a.cut, m.strikes(lostAnswer):
		return nil, w.lost()
	case m.chance(500) && m.strikes(serverError):
		return w.said(req, 500+m.dice.IntN(5), "We are facing some trouble completing your request at the moment. Please try again shortly."), nil
	case m.chance(300) && m.strikes(html):
		return w.page(req), nil
	case m.chance(300) && m.strikes(html):
		half := a.body.Bytes()[:a.body.Len()/2]
		return response(req, a.status, a.header, io.MultiReader(bytes.NewReader(half), failing{io.ErrUnexpectedEOF})), nil
	case m.strikes(slow):
		m.pause(m.between(0, callTimeout))
	}
	if strings.HasSuffix(req.URL.Path, "/payouts") && req.URL.Query().Has("from") && a.status == http.StatusOK {
		w.on.asked = true
	}
	return response(req, a.status, a.header, &a.body), nil
}

// failing is a body that breaks off.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// lost is a request or an answer that never arrived.
func (w wire) lost() error {
	m := w.on.m
	if m.chance(500) {
		return w.timeout()
	}
	m.pause(m.between(0, callTimeout))
	return errReset
}

func (w wire) timeout() error {
	w.on.m.pause(callTimeout)
	return context.DeadlineExceeded
}

// copyOf is the request as the gateway is given it.
func (w wire) copyOf(req *http.Request, body []byte) *http.Request {
	m := w.on.m
	r := req.Clone(m.ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/payouts") && m.strikes(lag) {
		query := r.URL.Query()
		query.Set("to", strconv.FormatInt(m.clock().Add(-m.between(time.Second, mostLag)).Unix(), 10))
		r.URL.RawQuery = query.Encode()
	}
	return r
}

const mostLag = time.Minute

// What a validation may be made to say, beside that there is no such account, or that it failed.
const (
	otherName = "other name"
	nearName  = "near name"
)

// misreport alters what a validation says, for good.
func (w wire) misreport(req *http.Request, a *answer) {
	id, isValidation := strings.CutPrefix(req.URL.Path, "/v1/fund_accounts/validations/")
	if !isValidation || a.status != http.StatusOK {
		return
	}
	m := w.on.m
	var v razorpayx.Validation
	if err := json.Unmarshal(a.body.Bytes(), &v); err != nil || v.Status != razorpayx.ValidationCompleted || v.Results == nil {
		return
	}
	verdict, said := m.gateway.verdicts[id]
	if !said {
		if m.strikes(verify) {
			verdict = one(m, []string{otherName, nearName, "invalid", "failed"})
		}
		m.gateway.verdicts[id] = verdict
	}
	switch verdict {
	case "":
		return
	case "invalid":
		v.Results.AccountStatus, v.Results.RegisteredName = razorpayx.AccountInvalid, ""
	case "failed":
		v.Status = razorpayx.ValidationFailed
	case nearName:
		v.Results.RegisteredName = razorpayx.Text(strings.SplitN(string(v.Results.RegisteredName), " ", 2)[0])
	case otherName:
		v.Results.RegisteredName = "Somebody Else"
	}
	body, err := json.Marshal(v)
	if err == nil {
		a.body.Reset()
		a.body.Write(body)
	}
}

// said is an error in the gateway's own words.
func (w wire) said(req *http.Request, status int, description string) *http.Response {
	body, _ := json.Marshal(razorpayx.ErrorBody{Error: razorpayx.Problem{Code: razorpayx.CodeBadRequest, Description: description}}) //nolint:errchkjson // of strings
	return response(req, status, http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(body))
}

// page is HTML from something between us and the gateway.
func (w wire) page(req *http.Request) *http.Response {
	status := one(w.on.m, []int{http.StatusOK, http.StatusBadRequest, http.StatusNotFound, http.StatusBadGateway, http.StatusServiceUnavailable})
	return response(req, status, http.Header{"Content-Type": {"text/html"}}, strings.NewReader("<!doctype html><title>Trouble</title>"))
}

func response(req *http.Request, status int, header http.Header, body io.Reader) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(body), ContentLength: -1, Request: req,
	}
}
