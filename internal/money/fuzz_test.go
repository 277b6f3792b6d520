package money_test

import (
	"errors"
	"testing"

	"bursar/internal/money"
)

// FuzzFormat writes any amount of any currency and reads it back.
func FuzzFormat(f *testing.F) {
	f.Fuzz(func(t *testing.T, minor int64, code string) {
		c, err := money.ParseCurrency(code)
		if err != nil {
			return
		}
		amount := money.Amount(minor)
		for _, text := range []string{c.Format(amount), c.FormatFixed(amount)} {
			again, err := c.Parse(text)
			if tooLarge := amount > money.Max || amount < -money.Max; tooLarge && errors.Is(err, money.ErrRange) {
				continue
			}
			if err != nil || again != amount {
				t.Errorf("%d of %s is written %s and read as %d: %v", minor, c, text, again, err)
			}
		}
	})
}
