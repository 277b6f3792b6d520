package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bursar/test/harness"
)

// Trading fills a small disk, which then gets more room; then the gateway's disk is filled and freed.
func TestDisk_Full_StopsOnlyWrites(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	t.Parallel()
	database, gateway := mountSmall(t, "size=5m"), mountSmall(t, "size=32m")
	f := prepareFleet(t, "sqlite:"+filepath.Join(database, "bursar.db"), 1, "BURSAR_CANCEL_WINDOW=200ms")
	f.gateway.Program[2] = filepath.Join(gateway, "sandbox.db")
	f.start()
	l := newLoad(f, 8)
	l.begin()
	l.endure(func() {}, func() { remount(t, database, "size=256m") }, "disk is full")

	fill(t, filepath.Join(gateway, "filler"))
	time.Sleep(time.Second)
	if err := os.Remove(filepath.Join(gateway, "filler")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	l.finish()
}

// The disk refuses what the service writes, and then takes it again. What could not be made durable may be found by the
// next start, and is answered as what may have been done.
func TestDisk_Fails_StopsOnlyWrites(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	_, _, long := crashPlan(t)
	for mode, says := range map[string]string{diskFull: "disk is full", diskReadOnly: "takes no writes", diskUnsynced: "takes no writes"} {
		t.Run(mode, func(t *testing.T) {
			if mode != diskReadOnly && !long {
				t.Skip("`make crash` runs it; another test fills a disk")
			}
			besides(t, long)
			f, set := newFleetOnABadDisk(t)
			service := f.instances[0]
			l := newLoad(f, 8)
			l.begin()
			l.endure(func() { set(mode) }, func() { set(diskWell) }, says)
			set(mode) // and now it does not come back before the service has ended
			time.Sleep(300 * time.Millisecond)
			service.Kill(t)
			set(diskWell)
			service.Start(t)
			l.finish()
		})
	}
}

// newFleetOnABadDisk has one instance, and a way to say how its disk is.
func newFleetOnABadDisk(t *testing.T) (f *fleet, set func(mode string)) {
	t.Helper()
	control := filepath.Join(t.TempDir(), "disk")
	f = prepareFleet(t, "sqlite:"+filepath.Join(t.TempDir(), "bursar.db"), 1, "BURSAR_CANCEL_WINDOW=200ms")
	onDisk(f.instances[0], control)
	f.start()
	return f, func(mode string) {
		t.Helper()
		if err := os.WriteFile(control, []byte(mode), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Payouts are requested while the disk can't make writes durable, and the service is killed. The next start finds what
// the first one wrote, so the answer has to say that the outcome is unknown.
func TestWrite_NotDurable_OutcomeUnknown(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	t.Parallel()
	f, set := newFleetOnABadDisk(t)
	s := f.newSellers(1, firstEarnings)[0]
	const tries = 5
	found := 0
	for range tries {
		set(diskUnsynced)
		a, err := f.send(f.instances[0], call{method: "POST", path: "/api/payouts/request", token: s.token, body: `{"amount":600}`})
		f.instances[0].Kill(t)
		set(diskWell)
		f.instances[0].Start(t)
		if err != nil || a.status != http.StatusServiceUnavailable || a.Code != "outcome_unknown" {
			t.Errorf("answered with %d %s (%v), want that it is not known", a.status, a.Code, err)
		}
		f.sql(`SELECT COUNT(*) FROM payouts`, func(r row) error { return r.Scan(&found) })
		if found > 0 {
			break
		}
	}
	if found != 1 {
		t.Errorf("%d payouts are found, want that of one of %d requests", found, tries) // another write may come in its place
	}
	f.command("audit")
}

// endure has the service meet a disk that fails while all trade, and sees that it says so and does what it
// can, and that it goes on by itself when the disk is well.
func (l *load) endure(fail, heal func(), says string) {
	l.t.Helper()
	service := l.instances[0]
	time.Sleep(time.Second)
	fail()
	probe := l.sale("probe", l.sellers[0], 1)
	harness.Until(l.t, "a write is refused", func() bool {
		a, err := l.send(service, probe)
		if err == nil && a.status < http.StatusMultipleChoices {
			l.sales["probe"] = &ackedSale{seller: l.sellers[0], amount: 1}
		}
		return err == nil && a.status == http.StatusServiceUnavailable && a.retryAfter != "" &&
			(strings.Contains(a.Error, says) || a.Code == "outcome_unknown")
	})
	for _, path := range []string{"/healthz", "/api/payouts/balance", "/api/payouts/history", "/api/auth/me"} {
		a, err := l.send(service, call{method: "GET", path: path, token: l.sellers[0].token})
		if err != nil || a.status != http.StatusOK {
			l.t.Errorf("%s was answered with %d %s (%v): %s; want 200", path, a.status, a.Code, err, a.Error)
		}
	}
	// On a disk that is almost full a small write may still succeed after a larger one has failed, and the service is
	// ready again until the next one fails.
	harness.Until(l.t, "the service isn't ready", func() bool {
		a, err := l.send(service, call{method: "GET", path: "/readyz"})
		return err == nil && a.status == http.StatusServiceUnavailable && a.Code == "storage_unavailable" && strings.Contains(a.Error, says)
	})
	harness.Until(l.t, "the log says so", func() bool { return strings.Contains(service.Output(l.t, "stderr"), `"msg":"database not writable"`) })
	time.Sleep(time.Second)
	heal()
	harness.Until(l.t, "all is well again", service.IsReady)
	harness.Until(l.t, "a write is taken", func() bool {
		a, err := l.send(service, probe)
		return err == nil && a.status < http.StatusMultipleChoices
	})
	l.mu.Lock()
	l.sales["probe"] = &ackedSale{seller: l.sellers[0], amount: 1}
	l.mu.Unlock()
	l.checkKept()
	lines := 0
	for line := range strings.Lines(service.Output(l.t, "stderr")) {
		if !strings.Contains(line, `"msg":"request"`) {
			lines++
		}
	}
	if lines > 100 {
		l.t.Errorf("the log has %d lines beside those of requests, want few", lines)
	}
	time.Sleep(500 * time.Millisecond)
}

// finish ends the load and finds everything as it must be.
func (l *load) finish() {
	l.t.Helper()
	l.end()
	if l.t.Failed() {
		l.t.FailNow()
	}
	l.settle()
	l.checkPayouts()
	l.checkMoves()
	l.checkSales()
	l.checkBalances()
	l.checkAccounts()
	l.command("audit")
	l.t.Logf("%d calls answered, after %d tries made again: %s; %d payouts", l.answered.Load(), l.repeated.Load(), l.told(), len(l.payouts))
}

// mountSmall mounts a file system in memory.
func mountSmall(t *testing.T, options string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may mount a small disk to fill; without that, TestADiskThatFails has the system say that it is full")
	}
	dir := t.TempDir()
	if err := syscall.Mount("bursar-test", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("root may not mount a small disk to fill here (%v); without that, TestADiskThatFails has the system say that it is full", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_FORCE|2 /* detach */) })
	return dir
}

func remount(t *testing.T, dir, options string) {
	t.Helper()
	if err := syscall.Mount("bursar-test", dir, "tmpfs", syscall.MS_REMOUNT, options); err != nil {
		t.Fatal(err)
	}
}

// fill writes a file until there is no room for more.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for err == nil {
		_, err = file.Write(make([]byte, os.Getpagesize()))
	}
}

