package dashboard

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/id"
)

func accountAddress(id bank.ID) string {
	return adminHome + "/bank-accounts/" + url.PathEscape(string(id))
}

// namePair is the name that the seller gave beside the one that the bank has, word by word.
type namePair struct {
	Given, Registered []nameWord
}

// nameWord is a word of a name. Odd says that the other name does not have it.
type nameWord struct {
	Text string
	Odd  bool
}

func compareNames(a bank.Account) *namePair {
	return &namePair{wordsBeside(a.Holder, a.RegisteredName), wordsBeside(a.RegisteredName, a.Holder)}
}

func wordsBeside(name, other string) []nameWord {
	others := strings.Fields(strings.ToUpper(other))
	var list []nameWord
	for w := range strings.FieldsSeq(name) {
		list = append(list, nameWord{w, other != "" && !slices.Contains(others, strings.ToUpper(w))})
	}
	return list
}

// reviewAccountView is a bank account with what speaks for and against it.
type reviewAccountView struct {
	bank.Account
	Seller    auth.User
	Branch    bank.Branch
	Names     *namePair
	Current   bool
	Form      *form // nil where there is nothing to decide
	Decisions []decisionRow
}

// Label is how far its verification is.
func (a reviewAccountView) Label() label { return accountLabel(a.Status) }

// Likeness is the names' score in words.
func (a reviewAccountView) Likeness() string { return likenessWords(a.NameScore) }

// SellerPath is its seller's page.
func (a reviewAccountView) SellerPath() string { return personAddress(a.Account.Seller) }

// What a review may end with.
const (
	accept = "accept"
	reject = "reject"
)

func reviewForm(a bank.Account) *form {
	return &form{Action: accountAddress(a.ID), Submit: "Decide", Hidden: []hidden{{"seen", string(a.Status)}}, Fields: []field{
		{Name: "decision", Label: "Your decision", Type: "choice", Choices: []choice{
			{accept, "Accept", "The account is the seller's. Payouts may go there from now on."},
			{reject, "Reject", "Nothing is paid there. The seller sees the reason and registers another account."},
		}},
		{
			Name: "reason", Label: "Reason for the seller", Type: "textarea", Optional: true, Max: 500,
			Hint: "Needed to reject. The seller reads it: say what is wrong and what to do, and not what name the bank has.",
		},
		noteField(false),
	}}
}

var errNoAccount = bank.ErrNone.WithMessage("There is no bank account with this id.")

// reviewAccount finds the account that the address names, with all that a decision needs.
func (d *dashboard) reviewAccount(ctx context.Context, v *pageRequest) (*reviewAccountView, error) {
	given := v.r.PathValue("id")
	if !id.Valid(bank.IDPrefix, given) {
		return nil, errNoAccount
	}
	account, err := d.o.Bank.AccountByID(ctx, bank.ID(given))
	if errors.Is(err, bank.ErrNone) {
		return nil, errNoAccount
	}
	if err != nil {
		return nil, err
	}
	shown := &reviewAccountView{Account: account, Names: compareNames(account)}
	shown.Branch, _ = d.o.Bank.Branch(account.IFSC) // an unlisted branch has no name
	if shown.Seller, _, err = d.o.Auth.User(ctx, account.Seller); err != nil {
		return nil, err
	}
	current, err := d.o.Bank.Account(ctx, account.Seller)
	if err != nil && !errors.Is(err, bank.ErrNone) {
		return nil, err
	}
	shown.Current = current.ID == account.ID
	if shown.Current && account.Status != bank.StatusVerified {
		shown.Form = reviewForm(account)
		if err := d.askForCode(ctx, v, shown.Form); err != nil {
			return nil, err
		}
	}
	shown.Decisions, err = d.decisionsAbout(ctx, given)
	return shown, err
}

func showAccount(a *reviewAccountView) page { return show("admin-account", "Bank account", a) }

// adminAccount shows a bank account with the names side by side, and asks for a decision.
func (d *dashboard) adminAccount(ctx context.Context, v *pageRequest) (page, error) {
	shown, err := d.reviewAccount(ctx, v)
	if err != nil {
		return page{}, err
	}
	return showAccount(shown), nil
}

// adminResolve accepts or rejects a bank account.
func (d *dashboard) adminResolve(ctx context.Context, v *pageRequest) (page, error) {
	shown, err := d.reviewAccount(ctx, v)
	if err != nil {
		return page{}, err
	}
	chosen, by := v.form.Get("decision"), byOf(v)
	if chosen != accept && chosen != reject {
		err = fault.Field("decision", "must be to accept or to reject")
	} else if err = by.RequireNote(); err == nil {
		err = d.proveDecision(ctx, v, map[string]decision.Action{accept: decision.AcceptBankAccount, reject: decision.RejectBankAccount}[chosen], string(shown.ID))
	}
	if err == nil {
		_, err = d.o.Bank.Resolve(ctx, by, shown.ID, bank.Verdict{
			Verified: chosen == accept, Reason: plainLines(v.form.Get("reason")), Seen: bank.Status(v.form.Get("seen")),
		})
	}
	if err == nil {
		return goTo(accountAddress(shown.ID)).saying(notice("account-" + chosen)), nil
	}
	if shown.Form == nil {
		return goTo(accountAddress(shown.ID)).saying("no-longer-fits"), nil
	}
	return d.again(ctx, showAccount(shown), shown.Form.fill(v.form), err)
}
