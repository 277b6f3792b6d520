// Package limits has what more than one domain knows of what people type: its limits, and when a day begins.
package limits

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// IsControl also finds what turns the direction of writing, and so makes a text pass for another.
func IsControl(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) }

// Prose returns what is wrong with a text of several lines, or "".
func Prose(s string, maxRunes int) string {
	switch {
	case !utf8.ValidString(s):
		return "must be UTF-8"
	case utf8.RuneCountInString(s) > maxRunes:
		return fmt.Sprintf("must be at most %d characters", maxRunes)
	default:
		return Printable(s)
	}
}

// Printable returns what is wrong with a text that should hold nothing but characters and lines, or "".
func Printable(s string) string {
	control := func(c rune) bool { return IsControl(c) && c != '\n' && c != '\r' && c != '\t' }
	if strings.ContainsFunc(s, control) {
		return "must not contain control characters"
	}
	return ""
}

// maxReferenceRunes bounds the marketplace's own ids.
const maxReferenceRunes = 128

// Reference returns what is wrong with an id of the marketplace's own making, or "".
func Reference(s string) string {
	n := utf8.RuneCountInString(s)
	if n < 1 || n > maxReferenceRunes || !utf8.ValidString(s) || strings.ContainsFunc(s, IsControl) {
		return fmt.Sprintf("must be 1 to %d characters, none of them control characters", maxReferenceRunes)
	}
	return ""
}

// Year returns what is wrong with a time that can only be a mistake, of units or of a clock, or "".
func Year(at time.Time) string {
	const first, last = 2000, 2100
	if at.Year() < first || at.Year() > last {
		return fmt.Sprintf("must be between the years %d and %d", first, last)
	}
	return ""
}

// Day reads a day such as 2026-11-20, and is when it begins in the zone, or another day so many days later.
func Day(text string, later int, zone *time.Location) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, text)
	return startOfDay(day.Year(), day.Month(), day.Day()+later, zone), err
}

// StartOfDay is when a day begins in at's zone: the one that holds at, or another so many days later.
func StartOfDay(at time.Time, later int) time.Time {
	return startOfDay(at.Year(), at.Month(), at.Day()+later, at.Location())
}

func startOfDay(year int, month time.Month, day int, zone *time.Location) time.Time {
	at := time.Date(year, month, day, 0, 0, 0, 0, zone)
	if first := at.Add(-time.Hour); at.Hour() == 0 && first.Hour() == 0 {
		return first // the clocks have midnight twice
	}
	if at.Hour() == 0 {
		return at
	}
	began, ends := at.ZoneBounds() // the clocks skip midnight, as in Chile: the day begins with summer time
	if at.Hour() > 12 {            // of the day before
		return ends
	}
	return began
}
