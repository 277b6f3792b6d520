// Package browser tests the whole program as people use it in a browser: the pages in Chromium, sign-in at identity providers
// and at a marketplace, second factors, and the links in mails.
package browser

import (
	"os"
	"testing"

	"bursar/test/harness"
)

// TestMain builds the program.
func TestMain(m *testing.M) {
	os.Exit(harness.Suite{M: m}.Run())
}

// instance is an instance of the program, with what people do on it.
type instance struct{ *harness.Instance }

func newInstance(t *testing.T, settings ...string) *instance {
	t.Helper()
	return &instance{harness.NewInstance(t, settings...)}
}

func newDefaultInstance(t *testing.T, settings ...string) *instance {
	t.Helper()
	return &instance{harness.NewDefaultInstance(t, settings...)}
}
