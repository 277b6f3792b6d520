//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"bursar/test/harness"
)

// BenchmarkIdle starts the program on an empty database, as its users do, and reports how long that takes and what it
// costs while nothing happens: resident memory, and processor time per second. An iteration is one start and three
// seconds of rest; the figures are those of the last one.
func BenchmarkIdle(b *testing.B) {
	onEachEngine(b, func(b *testing.B, on engine) {
		for range b.N {
			startAndRest(b, on.database(b))
		}
	})
}

func startAndRest(b *testing.B, database string) {
	b.Helper()
	server := exec.Command(harness.Program(), "serve", "--addr", "127.0.0.1:0", "--sandbox-addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0",
		"--data-dir", b.TempDir())
	server.Env = append(os.Environ(), "BURSAR_DATABASE_URL="+database)
	stdout, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	var stderr bytes.Buffer
	server.Stderr = &stderr
	began := time.Now()
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	first, err := bufio.NewReader(stdout).ReadString('\n')
	took := time.Since(began)
	if err != nil || !strings.Contains(first, "is ready") {
		_ = server.Wait()
		b.Fatalf("the first line is %q (%v), want that it is ready:\n%s", first, err, &stderr)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	const rest = 3 * time.Second
	before := processorTime(b, server.Process.Pid)
	time.Sleep(rest)
	used := processorTime(b, server.Process.Pid) - before
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took.Milliseconds()), "start-ms")
	b.ReportMetric(float64(residentMemory(b, server.Process.Pid))/1000, "rss-MB")
	b.ReportMetric(float64(used.Milliseconds())/rest.Seconds(), "cpu-ms/s")
}

// residentMemory returns kilobytes.
func residentMemory(b *testing.B, pid int) int64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kibibytes int64
	if _, err := fmt.Sscan(rest, &kibibytes); err != nil {
		b.Fatalf("read VmRSS: %v", err)
	}
	return kibibytes * 1024 / 1000
}

// processorTime is in hundredths of a second, as the kernel counts.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		b.Fatalf("the kernel says %q", stat)
	}
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		b.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
