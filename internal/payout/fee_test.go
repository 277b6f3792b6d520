package payout_test

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bursar/internal/money"
	"bursar/internal/payout"
)

func fee(t testing.TB, text, code string) payout.Fee {
	t.Helper()
	c, err := money.ParseCurrency(code)
	if err != nil {
		t.Fatal(err)
	}
	f, err := payout.ParseFee(text, c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFee(t *testing.T) {
	tests := []struct {
		fee, currency string
		amount, want  money.Amount
	}{
		{"", "INR", 60000, 0},
		{"none", "INR", 60000, 0},
		{"0", "INR", 60000, 0},
		{"5", "INR", 60000, 500},
		{"0.5%", "INR", 60000, 300},
		{"5+0.5%", "INR", 60000, 800},
		{" 5+0.5% ", "INR", 60000, 800},
		{"5+0.5%+tax18%", "INR", 60000, 944},
		{"5+tax18%", "INR", 60000, 590},
		{"0.05%+tax18%", "INR", 60000, 35},                  // 30, and 5.4 of tax
		{"0.01%", "INR", 4999, 0},                           // 0.4999 paise
		{"0.01%", "INR", 5000, 1},                           // 0.5 paise
		{"0.02%+tax50%", "INR", 5000, 2},                    // 1, and 0.5 of tax
		{"2.50+0.25%", "INR", 100000, 500},                  // both parts have decimals
		{"5+0.5%+tax18%", "INR", 400, 400},                  // never more than the amount
		{"5", "INR", 0, 0},                                  // nothing of nothing
		{"5", "INR", -100, 0},                               // and of what is owed
		{"100%", "INR", 123, 123},                           // all of it
		{"50%+tax100%", "INR", 1000, 1000},                  // all of it, half as tax
		{"5+1%", "JPY", 1050, 16},                           // 5, and 10.5 yen
		{"0.005", "KWD", 1000, 5},                           // three decimals
		{"1+0.5%+tax18%", "INR", money.Max, 53142475603090}, // exact where floating point is not
	}
	for _, tt := range tests {
		if got := fee(t, tt.fee, tt.currency).Of(tt.amount); got != tt.want {
			t.Errorf("fee %q %s of %d = %d, want %d", tt.fee, tt.currency, tt.amount, got, tt.want)
		}
	}
}

func TestFeesThatAreRefused(t *testing.T) {
	tests := []struct{ fee, currency, wantIn string }{
		{"five", "INR", "write a fee as"},
		{"-5", "INR", "zero or more"},
		{"5.005", "INR", "flat part"},
		{"5.5", "JPY", "flat part"},
		{"+0.5%", "INR", "flat part"},
		{"5+", "INR", "the share must be a percentage"},
		{"5+0.5", "INR", "the share must be a percentage"},
		{"0.5%+5", "INR", "flat part"},
		{"0.5%+0.5%", "INR", "flat part"},
		{"1+2+3%", "INR", "the share must be a percentage"},
		{"0.125%", "INR", "at most two decimals"},
		{"0.%", "INR", "at most two decimals"},
		{".5%", "INR", "at most two decimals"},
		{"-1%", "INR", "the share must be a percentage"},
		{"101%", "INR", "from 0% to 100%"},
		{"99999999999999999999%", "INR", "from 0% to 100%"},
		{"tax18%", "INR", "write a fee as"},
		{"+tax18%", "INR", "flat part"},
		{"5+tax18", "INR", "the tax must be a percentage"},
		{"5+tax18%+tax18%", "INR", "the tax must be a percentage"},
		{"90%+tax18%", "INR", "more than the payout itself"},
		{"5 INR", "INR", "flat part"},
	}
	for _, tt := range tests {
		c, err := money.ParseCurrency(tt.currency)
		if err != nil {
			t.Fatal(err)
		}
		f, err := payout.ParseFee(tt.fee, c)
		if err == nil || !strings.Contains(err.Error(), tt.wantIn) {
			t.Errorf("ParseFee(%q, %s) = %+v, %v; want an error with %q", tt.fee, tt.currency, f, err, tt.wantIn)
		}
	}
}

func TestCheckMinimum(t *testing.T) {
	tests := []struct {
		fee, currency string
		minimum       money.Amount
		wantOK        bool
	}{
		{"", "INR", 50000, true},
		{"", "INR", 100, true},
		{"", "INR", 99, false}, // less than a rupee
		{"499", "INR", 50000, true},
		{"499.01", "INR", 50000, false},
		{"499+0.01%", "INR", 50000, false},
		{"400+tax18%", "INR", 50000, true},
		{"430+tax18%", "INR", 50000, false},
		{"99%", "INR", 50000, true},
		{"100%", "INR", 50000, false},
		{"50%", "INR", 204, true},
		{"50%", "INR", 203, false}, // leaves 101 of 203, and a larger payout may leave two less
		{"5", "JPY", 105, true},    // the gateway transfers a hundred at least
		{"5", "JPY", 104, false},
		{"50%+tax50%", "JPY", 4, false},        // leaves a yen of 4, and nothing of 5
		{"50.87%+tax91.67%", "JPY", 38, false}, // leaves two yen of 38, and nothing of 58
	}
	for _, tt := range tests {
		if err := fee(t, tt.fee, tt.currency).CheckMinimum(tt.minimum, 100); (err == nil) != tt.wantOK {
			t.Errorf("fee %q %s with a minimum of %d: err = %v, want ok %v", tt.fee, tt.currency, tt.minimum, err, tt.wantOK)
		}
	}
	if err := (payout.Fee{}).CheckMinimum(50000, 0); err != nil {
		t.Errorf("no fee at all: %v", err)
	}
}

// A fee is exactly what its parts are by the rules of arithmetic, it grows with the amount, and what
// it leaves of a payout that is allowed can be transferred.
func TestFeeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom([]string{"INR", "JPY", "KWD"}).Draw(t, "currency")
		c, err := money.ParseCurrency(code)
		if err != nil {
			t.Fatal(err)
		}
		flat := rapid.Int64Range(0, 1<<20).Draw(t, "flat")
		share := rapid.Int64Range(0, 10_000).Draw(t, "share")
		tax := rapid.Int64Range(0, 10_000).Draw(t, "tax")
		percent := func(bp int64) string { return inr(t).FormatFixed(money.Amount(bp)) + "%" }
		f, err := payout.ParseFee(c.FormatFixed(money.Amount(flat))+"+"+percent(share)+"+tax"+percent(tax), c)
		if err != nil {
			if share*(10_000+tax) <= 100_000_000 {
				t.Fatal(err)
			}
			return
		}
		amount := money.Amount(rapid.Int64Range(1, int64(money.Max)).Draw(t, "amount"))
		if rapid.Bool().Draw(t, "small") {
			amount = amount%1000 + 1
		}
		more := min(amount+money.Amount(rapid.Int64Range(0, 50).Draw(t, "more")), money.Max)

		charge := new(big.Int).Add(big.NewInt(flat), halfUp(int64(amount), share))
		want := new(big.Int).Add(charge, halfUp(charge.Int64(), tax))
		if want.Cmp(big.NewInt(int64(amount))) > 0 {
			want.SetInt64(int64(amount))
		}
		if got := f.Of(amount); int64(got) != want.Int64() {
			t.Fatalf("fee of %d = %d, want %s", amount, got, want)
		}
		if f.Of(more) < f.Of(amount) {
			t.Fatalf("the fee of %d is %d, but of %d it is %d", amount, f.Of(amount), more, f.Of(more))
		}
		one, err := c.Parse("1")
		if err != nil {
			t.Fatal(err)
		}
		if net := more - f.Of(more); f.CheckMinimum(amount, 0) == nil && net < one {
			t.Fatalf("with an allowed minimum of %d, a payout of %d leaves %d", amount, more, net)
		}
	})
}

// halfUp is a share of an amount in whole minor units, computed with numbers of any size.
func halfUp(amount, basisPoints int64) *big.Int {
	product := new(big.Int).Mul(big.NewInt(amount), big.NewInt(basisPoints))
	return product.Add(product, big.NewInt(5_000)).Div(product, big.NewInt(10_000))
}

func inr(t interface{ Fatal(...any) }) money.Currency {
	c, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	return c
}
