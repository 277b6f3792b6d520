package dashboard

import (
	"context"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// What an overview shows of each list.
const (
	overviewMonths   = 12
	overviewReleases = 4
	overviewPayouts  = 5
)

// overviewView is a seller's money at a glance.
type overviewView struct {
	payout.Summary
	Minimum  money.Amount
	Releases []sale.Release
	Chart    *chart
	Payouts  []payout.Payout
	Account  accountView
	// OnHoldUntil is when the hold on payouts ends, zero without one.
	OnHoldUntil time.Time
	// Stopped is why no payout may be requested or sent until our team resumes payouts; "" if they may.
	Stopped string
}

// CanRequest reports whether a payout could be asked for now.
func (o overviewView) CanRequest() bool {
	return o.Stopped == "" && o.OnHoldUntil.IsZero() && o.Account.Verified() && o.Available >= o.Minimum
}

// Fresh reports whether the seller has yet to begin.
func (o overviewView) Fresh() bool { return o.Sales == 0 && len(o.Payouts) == 0 }

// accountView is a bank account as overviews show it.
type accountView struct{ bank.Account }

func (a accountView) Exists() bool   { return a.Status != "" }
func (a accountView) Verified() bool { return a.Status == bank.StatusVerified }
func (a accountView) Rejected() bool { return a.Status == bank.StatusRejected }
func (a accountView) Label() label   { return accountLabel(a.Status) }

// overview is the first page after sign-in: a seller sees their money, an admin the admin home, and a buyer a
// page that says how to begin.
func (d *dashboard) overview(ctx context.Context, v *pageRequest) (page, error) {
	switch v.who.Role {
	case auth.Admin:
		return goTo("/dashboard/admin"), nil
	case auth.Seller:
		return d.sellerOverview(ctx, v)
	default:
		return show("buyer", "Welcome", nil), nil
	}
}

func (d *dashboard) sellerOverview(ctx context.Context, v *pageRequest) (page, error) {
	seller := v.who.UserID
	o := overviewView{Minimum: d.o.Payouts.Minimum()}
	var err error
	if o.Summary, err = d.o.Payouts.Summary(ctx, seller); err != nil {
		return page{}, err
	}
	o.Account = accountView{o.Summary.Account}
	if o.HoldUntil.After(d.o.Now()) {
		o.OnHoldUntil = o.HoldUntil
	}
	if o.Stopped, err = d.o.Payouts.WhyStopped(ctx, seller); err != nil {
		return page{}, err
	}
	if o.Releases, err = d.o.Sales.Releases(ctx, seller, overviewReleases); err != nil {
		return page{}, err
	}
	months, err := d.o.Sales.Months(ctx, seller, overviewMonths)
	if err != nil {
		return page{}, err
	}
	o.Chart = d.monthsChart(months)
	if o.Payouts, _, err = d.o.Payouts.History(ctx, v.caller(), payout.Filter{Limit: overviewPayouts}); err != nil {
		return page{}, err
	}
	p := show("overview", "Overview", o)
	p.live = o.InTransit > 0 || o.Account.Status == bank.StatusUnverified
	return p, nil
}
