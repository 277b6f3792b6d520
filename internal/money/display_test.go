package money_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bursar/internal/money"
)

func TestDisplay(t *testing.T) {
	for _, tt := range []struct {
		code   string
		amount money.Amount
		want   string
	}{
		{"INR", 0, "₹0.00"},
		{"INR", 5, "₹0.05"},
		{"INR", 999_99, "₹999.99"},
		{"INR", 1_000_00, "₹1,000.00"},
		{"INR", 99_999_00, "₹99,999.00"},
		{"INR", 1_23_456_50, "₹1,23,456.50"},
		{"INR", 12_34_56_789_01, "₹12,34,56,789.01"},
		{"INR", -1_00_000_00, "−₹1,00,000.00"},
		{"NPR", 1_23_456_50, "NPR 1,23,456.50"},
		{"LKR", 123_456_50, "LKR 123,456.50"},
		{"USD", 1_234_50, "$1,234.50"},
		{"AUD", 1_234_50, "AUD 1,234.50"},
		{"EUR", 1_234_567_50, "€1,234,567.50"},
		{"JPY", 1_234, "¥1,234"},
		{"JPY", -100, "−¥100"},
		{"KWD", 1_234_500, "KWD 1,234.500"},
		{"KWD", -500, "−KWD 0.500"},
		{"CLF", 12_345_6789, "CLF 12,345.6789"},
		{"INR", math.MinInt64, "−₹92,23,37,20,36,85,47,758.08"},
	} {
		want := strings.Replace(tt.want, " ", "\u00a0", 1)
		if got := currency(t, tt.code).Display(tt.amount); got != want {
			t.Errorf("Display(%d) in %s = %q, want %q", tt.amount, tt.code, got, want)
		}
	}
}

// TestDisplayShowsTheAmount: whatever stands between the digits, they are FormatFixed's.
func TestDisplayShowsTheAmount(t *testing.T) {
	digits := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, s)
	}
	rapid.Check(t, func(t *rapid.T) {
		c := currency(t, rapid.SampledFrom([]string{"INR", "USD", "JPY", "KWD", "CLF", "PKR"}).Draw(t, "currency"))
		amount := money.Amount(rapid.Int64().Draw(t, "amount"))
		shown := c.Display(amount)
		if got, want := digits(shown), digits(c.FormatFixed(amount)); got != want {
			t.Fatalf("%d is shown as %s, whose digits are %s; want %s", amount, shown, got, want)
		}
		if strings.HasPrefix(shown, "−") != (amount < 0) || strings.Contains(shown, ",,") || strings.ContainsAny(shown, " -") {
			t.Fatalf("%d is shown as %q", amount, shown)
		}
	})
}
