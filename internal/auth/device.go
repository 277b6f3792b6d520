package auth

import (
	"net/netip"
	"strings"
	"unicode"
)

// Device is where a request comes from.
type Device struct {
	// Address is the client's IP address, without a port.
	Address string
	// Agent is what the browser or program calls itself. It may be anything.
	Agent string
}

// What is kept of a device, to show it to its user.
const (
	maxAgentBytes   = 200
	maxAddressBytes = 64
)

// printable is what of a text may be shown on one line, cut to most bytes.
func printable(s string, most int) string {
	s = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s[:min(len(s), most)], ""))
	return strings.TrimSpace(s)
}

// ipv6Site is how much of an IPv6 address tells one site from another: a client with one address of a
// /64 has them all.
const ipv6Site = 64

// key identifies a device.
func (d Device) key() string {
	address, err := netip.ParseAddr(d.Address)
	if err != nil {
		return d.Address
	}
	address = address.Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}
	site, err := address.Prefix(ipv6Site)
	if err != nil {
		return d.Address
	}
	return site.String()
}
