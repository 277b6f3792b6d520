package dashboard

import (
	"context"
	"net/http"

	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/sale"
	"bursar/internal/search"
)

const searchPath = adminHome + "/search"

// searchView is what was found.
type searchView struct {
	Query string
	// Wrong says why nothing can be found by the query; empty if something can.
	Wrong    string
	Users    []personRow
	Payouts  []payoutRow
	Accounts []accountRow
	Sales    []foundSale
	// Full says that there may be more of some kind, and Nothing that nothing was found.
	Full, Nothing bool
}

// accountRow is a bank account as it is listed.
type accountRow struct {
	bank.Account
	SellerName string
}

// Path is its page, and SellerPath that of its seller.
func (r accountRow) Path() string       { return accountAddress(r.ID) }
func (r accountRow) SellerPath() string { return personAddress(r.Seller) }

// Label is how far its verification is, or that it was replaced.
func (r accountRow) Label() label {
	if !r.Current {
		return label{"Replaced", neutral}
	}
	return accountLabel(r.Status)
}

// foundSale is a sale as it is listed.
type foundSale struct {
	sale.Sale
	SellerName string
}

// SellerPath is the page of its seller.
func (r foundSale) SellerPath() string { return personAddress(r.Seller) }

// adminSearch finds what an admin has in hand. The only thing that it finds is shown at once.
func (d *dashboard) adminSearch(ctx context.Context, v *pageRequest) (page, error) {
	shown := searchView{Query: v.r.URL.Query().Get("q")}
	if shown.Query == "" {
		return show("admin-search", "Search", shown), nil
	}
	r, err := d.o.Search.Find(ctx, shown.Query)
	if failure := fault.From(err); failure != nil && failure.Kind == fault.Invalid {
		shown.Query, shown.Wrong = "", "What you search for "+failure.Details["q"]+"."
		p := show("admin-search", "Error: Search", shown)
		p.status = http.StatusUnprocessableEntity
		return p, nil
	}
	if err != nil {
		return page{}, err
	}
	for _, u := range r.Users {
		shown.Users = append(shown.Users, personRow{u})
	}
	for _, p := range r.Payouts {
		shown.Payouts = append(shown.Payouts, payoutRow{p, r.Names[p.Seller]})
	}
	for _, a := range r.Accounts {
		shown.Accounts = append(shown.Accounts, accountRow{a, r.Names[a.Seller]})
	}
	for _, s := range r.Sales {
		shown.Sales = append(shown.Sales, foundSale{s, r.Names[s.Seller]})
	}
	shown.Full = max(len(r.Users), len(r.Payouts), len(r.Accounts)) == search.Shown
	if shown.Nothing = r.Len() == 0; r.Len() == 1 {
		return goTo(shown.only()), nil
	}
	return show("admin-search", "Search", shown), nil
}

// only is the page of the one thing that was found.
func (s searchView) only() string {
	switch {
	case len(s.Users) > 0:
		return s.Users[0].Path()
	case len(s.Payouts) > 0:
		return s.Payouts[0].Path()
	case len(s.Accounts) > 0:
		return s.Accounts[0].Path()
	default:
		return s.Sales[0].SellerPath()
	}
}
