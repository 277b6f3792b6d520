package dashboard

import (
	"context"
	"errors"
	"strings"

	"bursar/internal/decision"
	"bursar/internal/payout"
)

// unmatchedView is a transfer of ours at the gateway that belongs to no payout in the ledger.
type unmatchedView struct {
	ID string
	// UnmatchedTransfer is nil once it is resolved.
	UnmatchedTransfer *payout.UnmatchedTransfer
	SellerName        string
	Form              *form
	Decisions         []decisionRow
}

// Said is what the gateway says of it.
func (s unmatchedView) Said() string {
	return wordsOr(progressWords, s.UnmatchedTransfer.Transfer.Progress)
}

// SellerPath is its seller's page, or "" for one whom the ledger does not know.
func (s unmatchedView) SellerPath() string {
	if s.SellerName == "" {
		return ""
	}
	return personAddress(s.UnmatchedTransfer.Transfer.Order.Seller)
}

var errNoUnmatched = payout.ErrUnmatchedTransferResolved.WithMessage("There is no open unmatched transfer with this id.")

// unmatched finds the transfer that the address names among the open ones, or what was decided about it.
func (d *dashboard) unmatched(ctx context.Context, v *pageRequest) (*unmatchedView, error) {
	shown := &unmatchedView{ID: v.r.PathValue("id")}
	odd := func(c rune) bool { return c <= ' ' || c > '~' } // which no reference holds, and not every database takes
	if strings.ContainsFunc(shown.ID, odd) {
		return nil, errNoUnmatched
	}
	open, err := d.o.Payouts.UnmatchedTransfer(ctx, shown.ID)
	if err != nil && !errors.Is(err, payout.ErrUnmatchedTransferResolved) {
		return nil, err
	}
	if err == nil {
		shown.UnmatchedTransfer = &open
		seller := shown.UnmatchedTransfer.Transfer.Order.Seller
		names, err := d.people(ctx, seller)
		if err != nil {
			return nil, err
		}
		shown.SellerName = names[seller]
		shown.Form = &form{Action: unmatchedAddress(shown.ID), Submit: "Mark as resolved", Fields: []field{noteField(false)}}
		if err := d.askForCode(ctx, v, shown.Form); err != nil {
			return nil, err
		}
	}
	if shown.Decisions, err = d.decisionsAbout(ctx, shown.ID); err != nil {
		return nil, err
	}
	if shown.UnmatchedTransfer == nil && len(shown.Decisions) == 0 {
		return nil, errNoUnmatched
	}
	return shown, nil
}

func showUnmatched(s *unmatchedView) page { return show("admin-unmatched", "Unmatched transfer", s) }

// adminUnmatched shows an unmatched transfer and the form that resolves it.
func (d *dashboard) adminUnmatched(ctx context.Context, v *pageRequest) (page, error) {
	shown, err := d.unmatched(ctx, v)
	if err != nil {
		return page{}, err
	}
	return showUnmatched(shown), nil
}

// adminResolveUnmatched marks an unmatched transfer as resolved.
func (d *dashboard) adminResolveUnmatched(ctx context.Context, v *pageRequest) (page, error) {
	shown, err := d.unmatched(ctx, v)
	if err != nil {
		return page{}, err
	}
	by := byOf(v)
	if err = by.RequireNote(); err == nil && shown.Form != nil {
		err = d.proveDecision(ctx, v, decision.ResolveUnmatchedTransfer, shown.ID)
	}
	if err == nil {
		err = d.o.Payouts.ResolveUnmatchedTransfer(ctx, by, shown.ID)
	}
	switch {
	case err == nil:
		return goTo(unmatchedAddress(shown.ID)).saying("unmatched-resolved"), nil
	case shown.Form == nil || errors.Is(err, payout.ErrUnmatchedTransferResolved):
		return goTo(unmatchedAddress(shown.ID)).saying("no-longer-fits"), nil
	default:
		return d.again(ctx, showUnmatched(shown), shown.Form.fill(v.form), err)
	}
}
