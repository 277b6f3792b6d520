package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/gateway/httpapi"
)

const secret = "the-secret-key"

func newClient(t *testing.T, base string, change func(*httpapi.Options)) *httpapi.Client {
	t.Helper()
	o := httpapi.Options{BaseURL: base, Authorize: func(r *http.Request) { r.SetBasicAuth("id", secret) }, Transport: &http.Transport{}}
	if change != nil {
		change(&o)
	}
	c, err := httpapi.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Transport.CloseIdleConnections)
	return c
}

func serving(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

var order = httpapi.Request{Method: http.MethodPost, Path: "/payouts", Header: map[string]string{"X-Key": "pyt_1"}, Body: []byte(`{"amount":1}`)}

func TestDo_SendsWhatWasAsked(t *testing.T) {
	base := serving(t, func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Answer", "yes")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintln(w, r.Method, r.URL, r.Header.Get("X-Key"), r.Header.Get("Content-Type"), "<", r.Header.Get("Accept"), password, string(body))
	})
	c := newClient(t, base+"/v1/", nil)
	asked := order
	asked.Query = map[string][]string{"page": {"2"}}
	for want, r := range map[string]httpapi.Request{
		`POST /v1/payouts?page=2 pyt_1 application/json < application/json ` + secret + ` {"amount":1}`: asked,
		`GET /v1/payouts/x   < application/json ` + secret + ` `:                                        {Method: http.MethodGet, Path: "/payouts/x"},
	} {
		got, lost := c.Do(t.Context(), r)
		if lost != nil {
			t.Fatal(lost)
		}
		if got.Status != http.StatusAccepted || !got.OK() || got.Header.Get("X-Answer") != "yes" || strings.TrimSuffix(string(got.Body), "\n") != want {
			t.Errorf("got %d, %q; want %q", got.Status, got.Body, want)
		}
	}
}

// A lost request says nothing of its transfer, unless no byte of it was sent.
func TestDo_Lost(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	unknown := httptest.NewTLSServer(nil)
	t.Cleanup(unknown.Close)
	ended, end := context.WithCancel(t.Context())
	end()
	full := errors.New("no turn before 15s have passed")
	for name, test := range map[string]struct {
		base   string
		change func(*httpapi.Options)
		code   string
		unsent bool
	}{
		"nobody listens":         {closed.URL, nil, "unreachable", true},
		"an unknown certificate": {unknown.URL, nil, "unreachable", true},
		"the context has ended":  {serving(t, func(http.ResponseWriter, *http.Request) {}), nil, "unreachable", true},
		"no turn": {closed.URL, func(o *httpapi.Options) {
			o.Turn = func(context.Context) error { return full }
		}, gateway.ReasonRateLimited, true},
		"cut before the answer": {serving(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), nil, "connection_lost", false},
		"cut within the answer": {serving(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2000")
			fmt.Fprint(w, "{")
		}), nil, "connection_lost", false},
		"no answer in time": {serving(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}), func(o *httpapi.Options) { o.Timeout = 50 * time.Millisecond }, "timeout", false},
		"an endless answer": {serving(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.Repeat(" ", 1<<20+1))
		}), nil, "answer_too_large", false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if name == "the context has ended" {
				ctx = ended
			}
			_, lost := newClient(t, test.base, test.change).Do(ctx, order)
			if lost == nil || lost.Code != test.code || lost.Unsent != test.unsent {
				t.Fatalf("got %+v; want code %s, unsent %t", lost, test.code, test.unsent)
			}
			if !strings.HasPrefix(lost.Error(), test.code+": ") || errors.Is(lost, full) != (name == "no turn") {
				t.Errorf("error %v", lost)
			}
			want := gateway.Unclear
			if test.unsent {
				want = gateway.NotTaken
			}
			if s := lost.Submission(); s.Outcome != want || s.NotSent != test.unsent || s.ReasonCode != test.code || s.Reason == "" {
				t.Errorf("submission %+v", s)
			}
		})
	}
}

