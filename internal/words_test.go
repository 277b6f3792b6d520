package internal

import (
	"bufio"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// retiredTerm is a line of testdata/retired_terms.txt.
type retiredTerm struct {
	term, instead string
	text, ident   *regexp.Regexp // nil where the term is allowed
}

func readRetiredTerms(t *testing.T) (terms []retiredTerm) {
	t.Helper()
	list, err := os.ReadFile("testdata/retired_terms.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(list)))
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 || fields[1] == "" || fields[2] == "" {
			t.Fatalf("not a retired term: %q", line)
		}
		r := retiredTerm{term: fields[1], instead: fields[2]}
		// Text wraps, in comments and in YAML too.
		inText := regexp.MustCompile(`(?i)\b` + strings.Join(strings.Fields(fields[1]), `[\s/#*]+`) + `\b`)
		inIdent := regexp.MustCompile(`\b` + strings.Join(strings.Fields(fields[1]), " ") + `\b`)
		switch fields[0] {
		case "both":
			r.text, r.ident = inText, inIdent
		case "text":
			r.text = inText
		case "identifier":
			r.ident = inIdent
		default:
			t.Fatalf("%q is no place for a retired term", fields[0])
		}
		terms = append(terms, r)
	}
	return terms
}

// words splits an identifier: "kindHeld" is "kind held".
func words(identifier string) string {
	var b strings.Builder
	runes := []rune(identifier)
	for i, c := range runes {
		startsWord := i > 0 && unicode.IsUpper(c) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if startsWord || c == '_' {
			b.WriteByte(' ')
		}
		if c != '_' {
			b.WriteRune(unicode.ToLower(c))
		}
	}
	return b.String()
}

// findRetired lists the retired terms in a file's text, with their lines. In Go, identifiers are told from comments and
// strings.
func findRetired(terms []retiredTerm, name, text string) (found []string) {
	report := func(offset int, r retiredTerm) {
		line := 1 + strings.Count(text[:offset], "\n")
		found = append(found, fmt.Sprintf("%s:%d: %q is retired; write %s", name, line, r.term, r.instead))
	}
	inText := func(from int, part string) {
		for _, r := range terms {
			if r.text == nil {
				continue
			}
			for _, at := range r.text.FindAllStringIndex(part, -1) {
				report(from+at[0], r)
			}
		}
	}
	if path.Ext(name) != ".go" {
		inText(0, text)
		return found
	}
	set := token.NewFileSet()
	file := set.AddFile(name, set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	comment, from, end := "", 0, -1 // comments on lines that follow each other are one text
	flush := func() {
		inText(from, comment)
		comment, end = "", -1
	}
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			break
		}
		offset := file.Offset(pos)
		switch kind {
		case token.COMMENT:
			if end >= 0 && strings.TrimSpace(text[end:offset]) == "" && strings.Count(text[end:offset], "\n") == 1 {
				comment = text[from : offset+len(literal)]
			} else {
				flush()
				comment, from = literal, offset
			}
			end = offset + len(literal)
		case token.STRING:
			inText(offset, literal)
		case token.IDENT:
			for _, r := range terms {
				if r.ident != nil && r.ident.MatchString(words(literal)) {
					report(offset, r)
				}
			}
		}
	}
	flush()
	return found
}

// isForReaders reports whether readers see a file of the repository: product code, pages, docs and deploy files, and no
// tests. ADRs are records of their time.
func isForReaders(name string) bool {
	kinds := []string{".go", ".md", ".html", ".yaml", ".yml", ".json", ".sql"}
	return slices.Contains(kinds, path.Ext(name)) && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "docs/adr/") &&
		!strings.Contains(name, "/testdata/") && !strings.HasSuffix(name, "package-lock.json")
}

// TestRetiredTerms keeps the terms of testdata/retired_terms.txt out of what users, operators and readers of the code see.
func TestRetiredTerms(t *testing.T) {
	terms := readRetiredTerms(t)
	read := 0
	err := filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(filepath.ToSlash(name), "../")
		if entry.IsDir() {
			if base := path.Base(name); name != ".." && strings.HasPrefix(base, ".") || base == "node_modules" || name == "tools" || name == "bin" {
				return fs.SkipDir
			}
			return nil
		}
		if !isForReaders(name) {
			return nil
		}
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			return err
		}
		read++
		for _, f := range findRetired(terms, name, string(text)) {
			t.Error(f)
		}
		return nil
	})
	if err != nil || read < 100 {
		t.Errorf("%d files were read: %v", read, err)
	}
}

// TestRetiredTerms_AreFound puts retired terms in, and wants each to be found where it counts, and nowhere else.
func TestRetiredTerms_AreFound(t *testing.T) {
	terms := readRetiredTerms(t)
	for name, tt := range map[string]struct {
		file, text string
		want       int
	}{
		"a page":                     {"a.md", "Somebody has\nput right what was booked.", 3},
		"an identifier":              {"a.go", "package a\n\nvar kindHeld, nextLook, heldBack int\n", 3},
		"a string":                   {"a.go", "package a\n\nconst a = \"a stray transfer\"\n", 1},
		"a comment that wraps":       {"a.go", "package a\n\n// A row that was put\n// right.\n", 1},
		"an ordinary meaning":        {"a.go", "package a\n\n// mu is held while the world is read.\nvar mu int\n", 0},
		"part of another word":       {"a.go", "package a\n\nvar alteration, bookkeeping, upheld int\n", 0},
		"two comments, not one text": {"a.go", "package a\n\n// A row that was put\n\n// right.\n", 0},
	} {
		if found := findRetired(terms, tt.file, tt.text); len(found) != tt.want {
			t.Errorf("%s: found %q, want %d", name, found, tt.want)
		}
	}
}
