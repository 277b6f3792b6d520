package harness

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

// FreeAddress returns an address of this machine with a port that nobody listens on.
func FreeAddress() (string, error) {
	port, err := porttest.Free()
	return porttest.Address(port), err
}

// timeout is how long one request may take.
const timeout = 10 * time.Second

// Send makes a request and returns the status and the whole body of the answer. The token is a bearer token; "" sends none.
func Send(method, url, token, body string, header http.Header) (int, []byte, error) {
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

// ReadData decodes the field data of an answer.
func ReadData(answer []byte, data any) error {
	envelope := struct{ Data any }{data}
	return json.Unmarshal(answer, &envelope)
}

// Until waits until a condition is true. It fails the test after a minute; what completes the message "waited in vain until".
func Until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}

// Instance is a process of the program, such as "bursar serve" or a sandbox, that a test starts, calls, and stops or kills.
type Instance struct {
	// API is the URL that the instance listens at.
	API string
	// Environ is the environment of the process and of [Instance.Command].
	Environ []string
	// Program is the command and its arguments.
	Program []string
	// Health is the path that answers 200 once the instance is ready.
	Health string
	// Through is another program that runs ours; "" for none.
	Through string
	// Dir holds the files stdout and stderr, to which the process writes.
	Dir     string
	process *exec.Cmd
}

// NewInstance prepares an instance on a free address, with settings as NAME=value. Settings of Bursar in the environment
// of the tests do not reach it. The process is killed when the test ends.
func NewInstance(t *testing.T, settings ...string) *Instance {
	t.Helper()
	address, err := FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	i := &Instance{API: "http://" + address, Program: []string{"serve"}, Health: "/readyz", Dir: t.TempDir()}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "BURSAR_") && !strings.HasPrefix(variable, "PORT=") {
			i.Environ = append(i.Environ, variable)
		}
	}
	// The sellers of these tests change their bank accounts, and ask for payouts at once.
	i.Environ = append(append(i.Environ, "BURSAR_ADDR="+address, "BURSAR_ACCOUNT_COOLDOWN=0s"), settings...)
	t.Cleanup(func() {
		if i.process != nil {
			_ = i.process.Process.Kill()
			_ = i.process.Wait()
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", i.API, i.Output(t, "stderr"))
		}
	})
	return i
}

// NewDefaultInstance prepares an instance with a data directory and a gateway sandbox of its own, and without metrics. The
// given settings override these.
func NewDefaultInstance(t *testing.T, settings ...string) *Instance {
	t.Helper()
	return NewInstance(t, append([]string{"BURSAR_DATA_DIR=" + t.TempDir(), "BURSAR_METRICS_ADDR=off", "BURSAR_SANDBOX_ADDR=127.0.0.1:0"}, settings...)...)
}

// Command prepares another command of the program on the same data.
func (i *Instance) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(Program(), args...)
	cmd.Env = i.Environ
	return cmd
}

// Begin starts the instance, and does not wait until it is ready.
func (i *Instance) Begin(t *testing.T) {
	t.Helper()
	i.process = i.Command(i.Program...)
	if i.Through != "" {
		i.process = exec.Command(i.Through, i.process.Args...)
		i.process.Env = i.Environ
	}
	stdout, stderr := i.file(t, "stdout"), i.file(t, "stderr")
	defer stdout.Close()
	defer stderr.Close()
	i.process.Stdout, i.process.Stderr = stdout, stderr
	if err := i.process.Start(); err != nil {
		t.Fatal(err)
	}
}

// file opens a file to append to the output of an earlier run.
func (i *Instance) file(t *testing.T, name string) *os.File {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(i.Dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Output returns all that the instance has written to "stdout" or "stderr", in every run.
func (i *Instance) Output(t *testing.T, where string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(i.Dir, where))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// DataDir returns the data directory.
func (i *Instance) DataDir() string { return i.Setting("BURSAR_DATA_DIR") }

// Setting returns the value of a setting: the last one, because that one counts.
func (i *Instance) Setting(name string) string {
	last := ""
	for _, setting := range i.Environ {
		if value, found := strings.CutPrefix(setting, name+"="); found {
			last = value
		}
	}
	return last
}

// IsReady reports whether the instance answers that it is ready.
func (i *Instance) IsReady() bool {
	status, _, err := Send("GET", i.API+i.Health, "", "", nil)
	return err == nil && status == http.StatusOK
}

// Start starts the instance and waits until it is ready.
func (i *Instance) Start(t *testing.T) {
	t.Helper()
	i.Begin(t)
	Until(t, i.API+" is ready", i.IsReady)
}

// Kill kills the process, which has no chance to clean up.
func (i *Instance) Kill(t *testing.T) {
	t.Helper()
	if err := i.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = i.process.Wait() // it was killed, and says so
	i.process = nil
	if i.Through != "" { // ours ends a moment after the program that runs it
		Until(t, i.API+" has ended", func() bool {
			_, _, err := Send("GET", i.API+i.Health, "", "", nil)
			return err != nil
		})
	}
}

// Stop asks the instance to stop, as an operator does, and waits until it has stopped.
func (i *Instance) Stop(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" { // has no signal to ask with
		i.Kill(t)
		return
	}
	if err := i.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := i.process.Wait(); err != nil {
		t.Errorf("%s did not stop cleanly: %v", i.API, err)
	}
	i.process = nil
}

// Call makes a call that must succeed, and decodes the data of the answer.
func (i *Instance) Call(t *testing.T, method, path, token, body string, data any) {
	t.Helper()
	status, answer, err := Send(method, i.API+path, token, body, nil)
	if err != nil {
		t.Fatal(err)
	}
	if status >= 300 {
		t.Fatalf("%s %s was answered with %d: %s", method, path, status, answer)
	}
	if err := ReadData(answer, data); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
}
