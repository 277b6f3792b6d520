package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"bursar/internal/auth"
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
	// Stopped is why no payout may be requested until our team resumes payouts; "" if it may.
	Stopped string
	// OnHoldUntil is when the hold on payouts ends, zero without one.
	OnHoldUntil time.Time
	// All is the address of the form with everything that is available filled in.
	All string
}

// Open reports whether a payout could be asked for.
func (n newPayoutView) Open() bool {
	return !n.Blocked() && n.Account.Verified() && n.Available >= n.Minimum
}

// Blocked reports whether no payout may be requested, whatever the account and the amount.
func (n newPayoutView) Blocked() bool { return n.Stopped != "" || !n.OnHoldUntil.IsZero() }

// reviewView is a payout as it would be, for the seller to confirm.
type reviewView struct {
	payout.Quote
	Account bank.Account
	Branch  bank.Branch
	Notes   string
	Plain   string // the amount, for the form
	Key     string
	// Made is the payout that this review was confirmed for already, or "".
	Made payout.ID
	Form *form
}

// MadeAddress is the page of the payout that was made already.
func (r reviewView) MadeAddress() string { return payoutAddress(r.Made) }

// EditAddress is the form with what is reviewed.
func (r reviewView) EditAddress() string {
	return "/dashboard/payouts/new?" + url.Values{"amount": {r.Plain}, "notes": {r.Notes}, "key": {r.Key}}.Encode()
}

const reviewPath = "/dashboard/payouts/review"

// errNoKey refuses a form that might make a second payout if it were sent twice.
var errNoKey = fault.New(fault.Invalid, "invalid_form",
	"What was sent is not complete, so nothing was requested. Review the payout, and confirm it on the page that follows.")

// payoutForm asks for an amount. Its key is made once and carried along: whatever is clicked twice,
// reloaded or gone back to, one form makes one payout.
func (d *dashboard) payoutForm(available money.Amount, key string) *form {
	return &form{
		Action: reviewPath, Submit: "Review",
		Fields: []field{
			{
				Name: "amount", Label: "Amount", Type: "text", InputMode: "decimal", Autocomplete: "off", Prefix: d.o.Currency.Symbol(), Max: 40,
				Hint: fmt.Sprintf("From %s to %s.", d.o.Currency.Display(d.o.Payouts.Minimum()), d.o.Currency.Display(available)),
				Ask:  "/dashboard/payouts/quote?amount=",
			},
			{Name: "notes", Label: "Notes", Type: "textarea", Optional: true, Max: payout.MaxNotes, Hint: "For your own records; the bank does not see them."},
		},
		Hidden: []hidden{{"key", key}},
	}
}

func newKey() string { return id.Random(22) }

// keyOf is the key among what was sent, or "" where there is none that we made.
func keyOf(sent url.Values) string {
	key := sent.Get("key")
	odd := func(c rune) bool {
		return !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z')
	}
	if len(key) != 22 || strings.ContainsFunc(key, odd) {
		return ""
	}
	return key
}

// fromAddress is what a form of payouts has put into the address.
func fromAddress(v *pageRequest) url.Values {
	sent := url.Values{}
	for _, name := range []string{"amount", "notes", "key"} {
		sent.Set(name, v.query(name))
	}
	return sent
}

// showNewPayout is the page with the form, on the seller's balance of the moment.
func (d *dashboard) showNewPayout(ctx context.Context, v *pageRequest, key string) (page, *newPayoutView, error) {
	s, err := d.o.Payouts.Summary(ctx, v.who.UserID)
	if err != nil {
		return page{}, nil, err
	}
	shown := &newPayoutView{
		Form: d.payoutForm(s.Available, key), Available: s.Available, Account: accountView{s.Account}, Minimum: d.o.Payouts.Minimum(),
		All: "/dashboard/payouts/new?amount=" + d.o.Currency.FormatFixed(s.Available),
	}
	if s.HoldUntil.After(d.o.Now()) {
		shown.OnHoldUntil = s.HoldUntil
	}
	shown.Stopped, err = d.o.Payouts.WhyStopped(ctx, v.who.UserID)
	return show("request", "Request a payout", shown), shown, err
}

