package ledger

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A projection is a struct whose fields are tagged `journal:"name"`. An entry's data tells the fields that it
// changes, so folding a subject's entries gives the row again. Fields without a tag are not recorded: they say when
// to look next, or belong to other rows. With `journal:"name,hash"` the data tells the SHA-256 of a text.

// Change is the data of an entry that takes a projection from one value to another: a JSON object of the recorded
// fields that differ, with a random salt, so that what was erased can't be guessed from its digest. more is further
// facts that are no part of the row, given as name and value in turn.
func Change[R any](from, to R, more ...any) (string, error) {
	var b bytes.Buffer
	var salt [9]byte
	_, _ = rand.Read(salt[:]) // it never fails
	b.WriteString(`{"salt":"`)
	b.WriteString(base64.RawURLEncoding.EncodeToString(salt[:]))
	b.WriteByte('"')
	if err := appendChange(&b, reflect.ValueOf(&from).Elem(), reflect.ValueOf(&to).Elem()); err != nil {
		return "", err
	}
	for i := 0; i+1 < len(more); i += 2 {
		value, err := json.Marshal(more[i+1])
		if err != nil {
			return "", fmt.Errorf("write an entry's data: %w", err)
		}
		b.WriteString(`,"` + more[i].(string) + `":`)
		b.Write(value)
	}
	b.WriteByte('}')
	return b.String(), nil
}

// Facts is the data of an entry that is about no row: names and values in turn.
func Facts(more ...any) (string, error) { return Change(struct{}{}, struct{}{}, more...) }

// Differs reports whether two rows differ in a recorded field, and names the first that does. [Compare] is for a row and
// what its entries fold to.
func Differs[R any](a, b R) (field string, differs bool) {
	from, to := reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()
	for _, f := range recorded(from.Type()) {
		if f.value(from) != f.value(to) {
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
		if f.folded(has) != f.value(is) {
			return Mismatch{f.name, is.Field(f.index).Interface(), has.Field(f.index).Interface()}, true
		}
	}
	return Mismatch{}, false
}

// Apply changes a projection by what an entry's data says. What the data tells beside recorded fields is left out.
func Apply[R any](data string, to *R) error {
	var told map[string]json.RawMessage
	if err := json.Unmarshal([]byte(data), &told); err != nil {
		return fmt.Errorf("read an entry's data: %w", err)
	}
	if _, isErased := told["erased"]; isErased { // nobody could tell what it changed
		return errors.New("the data was erased")
	}
	v := reflect.ValueOf(to).Elem()
	for _, f := range recorded(v.Type()) {
		raw, isTold := told[f.name]
		if !isTold {
			continue
		}
		if err := f.set(v, raw); err != nil {
			return fmt.Errorf("read %s of an entry's data: %w", f.name, err)
		}
	}
	return nil
}

// Fold is a projection after the entries of its subject, in the order of the journal. What a person decided or had
// repaired is recorded by entries of its own, which change nothing by themselves.
func Fold[R any](first R, entries []Entry) (R, error) {
	for _, e := range entries {
		if e.Type == AdminDecided || e.Type == Repaired {
			continue
		}
		if err := Apply(e.Data, &first); err != nil {
			return first, fmt.Errorf("entry %d of %s: %w", e.Number, e.Owner, err)
		}
	}
	return first, nil
}

func appendChange(b *bytes.Buffer, from, to reflect.Value) error {
	for _, f := range recorded(from.Type()) {
		value := f.value(to)
		if f.value(from) == value {
			continue
		}
		b.WriteString(`,"` + f.name + `":`)
		switch v := value.(type) {
		case int64:
			b.Write(strconv.AppendInt(b.AvailableBuffer(), v, 10))
		case bool:
			b.Write(strconv.AppendBool(b.AvailableBuffer(), v))
		default:
			text, err := json.Marshal(v)
			if err != nil {
				return fmt.Errorf("write %s into an entry's data: %w", f.name, err)
			}
			b.Write(text)
		}
	}
	return nil
}

// recordedField is a field with a journal tag.
type recordedField struct {
	name   string
	index  int
	hashed bool
}

var fieldsOf sync.Map // reflect.Type → []recordedField

func recorded(t reflect.Type) []recordedField {
	if fields, known := fieldsOf.Load(t); known {
		return fields.([]recordedField)
	}
	var fields []recordedField
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("journal"); tag != "" {
			name, option, _ := strings.Cut(tag, ",")
			if f := t.Field(i).Type; f != timeType && f.Kind() != reflect.String && f.Kind() != reflect.Bool && !reflect.Zero(f).CanInt() {
				panic(fmt.Sprintf("ledger: field %s of %s can't be recorded: it is no text, integer, bool or time", t.Field(i).Name, t))
			}
			fields = append(fields, recordedField{name, i, option == "hash"})
		}
	}
	fieldsOf.Store(t, fields)
	return fields
}

var timeType = reflect.TypeFor[time.Time]()

// hashPrefix begins a text that stands for its hash. Only entries and what they fold to have such texts.
const hashPrefix = "sha256:"

// folded is [recordedField.value] of a value that was folded: what was recorded as a hash is that hash.
func (f recordedField) folded(of reflect.Value) any {
	if text := of.Field(f.index); f.hashed && strings.HasPrefix(text.String(), hashPrefix) {
		return text.String()
	}
	return f.value(of)
}

// value is the field of a row as it is recorded: an int64, a bool or a string. Times are microseconds since 1970, 0 for none.
func (f recordedField) value(of reflect.Value) any {
	v := of.Field(f.index)
	switch {
	case v.Type() == timeType:
		if t := v.Interface().(time.Time); !t.IsZero() {
			return t.UnixMicro()
		}
		return int64(0)
	case v.CanInt():
		return v.Int()
	case v.Kind() == reflect.Bool:
		return v.Bool()
	case f.hashed && v.String() != "":
		return hashPrefix + string(HashOf(v.String()))
	default:
		return v.String()
	}
}

func (f recordedField) set(of reflect.Value, raw []byte) error {
	v := of.Field(f.index)
	if v.Type() == timeType {
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
