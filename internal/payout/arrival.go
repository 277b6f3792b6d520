package payout

import (
	"time"

	"bursar/internal/money"
)

// Arrival estimates when the bank has the money, from the rules of its payment systems. The zero
// value knows week-ends alone and counts days in UTC.
type Arrival struct {
	// Zone is where the bank's days begin; nil is UTC.
	Zone *time.Location
	// Holidays are days off besides week-ends.
	Holidays Holidays
	// India says that money travels by IMPS, RTGS and NEFT, whose limits and windows are known.
	// Elsewhere it arrives by the end of the next working day.
	India bool
}

// NewArrival makes the rules for a currency: for INR those of India's banks in India's time, whatever
// the zone; for others the plain ones in zone. Holidays of the operator's own are added.
func NewArrival(c money.Currency, zone *time.Location, added Holidays) Arrival {
	if c.Code() != "INR" {
		return Arrival{Zone: zone, Holidays: added}
	}
	const offset = 5*60*60 + 30*60 // India has one zone, and no summer time
	return Arrival{Zone: time.FixedZone("IST", offset), Holidays: indianHolidays().and(added), India: true}
}

// Limits and windows as RazorpayX documents them, the narrowest of its partner banks' where they
// differ. IMPS works at all hours; the others on working days alone.
const (
	impsMost = money.Amount(5_00_000_00) // ₹5 lakh

	impsTakes = 5 * time.Minute
	rtgsTakes = 30 * time.Minute
	neftTakes = 2 * time.Hour
)

// window is the part of a working day in which transfers are taken, in minutes after midnight.
type window struct{ opens, closes int }

var (
	rtgsWindow = window{opens: 9 * 60, closes: 17*60 + 30}
	neftWindow = window{opens: 2 * 60, closes: 18 * 60}
)

// ModeFor is how an amount travels that is handed over at the given time: IMPS where it may, else
// RTGS while it is open, else NEFT.
func (a Arrival) ModeFor(amount money.Amount, at time.Time) Mode {
	switch {
	case a.India && amount <= impsMost:
		return IMPS
	case a.India && a.open(rtgsWindow, at):
		return RTGS
	default:
		return NEFT
	}
}

// Estimate is how an amount travels that is handed over at from, and when it should be there.
func (a Arrival) Estimate(amount money.Amount, from time.Time) (Mode, time.Time) {
	mode := a.ModeFor(amount, from)
	switch {
	case !a.India:
		return mode, a.at(a.workingDay(from, 1), closingTime)
	case mode == IMPS:
		return mode, from.Add(impsTakes)
	case mode == RTGS:
		return mode, from.Add(rtgsTakes)
	default:
		return mode, a.nextOpen(neftWindow, from).Add(neftTakes)
	}
}

// closingTime is when a plain bank's day is over, in minutes after midnight.
const closingTime = 18 * 60

// LookAgainUntil is until when a payout that was completed may still be returned by the bank: the end
// of the third working day after it.
func (a Arrival) LookAgainUntil(completedAt time.Time) time.Time {
	return a.at(a.workingDay(completedAt, 3), 24*60)
}

// open reports whether a window is open at t.
func (a Arrival) open(w window, t time.Time) bool {
	local := a.local(t)
	minute := local.Hour()*60 + local.Minute()
	return a.works(local) && w.opens <= minute && minute < w.closes
}

// nextOpen is the first time from t on at which a window is open.
func (a Arrival) nextOpen(w window, t time.Time) time.Time {
	if a.open(w, t) {
		return t
	}
	day := a.workingDay(t, 0)
	if opens := a.at(day, w.opens); opens.After(t) {
		return opens
	}
	return a.at(a.workingDay(t, 1), w.opens)
}

// workingDay is noon of the nth working day after the one that t falls on; a day off counts as the
// working day that follows it.
func (a Arrival) workingDay(t time.Time, n int) time.Time {
	day := a.at(t, 12*60)
	for {
		switch { // the table of holidays is finite, and so is the search
		case !a.works(day):
		case n == 0:
			return day
		default:
			n--
		}
		day = day.AddDate(0, 0, 1)
	}
}

// works reports whether banks work on the day of t, which is in the bank's zone.
func (a Arrival) works(t time.Time) bool {
	switch t.Weekday() {
	case time.Sunday:
		return false
	case time.Saturday:
		week := (t.Day() + 6) / 7
		if !a.India || week == 2 || week == 4 {
			return false
		}
	}
	return !a.Holidays.include(dateOf(t))
}

// at is a number of minutes after midnight on the bank's day that t falls on.
func (a Arrival) at(t time.Time, minutes int) time.Time {
	local := a.local(t)
	return time.Date(local.Year(), local.Month(), local.Day(), 0, minutes, 0, 0, local.Location())
}

func (a Arrival) local(t time.Time) time.Time {
	if a.Zone == nil {
		return t.UTC()
	}
	return t.In(a.Zone)
}
