package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"bursar/internal/web"
)

// CheckAddress says what is wrong with the address of a provider. Codes and secrets travel there, so it is
// https, except on this machine.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "":
		return errors.New("oauth: not an address")
	case u.Scheme == "https", u.Scheme == "http" && web.IsLoopback(u.Hostname()):
		return nil
	default:
		return errors.New("oauth: not an https address")
	}
}

// guard keeps a provider from sending us into networks that are none of its business: its own description
// chooses most of the addresses that we ask. Public addresses are always open. Private ones are open where
// the operator named their host, and those that no provider can live at never are.
type guard struct {
	// named are hosts, in lower case.
	named []string
	// proxies are the addresses of the proxies that the environment names.
	proxies sync.Map
}

func newGuard(addresses ...string) *guard {
	g := &guard{}
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil {
			g.named = append(g.named, strings.ToLower(u.Hostname()))
		}
	}
	return g
}

// checkURL refuses addresses that need not be looked up to be refused. A proxy would not ask dial.
func (g *guard) checkURL(u *url.URL) error {
	if err := CheckAddress(u.String()); err != nil {
		return err
	}
	if web.IsLoopback(u.Hostname()) && !g.isNamed(u.Hostname()) {
		return fmt.Errorf("the provider points to %s, which nobody set it up to", u.Hostname())
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return g.check(u.Hostname(), ip)
	}
	return nil
}

func (g *guard) isNamed(host string) bool { return slices.Contains(g.named, strings.ToLower(host)) }

// dial connects to a host unless it turns out to be where it should not be. It is asked for each address
// that the name has, when it is about to be used, so no second look-up can change it.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	_, isProxy := g.proxies.Load(address)
	dialer := net.Dialer{
		Timeout: usualTimeout, KeepAlive: 30 * time.Second,
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

// proxy is the environment's choice. A proxy may stand anywhere.
func (g *guard) proxy(r *http.Request) (*url.URL, error) {
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

func (g *guard) check(host string, ip netip.Addr) error {
	switch reachOf(ip) {
	case public:
		return nil
	case private:
		if g.isNamed(host) {
			return nil
		}
		return fmt.Errorf("%s is at %s, a private address that nobody set the provider up at", host, ip)
	default:
		return fmt.Errorf("%s is at %s, where no provider can be", host, ip)
	}
}

// reach says from where an address can be reached.
type reach int

const (
	nowhere reach = iota // or in places where machines tell their secrets, as clouds do at 169.254.169.254
	private
	public
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

func reachOf(ip netip.Addr) reach {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		bytes := ip.As16()
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	inside := func(p netip.Prefix) bool { return p.Contains(ip) }
	switch {
	case !ip.IsValid(), ip.IsUnspecified(), ip.IsMulticast(), ip.IsLinkLocalUnicast(), thisNetwork.Contains(ip), ip == everyHost:
		return nowhere
	case ip.IsLoopback(), ip.IsPrivate(), slices.ContainsFunc(internals, inside), ip.Is6() && !globalIPv6.Contains(ip):
		return private
	default:
		return public
	}
}
