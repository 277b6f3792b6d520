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

// EnsureBeneficiary makes the account a fund account of a contact of its own, and returns the fund
// account's id. The gateway gives the same ids for the same details, so it may be repeated. It fails
// with [gateway.ErrDestinationRefused] when the gateway says that there can't be such an account.
func (c *Client) EnsureBeneficiary(ctx context.Context, reference string, d gateway.Destination) (string, error) {
	name := contactName(d.Holder)
	contact, err := post[Contact](ctx, c, "/contacts", ContactRequest{Name: name, Type: "vendor", ReferenceID: reference})
	if err == nil && !strings.HasPrefix(contact.ID, "cont_") {
		err = errors.New("the gateway's answer holds no contact")
	}
	if err != nil {
		return "", fmt.Errorf("make a contact for bank account %s: %w", reference, err)
	}
	account, err := post[FundAccount](ctx, c, "/fund_accounts", FundAccountRequest{
		ContactID:   contact.ID,
		AccountType: "bank_account",
		BankAccount: BankAccountRequest{
			Name:          name,
			IFSC:          d.IFSC,
			AccountNumber: d.AccountNumber,
		},
	})
	if err == nil {
		err = account.isOf(d)
	}
	if isAboutAccount(err) {
		return "", gateway.ErrDestinationRefused.Because(err)
	}
	if err != nil {
		return "", fmt.Errorf("make a fund account for bank account %s: %w", reference, err)
	}
	return account.ID, nil
}

// isOf fails unless the fund account is the one that was asked for: another one would be paid.
func (f FundAccount) isOf(d gateway.Destination) error {
	reported := f.BankAccount
	switch {
	case !strings.HasPrefix(f.ID, "fa_"):
		return errors.New("the gateway's answer holds no fund account")
	case reported.AccountNumber != "" && !strings.HasSuffix(reported.AccountNumber, d.Last4()): // it may mask the rest
		return fmt.Errorf("the gateway answered with fund account %s, which is of another account number", f.ID)
	case reported.IFSC != "" && !strings.EqualFold(reported.IFSC, d.IFSC):
		return fmt.Errorf("the gateway answered with fund account %s, which is at another bank", f.ID)
	default:
		return nil
	}
}

// DescribeBeneficiary returns the bank account behind a fund account, its holder by the name of its contact. It fails
// with [gateway.ErrUnknownBeneficiary] when the gateway has none.
func (c *Client) DescribeBeneficiary(ctx context.Context, beneficiary string) (gateway.Destination, error) {
	found, err := call[FundAccount](ctx, c, httpapi.Request{Method: http.MethodGet, Path: "/fund_accounts/" + url.PathEscape(beneficiary)})
	if isUnknownID(err) {
		return gateway.Destination{}, fmt.Errorf("%w: %w", gateway.ErrUnknownBeneficiary, err)
	}
	if err == nil && found.ID != beneficiary {
		err = errors.New("the gateway's answer holds no fund account")
	}
	if err != nil {
		return gateway.Destination{}, err
	}
	b := found.BankAccount
	if b.AccountNumber == "" {
		return gateway.Destination{}, gateway.ErrUnknownBeneficiary
	}
	return gateway.Destination{Holder: b.Name, AccountNumber: b.AccountNumber, IFSC: b.IFSC}, nil
}

// isAboutAccount reports whether a refusal is about the bank account's number or IFSC, rather than
// about us.
func isAboutAccount(err error) bool {
	var no *RefusedError
	if !errors.As(err, &no) || no.Status != http.StatusBadRequest {
		return false
	}
	said := strings.ToLower(no.Problem.Description)
	return strings.Contains(said, "ifsc") || strings.Contains(said, "account number format")
}

// Limits of a contact's name.
const (
	minName = 3
	maxName = 50
)

// contactName brings a holder's name into the form that [ValidContactName] wants. Characters that it
// may not have become spaces.
func contactName(holder string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case isASCIILetterOrDigit(r), strings.ContainsRune("’-_/().", r):
			return r
		case r == '\'':
			return '’'
		default:
			return ' '
		}
	}, holder)
	name := []rune(strings.Join(strings.Fields(clean), " "))
	name = name[:min(len(name), maxName)]
	trimmed := strings.TrimRight(string(name), " ’-_/()")
	if !strings.ContainsFunc(trimmed, isASCIILetterOrDigit) {
		return "Account holder"
	}
	if len([]rune(trimmed)) < minName {
		return "Account of " + trimmed
	}
	return trimmed
}

func isASCIILetterOrDigit(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
