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

// The clocks of these places skip midnight on some days, or have it twice. Each instant is in one day.
func TestStartOfDay(t *testing.T) {
	for name, day := range map[string]string{
		"America/Santiago": "2026-09-06", "Atlantic/Azores": "2026-03-29", "America/Havana": "2026-11-01", "Asia/Amman": "2021-10-29", "Asia/Kolkata": "2026-02-28", "UTC": "2026-12-31",
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		began, err := limits.Day(day, -3, zone)
		if err != nil {
			t.Fatal(err)
		}
		for later := -2; later <= 3; later++ {
			begins, err := limits.Day(day, later, zone)
			switch {
			case err != nil:
				t.Fatal(err)
			case !begins.After(began) || begins.Sub(began) > 25*time.Hour:
				t.Errorf("%s: a day begins at %s, and the next one at %s", name, began, begins)
			case begins.Add(-time.Second).Day() == begins.Day():
				t.Errorf("%s: a day begins at %s, which is in its midst", name, begins)
			}
			for at := began; at.Before(begins); at = at.Add(30 * time.Minute) {
				if got := limits.StartOfDay(at, 0); !got.Equal(began) {
					t.Errorf("%s: the day of %s begins at %s, want %s", name, at, got, began)
				}
				if got := limits.StartOfDay(at, 1); !got.Equal(begins) {
					t.Errorf("%s: the day after %s begins at %s, want %s", name, at, got, begins)
				}
			}
			began = begins
		}
	}
	if _, err := limits.Day("2026-02-30", 0, time.UTC); err == nil {
		t.Error("there is no 30 February")
	}
}
