package payout_test

import (
	"strings"
	"testing"

	"bursar/internal/payout"
)

func TestCheckNotes(t *testing.T) {
	for notes, problem := range map[string]string{
		"": "", "rent": "", "two\r\nlines\tand a tab": "", strings.Repeat("ä", payout.MaxNotes): "",
		strings.Repeat("ä", payout.MaxNotes+1): "must be at most 1000 characters",
		"a\x00b":                               "must not contain control characters", "a\x7fb": "must not contain control characters", "a\u0085b": "must not contain control characters",
	} {
		if got := payout.CheckNotes(notes); got != problem {
			t.Errorf("of %.20q it says %q, want %q", notes, got, problem)
		}
	}
}
