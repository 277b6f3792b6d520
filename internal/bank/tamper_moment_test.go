package bank_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// In these tests a record is changed by hand while the service is at work, and may be put back later.

// TestBeneficiary_NamedByHandMeanwhile_NotPaid writes another name by hand while the service registers the account at the gateway.
func TestBeneficiary_NamedByHandMeanwhile_NotPaid(t *testing.T) {
	h := newFixture(t, answer{verification: gateway.Verification{Outcome: gateway.OutcomeReview, NameScore: -1}})
	a := h.register(h.ashas())
	if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true}); err != nil {
		t.Fatal(err)
	}
	h.gateway.told = func() {
		h.gateway.told = nil
		h.place.ByHand(t, `UPDATE bank_accounts SET beneficiary = 'fa_ravi', gateway = 'double'`)
	}
	if to, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "double", h.asked(a.Seller)); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("it is paid to %q, %v", to, err)
	}
}

// TestBeneficiary_RejectedByHand_IsTampered does not take the word of a row: the payout would fail, and its amount be released.
func TestBeneficiary_RejectedByHand_IsTampered(t *testing.T) {
	h := newFixture(t, accepted(100))
	a := h.register(h.ashas())
	h.mustStep()
	h.place.ByHand(t, `UPDATE bank_accounts SET status = 'rejected'`)
	_, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "double", h.asked(a.Seller))
	if f := fault.From(err); !errors.Is(err, ledger.ErrTampered) || f != nil && f.Kind == fault.Refused {
		t.Errorf("it is answered with %v", err)
	}
}

// TestRegister_VerificationHidden_HoldsPayouts hides the entry that verified the current account while another one is registered.
func TestRegister_VerificationHidden_HoldsPayouts(t *testing.T) {
	h := newFixture(t, accepted(100))
	h.register(h.ashas())
	h.place.ByHand(t, `CREATE TABLE kept_accounts AS SELECT * FROM bank_accounts`)
	h.mustStep()
	h.place.ByHand(t, `CREATE TABLE kept_entries AS SELECT * FROM entries`)
	h.place.ByHand(t, `DELETE FROM entries WHERE type <> 'bank_account.added'`)
	h.place.ByHand(t, `DELETE FROM bank_accounts`)
	h.place.ByHand(t, `INSERT INTO bank_accounts SELECT * FROM kept_accounts`)
	next := h.ashas()
	next.Number = mustNumber(t, "50100123456711")
	h.register(next)
	h.place.ByHand(t, `INSERT INTO entries SELECT * FROM kept_entries WHERE number NOT IN (SELECT number FROM entries)`)
	balance, err := h.db.Balance(t.Context(), "usr_asha")
	if err != nil || balance.Hold(h.now).IsZero() {
		t.Errorf("payouts are on hold until %v, %v", balance.Hold(h.now), err)
	}
}

// TestRegister_AccountHidden_HoldsPayouts hides the verified account itself while another one is registered.
func TestRegister_AccountHidden_HoldsPayouts(t *testing.T) {
	for _, hide := range []string{`UPDATE bank_accounts SET is_current = 0`, `DELETE FROM bank_accounts`} {
		h := newFixture(t, accepted(100))
		h.register(h.ashas())
		h.mustStep()
		h.place.ByHand(t, hide)
		next := h.ashas()
		next.Number = mustNumber(t, "50100123456711")
		h.register(next)
		balance, err := h.db.Balance(t.Context(), "usr_asha")
		if err != nil || balance.Hold(h.now).IsZero() {
			t.Errorf("after %s payouts are on hold until %v, %v", hide, balance.Hold(h.now), err)
		}
	}
}

// TestRegister_AccountHidden_IsMailed tells the seller of it, although no account seems to be replaced.
func TestRegister_AccountHidden_IsMailed(t *testing.T) {
	h := newFixture(t, accepted(100))
	h.register(h.ashas())
	h.mustStep()
	h.place.ByHand(t, `DELETE FROM bank_accounts`)
	next := h.ashas()
	next.Number = mustNumber(t, "50100123456711")
	h.register(next)
	want := []mail.Data{mail.BankAccountReplaced{At: h.now.UTC(), Now: "6711", HoldUntil: h.now.UTC().Add(72 * time.Hour)}}
	if diff := cmp.Diff(want, h.mailbox.To("usr_asha@example.com")); diff != "" {
		t.Errorf("mails (-want +got):\n%s", diff)
	}
}

// TestRecover_ChangedRow_Tampered has the row say, while it is read, that a lost payout went to this account.
func TestRecover_ChangedRow_Tampered(t *testing.T) {
	h := newFixture(t, pending())
	a := h.register(h.ashas())
	h.mustStep()
	h.place.ByHand(t, `UPDATE bank_accounts SET beneficiary = 'fa_ravi'`)
	if err := h.service.Recover(t.Context(), a.Seller, a.ID, "double", "fa_ravi"); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("a payout to fa_ravi is taken for one to this account: %v", err)
	}
}
