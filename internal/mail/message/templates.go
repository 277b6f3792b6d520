package message

import (
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io/fs"
	netmail "net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	texttemplate "text/template"
	"time"

	"bursar/internal/mail"
)

//go:embed templates
var builtIn embed.FS

// Each kind has a file KIND.txt, whose first line is "Subject: …", and a file KIND.html, which is put into layout.html.
const (
	layoutFile    = "layout.html"
	subjectPrefix = "Subject: "
)

// Templates are those of all kinds.
type Templates struct {
	text map[mail.Kind]*texttemplate.Template
	html map[mail.Kind]*htmltemplate.Template
}

// Load reads the built-in templates, with the files of a folder in place of those with the same names. An empty folder
// is none. Each template is drawn once with an example, so that the error names the file that is broken.
func Load(folder string) (*Templates, error) {
	names, err := fileNames()
	if err != nil {
		return nil, err
	}
	if err := checkFolder(folder, names); err != nil {
		return nil, err
	}
	t := &Templates{text: make(map[mail.Kind]*texttemplate.Template), html: make(map[mail.Kind]*htmltemplate.Template)}
	for _, d := range mail.Examples() {
		if err := t.load(d.Kind(), folder); err != nil {
			return nil, err
		}
	}
	return t, t.check(&Composer{From: &netmail.Address{Address: "bursar@example.com"}, BaseURL: "https://example.com", Zone: time.UTC})
}

func (t *Templates) load(k mail.Kind, folder string) error {
	text, err := readFile(folder, string(k)+".txt")
	if err != nil {
		return err
	}
	if t.text[k], err = texttemplate.New(string(k) + ".txt").Option("missingkey=error").Parse(text); err != nil {
		return err
	}
	layout, err := readFile(folder, layoutFile)
	if err != nil {
		return err
	}
	page, err := readFile(folder, string(k)+".html")
	if err != nil {
		return err
	}
	t.html[k], err = htmltemplate.New(layoutFile).Option("missingkey=error").Parse(layout)
	if err == nil {
		_, err = t.html[k].New(string(k) + ".html").Parse(page)
	}
	return err
}

// check draws each kind's example.
func (t *Templates) check(c *Composer) error {
	for _, d := range mail.Examples() {
		if _, _, _, err := t.draw(d.Kind(), c.view(d)); err != nil {
			return err
		}
	}
	return nil
}

// draw makes the three parts of a mail.
func (t *Templates) draw(k mail.Kind, v view) (subject, text, html string, err error) {
	if t.text[k] == nil || t.html[k] == nil {
		return "", "", "", fmt.Errorf("message: there is no template %q", k)
	}
	var plain, page strings.Builder
	if err := t.text[k].Execute(&plain, v); err != nil {
		return "", "", "", err
	}
	if err := t.html[k].Execute(&page, v); err != nil {
		return "", "", "", err
	}
	whole := strings.ReplaceAll(plain.String(), "\r\n", "\n")
	first, rest, _ := strings.Cut(whole, "\n")
	subject, isSubject := strings.CutPrefix(first, subjectPrefix)
	if !isSubject || strings.TrimSpace(subject) == "" {
		return "", "", "", fmt.Errorf(`template: %s.txt: the first line is not "Subject: " and a subject`, k)
	}
	return subject, strings.TrimSpace(rest) + "\n", page.String(), nil
}

// fileNames lists the templates that there are.
func fileNames() ([]string, error) {
	entries, err := fs.ReadDir(builtIn, "templates")
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// checkFolder fails for a folder that is not there, and for a file in it that would replace no template.
func checkFolder(folder string, names []string) error {
	if folder == "" {
		return nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		isTemplate := strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, ".html")
		if isTemplate && !slices.Contains(names, name) {
			return fmt.Errorf("template: %s is the name of no template; there are %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// readFile reads a template of the folder, or else the built-in one.
func readFile(folder, name string) (string, error) {
	if folder != "" {
		text, err := os.ReadFile(filepath.Join(folder, name)) //nolint:gosec // the operator names the folder, and we the file
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return string(text), err
		}
	}
	text, err := builtIn.ReadFile("templates/" + name)
	return string(text), err
}
