package simulate_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// compiler checks packages of the module as they would be with other files, against what the others were compiled
// to. It is many times as fast as compiling.
type compiler struct {
	set   *token.FileSet
	using types.Importer
}

func newCompiler(t *testing.T) compiler {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", "./internal/simulate")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	compiled := map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		compiled[p.ImportPath] = p.Export
	}
	set := token.NewFileSet()
	return compiler{set, importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })}
}

// check reports what keeps the packages of the changed files from compiling.
func (c compiler) check(changed map[string]string) error {
	var all []error
	dirs := map[string]bool{}
	for file := range changed {
		dirs[path.Dir(file)] = true
	}
	for dir := range dirs {
		p, err := build.ImportDir(filepath.Join(root, dir), 0)
		if err != nil {
			return err
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			var content any // nil for what is on disk
			if text, isChanged := changed[path.Join(dir, name)]; isChanged {
				content = text
			}
			file, err := parser.ParseFile(c.set, filepath.Join(root, dir, name), content, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files = append(files, file)
		}
		_, err = (&types.Config{Importer: c.using}).Check(path.Join("bursar", dir), c.set, files, nil)
		all = append(all, err)
	}
	return errors.Join(all...)
}
