package gateway

import (
	"fmt"
	"io"
	"log/slog"
)

// DestinationKind is what sort of thing money is sent to.
type DestinationKind string

// BankAccount is an account at a bank, by its number and the code of its branch.
const BankAccount DestinationKind = "bank_account"

// Destination is where money goes. It holds a full account number, and prints masked.
type Destination struct {
	Holder string
	// AccountNumber and IFSC are set for a bank account.
	AccountNumber string
	IFSC          string
}

// Last4 gives the last four digits of the account number.
func (d Destination) Last4() string { return d.AccountNumber[max(0, len(d.AccountNumber)-4):] }

func (d Destination) String() string { return "****" + d.Last4() }

// Format masks whatever the verb: %#v would print the number.
func (d Destination) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, d.String()) }

// LogValue masks the destination in a log.
func (d Destination) LogValue() slog.Value { return slog.StringValue(d.String()) }

// MarshalText masks the destination in JSON.
func (d Destination) MarshalText() ([]byte, error) { return []byte(d.String()), nil }
