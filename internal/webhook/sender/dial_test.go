package sender

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"bursar/internal/web"
)

// A name may lead anywhere, so the address is checked when it is dialled, whatever the URL looked like.
func TestSend_ChecksTheAddressThatIsDialled(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	for _, open := range []bool{true, false} {
		s, err := New(Options{Loopback: open, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		bounded, is := s.client.Transport.(web.NoUpgrades)
		if !is {
			t.Fatal("an answer 101 has no end")
		}
		transport, is := bounded.Next.(*http.Transport)
		if !is || transport.DialContext == nil {
			t.Fatal("the client dials without the guard")
		}
		conn, err := transport.DialContext(t.Context(), "tcp", receiver.Listener.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
		if (err == nil) != open {
			t.Errorf("with loopback addresses allowed %t, dialling one: %v", open, err)
		}
	}
}
