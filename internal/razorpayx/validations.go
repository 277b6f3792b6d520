package razorpayx

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"bursar/internal/bank"
)

// validationAmount is what a validation sends to the account: one rupee.
const validationAmount = 100

// StartVerification sends a small amount to the account's beneficiary, which must be known to the
// gateway. RazorpayX offers this on Lite accounts alone.
func (c *Client) StartVerification(ctx context.Context, a bank.Account) (bank.Verification, error) {
	if a.Beneficiary == "" {
		return bank.Verification{}, fmt.Errorf("razorpayx: bank account %s must be known to the gateway before it is verified", a.ID)
	}
	v, err := post[Validation](ctx, c, "/fund_accounts/validations", ValidationRequest{
		AccountNumber: c.o.AccountNumber,
		FundAccount:   FundAccountRef{ID: a.Beneficiary},
		Amount:        validationAmount,
		Currency:      c.o.Currency.Code(),
		Notes:         Notes{noteAccount: string(a.ID)},
	})
	if err != nil {
		return bank.Verification{}, fmt.Errorf("start the verification of bank account %s: %w", a.ID, err)
	}
	return verification(v, a)
}

// Verification asks how an account's validation stands.
func (c *Client) Verification(ctx context.Context, a bank.Account) (bank.Verification, error) {
	id := a.VerificationID
	v, err := call[Validation](ctx, c, request{method: http.MethodGet, path: "/fund_accounts/validations/" + url.PathEscape(id)})
	if err != nil {
		return bank.Verification{}, fmt.Errorf("ask for verification %s: %w", id, err)
	}
	if v.ID != id {
		return bank.Verification{}, fmt.Errorf("the gateway was asked for verification %s and told of another", id)
	}
	return verification(v, a)
}

// verification reads a validation of an account. What tells of another account says nothing about this one. Completed alone means nothing: the account must also be called
// active or invalid, or a person has to look. Failed is the gateway's trouble and says nothing about the account.
func verification(v Validation, a bank.Account) (bank.Verification, error) {
	if !strings.HasPrefix(v.ID, "fav_") {
		return bank.Verification{}, errors.New("the gateway's answer holds no validation")
	}
	if named := v.FundAccount.ID; named != "" && named != a.Beneficiary {
		return bank.Verification{}, fmt.Errorf("verification %s of bank account %s tells of another beneficiary", v.ID, a.ID)
	}
	if named := v.Notes[noteAccount]; named != "" && named != string(a.ID) {
		return bank.Verification{}, fmt.Errorf("verification %s of bank account %s tells of another bank account", v.ID, a.ID)
	}
	found := v.results()
	report := bank.Verification{ID: v.ID, RegisteredName: string(found.RegisteredName), NameScore: -1}
	if found.NameMatchScore != nil {
		report.NameScore = int(*found.NameMatchScore)
	}
	switch {
	case v.Status == ValidationCreated:
		report.Outcome = bank.OutcomePending
		report.Reason = "The bank has yet to confirm the account."
	case v.Status == ValidationCompleted && strings.EqualFold(string(found.AccountStatus), AccountActive):
		report.Outcome = bank.OutcomeValid
	case v.Status == ValidationCompleted && !strings.EqualFold(string(found.AccountStatus), AccountInvalid):
		report.Outcome = bank.OutcomeReview
		report.Reason = "The gateway did not say whether the bank has this account."
	case v.Status == ValidationCompleted:
		report.Outcome = bank.OutcomeInvalid
		report.Reason = "The bank does not confirm this account. Check the account number and IFSC and register them again."
	case v.Status == ValidationFailed:
		report.Outcome = bank.OutcomeFault
		report.Reason = "The bank could not be asked about the account. It will be asked again."
	default:
		return bank.Verification{}, fmt.Errorf("verification %s has the unknown status %q", v.ID, redact(v.Status))
	}
	return report, nil
}

// results are where either shape of validation has them.
func (v Validation) results() ValidationResults {
	switch {
	case v.ValidationResults != nil:
		return *v.ValidationResults
	case v.Results != nil:
		return *v.Results
	default:
		return ValidationResults{}
	}
}
