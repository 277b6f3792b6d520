package dashboard

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

const (
	ledgerPath = "/dashboard/ledger"
	salePath   = "/dashboard/sales/sale"
	printPath  = statementsPath + "/print"

	// ledgerRows is how many entries a page of the seller's ledger shows. To find them, at most maxLedgerRead are read, ledgerRead at
	// once: a filter may match few.
	ledgerRows    = 30
	ledgerRead    = 200
	maxLedgerRead = 10 * ledgerRead

	// maxPrinted is how many entries a printed statement has at most, about 20 sheets, out of maxPrintRead that are read.
	maxPrinted   = 1000
	maxPrintRead = 50 * ledgerRead

	// beginning is before any entry; a seller who names no first day means it.
	beginning = "2000-01-01"
)

// ledgerView is a page of a seller's own ledger: what changed the balance.
type ledgerView struct {
	Rows    []sellerRow
	Filters []filter
	Form    *form
	// Kind is the filter in use, "" for none.
	Kind string
	// Newest and Older are the addresses of the newest page and the next one, or "".
	Newest, Older string
	// Tampered says that an entry can't be read, because it was changed outside Bursar. The list ends before it.
	Tampered bool
}

// Narrowed reports whether entries may be left out.
func (l ledgerView) Narrowed() bool {
	return l.Kind != "" || l.Form.Field("from").Value != "" || l.Form.Field("to").Value != ""
}

// sellerRow is an entry as its seller sees it.
type sellerRow struct{ entryRow }

// Changes lists what the entry did to the seller's own accounts, in words.
func (r sellerRow) Changes() []accountMove {
	return slices.DeleteFunc(r.Moves(), func(m accountMove) bool { return !slices.Contains(accountWords[:sellerAccounts], m.Account) })
}

// sellerAccounts is how many of [accountWords] are the seller's: pending, available and in transit.
const sellerAccounts = 3

// Link is the page of the seller's sale or payout that the entry is about, or "".
func (r sellerRow) Link() string {
	switch {
	case strings.HasPrefix(r.Subject, sale.SubjectPrefix):
		return saleAddress(r.Ref())
	case strings.HasPrefix(r.Subject, payout.IDPrefix):
		return "/dashboard/payouts/" + r.Subject
	default:
		return ""
	}
}

func saleAddress(id string) string { return salePath + "?" + url.Values{"id": {id}}.Encode() }

// ledgerKinds are what a seller can filter by: a label, and the beginning of the types of its entries.
var ledgerKinds = []struct{ name, label, prefix string }{
	{"sales", "Sales", "sale."},
	{"payouts", "Payouts", "payout."},
	{"adjustments", "Adjustments", "balance."},
}

// prefixOf is what the types of a kind begin with. Every type does with that of an unknown kind.
func prefixOf(kind string) (name, prefix string) {
	for _, k := range ledgerKinds {
		if k.name == kind {
			return k.name, k.prefix
		}
	}
	return "", ""
}

// movesSellers reports whether an entry changes one of the seller's own balances.
func movesSellers(e ledger.Entry) bool {
	return e.Moved.Pending != 0 || e.Moved.Available != 0 || e.Moved.InTransit != 0
}

// sellerLedger lists what changed the seller's balance, the newest first.
func (d *dashboard) sellerLedger(ctx context.Context, v *pageRequest) (page, error) {
	kind, prefix := prefixOf(v.query("kind"))
	shown := &ledgerView{Kind: kind, Form: &form{Action: ledgerPath, Fields: []field{
		{Name: "from", Label: "First day", Type: "date", Optional: true, Value: v.query("from")},
		{Name: "to", Label: "Last day", Type: "date", Optional: true, Value: v.query("to")},
	}}}
	shown.Filters = []filter{{"All", shown.address("", 0), kind == ""}}
	for _, k := range ledgerKinds {
		shown.Filters = append(shown.Filters, filter{k.label, shown.address(k.name, 0), k.name == kind})
	}
	first, last, err := d.entriesOf(ctx, v.who.UserID, v.query("from"), v.query("to"))
	if err != nil {
		return d.again(ctx, show("ledger", "Ledger", shown), shown.Form, err)
	}
	before := last + 1
	if asked, err := strconv.ParseInt(v.query("before"), 10, 64); err == nil && asked > 0 && asked < before {
		before = asked
		shown.Newest = shown.address(kind, 0)
	}
	if err := d.fillLedger(ctx, v.who.UserID, shown, prefix, first, before); err != nil {
		return page{}, err
	}
	return show("ledger", "Ledger", shown), nil
}

// address is that of the page whose entries are numbered below before; 0 stands for the newest.
func (l *ledgerView) address(kind string, before int64) string {
	query := url.Values{}
	for name, value := range map[string]string{"kind": kind, "from": l.Form.Field("from").Value, "to": l.Form.Field("to").Value} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if before != 0 {
		query.Set("before", strconv.FormatInt(before, 10))
	}
	if len(query) == 0 {
		return ledgerPath
	}
	return ledgerPath + "?" + query.Encode()
}

