package dashboard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// newPayoutView is the form that asks for a payout.
type newPayoutView struct {
	Form      *form
	Available money.Amount
	Account   accountView
	Minimum   money.Amount
	// All is the address of the form with everything that is available filled in.
	All string
}

// Open reports whether a payout could be asked for.
func (n newPayoutView) Open() bool { return n.Account.Verified() && n.Available >= n.Minimum }

// reviewView is a payout as it would be, for the seller to confirm.
type reviewView struct {
	payout.Quote
	Account bank.Account
	Branch  bank.Branch
	Notes   string
	Plain   string // the amount, for the form
	Key     string
}

const maxNotesRunes = 1000

// payoutForm asks for an amount. Its key is made once and carried along: whatever is clicked twice,
// reloaded or gone back to, one form makes one payout.
func (d *dashboard) payoutForm(available money.Amount, key string) *form {
	return &form{
		Action: "/dashboard/payouts/new", Submit: "Review",
		Fields: []field{
			{
				Name: "amount", Label: "Amount", Type: "text", InputMode: "decimal", Autocomplete: "off", Prefix: d.o.Currency.Symbol(), Max: 40,
				Hint: fmt.Sprintf("From %s to %s.", d.o.Currency.Display(d.o.Payouts.Minimum()), d.o.Currency.Display(available)),
				Ask:  "/dashboard/payouts/quote?amount=",
			},
			{Name: "notes", Label: "Notes", Type: "textarea", Optional: true, Max: maxNotesRunes, Hint: "For your own records; the bank does not see them."},
		},
		Hidden: []hidden{{"key", key}},
	}
}

func newKey() string { return id.Random(22) }

// keyOf is the key that a form carries, or a new one where it carries none of ours.
func keyOf(v *visit) string {
	key := v.form.Get("key")
	odd := func(c rune) bool {
		return !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z')
	}
	if len(key) != 22 || strings.ContainsFunc(key, odd) {
		return newKey()
	}
	return key
}

// showNewPayout is the page with the form, on the seller's balance of the moment.
func (d *dashboard) showNewPayout(ctx context.Context, v *visit, key string) (page, *newPayoutView, error) {
	s, err := d.o.Payouts.Summary(ctx, v.who.UserID)
	if err != nil {
		return page{}, nil, err
	}
	shown := &newPayoutView{
		Form: d.payoutForm(s.Available, key), Available: s.Available, Account: accountView{s.Account}, Minimum: d.o.Payouts.Minimum(),
		All: "/dashboard/payouts/new?amount=" + d.o.Currency.FormatFixed(s.Available),
	}
	return show("request", "Request a payout", shown), shown, nil
}

// newPayout asks how much.
func (d *dashboard) newPayout(ctx context.Context, v *visit) (page, error) {
	p, shown, err := d.showNewPayout(ctx, v, newKey())
	if err != nil {
		return page{}, err
	}
	shown.Form.Field("amount").Value = v.query("amount")
	if again, err := payout.ParseID(v.query("again")); err == nil {
		before, err := d.o.Payouts.Payout(ctx, v.caller(), again)
		if err != nil {
			return page{}, err
		}
		shown.Form.Field("amount").Value = d.o.Currency.FormatFixed(before.Amount)
		shown.Form.Field("notes").Value = before.Notes
	}
	return p, nil
}

// checkNotes returns what is wrong with notes, or "".
func checkNotes(notes string) string {
	control := func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\r' && c != '\t' }
	switch {
	case utf8.RuneCountInString(notes) > maxNotesRunes:
		return fmt.Sprintf("must be at most %d characters", maxNotesRunes)
	case strings.ContainsFunc(notes, control):
		return "must not contain control characters"
	default:
		return ""
	}
}

// notesOf are the notes as they were typed; browsers send lines with a carriage return.
func notesOf(v *visit) string { return strings.ReplaceAll(v.form.Get("notes"), "\r\n", "\n") }

// readPayout reads what is asked for, or fails with a fault that names the fields at fault.
func (d *dashboard) readPayout(v *visit) (payout.Request, error) {
	problems := map[string]string{}
	amount, problem := readAmount(d.o.Currency, v.form.Get("amount"))
	if least := d.o.Payouts.Minimum(); problem == "" && amount < least {
		problem = "must be at least " + d.o.Currency.Display(least)
	}
	if problem != "" {
		problems["amount"] = problem
	}
	notes := notesOf(v)
	if problem := checkNotes(notes); problem != "" {
		problems["notes"] = problem
	}
	if len(problems) > 0 {
		return payout.Request{}, fault.Fields(fault.Invalid, problems)
	}
	return payout.Request{Seller: v.who.UserID, Amount: amount, Notes: notes, Key: "page-" + keyOf(v)}, nil
}

