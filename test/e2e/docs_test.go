package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages are all that is written in Markdown, for users, operators and contributors.
func pages(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/adr/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(files), err)
		}
		all = append(all, files...)
	}
	return all
}

// TestPages_LinksLeadSomewhere follows the links between pages, to their sections too.
func TestPages_LinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)
	for _, page := range pages(t) {
		for _, l := range link.FindAllStringSubmatch(readText(t, page), -1) {
			target := page
			if l[1] != "" {
				target = filepath.Join(filepath.Dir(page), l[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, l[1])
				continue
			}
			if l[2] != "" && filepath.Ext(target) == ".md" && !slices.Contains(anchors(readText(t, target)), l[2]) {
				t.Errorf("%s links to %s#%s, and there is no such section", page, l[1], l[2])
			}
		}
	}
}

// TestPages_AreShort holds pages and decisions short enough to be read.
func TestPages_AreShort(t *testing.T) {
	for pattern, most := range map[string]int{"../../docs/*.md": 200, "../../docs/adr/*.md": 60, "../../ARCHITECTURE.md": 100} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(files), err)
		}
		for _, page := range files {
			if lines := strings.Count(readText(t, page), "\n"); lines > most {
				t.Errorf("%s has %d lines, more than %d: divide it by what its readers look for", page, lines, most)
			}
		}
	}
}

// TestPages_NameOnlySettings finds settings in the README and the operators' pages that were renamed or misspelt.
func TestPages_NameOnlySettings(t *testing.T) {
	known := knownVariables(t)
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(files, "../../README.md") {
		for _, name := range regexp.MustCompile(`BURSAR_[A-Z0-9][A-Z0-9_]*`).FindAllString(readText(t, page), -1) {
			if !known[name] {
				t.Errorf("%s names %s, which is no setting", page, name)
			}
		}
	}
}
