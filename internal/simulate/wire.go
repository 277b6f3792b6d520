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

	"bursar/internal/gateway/razorpayx"
	"bursar/internal/payout"
)

// wire carries an instance's requests to a gateway, or does not.
type wire struct {
	on *instance
	g  *gateway
}

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

// RoundTrip carries one request, and records what went wrong.
func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := w.carry(req)
	if err != nil || res.StatusCode != http.StatusOK {
		w.on.trouble()
	}
	return res, err
}

// carry takes one request through whatever weather there is.
func (w wire) carry(req *http.Request) (*http.Response, error) {
	m, g := w.on.m, w.g
	m.tally.calls++
	m.current.calls++
	w.checkGateway()
	w.checkVerifier(req)
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_ = req.Body.Close()
	w.checkLease(req.Header.Get(razorpayx.IdempotencyHeader))
	m.step(w.on, time.Millisecond, 20*time.Millisecond)
	if silent := m.now < m.gateways.silentUntil; (silent && m.chance(300)) || (!silent && m.chance(300) && m.strikes(cut)) {
		m.pause(m.between(0, time.Second))
		return nil, errRefusedConnection // without a connection, so that the client knows that nothing was sent
	}
	connected(req, m.tally.calls)
	key := req.Header.Get(razorpayx.IdempotencyHeader)
	if key != "" {
		o := g.sending(w.on, key, body)
		defer func() {
			if o.by == w.on {
				o.by = nil
			}
		}()
	}
	stopped, res, err := w.before(req, key, body)
	if o := m.gateways.orders[key]; o != nil && !o.mayBeStored && !(stopped && o.turnedAway) {
		o.mayBeStored, o.first = true, m.now
	}
	if stopped {
		return res, err
	}
	sent := w.copyOf(req, body)
	list, page := pageOf(sent)
	w.checkListedFrom(req, list, page)
	a := g.arrive(sent, body)
	m.current.looked = m.now
	if reference := req.URL.Query().Get("reference_id"); reference != "" {
		m.current.asked, m.current.askedAt = reference, m.now
		w.linger(payout.ID(reference))
	}
	w.interrupt()
	w.misreport(req, a)
	w.mixUp(req, a)
	w.distortAnswer(req, a)
	if list == transfers && page >= 0 {
		w.nameCurrency(a)
	}
	return w.after(req, a, list, page)
}

// checkLease wants no order to be sent once its lease is over: another worker may send it by then. An order that was sent in time may
// arrive late.
func (w wire) checkLease(key string) {
	a := w.on.m.current
	inTime := key == "" || a.claimed != key || w.on.machine.offset != a.offset || w.on.now().Before(a.claimedUntil)
	w.on.m.assert(claimedFirst, inTime, key, "%s sends payout %s at %s, and claimed it until %s", w.on.name, key, w.on.now(), a.claimedUntil)
}

// checkListedFrom wants a start to list what a gateway has made since that gateway was last sent an order, or since the beginning. Orders
// to other gateways don't count.
func (w wire) checkListedFrom(req *http.Request, list, page int) {
	if list != transfers || page < 0 {
		return
	}
	m, last := w.on.m, w.on.m.start
	if w.g.lastOrder.After(last) {
		last = w.g.lastOrder
	}
	from, err := strconv.ParseInt(req.URL.Query().Get("from"), 10, 64)
	m.assert(askedFirst, err == nil && !time.Unix(from, 0).After(last), "", "%s was last sent an order at %s, and %s lists what it has made since %s (error %v)", w.g.name, last, w.on.name, time.Unix(from, 0).UTC(), err)
}

// connected reports a connection to the client, as a transport does before it writes. Each second one was kept open since an earlier call.
func connected(req *http.Request, calls int64) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Reused: calls%2 == 0})
	}
}

// before is what may come in place of the request's arrival, and reports whether something did.
func (w wire) before(req *http.Request, key string, body []byte) (stopped bool, res *http.Response, err error) {
	m := w.on.m
	switch {
	case m.now < m.gateways.silentUntil, m.strikes(cut):
		err = w.lost()
	case m.strikes(throttle):
		m.gateways.turnAway(key)
		res = w.said(req, http.StatusTooManyRequests, "Throttling Error")
		if m.chance(500) {
			w.setNextPoll(key, 1+m.dice.IntN(600), res)
		}
	case m.strikes(lockedOut):
		m.gateways.turnAway(key)
		res = w.keptOut(req)
	case req.Method == http.MethodGet && w.g.justMade(req) && m.strikes(lag):
		res = w.said(req, http.StatusBadRequest, "The id provided does not exist")
	case m.chance(500) && m.strikes(serverError):
		res = w.trouble(req)
	case m.chance(300) && m.strikes(html):
		res = w.page(req)
	case key != "" && (m.strikes(refuse) || m.gateways.orders[key].mayBeStored && m.chance(700) && m.refusesRepeats()):
		m.gateways.orders[key].refused = true
		m.gateways.turnAway(key)
		res = w.said(req, http.StatusBadRequest, "The fund account is inactive.")
	case m.chance(500) && m.strikes(slow):
		late := w.copyOf(req, body)
		m.after(callTimeout+m.between(0, maxLate), func() { w.g.arrive(late, body) })
		err = w.timeout()
	default:
		return false, nil, nil
	}
	if err == nil {
		m.pause(m.between(10*time.Millisecond, 200*time.Millisecond))
	}
	return true, res, err
}

