package apidocs_test

import (
	"go/format"
	"html"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"bursar/internal/apidocs"
)

func description(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func render(t *testing.T, description string) (map[string][]byte, error) {
	t.Helper()
	return apidocs.Render([]byte(description), &url.URL{Scheme: "https", Host: "pay.example"})
}

func pages(t *testing.T) map[string]string {
	t.Helper()
	drawn, err := render(t, description(t))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for name, text := range drawn {
		all[name] = string(text)
	}
	return all
}

// TestRender_Pages holds what every page promises: it is small, asks no other site for anything, and has no script or
// style in it.
func TestRender_Pages(t *testing.T) {
	const most = 100_000
	assets := 0
	for _, name := range []string{"style.css", "docs.js"} {
		text, err := apidocs.Assets.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		assets += len(text)
		if strings.Contains(string(text), "://") || strings.Contains(string(text), "@import") {
			t.Errorf("%s loads something from elsewhere", name)
		}
	}
	all := pages(t)
	if len(all) < 8 {
		t.Fatalf("%d pages", len(all))
	}
	loaded := regexp.MustCompile(`(?:src|href)="([^"]*)"`)
	for name, page := range all {
		if size := len(page) + assets; size > most {
			t.Errorf("page %q is %d bytes with its assets, more than %d: divide its tag", name, size, most)
		}
		for _, found := range loaded.FindAllStringSubmatch(page, -1) {
			if !strings.HasPrefix(found[1], "/") && !strings.HasPrefix(found[1], "#") || strings.HasPrefix(found[1], "//") {
				t.Errorf("page %q leads to %s", name, found[1])
			}
		}
		for _, wrong := range []string{"<style", " style=", " onclick=", "<nil>", "&lt;nil&gt;", "%!", "map[", "ZgotmplZ"} {
			if strings.Contains(page, wrong) {
				t.Errorf("page %q holds %s", name, wrong)
			}
		}
		if strings.Contains(page, "<script") && strings.Count(page, "<script") != strings.Count(page, `<script src="/docs/docs.js" defer></script>`) {
			t.Errorf("page %q holds a script", name)
		}
		for _, link := range regexp.MustCompile(`href="/docs/?([a-z-]*)(?:#([^"]+))?"`).FindAllStringSubmatch(page, -1) {
			target, exists := all[link[1]]
			if link[1] == "style" {
				continue
			}
			if !exists || link[2] != "" && !strings.Contains(target, `id="`+link[2]+`"`) {
				t.Errorf("page %q links to %s#%s, which is not there", name, link[1], link[2])
			}
		}
	}
}

// TestRender_Fields reads the rows of nested objects, of references, of limits and of answers.
func TestRender_Fields(t *testing.T) {
	all := pages(t)
	for _, test := range []struct{ page, row string }{
		{"sign-in", `<code>name</code> <b>required</b></td><td>string <small>2 to 50 characters</small></td>`},
		{"sign-in", `<code>role</code></td><td>string or null <small>buyer, seller; default buyer</small></td>`},
		{"sign-in", `<code>user.<wbr>createdAt</code></td><td>time</td>`},
		{"payouts", `<code>amount</code> <b>required</b></td><td>amount <small>above 0</small></td><td><p>At least the minimum payout`},
		{"payouts", `<code>bankAccount.<wbr>isVerified</code></td><td>boolean</td>`},
		{"payouts", `<code>Idempotency-Key</code> <small>in the header</small></td><td>string <small>1 to 255 characters</small></td>`},
		{"payouts", `<code>payouts[].<wbr>utr</code> <small>may be absent</small></td><td>string or null</td>`},
		{"payouts", `<td>422</td><td><a href="/docs/errors#validation_failed">`},
		{"", `<td><code>0004</code></td>`},
	} {
		if !strings.Contains(all[test.page], test.row) {
			t.Errorf("page %q lacks %s", test.page, test.row)
		}
	}
	for name, page := range all {
		if name != apidocs.ErrorsPage && strings.Contains(page, "body_too_large") {
			t.Errorf("page %q repeats a common error", name)
		}
	}
}

// TestRender_ErrorCodes holds the index complete: a code that is answered and not explained, or explained and not
// answered, is a failure.
func TestRender_ErrorCodes(t *testing.T) {
	text := description(t)
	for name, changed := range map[string]string{
		"without an explanation": strings.Replace(text, "\n  insufficient_balance:\n", "\n  other_code:\n", 1),
		"without an answer":      strings.Replace(text, "\nx-error-codes:\n", "\nx-error-codes:\n  never_answered:\n    means: Nothing.\n    do: Nothing.\n", 1),
	} {
		if changed == text {
			t.Fatalf("%s: nothing was changed", name)
		}
		if _, err := render(t, changed); err == nil || !strings.Contains(err.Error(), "x-error-codes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, entry := range strings.Split(pages(t)[apidocs.ErrorsPage], `<article class="code"`)[1:] {
		if !strings.Contains(entry, "<b>What to do</b> <p>") || !regexp.MustCompile(`<small>[45]\d\d`).MatchString(entry) {
			t.Errorf("no status, or nothing to do: %.200s", entry)
		}
	}
}

// TestRender_Samples checks what can be checked of each sample without a service: that gofmt would leave it as it is,
// and that none has a gap.
func TestRender_Samples(t *testing.T) {
	seen := 0
	for name, page := range pages(t) {
		for _, found := range regexp.MustCompile(`(?s)<pre class="sample (\w+)"><code>(.*?)</code>`).FindAllStringSubmatch(page, -1) {
			seen++
			code := html.UnescapeString(found[2])
			if !strings.Contains(code, "https://pay.example/") || regexp.MustCompile(`pay\.example[^'"]*[{}]`).MatchString(code) {
				t.Errorf("%s calls no address of the service:\n%s", name, code)
			}
			if found[1] != "go" {
				continue
			}
			formatted, err := format.Source([]byte(code + "\n"))
			if err != nil || string(formatted) != code+"\n" {
				t.Errorf("%s: gofmt would change it, or can't read it (%v):\n%s", name, err, code)
			}
		}
	}
	if seen < 200 {
		t.Errorf("%d samples", seen)
	}
}
