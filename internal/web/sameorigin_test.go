package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"bursar/internal/web"
)

func TestSameOrigin(t *testing.T) {
	for name, test := range map[string]struct {
		base, method, host, origin, site string
		want                             bool
	}{
		"our page":                        {"https://pay.example", "POST", "pay.example", "https://pay.example", "same-origin", true},
		"our page, an old browser":        {"https://pay.example", "POST", "pay.example", "https://pay.example", "", true},
		"our page behind a proxy":         {"https://pay.example", "POST", "10.0.0.1:8080", "https://pay.example", "", true},
		"a program":                       {"https://pay.example", "POST", "pay.example", "", "", true},
		"the same host over http":         {"https://pay.example", "POST", "pay.example", "http://pay.example", "", false},
		"the same host over http, shouts": {"https://pay.example", "POST", "pay.example", "HTTP://pay.example", "", false},
		"a read of it":                    {"https://pay.example", "GET", "pay.example", "http://pay.example", "", true},
		"another site":                    {"https://pay.example", "POST", "pay.example", "https://evil.example", "", false},
		"another site says so":            {"https://pay.example", "POST", "pay.example", "https://evil.example", "cross-site", false},
		"a sibling":                       {"https://pay.example", "DELETE", "pay.example", "https://www.pay.example", "same-site", false},
		"http on this machine":            {"http://127.0.0.1:8080", "POST", "127.0.0.1:8080", "http://127.0.0.1:8080", "", true},
		"its other name":                  {"http://127.0.0.1:8080", "POST", "localhost:8080", "http://localhost:8080", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := url.Parse(test.base)
			if err != nil {
				t.Fatal(err)
			}
			s, err := web.NewSameOrigin(base)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequestWithContext(t.Context(), test.method, "/", http.NoBody)
			r.Host = test.host
			for header, value := range map[string]string{"Origin": test.origin, "Sec-Fetch-Site": test.site} {
				if value != "" {
					r.Header.Set(header, value)
				}
			}
			if err := s.Check(r); (err == nil) != test.want {
				t.Errorf("let in: %v (%v), want %v", err == nil, err, test.want)
			}
		})
	}
}
