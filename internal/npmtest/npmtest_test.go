package npmtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func TestPackages_HavePinnedVersions(t *testing.T) {
	modules := Packages(t)
	for name, want := range pins(t) {
		text, err := os.ReadFile(filepath.Join(modules, name, "package.json"))
		if err != nil {
			t.Fatal(err)
		}
		var have struct{ Version string }
		if err := json.Unmarshal(text, &have); err != nil || have.Version != want {
			t.Errorf("%s is at %q (%v), want %q", name, have.Version, err, want)
		}
	}
}

func TestManyInstallAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("installs everything three times")
	}
	Packages(t) // skips where it can't be done
	base := t.TempDir()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			modules, err := installed(t.Context(), base)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(filepath.Join(modules, "axe-core", "axe.min.js")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	left, err := os.ReadDir(base)
	if err != nil || len(left) != 1 {
		t.Errorf("%v (%v) is left; want one directory", left, err)
	}
}

// The lock file works on every machine, because it names packages and no registry.
func TestLockFile_NamesNoRegistry(t *testing.T) {
	lock, err := pinned.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(lock), `"resolved"`) {
		t.Error("package-lock.json says where packages were from; write it with omit-lockfile-registry-resolved=true")
	}
	for name, want := range pins(t) {
		if strings.ContainsAny(want, "^~*<>|") {
			t.Errorf("package.json wants %s in version %s; name one version", name, want)
		}
	}
}

func TestPackages_NoNode_FailsOnlyUnderCI(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for ci, want := range map[string]string{"": "skipped", "false": "skipped", "true": "failed"} {
		t.Setenv("CI", ci)
		v := &verdict{TB: t}
		var wait sync.WaitGroup
		wait.Go(func() { Packages(v) })
		wait.Wait()
		if v.said != want || !strings.Contains(v.why, "install") {
			t.Errorf("with CI=%q the test is %s (%s); want it %s, with what to do about it", ci, v.said, v.why, want)
		}
	}
}

func TestIsNew(t *testing.T) {
	for version, want := range map[string]bool{
		"v20.12.0\n": true, "v20.20.2\n": true, "v22.0.0\n": true, "v100.1.0": true, "v18.20.4\n": false, "v20.11.1\n": false, "": false, "nonsense": false,
	} {
		if isNew(version) != want {
			t.Errorf("%q: %t, want %t", version, !want, want)
		}
	}
}

// verdict notes how a test would have ended, in place of ending it.
type verdict struct {
	testing.TB
	said, why string
}

func (v *verdict) Helper() {}

func (v *verdict) Skip(args ...any)  { v.end("skipped", args) }
func (v *verdict) Fatal(args ...any) { v.end("failed", args) }

func (v *verdict) end(how string, args []any) {
	v.said, v.why = how, args[0].(error).Error()
	runtime.Goexit()
}

// pins are the packages that tests ask for, and their versions.
func pins(t *testing.T) map[string]string {
	t.Helper()
	text, err := pinned.ReadFile("package.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Dependencies map[string]string }
	if err := json.Unmarshal(text, &file); err != nil || len(file.Dependencies) == 0 {
		t.Fatalf("package.json names nothing (%v)", err)
	}
	return file.Dependencies
}
