package money

import "strings"

const (
	minusSign    = "\u2212"
	noBreakSpace = "\u00a0"
)

// Display writes a for people, as those who use the currency write it: "₹1,23,456.50", "$1,234.50",
// "KWD 1,234.500". It never breaks across lines.
func (c Currency) Display(a Amount) string {
	digits, isNegative := strings.CutPrefix(c.FormatFixed(a), "-")
	whole, fraction, hasFraction := strings.Cut(digits, ".")
	var b strings.Builder
	if isNegative {
		b.WriteString(minusSign)
	}
	b.WriteString(c.Symbol())
	if _, known := symbols[c.code]; !known {
		b.WriteString(noBreakSpace)
	}
	c.group(&b, whole)
	if hasFraction {
		b.WriteString("." + fraction)
	}
	return b.String()
}

// Symbol is the currency's sign where nobody takes it for another's, and otherwise its code.
func (c Currency) Symbol() string {
	if symbol, known := symbols[c.code]; known {
		return symbol
	}
	return c.code
}

// group writes whole units with commas: behind each third digit from the right, or in the lakh system
// behind the third and then each second.
func (c Currency) group(b *strings.Builder, whole string) {
	size := 3
	if lakh[c.code] {
		size = 2
	}
	for i, digit := range []byte(whole) {
		left := len(whole) - i // digits, this one included
		if i > 0 && left >= 3 && (left-3)%size == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(digit)
	}
}

// symbols are the signs that stand before an amount. "$" is the US dollar's and "¥" the yen's; other
// dollars, the yuan and the rupees of India's neighbours go by their codes.
var symbols = map[string]string{
	"BDT": "৳", "CRC": "₡", "EUR": "€", "GBP": "£", "GEL": "₾", "GHS": "₵", "ILS": "₪", "INR": "₹", "JPY": "¥",
	"KHR": "៛", "KRW": "₩", "KZT": "₸", "LAK": "₭", "MNT": "₮", "NGN": "₦", "PHP": "₱", "PYG": "₲", "THB": "฿",
	"TRY": "₺", "UAH": "₴", "USD": "$", "VND": "₫",
}

// lakh are the currencies that are counted in lakhs (1,00,000) and crores (1,00,00,000).
var lakh = map[string]bool{"BDT": true, "BTN": true, "INR": true, "NPR": true, "PKR": true}
