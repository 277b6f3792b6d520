package dashboard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"bursar/internal/money"
)

// readAmount reads an amount above zero, and of no more than most, as people type it: with the currency's
// sign or code beside it, with "/-" or a point behind it, in the digits of one script, and its thousands
// or lakhs parted by commas or spaces. What could mean two amounts is refused: "1,5" is no number here,
// and "1.234,50" is none either. It returns what is wrong, or "".
func readAmount(c money.Currency, typed string, most money.Amount) (money.Amount, string) {
	example := "e.g. " + strings.TrimPrefix(c.Display(1250*unitOf(c)), c.Symbol())
	text := withoutSign(c, trimSpace(typed))
	if text == "" {
		return 0, "Enter an amount, " + example
	}
	whole, fraction, hasFraction := strings.Cut(inWesternDigits(withoutEnd(text)), ".")
	digits, ok := ungroup(whole)
	if !ok || hasFraction && !allDigits(fraction) {
		return 0, "must be an amount, " + example
	}
	if hasFraction {
		digits += "." + fraction
	}
	amount, err := c.Parse(digits)
	switch {
	case errors.Is(err, money.ErrPrecision):
		return 0, fmt.Sprintf("must have at most %d decimal places, as %s has", c.Exponent(), c)
	case errors.Is(err, money.ErrRange) || err == nil && amount > most:
		return 0, atMost(c, most)
	case err != nil:
		return 0, "must be an amount, " + example
	case amount <= 0:
		return 0, "must be above zero"
	default:
		return amount, ""
	}
}

// atMost says how much it may be. What is less than all that there can be is what is available.
func atMost(c money.Currency, most money.Amount) string {
	if most == money.Max {
		return "must be at most " + c.Display(most)
	}
	return "must be at most what is available, " + c.Display(most)
}

// withoutEnd takes away what people put behind a whole amount: "600/-" on a bill, and a full stop.
func withoutEnd(s string) string {
	s = trimSpace(strings.TrimSuffix(s, "/-"))
	return strings.TrimSuffix(s, ".")
}

// inWesternDigits writes a number with other digits in ours, if all of them are of one script.
func inWesternDigits(s string) string {
	const western = '0'
	for _, zero := range []rune{'०', '０'} { // Devanagari, full width
		inScript := func(c rune) bool { return c >= zero && c <= zero+9 }
		if !strings.ContainsFunc(s, inScript) || strings.ContainsAny(s, "0123456789") {
			continue
		}
		return strings.Map(func(c rune) rune {
			if inScript(c) {
				return c - zero + western
			}
			return c
		}, s)
	}
	return s
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
