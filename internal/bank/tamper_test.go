package bank_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
)

// In these tests somebody changes the database by hand, who has no keys.

// accepted answers that the account is there, under a name that is so much alike.
func accepted(score int) answer {
	return answer{verification: gateway.Verification{ID: "fav_1", Outcome: gateway.OutcomeValid, RegisteredName: "A", NameScore: score}}
}

// wantIntact checks whether the audit has it that the account is what was registered and decided, and the journals whole.
func (h *fixture) wantIntact(id bank.ID, want bool) {
	h.t.Helper()
	report, err := h.db.Audit(h.t.Context(), h.keys)
	if err != nil {
		h.t.Fatal(err)
	}
	var violations []string
	for _, f := range report.Findings {
		violations = append(violations, f.Lines()...)
	}
	if intact := len(violations) == 0; intact != want {
		h.t.Errorf("the audit finds %q, want bank account %s intact: %t", violations, id, want)
	}
}

// wantPaid checks whether the account is paid, or refused as tampered with.
func (h *fixture) wantPaid(id bank.ID, want bool) {
	h.t.Helper()
	to, err := h.service.Beneficiary(h.t.Context(), "usr_asha", id, "double", h.asked("usr_asha"))
	if want && (err != nil || to != "fa_"+string(id)) || !want && !errors.Is(err, ledger.ErrTampered) {
		h.t.Errorf("it is paid to %q, %v; want it paid: %t", to, err, want)
	}
}

// TestLentAccount_IsNotPaid asks for another seller's account, as a payout does that was asked for while the account was
// made its seller's by hand.
func TestLentAccount_IsNotPaid(t *testing.T) {
	h := newFixture(t, accepted(100))
	a := h.register(h.ashas())
	h.mustStep()
	h.wantPaid(a.ID, true)
	if to, err := h.service.Beneficiary(t.Context(), "usr_ravi", a.ID, "double", h.asked("usr_ravi")); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("it is paid to %q, %v", to, err)
	}
}

// TestRejectedAccount_PutBack hides the rejection of an account, and makes the row what it was before.
func TestRejectedAccount_PutBack(t *testing.T) {
	for name, hide := range map[string]func(*fixture){
		"the rejection is about another account": func(h *fixture) {
			h.place.ByHand(h.t, `UPDATE entries SET subject = 'bka_other' WHERE type = 'bank_account.rejected'`)
		},
		"the index lacks the rejection": func(h *fixture) { h.place.HideFromIndex(h.t, `type = 'bank_account.rejected'`) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, accepted(100))
			a := h.register(h.ashas())
			h.mustStep()
			h.wantPaid(a.ID, true)
			h.place.ByHand(t, `CREATE TABLE kept AS SELECT * FROM bank_accounts`)
			err := h.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
				return tx.RejectBankAccounts(t.Context(), a.Seller, "It was taken over.", h.now)
			})
			if err != nil {
				t.Fatal(err)
			}
			hide(h)
			h.place.ByHand(t, `DELETE FROM bank_accounts`)
			h.place.ByHand(t, `INSERT INTO bank_accounts SELECT * FROM kept`)
			h.wantPaid(a.ID, false)
		})
	}
}

