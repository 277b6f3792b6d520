package demo

import (
	"testing"
	"time"
)

func TestBefore_EachMonthOnce(t *testing.T) {
	for now := time.Date(2026, 1, 1, 23, 59, 0, 0, time.UTC); now.Year() < 2029; now = now.AddDate(0, 0, 1) { // a leap year among them
		for months := range marketMonths + 1 {
			got := before(now, months)
			want := time.Date(now.Year(), now.Month()-time.Month(months), 1, 0, 0, 0, 0, time.UTC)
			if got.Year() != want.Year() || got.Month() != want.Month() || got.After(now) {
				t.Errorf("%d months before %s is %s, want a time in %s", months, now.Format(time.DateOnly), got.Format(time.DateOnly), want.Format("January 2006"))
			}
		}
	}
}
