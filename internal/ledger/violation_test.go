package ledger_test

import (
	"testing"

	"bursar/internal/ledger"
)

func TestViolation_String(t *testing.T) {
	for want, v := range map[string]ledger.Violation{
		"It is gone.":                           {Problem: "It is gone"},
		"seller usr_1: It is gone. Repair it.":  {Seller: "usr_1", Problem: "It is gone", Next: "Repair it"},
		"payout pyt_1: It is gone.":             {Subject: "pyt_1", Problem: "It is gone"},
		"seller usr_1, sale order-9: Gone. Go.": {Seller: "usr_1", Subject: "sale:order-9", Problem: "Gone", Next: "Go"},
	} {
		if got := v.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