// TestTamperedAccount_IsNotPaid changes what decides whether and where an account is paid.
func TestTamperedAccount_IsNotPaid(t *testing.T) {
	for name, tt := range map[string]struct {
		score  int
		change string
	}{
		"another seller":      {100, `UPDATE bank_accounts SET seller_id = 'usr_ravi'`},
		"another holder":      {100, `UPDATE bank_accounts SET holder = 'Ravi Kumar'`},
		"another branch":      {100, `UPDATE bank_accounts SET ifsc = 'ICIC0000021'`},
		"other digits shown":  {100, `UPDATE bank_accounts SET last4 = '0000'`},
		"another beneficiary": {100, `UPDATE bank_accounts SET beneficiary = 'fa_ravi'`},
		"no beneficiary":      {100, `UPDATE bank_accounts SET beneficiary = ''`},
		"accepted by hand":    {0, `UPDATE bank_accounts SET status = 'verified'`},
		"taken out of review": {60, `UPDATE bank_accounts SET status = 'verified'`},
		"accepted by an entry": {0, `UPDATE bank_accounts SET status = 'verified', reason = '', verified_at = 1;
			UPDATE entries SET type = 'bank_account.verified', data = '{"status":"verified","verifiedAt":1}' WHERE type = 'bank_account.rejected'`},
		"accepted by one more entry": {0, `UPDATE bank_accounts SET status = 'verified';
			INSERT INTO entries SELECT owner, number + 1, at, 'bank_account.verified', subject, actor, '{"status":"verified"}', 0, 0, 0, 0, 0, 0, after, hash, mac
				FROM entries WHERE type = 'bank_account.rejected'`},
		"its entries gone": {100, `DELETE FROM entries`},
		"an entry between": {100, `DELETE FROM entries WHERE type = 'bank_account.updated'`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, accepted(tt.score))
			a := h.register(h.ashas())
			h.mustStep()
			h.wantIntact(a.ID, true)
			h.place.ByHand(t, tt.change)
			h.wantIntact(a.ID, false)
			h.wantPaid(a.ID, false)
			if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true}); !errors.Is(err, bank.ErrAccountTampered) {
				t.Errorf("it is accepted: %v", err)
			}
			h.place.ByHand(t, `UPDATE bank_accounts SET status = 'review', is_current = 1`)
			if to, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "double", h.asked(a.Seller)); err == nil {
				t.Errorf("it is paid to %q once it is not accepted any more", to)
			}
		})
	}
}

// TestTamperedAccount_RejectionDropped deletes the entry of a rejection and puts the row back. The service wrote all
// entries that are left, and the audit finds the gap between them and the balance.
func TestTamperedAccount_RejectionDropped(t *testing.T) {
	h := newFixture(t, accepted(100))
	a := h.register(h.ashas())
	h.mustStep()
	err := h.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
		return tx.RejectBankAccounts(t.Context(), a.Seller, "It was taken over.", h.now)
	})
	if err != nil {
		t.Fatal(err)
	}
	h.place.ByHand(t, `DELETE FROM entries WHERE type = 'bank_account.rejected'`)
	h.place.ByHand(t, `UPDATE bank_accounts SET status = 'verified', is_current = 1`)
	h.wantIntact(a.ID, false)
}

// TestTamperedAccount_IsFound changes what decides about nothing, or only keeps an account from being paid.
func TestTamperedAccount_IsFound(t *testing.T) {
	for _, change := range []string{
		`status = 'rejected'`, `reason = 'No such account.'`, `registered_name = 'RAVI KUMAR'`, `name_score = name_score - 1`, `verification_id = 'fav_2'`,
		`created_at = created_at + 1`, `verified_at = verified_at + 1`, `is_current = 0`, `encrypted_number = ''`,
	} {
		t.Run(change, func(t *testing.T) {
			h := newFixture(t, accepted(100))
			a := h.register(h.ashas())
			h.mustStep()
			h.wantIntact(a.ID, true)
			h.place.ByHand(t, `UPDATE bank_accounts SET `+change)
			h.wantIntact(a.ID, false)
		})
	}
}

// TestTamperedAccount_IsNotVerified though its verification is due, until it is put right.
func TestTamperedAccount_IsNotVerified(t *testing.T) {
	for change, back := range map[string]string{
		`holder = 'Ravi Kumar'`:     `holder = 'Asha Desai'`,
		`verification_id = 'fav_2'`: `verification_id = 'fav_1'`,
	} {
		t.Run(change, func(t *testing.T) {
			h := newFixture(t, pending(), accepted(100))
			a := h.register(h.ashas())
			h.mustStep()
			h.place.ByHand(t, `UPDATE bank_accounts SET `+change)
			if err := h.service.Step(t.Context(), a.ID); !errors.Is(err, ledger.ErrTampered) || len(h.gateway.asked) > 0 {
				t.Errorf("the gateway was asked about %+v, %v", h.gateway.asked, err)
			}
			h.wantIntact(a.ID, false)
			h.place.ByHand(t, `UPDATE bank_accounts SET `+back)
			if err := h.service.Step(t.Context(), a.ID); err != nil {
				t.Errorf("once it was put right: %v", err)
			}
			h.wantPaid(a.ID, true)
			h.wantIntact(a.ID, true)
		})
	}
}

