package payout_test

import (
	"errors"
	"slices"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// TestExplain_Account says what each bank account lacks that is not paid to.
func TestExplain_Account(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	for status, want := range map[bank.Status]string{
		"": payout.BlockedNoAccount, bank.StatusUnverified: payout.BlockedUnverified, bank.StatusReview: payout.BlockedInReview, bank.StatusRejected: payout.BlockedRejected,
	} {
		seller := "usr_" + string(status)
		if err := insertUser(t.Context(), s.db, seller, auth.Seller, s.now); err != nil {
			t.Fatal(err)
		}
		if status != "" {
			if err := addAccount(t.Context(), s.db, s.keys, bank.Account{
				ID: bank.ID("bka_" + seller), Seller: seller, Holder: "Asha", IFSC: "HDFC0000053", Last4: "1234", Current: true,
				Status: status, NameScore: -1, CreatedAt: s.now,
			}); err != nil {
				t.Fatal(err)
			}
		}
		explained, err := s.payouts.Explain(t.Context(), seller)
		if err != nil || len(explained.Blockers) == 0 || explained.Blockers[0].Code != want {
			t.Errorf("a seller whose account is %q is blocked by %+v, %v; want %s", status, explained.Blockers, err, want)
			continue
		}
		if status == bank.StatusUnverified && !explained.Blockers[0].Since.Equal(s.now) {
			t.Errorf("it is being verified since %s, want %s", explained.Blockers[0].Since, s.now)
		}
		_, _, refusal := s.payouts.Request(t.Context(), payout.Request{Seller: seller, Amount: 60_000})
		if !errors.Is(refusal, payout.ErrBankUnverified) || !errors.Is(explained.Blockers[0].Refusal, payout.ErrBankUnverified) {
			t.Errorf("a seller whose account is %q is refused with %v, and the explanation says %v", status, refusal, explained.Blockers[0].Refusal)
		}
	}
}

// TestExplain_Stopped says what a seller can do about payouts that an admin has frozen. They can do nothing about a pause for everyone.
func TestExplain_Stopped(t *testing.T) {
	t.Parallel()
	for _, tt := range stopping {
		want := map[string]payout.Blocker{
			"freeze": {Code: payout.BlockedFrozen, Action: "Contact support."},
			"pause":  {Code: payout.BlockedPaused},
		}[tt.name]
		s := newStory(t)
		if err := tt.stop(t.Context(), s.payouts, ada); err != nil {
			t.Fatal(err)
		}
		e, err := s.payouts.Explain(t.Context(), "usr_a")
		if err != nil || len(e.Blockers) != 1 {
			t.Fatalf("%s: payouts are blocked by %+v, %v", tt.name, e.Blockers, err)
		}
		if b := e.Blockers[0]; b.Code != want.Code || b.Action != want.Action || !b.Since.Equal(s.now) || !errors.Is(b.Refusal, payout.ErrOnHold) {
			t.Errorf("%s: payouts are blocked by %+v, want %+v", tt.name, b, want)
		}
	}
}

// TestExplain_Tampered changes the totals by hand. Nothing that the service did not write is shown.
func TestExplain_Tampered(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	if e, err := s.payouts.Explain(t.Context(), "usr_a"); err != nil || len(e.Blockers) > 0 {
		t.Errorf("before, payouts are blocked by %+v, %v", e.Blockers, err)
	}
	s.place.ByHand(t, `UPDATE journals SET available = available + 1, earned = earned + 1 WHERE owner = 'usr_a'`)
	if e, err := s.payouts.Explain(t.Context(), "usr_a"); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("explained as %+v, %v", e, err)
	}
	if sum, err := s.payouts.Summary(t.Context(), "usr_a"); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("summed up as %+v, %v", sum, err)
	}
}

// A seller whose bank account was changed by hand reads why no payout can go to it, and can't ask for one.
func TestExplain_TamperedAccount(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.place.ByHand(t, `UPDATE bank_accounts SET holder = 'Mallory' WHERE id = 'bka_usr_a'`)
	if e, err := s.payouts.Explain(t.Context(), "usr_a"); err != nil || len(e.Blockers) != 1 || !errors.Is(e.Blockers[0].Refusal, ledger.ErrTampered) {
		t.Errorf("payouts are blocked by %+v, %v", e.Blockers, err)
	}
	if _, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 50_000}); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("a request ends with %v, want %v", err, ledger.ErrTampered)
	}
}

// TestExplain_InTransit lists what is under way, and no payout of another seller or one that has ended.
func TestExplain_InTransit(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.request("usr_b", 60_000)
	other := s.request("usr_a", 50_000)
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, other.ID, ""); err != nil {
		t.Fatal(err)
	}
	e, err := s.payouts.Explain(t.Context(), "usr_a")
	if err != nil || len(e.InTransit) != 1 || e.InTransit[0].ID != s.id || e.Balance.InTransit != e.InTransit[0].Amount {
		t.Errorf("in transit are %+v of %d, %v", e.InTransit, e.Balance.InTransit, err)
	}
}

// TestExplain_Balance tells a balance below zero from one that is only too small. A payout of the minimum itself may be asked for.
func TestExplain_Balance(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	available, minimum := money.Amount(opening), s.payouts.Minimum()
	for _, tt := range []struct {
		available money.Amount
		want      []string
	}{
		{minimum, nil},
		{minimum - 1, []string{payout.BlockedBelowLeast}},
		{0, []string{payout.BlockedBelowLeast}},
		{-1, []string{payout.BlockedBelowZero}},
	} {
		adjusted := ledger.Posting{
			Owner: "usr_b", At: s.now, Type: ledger.BalanceAdjusted, Subject: "adjustment:one", Actor: "user:usr_admin", Data: "{}", Moved: ledger.AdjustBalance(tt.available - available),
		}
		if err := s.db.Payouts().InTx(t.Context(), func(tx payout.Tx) error {
			_, err := tx.Append(t.Context(), adjusted)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		available = tt.available
		explained, err := s.payouts.Explain(t.Context(), "usr_b")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range explained.Blockers {
			got = append(got, b.Code)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("with %d available, what blocks payouts is %v, want %v", tt.available, got, tt.want)
		}
	}
}
