package bank_test

import (
	"errors"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/seal"
)

// TestWhatNobodyRegisteredIsNotPaid changes by hand what decides whether and where an account is paid.
func TestWhatNobodyRegisteredIsNotPaid(t *testing.T) {
	for name, tt := range map[string]struct {
		score  int
		change string
	}{
		"another seller":      {100, `seller_id = 'usr_ravi'`},
		"another holder":      {100, `holder = 'Ravi Kumar'`},
		"another branch":      {100, `ifsc = 'ICIC0000021'`},
		"other digits shown":  {100, `last4 = '0000'`},
		"another beneficiary": {100, `beneficiary = 'fa_ravi'`},
		"no beneficiary":      {100, `beneficiary = ''`},
		"no seal":             {100, `seal = ''`},
		"accepted by hand":    {0, `status = 'verified'`},
		"taken out of review": {60, `status = 'verified'`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, answer{verification: bank.Verification{ID: "fav_1", Outcome: bank.OutcomeValid, RegisteredName: "A", NameScore: tt.score}})
			a := h.register(h.ashas())
			h.mustStep()
			h.wantSealed(a.ID, true)
			h.place.ByHand(t, `UPDATE bank_accounts SET `+tt.change)
			h.wantSealed(a.ID, false)
			if to, err := h.service.Beneficiary(t.Context(), a.ID); !errors.Is(err, seal.ErrBroken) {
				t.Errorf("it is paid to %q, %v", to, err)
			}
			h.place.ByHand(t, `UPDATE bank_accounts SET status = 'review'`)
			if to, err := h.service.Beneficiary(t.Context(), a.ID); err == nil {
				t.Errorf("it is paid to %q once it is not accepted any more", to)
			}
			if _, err := h.service.Resolve(t.Context(), ada, a.ID, true, ""); name != "taken out of review" && !errors.Is(err, bank.ErrAltered) {
				t.Errorf("it is accepted: %v", err)
			}
		})
	}
}

// TestWhatIsSaidOfAnAccountIsSealed changes by hand what decides about nothing, or only keeps an account from being paid.
func TestWhatIsSaidOfAnAccountIsSealed(t *testing.T) {
	for _, change := range []string{
		`status = 'rejected'`, `reason = 'No such account.'`, `registered_name = 'RAVI KUMAR'`, `name_score = name_score - 1`, `verification_id = 'fav_2'`,
		`created_at = created_at + 1`, `verified_at = verified_at + 1`,
	} {
		h := newHouse(t, answer{verification: bank.Verification{ID: "fav_1", Outcome: bank.OutcomeValid, RegisteredName: "A", NameScore: 100}})
		a := h.register(h.ashas())
		h.mustStep()
		h.wantSealed(a.ID, true)
		h.place.ByHand(t, `UPDATE bank_accounts SET `+change)
		h.wantSealed(a.ID, false)
	}
}

// TestAVerificationSealsNothingThatWasChangedByHand though it failed.
func TestAVerificationSealsNothingThatWasChangedByHand(t *testing.T) {
	h := newHouse(t, answer{verification: bank.Verification{ID: "fav_1", Outcome: bank.OutcomeValid, NameScore: 100}})
	a := h.register(h.ashas())
	h.place.ByHand(t, `UPDATE bank_accounts SET holder = 'Ravi Kumar'`)
	if err := h.service.Step(t.Context(), a.ID); !errors.Is(err, seal.ErrBroken) {
		t.Errorf("it is verified with %v", err)
	}
	h.wantSealed(a.ID, false)
}

// TestANumberEndsAsItIsShown though no seal of the row's would tell, where it is older than seals.
func TestANumberEndsAsItIsShown(t *testing.T) {
	h := newHouse(t)
	a := h.register(h.ashas())
	h.unseal()
	h.wantSealed(a.ID, true)
	h.place.ByHand(t, `UPDATE bank_accounts SET last4 = '0000'`)
	h.wantSealed(a.ID, false)
}

// wantSealed checks whether the audit has it that the account is what was registered and decided.
func (h *house) wantSealed(id bank.ID, want bool) {
	h.t.Helper()
	findings, err := h.db.AuditSeals(h.t.Context(), h.seals)
	if err != nil {
		h.t.Fatal(err)
	}
	broken := 0
	for _, f := range findings {
		broken += len(f.Violations)
	}
	if whole := broken == 0; whole != want {
		h.t.Errorf("the audit finds %d violations of bank account %s, want it whole: %t", broken, id, want)
	}
}

