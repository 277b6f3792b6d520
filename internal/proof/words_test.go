package proof

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"bursar/internal/ledger"
)

// TestInWords_EveryType reads the types of entries from the source of package ledger, so that a new one needs words.
func TestInWords_EveryType(t *testing.T) {
	file, err := goparser.ParseFile(token.NewFileSet(), "../ledger/rules.go", nil, goparser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]ledger.Type{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, isValue := n.(*ast.ValueSpec)
		if !isValue {
			return true
		}
		if name, isNamed := spec.Type.(*ast.Ident); !isNamed || name.Name != "Type" {
			return true
		}
		text, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		e := ledger.Entry{Posting: ledger.Posting{Type: ledger.Type(text), Subject: "x_1"}}
		what := inWords(e)
		if what == text+" x_1" || !strings.Contains(what, "x_1") {
			t.Errorf("an entry of type %q is described as %q", text, what)
		}
		if other, isSeen := seen[what]; isSeen {
			t.Errorf("entries of type %q are described like those of type %q", text, other)
		}
		seen[what] = e.Type
		return true
	})
	if len(seen) < len(words) || len(seen) < 20 {
		t.Errorf("found are %d types of entries, and %d have words", len(seen), len(words))
	}
	if got := inWords(ledger.Entry{Posting: ledger.Posting{Type: "thing.happened", Subject: "x_1"}}); got != "thing.happened x_1" {
		t.Errorf("an entry of an unknown type is described as %q", got)
	}
}
