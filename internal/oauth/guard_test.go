package oauth

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"testing"
)

func TestWhereAProviderCanBe(t *testing.T) {
	tests := map[reach][]string{
		public: {"8.8.8.8", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"},
		private: {
			"127.0.0.1", "127.8.9.10", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200", "198.18.0.1", "192.0.0.192", "240.0.0.1",
			"::1", "fd00:ec2::254", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "2001:0:1::", "64:ff9b:1::1", "::10.0.0.1", "fec0::1",
		},
		nowhere: {
			"169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
			"0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "ff02::1", "255.255.255.255",
		},
	}
	for want, addresses := range tests {
		for _, address := range addresses {
			if got := reachOf(netip.MustParseAddr(address)); got != want {
				t.Errorf("%s: reach %d, want %d", address, got, want)
			}
		}
	}
}

// What a name resolves to counts, and only who named the host may have it inside.
func TestConnectionsGoWhereTheOperatorSaid(t *testing.T) {
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
		conn, err := newGuard(tt.named).dial(t.Context(), "tcp4", net.JoinHostPort(tt.to, port))
		if err == nil {
			_ = conn.Close()
		}
		if (err == nil) != tt.open {
			t.Errorf("with %s named, a connection to %s: %v", tt.named, tt.to, err)
		}
	}
}

// A proxy looks names up itself, so what can be refused without is refused before.
func TestAddressesAreRefusedBeforeAProxyIsAsked(t *testing.T) {
	g := newGuard("https://id.example")
	for _, address := range []string{
		"http://id.example/", "https://169.254.169.254/", "https://10.0.0.1/", "https://[::1]/", "http://localhost/",
		"https://localhost/", "https://user@id.example/", "ftp://id.example/", "https:///x",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if g.checkURL(u) == nil {
			t.Errorf("%s is asked", address)
		}
	}
	for _, address := range []string{"https://id.example/x", "https://8.8.8.8/", "https://other.example/"} {
		u, _ := url.Parse(address)
		if err := g.checkURL(u); err != nil {
			t.Errorf("%s is not asked: %v", address, err)
		}
	}
}

func TestAProxyMayStandInside(t *testing.T) {
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	g := newGuard("https://id.example")
	g.proxies.Store(proxy.Addr().String(), true)
	conn, err := g.dial(t.Context(), "tcp", proxy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if u, err := g.proxy(&http.Request{URL: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}}); u != nil || err != nil {
		t.Errorf("this machine is asked through %v (%v)", u, err)
	}
}