// TestAnAccountChangedByHandIsRegisteredAnew does not take the seller's word for somebody else's.
func TestAnAccountChangedByHandIsRegisteredAnew(t *testing.T) {
	h := newHouse(t, answer{verification: bank.Verification{ID: "fav_1", Outcome: bank.OutcomeValid, NameScore: 100}})
	a := h.register(h.ashas())
	h.mustStep()
	h.place.ByHand(t, `UPDATE bank_accounts SET beneficiary = 'fa_ravi'`)
	again := h.register(h.ashas())
	if again.ID == a.ID {
		t.Fatal("the account is still the one that was changed")
	}
	h.mustStep()
	if to, err := h.service.Beneficiary(t.Context(), again.ID); err != nil || to != "fa_"+string(again.ID) {
		t.Errorf("it is paid to %q, %v", to, err)
	}
}

// TestTwoWhoNameAnAccountAtOnce keep the first one's name; and a decision that came between is not lost.
func TestTwoWhoNameAnAccountAtOnce(t *testing.T) {
	h := newHouse(t, answer{verification: bank.Verification{Outcome: bank.OutcomeReview, NameScore: -1}})
	a := h.register(h.ashas())
	h.gateway.told = func() {
		h.gateway.told = nil
		if err := h.service.Step(t.Context(), a.ID); err != nil {
			t.Error(err)
		}
		if _, err := h.service.Resolve(t.Context(), ada, a.ID, true, ""); err != nil {
			t.Error(err)
		}
	}
	if err := h.service.Step(t.Context(), a.ID); err != nil {
		t.Error(err)
	}
	to, err := h.service.Beneficiary(t.Context(), a.ID)
	if got := h.account(); err != nil || to != "fa_"+string(a.ID) || got.Status != bank.StatusVerified || got.Beneficiary != to {
		t.Errorf("it is called %q, %v; the account is %+v", to, err, got)
	}
	h.wantSealed(a.ID, true)
}

// TestADecisionWhileTheGatewayIsToldIsKept, and no order goes to an account without a name.
func TestADecisionWhileTheGatewayIsToldIsKept(t *testing.T) {
	h := newHouse(t, pending())
	a := h.register(h.ashas())
	h.gateway.told = func() {
		h.gateway.told = nil
		if _, err := h.service.Resolve(t.Context(), ada, a.ID, true, ""); err != nil {
			t.Error(err)
		}
	}
	if err := h.service.Step(t.Context(), a.ID); err == nil || len(h.gateway.started) > 0 {
		t.Errorf("the account is verified as %q, %v", h.gateway.started, err)
	}
	if to, err := h.service.Beneficiary(t.Context(), a.ID); err != nil || to != "fa_"+string(a.ID) || h.account().Status != bank.StatusVerified {
		t.Errorf("it is called %q, %v; the account is %+v", to, err, h.account())
	}
	h.wantSealed(a.ID, true)
}

// TestWhatATakeOverRejectedIsNotAcceptedByHand has somebody put back what a take-over changed.
func TestWhatATakeOverRejectedIsNotAcceptedByHand(t *testing.T) {
	h := newHouse(t, answer{verification: bank.Verification{ID: "fav_1", Outcome: bank.OutcomeValid, NameScore: 100}})
	a := h.register(h.ashas())
	h.mustStep()
	err := h.db.Auth().InTx(t.Context(), func(tx auth.Tx) error { return tx.RejectBankAccount(t.Context(), a.Seller, "It was taken over.") })
	if err != nil {
		t.Fatal(err)
	}
	h.wantSealed(a.ID, true)
	if _, err := h.service.Beneficiary(t.Context(), a.ID); !errors.Is(err, bank.ErrNotAccepted) {
		t.Errorf("it is paid: %v", err)
	}
	if _, err := h.service.Resolve(t.Context(), ada, a.ID, true, ""); !errors.Is(err, bank.ErrDecided) {
		t.Errorf("it is accepted: %v", err)
	}
	h.place.ByHand(t, `UPDATE bank_accounts SET status = 'verified', is_current = 1`)
	h.wantSealed(a.ID, false)
	if _, err := h.service.Beneficiary(t.Context(), a.ID); !errors.Is(err, seal.ErrBroken) {
		t.Errorf("it is paid: %v", err)
	}
	if _, err := bank.Vouch(t.Context(), h.store, h.seals, a.ID); err != nil {
		t.Fatal(err)
	}
	h.wantSealed(a.ID, true)
	if to, err := h.service.Beneficiary(t.Context(), a.ID); err != nil || to == "" {
		t.Errorf("somebody vouched for it, and it is paid to %q, %v", to, err)
	}
}