// refusesRepeats reports whether the gateway refuses what it was sent before, in weather in which it refuses at all. That
// says nothing about the first, which is worth to be seen often.
func (m *market) refusesRepeats() bool {
	if m.faultProfile[refuse] == 0 || m.closing {
		return false
	}
	m.tally.faults[refuse]++
	return true
}

// maxLate is how much later than its sender's patience a request may arrive. It is less than a restore takes.
const maxLate = 2 * time.Minute

// after is the way of the answer.
func (w wire) after(req *http.Request, a *answer, list, page int) (*http.Response, error) {
	m := w.on.m
	if strings.HasSuffix(req.URL.Path, "/cancel") && m.faultProfile[crash] > 0 && m.chance(500) { // what it did is heard of by a poll, or a repeat
		m.strike(crash)
		m.kill(w.on)
	}
	m.step(w.on, 10*time.Millisecond, 200*time.Millisecond)
	if denial := w.deny(req, a); denial != nil {
		return denial, nil
	}
	switch {
	case a.cut, m.strikes(lostAnswer):
		return nil, w.lost()
	case m.chance(500) && m.strikes(serverError):
		return w.trouble(req), nil
	case m.chance(300) && m.strikes(html):
		return w.page(req), nil
	case m.chance(300) && m.strikes(html):
		w.on.trouble()
		half := a.body.Bytes()[:a.body.Len()/2]
		return response(req, a.status, a.header, io.MultiReader(bytes.NewReader(half), failing{io.ErrUnexpectedEOF})), nil
	case m.strikes(slow):
		m.pause(m.between(0, callTimeout))
	}
	if a.lie != nil {
		a.lie.to = m.current.number
	}
	if page >= 0 && a.status == http.StatusOK {
		w.on.listed(w.g, list, page, a.body.Bytes())
	}
	w.heardOfValidation(req.URL.Path, a)
	return response(req, a.status, a.header, &a.body), nil
}

// interrupt has a notification come, now and then, while a worker waits for the answer about a payout that the gateway has.
func (w wire) interrupt() {
	m := w.on.m
	known := m.model.payouts[m.current.about]
	isPolled := known != nil && known.state == payout.Submitted && m.current.name == stepName(w.on)
	if isPolled && !m.closing && m.o.Faults[hookForged] && m.chance(50) {
		w.g.announce(m.current.about, 10*time.Millisecond)
	}
}

// linger has the answer to a look-up take its time, now and then, of a caller who cancels the payout: a worker may send it meanwhile.
func (w wire) linger(id payout.ID) {
	m := w.on.m
	known := m.model.payouts[id]
	if known == nil || known.state != payout.Waiting || m.current.about != id || m.current.name == stepName(w.on) || m.closing || !m.o.Faults[slow] || m.chance(500) {
		return
	}
	m.strike(slow)
	until := m.now + callTimeout
	m.lookedUp[id] = until
	if known.due > 0 { // the worker looks it up too, and then sends it
		m.pollNow(payouts)
	}
	m.pause(m.between(callTimeout/2, callTimeout))
}

// deny turns away an order that the gateway has made, or refuses it. The gateway has it in its records at once.
func (w wire) deny(req *http.Request, a *answer) *http.Response {
	m := w.on.m
	o := m.gateways.orders[req.Header.Get(razorpayx.IdempotencyHeader)]
	switch {
	case o == nil || a.status != http.StatusOK || a.cut || a.lie != nil:
		return nil
	case m.now < m.lookedUp[payout.ID(req.Header.Get(razorpayx.IdempotencyHeader))] && m.o.Faults[throttle] && m.chance(700), m.strikes(throttle):
		o.denied = true
		return w.said(req, http.StatusTooManyRequests, "Throttling Error")
	case m.strikes(refuse):
		o.denied = true
		return w.said(req, http.StatusBadRequest, "The fund account is inactive.")
	default:
		return nil
	}
}

// listing is a list of a gateway's that an instance reads: page is where the last page of it began, and read where the next one does. It is
// troubled if something has gone wrong since.
type listing struct {
	page, read int
	troubled   bool
}

