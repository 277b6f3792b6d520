// Package npmtest gives tests what they need from npm, at versions that package-lock.json pins: programs
// that nobody here wrote, to hold ours against.
//
// The lock file names no registry, so that npm asks the one it is set up for, and checks what comes
// against the hashes. Nothing of a package runs when it is installed.
package npmtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed package.json package-lock.json
var pinned embed.FS

// timeout is how long an installation may take.
const timeout = 5 * time.Minute

// What to do where there is no npm on this machine, or an old one. Debian 12 has Node.js 18.
var (
	errMissing = errors.New("this test needs Node.js 20.12 or newer, and its programs node and npm were not found: " +
		"install them (the packages nodejs and npm on Debian, node in Homebrew)")
	errOld = errors.New("this test needs Node.js 20.12 or newer: install a newer one, from nodejs.org if your system has none")
)

// Packages returns the directory node_modules that holds what package.json names. It is installed once
// and kept in the user's cache, under the hash of the lock file. Where that can't be done, the test is
// skipped; where the variable CI is set, it fails.
func Packages(t testing.TB) string {
	t.Helper()
	dir, err := packages(t.Context())
	if err != nil {
		refuse(t, err)
	}
	return dir
}

// refuse ends a test that needs what there is not. A machine without npm, or without a way to a
// registry, can do the rest.
func refuse(t testing.TB, err error) {
	t.Helper()
	if ci := os.Getenv("CI"); ci == "" || ci == "0" || ci == "false" {
		t.Skip(err)
	}
	t.Fatal(err)
}

func packages(ctx context.Context) (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", errMissing
		}
	}
	said, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask node for its version: %w", err)
	}
	if !isNew(string(said)) {
		return "", fmt.Errorf("%w; here is %s", errOld, bytes.TrimSpace(said))
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return installed(ctx, filepath.Join(cache, "bursar-tests"))
}

// isNew reports whether a version such as v20.12.0 will do.
func isNew(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "v%d.%d", &major, &minor)
	return err == nil && (major > 20 || major == 20 && minor >= 12)
}

// installed is the directory node_modules below base, which is made if it is not there. Several tests
// may do so at once: each works in a directory of its own, and the first to finish gives it its name.
func installed(ctx context.Context, base string) (string, error) {
	lock, err := pinned.ReadFile("package-lock.json")
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(lock)
	home := filepath.Join(base, "npm-"+hex.EncodeToString(hash[:8]))
	modules := filepath.Join(home, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	if err := os.MkdirAll(base, 0o750); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(base, "installing-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work) // gone already, if all went well
	if err := install(ctx, work); err != nil {
		return "", err
	}
	if err := os.Rename(work, home); err != nil {
		if _, missing := os.Stat(modules); missing != nil {
			return "", err
		}
	}
	return modules, nil
}

// install fills an empty directory.
func install(ctx context.Context, dir string) error {
	if err := os.CopyFS(dir, pinned); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
	npm.Dir = dir
	npm.WaitDelay = time.Second
	if said, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("this test needs packages from npm, and npm could not install them (%w): %s", err, bytes.TrimSpace(said))
	}
	return nil
}
