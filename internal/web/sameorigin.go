package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// SameOrigin tells requests of our own pages from those of other sites.
type SameOrigin struct {
	protection *http.CrossOriginProtection
	secure     bool
}

// NewSameOrigin makes a check for the site at a public address. A proxy in front may change the Host that the
// browser saw, so the address counts beside it.
func NewSameOrigin(base *url.URL) (SameOrigin, error) {
	s := SameOrigin{http.NewCrossOriginProtection(), base.Scheme == "https"}
	if err := s.protection.AddTrustedOrigin(base.Scheme + "://" + base.Host); err != nil {
		return s, fmt.Errorf("base URL: %w", err)
	}
	return s, nil
}

var errPlainOrigin = errors.New("web: the origin is http, and the site is https")

// Check fails for a request that may change something and that a page of another site sent. Browsers without
// Sec-Fetch-Site tell the Origin alone, of which the standard library compares the host: on an https site a page of
// the same host over http is another site, because anybody on the network can write it.
func (s SameOrigin) Check(r *http.Request) error {
	if err := s.protection.Check(r); err != nil {
		return err
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil
	}
	if s.secure && r.Header.Get("Sec-Fetch-Site") == "" && strings.HasPrefix(strings.ToLower(r.Header.Get("Origin")), "http:") {
		return errPlainOrigin
	}
	return nil
}
