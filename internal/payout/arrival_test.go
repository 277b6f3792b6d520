package payout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/money"
	"bursar/internal/payout"
)

const (
	lakh  = money.Amount(1_00_000_00)
	large = 6 * lakh
)

func holidays(t testing.TB, s string) payout.Holidays {
	t.Helper()
	h, err := payout.ParseHolidays(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func ist(t interface{ Fatal(...any) }, s string) time.Time {
	at, err := time.ParseInLocation("2006-01-02 15:04:05", s, time.FixedZone("IST", 19800))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestEstimateInIndia(t *testing.T) {
	tests := []struct {
		about    string
		amount   money.Amount
		from     string
		wantRail gateway.RailName
		want     string
	}{
		{"IMPS on a working day", lakh, "2026-11-20 12:00:00", "IMPS", "2026-11-20 12:05:00"},
		{"IMPS up to five lakh", 5 * lakh, "2026-11-20 12:00:00", "IMPS", "2026-11-20 12:05:00"},
		{"IMPS on a Sunday night", lakh, "2026-11-22 23:58:00", "IMPS", "2026-11-23 00:03:00"},
		{"IMPS on a holiday", lakh, "2026-01-26 03:00:00", "IMPS", "2026-01-26 03:05:00"},
		{"a paisa over five lakh", 5*lakh + 1, "2026-11-20 12:00:00", "RTGS", "2026-11-20 12:30:00"},
		{"RTGS opens", large, "2026-11-20 09:00:00", "RTGS", "2026-11-20 09:30:00"},
		{"before RTGS opens", large, "2026-11-20 08:59:59", "NEFT", "2026-11-20 10:59:59"},
		{"last second of RTGS", large, "2026-11-20 17:29:59", "RTGS", "2026-11-20 17:59:59"},
		{"RTGS is closed", large, "2026-11-20 17:30:00", "NEFT", "2026-11-20 19:30:00"},
		{"last second of NEFT", large, "2026-11-19 17:59:59", "NEFT", "2026-11-19 19:59:59"},
		{"Thursday evening", large, "2026-11-19 18:00:00", "NEFT", "2026-11-20 04:00:00"},
		{"just after midnight", large, "2026-11-20 00:00:01", "NEFT", "2026-11-20 04:00:00"},
		{"NEFT opens", large, "2026-11-20 02:00:00", "NEFT", "2026-11-20 04:00:00"},
		{"Friday evening before a third Saturday", large, "2026-11-20 18:30:00", "NEFT", "2026-11-21 04:00:00"},
		{"Friday evening before a second Saturday", large, "2026-11-13 18:30:00", "NEFT", "2026-11-16 04:00:00"},
		{"second Saturday", large, "2026-11-14 12:00:00", "NEFT", "2026-11-16 04:00:00"},
		{"second Saturday on the 8th", large, "2026-08-08 12:00:00", "NEFT", "2026-08-10 04:00:00"},
		{"fourth Saturday on the 22nd", large, "2026-08-22 12:00:00", "NEFT", "2026-08-24 04:00:00"},
		{"fifth Saturday on the 29th", large, "2026-08-29 12:00:00", "RTGS", "2026-08-29 12:30:00"},
		{"third Saturday", large, "2026-11-21 12:00:00", "RTGS", "2026-11-21 12:30:00"},
		{"fourth Saturday", large, "2026-11-28 12:00:00", "NEFT", "2026-11-30 04:00:00"},
		{"fifth Saturday", large, "2026-10-31 12:00:00", "RTGS", "2026-10-31 12:30:00"},
		{"Sunday", large, "2026-11-22 12:00:00", "NEFT", "2026-11-23 04:00:00"},
		{"Independence Day on a third Saturday", large, "2026-08-15 12:00:00", "NEFT", "2026-08-17 04:00:00"},
		{"Gandhi Jayanti on a Friday, first Saturday after", large, "2026-10-02 12:00:00", "NEFT", "2026-10-03 04:00:00"},
		{"fourth Saturday, Sunday, then Republic Day", large, "2026-01-23 18:00:00", "NEFT", "2026-01-27 04:00:00"},
		{"Christmas, fourth Saturday, Sunday", large, "2026-12-24 18:00:00", "NEFT", "2026-12-28 04:00:00"},
		{"operator's holidays in a chain", large, "2026-11-06 20:00:00", "NEFT", "2026-11-11 04:00:00"},
		{"year end, New Year's Day on a Friday is no bank holiday", large, "2026-12-31 20:00:00", "NEFT", "2027-01-01 04:00:00"},
		{"29 February", large, "2028-02-28 20:00:00", "NEFT", "2028-02-29 04:00:00"},
		{"28 February of a common year", large, "2027-02-28 20:00:00", "NEFT", "2027-03-01 04:00:00"},
	}
	// 7 November is a first Saturday; Sunday, Monday and Tuesday follow.
	rails := razorpayx.Capabilities(inr(t)).Rails
	arrival := payout.NewArrival(inr(t), time.UTC, holidays(t, "2026-11-07, 2026-11-09 11-10"))
	for _, tt := range tests {
		rail, got := arrival.Estimate(rails, tt.amount, ist(t, tt.from).UTC())
		if want := ist(t, tt.want); rail != tt.wantRail || !got.Equal(want) {
			t.Errorf("%s: %d at %s: %s at %s, want %s at %s", tt.about, tt.amount, tt.from, rail, got, tt.wantRail, want)
		}
	}
}

func TestEstimateElsewhere(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Skip("this system has no time zones")
	}
	usd, err := money.ParseCurrency("USD")
	if err != nil {
		t.Fatal(err)
	}
	arrival := payout.NewArrival(usd, newYork, holidays(t, "07-03"))
	tests := []struct{ about, from, want string }{
		{"Tuesday", "2026-06-30T15:00:00-04:00", "2026-07-01T18:00:00-04:00"},
		{"late on Tuesday, Wednesday in UTC", "2026-06-30T23:00:00-04:00", "2026-07-01T18:00:00-04:00"},
		{"before a holiday and a week-end", "2026-07-02T09:00:00-04:00", "2026-07-06T18:00:00-04:00"},
		{"Saturday counts as Monday", "2026-06-27T09:00:00-04:00", "2026-06-30T18:00:00-04:00"},
		{"over the end of summer time", "2026-10-30T09:00:00-04:00", "2026-11-02T18:00:00-05:00"},
	}
	for _, tt := range tests {
		from, err := time.Parse(time.RFC3339, tt.from)
		if err != nil {
			t.Fatal(err)
		}
		rail, got := arrival.Estimate(razorpayx.Capabilities(usd).Rails, 1, from)
		if want, err := time.Parse(time.RFC3339, tt.want); err != nil || rail != "NEFT" || !got.Equal(want) {
			t.Errorf("%s: from %s: %s at %s, want NEFT at %s", tt.about, tt.from, rail, got, tt.want)
		}
	}
}

func TestFinalCheckUntil(t *testing.T) {
	arrival := payout.NewArrival(inr(t), time.UTC, payout.Holidays{})
	tests := []struct{ about, completed, want string }{
		{"Monday", "2026-11-16 12:00:00", "2026-11-20 00:00:00"},
		{"first second of Monday", "2026-11-16 00:00:00", "2026-11-20 00:00:00"},
		{"Friday before a third Saturday", "2026-11-20 12:00:00", "2026-11-25 00:00:00"},
		{"Friday before a fourth Saturday", "2026-11-27 12:00:00", "2026-12-03 00:00:00"},
		{"Sunday counts as Monday", "2026-11-22 12:00:00", "2026-11-27 00:00:00"},
		{"before Republic Day's long week-end", "2026-01-23 12:00:00", "2026-01-30 00:00:00"},
		{"into the next year", "2026-12-30 12:00:00", "2027-01-03 00:00:00"},
		{"over 29 February", "2028-02-28 12:00:00", "2028-03-03 00:00:00"},
	}
	for _, tt := range tests {
		got := arrival.FinalCheckUntil(ist(t, tt.completed).UTC())
		if want := ist(t, tt.want); !got.Equal(want) {
			t.Errorf("%s: completed %s: until %s, want %s", tt.about, tt.completed, got, want)
		}
	}
	if got, want := (payout.Arrival{}).FinalCheckUntil(ist(t, "2026-11-16 12:00:00")), ist(t, "2026-11-20 05:30:00"); !got.Equal(want) {
		t.Errorf("the zero value: until %s, want %s, midnight in UTC", got, want)
	}
}

// Whenever it is asked, the money is not there before it left, travels as its amount allows, and
// leaves when the banks are open.
func TestArrivalIsPossible(t *testing.T) {
	rails := razorpayx.Capabilities(inr(t)).Rails
	arrival := payout.NewArrival(inr(t), time.UTC, holidays(t, "2026-11-09 03-04"))
	takes := map[gateway.RailName]time.Duration{"IMPS": 5 * time.Minute, "RTGS": 30 * time.Minute, "NEFT": 2 * time.Hour}
	rapid.Check(t, func(t *rapid.T) {
		from := time.Unix(rapid.Int64Range(1767205800, 1830277800).Draw(t, "from"), 0) // 2026 and 2027 in India
		amount := money.Amount(rapid.Int64Range(1, int64(20*lakh)).Draw(t, "amount"))
		rail, at := arrival.Estimate(rails, amount, from)
		left := at.Add(-takes[rail]).In(time.FixedZone("IST", 19800))
		if left.Before(from) {
			t.Fatalf("%s at %s would have left at %s, before %s", rail, at, left, from)
		}
		if rail == "IMPS" {
			if amount > 5*lakh || !left.Equal(from) {
				t.Fatalf("IMPS of %d from %s left at %s", amount, from, left)
			}
			return
		}
		if amount <= 5*lakh {
			t.Fatalf("%d goes by %s, want IMPS", amount, rail)
		}
		saturday := left.Weekday() == time.Saturday && (left.Day()-1)/7%2 == 1
		if left.Weekday() == time.Sunday || saturday || strings.Contains("01-26 03-04 08-15 10-02 12-25 11-09", left.Format("01-02")) && left.Format(time.DateOnly) != "2027-11-09" {
			t.Fatalf("%s leaves on %s, a day off", rail, left)
		}
		clock := left.Format("15:04")
		if rail == "RTGS" && (clock < "09:00" || clock >= "17:30") || clock < "02:00" || clock >= "18:00" {
			t.Fatalf("%s leaves at %s, when it is closed", rail, left)
		}
		if until := arrival.FinalCheckUntil(at); until.Before(at.AddDate(0, 0, 3)) || until.After(at.AddDate(0, 0, 12)) {
			t.Fatalf("what arrived at %s is looked at until %s", at, until)
		}
	})
}

func TestParseHolidaysRefuses(t *testing.T) {
	for _, s := range []string{"2026-13-01", "2027-02-29", "02-30", "26-11-08", "8 November", "2026/11/08", "0000-01-01", "*"} {
		if _, err := payout.ParseHolidays(s); err == nil || !strings.Contains(err.Error(), "is not a day") {
			t.Errorf("ParseHolidays(%q): err = %v, want one that says how to write a day", s, err)
		}
	}
	for _, s := range []string{"", " ", "2028-02-29", "02-29", "2026-11-08,\n2026-11-09\t12-25"} {
		if _, err := payout.ParseHolidays(s); err != nil {
			t.Errorf("ParseHolidays(%q): %v", s, err)
		}
	}
}

func TestParseHolidays_AtMost(t *testing.T) {
	for n, fits := range map[int]bool{100: true, 101: false} {
		var days []string
		for i := range n {
			days = append(days, fmt.Sprintf("20%02d-%02d-%02d", 30+i/336, i%336/28+1, i%28+1))
		}
		if _, err := payout.ParseHolidays(strings.Join(days, ",")); (err == nil) != fits {
			t.Errorf("%d holidays: %v", n, err)
		}
	}
}
