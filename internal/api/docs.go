package api

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

// description is the API in OpenAPI 3.1, written by hand.
//
//go:embed openapi.yaml
var description []byte

//go:embed docs
var docsFiles embed.FS

// documents are the description as it is served.
type documents struct {
	json []byte
	page []byte
}

// lazyDocuments converts the description when it is first asked for.
func lazyDocuments() func() (documents, error) {
	return sync.OnceValues(func() (documents, error) {
		text, err := yaml.YAMLToJSON(description)
		if err != nil {
			return documents{}, fmt.Errorf("read openapi.yaml: %w", err)
		}
		page, err := renderPage()
		return documents{json: text, page: page}, err
	})
}

func (a *api) openAPI(w http.ResponseWriter, r *http.Request) {
	docs, err := a.docs()
	if err != nil {
		a.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	writeBytes(w, http.StatusOK, "application/json", docs.json)
}

func (a *api) docsPage(w http.ResponseWriter, r *http.Request) {
	docs, err := a.docs()
	if err != nil {
		a.fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	writeBytes(w, http.StatusOK, "text/html; charset=utf-8", docs.page)
}

// docsFile serves the page's style and script.
func (a *api) docsFile(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	contentType := mime.TypeByExtension(path.Ext(name))
	text, err := docsFiles.ReadFile("docs/" + name)
	if err != nil || strings.HasSuffix(name, ".tmpl") {
		a.fail(w, r, errNoRoute)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	writeBytes(w, http.StatusOK, contentType, text)
}

// page is what the documentation shows, in the order of the description.
type page struct {
	Title    string
	Summary  prose
	About    []prose
	Sections []section
}

type section struct {
	Name       string
	About      prose
	Operations []operation
}

type operation struct {
	ID, Method, Path, Summary string
	About                     []prose
	Callers                   []string
	Parameters                []parameter
	Body                      string
	Answers                   []answer
}

type parameter struct {
	Name, In string
	Required bool
	About    prose
}

type answer struct {
	Status  string
	About   prose
	Example string
}

// prose is text with what little of Markdown the description uses: `code` and **stress**.
type prose []span

type span struct {
	Text         string
	Code, Stress bool
}

func parseProse(text string) prose {
	var p prose
	for i, outside := range strings.Split(text, "`") {
		if i%2 == 1 {
			p = append(p, span{Text: outside, Code: true})
			continue
		}
		for j, part := range strings.Split(outside, "**") {
			if part != "" {
				p = append(p, span{Text: part, Stress: j%2 == 1})
			}
		}
	}
	return p
}

func renderPage() ([]byte, error) {
	var root object
	if err := yaml.UnmarshalWithOptions(description, &root.items, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	t, err := template.ParseFS(docsFiles, "docs/page.html.tmpl")
	if err != nil {
		return nil, fmt.Errorf("parse the documentation's template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, root.page()); err != nil {
		return nil, fmt.Errorf("render the documentation: %w", err)
	}
	return out.Bytes(), nil
}

// object is a mapping of the description, which is the root's part for references.
type object struct{ items yaml.MapSlice }

func objectOf(v any) object {
	items, _ := v.(yaml.MapSlice)
	return object{items}
}

func (o object) get(name string) any {
	for _, item := range o.items {
		if item.Key == name {
			return item.Value
		}
	}
	return nil
}

func (o object) object(name string) object { return objectOf(o.get(name)) }

func (o object) text(name string) string {
	s, _ := o.get(name).(string)
	return strings.TrimSpace(s)
}

func (o object) list(name string) []any {
	list, _ := o.get(name).([]any)
	return list
}

func (o object) prose(name string) prose { return parseProse(o.text(name)) }

// paragraphs splits a description's text at its empty lines.
func (o object) paragraphs(name string) []prose {
	var all []prose
	for paragraph := range strings.SplitSeq(o.text(name), "\n\n") {
		if p := parseProse(paragraph); len(p) > 0 {
			all = append(all, p)
		}
	}
	return all
}

// resolve follows a reference within the description.
func (o object) resolve(part object) object {
	reference, isReference := strings.CutPrefix(part.text("$ref"), "#/")
	if !isReference {
		return part
	}
	found := o
	for name := range strings.SplitSeq(reference, "/") {
		found = found.object(name)
	}
	return found
}

func (o object) page() page {
	info := o.object("info")
	p := page{Title: info.text("title"), Summary: info.prose("summary"), About: info.paragraphs("description")}
	for _, tag := range o.list("tags") {
		tag := objectOf(tag)
		p.Sections = append(p.Sections, section{Name: tag.text("name"), About: tag.prose("description")})
	}
	for _, path := range o.object("paths").items {
		for _, method := range objectOf(path.Value).items {
			op := objectOf(method.Value)
			tags := op.list("tags")
			for i := range p.Sections {
				if len(tags) > 0 && tags[0] == p.Sections[i].Name {
					p.Sections[i].Operations = append(p.Sections[i].Operations, o.operation(path.Key, method.Key, op))
				}
			}
		}
	}
	return p
}

func (o object) operation(path, method any, op object) operation {
	shown := operation{
		ID:      op.text("operationId"),
		Method:  strings.ToUpper(fmt.Sprint(method)),
		Path:    fmt.Sprint(path),
		Summary: op.text("summary"),
		About:   op.paragraphs("description"),
		Body:    example(o.resolve(op.object("requestBody"))),
	}
	for _, scheme := range op.list("security") {
		for _, item := range objectOf(scheme).items {
			shown.Callers = append(shown.Callers, callers[fmt.Sprint(item.Key)])
		}
	}
	for _, item := range op.list("parameters") {
		item := o.resolve(objectOf(item))
		required, _ := item.get("required").(bool)
		shown.Parameters = append(shown.Parameters, parameter{item.text("name"), item.text("in"), required, item.prose("description")})
	}
	for _, item := range op.object("responses").items {
		response := o.resolve(objectOf(item.Value))
		shown.Answers = append(shown.Answers, answer{fmt.Sprint(item.Key), response.prose("description"), example(response)})
	}
	return shown
}

// callers says in words what each security scheme takes.
var callers = map[string]string{
	"token":            "access token",
	"cookie":           "sign-in cookie",
	"serviceKey":       "service key",
	"serviceKeyHeader": "service key in X-Api-Key",
}

// example is the JSON example of a request's body or of an answer, if there is one.
func example(o object) string {
	value := o.object("content").object("application/json").get("example")
	if value == nil {
		return ""
	}
	text, err := yaml.MarshalWithOptions(value, yaml.JSON())
	if err != nil {
		return ""
	}
	var indented bytes.Buffer
	if json.Indent(&indented, bytes.TrimSpace(text), "", "  ") != nil {
		return ""
	}
	return indented.String()
}
