package money_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bursar/internal/money"
)

// failer is what currency needs of a test: testing.T and rapid.T both have it.
type failer interface {
	Helper()
	Fatal(args ...any)
}

func currency(t failer, code string) money.Currency {
	t.Helper()
	c, err := money.ParseCurrency(code)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParse(t *testing.T) {
	tests := []struct {
		currency, text string
		want           money.Amount
		wantErr        error
	}{
		{"INR", "600", 60000, nil},
		{"INR", "600.5", 60050, nil},
		{"INR", "600.50", 60050, nil},
		{"INR", "600.5000", 60050, nil},
		{"INR", "600.005", 0, money.ErrPrecision},
		{"INR", "1e3", 100000, nil},
		{"INR", "1E+3", 100000, nil},
		{"INR", "12345e-2", 12345, nil},
		{"INR", "1e-3", 0, money.ErrPrecision},
		{"INR", "1e30", 0, money.ErrRange},
		{"INR", "1e99999999999999999999", 0, money.ErrRange},
		{"INR", "1e-99999999999999999999", 0, money.ErrPrecision},
		{"INR", "0e99999999999999999999", 0, nil},
		{"INR", "-0.00", 0, nil},
		{"INR", "-7.25", -725, nil},
		{"INR", "90071992547409.91", money.Max, nil},
		{"INR", "90071992547409.92", 0, money.ErrRange},
		{"JPY", "500", 500, nil},
		{"JPY", "500.0", 500, nil},
		{"JPY", "500.5", 0, money.ErrPrecision},
		{"KWD", "0.001", 1, nil},
		{"INR", "", 0, money.ErrSyntax},
		{"INR", "-", 0, money.ErrSyntax},
		{"INR", "01", 0, money.ErrSyntax},
		{"INR", ".5", 0, money.ErrSyntax},
		{"INR", "1.234e-9223372036854775808", 0, money.ErrPrecision},
		{"INR", "1e9223372036854775807", 0, money.ErrRange},
		{"INR", "5.", 0, money.ErrSyntax},
		{"INR", "+5", 0, money.ErrSyntax},
		{"INR", "5e", 0, money.ErrSyntax},
		{"INR", "5e+-2", 0, money.ErrSyntax},
		{"INR", "5e5e5", 0, money.ErrSyntax},
		{"INR", "NaN", 0, money.ErrSyntax},
		{"INR", "0x10", 0, money.ErrSyntax},
		{"INR", "1,000", 0, money.ErrSyntax},
	}
	for _, tt := range tests {
		got, err := currency(t, tt.currency).Parse(tt.text)
		if got != tt.want || !errors.Is(err, tt.wantErr) {
			t.Errorf("%s Parse(%q) = %d, %v; want %d, %v", tt.currency, tt.text, got, err, tt.want, tt.wantErr)
		}
	}
}

func TestFormat(t *testing.T) {
	tests := []struct {
		currency  string
		amount    money.Amount
		want      string
		wantFixed string
	}{
		{"INR", 60000, "600", "600.00"},
		{"INR", 60050, "600.5", "600.50"},
		{"INR", 5, "0.05", "0.05"},
		{"INR", -5, "-0.05", "-0.05"},
		{"INR", 0, "0", "0.00"},
		{"INR", -1 << 63, "-92233720368547758.08", "-92233720368547758.08"},
		{"JPY", 600, "600", "600"},
		{"KWD", 1, "0.001", "0.001"},
	}
	for _, tt := range tests {
		c := currency(t, tt.currency)
		if got := c.Format(tt.amount); got != tt.want {
			t.Errorf("Format(%d %s) = %q, want %q", tt.amount, tt.currency, got, tt.want)
		}
		if got := c.FormatFixed(tt.amount); got != tt.wantFixed {
			t.Errorf("FormatFixed(%d %s) = %q, want %q", tt.amount, tt.currency, got, tt.wantFixed)
		}
	}
}

func TestParse_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := currency(t, rapid.SampledFrom([]string{"INR", "JPY", "KWD", "CLF"}).Draw(t, "currency"))
		want := money.Amount(rapid.Int64Range(-int64(money.Max), int64(money.Max)).Draw(t, "amount"))
		for _, text := range []string{c.Format(want), c.FormatFixed(want)} {
			if got, err := c.Parse(text); err != nil || got != want {
				t.Fatalf("Parse(%q) = %d, %v; want %d", text, got, err, want)
			}
		}
	})
}

func TestShareRoundsHalfUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(0, 1<<62).Draw(t, "amount")
		bp := rapid.Int64Range(0, 10_000).Draw(t, "basis points")
		want := new(big.Int).Mul(big.NewInt(amount), big.NewInt(bp))
		want.Add(want, big.NewInt(5_000)).Div(want, big.NewInt(10_000))
		if got := money.Amount(amount).Share(money.BasisPoints(bp)); got != money.Amount(want.Int64()) {
			t.Fatalf("%d basis points of %d = %d, want %d", bp, amount, got, want)
		}
	})
}

func TestParseCurrency(t *testing.T) {
	for code, exponent := range map[string]int{"INR": 2, "JPY": 0, "KWD": 3, "CLF": 4} {
		if got := currency(t, code); got.Code() != code || got.Exponent() != exponent {
			t.Errorf("ParseCurrency(%q) = %v with exponent %d, want exponent %d", code, got, got.Exponent(), exponent)
		}
	}
	for _, code := range []string{"", "inr", "XAU", "XXX", "IN R"} {
		if got, err := money.ParseCurrency(code); err == nil {
			t.Errorf("ParseCurrency(%q) = %v, want an error", code, got)
		}
	}
}

// FuzzParse holds Parse against math/big: it takes exactly the numbers that are whole minor units.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"600.005", "1e3", "1e30", "-0", "0.01", "9007199254740991", "1e-400", "00", "1_0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 60 {
			t.Skip("math/big would make a number of that many digits")
		}
		if i := strings.IndexAny(text, "eE"); i >= 0 && len(text)-i > 5 {
			t.Skip("math/big would raise ten to that power")
		}
		got, err := currency(t, "INR").Parse(text)
		if err != nil {
			return
		}
		want, ok := new(big.Rat).SetString(text)
		if !ok || want.Mul(want, big.NewRat(100, 1)).Cmp(new(big.Rat).SetInt64(int64(got))) != 0 {
			t.Fatalf("Parse(%q) = %d, want %v", text, got, want)
		}
	})
}
