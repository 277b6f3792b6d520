package dialguard_test

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
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
			"fd00:ec2::254", "::ffff:10.0.0.1", "64:ff9b::a00:1", "::10.0.0.1", "fec0::1",
			// By way of a tunnel or a translator of one's own, also where it leads to a public address.
			"2002:a00:1::", "2002:808:808::1", "2001:0:808:808::f5ff:fffe", "2001:0:808:808::f7f7:f7f7", "64:ff9b:1::1", "64:ff9b:1::808:808",
			"64:ff9b:1::a00:1", "64:ff9b:1:a00:0:100::", "::8.8.8.8",
		},
		dialguard.Nowhere: {
			"169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
			"::169.254.169.254", "::127.0.0.1", "::ffff:0.0.0.0",
			"64:ff9b::7f00:1", "64:ff9b::", "64:ff9b:1::a9fe:a9fe", "64:ff9b:1::7f00:1", "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1:0:a9:fea9:fe00:0",
			"2002:a9fe:a9fe::1", "2002:7f00:1::1", "2002:e000:1::", "2001:0:808:808::5601:5601", "2001:0:808:808::80ff:fffe", "2001:0:1::",
			"::ffff:0:a9fe:a9fe",
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

// TestWhatLeadsToSecretsIsRefused_WhateverIsAllowed asks for the address at which clouds tell secrets in each way to write it.
func TestWhatLeadsToSecretsIsRefused_WhateverIsAllowed(t *testing.T) {
	g := &dialguard.Guard{Allows: func(string, dialguard.Reach) bool { return true }, Timeout: time.Minute}
	for _, host := range []string{
		"169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::a9fe:a9fe]", "[2002:a9fe:a9fe::1]", "[2001:0:808:808::5601:5601]", "[::a9fe:a9fe]",
	} {
		if err := g.CheckURL(&url.URL{Scheme: "https", Host: host}); err == nil || !strings.Contains(err.Error(), "where no service can be") {
			t.Errorf("%s is allowed: %v", host, err)
		}
	}
}

func TestGuard_InternalProxy_Allowed(t *testing.T) {
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
