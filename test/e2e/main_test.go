// Package e2e tests the whole program: it is built once, started as its users start it, killed, and asked over HTTP. Package
// browser has the tests of what people see and do in a browser.
package e2e

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"bursar/test/harness"
)

// TestMain builds the program, and lets tests run it on a disk that fails.
func TestMain(m *testing.M) {
	testscript.Main(harness.Suite{M: m}, map[string]func(){"on-a-bad-disk": onABadDisk})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
