// Package dialguard keeps requests to addresses that others choose out of networks that are none of their business. The
// address that a name resolves to is checked when it is dialled, so that no second look-up can change it.
package dialguard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"bursar/internal/web"
)

// Guard checks addresses. Public addresses are always open, and [Nowhere] never is.
type Guard struct {
	// Allows reports whether a host may be at an address that is [Loopback] or [Private].
	Allows func(host string, at Reach) bool
	// Timeout bounds a connection's beginning.
	Timeout time.Duration

	// proxies are the addresses of the proxies that the environment names.
	proxies sync.Map
}

// CheckURL refuses what need not be looked up to be refused. A proxy would not ask Dial.
func (g *Guard) CheckURL(u *url.URL) error {
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		return g.check(host, ip)
	}
	if web.IsLoopback(host) && !g.Allows(host, Loopback) {
		return refused(host, "this machine")
	}
	return nil
}

// Dial connects to a host unless it turns out to be where it should not be. It checks each address that the name has, when
// it is about to be used.
func (g *Guard) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	_, isProxy := g.proxies.Load(address)
	dialer := net.Dialer{
		Timeout: g.Timeout, KeepAlive: 30 * time.Second,
		Control: func(_, resolved string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(resolved)
			if err != nil || isProxy {
				return err
			}
			return g.check(host, to.Addr())
		},
	}
	return dialer.DialContext(ctx, network, address)
}

// Proxy is the environment's choice. A proxy may stand anywhere.
func (g *Guard) Proxy(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if u != nil {
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
		}
		g.proxies.Store(net.JoinHostPort(u.Hostname(), port), true)
	}
	return u, err
}

func (g *Guard) check(host string, ip netip.Addr) error {
	switch at := ReachOf(ip); {
	case at == Public, at != Nowhere && g.Allows(host, at):
		return nil
	case at == Nowhere:
		return fmt.Errorf("%s is at %s, where no service can be", host, ip)
	default:
		return refused(host, ip.String())
	}
}

func refused(host, place string) error {
	return fmt.Errorf("%s is at %s, a private address that nobody set it up at", host, place)
}

// Reach says from where an address can be reached.
type Reach int

// Reaches.
const (
	Nowhere  Reach = iota // or in places where machines tell their secrets, as clouds do at 169.254.169.254
	Loopback              // this machine alone
	Private
	Public
)

// internals are networks inside of an organisation or a provider, beside those that netip knows.
var internals = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), // RFC 6598
	netip.MustParsePrefix("192.0.0.0/24"),  // RFC 6890
	netip.MustParsePrefix("198.18.0.0/15"), // RFC 2544
	netip.MustParsePrefix("240.0.0.0/4"),   // RFC 1112
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	everyHost   = netip.MustParseAddr("255.255.255.255")
	globalIPv6  = netip.MustParsePrefix("2000::/3")

	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215
	compatible = netip.MustParsePrefix("::/96")           // RFC 4291
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765
	sixToFour  = netip.MustParsePrefix("2002::/16")       // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32")       // RFC 4380
)

// ReachOf says from where an address can be reached. An IPv6 address that leads to an IPv4 address reaches no further than that:
// a tunnel or translator must not lead to where the IPv4 address itself would be refused.
func ReachOf(ip netip.Addr) Reach {
	ip = ip.Unmap().WithZone("")
	if isNative(ip) {
		return nativeReach(ip)
	}
	furthest := Private // tunnels lead to networks that we don't know
	if nat64.Contains(ip) {
		furthest = Public
	}
	for _, carried := range carriedBy(ip) {
		switch at := nativeReach(carried); at {
		case Nowhere, Loopback: // the loopback of the machine at the tunnel's other end
			return Nowhere
		default:
			furthest = min(furthest, at)
		}
	}
	return furthest
}

// isNative reports whether an address carries no other one.
func isNative(ip netip.Addr) bool {
	if ip.Is4() || !ip.IsValid() || ip.IsUnspecified() || ip.IsLoopback() {
		return true
	}
	return !slices.ContainsFunc([]netip.Prefix{nat64, localNAT64, compatible, translated, sixToFour, teredo}, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// carriedBy lists the IPv4 addresses that an address can lead to.
func carriedBy(ip netip.Addr) []netip.Addr {
	b := ip.As16()
	ipv4 := func(at ...int) netip.Addr { return netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]}) }
	switch {
	case sixToFour.Contains(ip):
		return []netip.Addr{ipv4(2, 3, 4, 5)}
	case teredo.Contains(ip):
		for i := 12; i < len(b); i++ {
			b[i] = ^b[i]
		}
		return []netip.Addr{ipv4(12, 13, 14, 15)}
	case localNAT64.Contains(ip):
		// Which of RFC 6052's places holds it depends on the translator's prefix. One that begins with 0 is part of that.
		places := []netip.Addr{ipv4(6, 7, 9, 10), ipv4(7, 9, 10, 11), ipv4(9, 10, 11, 12), ipv4(12, 13, 14, 15)}
		return slices.DeleteFunc(places, thisNetwork.Contains)
	default:
		return []netip.Addr{ipv4(12, 13, 14, 15)}
	}
}

// nativeReach says from where an address can be reached that carries no other one.
func nativeReach(ip netip.Addr) Reach {
	inside := func(p netip.Prefix) bool { return p.Contains(ip) }
	switch {
	case !ip.IsValid(), ip.IsUnspecified(), ip.IsMulticast(), ip.IsLinkLocalUnicast(), thisNetwork.Contains(ip), ip == everyHost:
		return Nowhere
	case ip.IsLoopback():
		return Loopback
	case ip.IsPrivate(), slices.ContainsFunc(internals, inside), ip.Is6() && !globalIPv6.Contains(ip):
		return Private
	default:
		return Public
	}
}
