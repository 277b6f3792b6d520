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

// internals are networks inside of an organisation or a provider, beside those that netip knows, and
// tunnels that lead to any.
var internals = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), // RFC 6598
	netip.MustParsePrefix("192.0.0.0/24"),  // RFC 6890
	netip.MustParsePrefix("198.18.0.0/15"), // RFC 2544
	netip.MustParsePrefix("240.0.0.0/4"),   // RFC 1112
	netip.MustParsePrefix("2001::/32"),     // Teredo
	netip.MustParsePrefix("2002::/16"),     // 6to4
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	everyHost   = netip.MustParseAddr("255.255.255.255")
	globalIPv6  = netip.MustParsePrefix("2000::/3")
	nat64       = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
)

// ReachOf says from where an address can be reached.
func ReachOf(ip netip.Addr) Reach {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		bytes := ip.As16()
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	}
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
