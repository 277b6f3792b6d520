package payout

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"bursar/internal/money"
)

// Fee is what the platform keeps of each payout: a flat amount, a share of the payout, and tax on
// both. The zero value is no fee.
type Fee struct {
	currency money.Currency
	flat     money.Amount
	share    money.BasisPoints
	tax      money.BasisPoints
}

const (
	feeForms = `write a fee as "none", "5", "0.5%", "5+0.5%", or with tax on it "5+0.5%+tax18%"`
	whole    = money.BasisPoints(10_000)
)

// ParseFee reads a fee: "" or "none", a flat amount in major units, a percentage, both joined by "+",
// and after them a tax on the fee. Percentages have at most two decimals.
func ParseFee(s string, c money.Currency) (Fee, error) {
	f := Fee{currency: c}
	text := strings.TrimSpace(s)
	if text == "" || text == "none" {
		return f, nil
	}
	var err error
	charge, tax, taxed := strings.Cut(text, "+tax")
	if taxed {
		if f.tax, err = parsePercent(tax); err != nil {
			return Fee{}, fmt.Errorf("fee %q: the tax %w; %s", s, err, feeForms)
		}
	}
	flat, share := splitCharge(charge)
	if f.flat, err = c.Parse(flat); err != nil || f.flat < 0 {
		return Fee{}, fmt.Errorf("fee %q: the flat part must be an amount in %s of zero or more; %s", s, c, feeForms)
	}
	if f.share, err = parsePercent(share); err != nil {
		return Fee{}, fmt.Errorf("fee %q: the share %w; %s", s, err, feeForms)
	}
	if f.share*(whole+f.tax) > whole*whole {
		return Fee{}, fmt.Errorf("fee %q: the share with its tax is more than the payout itself; lower it", s)
	}
	return f, nil
}

// splitCharge parts "5+0.5%" at the plus. A part that is left out is zero.
func splitCharge(s string) (flat, share string) {
	flat, share, both := strings.Cut(s, "+")
	switch {
	case both:
		return flat, share
	case strings.HasSuffix(s, "%"):
		return "0", s
	default:
		return s, "0%"
	}
}

// parsePercent reads "0.5%", from 0 to 100 with at most two decimals.
func parsePercent(s string) (money.BasisPoints, error) {
	number, ok := strings.CutSuffix(s, "%")
	units, decimals, dotted := strings.Cut(number, ".")
	if !ok || len(decimals) > 2 || (dotted && decimals == "") {
		return 0, errPercent
	}
	hundredths, err := strconv.ParseUint(units+(decimals + "00")[:2], 10, 16)
	if err != nil || units == "" || money.BasisPoints(hundredths) > whole {
		return 0, errPercent
	}
	return money.BasisPoints(hundredths), nil
}

var errPercent = errors.New("must be a percentage from 0% to 100% with at most two decimals")

// Of is the fee on a payout of amount, tax included. The share and the tax are each rounded half up
// to a minor unit, and the whole is never more than the amount.
func (f Fee) Of(amount money.Amount) money.Amount {
	if amount <= 0 {
		return 0
	}
	charge := f.flat + amount.Share(f.share)
	return min(charge+charge.Share(f.tax), amount)
}

// CheckMinimum refuses a fee that could leave less of a payout of minimum or more than can be
// transferred: one major unit, and what the gateway transfers at least.
func (f Fee) CheckMinimum(minimum, gatewaysLeast money.Amount) error {
	least, err := f.currency.Parse("1")
	if err != nil {
		return err
	}
	least = max(least, gatewaysLeast)
	if f.share > 0 {
		least += roundingDip
	}
	if net := minimum - f.Of(minimum); net < least {
		return fmt.Errorf("the fee on the smallest payout of %s %s would leave %s of it, which is less than can be transferred; lower the fee or raise the minimum",
			f.currency.FormatFixed(minimum), f.currency, f.currency.FormatFixed(net))
	}
	return nil
}

// roundingDip is by how many minor units at most a larger payout may leave less than a smaller one.
// Rounding moves a fee by less than one and a half: half a unit of the share, as much of tax on that,
// and half a unit of the tax; so two fees drift apart by less than three.
const roundingDip = 2
