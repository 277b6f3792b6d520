package app

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"bursar/internal/config"
)

func TestListen_TakenPort_ReplacedOnlyIfAllowed(t *testing.T) {
	taken, err := listen(t.Context(), config.Listen{Addr: "127.0.0.1:0"}, "BURSAR_ADDR")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()
	if _, err := listen(t.Context(), config.Listen{Addr: addr}, "BURSAR_ADDR"); err == nil {
		t.Errorf("two listeners on %s", addr)
	}
	free, err := listen(t.Context(), config.Listen{Addr: addr, OrFree: true}, "BURSAR_ADDR")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	if free.Addr().String() == addr {
		t.Errorf("the free port is the taken one, %s", addr)
	}
}

// TestServeHTTP_Draining_AcceptsConnections sends requests before and during a drain that would last an hour.
func TestServeHTTP_Draining_AcceptsConnections(t *testing.T) {
	listener, err := listen(t.Context(), config.Listen{Addr: "127.0.0.1:0"}, "BURSAR_ADDR")
	if err != nil {
		t.Fatal(err)
	}
	d := &drain{delay: time.Hour}
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveHTTP(listener, handler, quiet(), d)(ctx) }()

	client := &http.Client{Transport: &http.Transport{}}
	ask := func() (connectAnew bool) {
		t.Helper()
		response, err := client.Get(addressOf(listener))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.Close
	}
	if ask() {
		t.Error("a connection was not kept before the stop")
	}
	stop()
	for deadline := time.Now().Add(time.Minute); !d.begun.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the drain has not begun")
		}
	}
	if !ask() { // on the connection that was kept
		t.Error("a connection was kept while the listener drained")
	}
	if !ask() { // on a new one
		t.Error("a connection was kept while the listener drained")
	}
	select {
	case err := <-ended:
		t.Errorf("it ended before the drain did: %v", err)
	default:
	}
	_ = listener.Close()
	if err := <-ended; err == nil {
		t.Error("a listener that was taken away is no error")
	}
}

// TestServeHTTP_LargeHeaders_Refused checks what the API's description says of large headers: 431, as text.
func TestServeHTTP_LargeHeaders_Refused(t *testing.T) {
	listener, err := listen(t.Context(), config.Listen{Addr: "127.0.0.1:0"}, "BURSAR_ADDR")
	if err != nil {
		t.Fatal(err)
	}
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveHTTP(listener, handler, quiet(), &drain{})(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for size, want := range map[int]int{maxHeaderBytes / 2: http.StatusOK, 2 * maxHeaderBytes: http.StatusRequestHeaderFieldsTooLarge} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, addressOf(listener), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Large", strings.Repeat("x", size))
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if got := response.Header.Get("Content-Type"); want != http.StatusOK && !strings.HasPrefix(got, "text/plain") {
			t.Errorf("Content-Type %q", got)
		}
		if response.Body.Close(); response.StatusCode != want {
			t.Errorf("%d bytes of headers: %d, want %d", size, response.StatusCode, want)
		}
	}
}
