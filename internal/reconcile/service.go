package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/limits"
	"bursar/internal/money"
)

// Options are what the service is made of.
type Options struct {
	Store     Store
	Statement Statement
	Payouts   Payouts
	Currency  money.Currency
	// GracePeriod is how long a movement may be missing from the statement, or from the ledger, before that is a
	// difference.
	GracePeriod time.Duration
	// Zone is where days begin.
	Zone   *time.Location
	Now    func() time.Time
	Logger *slog.Logger
	// IDs is set by simulations alone, which must come out the same again.
	IDs id.Source
	// Progress is called with how far a reading is, if set.
	Progress func(day time.Time, lines int)
}

// Service reconciles.
type Service struct {
	o      Options
	holder string
}

// New makes a service.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.Statement == nil || o.Payouts == nil || o.Currency == (money.Currency{}) || o.GracePeriod <= 0 ||
		o.Zone == nil || o.Now == nil || o.Logger == nil {
		return nil, errors.New("reconcile: the service needs all its parts")
	}
	if o.Progress == nil {
		o.Progress = func(time.Time, int) {}
	}
	return &Service{o: o, holder: o.IDs.New("", o.Now())}, nil
}

// at is the gateway whose statement is compared.
func (s *Service) at() gateway.Name { return s.o.Statement.Name() }

// ErrBusy means that another instance reconciles at this moment.
var ErrBusy = fault.New(fault.Unavailable, "reconciling", "Another instance reconciles at this moment. Try again shortly.")

// ErrNoStatement means that the gateway lists no lines of our account.
var ErrNoStatement = fault.New(fault.Refused, "no_statement", "This gateway has no statement to compare with. Compare its own records by hand.")

// ErrNotFound means that there is no such difference.
var ErrNotFound = fault.New(fault.NotFound, "difference_not_found", "There is no difference with this id.")

// leaseLasts is how long a lease lasts unless it is extended.
const leaseLasts = 2 * time.Minute

// inTurn does what only one instance does at a time.
func (s *Service) inTurn(ctx context.Context, do func(context.Context) error) error {
	if err := s.keepLease(ctx, ErrBusy); err != nil {
		return err
	}
	err := do(ctx)
	return errors.Join(err, s.o.Store.ReleaseLease(context.WithoutCancel(ctx), s.holder))
}

// keepLease acquires or extends the lease.
func (s *Service) keepLease(ctx context.Context, lost error) error {
	now := s.o.Now()
	mine, err := s.o.Store.AcquireLease(ctx, s.holder, now, now.Add(leaseLasts))
	if err != nil {
		return err
	}
	if !mine {
		return lost
	}
	return nil
}

// Period reads the first and the last day of a period; both empty are yesterday, and without a last one it
// ends yesterday. Today may be in it, as far as it has come; a day is a date, "today" or "yesterday".
func (s *Service) Period(from, to string) (Period, error) {
	today := s.midnight(s.o.Now(), 0)
	yesterday := s.midnight(s.o.Now(), -1)
	problems := map[string]string{}
	parse := func(name, text string) time.Time {
		switch text {
		case "today":
			return today
		case "yesterday":
			return yesterday
		default:
			return s.parseDay(name, text, problems)
		}
	}
	first, last := parse("from", from), parse("to", to)
	switch {
	case from == "" && to == "":
		first, last = yesterday, yesterday
	case from == "":
		first = last
	case to == "":
		last = yesterday
		if first.After(last) {
			last = first
		}
	}
	p := Period{From: first, To: s.midnight(last, 1)}
	switch {
	case len(problems) > 0:
	case last.After(today):
		problems["to"] = "must not be after today, " + today.Format(time.DateOnly)
	case first.After(last):
		problems["from"] = "must not be after to"
	case last.Sub(first) > longestPeriod:
		problems["from"] = "must be at most ten years before to"
	}
	if len(problems) > 0 {
		return Period{}, fault.Fields(fault.Invalid, problems)
	}
	if until := s.o.Now().Add(-s.o.GracePeriod); p.To.After(until) { // the list may lag
		p.To = until.Truncate(time.Second)
		if !p.From.Before(p.To) {
			return Period{}, fault.Field("to", fmt.Sprintf("has only begun: try again in %s", s.o.GracePeriod))
		}
	}
	return p, nil
}

const longestPeriod = 10 * 366 * 24 * time.Hour

// parseDay reads a day, which is the midnight that it begins with.
func (s *Service) parseDay(name, text string, problems map[string]string) time.Time {
	if text == "" {
		return time.Time{}
	}
	day, err := limits.Day(text, 0, s.o.Zone)
	if err != nil || limits.Year(day) != "" {
		problems[name] = `must be a day such as 2026-11-20, or "today" or "yesterday"`
	}
	return day
}

// midnight begins the day so many days after the one that holds t.
func (s *Service) midnight(t time.Time, days int) time.Time {
	return limits.StartOfDay(t.In(s.o.Zone), days)
}

// days cuts a period at midnights.
func (s *Service) days(p Period) []Period {
	var days []Period
	for i := 0; ; i++ {
		day := Period{s.midnight(p.From, i), s.midnight(p.From, i+1)}
		if !day.From.Before(p.To) {
			return days
		}
		days = append(days, day)
	}
}
