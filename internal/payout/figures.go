package payout

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"bursar/internal/limits"
	"bursar/internal/money"
)

// Count is how many payouts, and how much.
type Count struct {
	Number int64
	Amount money.Amount
}

func (c *Count) add(number int64, amount money.Amount) {
	c.Number += number
	c.Amount += amount
}

// BankCounts are the payouts of one bank that were paid, and that failed or were returned.
type BankCounts struct {
	// Bank is the first four letters of the IFSC.
	Bank         string
	Paid, Failed Count
}

// Permille is how many of a thousand payouts that ended failed.
func (b BankCounts) Permille() int64 {
	return b.Failed.Number * 1000 / max(b.Paid.Number+b.Failed.Number, 1)
}

// ReasonCount is how many payouts failed for one reason.
type ReasonCount struct {
	// Code is empty where none was given.
	Code string
	Count
}

// Ended are the payouts that were paid or failed in a period, by bank and by reason.
type Ended struct {
	// Day is when the period begins.
	Day          time.Time
	Paid, Failed Count
	Banks        []BankCounts
	Reasons      []ReasonCount
}

func (e *Ended) paid(bank string, c Count) {
	e.Paid.add(c.Number, c.Amount)
	e.bank(bank).Paid.add(c.Number, c.Amount)
}

func (e *Ended) failed(f FailedPayout) {
	e.Failed.add(1, f.Amount)
	e.bank(f.Bank).Failed.add(1, f.Amount)
	e.reason(f.Reason).add(1, f.Amount)
}

func (e *Ended) bank(bank string) *BankCounts {
	i := slices.IndexFunc(e.Banks, func(b BankCounts) bool { return b.Bank == bank })
	if i < 0 {
		i = len(e.Banks)
		e.Banks = append(e.Banks, BankCounts{Bank: bank})
	}
	return &e.Banks[i]
}

func (e *Ended) reason(code string) *Count {
	i := slices.IndexFunc(e.Reasons, func(r ReasonCount) bool { return r.Code == code })
	if i < 0 {
		i = len(e.Reasons)
		e.Reasons = append(e.Reasons, ReasonCount{Code: code})
	}
	return &e.Reasons[i].Count
}

// FiguresDays is for how many days there are figures, today among them.
const FiguresDays = 30

// Figures are what an operator watches.
type Figures struct {
	// Days are the last days of the service's zone; today is the last.
	Days []Ended
	Open OpenPayouts
}

// Period is some of the days of figures: from one to before another, as indexes of [Figures.Days].
type Period struct{ From, To int }

// Periods are those that operators look at, by name.
var Periods = map[string]Period{
	"today": {FiguresDays - 1, FiguresDays}, "yesterday": {FiguresDays - 2, FiguresDays - 1},
	"7days": {FiguresDays - 7, FiguresDays}, "30days": {0, FiguresDays},
}

// Of adds up the days of a period. The banks with the largest amounts and the most frequent reasons come first.
func (f Figures) Of(p Period) Ended {
	sum := Ended{Day: f.Days[p.From].Day}
	for _, d := range f.Days[p.From:p.To] {
		sum.Paid.add(d.Paid.Number, d.Paid.Amount)
		sum.Failed.add(d.Failed.Number, d.Failed.Amount)
		for _, b := range d.Banks {
			all := sum.bank(b.Bank)
			all.Paid.add(b.Paid.Number, b.Paid.Amount)
			all.Failed.add(b.Failed.Number, b.Failed.Amount)
		}
		for _, r := range d.Reasons {
			sum.reason(r.Code).add(r.Number, r.Amount)
		}
	}
	slices.SortFunc(sum.Banks, func(a, b BankCounts) int {
		return cmp.Or(cmp.Compare(b.Paid.Amount+b.Failed.Amount, a.Paid.Amount+a.Failed.Amount), cmp.Compare(a.Bank, b.Bank))
	})
	slices.SortFunc(sum.Reasons, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Number, a.Number), cmp.Compare(a.Code, b.Code))
	})
	return sum
}

// OpenPayouts are those under way.
type OpenPayouts struct {
	Count
	// Oldest was requested first, at Since; both are zero without any.
	Oldest ID
	Since  time.Time
}

// BankCount is how much of a bank was paid.
type BankCount struct {
	Bank string
	Count
}

// FailedPayout is one that failed or was returned.
type FailedPayout struct {
	EndedAt time.Time
	Bank    string
	Reason  string
	Amount  money.Amount
}

// figuresCache keeps the figures of days that are over: what was paid or failed then does not change.
type figuresCache struct {
	mu   sync.Mutex
	days map[time.Time]Ended
}

// committedWithin is how long after its end a day's last changes are committed for sure.
const committedWithin = 5 * time.Minute

// Figures reads what an operator watches. What belongs to days that are over is read once.
func (s *Service) Figures(ctx context.Context) (Figures, error) {
	now := s.o.Now()
	s.figures.mu.Lock()
	defer s.figures.mu.Unlock()
	f, err := s.readFigures(ctx, now)
	if err != nil {
		return Figures{}, err
	}
	s.figures.days = map[time.Time]Ended{}
	for i, d := range f.Days[:FiguresDays-1] {
		if !now.Before(f.Days[i+1].Day.Add(committedWithin)) {
			s.figures.days[d.Day] = d
		}
	}
	f.Open, err = s.o.Store.OpenPayouts(ctx, now)
	return f, err
}

func (s *Service) readFigures(ctx context.Context, now time.Time) (f Figures, err error) {
	var unread []int
	for i := range FiguresDays {
		day := s.startOfDay(now, i-FiguresDays+1)
		known, over := s.figures.days[day]
		if !over {
			known = Ended{Day: day}
			unread = append(unread, i)
		}
		f.Days = append(f.Days, known)
	}
	for _, i := range unread {
		day := &f.Days[i]
		paid, err := s.o.Store.PaidByBank(ctx, day.Day, s.startOfDay(day.Day, 1))
		if err != nil {
			return f, err
		}
		for _, b := range paid {
			day.paid(b.Bank, b.Count)
		}
	}
	failed, err := s.o.Store.FailedSince(ctx, f.Days[unread[0]].Day) // today is unread
	for _, p := range failed {
		i, _ := slices.BinarySearchFunc(f.Days, p.EndedAt, func(d Ended, at time.Time) int {
			if d.Day.After(at) {
				return 1
			}
			return -1
		})
		if i--; slices.Contains(unread, i) {
			f.Days[i].failed(p)
		}
	}
	return f, err
}

// startOfDay is when a day of the service's zone begins, so many days later.
func (s *Service) startOfDay(at time.Time, later int) time.Time {
	return limits.StartOfDay(at.In(s.o.Zone), later)
}
