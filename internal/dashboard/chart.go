package dashboard

import (
	"fmt"
	"slices"
	"time"

	"bursar/internal/money"
	"bursar/internal/sale"
)

// chart is the months' earnings as bars. Lengths are in thousandths of the plot, so that the drawing fits
// every width without its letters growing or shrinking.
type chart struct {
	Title, Description string
	Lines              []chartLine
	Bars               []bar
	// Zero is how far down the line of nothing is.
	Zero permille
}

// permille is a share in thousandths, which a drawing wants in percent.
type permille int64

func (p permille) String() string { return fmt.Sprintf("%d.%d%%", p/10, p%10) }

// chartLine is a line across, with the amount that it stands for.
type chartLine struct {
	Y     permille
	Label string
}

// bar is one month.
type bar struct {
	X, Y, Width, Height, Middle permille
	Short, Label                string // "Nov" and "November 2026"
	Amount                      money.Amount
	Negative                    bool
}

const whole = 1000

// newChart draws months; it is nil where nothing was earned in any of them.
func (d *dashboard) newChart(months []sale.Month) *chart {
	if !slices.ContainsFunc(months, func(m sale.Month) bool { return m.Earned != 0 }) {
		return nil
	}
	var top, bottom, sum money.Amount
	for _, m := range months {
		top, bottom, sum = max(top, m.Earned), min(bottom, m.Earned), sum+m.Earned
	}
	step := niceStep(max(top, -bottom), unitOf(d.o.Currency))
	top, bottom = roundUp(top, step), -roundUp(-bottom, step)
	span := top - bottom
	down := func(a money.Amount) permille { return permille((top - a) * whole / span) }

	c := &chart{
		Title:       fmt.Sprintf("Earnings of the last %d months", len(months)),
		Description: fmt.Sprintf("%s in all. The table below has each month.", d.o.Currency.Display(sum)),
		Zero:        down(0),
	}
	for a := top; a >= bottom; a -= step {
		c.Lines = append(c.Lines, chartLine{down(a), d.short(a)})
	}
	for i, m := range months {
		c.Bars = append(c.Bars, newBar(i, len(months), m, down))
	}
	return c
}

func newBar(i, n int, m sale.Month, down func(money.Amount) permille) bar {
	slot := permille(whole / n)
	b := bar{
		X: slot*permille(i) + slot/5, Width: slot * 3 / 5, Middle: slot*permille(i) + slot/2,
		Y: down(max(m.Earned, 0)), Amount: m.Earned, Negative: m.Earned < 0,
	}
	b.Height = down(min(m.Earned, 0)) - b.Y
	if m.Earned != 0 {
		b.Height = max(b.Height, 4) // something is to be seen of it
	}
	b.Short, b.Label = m.Month, m.Month
	if month, err := time.Parse("2006-01", m.Month); err == nil {
		b.Short, b.Label = month.Format("Jan"), month.Format("January 2006")
	}
	return b
}

// niceStep is the distance of lines that read well (1, 2 or 5, and zeros, in whole major units) so that
// at most five of them reach most.
func niceStep(most, unit money.Amount) money.Amount {
	for decade := unit; ; decade *= 10 {
		for _, digit := range []money.Amount{1, 2, 5} {
			if step := digit * decade; step*5 >= most || decade > money.Max/10 {
				return step
			}
		}
	}
}

// roundUp is the next multiple of step from a on, for a that is not below zero.
func roundUp(a, step money.Amount) money.Amount { return (a + step - 1) / step * step }

// unitOf is one major unit of a currency.
func unitOf(c money.Currency) money.Amount {
	unit := money.Amount(1)
	for range c.Exponent() {
		unit *= 10
	}
	return unit
}
