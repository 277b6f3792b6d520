//go:build unix

package e2e

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"bursar/test/harness"
)

// TestServe_ReaderOfLogEnds has what reads the log end, as a pager or a broken collector does. The service goes on without one.
func TestServe_ReaderOfLogEnds(t *testing.T) {
	read, write, err := os.Pipe()
	must(t, err)
	server := exec.Command(harness.Program(), "serve", "--addr", "127.0.0.1:0", "--sandbox-addr", "127.0.0.1:0", "--metrics-addr", "off", "--log-format", "json")
	server.Env = append(os.Environ(), "BURSAR_DATA_DIR="+t.TempDir())
	server.Stdout, server.Stderr = write, write
	must(t, server.Start())
	must(t, write.Close())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	url := ""
	for lines := bufio.NewScanner(read); url == "" && lines.Scan(); {
		if _, after, isIt := strings.Cut(lines.Text(), "Dashboard  "); isIt {
			url = strings.TrimSuffix(after, "/dashboard")
		}
	}
	must(t, read.Close())
	for range 5 {
		status, body, err := harness.Send(http.MethodPost, url+"/api/auth/login", "", `{"email":"nobody@example.com","password":"not-a-password"}`, nil)
		if err != nil || status != http.StatusUnauthorized {
			t.Fatalf("without a reader of its log the service answers %d: %s (%v)", status, body, err)
		}
	}
	must(t, server.Process.Signal(syscall.SIGTERM))
	if err := server.Wait(); err != nil {
		t.Errorf("the service ended with %v", err)
	}
}
