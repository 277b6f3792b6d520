package apidocs

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// language is one that samples are written in.
type language struct{ ID, Name string }

var languages = []language{{"curl", "curl"}, {"js", "JavaScript"}, {"python", "Python"}, {"go", "Go"}}

// sample is code that calls an operation. It runs as it stands, given the credential in an environment variable.
type sample struct {
	Language string
	Text     template.HTML
}

// call is what a sample does.
type call struct {
	operation, method, path string
	parameters              []object
	body                    any
	// key is the environment variable of the credential, or "".
	key    string
	isJSON bool
}

// header is one of a sample. Its value follows a prefix and may be that of an environment variable.
type header struct{ name, value, variable string }

func (r *reader) samples(c call) []sample {
	address := r.base.ResolveReference(&url.URL{Path: "/"}).String()
	address = strings.TrimSuffix(address, "/") + c.path
	query := url.Values{}
	var headers []header
	if c.key != "" {
		headers = append(headers, header{"Authorization", "Bearer ", c.key})
	}
	if c.body != nil {
		headers = append(headers, header{"Content-Type", "application/json", ""})
	}
	for _, p := range c.parameters {
		name := p.text("name")
		required, _ := p.get("required").(bool)
		switch {
		case p.text("in") == "path":
			address = strings.ReplaceAll(address, "{"+name+"}", url.PathEscape(r.exampleOf(p)))
		case name == "Idempotency-Key":
			headers = append(headers, header{name, c.operation + "-1", ""})
		case required && p.text("in") == "query":
			query.Set(name, r.exampleOf(p))
		case required:
			headers = append(headers, header{name, r.exampleOf(p), ""})
		}
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	var all []sample
	for _, write := range []struct {
		language string
		text     func(call, string, []header) (string, error)
	}{{"curl", curl}, {"js", javaScript}, {"python", python}, {"go", goProgram}} {
		text, err := write.text(c, address, headers)
		r.keep(err)
		all = append(all, sample{write.language, escaped(text)})
	}
	return all
}

// identifier is a pattern such as ^pyt_[0-9A-Za-z]{24}$.
var identifier = regexp.MustCompile(`^\^([a-z]+_)\[0-9A-Za-z\]\{24\}\$$`)

// exampleOf is a value for a parameter.
func (r *reader) exampleOf(p object) string {
	schema := r.merged(p.object("schema"))
	for _, o := range []object{p, schema} {
		if v := o.get("example"); v != nil {
			return word(v)
		}
	}
	if all := schema.words("examples"); len(all) > 0 {
		return all[0]
	}
	if m := identifier.FindStringSubmatch(schema.text("pattern")); m != nil {
		return m[1] + "0TMv3kQx8hPq2Zb7Lr4Wd9Yc"
	}
	return strings.ToUpper(p.text("name"))
}

func curl(c call, address string, headers []header) (string, error) {
	parts := []string{"curl " + shellQuoted(address)}
	if c.method != "GET" && (c.body == nil || c.method != "POST") {
		parts[0] = "curl -X " + c.method + " " + shellQuoted(address)
	}
	for _, h := range headers {
		if h.variable != "" {
			parts = append(parts, fmt.Sprintf(`-H "%s: %s$%s"`, h.name, h.value, h.variable))
		} else {
			parts = append(parts, "-H "+shellQuoted(h.name+": "+h.value))
		}
	}
	if c.body != nil {
		body, err := indented(c.body, "  ")
		if err != nil {
			return "", err
		}
		parts = append(parts, "-d "+shellQuoted(body))
	}
	return strings.Join(parts, " \\\n  "), nil
}

func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quoted is a string for JavaScript, Python and Go.
func quoted(s string) string {
	text, _ := json.Marshal(s) //nolint:errchkjson // a string
	return string(text)
}

func javaScript(c call, address string, headers []header) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "const response = await fetch(%s", quoted(address))
	if c.method != "GET" || len(headers) > 0 {
		b.WriteString(", {\n")
		if c.method != "GET" {
			fmt.Fprintf(&b, "  method: %s,\n", quoted(c.method))
		}
		if len(headers) > 0 {
			b.WriteString("  headers: {\n")
			for _, h := range headers {
				value := quoted(h.value)
				if h.variable != "" {
					value = "`" + h.value + "${process.env." + h.variable + "}`"
				}
				fmt.Fprintf(&b, "    %s: %s,\n", quoted(h.name), value)
			}
			b.WriteString("  },\n")
		}
		if c.body != nil {
			body, err := indented(c.body, "  ")
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "  body: JSON.stringify(%s),\n", body)
		}
		b.WriteString("}")
	}
	read := "text"
	if c.isJSON {
		read = "json"
	}
	fmt.Fprintf(&b, ");\nconsole.log(response.status, await response.%s());", read)
	return b.String(), nil
}

