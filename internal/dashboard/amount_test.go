package dashboard_test

import (
	"math"
	"strings"
	"testing"
	"unicode"

	"bursar/internal/dashboard"
	"bursar/internal/money"
)

func TestReadAmount(t *testing.T) {
	yen, err := money.ParseCurrency("JPY")
	must(t, err)
	dinar, err := money.ParseCurrency("KWD")
	must(t, err)
	for _, c := range []struct {
		currency money.Currency
		typed    string
		want     money.Amount // 0 is refused
	}{
		{rupees(t), "600", 600_00},
		{rupees(t), " 600 ", 600_00},
		{rupees(t), "600.5", 600_50},
		{rupees(t), "0.01", 1},
		{rupees(t), "1,23,456.50", 1_23_456_50},
		{rupees(t), "123,456.50", 1_23_456_50},
		{rupees(t), "12,34,56,789", 12_34_56_789_00},
		{rupees(t), "1,234", 1_234_00},
		{rupees(t), "1 23 456", 1_23_456_00},
		{rupees(t), "1\u00a0234", 1_234_00},
		{rupees(t), "₹ 600", 600_00},
		{rupees(t), "₹1,23,456.50", 1_23_456_50},
		{rupees(t), "Rs. 600", 600_00},
		{rupees(t), "rs600", 600_00},
		{rupees(t), "INR 600", 600_00},
		{rupees(t), "600 inr", 600_00},
		{rupees(t), "600/-", 600_00},
		{rupees(t), "Rs. 1,23,456/-", 1_23_456_00},
		{rupees(t), "₹600.50 /-", 600_50},
		{rupees(t), "600./-", 600_00},
		{rupees(t), "600.", 600_00},
		{rupees(t), "1,234.", 1_234_00},
		{rupees(t), "६००", 600_00},
		{rupees(t), "₹ १,२३,४५६.५०", 1_23_456_50},
		{rupees(t), "６００", 600_00},
		{yen, "600.", 600},
		{yen, "1,234", 1234},
		{yen, "¥600", 600},
		{dinar, "1.234", 1234},
		{dinar, "KWD 1,000.5", 1_000_500},

		{rupees(t), "", 0},
		{rupees(t), "   ", 0},
		{rupees(t), "₹", 0},
		{rupees(t), "0", 0},
		{rupees(t), "0.00", 0},
		{rupees(t), "-600", 0},
		{rupees(t), "+600", 0},
		{rupees(t), "600.005", 0},
		{rupees(t), "1,5", 0},
		{rupees(t), "1,50", 0},
		{rupees(t), "1.234,50", 0},
		{rupees(t), "1.234.567", 0},
		{rupees(t), ".50", 0},
		{rupees(t), "1,,234", 0},
		{rupees(t), ",234", 0},
		{rupees(t), "1,234,", 0},
		{rupees(t), "1,2345", 0},
		{rupees(t), "12,34,567,890", 0},
		{rupees(t), "1234,567", 0},
		{rupees(t), "1,234 567", 0},
		{rupees(t), "0,600", 0},
		{rupees(t), "0600", 0},
		{rupees(t), "1e3", 0},
		{rupees(t), "0x600", 0},
		{rupees(t), "600 600", 600_600_00},
		{rupees(t), "$600", 0},
		{rupees(t), "₹₹600", 0},
		{rupees(t), "600₹", 0},
		{rupees(t), "6 hundred", 0},
		{rupees(t), ".", 0},
		{rupees(t), "/-", 0},
		{rupees(t), "600..", 0},
		{rupees(t), "600/-/-", 0},
		{rupees(t), "600/", 0},
		{rupees(t), "600-", 0},
		{rupees(t), "-600/-", 0},
		{rupees(t), "1.234.", 0},
		{rupees(t), "1,5.", 0},
		{rupees(t), "६00", 0},
		{rupees(t), "६０００.०0", 0},
		{rupees(t), "६０", 0},
		{rupees(t), "٦٠٠", 0},
		{rupees(t), "১০০", 0},
		{rupees(t), "99999999999999999999", 0},
		{rupees(t), "1,000.5,0", 0},
		{yen, "600.5", 0},
		{dinar, "1.2345", 0},
	} {
		got, problem := dashboard.ReadAmount(c.currency, c.typed)
		if got != c.want || (problem == "") != (c.want != 0) {
			t.Errorf("%q in %s: %d %q, want %d", c.typed, c.currency, got, problem, c.want)
		}
	}
}

// FuzzReadAmount holds that whatever is read is what was typed: its digits, and nothing else.
func FuzzReadAmount(f *testing.F) {
	for _, typed := range []string{"600", "₹ 1,23,456.50", "1,5", "1e3", "Rs. 12 345", "INR", "0.1", "600 inr", "\u00a0", "600/-", "600.", "६००.५", "６００"} {
		f.Add(typed)
	}
	c := rupees(f)
	digitsOf := func(s string) string {
		return strings.Map(func(r rune) rune {
			for _, zero := range "0०０" {
				if r >= zero && r <= zero+9 {
					return r - zero + '0'
				}
			}
			return -1
		}, s)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		amount, problem := dashboard.ReadAmount(c, typed)
		if problem != "" {
			if amount != 0 {
				t.Fatalf("%q is refused and read as %d", typed, amount)
			}
			return
		}
		if amount <= 0 || amount > money.Max || amount > math.MaxInt64/2 {
			t.Fatalf("%q is read as %d", typed, amount)
		}
		whole, fraction, _ := strings.Cut(digitsWithPoint(typed), ".")
		if want := strings.TrimLeft(digitsOf(whole)+(digitsOf(fraction) + "00")[:2], "0"); want != strings.TrimLeft(digitsOf(c.FormatFixed(amount)), "0") {
			t.Fatalf("%q is read as %s", typed, c.FormatFixed(amount))
		}
		if again, problem := dashboard.ReadAmount(c, c.Display(amount)); again != amount || problem != "" {
			t.Fatalf("%s is read back as %d %q", c.Display(amount), again, problem)
		}
	})
}

// digitsWithPoint drops the abbreviation whose point is none of the number.
func digitsWithPoint(s string) string {
	if i := strings.IndexFunc(s, unicode.IsDigit); i >= 0 {
		return s[i:]
	}
	return s
}
