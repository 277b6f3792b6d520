// Package bank holds the accounts that sellers are paid to: their rules, their masking, and their
// verification.
//
// A bank account is never changed: registering another one adds a row, so that a payout in flight
// keeps the account that it was made with. The full number is encrypted at rest and is decrypted only to
// tell the gateway about it.
package bank

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/gateway"
)

// ID is a bank account's identifier, with prefix [IDPrefix].
type ID string

// Status is how far an account's verification is.
type Status string

// Statuses. Only StatusVerified may be paid to.
const (
	StatusUnverified Status = "unverified" // not started, or under way
	StatusVerified   Status = "verified"
	StatusRejected   Status = "rejected"
	StatusReview     Status = "review" // exists, but the holder's name has to be compared by an admin
)

// Account is a seller's bank account. Its tagged fields are recorded in the seller's journal, which they fold from.
type Account struct {
	ID     ID
	Seller string `journal:"seller"`
	Holder string `journal:"holder"`
	IFSC   IFSC   `journal:"ifsc"`
	// Current says that new payouts go there.
	Current bool `journal:"current"`
	// Last4 is all of the number that may be shown; the rest is in EncryptedNumber.
	Last4           string `journal:"last4"`
	EncryptedNumber string `journal:"encryptedNumber,hash"`
	Status          Status `journal:"status"`
	// Reason is a sentence for the seller: why it is not verified and what to do.
	Reason string `journal:"reason"`
	// RegisteredName and NameScore are the verifier's findings; the score is -1 where there is none.
	RegisteredName string `journal:"registeredName"`
	NameScore      int    `journal:"nameScore"`
	// Beneficiary is what Gateway calls the account; both are empty until the account was registered there.
	Beneficiary    string       `journal:"beneficiary"`
	Gateway        gateway.Name `journal:"gateway"`
	VerificationID string       `journal:"verificationId"`
	// Tries counts steps of the verification, for back-off. DueAt is when the next one is, zero for never.
	Tries      int
	DueAt      time.Time
	CreatedAt  time.Time `journal:"createdAt"`
	VerifiedAt time.Time `journal:"verifiedAt"`
}

// Masked shows the last four digits alone.
func (a Account) Masked() string { return Mask(a.Last4) }

// Mask writes an account number's last four digits as the API shows them; none is "".
func Mask(last4 string) string {
	if last4 == "" {
		return ""
	}
	return "****" + last4
}

// ErrNone means that there is no such account.
var ErrNone = fault.New(fault.NotFound, "bank_account_not_found",
	"No bank account is registered yet. Register one with PUT /api/bank-account.")

// Number is a full account number. It prints masked, so that it can't slip into a log.
type Number struct{ digits string }

var accountNumber = regexp.MustCompile(`^[0-9]{9,18}$`)

// ParseNumber reads an account number of 9 to 18 digits and nothing else, not all of them zeros;
// leading zeros count.
func ParseNumber(s string) (Number, error) {
	if !accountNumber.MatchString(s) || strings.Trim(s, "0") == "" {
		return Number{}, fault.Field("accountNumber", "must be the account's 9 to 18 digits, without spaces or hyphens, and not all zeros")
	}
	return Number{s}, nil
}

// Reveal gives all digits, for the gateway alone.
func (n Number) Reveal() string { return n.digits }

// Last4 gives the last four digits.
func (n Number) Last4() string { return n.digits[max(0, len(n.digits)-4):] }

func (n Number) String() string { return Mask(n.Last4()) }

// Format masks whatever the verb: %#v and a mistaken %d would print the digits.
func (n Number) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, n.String()) }

// IFSC is an Indian bank branch's code (RBI): four capital letters, a zero, six letters or digits.
type IFSC string

var ifscPattern = regexp.MustCompile(`^[A-Za-z]{4}0[A-Za-z0-9]{6}$`)

// ParseIFSC reads a code with nothing around it; lower case is raised.
func ParseIFSC(s string) (IFSC, error) {
	if !ifscPattern.MatchString(s) {
		return "", fault.Field("ifsc", "must be a code such as HDFC0000053: four letters, a zero, six letters or digits, without spaces")
	}
	return IFSC(strings.ToUpper(s)), nil
}