func python(c call, address string, headers []header) (string, error) {
	var b strings.Builder
	usesKey := false
	var arguments []string
	if len(headers) > 0 {
		var lines []string
		for _, h := range headers {
			switch {
			case h.variable != "":
				usesKey = true
				lines = append(lines, fmt.Sprintf("        %s: %s + os.environ[%s],", quoted(h.name), quoted(h.value), quoted(h.variable)))
			case h.name != "Content-Type": // which json= sets
				lines = append(lines, fmt.Sprintf("        %s: %s,", quoted(h.name), quoted(h.value)))
			}
		}
		if len(lines) > 0 {
			arguments = append(arguments, "    headers={\n"+strings.Join(lines, "\n")+"\n    },\n")
		}
	}
	if c.body != nil {
		var literal strings.Builder
		pythonLiteral(&literal, c.body, "    ")
		arguments = append(arguments, "    json="+literal.String()+",\n")
	}
	if usesKey {
		b.WriteString("import os\n\n")
	}
	b.WriteString("import requests\n\n")
	fmt.Fprintf(&b, "response = requests.%s(\n    %s,\n%s)\n", strings.ToLower(c.method), quoted(address), strings.Join(arguments, ""))
	if c.isJSON {
		b.WriteString("print(response.status_code, response.json())")
	} else {
		b.WriteString("print(response.status_code, response.text)")
	}
	return b.String(), nil
}

// pythonLiteral writes a JSON value as Python has it.
func pythonLiteral(b *strings.Builder, v any, indent string) {
	switch v := v.(type) {
	case yaml.MapSlice:
		b.WriteString("{\n")
		for _, item := range v {
			fmt.Fprintf(b, "%s    %s: ", indent, quoted(fmt.Sprint(item.Key)))
			pythonLiteral(b, item.Value, indent+"    ")
			b.WriteString(",\n")
		}
		b.WriteString(indent + "}")
	case []any:
		b.WriteString("[")
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			pythonLiteral(b, item, indent)
		}
		b.WriteString("]")
	case string:
		b.WriteString(quoted(v))
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case nil:
		b.WriteString("None")
	default:
		fmt.Fprint(b, v)
	}
}

func goProgram(c call, address string, headers []header) (string, error) {
	imports := []string{"fmt", "io", "net/http"}
	if c.key != "" {
		imports = append(imports, "os")
	}
	body := "nil"
	if c.body != nil {
		imports = append(imports, "strings")
		text, err := indented(c.body, "\t")
		if err != nil {
			return "", err
		}
		body = "strings.NewReader(" + goQuoted(text) + ")"
	}
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n")
	for _, name := range imports {
		fmt.Fprintf(&b, "\t%q\n", name)
	}
	fmt.Fprintf(&b, ")\n\nfunc main() {\n\trequest, err := http.NewRequest(%q, %s, %s)\n", c.method, quoted(address), body)
	b.WriteString("\tif err != nil {\n\t\tpanic(err)\n\t}\n")
	for _, h := range headers {
		value := quoted(h.value)
		if h.variable != "" {
			value += "+os.Getenv(" + quoted(h.variable) + ")"
		}
		fmt.Fprintf(&b, "\trequest.Header.Set(%s, %s)\n", quoted(h.name), value)
	}
	b.WriteString("\tresponse, err := http.DefaultClient.Do(request)\n\tif err != nil {\n\t\tpanic(err)\n\t}\n" +
		"\tdefer response.Body.Close()\n\tanswer, err := io.ReadAll(response.Body)\n" +
		"\tfmt.Println(response.Status, string(answer), err)\n}")
	return b.String(), nil
}

// goQuoted is a string for Go: raw where that can be.
func goQuoted(s string) string {
	if strings.Contains(s, "`") {
		return strconv.Quote(s)
	}
	return "`" + s + "`"
}
