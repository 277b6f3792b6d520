package razorpayx_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
)

// script is a gateway that answers whatever a fuzz target tells it to.
type script struct {
	mu     sync.Mutex
	status int
	body   []byte
}

func (s *script) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.WriteHeader(s.status)
	_, _ = w.Write(s.body)
}

func (s *script) say(status int, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.body = status, body
}

// FuzzAnswers has the gateway answer anything at all to every question. Only a success with a payout in it is
// accepted, only a readable error is a refusal, only a list says that there is none; all else is unclear or an error.
func FuzzAnswers(f *testing.F) {
	s := &script{}
	server := httptest.NewServer(s)
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 || status == http.StatusNoContent || status == http.StatusNotModified {
			t.Skip("no status that goes with a body")
		}
		s.say(status, body)
		c := newClient(t, server.URL+"/v1", nil)
		success := status < 300

		sent := c.Submit(t.Context(), reference, "{}")
		switch sent.Outcome {
		case gateway.Accepted:
			if !success || !strings.HasPrefix(sent.Report.GatewayID, "pout_") || sent.Report.RawStatus == "" {
				t.Errorf("%d is accepted: %+v", status, sent)
			}
		case gateway.Refused:
			if !slices.Contains([]int{400, 404, 422}, status) || !strings.Contains(string(body), "{") || sent.Reason == "" || sent.ReasonCode == "" {
				t.Errorf("%d is a refusal: %+v", status, sent)
			}
		case gateway.NotTaken, gateway.Unclear:
			if sent.ReasonCode == "" || sent.Reason == "" || sent.Report.GatewayID != "" {
				t.Errorf("%d tells no reason: %+v", status, sent)
			}
		}
		if strings.Contains(sent.Reason, "\x00") {
			t.Errorf("reason %q", sent.Reason)
		}

		_, err := c.Fetch(t.Context(), "pout_1")
		if errors.Is(err, gateway.ErrUnknownTransfer) && status != 400 && status != 404 {
			t.Errorf("%d says that there is none", status)
		}
		found, err := c.Find(t.Context(), reference)
		switch {
		case err == nil && (!success || found.Reference != reference):
			t.Errorf("%d finds %+v", status, found)
		case errors.Is(err, gateway.ErrUnknownTransfer) && (!success || !strings.Contains(strings.ToLower(string(body)), "items")): // a list need not say that it is one
			t.Errorf("%d says that there is none", status)
		}
		listed, err := c.Transfers(t.Context(), time.Unix(0, 0), "")
		if err == nil && !success {
			t.Errorf("%d lists %d", status, len(listed.Transfers))
		}
		for _, transfer := range listed.Transfers {
			if !strings.HasPrefix(transfer.GatewayID, "pout_") || transfer.RawStatus == "" {
				t.Errorf("listed %+v", transfer)
			}
		}
		if v, err := c.Verification(t.Context(), gateway.VerificationRequest{}, "fav_1"); err == nil && !success {
			t.Errorf("%d is a verification: %+v", status, v)
		} else if f := fault.From(err); f != nil {
			t.Errorf("a fault of the caller's: %v", f)
		}
	})
}

// FuzzNotes reads notes of any shape, which may never make an answer unreadable, and writes what it read.
func FuzzNotes(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		var notes razorpayx.Notes
		if err := notes.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		written, err := notes.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var again razorpayx.Notes
		if err := again.UnmarshalJSON(written); err != nil || len(again) != len(notes) {
			t.Fatalf("%q is written as %s and read as %q: %v", notes, written, again, err)
		}
	})
}
