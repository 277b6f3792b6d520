// Package harness starts the whole program for the tests below test, calls its API, and opens its pages as a browser does.
package harness

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
)

// built is the path of the program under test.
var built string

// Program returns the path of the program under test.
func Program() string {
	noteSources()
	return built
}

// noteSources has the go command run a test again, and not repeat a cached result, once a source file has changed: it
// notes which directories a test reads, and can't know what the program is built from. The directories are named as
// seen from a test's package, in which its process runs.
var noteSources = sync.OnceFunc(func() {
	for _, dir := range []string{"../../cmd", "../../internal"} {
		if err := filepath.WalkDir(dir, func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
			panic(err)
		}
	}
})

// programVariable names a program to test that was built before.
const programVariable = "BURSAR_TEST_PROGRAM"

// Suite runs the tests of a package on a program that it builds for them. TestMain of each package uses it.
type Suite struct{ *testing.M }

// Run returns the exit code.
func (s Suite) Run() int {
	dir, err := os.MkdirTemp("", "bursar-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if built = os.Getenv(programVariable); built == "" {
		built, err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return s.M.Run()
}

// build compiles the program into dir, with the race detector if the tests have it.
func build(dir string) (string, error) {
	path := filepath.Join(dir, "bursar")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	args := []string{"build", "-buildvcs=false", "-o", path}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, "bursar/cmd/bursar")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("the program under test can't be built: %w\n%s", err, out)
	}
	return path, nil
}
