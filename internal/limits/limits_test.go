package limits_test

import (
	"strings"
	"testing"
	"time"

	"bursar/internal/limits"
)

func TestProse(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"two\r\nlines\tand a tab": "",
		strings.Repeat("ü", 10):   "",
		strings.Repeat("ü", 11):   "must be at most 10 characters",
		"bell\a":                  "must not contain control characters",
		"\x00":                    "must not contain control characters",
		"\xff":                    "must be UTF-8",
		"\u0085":                  "must not contain control characters",
		"\u202e001":               "must not contain control characters",
		strings.Repeat("\a", 11):  "must be at most 10 characters",
	} {
		limit := 10
		if strings.HasPrefix(text, "two") {
			limit = len(text)
		}
		if got := limits.Prose(text, limit); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestReference(t *testing.T) {
	for id, want := range map[string]bool{
		"order-1": true, "заказ 7": true, strings.Repeat("ü", 128): true, strings.Repeat("ü", 129): false,
		"": false, "\xff": false, "a\nb": false, "\u202e1-redro": false, "\u2066order-1": false,
	} {
		if got := limits.Reference(id); (got == "") != want {
			t.Errorf("%q: %q", id, got)
		}
	}
}

func TestYear(t *testing.T) {
	for at, wrong := range map[time.Time]bool{
		time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC): true, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC): false,
		time.Date(2100, 12, 31, 23, 59, 59, 0, time.UTC): false, time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC): true, {}: true,
	} {
		if got := limits.Year(at); (got != "") != wrong {
			t.Errorf("%s: %q", at, got)
		}
	}
}
