package dashboard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"bursar/internal/money"
)

// readAmount reads an amount above zero as people type it: with the currency's sign or code beside it,
// and its thousands or lakhs parted by commas or spaces. What could mean two amounts is refused: "1,5"
// is no number here, and "1.234,50" is none either. It returns what is wrong, or "".
func readAmount(c money.Currency, typed string) (money.Amount, string) {
	example := "must be an amount such as " + strings.TrimPrefix(c.Display(1250*unitOf(c)), c.Symbol())
	text := withoutSign(c, trimSpace(typed))
	whole, fraction, hasFraction := strings.Cut(text, ".")
	digits, ok := ungroup(whole)
	if !ok || hasFraction && !allDigits(fraction) {
		return 0, example
	}
	if hasFraction {
		digits += "." + fraction
	}
	amount, err := c.Parse(digits)
	switch {
	case errors.Is(err, money.ErrPrecision):
		return 0, fmt.Sprintf("must have at most %d decimal places, as %s has", c.Exponent(), c)
	case errors.Is(err, money.ErrRange):
		return 0, "must be at most " + c.Display(money.Max)
	case err != nil:
		return 0, example
	case amount <= 0:
		return 0, "must be above zero"
	default:
		return amount, ""
	}
}

func trimSpace(s string) string { return strings.TrimFunc(s, unicode.IsSpace) }

// withoutSign takes away the currency's sign or code, once, from where people put it.
func withoutSign(c money.Currency, s string) string {
	signs := []string{c.Symbol(), c.Code()}
	if c.Code() == "INR" {
		signs = append(signs, "Rs.", "Rs")
	}
	for _, sign := range signs {
		if len(s) >= len(sign) && strings.EqualFold(s[:len(sign)], sign) {
			return trimSpace(s[len(sign):])
		}
		if sign == c.Code() && len(s) >= len(sign) && strings.EqualFold(s[len(s)-len(sign):], sign) {
			return trimSpace(s[:len(s)-len(sign)])
		}
	}
	return s
}

// ungroup gives the digits of a whole number, and reports whether it is one: without groups, or with
// groups of three (1,234,567) or of the lakh system (12,34,567) that are all parted by the same sign.
func ungroup(s string) (string, bool) {
	i := strings.IndexFunc(s, isSeparator)
	if i < 0 {
		return s, allDigits(s) && (s == "0" || s[0] != '0')
	}
	separator, _ := firstRune(s[i:])
	groups := strings.Split(s, separator)
	if slices.ContainsFunc(groups, func(g string) bool { return !allDigits(g) }) || groups[0][0] == '0' {
		return "", false
	}
	last := len(groups) - 1
	first, inner := len(groups[0]), groups[1:last]
	of := func(size int) bool {
		return first <= size && !slices.ContainsFunc(inner, func(g string) bool { return len(g) != size })
	}
	return strings.Join(groups, ""), len(groups[last]) == 3 && (of(3) || of(2))
}

// isSeparator tells what parts groups: a comma, or one of the spaces of one width that typists use.
func isSeparator(c rune) bool {
	return c == ',' || c == ' ' || c == '\u00a0' || c == '\u2009' || c == '\u202f'
}

func firstRune(s string) (string, rune) {
	for _, c := range s {
		return string(c), c
	}
	return "", 0
}

func allDigits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c < '0' || c > '9' })
}
