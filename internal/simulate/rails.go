package simulate

import (
	"time"

	port "bursar/internal/gateway"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// The rails of India's banks and their hours, written down again.
const (
	impsMost = money.Amount(5_00_000_00)
	ist      = 5*time.Hour + 30*time.Minute
)

// travels is by which rail a net amount goes that is handed over at a moment, and when it should be there: by IMPS up to five lakh,
// else by RTGS while that is open, else by NEFT, which may have to open first.
func travels(net money.Amount, at time.Time) (port.RailName, time.Time) {
	inDay := at.Add(ist).Sub(at.Add(ist).Truncate(24 * time.Hour))
	works := bankWorks(at)
	switch {
	case net <= impsMost:
		return "IMPS", at.Add(5 * time.Minute)
	case works && inDay >= 9*time.Hour && inDay < 17*time.Hour+30*time.Minute:
		return "RTGS", at.Add(30 * time.Minute)
	case works && inDay >= 2*time.Hour && inDay < 18*time.Hour:
		return "NEFT", at.Add(2 * time.Hour)
	}
	opens := at.Add(2*time.Hour - inDay) // on that day
	for !opens.After(at) || !bankWorks(opens) {
		opens = opens.Add(24 * time.Hour)
	}
	return "NEFT", opens.Add(2 * time.Hour)
}

// bankWorks reports whether India's banks work on the day of a moment: not on Sundays, on the second and the fourth Saturday, and on
// the national holidays.
func bankWorks(at time.Time) bool {
	local := at.UTC().Add(ist)
	switch local.Format("01-02") {
	case "01-26", "08-15", "10-02", "12-25":
		return false
	}
	day := local.Day()
	secondOrFourth := day >= 8 && day <= 14 || day >= 22 && day <= 28
	return local.Weekday() != time.Sunday && (local.Weekday() != time.Saturday || !secondOrFourth)
}

// checkRoute holds how a new payout is to travel, and when it should arrive, against the amount and the banks' hours.
func (m *market) checkRoute(p payout.Payout) {
	rail, arrives := travels(p.Net(), p.RequestedAt.Add(cancelWindow))
	m.assert(arrivesAsTold, p.Rail == rail && stored(p.ArriveAt).Equal(stored(arrives)), string(p.ID),
		"payout %s of %d net, which was requested at %s, goes by %s and arrives at %s, and should go by %s and arrive at %s", p.ID, p.Net(), p.RequestedAt, p.Rail, p.ArriveAt, rail, arrives)
}

// checkQuote holds a quote in the same way.
func (m *market) checkQuote(q payout.Quote, now time.Time) {
	rail, arrives := travels(q.Net, now.Truncate(time.Microsecond).Add(cancelWindow))
	m.assert(arrivesAsTold, q.Rail == rail && stored(q.ArriveAt).Equal(stored(arrives)), "", "%d net are quoted to go by %s and arrive at %s, and should go by %s and arrive at %s", q.Net, q.Rail, q.ArriveAt, rail, arrives)
}

// checkImportedTimes wants a payout that was lost and found again to have been requested when it was, and to arrive when it was to. Its id
// tells the millisecond.
func (m *market) checkImportedTimes(first withdrawal, p payout.Payout) {
	isNear := func(a, b time.Time) bool { return a.Sub(b).Abs() <= time.Millisecond }
	m.assert(importedAsItWas, isNear(p.RequestedAt, first.requestedAt) && isNear(p.ArriveAt, first.arriveAt) && p.Source == payout.FromImport, string(p.ID),
		"payout %s was requested at %s and to arrive at %s; it is in the ledger again as requested at %s, to arrive at %s, and of the source %q", p.ID, first.requestedAt, first.arriveAt, p.RequestedAt, p.ArriveAt, p.Source)
}

// checkTime wants the ledger to say that something happened just now, by the clock of the instance that wrote it.
func (m *market) checkTime(on *instance, at time.Time, subject, what string) {
	off := time.Minute
	if !m.leasesHold() {
		off = 15 * time.Minute
	}
	m.assert(timesRight, on.now().Sub(at).Abs() <= off, subject, "at %s by its own clock, %s writes that %s was %s at %s", on.now(), on.name, subject, what, at)
}

// checkTimes holds when a payout was taken on, paid and over, where that is written for the first time, against the present. A
// transfer that was found at the gateway was taken on when the gateway made it.
func (m *market) checkTimes(on *instance, w *withdrawal, p payout.Payout) {
	switch made, isKnown := m.gateways.named(w.at).madeAt[p.GatewayID]; {
	case !w.last.ProcessedAt.IsZero() || p.ProcessedAt.IsZero():
	case w.state != payout.Waiting:
		m.checkTime(on, p.ProcessedAt, string(p.ID), "taken on")
	case isKnown:
		m.assert(timesRight, p.ProcessedAt.Sub(m.start.Add(made)).Abs() <= 2*time.Second, string(p.ID), "the transfer of payout %s was made at %s, and it was taken on at %s", p.ID, m.start.Add(made), p.ProcessedAt)
	}
	if p.State == w.state {
		return
	}
	if p.State == payout.Completed {
		m.checkTime(on, p.CompletedAt, string(p.ID), "paid")
	}
	if kindOf(p.State) != underWay {
		m.checkTime(on, p.EndedAt, string(p.ID), "over")
	}
}