// reviewPayout shows what the payout would be, and changes nothing.
func (d *dashboard) reviewPayout(ctx context.Context, v *visit) (page, error) {
	key := keyOf(v)
	p, shown, err := d.showNewPayout(ctx, v, key)
	if err != nil {
		return page{}, err
	}
	shown.Form.fill(v.form)
	if v.form.Get("step") == "edit" {
		return p, nil
	}
	r, err := d.readPayout(v)
	if err == nil && r.Amount > shown.Available {
		err = fault.Field("amount", "must be at most what is available: "+d.o.Currency.Display(shown.Available))
	}
	if err == nil && !shown.Account.Verified() {
		err = payout.ErrBankUnverified
	}
	if err != nil {
		return d.again(ctx, p, shown.Form, err)
	}
	account, err := d.o.Bank.Account(ctx, v.who.UserID)
	if err != nil {
		return page{}, err
	}
	review := reviewView{
		Quote: d.o.Payouts.Quote(r.Amount), Account: account, Notes: r.Notes,
		Plain: d.o.Currency.FormatFixed(r.Amount), Key: key,
	}
	review.Branch, _ = d.o.Bank.Branch(account.IFSC)
	return show("review", "Review your payout", review), nil
}

// requestPayout makes the payout that was reviewed.
func (d *dashboard) requestPayout(ctx context.Context, v *visit) (page, error) {
	r, err := d.readPayout(v)
	if err == nil {
		var made payout.Payout
		if made, _, err = d.o.Payouts.Request(ctx, r); err == nil {
			return goTo(payoutAddress(made.ID)).saying("requested"), nil
		}
	}
	// The refusal is kept under the key, so another try needs another one.
	p, shown, showErr := d.showNewPayout(ctx, v, newKey())
	if showErr != nil {
		return page{}, errors.Join(err, showErr)
	}
	return d.again(ctx, p, shown.Form.fill(v.form), err)
}

func payoutAddress(p payout.ID) string { return "/dashboard/payouts/" + string(p) }

// quoteView is what a payout would cost, while its amount is being typed.
type quoteView struct {
	payout.Quote
	Problem string
}

// quote answers while the amount is being typed.
func (d *dashboard) quote(_ context.Context, v *visit) (page, error) {
	var q quoteView
	amount, problem := readAmount(d.o.Currency, v.query("amount"))
	if problem == "" && amount < d.o.Payouts.Minimum() {
		problem = "must be at least " + d.o.Currency.Display(d.o.Payouts.Minimum())
	}
	if problem == "" {
		q.Quote = d.o.Payouts.Quote(amount)
	}
	q.Problem = problem
	p := show("quote", "Quote", q)
	p.fragment = true
	return p, nil
}

// cancelPage asks whether the seller means it.
func (d *dashboard) cancelPage(ctx context.Context, v *visit) (page, error) {
	p, err := d.theirs(ctx, v)
	if err != nil {
		return page{}, err
	}
	if !d.o.Payouts.Cancellable(p) {
		return d.tooLate(p), nil
	}
	return show("cancel", "Cancel this payout?", p), nil
}

// cancel calls a payout off.
func (d *dashboard) cancel(ctx context.Context, v *visit) (page, error) {
	p, err := d.theirs(ctx, v)
	if err != nil {
		return page{}, err
	}
	_, _, err = d.o.Payouts.Cancel(ctx, v.caller(), p.ID, "")
	switch {
	case errors.Is(err, payout.ErrNotCancellable):
		if p, err = d.theirs(ctx, v); err != nil {
			return page{}, err
		}
		return d.tooLate(p), nil
	case errors.Is(err, payout.ErrCancelUnclear):
		d.o.Logger.WarnContext(ctx, "cancellation unclear", "payout", string(p.ID), "cause", errors.Unwrap(err))
		return goTo(payoutAddress(p.ID)).saying("cancel-unclear"), nil
	case err != nil:
		return page{}, err
	default:
		return goTo(payoutAddress(p.ID)).saying("cancelled"), nil
	}
}

// tooLate leads to a payout that can't be cancelled, or is cancelled already.
func (d *dashboard) tooLate(p payout.Payout) page {
	if p.State == payout.Cancelled {
		return goTo(payoutAddress(p.ID)).saying("cancelled")
	}
	return goTo(payoutAddress(p.ID)).saying("not-cancelled")
}
