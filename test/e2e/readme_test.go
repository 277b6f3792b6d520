//go:build unix

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bursar/test/harness"
)

// TestReadmeTour pastes the README's tour into a shell, twice.
func TestReadmeTour(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("the tour needs curl")
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tour, _ := strings.Cut(string(readme), "## Five minutes")
	tour, _, _ = strings.Cut(tour, "\n## ")
	var script strings.Builder
	for _, after := range strings.Split(tour, "```sh\n")[1:] {
		step, _, _ := strings.Cut(after, "```")
		script.WriteString(step)
	}
	address, err := harness.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	service := harness.NewInstance(t, "BURSAR_DATA_DIR="+filepath.Join(t.TempDir(), "data"), "BURSAR_METRICS_ADDR=off", "BURSAR_SANDBOX_ADDR="+address,
		"BURSAR_CANCEL_WINDOW=1s", "BURSAR_SANDBOX_SETTLE_AFTER=100ms")
	service.Start(t)
	pasted := strings.NewReplacer("go run ./cmd/bursar", harness.Program(), "localhost:8080", strings.TrimPrefix(service.API, "http://"),
		"$(date +%s)", "$PASTED").Replace(script.String())
	if !strings.Contains(pasted, "RUN=$PASTED\n") || !strings.Contains(pasted, harness.Program()+" audit") {
		t.Fatalf("the README's tour does not begin and end as it did:\n%s", pasted)
	}
	for i, counted := range []string{"1 seller, 1 sale, 1 payout,", "2 sellers, 2 sales, 2 payouts,"} {
		n := strconv.Itoa(i + 1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the tour waits for what may never come
		defer cancel()
		shell := exec.CommandContext(ctx, "sh", "-eu")
		shell.Env = append(service.Environ, "PASTED="+n)
		shell.Stdin = strings.NewReader(pasted)
		out, err := shell.CombinedOutput()
		said := string(out)
		if err != nil || !strings.Contains(said, "The ledger is balanced: "+counted) || !strings.Contains(said, `"code":"insufficient_balance"`) {
			t.Fatalf("pasted for the time %s, the tour ended with %v:\n%s", n, err, said)
		}
	}
	service.Stop(t)
}
