package dashboard

import (
	"context"
	"errors"
	"time"

	"bursar/internal/decision"
	"bursar/internal/payout"
)

// holdView is the page on which an admin lifts a hold on a seller's payouts.
type holdView struct {
	personRow
	Until time.Time
	Form  *form
}

// holdOf finds the seller that the address names, and when the hold on their payouts ends.
func (d *dashboard) holdOf(ctx context.Context, v *pageRequest) (*holdView, error) {
	user, _, err := d.user(ctx, v)
	if err != nil {
		return nil, err
	}
	balance, err := d.o.Ledger.Balance(ctx, user.ID)
	if err != nil {
		return nil, err
	}
	until := balance.Hold(d.o.Now())
	f := &form{
		Action: personAddress(user.ID) + "/hold", Submit: "Lift the hold", Fields: []field{noteField(false)},
		Hidden: []hidden{{"until", until.UTC().Format(time.RFC3339Nano)}},
	}
	return &holdView{personRow{user}, until, f}, d.askForCode(ctx, v, f)
}

func showHold(h *holdView) page { return show("admin-hold", "Lift the hold on payouts", h) }

// adminHold asks for the decision to lift a hold.
func (d *dashboard) adminHold(ctx context.Context, v *pageRequest) (page, error) {
	h, err := d.holdOf(ctx, v)
	switch {
	case err != nil:
		return page{}, err
	case h.Until.IsZero():
		return goTo(h.Path()), nil
	default:
		return showHold(h), nil
	}
}

// adminLiftHold lifts a hold.
func (d *dashboard) adminLiftHold(ctx context.Context, v *pageRequest) (page, error) {
	h, err := d.holdOf(ctx, v)
	if err != nil {
		return page{}, err
	}
	by := byOf(v)
	seen, unread := time.Parse(time.RFC3339Nano, v.form.Get("until"))
	if unread != nil { // no page of ours
		seen = h.Until
	}
	if err = by.RequireNote(); err == nil {
		err = d.proveDecision(ctx, v, decision.LiftHold, h.ID)
	}
	if err == nil {
		err = d.o.Payouts.LiftHold(ctx, by, h.ID, seen)
	}
	switch {
	case errors.Is(err, payout.ErrNoHold):
		return goTo(h.Path()).saying("no-longer-fits"), nil
	case err != nil:
		h.Form = h.Form.fill(v.form)
		return d.again(ctx, showHold(h), h.Form, err)
	default:
		return goTo(h.Path()).saying("hold-lifted"), nil
	}
}
