package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"bursar/test/harness"
)

// TestPause_BesideRunningInstances pauses payouts by a command while instances run, and resumes them.
func TestPause_BesideRunningInstances(t *testing.T) {
	for name, s := range map[string]*shop{"SQLite": shopOnSQLite(t), "PostgreSQL": shopOnPostgres(t, 2)} {
		t.Run(name, func(t *testing.T) {
			s.start(t)
			s.open(t)
			seller := s.sellers[0]
			request := func(i *harness.Instance, key string) (int, string) {
				t.Helper()
				status, body, err := harness.Send("POST", i.API+"/api/payouts/request", seller.token, `{"amount":600}`, http.Header{"Idempotency-Key": {key}})
				if err != nil {
					t.Fatal(err)
				}
				return status, string(body)
			}
			command := func(want int, args ...string) string {
				t.Helper()
				c := s.any().Command(append([]string{"payouts"}, args...)...)
				out, err := c.Output()
				if c.ProcessState.ExitCode() != want {
					t.Fatalf("bursar payouts %v ends with %v: %s", args, err, out)
				}
				if failed, isExit := errors.AsType[*exec.ExitError](err); isExit {
					return string(failed.Stderr)
				}
				return string(out)
			}
			_, body := request(s.any(), "first")
			var first struct{ Data struct{ PayoutID string } }
			if err := json.Unmarshal([]byte(body), &first); err != nil || first.Data.PayoutID == "" {
				t.Fatal(body, err)
			}
			if said := command(1, "resume", "--reason", "Nothing."); !strings.Contains(said, "Payouts are not paused.") {
				t.Errorf("to resume what goes on fails with %s", said)
			}
			command(2, "pause")
			if said := command(0, "pause", "--reason", "The bank has trouble."); !strings.Contains(said, "All payouts are paused.") {
				t.Errorf("to pause says %s", said)
			}
			for _, i := range s.instances {
				if status, body := request(i, "second"); status != http.StatusConflict || !strings.Contains(body, "payouts_on_hold") {
					t.Errorf("%s answers %d: %s", i.API, status, body)
				}
				if !i.IsReady() {
					t.Errorf("%s is not ready", i.API)
				}
			}
			command(0, "resume", "--reason", "The bank is back.")
			for _, i := range s.instances {
				if status, body := request(i, "second"); status != http.StatusCreated {
					t.Errorf("%s answers %d: %s", i.API, status, body)
				}
			}
			harness.Until(t, "the payouts are completed", func() bool { return s.count(t, seller, "completed") == 2 })
			for _, i := range s.instances {
				i.Stop(t)
			}
		})
	}
}