// A service that may not write to its data directory says where, and what to do.
func TestDataDirectory_NotWritable_Named(t *testing.T) {
	t.Run("ReadOnly", func(t *testing.T) {
		dir := mountSmall(t, "size=1m")
		if err := syscall.Mount("bursar-test", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		expectNamed(t, harness.NewInstance(t, "BURSAR_DATA_DIR="+dir).Command("serve"), dir)
		expectNamed(t, harness.NewInstance(t, "BURSAR_DATA_DIR="+dir+"/made/by/us").Command("serve"), dir)
	})
	t.Run("SomebodyElses", func(t *testing.T) {
		dir, copied := openToAll(t)
		command := harness.NewInstance(t, "BURSAR_DATA_DIR="+dir).Command("serve")
		command.Path = copied
		if os.Getuid() == 0 {
			command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		expectNamed(t, command, dir)
	})
}

// openToAll is a directory where nobody may write, and the program where everybody may run it.
func openToAll(t *testing.T) (dir, copied string) {
	t.Helper()
	home, err := os.MkdirTemp("", "bursar-test-") //nolint:usetesting // nobody else comes into t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	dir, copied = filepath.Join(home, "data"), filepath.Join(home, "bursar")
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	content, err := os.ReadFile(harness.Program())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, content, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{home: 0o755, copied: 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	return dir, copied
}

func expectNamed(t *testing.T, serve *exec.Cmd, dir string) {
	t.Helper()
	out, err := serve.CombinedOutput()
	if serve.ProcessState == nil || serve.ProcessState.ExitCode() != 1 {
		t.Fatalf("serve: %v\n%s", err, out)
	}
	for _, want := range []string{dir, "can't be written to", "BURSAR_DATA_DIR", "user "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s\nwant it to tell %q", out, want)
		}
	}
}
