package apidocs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// object is a mapping of the description, in the order of the file.
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

func (o object) has(name string) bool { return o.get(name) != nil }

func (o object) object(name string) object { return objectOf(o.get(name)) }

func (o object) list(name string) []any {
	list, _ := o.get(name).([]any)
	return list
}

func (o object) with(name string, v any) object {
	return object{append(slices.Clone(o.items), yaml.MapItem{Key: name, Value: v})}
}

func (o object) without(names ...string) object {
	return object{slices.DeleteFunc(slices.Clone(o.items), func(item yaml.MapItem) bool {
		return slices.Contains(names, fmt.Sprint(item.Key))
	})}
}

func (o object) text(name string) string {
	s, _ := o.get(name).(string)
	return strings.TrimSpace(s)
}

func (o object) words(name string) []string {
	var words []string
	for _, v := range o.list(name) {
		words = append(words, word(v))
	}
	return words
}

// word writes a value of the description as JSON has it, and a string without quotes.
func word(v any) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(v)
}

// resolve follows a reference within the description. What stands beside the reference counts before what it leads to.
func (o object) resolve(part object) object {
	reference, isReference := strings.CutPrefix(part.text("$ref"), "#/")
	if !isReference {
		return part
	}
	found := o
	for name := range strings.SplitSeq(reference, "/") {
		found = found.object(name)
	}
	found = o.resolve(found)
	if about := part.text("description"); about != "" {
		return object{append(yaml.MapSlice{{Key: "description", Value: about}}, found.items...)}
	}
	return found
}

// compact writes a value as JSON on one line.
func compact(v any) (string, error) {
	text, err := yaml.MarshalWithOptions(v, yaml.JSON())
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := json.Compact(&out, bytes.TrimSpace(text)); err != nil {
		return "", err
	}
	return out.String(), nil
}

// indented writes a value as JSON on several lines, each after the first behind the prefix.
func indented(v any, prefix string) (string, error) {
	text, err := compact(v)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), prefix, "  "); err != nil {
		return "", err
	}
	return out.String(), nil
}