// TestTamperedAccount_RegisteredAgain becomes another account: who registers it does not vouch for what somebody changed.
func TestTamperedAccount_RegisteredAgain(t *testing.T) {
	h := newFixture(t, accepted(100))
	a := h.register(h.ashas())
	h.mustStep()
	h.place.ByHand(t, `UPDATE bank_accounts SET beneficiary = 'fa_ravi'`)
	again := h.register(h.ashas())
	if again.ID == a.ID {
		t.Fatal("the account is still the one that was changed")
	}
	h.mustStep()
	h.wantPaid(again.ID, true)
	h.wantPaid(a.ID, false)
}

// TestTamperedAccount_GivenToAnotherSeller leaves the other seller's journal alone, which has nothing to say of it.
func TestTamperedAccount_GivenToAnotherSeller(t *testing.T) {
	h := newFixture(t, accepted(100))
	a := h.register(h.ashas())
	h.mustStep()
	h.place.ByHand(t, `UPDATE bank_accounts SET seller_id = 'usr_ravi'`)
	ravis := h.ashas()
	ravis.Seller, ravis.Holder = "usr_ravi", "Ravi Kumar"
	h.register(ravis)
	entries, err := h.db.EntriesAbout(t.Context(), "usr_ravi", string(a.ID))
	if err != nil || len(entries) > 0 {
		t.Errorf("usr_ravi's journal tells of another's account: %+v, %v", entries, err)
	}
	h.wantPaid(a.ID, false)
}

// TestBeneficiary_NamedTwiceAtOnce keeps the first one's name; and a decision that came between is not lost.
func TestBeneficiary_NamedTwiceAtOnce(t *testing.T) {
	h := newFixture(t, answer{verification: gateway.Verification{Outcome: gateway.OutcomeReview, NameScore: -1}})
	a := h.register(h.ashas())
	h.gateway.told = func() {
		h.gateway.told = nil
		if err := h.service.Step(t.Context(), a.ID); err != nil {
			t.Error(err)
		}
		if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true}); err != nil {
			t.Error(err)
		}
	}
	if err := h.service.Step(t.Context(), a.ID); err != nil {
		t.Error(err)
	}
	h.wantPaid(a.ID, true)
	if got := h.account(); got.Status != bank.StatusVerified || got.Beneficiary != "fa_"+string(a.ID) {
		t.Errorf("the account is %+v", got)
	}
	h.wantIntact(a.ID, true)
}

// TestResolve_WhileTheGatewayIsTold is kept, and no order goes to an account without a name.
func TestResolve_WhileTheGatewayIsTold(t *testing.T) {
	h := newFixture(t, pending())
	a := h.register(h.ashas())
	h.gateway.told = func() {
		h.gateway.told = nil
		if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true}); err != nil {
			t.Error(err)
		}
	}
	if err := h.service.Step(t.Context(), a.ID); err == nil || len(h.gateway.started) > 0 {
		t.Errorf("the account is verified as %q, %v", h.gateway.started, err)
	}
	h.wantPaid(a.ID, true)
	if got := h.account(); got.Status != bank.StatusVerified {
		t.Errorf("the account is %+v", got)
	}
	h.wantIntact(a.ID, true)
}

