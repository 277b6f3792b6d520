package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"bursar/internal/config"
)

type healthCmd struct {
	URL   string        `arg:"" optional:"" help:"Address of the service; this machine's, at the port of BURSAR_ADDR, unless given."`
	Ready bool          `help:"Ask whether requests may be sent there, not only whether it lives."`
	Wait  time.Duration `placeholder:"30s" help:"Ask again and again for so long until the answer is yes."`
}

func (healthCmd) Help() string {
	return "The exit code is 0 when the answer is yes, and 1 when it is no or there is none.\n\n" +
		examples("bursar health", "bursar health --ready --wait 30s", "bursar health --ready https://payouts.example.com")
}

// How long one question may take, and how long to rest before it is asked again.
const (
	healthTimeout = 3 * time.Second
	healthEvery   = 250 * time.Millisecond
)

// Run asks, and prints what the service says.
func (c healthCmd) Run(ctx context.Context, e *env) error {
	address := c.URL
	if address == "" {
		cfg, err := e.config()
		if err != nil {
			return err
		}
		address = ownAddress(cfg)
	}
	path := "/healthz"
	if c.Ready {
		path = "/readyz"
	}
	timeout, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	for {
		answer, err := askHealth(ctx, address+path)
		if err == nil {
			_, err = fmt.Fprintln(e.out, answer)
			return err
		}
		select {
		case <-time.After(healthEvery):
		case <-timeout.Done():
			return err
		}
	}
}

// ownAddress is where a service with this configuration is found from the same machine.
func ownAddress(cfg config.Config) string {
	host, port, _ := net.SplitHostPort(cfg.Addr.Addr) // it was checked
	if ip, err := netip.ParseAddr(host); host == "" || (err == nil && ip.IsUnspecified()) {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// askHealth returns what the service says of itself, and an error unless that is good.
func askHealth(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("there is no answer; start the service, or name its address, as in \"bursar health http://HOST:PORT\": %w", err)
	}
	defer response.Body.Close()
	const most = 64 << 10
	var answer struct {
		Message string `json:"message"`
		Error   string `json:"error"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, most)).Decode(&answer); err != nil {
		return "", fmt.Errorf("%s was answered with %d, and not by Bursar", url, response.StatusCode)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s was answered with %d: %s", url, response.StatusCode, answer.Error)
	}
	return answer.Message, nil
}
