//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"bursar/internal/money"
	"bursar/internal/pgtest"
	"bursar/test/harness"
)

// The connection to PostgreSQL is cut in the middle of each kind of write. What was not being committed yet is done
// again, and the caller notices nothing. Where a COMMIT was on its way, the service can't know whether it arrived, and
// says so; the same call again is answered with what was done, or does it. Either way it is done once.
func TestLostAnswer_Repeated_DoneOnce(t *testing.T) {
	calmTime(t)
	w := newWire(t, pgtest.New(t))
	f := newFleet(t, w.url, 1, "BURSAR_CANCEL_WINDOW=10h")
	s := f.newSellers(1, 100_000_00)[0]
	available := money.Amount(100_000_00)

	for _, place := range []struct {
		name     string
		isCommit bool
		through  bool
		wantCode string // of the first answer, if that is a failure
	}{
		{"a statement is lost", false, false, ""},
		{"the COMMIT is lost", true, false, "outcome_unknown"},
		{"the answer to the COMMIT is lost", true, true, "outcome_unknown"},
	} {
		key := fmt.Sprintf("key-%t-%t", place.isCommit, place.through)
		var payout struct{ PayoutID string }
		// twice makes a call on a wire that breaks in its transaction, and then once more.
		twice := func(t *testing.T, c call, mark, statement string, change money.Amount, data any) {
			t.Helper()
			broken := &cut{mark: mark, statement: statement, through: place.through, done: make(chan struct{})}
			if place.isCommit {
				broken.statement = "COMMIT"
			}
			w.arm(broken)
			first := f.once(c)
			select {
			case <-broken.done:
			default:
				t.Fatal("the wire did not break")
			}
			if first.Code != place.wantCode || (first.status == http.StatusServiceUnavailable) != (first.retryAfter != "") {
				t.Errorf("the first answer is %d %s, Retry-After %q; want %q", first.status, first.Code, first.retryAfter, place.wantCode)
			}
			again := f.once(c)
			if again.status >= http.StatusMultipleChoices {
				t.Fatalf("the repeat was answered with %d %s: %s", again.status, again.Code, again.Error)
			}
			if err := again.read(data); err != nil {
				t.Fatal(err)
			}
			available += change
			harness.Until(f.t, "the balance is right", func() bool { return rupees(t, f.balance(s).AvailableBalance) == available })
		}
		t.Run(place.name+"/payout", func(t *testing.T) {
			c := call{method: "POST", path: "/api/payouts/request", token: s.token, key: key, body: `{"amount":700}`}
			twice(t, c, key, "SELECT K.USER_ID", -700_00, &payout)
		})
		t.Run(place.name+"/cancel", func(t *testing.T) {
			c := call{method: "POST", path: "/api/payouts/" + payout.PayoutID + "/cancel", token: s.token, key: key + "-cancel"}
			twice(t, c, c.key, "SELECT K.USER_ID", +700_00, nil)
		})
		t.Run(place.name+"/sale", func(t *testing.T) {
			twice(t, f.sale(key, s, 900_00), key, "INSERT INTO ENTRIES", +900_00, nil)
		})
		t.Run(place.name+"/refund", func(t *testing.T) {
			c := call{method: "POST", path: "/api/marketplace/sales/" + key + "/refund", token: f.serviceKey, body: `{"refundId":"r-` + key + `","amount":100}`}
			twice(t, c, "r-"+key, "UPDATE JOURNALS", -100_00, nil)
		})
	}
	t.Run("all connections are reset", func(t *testing.T) {
		for i := range 3 {
			id := fmt.Sprintf("after-reset-%d", i)
			f.must(f.sale(id+"-before", s, 100_00), nil) // who is in use now is not looked at before it is used again
			w.reset()
			f.must(f.sale(id, s, 100_00), nil)
			w.reset()
			f.must(call{method: "POST", path: "/api/payouts/request", token: s.token, key: id, body: `{"amount":500}`}, nil)
			w.reset()
			f.balance(s)
		}
	})
	payouts := 0
	f.sql(`SELECT COUNT(*) FROM payouts`, func(r row) error { return r.Scan(&payouts) })
	if payouts != 6 {
		t.Errorf("%d payouts are in the ledger, want 6", payouts)
	}
	f.command("audit")
}
