package payout_test

import (
	"errors"
	"testing"

	"bursar/internal/fault"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// TestRequest_Refused asks for payouts at each side of a limit. What is refused reserves nothing.
func TestRequest_Refused(t *testing.T) {
	s := newStory(t)
	o := s.options(t, s.db.Payouts())
	const limit money.Amount = 80_000
	o.ProveAbove, o.Proofs = limit, struct{ payout.Proofs }{} // which nobody asks
	payouts, err := payout.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if payouts.NeedsProof(limit) || !payouts.NeedsProof(limit+1) {
		t.Errorf("a payout of the limit needs a proof: %t; of more: %t", payouts.NeedsProof(limit), payouts.NeedsProof(limit+1))
	}
	left := money.Amount(opening)
	for name, tt := range map[string]struct {
		request payout.Request
		want    error
	}{
		"the minimum":                    {payout.Request{Amount: o.Minimum}, nil},
		"less than the minimum":          {payout.Request{Amount: o.Minimum - 1}, fault.Field("amount", "")},
		"to the account that was shown":  {payout.Request{Amount: 60_000, Account: "bka_usr_b"}, nil},
		"to another account":             {payout.Request{Amount: 60_000, Account: "bka_usr_a"}, payout.ErrAccountChanged},
		"the limit, by a server":         {payout.Request{Amount: limit, KeyActor: "key:shop"}, nil},
		"above the limit, by a server":   {payout.Request{Amount: limit + 1, KeyActor: "key:shop"}, payout.ErrSellerProof},
		"the limit, by an issuer":        {payout.Request{Amount: limit, IssuerActor: "issuer:shop"}, nil},
		"above the limit, by an issuer":  {payout.Request{Amount: limit + 1, IssuerActor: "issuer:shop"}, payout.ErrSellerProof},
		"above the limit, by the seller": {payout.Request{Amount: limit + 1}, nil},
	} {
		tt.request.Seller = "usr_b"
		p, _, err := payouts.Request(t.Context(), tt.request)
		if !errors.Is(err, tt.want) || (err != nil) != (tt.want != nil) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if err == nil {
			left -= p.Amount
		}
	}
	if b, err := s.db.Balance(t.Context(), "usr_b"); err != nil || b.Available != left {
		t.Errorf("available are %d, %v; want %d", b.Available, err, left)
	}
	s.wantViolated()
}
