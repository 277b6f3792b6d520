package app

import (
	"net/netip"
	"testing"

	"bursar/internal/config"
)

func TestSandboxAllowed(t *testing.T) {
	local := config.Config{Addr: config.Listen{Addr: "127.0.0.1:8080"}, Gateway: config.Sandbox}
	tests := map[string]struct {
		change func(*config.Config)
		want   bool
	}{
		"as it comes":            {func(*config.Config) {}, true},
		"on the other loopback":  {func(c *config.Config) { c.Addr.Addr = "[::1]:8080" }, true},
		"on localhost":           {func(c *config.Config) { c.Addr.Addr = "localhost:8080" }, true},
		"a local public address": {func(c *config.Config) { c.BaseURL = "http://localhost:3000" }, true},
		"paid through who knows what beside us": {func(c *config.Config) {
			c.Gateway, c.RazorpayX.BaseURL = config.RazorpayXPayments, "http://127.0.0.1:8081/v1"
		}, false},
		"provider A is set up":              {func(c *config.Config) { c.ProviderA = &config.Provider{} }, false},
		"provider B is set up":              {func(c *config.Config) { c.ProviderB = &config.Provider{} }, false},
		"on all addresses":                  {func(c *config.Config) { c.Addr.Addr = "0.0.0.0:8080" }, false},
		"on all addresses, in short":        {func(c *config.Config) { c.Addr.Addr = ":8080" }, false},
		"on all addresses of version 6":     {func(c *config.Config) { c.Addr.Addr = "[::]:8080" }, false},
		"on an address of the network":      {func(c *config.Config) { c.Addr.Addr = "192.168.1.5:8080" }, false},
		"on a name":                         {func(c *config.Config) { c.Addr.Addr = "pay.example:8080" }, false},
		"a public address":                  {func(c *config.Config) { c.BaseURL = "https://pay.example.com" }, false},
		"a public address that looks local": {func(c *config.Config) { c.BaseURL = "https://localhost.example.com" }, false},
		"a public address of the network":   {func(c *config.Config) { c.BaseURL = "http://192.168.1.5:8080" }, false},
		"paid for real": {func(c *config.Config) {
			c.Gateway, c.RazorpayX.BaseURL = config.RazorpayXPayments, "https://api.razorpay.com/v1"
		}, false},
		"paid through a sandbox elsewhere": {func(c *config.Config) {
			c.Gateway, c.RazorpayX.BaseURL = config.RazorpayXPayments, "http://10.0.0.5:8081/v1"
		}, false},
		"paid through nobody knows whom":     {func(c *config.Config) { c.Gateway, c.RazorpayX.BaseURL = config.RazorpayXPayments, "" }, false},
		"paid by a gateway of another name":  {func(c *config.Config) { c.Gateway = "other" }, false},
		"there are proxies in front":         {func(c *config.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} }, false},
		"a public address that is no origin": {func(c *config.Config) { c.BaseURL = "http://[::1" }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := local
			tt.change(&c)
			if sandboxAllowed(c) != tt.want {
				t.Errorf("%t, want %t", !tt.want, tt.want)
			}
		})
	}
}