func TestDo_Redirect_NotFollowed(t *testing.T) {
	var calls atomic.Int64
	c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}), nil)
	if got, lost := c.Do(t.Context(), order); lost != nil || got.Status != http.StatusTemporaryRedirect || got.OK() || calls.Load() != 1 {
		t.Errorf("%+v, %v, %d calls", got, lost, calls.Load())
	}
}

// The transport may repeat a request with such a header when a kept connection is lost, so the gateway could take the
// first and refuse the second.
func TestDo_ConnectionLost_NotRepeated(t *testing.T) {
	for header, body := range map[string][]byte{
		"Idempotency-Key: pyt_1": order.Body, "X-Idempotency-Key: pyt_1": order.Body, "idempotency-key: pyt_1": nil, "X-Key: pyt_1": order.Body,
		"Idempotency-Key: ": order.Body,
	} {
		t.Run(fmt.Sprintf("%s, %d bytes", header, len(body)), func(t *testing.T) {
			name, key, _ := strings.Cut(header, ": ")
			base, orders := losesOrders(t)
			c := newClient(t, base, nil)
			if _, lost := c.Do(t.Context(), httpapi.Request{Method: http.MethodGet, Path: "/"}); lost != nil {
				t.Fatal(lost) // the connection is kept from here on
			}
			r := httpapi.Request{Method: http.MethodPost, Path: "/", Header: map[string]string{name: key}, Body: body}
			_, lost := c.Do(t.Context(), r)
			if lost == nil || lost.Unsent || orders.Load() != 1 {
				t.Errorf("%v, sent %d times", lost, orders.Load())
			}
		})
	}
}

// losesOrders answers each GET, and closes the connection once it has read a POST, as a gateway does that ends after it took an order.
func losesOrders(t *testing.T) (base string, orders *atomic.Int64) {
	t.Helper()
	orders = &atomic.Int64{}
	return accepting(t, func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if r.Method == http.MethodPost {
				orders.Add(1)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	}), orders
}

