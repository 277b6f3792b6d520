// Package money counts money in whole minor units (paise, cents) and never in floating point.
//
// An [Amount] is a number of minor units; which currency it is in is a fact of the whole service
// ([Currency]), because one ledger counts one currency. Text and JSON hold major units, and the two
// are converted exactly or not at all: 600.005 rupees is refused, not rounded.
package money

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Amount is a number of minor units; it may be negative. What comes from outside is at most Max, so that
// sums of a few amounts stay in range; totals are summed by the database, which refuses to overflow.
type Amount int64

// Max bounds every amount that comes from outside: 2^53-1 minor units, the largest whole number that
// every JSON reader can hold exactly (RFC 8259 §6).
const Max Amount = 1<<53 - 1

// What may be wrong with an amount written as text.
var (
	ErrSyntax    = errors.New("not a number")
	ErrPrecision = errors.New("more decimal places than the currency has")
	ErrRange     = errors.New("too large")
)

// BasisPoints is a share in hundredths of a percent: 50 is 0.5 %.
type BasisPoints int64

// Share gives the share of a, rounded half up to a minor unit. It needs a ≥ 0 and 0 ≤ bp ≤ 10,000,
// and panics otherwise: both are checked where they enter the program.
func (a Amount) Share(bp BasisPoints) Amount {
	if a < 0 || bp < 0 || bp > 10_000 {
		panic(fmt.Sprintf("money: share of %d basis points of %d", bp, a))
	}
	hi, lo := bits.Mul64(uint64(a), uint64(bp))
	lo, carry := bits.Add64(lo, 5_000, 0)
	quotient, _ := bits.Div64(hi+carry, lo, 10_000)
	return Amount(quotient)
}

// Format writes a in major units without trailing zeros, as JSON numbers are: 60050 paise is "600.5".
func (c Currency) Format(a Amount) string {
	s := c.FormatFixed(a)
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// FormatFixed writes a in major units with all of the currency's decimals: 60050 paise is "600.50".
func (c Currency) FormatFixed(a Amount) string {
	var b [32]byte
	text := b[:0]
	magnitude := uint64(a)
	if a < 0 {
		text, magnitude = append(text, '-'), -magnitude
	}
	unit := uint64(c.unit())
	text = strconv.AppendUint(text, magnitude/unit, 10)
	if c.exponent == 0 {
		return string(text)
	}
	text = append(text, '.')
	for digit := unit / 10; digit > 0; digit /= 10 {
		text = append(text, byte('0'+magnitude/digit%10))
	}
	return string(text)
}

// Parse reads a JSON number of major units (RFC 8259 §6: "600", "600.50", "6e2") exactly.
// It fails with ErrSyntax, with ErrPrecision where minor units would have to be split, or with
// ErrRange beyond ±Max.
func (c Currency) Parse(text string) (Amount, error) {
	n, ok := scanNumber(text)
	if !ok {
		return 0, ErrSyntax
	}
	if n.digits == "" {
		return 0, nil
	}
	exponent, err := strconv.ParseInt(n.exponent, 10, 32)
	if err != nil { // so long that only its sign matters
		exponent = math.MaxInt32
		if strings.HasPrefix(n.exponent, "-") {
			exponent = math.MinInt32
		}
	}
	// zeros is how many of them turn the digits into minor units.
	zeros := exponent - int64(n.fraction) + int64(c.exponent)
	if zeros < 0 {
		return 0, ErrPrecision
	}
	const maxDigits = 16 // of Max
	if int64(len(n.digits))+zeros > maxDigits {
		return 0, ErrRange
	}
	minor, err := strconv.ParseInt(n.digits+strings.Repeat("0", int(zeros)), 10, 64)
	if err != nil || Amount(minor) > Max {
		return 0, ErrRange
	}
	if n.negative {
		minor = -minor
	}
	return Amount(minor), nil
}

// number is a JSON number in parts: digits without leading or trailing zeros, of which the last
// fraction ones stand behind the decimal point (fewer than none when zeros were dropped before it).
type number struct {
	negative bool
	digits   string
	fraction int
	exponent string
}

func scanNumber(s string) (number, bool) {
	n := number{exponent: "0"}
	s, n.negative = strings.CutPrefix(s, "-")
	mantissa, exponent, hasExponent := strings.Cut(strings.Replace(s, "E", "e", 1), "e")
	if hasExponent {
		n.exponent = exponent
		if !allDigits(strings.TrimPrefix(strings.TrimPrefix(exponent, "+"), "-")) || strings.HasPrefix(exponent, "+-") {
			return n, false
		}
	}
	whole, fraction, hasFraction := strings.Cut(mantissa, ".")
	if !allDigits(whole) || (len(whole) > 1 && whole[0] == '0') || (hasFraction && !allDigits(fraction)) {
		return n, false
	}
	all := strings.TrimLeft(whole+fraction, "0")
	n.digits = strings.TrimRight(all, "0")
	n.fraction = len(fraction) - (len(all) - len(n.digits))
	return n, true
}

func allDigits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}
