package web

import (
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are the networks whose X-Forwarded-For is believed.
type Proxies []netip.Prefix

// Client is where a request comes from: the rightmost address of X-Forwarded-For that is not a proxy
// of ours, and the connection's own when that is not one either. What stands further left is whatever
// the client made up.
func (p Proxies) Client(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	client := peer.Addr().Unmap()
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for len(forwarded) > 0 && p.trust(client) {
		last := len(forwarded) - 1
		next, err := netip.ParseAddr(strings.TrimSpace(forwarded[last]))
		if err != nil {
			break
		}
		client, forwarded = next.Unmap(), forwarded[:last]
	}
	return client.WithZone("").String()
}

func (p Proxies) trust(proxy netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(proxy) {
			return true
		}
	}
	return false
}
