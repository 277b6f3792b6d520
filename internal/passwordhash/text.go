package passwordhash

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Limits of the parts of a hash. A key that is shorter would match too many passwords.
const (
	minKeyBytes  = 16
	maxKeyBytes  = 128
	maxSaltBytes = 128
)

var errPart = errors.New("a part of it can't be read")

func malformed(format string) error {
	return fmt.Errorf("begins as %s does, and is not well-formed", format)
}

func tooMuch(format, what string, is, most int) error {
	return fmt.Errorf("costs too much to check: the %s of this %s hash is %d, and may be %d at most", what, format, is, most)
}

// number reads a number without a sign.
func number(what, text string) (int, error) {
	const maxDigits = 9 // so that nothing overflows where it is multiplied
	if text == "" || len(text) > maxDigits || strings.Trim(text, "0123456789") != "" {
		return 0, fmt.Errorf("%s is no number", what)
	}
	return strconv.Atoi(text)
}

// parameters reads name=number pairs that are in the order of names.
func parameters(text string, names ...string) ([]int, error) {
	parts := strings.Split(text, ",")
	if len(parts) != len(names) {
		return nil, errPart
	}
	values := make([]int, len(names))
	for i, name := range names {
		value, found := strings.CutPrefix(parts[i], name+"=")
		if !found {
			return nil, errPart
		}
		n, err := number(name, value)
		if err != nil {
			return nil, err
		}
		values[i] = n
	}
	return values, nil
}

// decode reads base64, with or without padding, and with passlib's "." for "+".
func decode(text string) ([]byte, error) {
	text = strings.ReplaceAll(strings.TrimRight(text, "="), ".", "+")
	return base64.RawStdEncoding.Strict().DecodeString(text)
}

func keyBytes(text string) ([]byte, error) {
	key, err := decode(text)
	if err == nil && (len(key) < minKeyBytes || len(key) > maxKeyBytes) {
		err = errPart
	}
	return key, err
}

func saltAndKey(saltText, keyText string) (salt, key []byte, err error) {
	salt, err = decode(saltText)
	if err == nil && !isSalt(salt) {
		err = errPart
	}
	if err != nil {
		return nil, nil, err
	}
	key, err = keyBytes(keyText)
	return salt, key, err
}

func isSalt(salt []byte) bool { return len(salt) > 0 && len(salt) <= maxSaltBytes }

// isPrintable reports whether a text is visible ASCII characters alone.
func isPrintable(text string) bool {
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// zeros is the text of n bytes that are zero.
func zeros(n int) string { return base64.RawStdEncoding.EncodeToString(make([]byte, n)) }
