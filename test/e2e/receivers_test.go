//go:build unix

package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"bursar/test/harness"
)

// receiver is a server of the marketplace's that webhooks are delivered to. It verifies each message as the library of
// Standard Webhooks does, and remembers it.
type receiver struct {
	f *fleet
	// name says how it goes wrong.
	name string
	// answer answers an event that arrived for the n-th time.
	answer http.HandlerFunc
	server *httptest.Server
	// id is the endpoint's, and types are those of its events; none stands for all.
	id       string
	types    []string
	verifier *standardwebhooks.Webhook

	mu       sync.Mutex
	arrivals map[string]*arrival // by the event's id
}

// arrival is an event that arrived. What matters of its body is the same each time.
type arrival struct {
	digest [sha256.Size]byte
	times  int
	// cut says that the receiver cut the connection the first time.
	cut bool
}

// receivers are one of each kind. All but takes and cuts are dead until they are mended.
type receivers struct {
	takes, cuts, fails, hangs, redirects, gone *receiver
	// mended closes when those that are dead are mended.
	mended chan struct{}
	isDead atomic.Bool
	// redirected counts requests where only a redirect leads.
	redirected atomic.Int64
}

func (r *receivers) all() []*receiver {
	return []*receiver{r.takes, r.cuts, r.fails, r.hangs, r.redirects, r.gone}
}

// receive adds an endpoint for each kind of receiver. No event may be there yet.
func (f *fleet) receive() {
	f.t.Helper()
	r := &receivers{mended: make(chan struct{})}
	r.isDead.Store(true)
	f.t.Cleanup(r.mend)
	taken := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	until := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, q *http.Request) {
			if r.isDead.Load() {
				w.WriteHeader(status)
				return
			}
			taken(w, q)
		}
	}
	r.takes = f.newReceiver("takes", taken)
	r.cuts = f.newReceiver("cuts", nil, "payout.requested", "payout.completed", "payout.failed", "payout.cancelled")
	r.fails = f.newReceiver("fails", until(http.StatusServiceUnavailable))
	r.gone = f.newReceiver("gone", until(http.StatusGone))
	r.hangs = f.newReceiver("hangs", func(w http.ResponseWriter, q *http.Request) {
		select {
		case <-r.mended:
			taken(w, q)
		case <-q.Context().Done():
		}
	})
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { r.redirected.Add(1) }))
	f.t.Cleanup(elsewhere.Close)
	r.redirects = f.newReceiver("redirects", func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	f.receivers = r
}

// mend ends what was wrong with the dead.
func (r *receivers) mend() {
	if r.isDead.Swap(false) {
		close(r.mended)
	}
}

func (f *fleet) newReceiver(name string, answer http.HandlerFunc, types ...string) *receiver {
	f.t.Helper()
	r := &receiver{f: f, name: name, answer: answer, types: types, arrivals: map[string]*arrival{}}
	r.server = httptest.NewServer(r)
	f.t.Cleanup(r.server.Close)
	body, err := json.Marshal(map[string]any{"url": r.server.URL, "types": types, "description": name})
	if err != nil {
		f.t.Fatal(err)
	}
	var made struct{ ID, Secret string }
	f.must(call{method: http.MethodPost, path: "/api/webhooks/endpoints", token: f.serviceKey, body: string(body)}, &made)
	r.id = made.ID
	if r.verifier, err = standardwebhooks.NewWebhook(made.Secret); err != nil {
		f.t.Fatal(err)
	}
	return r
}

// ServeHTTP takes a message, and answers it in the receiver's own way.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the service was killed while it sent
	}
	event := q.Header.Get("Webhook-Id")
	if err := r.verifier.Verify(body, q.Header); err != nil {
		r.f.t.Errorf("%s: event %s can't be verified: %v", r.name, event, err)
	}
	cut := r.remember(event, eventDigest(body))
	if r.answer != nil {
		r.answer(w, q)
		return
	}
	if cut {
		panic(http.ErrAbortHandler) // which closes the connection
	}
	w.WriteHeader(http.StatusNoContent)
}

// remember stores what arrived, and reports whether it is to be cut off: every fourth event is, once.
func (r *receiver) remember(event string, digest [sha256.Size]byte) (cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.arrivals[event]
	if a == nil {
		a = &arrival{digest: digest, cut: r.answer == nil && len(r.arrivals)%4 == 0}
		r.arrivals[event] = a
	}
	a.times++
	if a.digest != digest {
		r.f.t.Errorf("%s: event %s differs from what arrived under its id before", r.name, event)
	}
	return a.cut && a.times == 1
}

// times is how often an event arrived.
func (r *receiver) times(event string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.arrivals[event]; a != nil {
		return a.times
	}
	return 0
}

// eventDigest is a hash of what the feed and a delivery tell of an event.
func eventDigest(event []byte) [sha256.Size]byte {
	var told struct {
		Type, Timestamp string
		Data            json.RawMessage
	}
	if err := json.Unmarshal(event, &told); err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(fmt.Appendf(nil, "%s %s %s", told.Type, told.Timestamp, told.Data))
}

