package payout

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// date is a calendar day. In a table of holidays the year 0 stands for every year.
type date struct {
	year  int
	month time.Month
	day   int
}

func dateOf(t time.Time) date {
	year, month, day := t.Date()
	return date{year, month, day}
}

// Holidays are days on which banks do not work, besides week-ends. The zero value is none.
type Holidays struct{ days map[date]bool }

// indianHolidays are the days of every year on which India's banks and their payment partners are
// closed. Days that follow the moon or a state's calendar are for the
// operator to add.
func indianHolidays() Holidays {
	return Holidays{days: map[date]bool{
		{0, time.January, 26}:  true, // Republic Day
		{0, time.August, 15}:   true, // Independence Day
		{0, time.October, 2}:   true, // Gandhi Jayanti
		{0, time.December, 25}: true, // Christmas Day, at some of the partners
	}}
}

// ParseHolidays reads days separated by spaces or commas: "2026-11-08" is that day alone, "12-25" is
// a day of every year.
func ParseHolidays(s string) (Holidays, error) {
	h := Holidays{days: map[date]bool{}}
	for _, field := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' }) {
		d, err := parseDate(field)
		if err != nil {
			return Holidays{}, err
		}
		h.days[d] = true
	}
	if len(h.days) > maxHolidays {
		return Holidays{}, fmt.Errorf("%d bank holidays are too many; list at most %d", len(h.days), maxHolidays)
	}
	return h, nil
}

// maxHolidays keeps the search for a working day short, and certain to end.
const maxHolidays = 100

func parseDate(s string) (date, error) {
	if t, err := time.Parse(time.DateOnly, s); err == nil && t.Year() > 0 {
		return dateOf(t), nil
	}
	const leapYear = "2000-" // so that 02-29 is a day
	t, err := time.Parse(time.DateOnly, leapYear+s)
	if err != nil {
		return date{}, fmt.Errorf("%q is not a day; write one as 2026-11-08, or as 12-25 for every year", s)
	}
	return date{0, t.Month(), t.Day()}, nil
}

// and joins two tables.
func (h Holidays) and(more Holidays) Holidays {
	days := make(map[date]bool, len(h.days)+len(more.days))
	maps.Copy(days, h.days)
	maps.Copy(days, more.days)
	return Holidays{days}
}

func (h Holidays) include(d date) bool {
	return h.days[d] || h.days[date{0, d.month, d.day}]
}