// The lists that are read whole.
const (
	transfers = iota // all that were made
	returns          // those that came back
	lists
)

// trouble is what may keep an instance from taking in a page of any list.
func (on *instance) trouble() {
	for i := range on.lists {
		on.lists[i].troubled = true
	}
}

// pageOf is the list that a request is about, and how many of its items it passes over; -1 where it asks for no page of a list.
func pageOf(req *http.Request) (list, page int) {
	query := req.URL.Query()
	if req.Method != http.MethodGet || !strings.HasSuffix(req.URL.Path, "/payouts") || !query.Has("from") {
		return transfers, -1
	}
	if query.Has("status") {
		list = returns
	}
	skip, err := strconv.Atoi(query.Get("skip"))
	switch {
	case err != nil:
		return list, 0
	case skip > 1_000_000: // it asks whether the gateway knows pages at all
		return list, -1
	default:
		return list, skip
	}
}

// listed records a page that has arrived. Where it is empty, the instance has read the list to its end. After trouble a list goes on with the
// same page, or begins again.
func (on *instance) listed(g *gateway, list, page int, body []byte) {
	l := &on.lists[list]
	var found razorpayx.Collection[json.RawMessage]
	err := json.Unmarshal(body, &found)
	again := l.troubled && (page == l.page || list == returns && page == 0)
	on.m.assert(listsReadWhole, err == nil && (page == l.read || again), "", "%s has read %d of a list and goes on after %d (error %v)", on.name, l.read, page, err)
	*l = listing{page: page, read: page + len(found.Items)}
	if len(found.Items) > 0 {
		return
	}
	l.read = 0
	if list == transfers {
		on.asked[g.name] = true
	}
}

// setNextPoll asks to be left alone for some seconds.
func (w wire) setNextPoll(key string, seconds int, res *http.Response) {
	asked := strconv.Itoa(seconds)
	if seconds%2 == 0 { // as a date, which has no parts of a second
		asked = w.on.now().Add(time.Duration(seconds+1) * time.Second).UTC().Format(http.TimeFormat)
	}
	res.Header.Set("Retry-After", asked)
	if o := w.on.m.gateways.orders[key]; o != nil {
		o.setNextPoll, o.notBefore = w.on.m.current.number, w.on.m.now+time.Duration(seconds)*time.Second
	}
}

// trouble is the gateway's own, and says nothing about what it was asked.
func (w wire) trouble(req *http.Request) *http.Response {
	const text = "We are facing some trouble completing your request at the moment. Please try again shortly."
	m := w.on.m
	if m.chance(400) || req.Method == http.MethodGet {
		return w.said(req, 500+m.dice.IntN(5), text)
	}
	return one(m, []func() *http.Response{
		func() *http.Response {
			return w.said(req, http.StatusConflict, "Another request under this key is in progress.")
		},
		func() *http.Response {
			return w.problem(req, http.StatusBadRequest, razorpayx.Problem{Code: razorpayx.CodeServerError, Description: text})
		},
		func() *http.Response {
			return w.problem(req, http.StatusBadRequest, razorpayx.Problem{Code: "GATEWAY_ERROR", Description: text})
		},
		func() *http.Response {
			return w.problem(req, http.StatusBadRequest, razorpayx.Problem{Code: razorpayx.CodeBadRequest, Description: text, Reason: "server_error"})
		},
	})()
}

// keptOut is an answer at the gateway's door.
func (w wire) keptOut(req *http.Request) *http.Response {
	return one(w.on.m, []func() *http.Response{
		func() *http.Response { return w.said(req, http.StatusUnauthorized, "Authentication failed") },
		func() *http.Response { return w.said(req, http.StatusForbidden, "Access to the resource is denied.") },
		func() *http.Response { return w.said(req, http.StatusBadRequest, "Authentication failed") },
		func() *http.Response {
			return w.said(req, http.StatusBadRequest, "Transactions from this IP are not allowed. Please add it to the list.")
		},
		func() *http.Response {
			return w.said(req, http.StatusNotFound, "The requested URL was not found on the server.")
		},
		func() *http.Response {
			return w.said(req, http.StatusBadRequest, "The RazorpayX Account number is invalid.")
		},
	})()
}

