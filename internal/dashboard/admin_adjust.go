package dashboard

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/money"
	"bursar/internal/sale"
)

// adjustmentsShown is how many of a seller's newest adjustments a page lists.
const adjustmentsShown = 10

// adjustView is the page on which an admin adjusts a seller's balance: a form, and then what it would do.
type adjustView struct {
	personRow
	Available money.Amount
	Form      *form
	// Review is what is to be confirmed; nil while the form is filled in. Back leads from there to the form.
	Review *sale.NewAdjustment
	Back   *form
}

// After is the available balance once the adjustment is made.
func (v adjustView) After() money.Amount { return v.Available + v.Review.Amount }

// adjustmentRow is an adjustment as pages list it.
type adjustmentRow struct {
	sale.Adjustment
	AdminName string
}

// AdminPath is the page of who decided it.
func (r adjustmentRow) AdminPath() string { return personAddress(r.Admin) }

// Ways in which a balance is adjusted.
const (
	adjustUp   = "add"
	adjustDown = "take"
)

// adjustPath is where a seller's balance is adjusted.
func adjustPath(seller string) string { return personAddress(seller) + "/adjust" }

// adjustmentFields are the names of what is typed and carried along.
var adjustmentFields = []string{"direction", "amount", "reason", "note", "key"}

// adjustForm asks for an adjustment. Its key is made once and carried along: one form makes one adjustment, whatever is
// clicked twice.
func (d *dashboard) adjustForm(seller, key string) *form {
	return &form{
		Action: adjustPath(seller), Submit: "Review", Hidden: []hidden{{"key", key}},
		Fields: []field{
			{Name: "direction", Label: "Direction", Type: "choice", Choices: []choice{
				{adjustUp, "Add to the balance", "The seller gets more."},
				{adjustDown, "Take from the balance", "The balance may go below zero, as it may by a refund."},
			}},
			{Name: "amount", Label: "Amount", Type: "text", InputMode: "decimal", Autocomplete: "off", Prefix: d.o.Currency.Symbol(), Max: 40},
			{Name: "reason", Label: "Reason", Type: "text", Autocomplete: "off", Max: sale.MaxReason, Hint: "The seller reads it, such as: A sale was recorded twice."},
			noteField(false),
		},
	}
}

// readAdjustment reads what is asked for, or fails with a fault that names the fields at fault.
func (d *dashboard) readAdjustment(v *pageRequest, seller string) (sale.NewAdjustment, error) {
	key := keyOf(v.form)
	if key == "" {
		return sale.NewAdjustment{}, errNoKey.WithMessage("What was sent is not complete, so nothing was changed. Fill in the form again.")
	}
	n := sale.NewAdjustment{ID: "page-" + key, Seller: seller, Reason: trimSpace(v.form.Get("reason")), By: byOf(v)}
	problems := map[string]string{}
	amount, problem := readAmount(d.o.Currency, v.form.Get("amount"), money.Max)
	if problem != "" {
		problems["amount"] = problem
	}
	switch v.form.Get("direction") {
	case adjustUp:
		n.Amount = amount
	case adjustDown:
		n.Amount = -amount
	default:
		problems["direction"] = "must be chosen"
	}
	if problem := sale.CheckReason(n.Reason); problem != "" {
		problems["reason"] = problem
	}
	if f := fault.From(n.By.RequireNote()); f != nil {
		problems["note"] = f.Details["note"]
	}
	if len(problems) > 0 {
		return n, fault.Fields(fault.Invalid, problems)
	}
	return n, nil
}

// adjustPage finds the seller that the address names, and makes the page with the form.
func (d *dashboard) adjustPage(ctx context.Context, v *pageRequest, key string) (page, *adjustView, error) {
	user, _, err := d.user(ctx, v)
	if err != nil {
		return page{}, nil, err
	}
	balance, err := d.o.Ledger.Balance(ctx, user.ID)
	shown := &adjustView{personRow: personRow{user}, Available: balance.Available, Form: d.adjustForm(user.ID, key)}
	return show("admin-adjust", "Adjust the balance", shown), shown, err
}

