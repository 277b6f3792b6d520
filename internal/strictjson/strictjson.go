// Package strictjson reads JSON objects as strictly as RFC 7493 asks: two readers of an accepted text can't understand it differently.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds how deep a text may nest; ours are flat.
const maxDepth = 32

// errObject is for a text that is no object. Each error of this package says what is wrong as the end of a sentence about the text.
var errObject = errors.New("must be one JSON object")

// Object reads a JSON object and returns the text of each of its members. It refuses what is not UTF-8, half a surrogate pair, a
// repeated name, and anything after the object.
func Object(text []byte) (map[string][]byte, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("is not valid UTF-8")
	}
	if !json.Valid(text) {
		return nil, errors.New("is not valid JSON; it must be one JSON object")
	}
	s := scanner{text: text}
	s.skipSpace()
	if s.text[s.at] != '{' {
		return nil, errObject
	}
	return s.object(0)
}

// scanner walks over text that is known to be valid JSON.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) skipSpace() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// object reads from an opening brace to behind the closing one.
func (s *scanner) object(depth int) (map[string][]byte, error) {
	members := map[string][]byte{}
	s.at++
	for s.skipSpace(); s.text[s.at] != '}'; s.skipSpace() {
		if s.text[s.at] == ',' {
			s.at++
			s.skipSpace()
		}
		name, err := s.name()
		if err != nil {
			return nil, err
		}
		if _, repeated := members[name]; repeated {
			return nil, fmt.Errorf("names %q twice", name)
		}
		value, err := s.value(depth)
		if err != nil {
			return nil, err
		}
		members[name] = value
	}
	s.at++
	return members, nil
}

// name reads a member's name and the colon after it.
func (s *scanner) name() (string, error) {
	quoted, err := s.value(0)
	if err != nil {
		return "", err
	}
	s.skipSpace()
	s.at++
	return Unquote(quoted)
}

// value reads any value and returns its text.
func (s *scanner) value(depth int) ([]byte, error) {
	if depth >= maxDepth {
		return nil, errors.New("is nested too deeply")
	}
	s.skipSpace()
	start := s.at
	var err error
	switch s.text[s.at] {
	case '{':
		_, err = s.object(depth + 1)
	case '[':
		err = s.array(depth + 1)
	case '"':
		err = s.str()
	default:
		s.literal()
	}
	return s.text[start:s.at], err
}

func (s *scanner) array(depth int) error {
	s.at++
	for s.skipSpace(); s.text[s.at] != ']'; s.skipSpace() {
		if s.text[s.at] == ',' {
			s.at++
		}
		if _, err := s.value(depth); err != nil {
			return err
		}
	}
	s.at++
	return nil
}

// literal passes over a number, true, false or null.
func (s *scanner) literal() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return
		}
		s.at++
	}
}

// str passes over a string, and refuses half a surrogate pair: it stands for no character, and
// readers differ in what they make of it.
func (s *scanner) str() error {
	highBefore := false // an escape for the first half of a pair has just been passed
	for s.at++; ; {
		high, low, size := s.unit()
		if low != highBefore {
			return errors.New("holds half a surrogate pair, which is no character")
		}
		if size == 0 {
			s.at++
			return nil
		}
		highBefore = high
		s.at += size
	}
}

// unit looks at the next unit of a string: its size in bytes, 0 at the closing quote, and whether it
// is an escape for one half of a surrogate pair.
func (s *scanner) unit() (high, low bool, size int) {
	switch c := s.text[s.at]; {
	case c == '"':
		return false, false, 0
	case c != '\\':
		return false, false, 1
	case s.text[s.at+1] != 'u':
		return false, false, 2
	}
	if d := s.text[s.at+2]; d != 'd' && d != 'D' {
		return false, false, 6
	}
	switch d := s.text[s.at+3]; {
	case d >= '8' && d <= '9', d|0x20 == 'a', d|0x20 == 'b':
		return true, false, 6
	case d >= 'a' && d <= 'f', d >= 'A' && d <= 'F':
		return false, true, 6
	default:
		return false, false, 6
	}
}

// Unquote decodes a JSON string that is known to be valid.
func Unquote(quoted []byte) (string, error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	var s string
	err := json.Unmarshal(quoted, &s)
	return s, err
}