// accepting serves each connection until serve returns.
func accepting(t *testing.T, serve func(net.Conn)) (base string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// Over HTTP/2 the transport repeats a request whose stream was reset with a protocol error, also if the gateway has read all of it.
func TestDo_StreamReset_NotRepeated(t *testing.T) {
	for _, body := range [][]byte{order.Body, nil} {
		t.Run(fmt.Sprintf("%d bytes", len(body)), func(t *testing.T) {
			base, orders := resetsStreams(t)
			c := newClient(t, base, func(o *httpapi.Options) {
				o.Transport.Protocols = &http.Protocols{}
				o.Transport.Protocols.SetUnencryptedHTTP2(true)
			})
			_, lost := c.Do(t.Context(), httpapi.Request{Method: http.MethodPost, Path: "/", Body: body})
			if lost == nil || lost.Unsent || orders.Load() != 1 {
				t.Errorf("%v, sent %d times", lost, orders.Load())
			}
		})
	}
}

// resetsStreams reads requests over HTTP/2 to their ends, and resets the stream of each, as a proxy does that loses its gateway.
func resetsStreams(t *testing.T) (base string, orders *atomic.Int64) {
	t.Helper()
	orders = &atomic.Int64{}
	return accepting(t, func(conn net.Conn) { resetStreams(conn, orders) }), orders
}

// resetStreams is a server's side of HTTP/2, as little as it takes.
func resetStreams(conn net.Conn, orders *atomic.Int64) {
	const (
		data, settings, resetStream = 0, 4, 3
		endStream, protocolError    = 1, 1
	)
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	_, _ = conn.Write([]byte{0, 0, 0, settings, 0, 0, 0, 0, 0})
	for {
		header := make([]byte, 9) // length, type, flags, stream
		if _, err := io.ReadFull(conn, header); err != nil {
			return
		}
		length := int64(header[0])<<16 | int64(header[1])<<8 | int64(header[2])
		if _, err := io.CopyN(io.Discard, conn, length); err != nil {
			return
		}
		if header[3] == data && header[4]&endStream != 0 {
			orders.Add(1)
			reset := append([]byte{0, 0, 4, resetStream, 0}, header[5:]...)
			_, _ = conn.Write(append(reset, 0, 0, 0, protocolError))
		}
	}
}

func TestDo_Errors_HideAddressAndSecrets(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	cut := serving(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for name, r := range map[string]httpapi.Request{
		"sent":           {Method: http.MethodGet, Path: "/accounts/50100102283912", Query: map[string][]string{"account": {"50100102283912"}}},
		"a bad path":     {Method: http.MethodGet, Path: "/accounts/50100102283912\x7f"},
		"a bad method":   {Method: "GE T", Path: "/accounts/50100102283912"},
		"a bad header":   {Method: http.MethodGet, Path: "/accounts", Header: map[string]string{"X-Account": "50100102283912\n"}},
		"a body of ours": {Method: http.MethodPost, Path: "/accounts", Body: []byte(`{"account":"50100102283912"}`)},
	} {
		for _, base := range []string{closed.URL, cut} {
			_, lost := newClient(t, base, nil).Do(t.Context(), r)
			if lost == nil {
				t.Fatalf("%s: no error", name)
			}
			for _, text := range []string{lost.Error(), lost.Submission().Reason} {
				if text == "" || strings.Contains(text, "50100102283912") || strings.Contains(text, secret) {
					t.Errorf("%s: %s", name, text)
				}
			}
		}
	}
}

func TestNew_IncompleteOptions_Refused(t *testing.T) {
	authorize := func(*http.Request) {}
	if _, err := httpapi.New(httpapi.Options{BaseURL: "https://gateway.example/v1", Authorize: authorize}); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]httpapi.Options{
		"no address":        {Authorize: authorize},
		"no scheme":         {BaseURL: "gateway.example/v1", Authorize: authorize},
		"another scheme":    {BaseURL: "ftp://gateway.example/v1", Authorize: authorize},
		"a password within": {BaseURL: "https://a:b@gateway.example", Authorize: authorize},
		"a query within":    {BaseURL: "https://gateway.example/v1?a=b", Authorize: authorize},
		"an empty query":    {BaseURL: "https://gateway.example/v1?", Authorize: authorize},
		"a fragment within": {BaseURL: "https://gateway.example/v1#a", Authorize: authorize},
		"no credentials":    {BaseURL: "https://gateway.example/v1"},
		"negative timeout":  {BaseURL: "https://gateway.example/v1", Authorize: authorize, Timeout: -1},
	} {
		if _, err := httpapi.New(o); err == nil || strings.Contains(err.Error(), "a:b") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecode(t *testing.T) {
	type answer struct {
		ID     string
		Amount int
	}
	for body, want := range map[string]answer{
		`{"ID":"a","Amount":3}`:           {"a", 3},
		`{"ID":"a","Amount":"3"}`:         {"a", 0},
		`{"ID":"a\u0000b\\u0000"}`:        {`ab\u0000`, 0},
		`{"ID":"a\\\u0000b","Amount":-1}`: {`a\b`, -1},
	} {
		var got answer
		if err := httpapi.Decode([]byte(body), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", body, got, err, want)
		}
	}
	for _, body := range []string{"", "<html>50100102283912", `{"ID":`} {
		var got answer
		if err := httpapi.Decode([]byte(body), &got); err == nil || strings.Contains(err.Error(), "50100102283912") {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestRedact(t *testing.T) {
	long := strings.Repeat("é", 150)
	for text, want := range map[string]string{
		"":                                "",
		"Account 50100102283912 of 12345": "Account **** of 12345",
		"123456":                          "****",
		long:                              long[:200] + "…",
	} {
		if got := httpapi.Redact(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		"-3":                            0,
		"soon":                          0,
		"3601":                          time.Hour,
		"Fri, 20 Nov 2026 10:00:30 GMT": 30 * time.Second,
		"Fri, 20 Nov 2026 09:00:00 GMT": 0,
		"Sat, 21 Nov 2026 10:00:00 GMT": time.Hour,
	} {
		if got := (httpapi.Response{Header: http.Header{"Retry-After": {header}}}).RetryAfter(now); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
