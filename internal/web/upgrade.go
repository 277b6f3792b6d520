package web

import (
	"errors"
	"net/http"
)

// NoUpgrades sends requests, and takes an answer 101 Switching Protocols for a failure. Nothing that we send asks for another protocol, and
// the body of such an answer has no end: net/http applies neither the client's time limit nor the request's context to it.
type NoUpgrades struct{ Next http.RoundTripper }

var errUpgrade = errors.New("the answer is 101 Switching Protocols, which nobody asked for")

// RoundTrip closes the connection of a 101.
func (t NoUpgrades) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.Next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusSwitchingProtocols {
		_ = response.Body.Close()
		return nil, errUpgrade
	}
	return response, err
}
