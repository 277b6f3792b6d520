package api_test

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bursar/internal/auth"
)

// sample is the code in the documentation that calls an operation, aimed at the running service.
func (h *fixture) sample(page, operation, language string) string {
	h.t.Helper()
	text := h.do(call{method: "GET", path: "/docs/" + page}).want(h.t, 200).body
	_, article, _ := strings.Cut(text, `<article id="`+operation+`"`)
	article, _, _ = strings.Cut(article, "</article>")
	found := regexp.MustCompile(`(?s)<pre class="sample ` + language + `"><code>(.*?)</code>`).FindStringSubmatch(article)
	if found == nil {
		h.t.Fatalf("%s has no sample in %s", operation, language)
	}
	return strings.ReplaceAll(html.UnescapeString(found[1]), "http://127.0.0.1:8080", h.server.URL)
}

// TestDocsSamples runs samples of the documentation as a reader would, against the running service.
func TestDocsSamples(t *testing.T) {
	runners := map[string]struct {
		program string
		file    string
		args    []string
		shows   string // what the output has, given a status
	}{
		"curl":   {"curl", "sample.sh", []string{"bash"}, ""},
		"js":     {"node", "sample.mjs", []string{"node"}, "%d "},
		"python": {"python3", "sample.py", []string{"python3"}, "%d "},
		"go":     {"go", "sample.go", []string{"go", "run"}, "%d "},
	}
	for language, run := range runners {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(run.program); err != nil {
				t.Skipf("%s is not installed", run.program)
			}
			if language == "python" {
				if err := exec.CommandContext(t.Context(), "python3", "-c", "import requests").Run(); err != nil {
					t.Skip("Python has no module requests here")
				}
			}
			h := openFixture(t)
			seller := h.signUp("Other", auth.Seller)
			for _, test := range []struct {
				page, operation string
				status          int
				has             string
			}{
				{"sign-in", "register", 201, "asha@example.com"},
				{"sign-in", "login", 200, "refreshToken"},
				{"account", "me", 200, seller.id},
				{"account", "changeMe", 200, "Your profile is saved"},
				{"payouts", "payoutHistory", 200, "pagination"},
				{"payouts", "requestPayout", 400, "bank_account_not_verified"},
				{"payouts", "payout", 404, "payout_not_found"},
				{"marketplace", "recordSale", 404, "seller_not_found"},
				{"operations", "jwks", 200, "Ed25519"},
			} {
				file := filepath.Join(t.TempDir(), run.file)
				must(t, os.WriteFile(file, []byte(h.sample(test.page, test.operation, language)), 0o600))
				command := exec.CommandContext(t.Context(), run.args[0], append(run.args[1:], file)...)
				command.Env = append(os.Environ(), "TOKEN="+seller.token, "SERVICE_KEY="+h.serviceKey)
				out, err := command.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v: %s", test.operation, err, out)
				}
				status := ""
				if run.shows != "" {
					status = fmt.Sprintf(run.shows, test.status)
				}
				if !strings.Contains(string(out), test.has) || !strings.Contains(string(out), status) {
					t.Errorf("%s shows %s; want %s%s", test.operation, out, status, test.has)
				}
			}
		})
	}
}
