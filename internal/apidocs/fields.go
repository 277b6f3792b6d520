package apidocs

import (
	"fmt"
	"slices"
	"strings"
)

// deepest is how far tables follow objects in objects.
const deepest = 6

// merged is a schema with its references followed and the parts of allOf put together. What is said twice counts as it
// is said first.
func (r *reader) merged(schema object) object {
	schema = r.root.resolve(schema)
	if !schema.has("allOf") {
		return r.chosen(schema)
	}
	var out, properties object
	var required []any
	parts := []object{schema.without("allOf")}
	for _, part := range schema.list("allOf") {
		parts = append(parts, r.merged(objectOf(part)))
	}
	for _, part := range parts {
		properties.items = append(properties.items, part.object("properties").items...)
		required = append(required, part.list("required")...)
		out.items = append(out.items, part.without("properties", "required").items...)
	}
	return out.with("properties", properties.items).with("required", required)
}

// chosen takes the one alternative of oneOf or anyOf that is not null, and notes that null is the other.
func (r *reader) chosen(schema object) object {
	for _, name := range []string{"oneOf", "anyOf"} {
		var first object
		nullable := false
		for _, alternative := range schema.list(name) {
			one := objectOf(alternative)
			switch {
			case one.text("type") == "null":
				nullable = true
			case first.items == nil:
				first = r.merged(one)
			}
		}
		if first.items != nil {
			out := object{slices.Concat(schema.items, first.items)}
			if nullable {
				out = out.with("nullable", true)
			}
			return out
		}
	}
	return schema
}

// fields lists the members of an object, and of the objects in it.
func (r *reader) fields(schema object, path string, depth int) []field {
	if depth > deepest {
		return nil
	}
	var all []field
	required := schema.words("required")
	for _, item := range schema.object("properties").items {
		name := fmt.Sprint(item.Key)
		s := r.merged(objectOf(item.Value))
		about := s.text("description")
		if s.has("x-type") { // the guide says what it is
			about = objectOf(item.Value).text("description")
		}
		f := field{
			Name: path + name, Type: r.typeOf(s), Limits: limits(s), Depth: depth,
			Required: slices.Contains(required, name), About: r.prose(about),
		}
		all = append(all, f)
		all = append(all, r.inner(s, f.Name, depth)...)
	}
	return all
}

// inner lists what is in an object or in the items of a list.
func (r *reader) inner(s object, name string, depth int) []field {
	if s.has("items") {
		return r.inner(r.merged(s.object("items")), name+"[]", depth)
	}
	return r.fields(s, name+".", depth+1)
}

// typeOf names a type in words.
func (r *reader) typeOf(s object) string {
	if name := s.text("x-type"); name != "" {
		return name
	}
	if s.has("const") {
		return "always " + word(s.get("const"))
	}
	types := s.words("type")
	if one := s.text("type"); one != "" {
		types = []string{one}
	}
	if s.has("nullable") {
		types = append(types, "null")
	}
	for i, name := range types {
		switch {
		case name == "string" && s.text("format") == "date-time":
			types[i] = "time"
		case name == "string" && s.text("format") == "email":
			types[i] = "e-mail address"
		case name == "array":
			types[i] = "list"
			if items := r.typeOf(r.merged(s.object("items"))); items != "" {
				types[i] = "list of " + items
			}
		}
	}
	if len(types) == 0 && len(s.object("properties").items) > 0 {
		return "object"
	}
	return strings.Join(types, " or ")
}

// limits says what values a schema takes.
func limits(s object) string {
	var all []string
	if words := slices.DeleteFunc(s.words("enum"), func(w string) bool { return w == "null" }); len(words) > 0 {
		all = append(all, strings.Join(words, ", "))
	}
	all = append(all, span(s.get("minLength"), s.get("maxLength"), "characters"))
	most := s.get("maximum")
	if word(most) == exactMost {
		most = nil
	}
	all = append(all, span(s.get("minimum"), most, ""))
	if v := s.get("exclusiveMinimum"); v != nil {
		all = append(all, "above "+word(v))
	}
	all = append(all, span(s.get("minItems"), s.get("maxItems"), "items"))
	if v := s.get("default"); v != nil {
		all = append(all, "default "+word(v))
	}
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "; ")
}

// exactMost is the largest integer that every JSON reader has exactly. As a limit it says nothing to a reader.
const exactMost = "9007199254740991"

func span(least, most any, unit string) string {
	var said string
	switch {
	case least != nil && most != nil && word(least) != word(most):
		said = word(least) + " to " + word(most)
	case least != nil && most != nil:
		said = "exactly " + word(least)
	case least != nil:
		said = "at least " + word(least)
	case most != nil:
		said = "at most " + word(most)
	default:
		return ""
	}
	return strings.TrimSpace(said + " " + unit)
}
