package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestStartAndIdleCost says how long the program takes to start on an empty directory,
// and what it costs while nothing happens. It asserts no figures: they are the machine's.
func TestStartAndIdleCost(t *testing.T) {
	server := exec.Command(program(), "serve", "--addr", "127.0.0.1:0", "--sandbox-addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0",
		"--data-dir", t.TempDir())
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	first, err := bufio.NewReader(stdout).ReadString('\n')
	took := time.Since(began)
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	if err != nil || !strings.Contains(first, "is ready") {
		t.Fatalf("the first line is %q (%v), want that it is ready", first, err)
	}
	t.Logf("ready after %s", took.Round(time.Millisecond))

	const rest = 3 * time.Second
	before := processorTime(server.Process.Pid)
	time.Sleep(rest)
	if memory, known := residentMemory(server.Process.Pid); known {
		t.Logf("at rest: %s resident, %s of processor time in %s", memory, processorTime(server.Process.Pid)-before, rest)
	}
}

// residentMemory is what Linux says; elsewhere it is not known.
func residentMemory(pid int) (string, bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "", false
	}
	_, rest, found := strings.Cut(string(status), "VmRSS:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line), found
}

// processorTime is what Linux says, in hundredths of a second; elsewhere it is zero.
func processorTime(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	var user, system int64
	if len(fields) < 13 {
		return 0
	}
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
