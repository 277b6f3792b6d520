// Package internal holds nothing but tests of the whole source: which package may import which, and which words are retired.
package internal

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	leaves  = []string{"decision", "fault", "id", "limits", "money", "retry"}
	domains = []string{"auth", "bank", "ledger", "mail", "payout", "sale"}
)

// mayImport says for each package which others of ours it may import: those in its row and no others. A gateway adapter needs
// no row (see [rowOf]). What a package may import from outside the module is in .golangci.yml. Tests may import everything.
var mayImport = map[string][]string{
	"limits":   {},
	"fault":    {},
	"id":       {},
	"money":    {},
	"retry":    {},
	"decision": {"fault", "id", "limits"},

	"passwordhash": {},
	"strictjson":   {},

	"auth":   slices.Concat(leaves, []string{"ledger", "mail", "passwordhash"}),
	"bank":   slices.Concat(leaves, []string{"gateway", "ledger", "mail"}),
	"ledger": leaves,
	"payout": slices.Concat(leaves, []string{"bank", "gateway", "ledger", "mail"}),
	"sale":   slices.Concat(leaves, []string{"bank", "ledger"}),

	"mail":           {"id", "retry"},
	"mail/message":   {"mail"},
	"mail/transport": {"mail"},
	"mail/mailtest":  {},

	"bank/ifsc":     {"bank"},
	"bank/ifsc/gen": {},

	"config":    slices.Concat(leaves, domains, []string{"mail/message", "web"}),
	"keyset":    leaves,
	"telemetry": leaves,
	"work":      leaves,

	"gateway":             {"fault", "id", "money"},
	"gateway/httpapi":     {"fault", "gateway", "id", "money", "web"},
	"gateway/gatewaytest": {"fault", "gateway", "id", "money"},
	"gateway/sandbox":     slices.Concat(leaves, []string{"gateway", "gateway/razorpayx", "web"}),

	"dialguard":     {"web"},
	"oauth":         slices.Concat(leaves, []string{"auth", "dialguard", "web"}),
	"oauth/sandbox": slices.Concat(leaves, []string{"web"}),

	"event": slices.Concat(leaves, []string{"ledger", "mail"}),

	"webhook":        slices.Concat(leaves, []string{"event", "ledger", "mail"}),
	"webhook/sender": {"dialguard", "web", "webhook"},

	"proof":     slices.Concat(leaves, []string{"ledger"}),
	"health":    slices.Concat(leaves, []string{"ledger"}),
	"inbox":     slices.Concat(leaves, []string{"bank", "payout", "reconcile", "webhook"}),
	"search":    slices.Concat(leaves, []string{"auth", "bank", "payout", "sale"}),
	"reconcile": slices.Concat(leaves, []string{"gateway", "ledger", "payout"}),

	"npmtest":   {},
	"pgtest":    {"porttest"},
	"porttest":  {},
	"store":     slices.Concat(leaves, domains, []string{"event", "gateway", "inbox", "proof", "reconcile", "webhook"}),
	"storetest": slices.Concat(leaves, domains, []string{"event", "gateway", "inbox", "keyset", "pgtest", "proof", "reconcile", "search", "store", "webhook"}),

	"simulate": slices.Concat(leaves, domains, []string{
		"api", "event", "gateway", "gateway/razorpayx", "gateway/sandbox", "health", "inbox", "keyset", "mail/message", "proof", "reconcile", "search", "store", "telemetry", "webhook",
	}),

	"web":       {"fault"},
	"apidocs":   {},
	"api":       slices.Concat(leaves, domains, []string{"apidocs", "event", "gateway", "health", "inbox", "proof", "reconcile", "search", "strictjson", "telemetry", "web", "webhook"}),
	"dashboard": slices.Concat(leaves, domains, []string{"gateway", "health", "inbox", "reconcile", "search", "telemetry", "web", "webhook"}),

	"app": slices.Concat(leaves, domains, []string{
		"api", "bank/ifsc", "config", "dashboard", "event", "keyset", "oauth", "oauth/sandbox", "proof", "gateway", "gateway/sandbox", "health", "inbox",
		"mail/message", "mail/transport", "reconcile", "search", "store", "telemetry", "web", "webhook", "webhook/sender", "work",
	}),
	"demo": slices.Concat(leaves, domains, []string{"app"}),

	// Builds and starts the program as its users do, so it needs none of the program's packages.
	"test/harness": {"porttest"},

	// For programs of others, so it knows nothing of the service.
	"client": {"money"},

	"cmd/bursar": slices.Concat(leaves, domains, []string{"app", "config", "demo", "proof", "reconcile", "simulate", "strictjson", "telemetry", "webhook"}),
}

