package dialguard_test

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"bursar/internal/dialguard"
)

func TestReachOf(t *testing.T) {
	tests := map[dialguard.Reach][]string{
		dialguard.Public:   {"8.8.8.8", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"},
		dialguard.Loopback: {"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"},
		dialguard.Private: {
			"10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200", "198.18.0.1", "192.0.0.192", "240.0.0.1",
			"fd00:ec2::254", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "2001:0:1::", "64:ff9b:1::1", "::10.0.0.1", "fec0::1",
		},
		dialguard.Nowhere: {
			"169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
			"0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "ff02::1", "255.255.255.255",
		},
	}
	for want, addresses := range tests {
		for _, address := range addresses {
			if got := dialguard.ReachOf(netip.MustParseAddr(address)); got != want {
				t.Errorf("%s: reach %d, want %d", address, got, want)
			}
		}
	}
}

func TestAProxyMayStandInside(t *testing.T) {
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	g := &dialguard.Guard{Allows: func(string, dialguard.Reach) bool { return false }, Timeout: time.Minute}
	t.Setenv("HTTPS_PROXY", "http://"+proxy.Addr().String())
	if u, err := g.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "shop.example"}}); u == nil || err != nil {
		t.Fatalf("the proxy is %v (%v)", u, err)
	}
	conn, err := g.Dial(t.Context(), "tcp", proxy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if u, err := g.Proxy(&http.Request{URL: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}}); u != nil || err != nil {
		t.Errorf("this machine is asked through %v (%v)", u, err)
	}
}
