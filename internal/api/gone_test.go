package api_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"bursar/internal/api"
	"bursar/internal/auth"
	"bursar/internal/payout"
)

// slowPayouts commit a request, and answer it only once its client is gone.
type slowPayouts struct {
	api.Payouts
	committed chan struct{}
}

func (s slowPayouts) Request(ctx context.Context, r payout.Request) (payout.Payout, bool, error) {
	p, replayed, err := s.Payouts.Request(ctx, r)
	close(s.committed)
	<-ctx.Done()
	return p, replayed, err
}

// TestClientGone hangs up while a handler works, and looks at what is counted and logged.
func TestClientGone(t *testing.T) {
	for _, tt := range []struct{ name, method, path, body string }{
		{"before anything was done", "GET", "/readyz", ""},
		{"after the commit", "POST", "/api/payouts/request", `{"amount":600}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			working := make(chan struct{})
			h := openFixture(t, func(o *api.Options) {
				o.Payouts = slowPayouts{o.Payouts, working}
				if tt.method == "GET" {
					o.Ping = func(ctx context.Context) error {
						close(working)
						<-ctx.Done()
						return ctx.Err()
					}
				}
			})
			seller := h.signUp("Asha", auth.Seller)
			h.earn(seller, "s1", "9000")
			h.withBank(seller, "6789")
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.server.Listener.Addr().String())
			must(t, err)
			_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				tt.method, tt.path, seller.token, len(tt.body), tt.body)
			must(t, err)
			<-working
			must(t, conn.Close())
			h.server.Close() // waits for the handler
			metrics := h.scrape(t)
			if want := fmt.Sprintf(`bursar_http_requests_total{method=%q,route=%q,status="499"} 1`, tt.method, tt.path); !strings.Contains(metrics, want) || strings.Contains(metrics, `status="5xx"`) {
				t.Errorf("the metrics lack %s, or have 5xx:\n%s", want, metrics)
			}
			if log := h.log.String(); !strings.Contains(log, `"status":499`) || strings.Contains(log, `"level":"ERROR"`) {
				t.Errorf("the log lacks 499, or has errors: %s", log)
			}
			list, _, err := h.payouts.History(t.Context(), payout.Caller{User: seller.id}, payout.Filter{Limit: 5})
			if committed := tt.method == "POST"; err != nil || (len(list) == 1) != committed {
				t.Errorf("%d payouts stay, %v", len(list), err)
			}
		})
	}
}
