package razorpayx_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/gateway/gatewaytest"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/money"
)

// TestGateway has the client pass the suite against the sandbox as it is, and as a poorer gateway.
func TestGateway(t *testing.T) {
	for _, profile := range []sandbox.Profile{sandbox.Full, sandbox.Limited} {
		t.Run(string(profile), func(t *testing.T) {
			gatewaytest.Run(t, func(t *testing.T) (gatewaytest.Sandbox, time.Time) {
				t.Helper()
				b := openBench(t, profile)
				return b, b.now()
			})
		})
	}
}

// bench is the sandbox with a clock that is set by hand.
type bench struct {
	*testing.T
	box      *sandbox.Sandbox
	at       string
	profile  sandbox.Profile
	client   *razorpayx.Client
	currency money.Currency

	began    time.Time
	passed   atomic.Int64
	accounts atomic.Int64
	once     sync.Mutex
}

func openBench(t *testing.T, profile sandbox.Profile) *bench {
	t.Helper()
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, profile: profile, currency: inr, began: time.Now().Truncate(time.Second)}
	b.box, err = sandbox.New(sandbox.Options{
		Path: filepath.Join(t.TempDir(), "sandbox.db"), KeyID: "rzp_test_key", KeySecret: keySecret, AccountNumber: ownAccount,
		SettleAfter: time.Second, Currency: inr, Now: b.now, Logger: slog.New(slog.DiscardHandler), Profile: profile,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(b.box)
	b.at = server.URL
	t.Cleanup(func() {
		server.Close()
		if err := b.box.Close(); err != nil {
			t.Error(err)
		}
	})
	b.client = b.clientOf(server.URL)
	return b
}

func (b *bench) clientOf(address string) *razorpayx.Client {
	b.Helper()
	capabilities := b.profile.Capabilities(b.currency)
	c, err := razorpayx.New(razorpayx.Options{
		Capabilities: &capabilities, BaseURL: address + "/v1", KeyID: "rzp_test_key", KeySecret: keySecret, AccountNumber: ownAccount,
		Currency: b.currency, Timeout: 5 * time.Second, Now: b.now,
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func (b *bench) now() time.Time { return b.began.Add(time.Duration(b.passed.Load())) }

func (b *bench) Gateway() gateway.Gateway { return b.client }

func (b *bench) Unreachable() gateway.Gateway {
	closed := httptest.NewServer(nil)
	closed.Close()
	return b.clientOf(closed.URL)
}

func (b *bench) Account(s gatewaytest.Story) gateway.Destination {
	ending := map[gatewaytest.Story]string{
		gatewaytest.Pays: "4321", gatewaytest.Fails: "0002", gatewaytest.Returns: "0003", gatewaytest.Stays: "0004", gatewaytest.Invalid: "0001",
	}[s]
	return gateway.Destination{Holder: "Asha Rao", IFSC: "HDFC0000053", AccountNumber: fmt.Sprintf("50%08d%s", b.accounts.Add(1), ending)}
}

func (b *bench) Cause(t gatewaytest.Trouble) {
	b.control(http.MethodPost, "/control/faults", map[gatewaytest.Trouble]sandbox.Fault{
		gatewaytest.AnswerLost:  {Method: "POST", Path: "/v1/payouts", When: "after", Cut: true},
		gatewaytest.ServerError: {Method: "POST", Path: "/v1/payouts", Status: 503},
		gatewaytest.Garbage:     {Method: "POST", Path: "/v1/payouts", When: "after", Status: 200, HTML: true},
		gatewaytest.Throttled:   {Method: "POST", Path: "/v1/payouts", Status: 429, RetryAfter: 7},
	}[t], nil)
}

func (b *bench) Later(d time.Duration) {
	b.Helper()
	b.once.Lock()
	defer b.once.Unlock()
	b.passed.Add(int64(d))
	for range 4 { // each step begins the next one
		if err := b.box.TakeSteps(b.Context()); err != nil {
			b.Error(err)
		}
	}
}

func (b *bench) Fund(covered bool) {
	amount := int64(0)
	if covered {
		amount = 1_000_000_000_00
	}
	b.control(http.MethodPut, "/control/balance", sandbox.Balance{Amount: &amount}, nil)
}

func (b *bench) Paid(reference string) (paid, back int) {
	var moves []sandbox.Move
	b.control(http.MethodGet, "/control/moves?reference_id="+url.QueryEscape(reference), nil, &moves)
	for _, m := range moves {
		paid += m.Count
		if m.Credit > 0 {
			back++
		}
	}
	return paid, back
}

func (b *bench) control(method, path string, in, out any) {
	b.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		b.Fatal(err)
	}
	req, err := http.NewRequestWithContext(b.Context(), method, b.at+path, bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if out != nil {
		err = json.NewDecoder(res.Body).Decode(out)
	}
	if err != nil || res.StatusCode != http.StatusOK {
		b.Fatalf("%s %s: %d, %v", method, path, res.StatusCode, err)
	}
}
