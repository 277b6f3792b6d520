package e2e

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"bursar/internal/porttest"
)

func freeAddress() (string, error) {
	port, err := porttest.Free()
	return porttest.Address(port), err
}

// timeout is how long one request may take.
const timeout = 10 * time.Second

// send makes a request and reads the whole answer.
func send(method, url, token, body string, header http.Header) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	maps.Copy(request.Header, header)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// readData reads the data of an answer.
func readData(answer []byte, data any) error {
	envelope := struct{ Data any }{data}
	return json.Unmarshal(answer, &envelope)
}

// until waits until something is so.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}

// instance is a "bursar serve", or a sandbox, that is started, asked, and ended in whatever way.
type instance struct {
	api     string
	environ []string
	// program is the command and its arguments, health where it says that it is ready.
	program []string
	health  string
	// through is a program that runs ours, if one does.
	through string
	dir     string // of what it says
	process *exec.Cmd
}

// newInstance prepares an instance on a free address, with settings as NAME=value. What else is set on
// this machine has no part in it.
func newInstance(t *testing.T, settings ...string) *instance {
	t.Helper()
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{api: "http://" + address, program: []string{"serve"}, health: "/readyz", dir: t.TempDir()}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "BURSAR_") && !strings.HasPrefix(variable, "PORT=") {
			i.environ = append(i.environ, variable)
		}
	}
	// The sellers of these tests change their bank accounts, and ask for payouts at once.
	i.environ = append(append(i.environ, "BURSAR_ADDR="+address, "BURSAR_ACCOUNT_COOLDOWN=0s"), settings...)
	t.Cleanup(func() {
		if i.process != nil {
			_ = i.process.Process.Kill()
			_ = i.process.Wait()
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", i.api, i.said(t, "stderr"))
		}
	})
	return i
}

// command is another command on the same data.
func (i *instance) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program(), args...)
	cmd.Env = i.environ
	return cmd
}

// begin starts the instance, and does not wait for it.
func (i *instance) begin(t *testing.T) {
	t.Helper()
	i.process = i.command(i.program...)
	if i.through != "" {
		i.process = exec.Command(i.through, i.process.Args...)
		i.process.Env = i.environ
	}
	stdout, stderr := i.file(t, "stdout"), i.file(t, "stderr")
	defer stdout.Close()
	defer stderr.Close()
	i.process.Stdout, i.process.Stderr = stdout, stderr
	if err := i.process.Start(); err != nil {
		t.Fatal(err)
	}
}

// file is opened to add to what an earlier run said.
func (i *instance) file(t *testing.T, name string) *os.File {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(i.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// said is all that the instance has written.
func (i *instance) said(t *testing.T, where string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(i.dir, where))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func (i *instance) dataDir() string { return i.setting("BURSAR_DATA_DIR") }

// setting is the last value that is set.
func (i *instance) setting(name string) string {
	last := ""
	for _, setting := range i.environ {
		if value, found := strings.CutPrefix(setting, name+"="); found {
			last = value
		}
	}
	return last
}

func (i *instance) isReady() bool {
	status, _, err := send("GET", i.api+i.health, "", "", nil)
	return err == nil && status == http.StatusOK
}

// start starts the instance and waits until it is ready.
func (i *instance) start(t *testing.T) {
	t.Helper()
	i.begin(t)
	until(t, i.api+" is ready", i.isReady)
}

// kill ends the instance without a word.
func (i *instance) kill(t *testing.T) {
	t.Helper()
	if err := i.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = i.process.Wait() // it was killed, and says so
	i.process = nil
	if i.through != "" { // ours ends a moment after the program that runs it
		until(t, i.api+" has ended", func() bool {
			_, _, err := send("GET", i.api+i.health, "", "", nil)
			return err != nil
		})
	}
}

// stop asks the instance to stop, as an operator does, and waits until it has.
func (i *instance) stop(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" { // has no signal to ask with
		i.kill(t)
		return
	}
	if err := i.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := i.process.Wait(); err != nil {
		t.Errorf("%s did not stop cleanly: %v", i.api, err)
	}
	i.process = nil
}

// call makes a call that must succeed.
func (i *instance) call(t *testing.T, method, path, token, body string, data any) {
	t.Helper()
	status, answer, err := send(method, i.api+path, token, body, nil)
	if err != nil {
		t.Fatal(err)
	}
	if status >= 300 {
		t.Fatalf("%s %s was answered with %d: %s", method, path, status, answer)
	}
	if err := readData(answer, data); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
