// Package apidocs draws the documentation of an API from its OpenAPI description: pages that work without a script
// and load nothing from elsewhere.
package apidocs

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
)

//go:embed page.html.tmpl
var templates embed.FS

// Assets hold the style and the script of the pages.
//
//go:embed assets
var Assets embed.FS

// ErrorsPage is the name of the page that lists the error codes.
const ErrorsPage = "errors"

// Render draws all pages, by name. The guide has the empty name, and the other names are those of tags and
// [ErrorsPage]. The code samples call the service at base.
func Render(description []byte, base *url.URL) (map[string][]byte, error) {
	r, err := read(description, base)
	if err != nil {
		return nil, err
	}
	t, err := template.ParseFS(templates, "page.html.tmpl")
	if err != nil {
		return nil, fmt.Errorf("parse the documentation's template: %w", err)
	}
	pages := map[string][]byte{}
	for _, p := range r.pages() {
		var out bytes.Buffer
		if err := t.Execute(&out, p); err != nil {
			return nil, fmt.Errorf("draw the documentation: %w", err)
		}
		pages[p.Name] = out.Bytes()
	}
	return pages, nil
}

// reference is what the description says, as the pages show it.
type reference struct {
	Title, Summary string
	Guide          template.HTML
	Topics         []topic // the headings of the guide
	Sections       []section
	Codes          []code
	Languages      []language
}

type topic struct{ ID, Name string }

// section is a tag with its operations.
type section struct {
	Slug, Name string
	About      template.HTML
	Operations []operation
}

type operation struct {
	ID, Section, Method, Path, Summary string
	About                              template.HTML
	Callers                            []string
	Parameters                         []field
	Body                               []field
	BodyExample                        template.HTML
	Samples                            []sample
	Answers                            []answer
	Errors                             []failure
}

// field is a row of a table: a parameter, or a member of a JSON object at any depth.
type field struct {
	Name, In, Type string
	Limits         string
	Required       bool
	About          template.HTML
	// Depth is how many objects are around it.
	Depth int
}

// Path is the name with places where a line may end.
func (f field) Path() template.HTML {
	return template.HTML(strings.ReplaceAll(string(escaped(f.Name)), ".", ".<wbr>")) //nolint:gosec // escaped
}

// answer is a success.
type answer struct {
	Status, Form string
	About        template.HTML
	Fields       []field
	// Same is the status of an earlier answer that has the same fields, which are then left out here.
	Same    string
	Example template.HTML
}

// failure is an error that one operation has beside the ones that all have.
type failure struct {
	Status string
	Codes  []string
	About  template.HTML
}

// code is an error code, and what the caller is to do about it.
type code struct {
	Name      string
	Statuses  []string
	Meaning   template.HTML
	Remedy    template.HTML
	Common    bool
	Operation []operation // that answer it, unless it is common
}

// page is one page to draw.
type page struct {
	reference

	// Name is the last part of its address.
	Name, Heading string
	Section       *section
}

// IsErrors reports whether it is the page of error codes.
func (p page) IsErrors() bool { return p.Name == ErrorsPage }

func (r reference) pages() []page {
	all := []page{
		{reference: r, Heading: r.Title + " API"},
		{reference: r, Name: ErrorsPage, Heading: "Error codes"},
	}
	for i, s := range r.Sections {
		all = append(all, page{reference: r, Name: s.Slug, Heading: s.Name, Section: &r.Sections[i]})
	}
	return all
}

// slug is a name as part of an address.
func slug(name string) string {
	return strings.Join(strings.Fields(strings.ToLower(name)), "-")
}

// escaped is text for the inside of an element. Unlike package html/template it leaves quotes as they are, of which
// JSON has many.
func escaped(text string) template.HTML {
	return template.HTML(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)) //nolint:gosec // escaped here
}

// common are the shared answers that any request can get: they are described once, and not with each operation.
var common = []string{"BodyTooSlow", "BodyTooLarge", "UnsupportedEncoding", "HeadersTooLarge", "InternalError", "Unavailable", "OtherFailure"}

func isCommon(response object) bool {
	name, shared := strings.CutPrefix(response.text("$ref"), "#/components/responses/")
	return shared && slices.Contains(common, name)
}
