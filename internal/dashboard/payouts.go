package dashboard

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"bursar/internal/bank"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// pageSize is how many rows a page of a list has.
const pageSize = 20

// pager leads through the pages of a list.
type pager struct {
	Page, Pages int
	Total       int64
	address     string
	query       url.Values
}

func newPager(v *pageRequest, page int, total int64, keep ...string) pager {
	query := url.Values{}
	for _, name := range keep {
		if value := v.query(name); value != "" {
			query.Set(name, value)
		}
	}
	pages := int((total + pageSize - 1) / pageSize)
	return pager{Page: page, Pages: max(pages, 1), Total: total, address: v.r.URL.Path, query: query}
}

// Newer and Older are the addresses of the pages beside this one, or "".
func (p pager) Newer() string { return p.at(p.Page - 1) }

// Older is the page after this one.
func (p pager) Older() string { return p.at(p.Page + 1) }

func (p pager) at(page int) string {
	if page < 1 || page > p.Pages {
		return ""
	}
	if page > 1 {
		p.query.Set("page", strconv.Itoa(page))
	} else {
		p.query.Del("page")
	}
	if len(p.query) == 0 {
		return p.address
	}
	return p.address + "?" + p.query.Encode()
}

// payoutsView is a page of a seller's payouts.
type payoutsView struct {
	Payouts []payout.Payout
	// InTransit and PaidOut are all of it, whatever the page shows.
	InTransit, PaidOut money.Amount
	Status             payout.Status // "" for all
	Filters            []filter
	pager
}

// filter is a link to a part of a list.
type filter struct {
	Label, Path string
	Current     bool
}

func payoutFilters(current payout.Status) []filter {
	const list = "/dashboard/payouts"
	all := []filter{{"All", list, current == ""}}
	for _, s := range payout.Statuses() {
		all = append(all, filter{statusLabel(s).Word, list + "?status=" + string(s), s == current})
	}
	return all
}

// payouts lists what the seller asked for.
func (d *dashboard) payouts(ctx context.Context, v *pageRequest) (page, error) {
	number := v.pageNumber()
	f := payout.Filter{Limit: pageSize, Offset: (number - 1) * pageSize}
	if s := payout.Status(v.query("status")); slices.Contains(payout.Statuses(), s) {
		f.Status = s
	}
	list, total, err := d.o.Payouts.History(ctx, v.caller(), f)
	if err != nil {
		return page{}, err
	}
	sums, err := d.o.Payouts.Summary(ctx, v.who.UserID)
	if err != nil {
		return page{}, err
	}
	p := show("payouts", "Payouts", payoutsView{
		InTransit: sums.InTransit, PaidOut: sums.Withdrawn,
		Payouts: list, Status: f.Status, Filters: payoutFilters(f.Status), pager: newPager(v, number, total, "status"),
	})
	p.live = slices.ContainsFunc(list, func(p payout.Payout) bool { return p.Status() == payout.StatusProcessing })
	return p, nil
}

// payoutView is one payout with its story.
type payoutView struct {
	payout.Payout
	Branch      bank.Branch
	Headline    string
	Advice      string
	Timeline    []step
	Cancellable bool
	// SameAccount says that new payouts would go to the account that this one went to.
	SameAccount bool
}

// CancelUntil is when the payout is sent, if that is known; nil otherwise.
func (p payoutView) CancelUntil() *time.Time {
	if p.State != payout.Waiting || p.IsStopped() || p.Tries > 0 || p.DueAt.IsZero() {
		return nil
	}
	return &p.DueAt
}

// Receives names the row of what reaches the bank account; "" where nothing does.
func (p payoutView) Receives() string {
	switch {
	case p.State == payout.Completed:
		return "You received"
	case p.Status() == payout.StatusProcessing:
		return "You receive"
	default:
		return ""
	}
}

// RetryAddress is the form for another payout of the same amount.
func (p payoutView) RetryAddress() string {
	return "/dashboard/payouts/new?" + url.Values{"again": {string(p.ID)}}.Encode()
}

// theirs finds the payout that the address names, if it is the visitor's.
func (d *dashboard) theirs(ctx context.Context, v *pageRequest) (payout.Payout, error) {
	id, err := payout.ParseID(v.r.PathValue("id"))
	if err != nil {
		return payout.Payout{}, err
	}
	return d.o.Payouts.Payout(ctx, v.caller(), id)
}

// payout tells all about one payout.
func (d *dashboard) payout(ctx context.Context, v *pageRequest) (page, error) {
	p, err := d.theirs(ctx, v)
	if err != nil {
		return page{}, err
	}
	events, err := d.o.Payouts.Events(ctx, v.caller(), p.ID)
	if err != nil {
		return page{}, err
	}
	shown := payoutView{
		Payout: p, Headline: headlineOf(p, d.o.Now()), Advice: adviceOn(p),
		Timeline: timelineOf(p, events, d.o.Now()), Cancellable: d.o.Payouts.Cancellable(p),
	}
	shown.Branch, _ = d.o.Bank.Branch(bank.IFSC(p.AccountIFSC)) // an IFSC that we don't know may still be right
	account, err := d.o.Bank.Account(ctx, v.who.UserID)
	if err != nil && !errors.Is(err, bank.ErrNone) {
		return page{}, err
	}
	shown.SameAccount = account.ID == p.BankAccountID
	answer := show("payout", "Payout of "+d.o.Currency.Display(p.Amount), shown)
	answer.live = p.Status() == payout.StatusProcessing
	return answer, nil
}
