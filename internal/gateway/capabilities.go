package gateway

import (
	"time"

	"bursar/internal/money"
)

// Capabilities are what a gateway offers. What is left at its zero value is not offered.
type Capabilities struct {
	// Currency is the code of the one that it pays.
	Currency string
	// Rails are how money travels, the preferred one first.
	Rails []Rail
	// Least is the smallest transfer; zero is no bound.
	Least money.Amount
	// KeyLifetime is how long, from its first use, an idempotency key gives the same transfer again. After it the same
	// key may pay a second time. Zero means that keys are not honoured.
	KeyLifetime time.Duration
	// Lookup means that a transfer can be found by our reference.
	Lookup bool
	// List means that the transfers since a moment can be listed, and those whose money came back.
	List bool
	// Metadata means that a listed transfer tells the seller, account and gross amount of its order.
	Metadata bool
	// Cancel means that a queued transfer can be cancelled.
	Cancel bool
	// Verification means that it can tell whether an account exists and whose it is.
	Verification bool
	// Statement means that it lists the lines of our account.
	Statement bool
}

// ResendFor is how long after an order was first sent it may be sent again under the same key. It is shorter than the
// key's lifetime: clocks differ, and a request may be a long time on its way.
func (c Capabilities) ResendFor() time.Duration {
	const maxMargin = 24 * time.Hour
	return c.KeyLifetime - min(maxMargin, c.KeyLifetime/4)
}

// RailName names a payment system, such as a country's instant transfers, in the gateway's word.
type RailName string

// Rail is a payment system that the gateway offers, with its limits and hours.
type Rail struct {
	Name RailName
	// Min and Max bound an amount; zero is no bound.
	Min, Max money.Amount
	// Opens and Closes are the part of a working day in which transfers are taken, in minutes after the bank's
	// midnight. Both zero means at all hours of every day.
	Opens, Closes int
	// Takes is how long a transfer takes once it is taken. Zero means until the end of the next working day.
	Takes time.Duration
}

// Carries reports whether the rail takes an amount.
func (r Rail) Carries(a money.Amount) bool {
	return a >= r.Min && (r.Max == 0 || a <= r.Max)
}

// AlwaysOpen reports whether the rail has no hours.
func (r Rail) AlwaysOpen() bool { return r.Opens == 0 && r.Closes == 0 }
