package sender_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"bursar/internal/webhook"
	"bursar/internal/webhook/sender"
)

func newSender(t *testing.T, o sender.Options) *sender.Sender {
	t.Helper()
	o.Now = time.Now
	s, err := sender.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Where a name leads is checked when it is dialled, and what needs no look-up before.
func TestSend_WhereEndpointsMayBe(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	_, port, err := net.SplitHostPort(receiver.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		options sender.Options
		url     string
		problem string // part of it; "" for none
	}{
		{"on this machine, which is allowed", sender.Options{Loopback: true}, "http://127.0.0.1:" + port, ""},
		{"on this machine, by a name", sender.Options{Loopback: true}, "http://localhost:" + port, ""},
		{"on this machine", sender.Options{}, "http://127.0.0.1:" + port, "private address"},
		{"on this machine, by its name", sender.Options{Private: true}, "http://localhost:" + port, "private address"},
		{"in a private network", sender.Options{Loopback: true}, "https://10.0.0.1/", "private address"},
		{"in a carrier's network", sender.Options{Loopback: true}, "https://100.64.0.1/", "private address"},
		{"in a private network of version 6", sender.Options{Loopback: true}, "https://[fd00::1]/", "private address"},
		{"where clouds tell secrets", sender.Options{Loopback: true, Private: true}, "http://169.254.169.254/latest", "no service can be"},
		{"at no address", sender.Options{Loopback: true, Private: true}, "https://0.0.0.0/", "no service can be"},
		{"unreadable", sender.Options{}, "https://shop.example/%zz?token=hush", "can't be read"},
	} {
		answer, err := newSender(t, tt.options).Send(t.Context(), webhook.Message{URL: tt.url, ID: "evt_1", At: time.Now(), Body: []byte(`{}`)})
		switch {
		case tt.problem == "" && (err != nil || answer.Status != http.StatusOK):
			t.Errorf("%s: %+v, %v", tt.name, answer, err)
		case tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem) || strings.Contains(err.Error(), "hush")):
			t.Errorf("%s: %v, want %s", tt.name, err, tt.problem)
		}
	}
}

// A receiver's answer is bounded, and its status counts even where the answer breaks off.
func TestSend_LongAndBrokenAnswers(t *testing.T) {
	written := make(chan error, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("half"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path == "/switched" {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
			_, _ = io.Copy(io.Discard, conn) // says nothing until the sender closes
			return
		}
		chunk := []byte(strings.Repeat("é", 32<<10))
		var err error
		for range 1000 {
			if _, err = w.Write(chunk); err != nil {
				break
			}
		}
		written <- err
	}))
	t.Cleanup(receiver.Close)
	s := newSender(t, sender.Options{Loopback: true})
	send := func(path string) webhook.Answer {
		t.Helper()
		answer, err := s.Send(t.Context(), webhook.Message{URL: receiver.URL + path, ID: "evt_1", At: time.Now(), Body: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	if answer := send("/long"); !answer.Succeeded() || len(answer.Body) > 2<<10 || len(answer.Body) < 2000 || strings.Trim(answer.Body, "é") != "" {
		t.Errorf("of a long answer %d bytes are kept: %.100q", len(answer.Body), answer.Body)
	}
	if err := <-written; err == nil {
		t.Error("a long answer was read to its end")
	}
	if answer := send("/broken"); !answer.Succeeded() || answer.Body != "half" {
		t.Errorf("an answer that breaks off is %+v", answer)
	}
	if answer, err := s.Send(t.Context(), webhook.Message{URL: receiver.URL + "/switched", ID: "evt_1", At: time.Now(), Body: []byte(`{}`)}); err == nil {
		t.Errorf("an answer that switches protocols is %+v", answer)
	}
}
