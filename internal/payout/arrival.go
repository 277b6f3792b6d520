package payout

import (
	"time"

	"bursar/internal/gateway"
	"bursar/internal/money"
)

// Arrival estimates when the bank has the money, from the bank's days and the gateway's rails. The zero
// value knows week-ends alone and counts days in UTC.
type Arrival struct {
	// Zone is where the bank's days begin; nil is UTC.
	Zone *time.Location
	// Holidays are days off besides week-ends.
	Holidays Holidays
	// India says that banks rest on the second and the fourth Saturday of a month, too.
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

// railFor is how an amount travels that is handed over at the given time: by the first rail that carries it and is open,
// else by the last one that carries it, when that opens. There is none where no rail carries it.
func (a Arrival) railFor(rails []gateway.Rail, amount money.Amount, at time.Time) (rail gateway.Rail) {
	for _, r := range rails {
		if !r.Carries(amount) {
			continue
		}
		rail = r
		if a.open(r, at) {
			return r
		}
	}
	return rail
}

// Estimate is how an amount travels that is handed over at from, and when it should be there.
func (a Arrival) Estimate(rails []gateway.Rail, amount money.Amount, from time.Time) (gateway.RailName, time.Time) {
	rail := a.railFor(rails, amount, from)
	if rail.Takes == 0 {
		return rail.Name, a.at(a.workingDay(from, 1), closingTime)
	}
	return rail.Name, a.nextOpen(rail, from).Add(rail.Takes)
}

// closingTime is when a plain bank's day is over, in minutes after midnight.
const closingTime = 18 * 60

// FinalCheckUntil is until when a payout that was completed may still be returned by the bank: the end
// of the third working day after it.
func (a Arrival) FinalCheckUntil(completedAt time.Time) time.Time {
	return a.at(a.workingDay(completedAt, 3), 24*60)
}

// open reports whether a rail takes transfers at t.
func (a Arrival) open(r gateway.Rail, t time.Time) bool {
	if r.AlwaysOpen() {
		return true
	}
	local := a.local(t)
	minute := local.Hour()*60 + local.Minute()
	return a.works(local) && r.Opens <= minute && minute < r.Closes
}

// nextOpen is the first time from t on at which a rail takes transfers.
func (a Arrival) nextOpen(r gateway.Rail, t time.Time) time.Time {
	if a.open(r, t) {
		return t
	}
	day := a.workingDay(t, 0)
	if opens := a.at(day, r.Opens); opens.After(t) {
		return opens
	}
	return a.at(a.workingDay(t, 1), r.Opens)
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
