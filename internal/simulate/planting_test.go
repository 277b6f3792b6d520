package simulate_test

import (
	"fmt"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// edit changes a package's source: what is old there becomes new. Old is found once in the files of the package, as a
// sequence of tokens, so that it stays where spaces, comments and files change. Where that is nowhere, it is looked for
// as text, for what is inside of a string, and then as tokens whose local names have changed: new gets those names.
type edit struct{ in, old, new string }

// source is the files of packages, with the edits that were made, by their paths from the root of the module.
type source struct {
	texts   map[string]string
	changed map[string]bool
}

// files lists those of a package.
func (s *source) files(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, dir))
	var files []string
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		files = append(files, name)
		if _, seen := s.texts[name]; !seen {
			content, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				return nil, err
			}
			s.texts[name] = string(content)
		}
	}
	return files, err
}

// found is a place of an edit, with the names that locals have there by those that they have in the edit.
type found struct {
	file       string
	start, end int
	names      map[string]string
}

// apply makes an edit.
func (s *source) apply(e edit) error {
	files, err := s.files(e.in)
	if err != nil {
		return err
	}
	for _, find := range []func(text, old string) []found{findTokens(false), findText, findTokens(true)} {
		var all []found
		for _, file := range files {
			for _, f := range find(s.texts[file], e.old) {
				f.file = file
				all = append(all, f)
			}
		}
		switch len(all) {
		case 0:
			continue
		case 1:
			at := all[0]
			text := s.texts[at.file]
			s.texts[at.file] = text[:at.start] + rename(e.new, at.names) + text[at.end:]
			s.changed[at.file] = true
			return nil
		default:
			return fmt.Errorf("this is %d times in %s (%s and %s), want once:\n%s", len(all), e.in, all[0].file, all[1].file, e.old)
		}
	}
	return fmt.Errorf("this is not in %s; fit the bug to the code as it is now:\n%s", e.in, e.old)
}

// lexeme is a token and where it is.
type lexeme struct {
	kind       token.Token
	text       string
	start, end int
}

// lex splits a piece of source into tokens. It fails where the piece begins or ends inside of one.
func lex(text string) (list []lexeme, isWhole bool) {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, 0)
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return list, s.ErrorCount == 0
		}
		start := file.Offset(pos)
		l := lexeme{kind, literal, start, min(start+len(literal), len(text))}
		switch {
		case kind == token.SEMICOLON && literal == "\n": // it ends a line, or the text
			if start >= len(text) || text[start] != '\n' {
				continue
			}
			l.text, l.end = ";", start
		case !kind.IsLiteral():
			l.text = kind.String()
			l.end = start + len(l.text)
		}
		list = append(list, l)
	}
}

// findTokens finds a sequence of tokens, in which locals may have other names.
func findTokens(renamed bool) func(text, old string) []found {
	return func(text, old string) (all []found) {
		want, isWhole := lex(old)
		if !isWhole || len(want) == 0 {
			return nil
		}
		have, _ := lex(text)
		for i := 0; i+len(want) <= len(have); i++ {
			if names, same := sameTokens(have[i:i+len(want)], want, renamed); same {
				all = append(all, found{start: have[i].start, end: have[i+len(want)-1].end, names: names})
			}
		}
		return all
	}
}

func sameTokens(have, want []lexeme, renamed bool) (map[string]string, bool) {
	names, taken := map[string]string{}, map[string]string{}
	for i, w := range want {
		h := have[i]
		if h.kind != w.kind {
			return nil, false
		}
		isLocal := renamed && h.kind == token.IDENT && (i == 0 || want[i-1].kind != token.PERIOD) && isLocalName(h.text) && isLocalName(w.text)
		if !isLocal {
			if h.text != w.text {
				return nil, false
			}
			continue
		}
		if is, known := names[w.text]; known && is != h.text {
			return nil, false
		}
		if was, known := taken[h.text]; known && was != w.text {
			return nil, false
		}
		names[w.text], taken[h.text] = h.text, w.text
	}
	return names, true
}

func isLocalName(name string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	return unicode.IsLower(first) && types.Universe.Lookup(name) == nil
}

// findText finds a text in which any space stands for any other.
func findText(text, old string) (all []found) {
	words := strings.Fields(old)
	if len(words) == 0 {
		return nil
	}
	for i, word := range words {
		words[i] = regexp.QuoteMeta(word)
	}
	for _, at := range regexp.MustCompile(strings.Join(words, `\s+`)).FindAllStringIndex(text, -1) {
		all = append(all, found{start: at[0], end: at[1]})
	}
	return all
}

// rename gives the locals of a piece of source their names of now.
func rename(text string, names map[string]string) string {
	list, _ := lex(text)
	for i, l := range slices.Backward(list) {
		if is, known := names[l.text]; known && l.kind == token.IDENT && (i == 0 || list[i-1].kind != token.PERIOD) {
			text = text[:l.start] + is + text[l.end:]
		}
	}
	return text
}

// The edit of a planted bug is found in code that was reformatted or renamed, and only if it is unambiguous.
func TestEdit_FoundAfterRefactoring(t *testing.T) {
	const code = "package p\n\nfunc f(limit int) int {\n\tif limit > 3 { // three is enough\n\t\treturn limit\n\t}\n\tq := `SELECT a\n\t\tFROM b`\n\treturn len(q)\n}\n"
	tests := map[string]struct {
		e    edit
		want string
	}{
		"spaces and comments": {edit{"p", "if limit  >  3 {\nreturn limit\n", "if limit > 4 {\nreturn limit\n"}, "if limit > 4 {"},
		"inside of a string":  {edit{"p", "SELECT a FROM b", "SELECT c FROM b"}, "SELECT c FROM b"},
		"a renamed local":     {edit{"p", "if most > 3 {", "if most > 3 && most < 9 {"}, "if limit > 3 && limit < 9 {"},
		"nowhere":             {edit{"p", "if limit > 5 {", ""}, ""},
		"twice":               {edit{"p", "return", ""}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := source{map[string]string{}, map[string]bool{}}
			for _, find := range []func(text, old string) []found{findTokens(false), findText, findTokens(true)} {
				if all := find(code, tt.e.old); len(all) == 1 {
					s.texts["p"] = code[:all[0].start] + rename(tt.e.new, all[0].names) + code[all[0].end:]
				} else if len(all) == 0 {
					continue
				}
				break
			}
			if got := s.texts["p"]; (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("the edit makes\n%s\nwant %q in it", got, tt.want)
			}
		})
	}
}
