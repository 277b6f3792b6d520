package ledger

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A projection is a struct whose fields are tagged `journal:"name"`. An entry's data tells the fields that it
// changes, so folding a subject's entries gives the row again. Fields without a tag are not recorded: they say when
// to look next, or belong to other rows. With `journal:"name,hash"` the data tells the SHA-256 of a text.

// Patch is the data of an entry that takes a projection from one value to another: a JSON object of the recorded
// fields that differ, with a random salt, so that the data can't be guessed from its digest. more is further
// facts that are no part of the row, given as name and value in turn.
func Patch[R any](from, to R, more ...any) (string, error) {
	var buffer [512]byte
	var salt [9]byte
	_, _ = rand.Read(salt[:]) // it never fails
	b := append(buffer[:0], `{"salt":"`...)
	b = append(base64.RawURLEncoding.AppendEncode(b, salt[:]), '"')
	b = appendPatch(b, reflect.ValueOf(&from).Elem(), reflect.ValueOf(&to).Elem())
	for i := 0; i+1 < len(more); i += 2 {
		value, err := json.Marshal(more[i+1])
		if err != nil {
			return "", fmt.Errorf("write an entry's data: %w", err)
		}
		b = append(appendName(b, more[i].(string)), value...)
	}
	return string(append(b, '}')), nil
}

// Facts is the data of an entry that is about no row: names and values in turn.
func Facts(more ...any) (string, error) { return Patch(struct{}{}, struct{}{}, more...) }

// Differs reports whether two rows differ in a recorded field, and names the first that does. [Compare] is for a row and
// what its entries fold to.
func Differs[R any](a, b R) (field string, differs bool) {
	from, to := reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()
	for _, f := range recorded(from.Type()) {
		if !f.same(from, to) {
			return f.name, true
		}
	}
	return "", false
}

// Mismatch is a recorded field of a row that is not what the row's entries fold to.
type Mismatch struct {
	Field string
	// Row and Journal are what the field is, and what it has to be.
	Row, Journal any
}

func (m Mismatch) Error() string { return "its " + m.Field + " is not what the journal says" }

// Compare finds the first recorded field in which a row is not what was folded from its entries. Of a text that the
// journal has only the hash of, the row's is hashed whatever it looks like, so that no text stands for its own hash.
func Compare[R any](folded, row R) (m Mismatch, differs bool) {
	has, is := reflect.ValueOf(&folded).Elem(), reflect.ValueOf(&row).Elem()
	for _, f := range recorded(has.Type()) {
		if !f.sameAsFolded(has, is) {
			return Mismatch{f.name, is.Field(f.index).Interface(), has.Field(f.index).Interface()}, true
		}
	}
	return Mismatch{}, false
}

// Apply changes a projection by what an entry's data says. What the data tells beside recorded fields is left out.
func Apply[R any](data string, to *R) error {
	var patch map[string]json.RawMessage
	if err := json.Unmarshal([]byte(data), &patch); err != nil {
		return fmt.Errorf("read an entry's data: %w", err)
	}
	v := reflect.ValueOf(to).Elem()
	for _, f := range recorded(v.Type()) {
		raw, isThere := patch[f.name]
		if !isThere {
			continue
		}
		if err := f.set(v, raw); err != nil {
			return fmt.Errorf("read %s of an entry's data: %w", f.name, err)
		}
	}
	return nil
}

// Records lists the types of entries that record what a person decided or had repaired. They change no projection by
// themselves.
var Records = []Type{AdminDecided, Repaired}

// ApplyEntry changes a projection by an entry about its subject.
func ApplyEntry[R any](e Entry, to *R) error {
	if slices.Contains(Records, e.Type) {
		return nil
	}
	if err := Apply(e.Data, to); err != nil {
		return fmt.Errorf("entry %d of %s: %w", e.Number, e.Owner, err)
	}
	return nil
}

// Fold is a projection after the entries of its subject, in the order of the journal.
func Fold[R any](first R, entries []Entry) (R, error) {
	for _, e := range entries {
		if err := ApplyEntry(e, &first); err != nil {
			return first, err
		}
	}
	return first, nil
}

