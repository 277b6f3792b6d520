package dashboard

import (
	"context"
	"errors"
	"net/url"

	"bursar/internal/inbox"
	"bursar/internal/money"
	"bursar/internal/reconcile"
)

const reconciliationPath = adminHome + "/reconciliation"

func differenceAddress(id string) string {
	return adminHome + "/differences/" + url.PathEscape(id)
}

// differenceView is a difference between the gateway's statement and the ledger, with what both sides have.
type differenceView struct {
	reconcile.Evidence
	// Payout is nil where the ledger has none.
	Payout *payoutRow
	Rows   []lineRow
	Advice string
	// Form is nil once there is nothing to resolve.
	Form      *form
	Decisions []decisionRow
}

// lineRow is a line of the statement as the page shows it.
type lineRow struct{ reconcile.Line }

// Took reports whether the line takes money.
func (l lineRow) Took() bool { return l.Debit > 0 }

// Moved is how much moved.
func (l lineRow) Moved() money.Amount { return l.Debit + l.Credit }

// Otherwise reports whether the statement had it differently before.
func (l lineRow) Otherwise() bool { return l.FirstReported != l.LastReported }

// adviceOf says what a person can do about a kind of difference.
func adviceOf(k reconcile.Kind) string {
	switch k {
	case reconcile.PaidTwice:
		return "Ask the gateway for both transfers. One payout has one key, so the gateway should have made one; have the other one called back."
	case reconcile.RefundedButPaid:
		return "The gateway is asked again by itself. If it keeps the money, claim it there; if the seller was paid after all, settle that with them."
	case reconcile.LineBeforeOrder:
		return "Was the database restored to an older state, or does another service pay from this account? Cancel the payout before it is sent, if it still waits."
	case reconcile.LineWithoutPayout:
		return "Did a person pay by hand from the same account? Then note who and what for. If the reference is one of ours, look among the unmatched transfers."
	case reconcile.UnexplainedDebit:
		return "Ask the gateway what it took the money for, such as its own fees or a withdrawal."
	case reconcile.AmountDiffers, reconcile.CurrencyDiffers:
		return "Compare the transfer at the gateway with the payout, and ask the gateway to correct the transfer."
	case reconcile.ReturnedAtGateway:
		return "The gateway was asked again, and the payout goes on by itself once the gateway says that the money came back. If it does not, ask why there is such a line."
	case reconcile.ReturnWithoutLine:
		return "Ask the gateway for the money that it said came back: the seller has it already."
	case reconcile.PayoutWithoutLine:
		return "Look the transfer up in the gateway's own dashboard. It may be listed late, or be of another account; the seller may not have been paid."
	case reconcile.FeeDiffers:
		return "Compare it with the fees that were agreed on with the gateway."
	default:
		return "Download the day's statement from the gateway and compare it with the lines here. Read the days again with bursar reconcile --again."
	}
}

// difference finds what the address names.
func (d *dashboard) difference(ctx context.Context, v *pageRequest) (*differenceView, error) {
	id := v.r.PathValue("id")
	evidence, err := d.o.Reconciling.Evidence(ctx, id)
	if err != nil {
		return nil, err
	}
	shown := &differenceView{Evidence: evidence, Advice: adviceOf(evidence.Kind)}
	for _, l := range evidence.Lines {
		shown.Rows = append(shown.Rows, lineRow{l})
	}
	if p := evidence.Payout; p != nil {
		names, err := d.people(ctx, p.Seller)
		if err != nil {
			return nil, err
		}
		shown.Payout = &payoutRow{*p, names[p.Seller]}
	}
	if evidence.Open() {
		shown.Form = &form{
			Action: differenceAddress(id), Submit: "Mark as resolved", Fields: []field{noteField(false)}, Hidden: []hidden{{"seen", evidence.Detail}},
		}
	}
	shown.Decisions, err = d.decisionsAbout(ctx, id)
	return shown, err
}

func showDifference(s *differenceView) page { return show("admin-difference", "Difference", s) }

// adminDifference shows a difference, and asks how it was resolved.
func (d *dashboard) adminDifference(ctx context.Context, v *pageRequest) (page, error) {
	shown, err := d.difference(ctx, v)
	if err != nil {
		return page{}, err
	}
	return showDifference(shown), nil
}

// adminResolveDifference records that a difference is explained.
func (d *dashboard) adminResolveDifference(ctx context.Context, v *pageRequest) (page, error) {
	shown, err := d.difference(ctx, v)
	if err != nil {
		return page{}, err
	}
	here := differenceAddress(shown.ID)
	err = d.o.Reconciling.Resolve(ctx, byOf(v), shown.ID, plainLines(v.form.Get("seen")))
	switch {
	case err == nil:
		return goTo(here).saying("difference-resolved"), nil
	case shown.Form == nil || errors.Is(err, reconcile.ErrChanged):
		return goTo(here).saying("no-longer-fits"), nil
	default:
		return d.again(ctx, showDifference(shown), shown.Form.fill(v.form), err)
	}
}

// runsShown is how many comparisons are listed.
const runsShown = 20

// reconciliationView is how reconciling goes.
type reconciliationView struct {
	reconcile.Overview
	Open int
	// Newest is the last comparison of the gateway that pays now.
	Newest *reconcile.Run
}

// adminReconciliation shows how reconciling goes, and the newest comparisons.
func (d *dashboard) adminReconciliation(ctx context.Context, _ *pageRequest) (page, error) {
	overview, err := d.o.Reconciling.Overview(ctx, runsShown)
	if err != nil {
		return page{}, err
	}
	open, err := d.o.Reconciling.Open(ctx, inbox.MaxPerKind)
	if err != nil {
		return page{}, err
	}
	shown := reconciliationView{Overview: overview, Open: len(open)}
	for i, run := range overview.Runs {
		if run.Gateway == overview.Gateway {
			shown.Newest = &overview.Runs[i]
			break
		}
	}
	return show("admin-reconciliation", "Reconciliation", shown), nil
}
