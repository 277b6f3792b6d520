package sandbox_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
)

// Under any fault, the client's answer is never more certain than what happened, and a repeat under the same key pays
// once.
func TestFaults_CreatePayout_RepeatPaysOnce(t *testing.T) {
	for name, test := range map[string]struct {
		fault       string
		wantOutcome gateway.SubmitOutcome
		wantMade    bool
	}{
		"500 before":      {`{"status":500}`, gateway.Unclear, false},
		"500 after":       {`{"status":500,"when":"after"}`, gateway.Unclear, true},
		"502 in HTML":     {`{"status":502,"html":true,"when":"after"}`, gateway.Unclear, true},
		"400 in HTML":     {`{"status":400,"html":true}`, gateway.Unclear, false},
		"200 in HTML":     {`{"status":200,"html":true,"when":"after"}`, gateway.Unclear, true},
		"409":             {`{"status":409}`, gateway.Unclear, false},
		"409 after":       {`{"status":409,"when":"after"}`, gateway.Unclear, true},
		"429":             {`{"status":429,"retry_after":3}`, gateway.NotTaken, false},
		"403 in HTML":     {`{"status":403,"html":true}`, gateway.NotTaken, false},
		"cut before":      {`{"cut":true}`, gateway.Unclear, false},
		"cut after":       {`{"cut":true,"when":"after"}`, gateway.Unclear, true},
		"truncated":       {`{"truncate":true}`, gateway.Unclear, true},
		"late before":     {`{"delay":"2s"}`, gateway.Unclear, false},
		"late after":      {`{"delay":"2s","when":"after"}`, gateway.Unclear, true},
		"a little late":   {`{"delay":"1ms"}`, gateway.Accepted, true},
		"late, all right": {`{"delay":"1ms","when":"after"}`, gateway.Accepted, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, nil)
			reference, body := w.order("4321", 60050)
			fault := strings.Replace(test.fault, "{", `{"method":"POST","path":"/v1/payouts",`, 1)
			w.control("POST", "/control/faults", fault, nil)

			impatient := w.clientWithTimeout(500 * time.Millisecond)
			got := impatient.Submit(t.Context(), reference, body)
			if got.Outcome != test.wantOutcome {
				t.Errorf("outcome %d, %s", got.Outcome, got.ReasonCode)
			}
			if strings.Contains(test.fault, "retry_after") && got.RetryAfter != 3*time.Second {
				t.Errorf("wait %s", got.RetryAfter)
			}
			_, err := w.client.Find(t.Context(), reference)
			if made := !errors.Is(err, gateway.ErrUnknownTransfer); made != test.wantMade {
				t.Errorf("made: %t, %v", made, err)
			}
			again := w.submit(reference, body)
			w.reaches(again.GatewayID, gateway.Paid)
			if moves := w.moves(reference); len(moves) != 1 || moves[0].Count != 1 || moves[0].Net != 60050 {
				t.Errorf("moved %+v", moves)
			}
		})
	}
}

func TestFaults_StrikeGivenNumberOfTimes(t *testing.T) {
	w := open(t, nil)
	begun := w.pay("0004", 60050)
	w.control("POST", "/control/faults", `{"path":"/v1/payouts/*","status":503,"times":2}`, nil)
	w.control("POST", "/control/faults", `{"method":"DELETE","status":500}`, nil)
	for i, wantFailure := range []bool{true, true, false} {
		_, err := w.client.Fetch(t.Context(), begun.GatewayID)
		if (err != nil) != wantFailure {
			t.Errorf("call %d: %v", i, err)
		}
	}
	var left sandbox.Faults
	w.control("GET", "/control/faults", "", &left)
	if len(left.Faults) != 1 || left.Faults[0].Method != http.MethodDelete {
		t.Errorf("left: %+v", left.Faults)
	}
	w.control("DELETE", "/control/faults", "", &left)
	if len(left.Faults) != 0 {
		t.Errorf("left: %+v", left.Faults)
	}
}

func TestFaultsThatMakeNoSense(t *testing.T) {
	w := open(t, nil)
	for _, body := range []string{
		`{}`, `{"status":99}`, `{"status":500,"cut":true}`, `{"when":"never","cut":true}`, `{"delay":"soon"}`, `{"delay":"-1s"}`,
		`{"path":"[","cut":true}`, `not JSON`, `{"status":"500"}`,
	} {
		if status := w.call("POST", "/control/faults", body, nil, nil); status != http.StatusBadRequest {
			t.Errorf("%s: %d", body, status)
		}
	}
}

func (w *fixture) clientWithTimeout(d time.Duration) *razorpayx.Client {
	w.t.Helper()
	o := options()
	c, err := razorpayx.New(razorpayx.Options{
		BaseURL: w.url + "/v1", KeyID: o.KeyID, KeySecret: o.KeySecret, AccountNumber: ownAccount,
		Currency: o.Currency, Now: time.Now, Timeout: d,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}
