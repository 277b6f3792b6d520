package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"bursar/internal/payout"
)

// figuresView is what went out, what failed and what is under way. Each number leads to the payouts behind it.
type figuresView struct {
	Figures []figureView
	// Periods lead to the same of other days; Banks and Reasons are of the current one.
	Periods []filter
	Banks   []bankRow
	Reasons []reasonRow
	Chart   *chart
}

// figureView is one number.
type figureView struct {
	Title, Path string
	payout.Count
	// Since is when the oldest of them was requested; zero where that is not told.
	Since time.Time
}

// bankRow is what a bank was paid.
type bankRow struct {
	payout.BankCounts
	PaidPath, FailedPath string
}

// Rate is the share that failed.
func (b bankRow) Rate() string { return permille(b.Permille()).String() }

// reasonRow is why payouts failed.
type reasonRow struct {
	payout.ReasonCount
	Path string
}

// Words is the reason's code in words.
func (r reasonRow) Words() string {
	if r.Code == "" {
		return "No reason given"
	}
	words := strings.ReplaceAll(r.Code, "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

// periodNames are those of [payout.Periods], in the order of the page.
var periodNames = []struct{ name, word string }{{"today", "Today"}, {"yesterday", "Yesterday"}, {"7days", "7 days"}, {"30days", "30 days"}}

// figures reads what an operator watches; the banks and reasons are of the period that the address names, or yesterday's.
func (d *dashboard) figures(ctx context.Context, v *pageRequest) (figuresView, error) {
	f, err := d.o.Payouts.Figures(ctx)
	if err != nil {
		return figuresView{}, err
	}
	name := v.query("period")
	period, known := payout.Periods[name]
	if !known {
		name, period = "yesterday", payout.Periods["yesterday"]
	}
	shown := figuresView{}
	for _, p := range []struct{ name, title string }{{"today", "Paid today"}, {"7days", "Paid in 7 days"}, {"30days", "Paid in 30 days"}} {
		of := payout.Periods[p.name]
		shown.Figures = append(shown.Figures, figureView{Title: p.title, Path: listOf(f, of, paidOnes("", "")), Count: f.Of(of).Paid})
	}
	yesterday := payout.Periods["yesterday"]
	shown.Figures = append(shown.Figures,
		figureView{Title: "Failed yesterday", Path: listOf(f, yesterday, failedOnes("", "")), Count: f.Of(yesterday).Failed},
		figureView{
			Title: "In transit", Path: payoutsAddress(url.Values{"status": {string(payout.StatusProcessing)}, "sort": {string(payout.OldestFirst)}}),
			Count: f.Open.Count, Since: f.Open.Since,
		})
	for _, p := range periodNames {
		shown.Periods = append(shown.Periods, filter{p.word, adminHome + "?period=" + p.name + "#banks", p.name == name})
	}
	ended := f.Of(period)
	for _, b := range ended.Banks {
		shown.Banks = append(shown.Banks, bankRow{
			b, listOf(f, period, paidOnes("bank", b.Bank)), listOf(f, period, failedOnes("bank", b.Bank)),
		})
	}
	for _, r := range ended.Reasons {
		shown.Reasons = append(shown.Reasons, reasonRow{r, listOf(f, period, failedOnes("reason", r.Code))})
	}
	values := make([]chartValue, 0, len(f.Days))
	for i, day := range f.Days {
		value := chartValue{"", day.Day.Format("2 January 2006"), day.Paid.Amount}
		if i%5 == 4 { // there is no room for each
			value.Short = day.Day.Format(dayLayout)
		}
		values = append(values, value)
	}
	shown.Chart = d.newChart(fmt.Sprintf("Paid on each of the last %d days", len(f.Days)), "Day", "Paid", values)
	return shown, nil
}

// paidOnes select what was paid, with one more parameter where it has a value.
func paidOnes(name, value string) url.Values {
	return addedTo(url.Values{"date": {string(payout.DateCompleted)}}, name, value)
}

// failedOnes select what failed or was returned, by when it did.
func failedOnes(name, value string) url.Values {
	return addedTo(url.Values{"status": {string(payout.StatusFailed)}, "date": {string(payout.DateEnded)}}, name, value)
}

func addedTo(values url.Values, name, value string) url.Values {
	if value != "" {
		values.Set(name, value)
	}
	return values
}

// listOf is the list of those payouts of a period that are selected.
func listOf(f payout.Figures, p payout.Period, selected url.Values) string {
	selected.Set("from", f.Days[p.From].Day.Format(time.DateOnly))
	selected.Set("to", f.Days[p.To-1].Day.Format(time.DateOnly))
	return payoutsAddress(selected)
}
