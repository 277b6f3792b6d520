package auth

import "net/netip"

// Device is where a request comes from.
type Device struct {
	// Address is the client's IP address, without a port.
	Address string
}

// ipv6Site is how much of an IPv6 address tells one site from another: whoever has one address of a
// /64 has them all.
const ipv6Site = 64

// key is what devices are told apart by.
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
