package simulate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bursar/internal/keyset"
	"bursar/internal/simulate"
	"bursar/internal/store"
)

// auditNames lists the audit's invariants.
func auditNames(t *testing.T) []string {
	t.Helper()
	db, err := store.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "bursar.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	keys, err := keyset.Open(t.Context(), keyset.File(filepath.Join(t.TempDir(), "keys.json")))
	if err != nil {
		t.Fatal(err)
	}
	report, err := db.Audit(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range report.Findings {
		names = append(names, f.Name)
	}
	return names
}

// docs/guarantees.md names every check of the simulator and of the audit, and only code and tests that exist.
func TestGuaranteesPage_Complete(t *testing.T) {
	var simulated []string
	for _, c := range simulate.Checks() {
		simulated = append(simulated, c.Name)
	}
	rows := guarantees(t)
	code := declarations(t)
	holdColumn(t, "the simulator", rows, 1, simulated)
	holdColumn(t, "the audit", rows, 2, auditNames(t))
	for _, row := range rows {
		if len(quoted(row[1])) == 0 && len(quoted(row[2])) == 0 || row[3] == "" || len(quoted(row[4])) == 0 {
			t.Errorf("no check, no code or no test is named for: %s", row[0])
		}
		for _, name := range quoted(row[3]) {
			if !code[name] {
				t.Errorf("there is no %s in the code; a name is package.Name, package.Type.Method, package/file.go or a package", name)
			}
		}
		for _, name := range quoted(row[4]) {
			if !testExists(t, name) {
				t.Errorf("there is no test %s", name)
			}
		}
	}
}

// guarantees reads the cells of the page's tables.
func guarantees(t *testing.T) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 7 || strings.HasPrefix(cells[1], "---") || cells[1] == " promise " {
			continue
		}
		for i, cell := range cells {
			cells[i] = strings.TrimSpace(cell)
		}
		rows = append(rows, cells[1:6])
	}
	if len(rows) < 30 {
		t.Fatalf("the page has %d promises; the test reads it wrongly", len(rows))
	}
	return rows
}

var inQuotes = regexp.MustCompile("`([^`]+)`")

func quoted(cell string) (names []string) {
	for _, match := range inQuotes.FindAllStringSubmatch(cell, -1) {
		names = append(names, match[1])
	}
	return names
}

// holdColumn wants a column to name each of the checks, and nothing else.
func holdColumn(t *testing.T, of string, rows [][]string, column int, checks []string) {
	t.Helper()
	var named []string
	for _, row := range rows {
		named = append(named, quoted(row[column])...)
	}
	for _, name := range named {
		if !slices.Contains(checks, name) {
			t.Errorf("docs/guarantees.md names %q, and %s has no such check", name, of)
		}
	}
	for _, name := range checks {
		if !slices.Contains(named, name) {
			t.Errorf("docs/guarantees.md lacks %q, which %s checks", name, of)
		}
	}
}

// declarations are what the code below internal has, without tests: packages, files as package/file.go, and what each package
// declares, as package.Name and package.Type.Method. A method is there as package.Name too.
func declarations(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := syntax.Name.Name
		found[pkg], found[pkg+"/"+filepath.Base(file)] = true, true
		for _, d := range syntax.Decls {
			for _, name := range declaredBy(d) {
				found[pkg+"."+name] = true
			}
		}
		return nil
	})
	if err != nil || len(found) < 1000 {
		t.Fatalf("found %d names, %v; the test looks in the wrong place", len(found), err)
	}
	return found
}

func declaredBy(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		names = append(names, d.Name.Name)
		if d.Recv != nil {
			names = append(names, receiver(d.Recv.List[0].Type)+"."+d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// receiver is the name of a method's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	default:
		return ""
	}
}

// testExists looks for a test such as payout.TestRefundToBalance, or cmd/bursar.TestScripts.
func testExists(t *testing.T, name string) bool {
	t.Helper()
	place, test, _ := strings.Cut(name, ".")
	if !strings.Contains(place, "/") {
		place = "internal/" + place
	}
	files, err := filepath.Glob(filepath.Join("../..", place, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), "func "+test+"(t *testing.T)") {
			return true
		}
	}
	return false
}
