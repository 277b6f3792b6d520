package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bursar/internal/money"
	"bursar/internal/sale"
)

// chart is amounts of months or days as bars. Lengths are in thousandths of the plot, so that the drawing fits
// every width without its letters growing or shrinking.
type chart struct {
	Title, Description string
	// Of names what a bar stands for, and Amounts what its length is.
	Of, Amounts string
	Lines       []chartLine
	Bars        []bar
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

// chartValue is what a bar shows: labels such as "Nov" and "November 2026", and an amount.
type chartValue struct {
	Short, Label string
	Amount       money.Amount
}

// bar is one month or day.
type bar struct {
	X, Y, Width, Height, Middle permille
	Short, Label                string // "Nov" and "November 2026"
	Amount                      money.Amount
	Negative                    bool
}

const whole = 1000

// monthsChart draws what was earned in months.
func (d *dashboard) monthsChart(months []sale.Month) *chart {
	values := make([]chartValue, 0, len(months))
	for _, m := range months {
		v := chartValue{m.Month, m.Month, m.Earned}
		if month, err := time.Parse("2006-01", m.Month); err == nil {
			v.Short, v.Label = month.Format("Jan"), month.Format("January 2006")
		}
		values = append(values, v)
	}
	return d.newChart(fmt.Sprintf("Earnings of the last %d months", len(months)), "Month", "Earned", values)
}

// newChart draws amounts; it is nil where there are none.
func (d *dashboard) newChart(title, of, amounts string, values []chartValue) *chart {
	if !slices.ContainsFunc(values, func(v chartValue) bool { return v.Amount != 0 }) {
		return nil
	}
	var top, bottom, sum money.Amount
	for _, v := range values {
		top, bottom, sum = max(top, v.Amount), min(bottom, v.Amount), sum+v.Amount
	}
	step := niceStep(max(top, -bottom), unitOf(d.o.Currency))
	top, bottom = roundUp(top, step), -roundUp(-bottom, step)
	span := top - bottom
	down := func(a money.Amount) permille { return permille(float64(top-a) * whole / float64(span)) } // whole numbers would overflow

	c := &chart{
		Title: title, Of: of, Amounts: amounts,
		Description: fmt.Sprintf("%s in all. The table below has each %s.", d.o.Currency.Display(sum), strings.ToLower(of)),
		Zero:        down(0),
	}
	for a := top; a >= bottom; a -= step {
		c.Lines = append(c.Lines, chartLine{down(a), d.short(a)})
	}
	for i, v := range values {
		c.Bars = append(c.Bars, newBar(i, len(values), v, down))
	}
	return c
}

func newBar(i, n int, v chartValue, down func(money.Amount) permille) bar {
	slot := permille(whole / n)
	b := bar{
		X: slot*permille(i) + slot/5, Width: slot * 3 / 5, Middle: slot*permille(i) + slot/2,
		Y: down(max(v.Amount, 0)), Short: v.Short, Label: v.Label, Amount: v.Amount, Negative: v.Amount < 0,
	}
	b.Height = down(min(v.Amount, 0)) - b.Y
	if v.Amount != 0 {
		b.Height = max(b.Height, 4) // something is to be seen of it
	}
	return b
}

// niceStep is the distance of lines that read well (1, 2 or 5, and zeros, in whole major units) so that
// at most five of them reach most.
func niceStep(most, unit money.Amount) money.Amount {
	for decade := unit; ; decade *= 10 {
		for _, digit := range []money.Amount{1, 2, 5} {
			if step := digit * decade; step*5 >= most || decade > money.Max {
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
