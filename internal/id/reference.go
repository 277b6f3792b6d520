package id

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxReferenceRunes bounds the marketplace's own ids.
const maxReferenceRunes = 128

// CheckReference returns what is wrong with an id of the marketplace's own making, or "".
func CheckReference(s string) string {
	n := utf8.RuneCountInString(s)
	if n < 1 || n > maxReferenceRunes || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Sprintf("must be 1 to %d characters, none of them control characters", maxReferenceRunes)
	}
	return ""
}
