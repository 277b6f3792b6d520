package razorpayx

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"bursar/internal/gateway"
	"bursar/internal/gateway/httpapi"
)

// validationAmount is what a validation sends to the account: one rupee.
const validationAmount = 100

// StartVerification sends a small amount to the account's beneficiary, which must be known to the
// gateway. RazorpayX offers this on Lite accounts alone.
func (c *Client) StartVerification(ctx context.Context, a gateway.VerificationRequest) (gateway.Verification, error) {
	switch {
	case !c.capabilities.Verification:
		return gateway.Verification{}, gateway.ErrNotOffered
	case a.Beneficiary == "":
		return gateway.Verification{}, fmt.Errorf("razorpayx: bank account %s must be known to the gateway before it is verified", a.Account)
	}
	v, err := post[Validation](ctx, c, "/fund_accounts/validations", ValidationRequest{
		AccountNumber: c.o.AccountNumber,
		FundAccount:   FundAccountRef{ID: a.Beneficiary},
		Amount:        validationAmount,
		Currency:      c.o.Currency.Code(),
		Notes:         Notes{noteAccount: a.Account},
	})
	if err != nil {
		return gateway.Verification{}, fmt.Errorf("start the verification of bank account %s: %w", a.Account, err)
	}
	return verification(v, a)
}

// Verification asks how an account's validation stands.
func (c *Client) Verification(ctx context.Context, a gateway.VerificationRequest, id string) (gateway.Verification, error) {
	if !c.capabilities.Verification {
		return gateway.Verification{}, gateway.ErrNotOffered
	}
	v, err := call[Validation](ctx, c, httpapi.Request{Method: http.MethodGet, Path: "/fund_accounts/validations/" + url.PathEscape(id)})
	if err != nil {
		return gateway.Verification{}, fmt.Errorf("ask for verification %s: %w", id, err)
	}
	if v.ID != id {
		return gateway.Verification{}, fmt.Errorf("the gateway was asked for verification %s and told of another", id)
	}
	return verification(v, a)
}

// verification reads a validation of an account. What tells of another account says nothing about this one. Completed alone means nothing: the account must also be called
// active or invalid, or a person has to look. Failed is the gateway's trouble and says nothing about the account.
func verification(v Validation, a gateway.VerificationRequest) (gateway.Verification, error) {
	if !strings.HasPrefix(v.ID, "fav_") {
		return gateway.Verification{}, errors.New("the gateway's answer holds no validation")
	}
	if named := v.FundAccount.ID; named != "" && named != a.Beneficiary {
		return gateway.Verification{}, fmt.Errorf("verification %s of bank account %s tells of another beneficiary", v.ID, a.Account)
	}
	if named := v.Notes[noteAccount]; named != "" && named != a.Account {
		return gateway.Verification{}, fmt.Errorf("verification %s of bank account %s tells of another bank account", v.ID, a.Account)
	}
	found := v.results()
	report := gateway.Verification{ID: v.ID, RegisteredName: string(found.RegisteredName), NameScore: -1}
	if found.NameMatchScore != nil {
		report.NameScore = int(*found.NameMatchScore)
	}
	switch {
	case v.Status == ValidationCreated:
		report.Outcome = gateway.OutcomePending
		report.Reason = "The bank has yet to confirm the account."
	case v.Status == ValidationCompleted && strings.EqualFold(string(found.AccountStatus), AccountActive):
		report.Outcome = gateway.OutcomeValid
	case v.Status == ValidationCompleted && !strings.EqualFold(string(found.AccountStatus), AccountInvalid):
		report.Outcome = gateway.OutcomeReview
		report.Reason = "The gateway did not say whether the bank has this account."
	case v.Status == ValidationCompleted:
		report.Outcome = gateway.OutcomeInvalid
		report.Reason = "The bank does not confirm this account. Check the account number and IFSC and register them again."
	case v.Status == ValidationFailed:
		report.Outcome = gateway.OutcomeFault
		report.Reason = "The bank could not be asked about the account. It will be asked again."
	default:
		return gateway.Verification{}, fmt.Errorf("verification %s has the unknown status %q", v.ID, httpapi.Redact(v.Status))
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
