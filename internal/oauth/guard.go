package oauth

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"bursar/internal/dialguard"
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

// newGuard keeps a provider from sending us into private networks: its own description chooses most of the addresses that we
// ask. It may be in one where the operator named the host.
func newGuard(addresses ...string) *dialguard.Guard {
	var named []string
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil {
			named = append(named, strings.ToLower(u.Hostname()))
		}
	}
	return &dialguard.Guard{
		Allows:  func(host string, _ dialguard.Reach) bool { return slices.Contains(named, strings.ToLower(host)) },
		Timeout: usualTimeout,
	}
}

// checkURL refuses addresses that need not be looked up to be refused.
func checkURL(g *dialguard.Guard, u *url.URL) error {
	if err := CheckAddress(u.String()); err != nil {
		return err
	}
	return g.CheckURL(u)
}