// fillLedger reads the entries numbered from first on and below before, until the page is full or enough was read.
func (d *dashboard) fillLedger(ctx context.Context, seller string, shown *ledgerView, prefix string, first, before int64) error {
	next, err := d.readEntries(ctx, seller, first, before, maxLedgerRead, func(e ledger.Entry) bool {
		if movesSellers(e) && strings.HasPrefix(string(e.Type), prefix) {
			shown.Rows = append(shown.Rows, sellerRow{entryRow{Entry: e}})
		}
		return len(shown.Rows) < ledgerRows
	})
	if shown.Tampered = errors.Is(err, ledger.ErrTampered); err != nil && !shown.Tampered {
		return err
	}
	if next > first {
		shown.Older = shown.address(shown.Kind, next)
	}
	return nil
}

// readEntries calls fn with a seller's entries numbered from first on and below before, the newest first, until fn returns false or
// most entries were read. It returns the number of the last of them, or 0 if none is left. It fails with [ledger.ErrTampered] at an
// entry that the service did not write.
func (d *dashboard) readEntries(ctx context.Context, seller string, first, before int64, most int, fn func(ledger.Entry) bool) (next int64, err error) {
	for range most / ledgerRead {
		entries, err := d.o.Ledger.CheckedEntries(ctx, seller, before, ledgerRead)
		if err != nil && !errors.Is(err, ledger.ErrTampered) {
			return 0, err
		}
		for i, e := range entries {
			switch {
			case e.Number != 0 && e.Number < first:
				return 0, nil
			case err != nil && i == len(entries)-1:
				return 0, err
			}
			if before = e.Number; !fn(e) {
				return before, nil
			}
		}
		if len(entries) == 0 || before <= first {
			return 0, nil
		}
	}
	return before, nil
}

// entriesOf are the numbers of a seller's first and last entry of a period. Days may be "". A fault names the day that is wrong.
func (d *dashboard) entriesOf(ctx context.Context, seller, from, to string) (first, last int64, err error) {
	if from == "" && to == "" {
		return 1, maxEntry, nil
	}
	if from == "" {
		from = beginning
	}
	begin, end, err := d.o.Statements.Period(from, to)
	if err != nil {
		return 0, 0, err
	}
	return d.o.Ledger.Period(ctx, seller, maxEntry, begin, end)
}

// saleView is one sale with all that became of it.
type saleView struct {
	saleRow
	// Rows are the entries about it, the oldest first.
	Rows []sellerRow
}

// sale shows one sale of the seller's.
func (d *dashboard) sale(ctx context.Context, v *pageRequest) (page, error) {
	id := v.query("id")
	entries, err := d.o.Ledger.EntriesAbout(ctx, v.who.UserID, sale.SubjectPrefix+id)
	if err == nil && len(entries) == 0 {
		err = sale.ErrNotFound
	}
	if err != nil {
		return page{}, err
	}
	found, err := sale.Fold(id, entries)
	if err != nil {
		return page{}, err
	}
	shown := saleView{saleRow: saleRow{found}}
	for _, e := range entries {
		shown.Rows = append(shown.Rows, sellerRow{entryRow{Entry: e}})
	}
	return show("sale", "Sale of "+d.o.Currency.Display(found.Amount), shown), nil
}

// printView is a statement for a sheet of paper.
type printView struct {
	Name, Email, Seller string
	From, To            time.Time
	Opening, Closing    ledger.Balances
	Rows                []sellerRow
	// Cut says that earlier entries of the period are not shown.
	Cut bool
	CSV string
}

// printStatement shows a period's statement as a page to print, or to save as PDF.
func (d *dashboard) printStatement(ctx context.Context, v *pageRequest) (page, error) {
	user, _, err := d.o.Auth.Me(ctx, v.who)
	if err != nil {
		return page{}, err
	}
	v.zone, v.zoneKnown = d.o.Zone, false // a period has the marketplace's days
	from, to := v.query("from"), v.query("to")
	begin, end, err := d.o.Statements.Period(from, to)
	if err != nil {
		f := fault.From(err)
		if f == nil {
			return page{}, err
		}
		return goTo(statementsPath + "?" + url.Values{"from": {from}, "to": {to}, "format": {"print"}}.Encode()), nil
	}
	first, last, err := d.o.Ledger.Period(ctx, user.ID, maxEntry, begin, end)
	if err != nil {
		return page{}, err
	}
	shown := printView{
		Name: user.Name, Email: user.Email, Seller: user.ID, From: begin.In(d.o.Zone), To: end.In(d.o.Zone).Add(-time.Microsecond), CSV: statementAddress(from, to, "csv"),
	}
	if shown.Opening, err = d.balancesAt(ctx, user.ID, first-1); err != nil {
		return page{}, err
	}
	if shown.Closing, err = d.balancesAt(ctx, user.ID, last); err != nil {
		return page{}, err
	}
	next, err := d.readEntries(ctx, user.ID, first, last+1, maxPrintRead, func(e ledger.Entry) bool {
		if movesSellers(e) {
			shown.Rows = append(shown.Rows, sellerRow{entryRow{Entry: e}})
		}
		return len(shown.Rows) < maxPrinted
	})
	if err != nil {
		return page{}, err
	}
	shown.Cut = next > first
	slices.Reverse(shown.Rows)
	return show("print", "Statement", shown), nil
}

// balancesAt is what the seller's accounts had after an entry; zero before the first.
func (d *dashboard) balancesAt(ctx context.Context, seller string, number int64) (ledger.Balances, error) {
	if number < 1 {
		return ledger.Balances{}, nil
	}
	entries, err := d.o.Ledger.CheckedEntries(ctx, seller, number+1, 1)
	if err != nil || len(entries) == 0 {
		return ledger.Balances{}, err
	}
	return entries[0].After.Balances(), nil
}
