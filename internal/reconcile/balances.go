package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"bursar/internal/money"
)

// balances follows the account's balance through a period. Lines share seconds, and their order within one
// is not told, so a day is held together without it: each balance that a line starts from is one that
// another ends with, but for the day's first and last.
type balances struct {
	day   Day
	first Line
	// loose counts the balances that lines start from, less those that lines end with.
	loose map[money.Amount]int
	// starts and ends are when a line last started from a balance, or ended with it.
	starts, ends map[money.Amount]time.Time
	unreported   bool
	// before is the closing balance of the day before, if that is known.
	before      money.Amount
	knowsBefore bool
	// looked are the days that were followed.
	looked map[string]bool
}

// beginBalances finds the balance that the period should begin with.
func (c *comparison) beginBalances(ctx context.Context) error {
	c.balances.looked = map[string]bool{}
	const finalCheck = 31
	days, err := c.s.wholeDays(ctx, c.p.From.AddDate(0, 0, -finalCheck), c.p.From)
	end := c.p.From
	for _, d := range slices.Backward(days) {
		if !d.To.Equal(end) || d.Lines < 0 {
			break
		}
		if d.Lines > 0 {
			c.balances.before, c.balances.knowsBefore = d.Closing, d.HasBalances
			break
		}
		end = d.From
	}
	return err
}

// take adds the next line. Lines come in the order of their time.
func (b *balances) take(ctx context.Context, c *comparison, l Line) error {
	if from := c.s.midnight(l.At, 0); !from.Equal(b.day.From) {
		if err := b.end(ctx, c, from); err != nil {
			return err
		}
	}
	if b.day.Lines++; b.day.Lines == 1 {
		b.first = l
	}
	if !l.HasBalance || l.Currency != c.s.o.Currency.Code() {
		b.unreported = true
		return nil
	}
	start := l.Balance + l.Taken()
	b.loose[start]++
	b.loose[l.Balance]--
	if _, isThere := b.starts[start]; !isThere {
		b.starts[start] = l.At
	}
	b.ends[l.Balance] = l.At
	return nil
}

// endBalances ends the last day.
func (c *comparison) endBalances(ctx context.Context) error { return c.balances.end(ctx, c, c.p.To) }

// end ends the day, and all days without lines up to the next one.
func (b *balances) end(ctx context.Context, c *comparison, next time.Time) error {
	if b.day.From.IsZero() {
		b.begin(c, c.p.From)
	}
	for b.day.From.Before(next) {
		if err := b.finish(ctx, c); err != nil {
			return err
		}
		b.begin(c, b.day.To)
	}
	return nil
}

func (b *balances) begin(c *comparison, from time.Time) {
	b.day = Day{From: from, To: c.s.midnight(from, 1)}
	b.loose, b.starts, b.ends = make(map[money.Amount]int), make(map[money.Amount]time.Time), make(map[money.Amount]time.Time)
	b.unreported = false
}

// finish looks whether the day's balances hold together, and with the day before.
func (b *balances) finish(ctx context.Context, c *comparison) error {
	b.looked[b.name()] = true
	switch {
	case b.day.Lines == 0:
	case b.unreported:
		b.knowsBefore = false
	default:
		jumps := b.bounds()
		if gap := b.gap(c.s.o.Currency, jumps); gap != "" {
			c.found = append(c.found, Difference{Kind: StatementHasGap, Subject: b.name(), Detail: gap, At: b.first.At})
		}
		sums := &c.result.Sums
		if !sums.HasBalances {
			sums.Opening = b.day.Opening
		}
		sums.Closing, sums.HasBalances = b.day.Closing, true
		b.before, b.knowsBefore = b.day.Closing, b.day.HasBalances
	}
	return c.s.o.Store.KeepBalances(ctx, b.day)
}

func (b *balances) name() string { return b.day.From.Format(time.DateOnly) }

// bounds finds the opening and the closing balance, and returns how many jumps there are besides.
func (b *balances) bounds() int {
	var starts, ends []money.Amount
	for _, balance := range slices.Sorted(maps.Keys(b.loose)) {
		for range b.loose[balance] {
			starts = append(starts, balance)
		}
		for range -b.loose[balance] {
			ends = append(ends, balance)
		}
	}
	// A day that ended as it began may have begun with any of its balances. Only the day before tells with which: the gateway's clock may
	// have gone back between two lines.
	b.day.HasBalances = len(starts) > 0 || b.knowsBefore || len(b.starts) == 1
	if len(starts) == 0 {
		b.day.Opening = b.first.Balance + b.first.Taken()
		if _, isOne := b.starts[b.before]; isOne && b.knowsBefore {
			b.day.Opening = b.before
		}
		b.day.Closing = b.day.Opening
		return 0
	}
	b.day.Opening = slices.MinFunc(starts, func(x, y money.Amount) int { return b.starts[x].Compare(b.starts[y]) })
	b.day.Closing = slices.MaxFunc(ends, func(x, y money.Amount) int { return b.ends[x].Compare(b.ends[y]) })
	if b.knowsBefore && slices.Contains(starts, b.before) {
		b.day.Opening = b.before
	}
	return len(starts) - 1
}

// gap says where the balances do not hold together, or "".
func (b *balances) gap(c money.Currency, jumps int) string {
	show := c.FormatFixed
	switch {
	case jumps > 0:
		return fmt.Sprintf("The balances of the day lead from %s to %s with %s between lines: lines are missing, or wrong.",
			show(b.day.Opening), show(b.day.Closing), count(jumps, "jump"))
	case b.knowsBefore && b.before != b.day.Opening:
		return fmt.Sprintf("The day begins with a balance of %s, and the day before ended with %s: a line is missing, or wrong.",
			show(b.day.Opening), show(b.before))
	default:
		return ""
	}
}
