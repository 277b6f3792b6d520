package oauth

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"bursar/internal/dialguard"
	"bursar/internal/web"
)

// maxBody is the most that a provider may answer with.
const maxBody = 1 << 20

var errRedirected = strangeAnswer{errors.New("the provider answers with a redirect, and none is followed")}

// newHTTPClient makes the client for a provider that the operator named by these addresses.
func newHTTPClient(timeout time.Duration, named ...string) *http.Client {
	g := newGuard(named...)
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected },
		Transport: &transport{guard: g, next: web.NoUpgrades{Next: &http.Transport{
			Proxy:                  g.Proxy,
			DialContext:            g.Dial,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    timeout,
			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConnsPerHost:    4,
			IdleConnTimeout:        time.Minute,
		}}},
	}
}

// transport bounds what is asked, and what may be answered.
type transport struct {
	guard *dialguard.Guard
	next  http.RoundTripper
}

// RoundTrip reads the whole answer, so that what is wrong with it is known in one place.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := checkURL(t.guard, r.URL); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "Bursar")
	r.Header.Set("Accept", "application/json")
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := readBody(response)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode >= http.StatusInternalServerError:
		return nil, statusError{response.StatusCode}
	case r.Method == http.MethodGet && response.StatusCode >= http.StatusBadRequest:
		return nil, statusError{response.StatusCode}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

func readBody(response *http.Response) ([]byte, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the provider's answer: %w", err)
	case len(body) > maxBody:
		return nil, strangeAnswer{fmt.Errorf("the provider's answer is longer than %d bytes", maxBody)}
	}
	return body, nil
}
