package api

import (
	"context"
	"errors"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/id"
)

type bankAccountRequest struct {
	holder string
	number bank.Number
	ifsc   bank.IFSC
}

func (req *bankAccountRequest) read(in *input) {
	req.holder = in.text("accountHolder", bank.CheckHolder)
	req.number = parsed(in, "accountNumber", bank.ParseNumber)
	req.ifsc = parsed(in, "ifsc", bank.ParseIFSC)
}

type bankAccountJSON struct {
	ID            bank.ID     `json:"id"`
	AccountHolder string      `json:"accountHolder"`
	AccountNumber string      `json:"accountNumber"`
	IFSC          bank.IFSC   `json:"ifsc"`
	BankName      orNull      `json:"bankName"`
	Branch        orNull      `json:"branch"`
	IsVerified    bool        `json:"isVerified"`
	Status        bank.Status `json:"status"`
	Reason        orNull      `json:"reason"`
	CreatedAt     string      `json:"createdAt"`
	VerifiedAt    orNull      `json:"verifiedAt"`
}

func (a *api) bankAccountOf(account bank.Account) bankAccountJSON {
	branch, _ := a.o.Bank.Branch(account.IFSC) // an IFSC that we don't know may still be right
	return bankAccountJSON{
		ID:            account.ID,
		AccountHolder: account.Holder,
		AccountNumber: account.Masked(),
		IFSC:          account.IFSC,
		BankName:      orNull(branch.Bank),
		Branch:        orNull(branch.Branch),
		IsVerified:    account.Status == bank.StatusVerified,
		Status:        account.Status,
		Reason:        orNull(account.Reason),
		CreatedAt:     stamp(account.CreatedAt),
		VerifiedAt:    stampOrNull(account.VerifiedAt),
	}
}

func (a *api) registerBankAccount(ctx context.Context, who caller, req bankAccountRequest) (reply[bankAccountJSON], error) {
	account, err := a.o.Bank.Register(ctx, bank.Registration{
		Seller: who.UserID, Actor: who.IssuerActor(), Session: who.Session, Proof: who.Proof, Holder: req.holder, Number: req.number, IFSC: req.ifsc,
	})
	switch {
	case who.Issuer != "" && errors.Is(err, auth.ErrStepUp):
		err = errProofHere
	case errors.Is(err, bank.ErrSellerGone):
		err = auth.ErrUnknownSeller
	}
	return reply[bankAccountJSON]{
		message: "The bank account is registered. You can withdraw to it once it is verified.",
		data:    a.bankAccountOf(account),
	}, err
}

func (a *api) bankAccount(ctx context.Context, who caller, _ none) (reply[bankAccountJSON], error) {
	account, err := a.o.Bank.Account(ctx, who.UserID)
	return answer(a.bankAccountOf(account), err)
}

type resolveRequest struct {
	account bank.ID
	verdict bank.Verdict
}

const maxReasonRunes = 500

func (req *resolveRequest) read(in *input) {
	req.account = in.bankAccountID()
	req.verdict.Verified = in.flag("verified")
	req.verdict.Reason = in.optionalText("reason", checkProse(maxReasonRunes))
	req.verdict.Seen = bank.Status(in.optionalText("seen", checkSeen))
}

// bankAccountID takes the id of a bank account from the path.
func (in *input) bankAccountID() bank.ID {
	account := in.r.PathValue("accountId")
	if !id.Valid(bank.IDPrefix, account) {
		in.refuse(errNoBankAccount)
	}
	return bank.ID(account)
}

func checkSeen(s string) string {
	switch bank.Status(s) {
	case bank.StatusUnverified, bank.StatusReview, bank.StatusRejected, bank.StatusVerified:
		return ""
	default:
		return "must be unverified, review, rejected or verified"
	}
}

// errNoBankAccount is for an admin, who registers none.
var errNoBankAccount = bank.ErrNone.WithMessage("No bank account has this id.")

func (a *api) resolveBankAccount(ctx context.Context, who caller, req resolveRequest) (reply[bankAccountJSON], error) {
	what := decision.RejectBankAccount
	if req.verdict.Verified {
		what = decision.AcceptBankAccount
	}
	by, err := a.decidesAs(ctx, who, what, string(req.account), "")
	if err != nil {
		return reply[bankAccountJSON]{}, err
	}
	account, err := a.o.Bank.Resolve(ctx, by, req.account, req.verdict)
	return reply[bankAccountJSON]{message: "The decision is recorded.", data: a.bankAccountOf(account)}, err
}