// newPayout asks how much.
func (d *dashboard) newPayout(ctx context.Context, v *pageRequest) (page, error) {
	sent := fromAddress(v)
	p, shown, err := d.showNewPayout(ctx, v, cmp.Or(keyOf(sent), newKey()))
	if err != nil {
		return page{}, err
	}
	shown.Form.fill(sent)
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

// readPayout reads what is asked for, or fails with a fault that names the fields at fault. The amount is from least to most.
func (d *dashboard) readPayout(seller string, sent url.Values, least, most money.Amount) (payout.Request, error) {
	if keyOf(sent) == "" {
		return payout.Request{}, errNoKey
	}
	problems := map[string]string{}
	amount, problem := readAmount(d.o.Currency, sent.Get("amount"), most)
	if problem == "" && amount < least {
		problem = "must be at least " + d.o.Currency.Display(least)
	}
	if problem != "" {
		problems["amount"] = problem
	}
	notes := plainLines(sent.Get("notes"))
	if problem := payout.CheckNotes(notes); problem != "" {
		problems["notes"] = problem
	}
	if len(problems) > 0 {
		return payout.Request{}, fault.Fields(fault.Invalid, problems)
	}
	return payout.Request{Seller: seller, Amount: amount, Notes: notes, Key: pageKey(sent)}, nil
}

// reviewPayout shows what the payout would be, and changes nothing. Its address says all of it, so that
// the way back from the payout leads here again. Without a key it is given one, and keeps it.
func (d *dashboard) reviewPayout(ctx context.Context, v *pageRequest) (page, error) {
	sent := fromAddress(v)
	if keyOf(sent) == "" {
		sent.Set("key", newKey())
		return goTo(reviewPath + "?" + sent.Encode()), nil
	}
	p, shown, err := d.showNewPayout(ctx, v, keyOf(sent))
	if err != nil {
		return page{}, err
	}
	made, done, err := d.o.Payouts.Requested(ctx, v.who.UserID, pageKey(sent))
	if err != nil {
		return page{}, err
	}
	if !done && shown.Blocked() { // the page says why
		return p, nil
	}
	least, most := shown.Minimum, max(shown.Available, 0)
	if done { // its amount is no longer available, and the minimum may be another
		least, most = 0, money.Max
	}
	r, err := d.readPayout(v.who.UserID, sent, least, most)
	switch {
	case err != nil:
	case done && (made.Amount != r.Amount || made.Notes != r.Notes):
		shown.Form.Hidden[0].Value = newKey()
		err = payout.ErrKeyReused
	case !done && !shown.Account.Verified():
		err = payout.ErrBankUnverified
	case !done:
		err = d.o.Auth.CheckMayRequestPayout(v.who)
	}
	if err != nil {
		return d.again(ctx, p, shown.Form.fill(sent), err)
	}
	p, _, err = d.showReview(ctx, v, r, keyOf(sent), made.ID)
	return p, err
}

// showReview is the page on which a payout is confirmed. Above a limit the seller proves again who they are.
func (d *dashboard) showReview(ctx context.Context, v *pageRequest, r payout.Request, key string, made payout.ID) (page, *reviewView, error) {
	account, err := d.o.Bank.Account(ctx, v.who.UserID)
	if err != nil {
		return page{}, nil, err
	}
	review := &reviewView{
		Quote: d.o.Payouts.Quote(r.Amount), Account: account, Notes: r.Notes,
		Plain: d.o.Currency.FormatFixed(r.Amount), Key: key, Made: made,
	}
	review.Branch, _ = d.o.Bank.Branch(account.IFSC)
	review.Form = &form{Action: "/dashboard/payouts", Submit: "Confirm payout", Hidden: []hidden{
		{"amount", review.Plain}, {"notes", r.Notes}, {"key", key}, {"account", string(account.ID)},
	}}
	if made == "" && d.o.Payouts.NeedsProof(r.Amount) {
		err = d.askForProof(ctx, v, review.Form)
	}
	return show("review", "Review your payout", review), review, err
}

// requestPayout makes the payout that was reviewed.
func (d *dashboard) requestPayout(ctx context.Context, v *pageRequest) (page, error) {
	// The form may be sent twice. The minimum may be another by then, and the code of a proof works once.
	made, done, err := d.o.Payouts.Requested(ctx, v.who.UserID, pageKey(v.form))
	if err != nil {
		return page{}, err
	}
	least := d.o.Payouts.Minimum()
	if done {
		least = 0
	}
	r, err := d.readPayout(v.who.UserID, v.form, least, money.Max)
	if err == nil && done && made.Amount == r.Amount && made.Notes == r.Notes {
		return goTo(payoutAddress(made.ID)).saying("requested"), nil
	}
	r.Session, r.Account = v.who.Session, bank.ID(v.form.Get("account"))
	if err == nil {
		err = d.o.Auth.CheckMayRequestPayout(v.who)
	}
	if err == nil && d.o.Payouts.NeedsProof(r.Amount) {
		made, err = d.requestWithProof(ctx, v, r)
		if isProofMissing(err) {
			p, shown, showErr := d.showReview(ctx, v, r, keyOf(v.form), "")
			if showErr != nil {
				return page{}, errors.Join(err, showErr)
			}
			return d.again(ctx, p, shown.Form, needsProof(err, shown.Form))
		}
	} else if err == nil {
		made, _, err = d.o.Payouts.Request(ctx, r)
	}
	if err == nil {
		return goTo(payoutAddress(made.ID)).saying("requested"), nil
	}
	p, shown, showErr := d.showNewPayout(ctx, v, keyAfter(err, v.form))
	if showErr != nil {
		return page{}, errors.Join(err, showErr)
	}
	return d.again(ctx, p, shown.Form.fill(v.form), err)
}

// requestWithProof makes a payout that needs a proof.
func (d *dashboard) requestWithProof(ctx context.Context, v *pageRequest, r payout.Request) (payout.Payout, error) {
	if err := d.prove(ctx, v, auth.ActionRequestPayout, payout.ProofBinding(r.Amount, r.Account)...); err != nil {
		return payout.Payout{}, err
	}
	r.Proof = v.who.Proof
	made, _, err := d.o.Payouts.Request(ctx, r)
	return made, err
}

// pageKey is the idempotency key of a form, apart from those that the seller's programs make.
func pageKey(sent url.Values) string { return "page-" + keyOf(sent) }

// keyAfter is the key of another try. A refusal is kept under its key, so that needs a new one; whatever else
// went wrong, the payout may have been made, and the same key finds it.
func keyAfter(err error, sent url.Values) string {
	f := fault.From(err)
	if f != nil && (f.Kind == fault.Refused || errors.Is(err, payout.ErrKeyReused)) {
		return newKey()
	}
	return cmp.Or(keyOf(sent), newKey())
}

func payoutAddress(p payout.ID) string { return "/dashboard/payouts/" + string(p) }

// quoteView is what a payout would cost, while its amount is being typed.
type quoteView struct {
	payout.Quote
	Problem string
}

// quote answers while the amount is being typed.
func (d *dashboard) quote(_ context.Context, v *pageRequest) (page, error) {
	var q quoteView
	amount, problem := readAmount(d.o.Currency, v.query("amount"), money.Max)
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
func (d *dashboard) cancelPage(ctx context.Context, v *pageRequest) (page, error) {
	p, err := d.theirs(ctx, v)
	if err != nil {
		return page{}, err
	}
	if !d.o.Payouts.Cancellable(p) {
		return d.tooLate(p), nil
	}
	return show("cancel", "Cancel this payout?", p), nil
}

// cancel cancels a payout.
func (d *dashboard) cancel(ctx context.Context, v *pageRequest) (page, error) {
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
		d.o.Logger.WarnContext(ctx, "cancellation unclear", "payout_id", string(p.ID), "cause", errors.Unwrap(err))
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
