// Package id makes identifiers that sort by the time they were made and can't be guessed.
//
// An identifier is a prefix that says what it names, eight base-62 digits of milliseconds and
// sixteen random ones (95 bits). Beginning with time keeps inserts at the right edge of an index, so
// that a large table is as fast to add to as a small one (measured in docs/adr/0003).
package id

import (
	"crypto/rand"
	"io"
	"strings"
	"time"
)

const (
	alphabet     = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	timeDigits   = 8
	randomDigits = 16
)

// Source makes identifiers. Its zero value draws them from crypto/rand; a simulation gives it a reader
// that draws the same ones again.
type Source struct{ Random io.Reader }

// New makes an identifier such as "pyt_" followed by 24 base-62 digits.
func New(prefix string, now time.Time) string { return Source{}.New(prefix, now) }

// New makes an identifier such as "pyt_" followed by 24 base-62 digits.
func (s Source) New(prefix string, now time.Time) string {
	b := make([]byte, len(prefix)+timeDigits+randomDigits)
	stamp(b, prefix, now)
	s.fill(b[len(prefix)+timeDigits:])
	return string(b)
}

// stamp writes the prefix and the digits of the time.
func stamp(b []byte, prefix string, at time.Time) {
	copy(b, prefix)
	ms := max(at.UnixMilli(), 0)
	for i := len(prefix) + timeDigits - 1; i >= len(prefix); i-- {
		b[i] = alphabet[ms%62]
		ms /= 62
	}
}

// Random makes n random base-62 digits.
func Random(n int) string {
	b := make([]byte, n)
	Source{}.fill(b)
	return string(b)
}

// fill draws digits without bias: a byte of 248 or more is drawn again.
func (s Source) fill(digits []byte) {
	var pool [32]byte
	for i := 0; i < len(digits); {
		s.read(pool[:])
		for _, r := range pool {
			if r < 248 && i < len(digits) {
				digits[i] = alphabet[r%62]
				i++
			}
		}
	}
}

func (s Source) read(p []byte) {
	if s.Random == nil {
		_, _ = rand.Read(p) // never fails: crypto/rand ends the program instead
		return
	}
	if _, err := io.ReadFull(s.Random, p); err != nil {
		panic("id: the source of a simulation has run dry: " + err.Error())
	}
}

// First sorts behind every identifier made before a moment and before those made from it on, to the millisecond.
func First(prefix string, at time.Time) string {
	b := make([]byte, len(prefix)+timeDigits)
	stamp(b, prefix, at)
	return string(b)
}

// Time is when an identifier was made, to the millisecond; zero for one that is not valid.
func Time(prefix, s string) time.Time {
	if !Valid(prefix, s) {
		return time.Time{}
	}
	ms := int64(0)
	for _, c := range []byte(s[len(prefix):][:timeDigits]) {
		ms = ms*62 + int64(strings.IndexByte(alphabet, c))
	}
	return time.UnixMilli(ms).UTC()
}

// Valid reports whether s is prefix followed by nothing but base-62 digits, of the length New makes.
func Valid(prefix, s string) bool {
	if len(s) != len(prefix)+timeDigits+randomDigits || s[:len(prefix)] != prefix {
		return false
	}
	for _, c := range []byte(s[len(prefix):]) {
		if !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') {
			return false
		}
	}
	return true
}
