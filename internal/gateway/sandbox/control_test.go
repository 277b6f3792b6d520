package sandbox_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestControl_AnswersLocalCallersOnly(t *testing.T) {
	w := open(t, nil)
	const (
		fetch  = "Sec-Fetch-Site"
		origin = "Origin"
	)
	for _, tt := range []struct {
		host, header, value string
		want                int
	}{
		{"127.0.0.1:8081", "", "", http.StatusOK},
		{"127.9.9.9", "", "", http.StatusOK},
		{"localhost:8081", "", "", http.StatusOK},
		{"[::1]:8081", "", "", http.StatusOK},
		{"[::1]", "", "", http.StatusOK},
		{"sandbox.example", "", "", http.StatusForbidden},
		{"rebound.example:8081", fetch, "same-origin", http.StatusForbidden},
		{"127.0.0.1.example:8081", "", "", http.StatusForbidden},
		{"10.0.0.7:8081", "", "", http.StatusForbidden},
		{"0.0.0.0:8081", "", "", http.StatusForbidden},
		{"localhost:8081", fetch, "none", http.StatusOK},
		{"localhost:8081", fetch, "same-origin", http.StatusOK},
		{"localhost:8081", fetch, "same-site", http.StatusForbidden},
		{"localhost:8081", fetch, "cross-site", http.StatusForbidden},
		{"localhost:8081", origin, "http://localhost:8081", http.StatusOK},
		{"localhost:8081", origin, "http://localhost:3000", http.StatusForbidden},
		{"localhost:8081", origin, "https://example.com", http.StatusForbidden},
		{"localhost:8081", origin, "null", http.StatusForbidden},
	} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			r := httptest.NewRequest(method, "/control/faults", http.NoBody)
			r.Host = tt.host
			if tt.header != "" {
				r.Header.Set(tt.header, tt.value)
			}
			answer := httptest.NewRecorder()
			w.sandbox.ServeHTTP(answer, r)
			if answer.Code != tt.want {
				t.Errorf("%s %+v: %d", method, tt, answer.Code)
			}
			if said := answer.Body.String(); answer.Code == http.StatusForbidden && !strings.Contains(said, `"description":"The control API`) {
				t.Errorf("%+v: %s", tt, said)
			}
		}
	}
}
