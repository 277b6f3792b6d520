//go:build unix

package e2e

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"bursar/internal/npmtest"
	"bursar/test/harness"
)

// TestExampleShop runs the example by its one command, buys something, and follows the money to the seller's own pages.
// What the command installs first is here already.
func TestExampleShop(t *testing.T) {
	built := typeScriptClient(t)
	inDir(t, built, nil, "npm", "run", "build")
	packages := npmtest.Packages(t)
	dir := filepath.Join(built, "..", "..", "examples", "shop")
	copyAll(t, filepath.Join("..", "..", "examples", "shop"), dir)
	must(t, os.RemoveAll(filepath.Join(dir, "node_modules")))
	must(t, os.Mkdir(filepath.Join(dir, "node_modules"), 0o750))
	must(t, os.Symlink(built, filepath.Join(dir, "node_modules", "bursar")))
	must(t, os.Symlink(filepath.Join(packages, "express"), filepath.Join(dir, "node_modules", "express")))

	for _, name := range []string{"clients/typescript", "examples/shop"} { // the versions that are tested are those that are installed
		for dependency, version := range packageOf(t, filepath.Join("..", "..", name)).Dependencies {
			if pinned := packageOf(t, filepath.Join("..", "..", "internal", "npmtest")).Dependencies[dependency]; !strings.HasPrefix(version, "file:") && version != pinned {
				t.Errorf("%s has %s %s, and the tests install %q", name, dependency, version, pinned)
			}
		}
	}

	shop, temporary := startShop(t, dir)
	// page returns the text of a page, and where it leads.
	page := func(method, path string) (text, location string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, shop+path, nil)
		must(t, err)
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		response, err := client.Do(request)
		must(t, err)
		defer response.Body.Close()
		var body bytes.Buffer
		_, err = body.ReadFrom(response.Body)
		must(t, err)
		return body.String(), response.Header.Get("Location")
	}
	if _, to := page("POST", "/buy/shelf"); to != "/?bought=shelf" {
		t.Fatalf("buying leads to %q", to)
	}
	if text, _ := page("GET", "/?bought=shelf"); !strings.Contains(text, "Ravi Shah earned ₹5,580.00 from Mango wood shelf") {
		t.Errorf("the shop says %s", text)
	}
	harness.Until(t, "the webhooks have come", func() bool {
		text, _ := page("GET", "/")
		return strings.Contains(text, "<code>sale.recorded</code>") && strings.Contains(text, "<code>sale.released</code>")
	})
	harness.Until(t, "the seller can withdraw", func() bool {
		text, _ := page("GET", "/sellers/ravi")
		return strings.Contains(text, "<dt>Available</dt><dd>₹5,580.00</dd>") && strings.Contains(text, "can be withdrawn to ****6780")
	})
	_, link := page("POST", "/sellers/ravi/open")
	if opened := harness.NewVisitor(t).Get(link); !strings.HasSuffix(opened.LeadsTo(), "/dashboard") {
		t.Errorf("the link leads to %q", opened.LeadsTo())
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, shop+"/bursar", strings.NewReader(`{"type":"payout.completed"}`))
	must(t, err)
	request.Header.Set("Content-Type", "application/json")
	forged, err := http.DefaultClient.Do(request)
	must(t, err)
	_ = forged.Body.Close()
	if forged.StatusCode != http.StatusBadRequest {
		t.Errorf("a forged webhook was answered %s", forged.Status)
	}
	temporary()
}

// startShop starts the example, and returns its address and what ends it and looks at what is left.
func startShop(t *testing.T, dir string) (address string, end func()) {
	t.Helper()
	temporary := t.TempDir()
	cmd := exec.Command("npm", "start", "--ignore-scripts") // without what installs packages before
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "BURSAR="+harness.Program(), "BURSAR_EARNINGS_HOLD=1s", "PORT=0", "TMPDIR="+temporary, "npm_config_update_notifier=false")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said lockedBuffer
	cmd.Stdout, cmd.Stderr = &said, &said
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // npm says that it was interrupted
	}()
	stop := func(with syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, with) }
	t.Cleanup(func() { stop(syscall.SIGKILL) })
	at := regexp.MustCompile(`The shop is at (http://127\.0\.0\.1:\d+)`)
	harness.Until(t, "the shop is open", func() bool {
		select {
		case <-ended:
			t.Fatalf("the example ended: %s", said.String())
		default:
		}
		return at.MatchString(said.String())
	})
	return at.FindStringSubmatch(said.String())[1], func() {
		stop(syscall.SIGINT)
		<-ended
		left, err := filepath.Glob(filepath.Join(temporary, "bursar-shop-*"))
		if err != nil || len(left) > 0 {
			t.Errorf("the example leaves %v, %v: %s", left, err, said.String())
		}
	}
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