// TestTakeOver_AccountAcceptedByHand has somebody put back what a take-over changed, until it is repaired.
func TestTakeOver_AccountAcceptedByHand(t *testing.T) {
	h := newFixture(t, accepted(100))
	a := h.register(h.ashas())
	h.mustStep()
	err := h.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
		return tx.RejectBankAccounts(t.Context(), a.Seller, "It was taken over.", h.now)
	})
	if err != nil {
		t.Fatal(err)
	}
	rejected := func() {
		t.Helper()
		h.wantIntact(a.ID, true)
		if _, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "double", h.asked(a.Seller)); !errors.Is(err, bank.ErrNotAccepted) {
			t.Errorf("it is paid: %v", err)
		}
		if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true}); !errors.Is(err, bank.ErrDecided) {
			t.Errorf("it is accepted: %v", err)
		}
	}
	rejected()
	h.place.ByHand(t, `UPDATE bank_accounts SET status = 'verified', is_current = 1`)
	h.wantIntact(a.ID, false)
	h.wantPaid(a.ID, false)
	h.place.ByHand(t, `UPDATE bank_accounts SET status = 'rejected', is_current = 0`)
	rejected()
}

// TestJournal_TellsOfAnAccount lists what the journal says of an account from its registration to its end, and no number.
func TestJournal_TellsOfAnAccount(t *testing.T) {
	h := newFixture(t, pending(), accepted(60))
	a := h.register(h.ashas())
	h.mustStep()
	h.mustStep()
	if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true}); err != nil {
		t.Fatal(err)
	}
	other := h.ashas()
	other.IFSC = "ICIC0000021"
	h.register(other)
	entries, err := h.db.EntriesAbout(t.Context(), a.Seller, string(a.ID))
	if err != nil {
		t.Fatal(err)
	}
	var types []ledger.Type
	for _, e := range entries {
		types = append(types, e.Type)
		if strings.Contains(e.Data, h.ashas().Number.Reveal()) || strings.Contains(e.Data, a.EncryptedNumber) {
			t.Errorf("entry %d tells the account's number: %s", e.Number, e.Data)
		}
	}
	want := []ledger.Type{
		ledger.BankAccountAdded, ledger.BankAccountUpdated, ledger.BankAccountUpdated, ledger.BankAccountReview,
		ledger.BankAccountVerified, ledger.AdminDecided, ledger.BankAccountReplaced,
	}
	if !slices.Equal(types, want) {
		t.Errorf("the journal tells %v, want %v", types, want)
	}
	stored, err := h.store.BankAccountByID(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := bank.CheckEntries(stored, entries); err != nil {
		t.Error(err)
	}
	h.wantIntact(a.ID, true)
}

// TestRegister_DamagedJournal has an entry about the current account changed while its seller registers another one. That is refused, or
// the journal would have two current accounts once the entry is as it was.
func TestRegister_DamagedJournal(t *testing.T) {
	for name, where := range map[string]string{"the entry that added it": "type = 'bank_account.added'", "the entry that verified it": "type = 'bank_account.verified'"} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, accepted(100), accepted(100))
			a := h.register(h.ashas())
			h.mustStep()
			another := h.ashas()
			another.IFSC = "SBIN0000300"
			h.place.ByHand(t, `UPDATE entries SET at = at + 1 WHERE `+where)
			if got, err := h.service.Register(t.Context(), another); !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("registered %+v, %v", got, err)
			}
			h.place.ByHand(t, `UPDATE entries SET at = at - 1 WHERE `+where)
			h.place.ByHand(t, `UPDATE bank_accounts SET is_current = 0 WHERE id = '`+string(a.ID)+`'`) // and the row is hidden
			b := h.register(another)
			for id, want := range map[bank.ID]bool{a.ID: false, b.ID: true} {
				entries, err := h.db.EntriesAbout(t.Context(), a.Seller, string(id))
				if err != nil {
					t.Fatal(err)
				}
				if got, err := bank.Fold(id, entries); err != nil || got.Current != want {
					t.Errorf("%s is current: %t, %v; want %t", id, got.Current, err, want)
				}
			}
		})
	}
}