// justMade reports whether a request is for the record of a transfer that the gateway has just made.
func (g *gateway) justMade(req *http.Request) bool {
	id, isRecord := strings.CutPrefix(req.URL.Path, "/v1/payouts/")
	at, made := g.madeAt[id]
	return isRecord && made && g.m.now-at < maxLag
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
	return one(m, []error{errReset, io.EOF}) // the other side closes in order, and says nothing
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
	isStatement := strings.HasSuffix(r.URL.Path, "/transactions")
	if r.Method != http.MethodGet || !isStatement && !strings.HasSuffix(r.URL.Path, "/payouts") {
		return r
	}
	query := r.URL.Query()
	if isStatement { // in small pages too
		query.Set("count", strconv.Itoa(5+m.dice.IntN(20)))
		r.URL.RawQuery = query.Encode()
		return r
	}
	o := m.gateways.orders[query.Get("reference_id")]
	if !query.Has("skip") || !query.Has("reference_id") { // later pages are as the first
		m.current.unfiltered = query.Has("reference_id") && m.strikes(odd)
	}
	switch {
	case query.Has("from") && !query.Has("status"): // in small pages, so that there are many
		query.Set("count", strconv.Itoa(1+m.dice.IntN(7)))
	case query.Has("from"):
		query.Set("count", strconv.FormatInt(1+m.tally.calls%7, 10))
	case m.current.unfiltered:
		query.Del("reference_id")
		count := 20 + m.dice.IntN(razorpayx.MaxPage-19)
		if count%2 == 0 { // what is asked for is on a later page
			count = 1 + count%7
		}
		query.Set("count", strconv.Itoa(count))
	}
	if !m.current.unfiltered && m.strikes(lag) && (o == nil || !o.denied) {
		query.Set("to", strconv.FormatInt(m.clock().Add(-m.between(time.Second, maxLag)).Unix(), 10))
	}
	r.URL.RawQuery = query.Encode()
	return r
}

const maxLag = time.Minute

// What a validation may be made to say.
const (
	otherName        = "other name"
	nearName         = "near name"
	otherByScore     = "other name by its score"
	accountInvalid   = "invalid"
	validationFailed = "failed"
	statusMissing    = "nothing"
)

// validationsPath begins the path of a validation.
const validationsPath = "/v1/fund_accounts/validations/"

// misreport alters what a validation says, for good.
func (w wire) misreport(req *http.Request, a *answer) {
	id, isValidation := strings.CutPrefix(req.URL.Path, validationsPath)
	if !isValidation || a.status != http.StatusOK {
		return
	}
	m := w.on.m
	var v razorpayx.Validation
	if err := json.Unmarshal(a.body.Bytes(), &v); err != nil || v.Status != razorpayx.ValidationCompleted || v.Results == nil {
		return
	}
	verdict, said := w.g.verdicts[id]
	if !said {
		if w.g.holdsNext {
			verdict = staysPending
		} else if m.strikes(verify) {
			verdict = one(m, []string{otherName, otherByScore, nearName, accountInvalid, validationFailed, statusMissing, staysPending})
		}
		if verdict == staysPending {
			w.g.pendingVerdict(id)
		}
		w.g.verdicts[id] = verdict
	}
	if verdict == staysPending && m.now >= w.g.pendingUntil[id] {
		verdict, w.g.verdicts[id] = "", ""
	}
	switch verdict {
	case "":
		return
	case accountInvalid:
		v.Results.AccountStatus, v.Results.RegisteredName = razorpayx.AccountInvalid, ""
	case statusMissing:
		v.Results.AccountStatus = ""
	case staysPending:
		v.Status, v.Results = razorpayx.ValidationCreated, nil
	case validationFailed:
		v.Status = razorpayx.ValidationFailed
	case nearName:
		v.Results.RegisteredName = razorpayx.Text(strings.SplitN(string(v.Results.RegisteredName), " ", 2)[0])
	case otherByScore:
		v.Results.NameMatchScore = new(razorpayx.Score)
	case otherName:
		v.Results.RegisteredName = "Another Person"
	}
	body, err := json.Marshal(v)
	if err == nil {
		a.body.Reset()
		a.body.Write(body)
	}
}

// said is an error in the gateway's own words.
func (w wire) said(req *http.Request, status int, description string) *http.Response {
	return w.problem(req, status, razorpayx.Problem{Code: razorpayx.CodeBadRequest, Description: description})
}

func (w wire) problem(req *http.Request, status int, p razorpayx.Problem) *http.Response {
	body, _ := json.Marshal(razorpayx.ErrorBody{Error: p}) //nolint:errchkjson // of strings
	return response(req, status, http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(body))
}

// page is HTML from something between us and the gateway.
func (w wire) page(req *http.Request) *http.Response {
	w.on.trouble()
	status := one(w.on.m, []int{http.StatusOK, http.StatusBadRequest, http.StatusNotFound, http.StatusBadGateway, http.StatusServiceUnavailable})
	return response(req, status, http.Header{"Content-Type": {"text/html"}}, strings.NewReader("<!doctype html><title>Trouble</title>"))
}

func response(req *http.Request, status int, header http.Header, body io.Reader) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(body), ContentLength: -1, Request: req,
	}
}
