package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"bursar/client"
	"bursar/internal/npmtest"
	"bursar/test/harness"
)

// TestTypeScriptClient builds the package as its README says, runs its own tests against the program, installs it into an empty folder,
// and runs the README's tour there.
func TestTypeScriptClient(t *testing.T) {
	dir := typeScriptClient(t)
	inDir(t, dir, nil, "npm", "run", "build")
	inDir(t, dir, nil, "node", "node_modules/typescript/bin/tsc", "-p", "test")

	i := harness.NewDefaultInstance(t, "BURSAR_CANCEL_WINDOW=1s", "BURSAR_SANDBOX_SETTLE_AFTER=0s")
	i.Start(t)
	made, err := i.Command("apikey", "create", "--name", "shop").Output()
	must(t, err)
	key := strings.TrimSpace(string(made))
	said := inDir(t, dir, []string{"BURSAR_URL=" + i.API, "LOSSY_URL=" + lossyProxy(t, i.API), "BURSAR_KEY=" + key}, "node", "--test", "build/")
	if !regexp.MustCompile(`(?m)^. (pass|tests) [1-9]`).MatchString(said) {
		t.Errorf("no test was run: %s", said)
	}

	inDir(t, dir, nil, "npm", "pack")
	empty := t.TempDir()
	inDir(t, empty, nil, "npm", "init", "--yes")
	inDir(t, empty, nil, "npm", "install", "--offline", "--no-audit", "--no-fund", filepath.Join(dir, "bursar-"+packageOf(t, dir).Version+".tgz"))
	must(t, os.WriteFile(filepath.Join(empty, "tour.mjs"), []byte(codeIn(t, filepath.Join(dir, "README.md"))), 0o600))
	must(t, os.MkdirAll(filepath.Join(empty, "node_modules", "@types"), 0o750))
	must(t, os.Symlink(filepath.Join(npmtest.Packages(t), "@types", "node"), filepath.Join(empty, "node_modules", "@types", "node"))) // for process
	inDir(t, empty, nil, "node", filepath.Join(dir, "node_modules", "typescript", "bin", "tsc"), "--noEmit", "--allowJs", "--checkJs", "--strict",
		"--target", "ES2022", "--module", "NodeNext", "--skipLibCheck", "tour.mjs")
	said = inDir(t, empty, []string{"BURSAR_URL=" + i.API, "SERVICE_KEY=" + key}, "node", "tour.mjs")
	for _, want := range []string{"requested pyt_", "insufficient_balance", "completed, the bank's reference is "} {
		if !strings.Contains(said, want) {
			t.Errorf("the tour does not say %q: %s", want, said)
		}
	}
}

// TestTypeScriptClient_Versions holds the package to the version of the API, and what it is built with to what the tests install.
func TestTypeScriptClient_Versions(t *testing.T) {
	p := packageOf(t, filepath.Join("..", "..", "clients", "typescript"))
	if major, _, _ := strings.Cut(p.Version, "."); major != client.APIVersion {
		t.Errorf("the package has version %s, the API %s", p.Version, client.APIVersion)
	}
	if len(p.Dependencies) > 0 {
		t.Errorf("the package depends on %v", p.Dependencies)
	}
	pinned := packageOf(t, filepath.Join("..", "..", "internal", "npmtest"))
	for name, version := range p.DevDependencies {
		if pinned.Dependencies[name] != version {
			t.Errorf("the package is built with %s %s, and the tests install %q", name, version, pinned.Dependencies[name])
		}
	}
}

type npmPackage struct {
	Version                       string
	Dependencies, DevDependencies map[string]string
}

func packageOf(t *testing.T, dir string) npmPackage {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	must(t, err)
	var p npmPackage
	must(t, json.Unmarshal(text, &p))
	return p
}

// typeScriptClient copies the client's sources, and the API's description beside them as in the repository.
func typeScriptClient(t *testing.T) string {
	t.Helper()
	packages := npmtest.Packages(t)
	root := filepath.Join("..", "..")
	home := t.TempDir()
	dir := filepath.Join(home, "clients", "typescript")
	for _, file := range []string{"package.json", "tsconfig.json", "README.md", "src", "test"} {
		copyAll(t, filepath.Join(root, "clients", "typescript", file), filepath.Join(dir, file))
	}
	must(t, os.RemoveAll(filepath.Join(dir, "src", "schema.ts"))) // that somebody generated
	copyAll(t, filepath.Join(root, "internal", "api", "openapi.yaml"), filepath.Join(home, "internal", "api", "openapi.yaml"))
	must(t, os.Symlink(packages, filepath.Join(dir, "node_modules")))
	return dir
}

func copyAll(t *testing.T, from, to string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(to), 0o750))
	info, err := os.Stat(from)
	must(t, err)
	if info.IsDir() {
		must(t, os.CopyFS(to, os.DirFS(from)))
		return
	}
	text, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, text, 0o600))
}

// inDir runs a program and returns what it said. Nothing that is set for Bursar on this machine reaches it.
func inDir(t *testing.T, dir string, environ []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(environ, "npm_config_update_notifier=false", "NODE_OPTIONS=--unhandled-rejections=strict")
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "BURSAR_") && !strings.HasPrefix(variable, "NODE_TEST_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, said)
	}
	return string(said)
}

// codeIn is the first JavaScript of a page.
func codeIn(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	_, rest, found := strings.Cut(string(text), "```js\n")
	code, _, ended := strings.Cut(rest, "```\n")
	if !found || !ended {
		t.Fatalf("%s has no JavaScript", page)
	}
	return code
}

// lossyProxy is a way to a service that loses the first answer to each payout request: the service did what it was asked.
func lossyProxy(t *testing.T, address string) string {
	t.Helper()
	to, err := url.Parse(address)
	must(t, err)
	var lost sync.Map
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(response *http.Response) error {
		if key := response.Request.Header.Get("Idempotency-Key"); key != "" {
			if _, before := lost.LoadOrStore(key, true); !before {
				panic(http.ErrAbortHandler)
			}
		}
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(func() {
		server.Close()
		count := 0
		lost.Range(func(any, any) bool { count++; return true })
		if count == 0 {
			t.Error("no answer was lost")
		}
	})
	return server.URL
}
