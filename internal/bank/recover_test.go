package bank_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/bank"
	"bursar/internal/id"
)

func TestAnAccountThatIsThereIsLeftAlone(t *testing.T) {
	h := newHouse(t)
	want := h.register(h.ashas())
	h.gateway.beneficiaryErr = errors.New("nobody may ask")
	if err := h.service.Recover(t.Context(), "usr_asha", want.ID, "fa_1"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, h.account()); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
	if err := h.service.Recover(t.Context(), "usr_ravi", want.ID, "fa_1"); !errors.Is(err, bank.ErrNone) {
		t.Errorf("another seller's account was recovered: %v", err)
	}
}

func TestALostAccountIsMadeAgainForThePayoutsThatWentThere(t *testing.T) {
	h := newHouse(t)
	current := h.register(h.ashas())
	h.gateway.registered = []string{"00100123456780"}
	lost := bank.ID(id.New("bka_", h.now))
	for range 2 {
		if err := h.service.Recover(t.Context(), "usr_asha", lost, "fa_1"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := h.store.BankAccountByID(t.Context(), lost)
	if err != nil {
		t.Fatal(err)
	}
	if got.SealedNumber == "" || got.Reason == "" {
		t.Errorf("its number is not sealed (%q), or nobody is told where it comes from (%q)", got.SealedNumber, got.Reason)
	}
	want := bank.Account{
		ID: lost, Seller: "usr_asha", Holder: "Asha D", IFSC: "HDFC0000053", Last4: "6780", SealedNumber: got.SealedNumber, Seal: got.Seal,
		Status: bank.StatusUnverified, Reason: got.Reason, NameScore: -1, Beneficiary: "fa_1", CreatedAt: h.now,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(current, h.account()); diff != "" {
		t.Errorf("the current account (-want +got):\n%s", diff)
	}
}

func TestAnAccountThatNobodyKnowsIsNotRecovered(t *testing.T) {
	h := newHouse(t)
	h.gateway.registered = []string{"50100123456789"}
	unknown := bank.ID(id.New("bka_", h.now))
	for name, tt := range map[string]struct {
		id          bank.ID
		beneficiary string
	}{"no id of ours": {"bka_1", "fa_1"}, "unknown to the gateway": {unknown, "cont_1"}} {
		if err := h.service.Recover(t.Context(), "usr_asha", tt.id, tt.beneficiary); !errors.Is(err, bank.ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	silent := errors.New("silence")
	h.gateway.beneficiaryErr = silent
	if err := h.service.Recover(t.Context(), "usr_asha", unknown, "fa_1"); !errors.Is(err, silent) || errors.Is(err, bank.ErrNone) {
		t.Errorf("a gateway that does not answer: %v", err)
	}
}
