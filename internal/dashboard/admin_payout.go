package dashboard

import (
	"context"
	"errors"
	"slices"
	"time"

	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

const (
	// decisionsShown is how many of what was decided about one thing a page lists.
	decisionsShown = 20
)

// adminPayoutView is all about one payout.
type adminPayoutView struct {
	payoutRow
	Meaning string
	Branch  bank.Branch
	Events  []eventRow
	// Entries are what the seller's journal says of it, oldest first.
	Entries []entryRow
	// Tampered says that the service did not write all of them.
	Tampered  bool
	Decisions []decisionRow
	Actions   []actionRow
}

// AccountPath is the page of the bank account that it goes to.
func (p adminPayoutView) AccountPath() string { return accountAddress(p.BankAccountID) }

// Said is the gateway's last word, or "".
func (p adminPayoutView) Said() string { return wordsOr(progressWords, p.Progress) }

// LedgerPath is the seller's journal.
func (p adminPayoutView) LedgerPath() string { return p.SellerPath() + "#history" }

// eventRow is a change of state.
type eventRow struct {
	payout.StateChange
	First bool
}

// From and To are the states in words.
func (e eventRow) Label() label { return stateLabel(payout.Payout{State: e.To}) }

// actionRow is a decision that fits a payout's state.
type actionRow struct {
	action
	Path string
	// From is when it may be done, where that is yet to come.
	From time.Time
}

// payoutOf finds the payout that the address names.
func (d *dashboard) payoutOf(ctx context.Context, v *pageRequest) (payout.Payout, error) {
	id, err := payout.ParseID(v.r.PathValue("id"))
	if err != nil {
		return payout.Payout{}, errNoPayout
	}
	p, err := d.o.Payouts.Payout(ctx, v.caller(), id)
	if errors.Is(err, payout.ErrNotFound) {
		err = errNoPayout
	}
	return p, err
}

var errNoPayout = fault.New(fault.NotFound, "no_payout", "There is no payout with this id. It may have been mistyped.")

// adminPayout shows one payout with all that is known of it.
func (d *dashboard) adminPayout(ctx context.Context, v *pageRequest) (page, error) {
	p, err := d.payoutOf(ctx, v)
	if err != nil {
		return page{}, err
	}
	shown, err := d.payoutView(ctx, v, p)
	if err != nil {
		return page{}, err
	}
	answer := show("admin-payout", "Payout of "+d.o.Currency.Display(p.Amount), shown)
	answer.live = p.Status() == payout.StatusProcessing && p.State != payout.ManualReview
	return answer, nil
}

func (d *dashboard) payoutView(ctx context.Context, v *pageRequest, p payout.Payout) (*adminPayoutView, error) {
	rows, err := d.payoutRows(ctx, []payout.Payout{p})
	if err != nil {
		return nil, err
	}
	shown := &adminPayoutView{payoutRow: rows[0], Meaning: meaningOf(p)}
	shown.Branch, _ = d.o.Bank.Branch(bank.IFSC(p.AccountIFSC)) // an unlisted branch has no name
	events, err := d.o.Payouts.Events(ctx, v.caller(), p.ID)
	if err != nil {
		return nil, err
	}
	for i, e := range events {
		shown.Events = append(shown.Events, eventRow{e, i == 0})
	}
	entries, err := d.o.Ledger.EntriesAbout(ctx, p.Seller, string(p.ID))
	if shown.Tampered = errors.Is(err, ledger.ErrTampered); err != nil && !shown.Tampered {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e ledger.Entry) bool { return e.Type == ledger.AdminDecided }) // they have a list of their own
	if shown.Entries, err = d.entryRows(ctx, entries); err != nil {
		return nil, err
	}
	if shown.Decisions, err = d.decisionsAbout(ctx, string(p.ID)); err != nil {
		return nil, err
	}
	shown.Actions, err = d.actionsFor(ctx, p)
	return shown, err
}

// decisionRow is a decision as it is listed.
type decisionRow struct {
	decision.Decision
	AdminName string
}

// What says what was decided.
func (r decisionRow) What() string { return wordsOr(actionWords, r.Action) }

// AdminPath is the page of who decided.
func (r decisionRow) AdminPath() string { return personAddress(r.Admin) }

// decisionsAbout lists what was decided about something, newest first.
func (d *dashboard) decisionsAbout(ctx context.Context, subject string) ([]decisionRow, error) {
	return d.decisionRows(ctx, subject, decisionsShown)
}

func (d *dashboard) decisionRows(ctx context.Context, subject string, limit int) ([]decisionRow, error) {
	list, err := d.o.Ledger.Decisions(ctx, subject, limit)
	if err != nil {
		return nil, err
	}
	deciders := make([]string, 0, len(list))
	for _, x := range list {
		deciders = append(deciders, x.Admin)
	}
	names, err := d.people(ctx, deciders...)
	if err != nil {
		return nil, err
	}
	rows := make([]decisionRow, 0, len(list))
	for _, x := range list {
		rows = append(rows, decisionRow{x, names[x.Admin]})
	}
	return rows, nil
}