// arrived is how many events a receiver has, and whether they are those of the feed that it should have, and no others.
func (l *load) arrived(r *receiver) (n int, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	has := 0
	for id, e := range l.feed.events {
		if len(r.types) > 0 && !slices.Contains(r.types, e.kind) {
			continue
		}
		a := r.arrivals[id]
		if a == nil || a.cut && a.times < 2 {
			return len(r.arrivals), false
		}
		if has++; a.digest != e.digest {
			l.t.Errorf("%s: event %s is not what the feed has", r.name, id)
		}
	}
	return len(r.arrivals), has == len(r.arrivals)
}

// await waits until a receiver has what it should have: the last bank accounts may still be verified, which are events.
// Attempts that wait for their time are made at once.
func (l *load) await(r *receiver) {
	l.t.Helper()
	before := 0
	for last := time.Now(); time.Since(last) < time.Minute; time.Sleep(200 * time.Millisecond) {
		l.makeDue("webhook_deliveries", `endpoint_id = '`+r.id+`'`)
		l.sql(`UPDATE webhook_endpoints SET retry_at = NULL WHERE id = '`+r.id+`'`, nil)
		l.followToEnd()
		n, all := l.arrived(r)
		if all {
			return
		}
		if n > before {
			before, last = n, time.Now()
		}
	}
	l.t.Fatalf("%s: %d events arrived, of %d in the feed", r.name, before, len(l.feed.events))
}

// checkDeliveries finds each event of the feed at each receiver that should have it; at the dead ones once they are mended.
func (l *load) checkDeliveries() {
	l.t.Helper()
	r := l.receivers
	l.sql(`UPDATE webhook_endpoints SET leased_until = 0`, nil) // what was killed can't end its leases
	l.await(r.takes)
	l.await(r.cuts)
	l.sql(`SELECT event_id, endpoint_id FROM webhook_deliveries GROUP BY event_id, endpoint_id HAVING COUNT(*) > 1`, func(row row) error {
		var event, endpoint string
		err := row.Scan(&event, &endpoint)
		l.t.Errorf("event %s has several deliveries to %s", event, endpoint)
		return err
	})
	// Nobody was delayed by the dead: these have taken nothing, and it waits for them.
	for _, dead := range []*receiver{r.fails, r.hangs, r.redirects} {
		if n, of := l.deliveries(dead, "pending"); n != of {
			l.t.Errorf("%s: %d of %d deliveries wait", dead.name, n, of)
		}
	}
	if n, _ := l.deliveries(r.gone, "failed"); n == 0 {
		l.t.Error("gone: no delivery failed")
	}
	if n := r.redirected.Load(); n > 0 {
		l.t.Errorf("%d redirects were followed", n)
	}
	if l.t.Failed() {
		return
	}
	r.mend()
	l.redeliver()
	most := 0
	for _, r := range r.all() {
		r.server.Close() // and its connections, which are counted next
		for _, a := range r.arrivals {
			most = max(most, a.times)
		}
	}
	l.say("%d events were delivered, one of them %d times; all are verified", len(l.feed.events), most)
}

// deliveries counts those to a receiver that have a status, beside all events.
func (l *load) deliveries(r *receiver, status string) (n, events int) {
	l.t.Helper()
	l.sql(`SELECT COUNT(*), (SELECT COUNT(*) FROM events) FROM webhook_deliveries WHERE endpoint_id = '`+r.id+`' AND status = '`+status+`'`,
		func(row row) error { return row.Scan(&n, &events) })
	return n, events
}

// redeliver has sent again what the dead did not take: as a person does through the API and by command.
func (l *load) redeliver() {
	l.t.Helper()
	r := l.receivers
	l.await(r.hangs) // goes on by itself
	l.command("webhook", "enable", r.gone.id)
	l.followToEnd()
	ids := l.feed.ids
	for some := range slices.Chunk(ids, 1000) {
		first, last := some[0], some[len(some)-1]
		l.must(call{
			method: http.MethodPost, path: "/api/webhooks/events/" + first + "/redeliver", token: l.serviceKey,
			body: fmt.Sprintf(`{"endpointId":%q,"through":%q}`, r.fails.id, last),
		}, nil)
		l.command("webhook", "replay", first, "--through", last, "--endpoint", r.gone.id)
	}
	l.await(r.fails)
	l.await(r.gone)
	one := ids[len(ids)/2]
	for _, to := range []*receiver{r.takes, r.gone} {
		before := to.times(one)
		if out := l.command("webhook", "replay", one, "--endpoint", to.id); !strings.Contains(out, "Queued: 1.") {
			l.t.Errorf("one event is sent again: %s", out)
		}
		harness.Until(l.t, "an event is delivered again", func() bool { return to.times(one) > before })
	}
}
