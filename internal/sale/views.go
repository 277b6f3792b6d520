package sale

import (
	"context"
	"time"

	"bursar/internal/limits"
	"bursar/internal/money"
)

// Month is what a seller earned in one month, refunds taken off.
type Month struct {
	Month  string // such as "2026-11", in the marketplace's zone
	Earned money.Amount
}

// Release is what becomes withdrawable on one day.
type Release struct {
	Day    time.Time // its first instant, in the marketplace's zone
	Amount money.Amount
	Sales  int64
}

// List is a page of a seller's sales, newest first, and how many there are in all.
func (s *Service) List(ctx context.Context, seller string, offset, limit int) ([]Sale, int64, error) {
	return s.o.Store.ListSales(ctx, seller, offset, limit)
}

// Months is what a seller earned in each of the last n months, this one last; none is left out.
func (s *Service) Months(ctx context.Context, seller string, n int) ([]Month, error) {
	n = min(max(n, 1), maxMonths)
	now := s.o.Now().In(s.o.Zone)
	months := make([]Month, n)
	for i := range months {
		first := time.Date(now.Year(), now.Month()-time.Month(n-1-i), 1, 0, 0, 0, 0, time.UTC) // no day lacks its midnight there
		months[i].Month = first.Format(monthLayout)
	}
	earned, err := s.o.Store.Earnings(ctx, seller, months[0].Month, months[n-1].Month)
	if err != nil {
		return nil, err
	}
	known := make(map[string]money.Amount, len(earned))
	for _, m := range earned {
		known[m.Month] = m.Earned
	}
	for i := range months {
		months[i].Earned = known[months[i].Month]
	}
	return months, nil
}

// Releases is what becomes withdrawable on each of the next thirty-one days that has a release, today
// first, up to limit of them. What else is pending comes later.
func (s *Service) Releases(ctx context.Context, seller string, limit int) ([]Release, error) {
	now := s.o.Now().In(s.o.Zone)
	days := make([]time.Time, daysAhead+1)
	for i := range days {
		days[i] = limits.StartOfDay(now, i)
	}
	releases, err := s.o.Store.PendingByDay(ctx, seller, days)
	if err != nil {
		return nil, err
	}
	return releases[:min(len(releases), max(limit, 0))], nil
}

const (
	monthLayout = "2006-01"
	maxMonths   = 120
	// daysAhead is how far a seller's releases are listed day by day.
	daysAhead = 31
)