func appendPatch(b []byte, from, to reflect.Value) []byte {
	for _, f := range recorded(from.Type()) {
		if f.same(from, to) {
			continue
		}
		b = f.appendValue(appendName(b, f.name), to)
	}
	return b
}

func appendName(b []byte, name string) []byte {
	return append(append(append(b, `,"`...), name...), `":`...)
}

// appendText writes a text as JSON.
func appendText(b []byte, text string) []byte {
	plain := func(c byte) bool {
		return c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	for i := range len(text) {
		if !plain(text[i]) {
			quoted, _ := json.Marshal(text) //nolint:errchkjson // a text never fails
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

// recordedField is a field with a journal tag.
type recordedField struct {
	name   string
	index  int
	kind   fieldKind
	hashed bool
}

type fieldKind int

const (
	textField fieldKind = iota
	integerField
	boolField
	timeField
)

var fieldsOf sync.Map // reflect.Type → []recordedField

func recorded(t reflect.Type) []recordedField {
	if fields, known := fieldsOf.Load(t); known {
		return fields.([]recordedField)
	}
	var fields []recordedField
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("journal"); tag != "" {
			name, option, _ := strings.Cut(tag, ",")
			fields = append(fields, recordedField{name, i, kindOf(t.Field(i)), option == "hash"})
		}
	}
	fieldsOf.Store(t, fields)
	return fields
}

func kindOf(f reflect.StructField) fieldKind {
	switch {
	case f.Type == reflect.TypeFor[time.Time]():
		return timeField
	case f.Type.Kind() == reflect.String:
		return textField
	case f.Type.Kind() == reflect.Bool:
		return boolField
	case reflect.Zero(f.Type).CanInt():
		return integerField
	default:
		panic(fmt.Sprintf("ledger: field %s can't be recorded: it is no text, integer, bool or time", f.Name))
	}
}

// hashPrefix begins a text that stands for its hash. Only entries and what they fold to have such texts.
const hashPrefix = "sha256:"

// sameAsFolded is [recordedField.same] of what was folded and a row: what was recorded as a hash is that hash.
func (f recordedField) sameAsFolded(folded, row reflect.Value) bool {
	if text := folded.Field(f.index); f.hashed && strings.HasPrefix(text.String(), hashPrefix) {
		return text.String() == f.text(row)
	}
	return f.same(folded, row)
}

// same reports whether two rows are recorded alike in the field.
func (f recordedField) same(a, b reflect.Value) bool {
	switch f.kind {
	case timeField, integerField:
		return f.number(a) == f.number(b)
	case boolField:
		return a.Field(f.index).Bool() == b.Field(f.index).Bool()
	default:
		return f.text(a) == f.text(b)
	}
}

// appendValue writes the field as it is recorded.
func (f recordedField) appendValue(b []byte, of reflect.Value) []byte {
	switch f.kind {
	case timeField, integerField:
		return strconv.AppendInt(b, f.number(of), 10)
	case boolField:
		return strconv.AppendBool(b, of.Field(f.index).Bool())
	default:
		return appendText(b, f.text(of))
	}
}

// number is an integer, or a time in microseconds since 1970, 0 for none.
func (f recordedField) number(of reflect.Value) int64 {
	v := of.Field(f.index)
	if f.kind == integerField {
		return v.Int()
	}
	if t := v.Addr().Interface().(*time.Time); !t.IsZero() { // the time itself would be copied to the heap
		return t.UnixMicro()
	}
	return 0
}

// text is a text, or what stands for it where only its hash is recorded.
func (f recordedField) text(of reflect.Value) string {
	text := of.Field(f.index).String()
	if f.hashed && text != "" {
		return hashPrefix + string(HashOf(text))
	}
	return text
}

func (f recordedField) set(of reflect.Value, raw []byte) error {
	v := of.Field(f.index)
	if f.kind == timeField {
		var micros int64
		if err := json.Unmarshal(raw, &micros); err != nil {
			return err
		}
		t := time.Time{}
		if micros != 0 {
			t = time.UnixMicro(micros).UTC()
		}
		v.Set(reflect.ValueOf(t))
		return nil
	}
	return json.Unmarshal(raw, v.Addr().Interface())
}
