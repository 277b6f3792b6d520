package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/payout"
)

const (
	// maxPages bounds a day's list, and maxStale how many pages in a row may hold nothing new: so many
	// lines can hardly be added between two pages. Both are for a gateway that never ends its list.
	maxPages = 20_000
	maxStale = 10
)

// readDays reads those days of a period that were not read whole yet, or all of them again.
func (s *Service) readDays(ctx context.Context, p Period, again bool) error {
	known, err := s.wholeDays(ctx, p.From, p.To)
	if err != nil {
		return fmt.Errorf("find the days that were read: %w", err)
	}
	whole := make(map[int64]time.Time, len(known))
	for _, d := range known {
		whole[d.From.Unix()] = d.To
	}
	for _, day := range s.days(p) {
		if to, isWhole := whole[day.From.Unix()]; isWhole && to.Equal(day.To) && !again {
			continue
		}
		if err := s.readDay(ctx, day); err != nil {
			return fmt.Errorf("read the statement of %s: %w", day.From.Format(time.DateOnly), err)
		}
	}
	return nil
}

// wholeDays lists the days that were read whole and that end after one time and begin before another, in order.
// Those that were read at a time that is yet to come were read by a clock that was wrong, perhaps before they ended.
func (s *Service) wholeDays(ctx context.Context, from, to time.Time) ([]Day, error) {
	days, err := s.o.Store.Days(ctx, from, to)
	now := s.o.Now()
	return slices.DeleteFunc(days, func(d Day) bool { return d.ReadAt.After(now) }), err
}

// readDay reads a day's lines to the end of the list. The day counts as read if it was over, and what was
// recorded in its last moments listed, before that began.
func (s *Service) readDay(ctx context.Context, day Period) error {
	began := s.o.Now()
	seen := map[string]bool{}
	after, stale := gateway.Cursor(""), 0
	for range maxPages {
		page, err := s.lines(ctx, day, after)
		if err != nil {
			return err
		}
		fresh, err := s.newOf(page.Lines, day, seen)
		if err != nil {
			return err
		}
		if stale++; len(fresh) > 0 {
			stale = 0
		}
		if stale >= maxStale && page.Next != "" {
			break
		}
		if err := s.o.Store.KeepLines(ctx, fresh, began); err != nil {
			return fmt.Errorf("keep what was read: %w", err)
		}
		s.o.Progress(day.From, len(seen))
		if page.Next == "" {
			return s.endReading(ctx, day, began)
		}
		after = page.Next
	}
	return errors.New("the gateway's list does not come to an end")
}

// pageTries is how often a page is asked for. A reading that fails begins with the first page again: a long day would never be read if
// the gateway failed now and then.
const pageTries = 3

// lines reads a page of a day's lines.
func (s *Service) lines(ctx context.Context, day Period, after gateway.Cursor) (page gateway.LinePage, err error) {
	for range pageTries {
		if err := s.keepLease(ctx, errLeaseLost); err != nil {
			return page, err
		}
		if page, err = s.o.Statement.Lines(ctx, day.From, day.To, after); err == nil || ctx.Err() != nil {
			break
		}
	}
	return page, err
}

// endReading notes what a reading did not find any more, and the day if it was whole.
func (s *Service) endReading(ctx context.Context, day Period, began time.Time) error {
	listed := began.Add(-s.o.GracePeriod)
	if listed.Before(day.To) {
		return s.o.Store.MissLines(ctx, day.From, listed, began)
	}
	if err := s.o.Store.MissLines(ctx, day.From, day.To, began); err != nil {
		return err
	}
	return s.o.Store.KeepDay(ctx, Day{From: day.From, To: day.To, ReadAt: began})
}

// newOf is the lines of a page that the reading has not seen yet, checked. The list is asked for with the
// second that the day ends with, in case the gateway leaves that out; what belongs to the next day is left
// to its own reading.
func (s *Service) newOf(page []gateway.Line, day Period, seen map[string]bool) ([]Line, error) {
	var fresh []Line
	for _, line := range page {
		id, _ := payout.ParseID(line.Reference)
		l := Line{Line: line, Gateway: s.at(), Payout: id}
		if err := l.check(); err != nil {
			return nil, err
		}
		if l.At.Before(day.From.Add(-time.Second)) || l.At.After(day.To.Add(time.Second)) {
			return nil, fmt.Errorf("line %s is of %s: the gateway's list is not of the day", l.ID, l.At.UTC().Format(time.RFC3339))
		}
		if seen[l.ID] {
			continue
		}
		seen[l.ID] = true
		if !day.holds(l.At) {
			continue
		}
		l.FirstReported = s.reportOf(l)
		l.LastReported = l.FirstReported
		fresh = append(fresh, l)
	}
	return fresh, nil
}

// check refuses what can't be a line.
func (l Line) check() error {
	switch {
	case !gateway.IsID(l.ID):
		return errors.New("the gateway's list holds a line without an id")
	case l.Debit < 0 || l.Credit < 0 || (l.Debit > 0) == (l.Credit > 0):
		return fmt.Errorf("line %s must either take an amount or give one", l.ID)
	case l.Fees < 0 || l.Tax < 0 || l.Amount < 0:
		return fmt.Errorf("line %s has an amount below zero", l.ID)
	case l.At.IsZero():
		return fmt.Errorf("line %s does not tell its time", l.ID)
	default:
		return nil
	}
}

// reportOf is what may not change of a line, in words. Its fees and its bank reference may come late.
func (s *Service) reportOf(l Line) string {
	show := s.o.Currency.FormatFixed
	var b strings.Builder
	if l.Debit > 0 {
		fmt.Fprintf(&b, "takes %s %s", show(l.Debit), l.Currency)
	} else {
		fmt.Fprintf(&b, "gives %s %s", show(l.Credit), l.Currency)
	}
	fmt.Fprintf(&b, " on %s", l.At.UTC().Format("2 January 2006 15:04:05 MST"))
	if l.HasBalance {
		fmt.Fprintf(&b, ", balance %s", show(l.Balance))
	}
	if l.SourceID != "" {
		fmt.Fprintf(&b, ", from %s", l.SourceID)
	}
	return b.String()
}

// coverageOf is what was read of the statement around a period: the days that were read whole, the one after it
// among them, and of the period's last day as much as it holds.
func (s *Service) coverageOf(ctx context.Context, p Period) (coverage, error) {
	days, err := s.wholeDays(ctx, p.From.AddDate(0, 0, -coverageDays), p.To.Add(s.o.GracePeriod))
	if err != nil {
		return nil, err
	}
	var read coverage
	for _, d := range days {
		read = read.add(Period{d.From, d.To})
	}
	if last := s.midnight(p.To.Add(-time.Nanosecond), 0); len(read) == 0 || read[len(read)-1].To.Before(p.To) {
		read = read.add(Period{last, p.To})
	}
	return read, nil
}

// coverageDays is how far before a period days are looked up.
const coverageDays = 200
