package e2e

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bursar/test/harness"
)

// Three instances are restarted one after the other, behind a load balancer and under load.
func TestRollingRestart_AnswersEveryRequest(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no signal to ask with")
	}
	s := shopOnPostgres(t, 3, "BURSAR_DRAIN_DELAY=2s")
	s.start(t)
	s.open(t)
	balancer := newBalancer(t, s.instances)
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, Transport: balancer})
	t.Cleanup(front.Close)

	s.ask(t, 6, func() string { return front.URL })
	for _, seller := range s.sellers {
		s.callers.Go(func() { s.look(t, front.URL, seller) })
	}
	for _, i := range s.instances {
		i.Stop(t)
		i.Start(t)
		harness.Until(t, "the load balancer knows", func() bool { return balancer.ready(i) })
	}
	s.close(t)
	if n := s.unanswered.Load(); n > 0 {
		t.Errorf("%d requests were not answered", n)
	}
	s.settle(t)
	s.check(t)
}

// look asks for a balance again and again until the shop closes.
func (s *shop) look(t *testing.T, where string, seller *shopSeller) {
	t.Helper()
	for {
		select {
		case <-s.over:
			return
		case <-time.After(20 * time.Millisecond):
		}
		if status, answer, err := harness.Send("GET", where+"/api/payouts/balance", seller.token, "", nil); err != nil || status != http.StatusOK {
			s.unanswered.Add(1)
			t.Logf("a balance was answered with %d (%v): %s", status, err, answer)
		}
	}
}

// balancer spreads requests over the instances whose /readyz it likes. It tries a second instance only
// if the first one refused the connection, when nothing can have been done.
type balancer struct {
	backends []*backend
	turn     atomic.Uint64
}

type backend struct {
	host    string
	isReady atomic.Bool
}

func newBalancer(t *testing.T, instances []*harness.Instance) *balancer {
	t.Helper()
	b := &balancer{}
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	for _, i := range instances {
		one := &backend{host: strings.TrimPrefix(i.API, "http://")}
		b.backends = append(b.backends, one)
		one.isReady.Store(i.IsReady())
		go func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(100 * time.Millisecond):
					one.isReady.Store(i.IsReady())
				}
			}
		}()
	}
	return b
}

func (b *balancer) ready(i *harness.Instance) bool {
	for _, one := range b.backends {
		if i.API == "http://"+one.host {
			return one.isReady.Load()
		}
	}
	return false
}

// RoundTrip hands a request to an instance.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	for range 2 * len(b.backends) {
		one := b.backends[b.turn.Add(1)%uint64(len(b.backends))]
		if !one.isReady.Load() {
			continue
		}
		copied := r.Clone(r.Context())
		copied.URL = &url.URL{Scheme: "http", Host: one.host, Path: r.URL.Path, RawQuery: r.URL.RawQuery}
		copied.Body, copied.GetBody = io.NopCloser(bytes.NewReader(body)), nil // it is not sent again behind our back
		response, err := http.DefaultTransport.RoundTrip(copied)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return response, err
		}
	}
	return nil, errors.New("no instance is ready")
}
