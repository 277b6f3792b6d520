package gateway

import (
	"fmt"
	"io"
	"log/slog"
)

// Destination is the bank account that money goes to. It holds a full account number, and prints masked.
type Destination struct {
	Holder        string
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