// adapterRow is the row of every gateway adapter.
var adapterRow = slices.Concat(leaves, []string{"gateway", "gateway/httpapi", "web"})

// isAdapter reports whether a package is a gateway adapter: it is below gateway, and has no row of its own.
func isAdapter(pkg string) bool {
	_, listed := mayImport[pkg]
	return path.Dir(pkg) == "gateway" && !listed
}

// rowOf is what a package may import. Package app opens the adapters, so it may import each of them.
func rowOf(pkg string, all []string) (row []string, known bool) {
	if isAdapter(pkg) {
		return adapterRow, true
	}
	row, known = mayImport[pkg]
	if pkg != "app" {
		return row, known
	}
	for _, p := range all {
		if isAdapter(p) {
			row = append(slices.Clip(row), p)
		}
	}
	return row, known
}

func TestImportsFollowTheTable(t *testing.T) {
	imports := importsOf(t, "..")
	if len(imports) == 0 {
		t.Fatal("found no packages: the test looks in the wrong place")
	}
	packages := slices.Sorted(maps.Keys(imports))
	for _, pkg := range packages {
		allowed, listed := rowOf(pkg, packages)
		if !listed {
			t.Errorf("package %s has no row in mayImport: decide what it may import, and add one", pkg)
			continue
		}
		for _, use := range imports[pkg] {
			if !slices.Contains(allowed, use.imported) {
				t.Errorf("%s imports %s, which mayImport does not allow to %s", use.file, use.imported, pkg)
			}
		}
	}
	for pkg := range mayImport {
		if _, exists := imports[pkg]; !exists {
			t.Errorf("mayImport has a row for %s, which is no package: remove it", pkg)
		}
	}
}

// TestArchitecturePage_NamesEveryPackage wants each package in the page's section on packages, in its diagram or below, and the
// groups of packages as they are here.
func TestArchitecturePage_NamesEveryPackage(t *testing.T) {
	page, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Packages\n")
	for _, group := range [][]string{domains, leaves} {
		if list := "[" + strings.Join(group, ", ") + "]"; !strings.Contains(section, list) {
			t.Errorf("the page's diagram has no box %s", list)
		}
	}
	for pkg := range mayImport {
		named := regexp.MustCompile(`\b` + regexp.QuoteMeta(pkg) + `\b`)
		if !strings.Contains(pkg, "/") && !named.MatchString(section) {
			t.Errorf("the page does not name package %s", pkg)
		}
	}
}

// use is one import of a package of ours.
type use struct{ file, imported string }

// importsOf finds every package of the module at root, and what its code without tests imports of
// ours. It reads all files, whatever system they are built for.
func importsOf(t *testing.T, root string) map[string][]use {
	t.Helper()
	imports := map[string][]use{}
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && outsideModule(root, file):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		pkg := short(path.Dir(file))
		uses, err := usesIn(root, file)
		imports[pkg] = append(imports[pkg], uses...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

// outsideModule reports whether the go command would not look into dir for packages of this module.
func outsideModule(root, dir string) bool {
	if dir == "." {
		return false
	}
	name := path.Base(dir)
	_, err := os.Stat(filepath.Join(root, dir, "go.mod"))
	return err == nil || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func usesIn(root, file string) ([]use, error) {
	syntax, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var uses []use
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if ours, ok := strings.CutPrefix(imported, "bursar/"); ok {
			uses = append(uses, use{file, short(ours)})
		}
	}
	return uses, nil
}

// short drops what every package but the command has in common.
func short(dir string) string { return strings.TrimPrefix(dir, "internal/") }
