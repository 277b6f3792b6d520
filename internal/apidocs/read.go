package apidocs

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// reader turns the description into a reference. Its first failure is kept, so that its methods return what they read.
type reader struct {
	root     object
	base     *url.URL
	markdown goldmark.Markdown
	err      error
}

func read(description []byte, base *url.URL) (reference, error) {
	r := &reader{base: base, markdown: goldmark.New(
		goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))}
	if err := yaml.UnmarshalWithOptions(description, &r.root.items, yaml.UseOrderedMap()); err != nil {
		return reference{}, fmt.Errorf("read the description: %w", err)
	}
	info := r.root.object("info")
	ref := reference{Title: info.text("title"), Summary: info.text("summary"), Languages: languages}
	ref.Guide, ref.Topics = r.guide(info.text("description"))
	for _, tag := range r.root.list("tags") {
		tag := objectOf(tag)
		ref.Sections = append(ref.Sections, section{
			Slug: slug(tag.text("name")), Name: tag.text("name"), About: r.prose(tag.text("description")),
		})
	}
	r.operations(ref.Sections)
	ref.Codes = r.codes(ref.Sections)
	return ref, r.err
}

// keep remembers the first failure.
func (r *reader) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

// prose is Markdown as HTML. Goldmark leaves out HTML that is in the text.
func (r *reader) prose(markdown string) template.HTML {
	if markdown == "" {
		return ""
	}
	var out bytes.Buffer
	r.keep(r.markdown.Convert([]byte(markdown), &out))
	return template.HTML(out.String()) //nolint:gosec // of our own description, and without raw HTML
}

// guide is the text before the operations, with its headings.
func (r *reader) guide(markdown string) (template.HTML, []topic) {
	source := []byte(markdown)
	document := r.markdown.Parser().Parse(text.NewReader(source))
	var topics []topic
	for node := document.FirstChild(); node != nil; node = node.NextSibling() {
		heading, is := node.(*ast.Heading)
		if !is || heading.Level != 2 {
			continue
		}
		id, _ := heading.AttributeString("id")
		name, _ := id.([]byte)
		topics = append(topics, topic{string(name), string(heading.Lines().Value(source))})
	}
	var out bytes.Buffer
	r.keep(r.markdown.Renderer().Render(&out, source, document))
	return template.HTML(out.String()), topics //nolint:gosec // as in prose
}

// operations reads every operation into the section of its tag.
func (r *reader) operations(sections []section) {
	for _, path := range r.root.object("paths").items {
		for _, method := range objectOf(path.Value).items {
			op := objectOf(method.Value)
			i := slices.IndexFunc(sections, func(s section) bool { return slices.Contains(op.words("tags"), s.Name) })
			if i < 0 {
				r.keep(fmt.Errorf("%s %s has no tag that the description names", method.Key, path.Key))
				return
			}
			o := r.operation(fmt.Sprint(path.Key), strings.ToUpper(fmt.Sprint(method.Key)), op)
			o.Section = sections[i].Slug
			sections[i].Operations = append(sections[i].Operations, o)
		}
	}
}

func (r *reader) operation(path, method string, op object) operation {
	body := r.root.resolve(op.object("requestBody")).object("content").object("application/json")
	o := operation{
		ID: op.text("operationId"), Method: method, Path: path, Summary: op.text("summary"),
		About: r.prose(op.text("description")),
		Body:  r.fields(r.merged(body.object("schema")), "", 0),
	}
	if v := body.get("example"); v != nil {
		example, err := indented(v, "")
		r.keep(err)
		o.BodyExample = escaped(example)
	}
	for _, scheme := range op.list("security") {
		for _, item := range objectOf(scheme).items {
			o.Callers = append(o.Callers, callers[fmt.Sprint(item.Key)])
		}
	}
	var parameters []object
	for _, item := range op.list("parameters") {
		p := r.root.resolve(objectOf(item))
		parameters = append(parameters, p)
		required, _ := p.get("required").(bool)
		s := r.merged(p.object("schema"))
		o.Parameters = append(o.Parameters, field{
			Name: p.text("name"), In: p.text("in"), Required: required, About: r.prose(p.text("description")),
			Type: r.typeOf(s), Limits: limits(s),
		})
	}
	isJSON := true
	for _, item := range op.object("responses").items {
		status := fmt.Sprint(item.Key)
		response := objectOf(item.Value)
		if isCommon(response) {
			continue
		}
		response = r.root.resolve(response)
		if status >= "400" && r.codesOf(response) != nil {
			o.Errors = append(o.Errors, failure{status, r.codesOf(response), r.prose(response.text("description"))})
			continue
		}
		a := r.answer(status, response)
		for _, other := range o.Answers { // as of a request that was repeated
			if len(a.Fields) > 0 && a.Same == "" && slices.Equal(a.Fields, other.Fields) {
				a.Fields, a.Same = nil, other.Status
			}
		}
		isJSON = isJSON && (a.Form == "" || a.Form == "application/json")
		o.Answers = append(o.Answers, a)
	}
	o.Samples = r.samples(call{
		method: method, path: path, body: body.get("example"), parameters: parameters,
		key: keyOf(op), isJSON: isJSON, operation: o.ID,
	})
	return o
}

