package payout_test

import (
	"errors"
	"slices"
	"testing"
	"time"

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

// TestRequest_BankInAnotherZone repeats a request under its key. The answer is exactly the first one, though it is read from the store.
func TestRequest_BankInAnotherZone(t *testing.T) {
	s := newStory(t)
	o := s.options(t, s.db.Payouts())
	o.Arrival = payout.NewArrival(o.Currency, time.UTC, payout.Holidays{})
	payouts, err := payout.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := payout.Request{Seller: "usr_b", Amount: 60_000, Key: "k"}
	first, _, err := payouts.Request(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	again, replayed, err := payouts.Request(t.Context(), r)
	first.Beneficiary = again.Beneficiary // who asks needs no such thing
	if again != first || !replayed || err != nil {
		t.Errorf("the repeat is answered with\n%+v, %t, %v; the request was with\n%+v", again, replayed, err, first)
	}
}

// TestRequest_RepeatedUnderAHigherMinimum gets the first answer, and a new key does not.
func TestRequest_RepeatedUnderAHigherMinimum(t *testing.T) {
	s := newStory(t)
	o := s.options(t, s.db.Payouts())
	r := payout.Request{Seller: "usr_b", Amount: o.Minimum, Key: "k"}
	first, _, err := s.payouts.Request(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	o.Minimum++
	payouts, err := payout.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if again, replayed, err := payouts.Request(t.Context(), r); again.ID != first.ID || !replayed || err != nil {
		t.Errorf("the repeat is answered with payout %q, replayed %t, %v; want %s", again.ID, replayed, err, first.ID)
	}
	r.Key = "another"
	if _, _, err := payouts.Request(t.Context(), r); !errors.Is(err, fault.Field("amount", "")) {
		t.Errorf("another key below the minimum: %v", err)
	}
}

// TestHistory_OfTheCaller lists a seller's own payouts, whosever they ask for.
func TestHistory_OfTheCaller(t *testing.T) {
	s := newStory(t)
	other := s.request("usr_b", 60_000)
	for name, tt := range map[string]struct {
		caller payout.Caller
		filter payout.Filter
		want   []payout.ID
	}{
		"a seller":                    {payout.Caller{User: "usr_a"}, payout.Filter{}, []payout.ID{s.id}},
		"a seller, of another":        {payout.Caller{User: "usr_a"}, payout.Filter{Seller: "usr_b"}, []payout.ID{s.id}},
		"an admin":                    {payout.Caller{User: ada.Admin, Admin: true}, payout.Filter{}, []payout.ID{other.ID, s.id}},
		"an admin, of one of them":    {payout.Caller{User: ada.Admin, Admin: true}, payout.Filter{Seller: "usr_b"}, []payout.ID{other.ID}},
		"a seller who asked for none": {payout.Caller{User: "usr_c"}, payout.Filter{}, nil},
	} {
		tt.filter.Limit = 10
		list, total, err := s.payouts.History(t.Context(), tt.caller, tt.filter)
		var got []payout.ID
		for _, p := range list {
			got = append(got, p.ID)
		}
		slices.Sort(got) // of one moment, they are in any order
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) || total != int64(len(tt.want)) || err != nil {
			t.Errorf("%s: %v, %d in all, %v; want %v", name, got, total, err, tt.want)
		}
	}
}

// TestSweep_ForgetsAfterTheirTime keeps idempotency keys for seven days, as the API promises, and notifications for fifteen.
func TestSweep_ForgetsAfterTheirTime(t *testing.T) {
	s := newStory(t)
	begun := s.now
	r := payout.Request{Seller: "usr_b", Amount: 60_000, Key: "k"}
	if _, _, err := s.payouts.Request(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	s.notification("evt_1")
	const day = 24 * time.Hour
	for _, tt := range []struct {
		after time.Duration
		want  int64 // forgotten
	}{
		{7*day - time.Second, 0}, {7*day + time.Second, 1}, {15*day - time.Second, 0}, {15*day + time.Second, 1},
	} {
		s.now = begun.Add(tt.after)
		if n, err := s.payouts.Sweep(t.Context()); n != tt.want || err != nil {
			t.Errorf("after %s %d are forgotten, %v; want %d", tt.after, n, err, tt.want)
		}
		if known, err := s.payouts.Answered(t.Context(), "usr_b", "k"); known != (tt.after < 7*day) || err != nil {
			t.Errorf("after %s the key is known: %t, %v", tt.after, known, err)
		}
	}
}

// TestRequest_KeysOfServers keeps the keys of a server apart from the seller's own. Without a key, each request is a payout.
func TestRequest_KeysOfServers(t *testing.T) {
	s := newStory(t)
	ids := map[payout.ID]bool{}
	for _, r := range []payout.Request{
		{KeyActor: "key:shop"}, {KeyActor: "key:shop"}, {KeyActor: "key:shop", Key: "k"}, {KeyActor: "key:other", Key: "k"}, {Key: "k"}, {}, {},
	} {
		r.Seller, r.Amount = "usr_b", 60_000
		p, replayed, err := s.payouts.Request(t.Context(), r)
		if err != nil || replayed || ids[p.ID] {
			t.Errorf("%q asks under the key %q: %s, replayed %t, %v", r.KeyActor, r.Key, p.ID, replayed, err)
		}
		ids[p.ID] = true
	}
	if p, replayed, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_b", Amount: 60_000, KeyActor: "key:shop", Key: "k"}); err != nil || !replayed || !ids[p.ID] {
		t.Errorf("the repeat is %s, replayed %t, %v", p.ID, replayed, err)
	}
}
