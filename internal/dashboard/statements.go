package dashboard

import (
	"context"
	"net/url"
	"time"
)

const (
	statementsPath = "/dashboard/payouts/statements"
	// statementFile is where the API hands out what is listed here. It takes the same sign-in.
	statementFile = "/api/payouts/statement"
	// statementMonths is how many months have links of their own.
	statementMonths = 12
)

// statementsView leads to a seller's statements.
type statementsView struct {
	// Months is empty for a seller who has no transfers.
	Months []statementMonth
	Form   *form
}

// statementMonth is a month with its files.
type statementMonth struct {
	Name      string
	SoFar     bool
	CSV, JSON string
	Print     string
}

func statementAddress(from, to, format string) string {
	return statementFile + "?" + url.Values{"format": {format}, "from": {from}, "to": {to}}.Encode()
}

func printAddress(from, to string) string {
	return printPath + "?" + url.Values{"from": {from}, "to": {to}}.Encode()
}

// statements lists months to download, and asks for another period. One that is asked for leads to its file.
func (d *dashboard) statements(ctx context.Context, v *pageRequest) (page, error) {
	user, _, err := d.o.Auth.Me(ctx, v.who)
	if err != nil {
		return page{}, err
	}
	entries, err := d.o.Ledger.Entries(ctx, v.who.UserID, maxEntry, 1)
	if err != nil {
		return page{}, err
	}
	shown := statementsView{Form: d.statementForm().fill(v.r.URL.Query())}
	if len(entries) > 0 {
		shown.Months = d.statementMonths(user.CreatedAt)
	}
	p := show("statements", "Statements", shown)
	format := v.query("format")
	if format == "" {
		return p, nil
	}
	from, to := v.query("from"), v.query("to")
	if _, _, err := d.o.Statements.Period(from, to); err != nil {
		return d.again(ctx, p, shown.Form, err)
	}
	if format == "print" {
		return goTo(printAddress(from, to)), nil
	}
	return goTo(statementAddress(from, to, format)), nil
}

// maxEntry is above the number of any transfer.
const maxEntry = 1 << 62

func (d *dashboard) statementForm() *form {
	today := d.o.Now().In(d.o.Zone)
	return &form{Action: statementsPath, Fields: []field{
		{Name: "from", Label: "First day", Type: "date", Value: today.AddDate(0, 0, 1-today.Day()).Format(time.DateOnly)},
		{Name: "to", Label: "Last day", Type: "date", Value: today.Format(time.DateOnly)},
	}}
}

// statementMonths are the last months since the seller joined, this one first.
func (d *dashboard) statementMonths(joined time.Time) (months []statementMonth) {
	now := d.o.Now().In(d.o.Zone)
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, d.o.Zone)
	for i := 0; i < statementMonths && month.AddDate(0, 1, 0).After(joined); i++ {
		from, to := month.Format(time.DateOnly), month.AddDate(0, 1, -1).Format(time.DateOnly)
		months = append(months, statementMonth{
			Name: month.Format("January 2006"), SoFar: i == 0,
			CSV: statementAddress(from, to, "csv"), JSON: statementAddress(from, to, "json"),
			Print: printAddress(from, to),
		})
		month = month.AddDate(0, -1, 0)
	}
	return months
}
