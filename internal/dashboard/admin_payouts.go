package dashboard

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"bursar/internal/auth"
	"bursar/internal/payout"
)

const (
	// foundShown is how many payouts a search by reference lists.
	foundShown = 20
	// candidatesShown is how many users a search for a seller offers.
	candidatesShown = 10
)

// adminPayoutsView is a page of payouts.
type adminPayoutsView struct {
	// Query is what was searched for.
	Query   string
	Status  payout.Status
	Filters []filter
	// Seller is whose payouts these are, where the search found one seller.
	Seller *auth.User
	// Candidates are the sellers of whom the search may mean one.
	Candidates []auth.User
	Payouts    []payoutRow
	// ByReference says that the search found payouts by a reference of theirs.
	ByReference bool
	pager
}

// Search asks for a payout.
func (a adminPayoutsView) Search() searchBox {
	return searchBox{adminHome + "/payouts", "Payout's id, gateway's id, bank reference, or seller's id or e-mail", a.Query}
}

// SellerPath is the page of a user.
func (adminPayoutsView) SellerPath(u auth.User) string { return personAddress(u.ID) }

// PayoutsOf is the list of a user's payouts.
func (adminPayoutsView) PayoutsOf(u auth.User) string {
	return adminPayoutsAddress(u.ID, "")
}

// adminPayouts lists payouts: all, one seller's, or those that a reference belongs to.
func (d *dashboard) adminPayouts(ctx context.Context, v *pageRequest) (page, error) {
	a := adminPayoutsView{Query: strings.TrimSpace(v.query("q"))}
	if s := payout.Status(v.query("status")); slices.Contains(payout.Statuses(), s) {
		a.Status = s
	}
	a.Filters = adminPayoutFilters(a.Query, a.Status)
	list, err := d.searchPayouts(ctx, v, &a)
	if err != nil {
		return page{}, err
	}
	a.Payouts, err = d.payoutRows(ctx, list)
	return show("admin-payouts", "Payouts", a), err
}

// searchPayouts finds what the page asks for: a reference first, then a seller.
func (d *dashboard) searchPayouts(ctx context.Context, v *pageRequest, a *adminPayoutsView) ([]payout.Payout, error) {
	number := v.pageNumber()
	wanted := payout.Filter{Status: a.Status, Limit: pageSize, Offset: (number - 1) * pageSize}
	if a.Query != "" {
		found, err := d.o.Payouts.Search(ctx, a.Query, foundShown)
		if err != nil || len(found) > 0 {
			a.ByReference = true
			return found, err
		}
		users, err := d.o.Auth.FindUsers(ctx, a.Query, candidatesShown)
		if err != nil {
			return nil, err
		}
		a.Seller = theOne(users, a.Query)
		if a.Seller == nil {
			a.Candidates = users
			return nil, nil
		}
		wanted.Seller = a.Seller.ID
	}
	list, total, err := d.o.Payouts.History(ctx, v.caller(), wanted)
	a.pager = newPager(v, number, total, "q", "status")
	return list, err
}

// theOne is the user whom a search means: the only one that it found, or the one with just that address.
func theOne(users []auth.User, query string) *auth.User {
	if len(users) == 1 {
		return &users[0]
	}
	i := slices.IndexFunc(users, func(u auth.User) bool { return auth.EmailKey(u.Email) == auth.EmailKey(query) })
	if i < 0 {
		return nil
	}
	return &users[i]
}

func adminPayoutsAddress(query string, status payout.Status) string {
	values := url.Values{}
	if query != "" {
		values.Set("q", query)
	}
	if status != "" {
		values.Set("status", string(status))
	}
	if len(values) == 0 {
		return adminHome + "/payouts"
	}
	return adminHome + "/payouts?" + values.Encode()
}

func adminPayoutFilters(query string, current payout.Status) []filter {
	all := []filter{{"All", adminPayoutsAddress(query, ""), current == ""}}
	for _, s := range payout.Statuses() {
		all = append(all, filter{statusLabel(s).Word, adminPayoutsAddress(query, s), s == current})
	}
	return all
}