// answer reads a success. The fields are those in the envelope's data, where there is an envelope.
func (r *reader) answer(status string, response object) answer {
	a := answer{Status: status, About: r.prose(response.text("description"))}
	for _, content := range response.object("content").items {
		if a.Form = fmt.Sprint(content.Key); a.Form != "application/json" {
			continue
		}
		media := objectOf(content.Value)
		schema := r.merged(media.object("schema"))
		if properties := schema.object("properties"); properties.has("success") {
			a.Fields = r.fields(r.merged(properties.object("data")), "", 0)
		} else {
			a.Fields = r.fields(schema, "", 0)
		}
		if v := media.get("example"); v != nil {
			example, err := indented(v, "")
			r.keep(err)
			a.Example = escaped(example)
		}
		break
	}
	return a
}

// codesOf are the error codes of an answer.
func (r *reader) codesOf(response object) []string {
	schema := response.object("content").object("application/json").object("schema")
	for _, part := range schema.list("allOf") {
		if words := objectOf(part).object("properties").object("code").words("enum"); words != nil {
			return words
		}
	}
	return nil
}

// codes is the index of all error codes. What each means and what to do is in the description, under x-error-codes.
func (r *reader) codes(sections []section) []code {
	var all []code
	for _, item := range r.root.object("x-error-codes").items {
		said := objectOf(item.Value)
		all = append(all, code{
			Name: fmt.Sprint(item.Key), Statuses: said.words("statuses"),
			Meaning: r.prose(said.text("means")), Remedy: r.prose(said.text("do")),
			Common: said.has("statuses"),
		})
	}
	find := func(name string) *code {
		i := slices.IndexFunc(all, func(c code) bool { return c.Name == name })
		if i < 0 {
			r.keep(fmt.Errorf("x-error-codes lacks %s: say there what it means and what the caller is to do", name))
			return &code{}
		}
		return &all[i]
	}
	add := func(name, status string) *code {
		c := find(name)
		if !slices.Contains(c.Statuses, status) {
			c.Statuses = append(c.Statuses, status)
		}
		return c
	}
	for _, s := range sections {
		for _, o := range s.Operations {
			for _, f := range o.Errors {
				for _, name := range f.Codes {
					c := add(name, f.Status)
					c.Operation = append(c.Operation, o)
				}
			}
		}
	}
	for _, path := range r.root.object("paths").items {
		for _, method := range objectOf(path.Value).items {
			for _, item := range objectOf(method.Value).object("responses").items {
				response := objectOf(item.Value)
				if !isCommon(response) {
					continue
				}
				for _, name := range r.codesOf(r.root.resolve(response)) {
					add(name, fmt.Sprint(item.Key)).Common = true
				}
			}
		}
	}
	for _, c := range all {
		if len(c.Statuses) == 0 {
			r.keep(fmt.Errorf("x-error-codes has %s, which no operation answers", c.Name))
		}
	}
	return all
}

// callers says in words what each security scheme takes.
var callers = map[string]string{
	"token":            "an access token",
	"cookie":           "the sign-in cookie",
	"serviceKey":       "a service key",
	"serviceKeyHeader": "a service key in X-Api-Key",
}

// keyOf is the environment variable that has the credential of an operation in samples, or "".
func keyOf(op object) string {
	for _, scheme := range op.list("security") {
		for _, item := range objectOf(scheme).items {
			switch item.Key {
			case "token":
				return "TOKEN"
			case "serviceKey":
				return "SERVICE_KEY"
			}
		}
	}
	return ""
}
