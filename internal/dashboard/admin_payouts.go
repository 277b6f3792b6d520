package dashboard

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"bursar/internal/auth"
	"bursar/internal/payout"
)

const (
	payoutsPath = adminHome + "/payouts"
	// payoutsFile is where the API hands out what is listed here. It takes the same sign-in.
	payoutsFile = "/api/admin/payouts"
)

// adminPayoutsView is a page of payouts.
type adminPayoutsView struct {
	Filters []filter
	Form    *form
	// Narrowed says that the form narrows the list.
	Narrowed bool
	// Seller is whose payouts these are, where one seller's are.
	Seller  *auth.User
	Payouts []payoutRow
	Totals  payout.Totals
	// First and Next are the addresses of the first page and the one after this, or ""; CSV is that of the file.
	First, Next, CSV string
}

// SellerPath is the page of a user.
func (adminPayoutsView) SellerPath(u auth.User) string { return personAddress(u.ID) }

// PayoutsOf is the list of a user's payouts.
func (adminPayoutsView) PayoutsOf(u auth.User) string {
	return payoutsAddress(url.Values{"sellerId": {u.ID}})
}

// selectionNames are the parameters by which payouts are selected, as the API has them.
var selectionNames = []string{"status", "state", "sellerId", "date", "from", "to", "minAmount", "maxAmount", "bank", "reason", "sort"}

// formNames are those that the form asks for.
var formNames = []string{"date", "from", "to", "minAmount", "maxAmount", "bank", "sort"}

// adminPayouts lists the payouts that are selected.
func (d *dashboard) adminPayouts(ctx context.Context, v *pageRequest) (page, error) {
	a := adminPayoutsView{}
	given := url.Values{}
	for _, name := range selectionNames {
		if value := strings.TrimSpace(v.query(name)); value != "" {
			given.Set(name, value)
		}
	}
	a.Filters, a.Form = payoutFiltersOf(given), selectionForm(given)
	a.Narrowed = slices.ContainsFunc(formNames, given.Has)
	given.Set("after", v.query("after"))
	selection, err := d.o.Payouts.ParseSelection(given.Get)
	if err != nil {
		return d.again(ctx, show("admin-payouts", "Payouts", a), a.Form, err)
	}
	given.Del("after")
	selection.Limit = pageSize
	found, err := d.o.Payouts.Find(ctx, selection)
	if err != nil {
		return page{}, err
	}
	for _, p := range found.Payouts {
		a.Payouts = append(a.Payouts, payoutRow{p.Payout, p.SellerName})
	}
	a.Totals, a.CSV = found.Totals, payoutsFile+"?"+withValue(given, "format", "csv").Encode()
	if selection.After != "" {
		a.First = payoutsAddress(given)
	}
	if found.Next != "" {
		a.Next = payoutsAddress(withValue(given, "after", string(found.Next)))
	}
	if selection.Seller != "" {
		if a.Seller, err = d.found(ctx, selection.Seller); err != nil {
			return page{}, err
		}
	}
	return show("admin-payouts", "Payouts", a), nil
}

// found is the user with an id, or nil.
func (d *dashboard) found(ctx context.Context, id string) (*auth.User, error) {
	users, err := d.o.Auth.FindUsers(ctx, id, 1)
	if err != nil || len(users) == 0 {
		return nil, err
	}
	return &users[0], nil
}

// withValue is values with one set.
func withValue(values url.Values, name, value string) url.Values {
	all := url.Values{name: {value}}
	for n, given := range values {
		if n != name {
			all[n] = given
		}
	}
	return all
}

func payoutsAddress(values url.Values) string {
	if len(values) == 0 {
		return payoutsPath
	}
	return payoutsPath + "?" + values.Encode()
}

// payoutFiltersOf lead to the payouts in each state that operators look for, as far as the rest of what is selected allows.
func payoutFiltersOf(given url.Values) []filter {
	current := cmp.Or(given.Get("state"), given.Get("status"))
	rest := withValue(given, "state", "")
	delete(rest, "state")
	delete(rest, "status")
	all := []filter{{"All", payoutsAddress(rest), current == ""}}
	for _, s := range payout.Statuses() {
		all = append(all, filter{statusLabel(s).Word, payoutsAddress(withValue(rest, "status", string(s))), current == string(s)})
	}
	for _, s := range []struct{ state, word string }{
		{payout.LateState, "Late"},
		{string(payout.Waiting), "Waiting"},
		{string(payout.Submitted), "At the gateway"},
		{string(payout.Unknown), "Unknown"},
		{string(payout.ManualReview), "In review"},
		{payout.DiscrepancyState, "Discrepancy"},
		{string(payout.Returned), "Returned"},
	} {
		all = append(all, filter{s.word, payoutsAddress(withValue(rest, "state", s.state)), current == s.state})
	}
	return all
}

// selectionForm narrows the list further, and keeps the rest of what is selected.
func selectionForm(given url.Values) *form {
	f := &form{Action: payoutsPath, Fields: []field{
		{Name: "date", Label: "Date of", Type: "select", Choices: []choice{
			{string(payout.DateRequested), "Request", ""}, {string(payout.DateCompleted), "Payment", ""}, {string(payout.DateEnded), "End", ""},
		}},
		{Name: "from", Label: "First day", Type: "date", Optional: true},
		{Name: "to", Label: "Last day", Type: "date", Optional: true},
		{Name: "minAmount", Label: "Least amount", Type: "text", InputMode: "decimal", Optional: true, Max: 20},
		{Name: "maxAmount", Label: "Largest amount", Type: "text", InputMode: "decimal", Optional: true, Max: 20},
		{Name: "bank", Label: "Bank (IFSC letters)", Type: "text", Optional: true, Max: 4},
		{Name: "sort", Label: "Sort by", Type: "select", Choices: []choice{
			{string(payout.NewestFirst), "Newest first", ""}, {string(payout.OldestFirst), "Oldest first", ""}, {string(payout.LargestFirst), "Largest amount first", ""},
		}},
	}}
	for _, name := range selectionNames {
		if !slices.Contains(formNames, name) && given.Has(name) {
			f.Hidden = append(f.Hidden, hidden{name, given.Get(name)})
		}
	}
	return f.fill(given)
}