// adminAdjust asks for an adjustment.
func (d *dashboard) adminAdjust(ctx context.Context, v *pageRequest) (page, error) {
	p, _, err := d.adjustPage(ctx, v, newKey())
	return p, err
}

// adminDoAdjust shows what an adjustment would do, and makes it once that is confirmed.
func (d *dashboard) adminDoAdjust(ctx context.Context, v *pageRequest) (page, error) {
	p, shown, err := d.adjustPage(ctx, v, cmp.Or(keyOf(v.form), newKey()))
	if err != nil {
		return page{}, err
	}
	shown.Form.fill(v.form)
	step := v.form.Get("step")
	if step == "edit" {
		return p, nil
	}
	n, err := d.readAdjustment(v, shown.ID)
	if err != nil {
		return d.again(ctx, p, shown.Form, err)
	}
	if step != "confirm" {
		return p, d.reviewAdjustment(ctx, v, shown, n)
	}
	switch err := d.adjust(ctx, v, n); {
	case errors.Is(err, sale.ErrAdjustmentConflict): // the form was gone back to after it was confirmed
		shown.Form.Hidden[0].Value = newKey()
		return d.again(ctx, p, shown.Form, sale.ErrAdjustmentConflict.WithMessage(
			"You have confirmed this form before with other values, and that adjustment is made. Review this one if it is to be made too."))
	case err != nil:
		if showErr := d.reviewAdjustment(ctx, v, shown, n); showErr != nil {
			return page{}, errors.Join(err, showErr)
		}
		return d.again(ctx, p, shown.Form, err)
	default:
		return goTo(shown.Path()).saying("balance-adjusted"), nil
	}
}

// adjust makes an adjustment. One that is confirmed twice was made the first time, and needs no second proof.
func (d *dashboard) adjust(ctx context.Context, v *pageRequest, n sale.NewAdjustment) error {
	newest, err := d.o.Sales.Adjustments(ctx, n.Seller, 0, adjustmentsShown)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(newest, func(a sale.Adjustment) bool { return a.ID == n.ID }) {
		if err := d.proveDecision(ctx, v, decision.AdjustBalance, n.Seller); err != nil {
			return err
		}
	}
	_, _, err = d.o.Sales.Adjust(ctx, n)
	return err
}

// reviewAdjustment has the page ask for the confirmation.
func (d *dashboard) reviewAdjustment(ctx context.Context, v *pageRequest, shown *adjustView, n sale.NewAdjustment) error {
	carried := make([]hidden, 0, len(adjustmentFields)+1)
	for _, name := range adjustmentFields {
		carried = append(carried, hidden{name, v.form.Get(name)})
	}
	amount := d.o.Currency.Display(max(n.Amount, -n.Amount))
	submit := "Add " + amount
	if n.Amount < 0 {
		submit = "Take " + amount
	}
	shown.Review = &n
	shown.Form = &form{Action: shown.Form.Action, Submit: submit, Hidden: append(slices.Clone(carried), hidden{"step", "confirm"})}
	shown.Back = &form{Action: shown.Form.Action, Hidden: append(carried, hidden{"step", "edit"})}
	return d.askForCode(ctx, v, shown.Form)
}

// adjustmentRows lists a seller's newest adjustments with the names of the admins.
func (d *dashboard) adjustmentRows(ctx context.Context, seller string) ([]adjustmentRow, error) {
	list, err := d.o.Sales.Adjustments(ctx, seller, 0, adjustmentsShown)
	if err != nil {
		return nil, err
	}
	admins := make([]string, 0, len(list))
	for _, a := range list {
		admins = append(admins, a.Admin)
	}
	names, err := d.people(ctx, admins...)
	rows := make([]adjustmentRow, 0, len(list))
	for _, a := range list {
		rows = append(rows, adjustmentRow{a, names[a.Admin]})
	}
	return rows, err
}
