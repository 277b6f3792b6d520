package oauth

import (
	"net"
	"net/url"
	"testing"
)

// The resolved address counts, and only a host that the operator configured may be a loopback address.
func TestDial_LoopbackOnlyIfConfigured(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	tests := []struct {
		named, to string
		open      bool
	}{
		{"http://localhost:1/realm", "localhost", true},
		{"http://LOCALHOST/", "localhost", true},
		{"http://127.0.0.1:9/", "127.0.0.1", true},
		{"https://id.example/", "localhost", false},
		{"https://id.example/", "127.0.0.1", false},
		{"http://127.0.0.1:9/", "localhost", false},
		{"http://localhost/", "127.0.0.1", false},
		{"http://0.0.0.0/", "0.0.0.0", false},
	}
	for _, tt := range tests {
		conn, err := newGuard(tt.named).Dial(t.Context(), "tcp4", net.JoinHostPort(tt.to, port))
		if err == nil {
			_ = conn.Close()
		}
		if (err == nil) != tt.open {
			t.Errorf("with %s named, a connection to %s: %v", tt.named, tt.to, err)
		}
	}
}

// A proxy resolves names itself, so an address that can be refused without resolving it is refused first.
func TestCheckURL(t *testing.T) {
	g := newGuard("https://id.example")
	for _, address := range []string{
		"http://id.example/", "https://169.254.169.254/", "https://10.0.0.1/", "https://[::1]/", "http://localhost/",
		"https://localhost/", "https://user@id.example/", "ftp://id.example/", "https:///x",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if checkURL(g, u) == nil {
			t.Errorf("%s is asked", address)
		}
	}
	for _, address := range []string{"https://id.example/x", "https://8.8.8.8/", "https://other.example/"} {
		u, _ := url.Parse(address)
		if err := checkURL(g, u); err != nil {
			t.Errorf("%s is not asked: %v", address, err)
		}
	}
}
