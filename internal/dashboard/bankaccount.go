package dashboard

import (
	"context"
	"errors"
	"maps"
	"strings"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/fault"
)

// bankView is where the seller is paid to.
type bankView struct {
	// Account is zero for none.
	Account accountView
	Branch  bank.Branch
	Form    *form
	// CoolDown is how long payouts are on hold after the account was replaced, in words; empty for not at all.
	CoolDown string
}

// accountForm asks for an account. The number is asked twice, because a slip sends money to the wrong account, and is
// never shown again.
func accountForm() *form {
	return &form{
		Action: "/dashboard/bank-account", Submit: "Save bank account",
		Fields: []field{
			{Name: "accountHolder", Label: "Account holder", Type: "text", Autocomplete: "name", Max: 120, Hint: "Exactly as on your bank account."},
			{Name: "accountNumber", Label: "Account number", Type: "text", InputMode: "numeric", Autocomplete: "off", Max: 40, Secret: true},
			{Name: "accountNumberAgain", Label: "Confirm account number", Type: "text", InputMode: "numeric", Autocomplete: "off", Max: 40, Secret: true},
			{
				Name: "ifsc", Label: "IFSC", Type: "text", Autocomplete: "off", Max: 20, Hint: "Eleven characters, e.g. HDFC0000053. It is on every cheque and statement.",
				Ask: "/dashboard/bank-account/branch?ifsc=",
			},
		},
	}
}

// bankAccount shows the account, or asks for one where there is none.
func (d *dashboard) bankAccount(ctx context.Context, v *pageRequest) (page, error) {
	account, err := d.o.Bank.Account(ctx, v.who.UserID)
	if errors.Is(err, bank.ErrNone) {
		return d.bankAccountForm(ctx, v)
	}
	if err != nil {
		return page{}, err
	}
	shown := &bankView{Account: accountView{account}}
	shown.Branch, _ = d.o.Bank.Branch(account.IFSC)
	p := show("bank", "Bank account", shown)
	p.live = account.Status == bank.StatusUnverified
	return p, nil
}

// bankAccountForm asks for another account.
func (d *dashboard) bankAccountForm(ctx context.Context, v *pageRequest) (page, error) {
	account, err := d.o.Bank.Account(ctx, v.who.UserID)
	if err != nil && !errors.Is(err, bank.ErrNone) {
		return page{}, err
	}
	title := "Change bank account"
	if account.Status == "" {
		title = "Add bank account"
	}
	f := accountForm()
	f.Field("accountHolder").Value = account.Holder
	if err := d.askForCode(ctx, v, f); err != nil {
		return page{}, err
	}
	shown := &bankView{Account: accountView{account}, Form: f}
	if account.Status == bank.StatusVerified && d.o.CoolDown > 0 {
		shown.CoolDown = span(d.o.CoolDown)
	}
	return show("bank-form", title, shown), nil
}

// registerBankAccount makes an account the seller's.
func (d *dashboard) registerBankAccount(ctx context.Context, v *pageRequest) (page, error) {
	r, err := readAccount(v)
	if err == nil {
		err = d.prove(ctx, v, auth.ActionReplaceAccount, r.Number.Reveal(), string(r.IFSC))
	}
	if err == nil {
		r.Proof = v.who.Proof
		_, err = d.o.Bank.Register(ctx, r)
	}
	if err == nil {
		return goTo("/dashboard/bank-account").saying("bank-account-registered"), nil
	}
	p, showErr := d.bankAccountForm(ctx, v)
	if showErr != nil {
		return page{}, errors.Join(err, showErr)
	}
	shown, _ := p.data.(*bankView)
	return d.again(ctx, p, shown.Form.fill(v.form), needsCode(err))
}

// readAccount reads the form, or fails with a fault that names the fields at fault.
func readAccount(v *pageRequest) (bank.Registration, error) {
	r := bank.Registration{Seller: v.who.UserID, Session: v.who.Session, Holder: strings.Join(strings.Fields(v.form.Get("accountHolder")), " ")}
	problems := map[string]string{}
	if problem := bank.CheckHolder(r.Holder); problem != "" {
		problems["accountHolder"] = problem
	}
	// Statements print numbers in groups.
	typed, again := withoutSpaces(v.form.Get("accountNumber")), withoutSpaces(v.form.Get("accountNumberAgain"))
	var numberErr, ifscErr error
	r.Number, numberErr = bank.ParseNumber(typed)
	r.IFSC, ifscErr = bank.ParseIFSC(trimSpace(v.form.Get("ifsc")))
	for _, err := range []error{numberErr, ifscErr} {
		if f := fault.From(err); f != nil {
			maps.Copy(problems, f.Details)
		}
	}
	if typed != again {
		problems["accountNumberAgain"] = "must be the same as the account number"
	}
	if len(problems) > 0 {
		return bank.Registration{}, fault.Fields(fault.Invalid, problems)
	}
	return r, nil
}

func withoutSpaces(s string) string { return strings.Join(strings.Fields(s), "") }

// branchView names the branch that an IFSC stands for.
type branchView struct {
	bank.Branch
	// Typed says that the code is complete, and Known that its bank is known.
	Typed, Known bool
}

// branch answers while the IFSC is being typed.
func (d *dashboard) branch(_ context.Context, v *pageRequest) (page, error) {
	var b branchView
	ifsc, err := bank.ParseIFSC(trimSpace(v.query("ifsc")))
	if err == nil {
		b.Typed = true
		b.Branch, b.Known = d.o.Bank.Branch(ifsc)
	}
	p := show("branch", "Branch", b)
	p.fragment = true
	return p, nil
}
