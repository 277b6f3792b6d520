package dashboard

import (
	"strconv"
	"strings"

	"bursar/internal/bank"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// short is an amount without decimals that are zero, for where many stand in a small place.
func (d *dashboard) short(a money.Amount) string {
	text := d.o.Currency.Display(a)
	if digits := d.o.Currency.Exponent(); digits > 0 {
		text = strings.TrimSuffix(text, "."+strings.Repeat("0", digits))
	}
	return text
}

// label shows a state to people: a word, an icon and a colour.
type label struct{ Word, Kind string }

// The kinds of labels, which have a sign and a colour each.
const (
	good    = "good"
	bad     = "bad"
	busy    = "busy"
	neutral = "neutral"
)

// statusLabel is a payout's status.
func statusLabel(s payout.Status) label {
	switch s {
	case payout.StatusCompleted:
		return label{"Completed", good}
	case payout.StatusFailed:
		return label{"Failed", bad}
	case payout.StatusCancelled:
		return label{"Cancelled", neutral}
	default:
		return label{"Processing", busy}
	}
}

// accountLabel is how far a bank account's verification is.
func accountLabel(s bank.Status) label {
	switch s {
	case bank.StatusVerified:
		return label{"Verified", good}
	case bank.StatusRejected:
		return label{"Rejected", bad}
	case bank.StatusReview:
		return label{"In review", busy}
	default:
		return label{"Being verified", busy}
	}
}

// counted is a number of things, such as "1 seller".
func counted(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + one + "s"
}

// masked shows the last digits of an account number as those who read bank letters know it.
func masked(last4 string) string {
	if last4 == "" {
		return ""
	}
	return "••••\u00a0" + last4
}
