package bank_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/bank"
	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/money"
)

func TestRecover_ExistingAccount_Unchanged(t *testing.T) {
	h := newFixture(t, pending())
	id := h.register(h.ashas()).ID
	h.mustStep()
	want := h.account()
	told := want.Beneficiary
	h.gateway.beneficiaryErr = errors.New("nobody may ask")
	for _, beneficiary := range []string{told, ""} {
		if err := h.service.Recover(t.Context(), "usr_asha", id, "double", beneficiary); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.service.Recover(t.Context(), "usr_ravi", id, "double", told); !errors.Is(err, bank.ErrNone) {
		t.Errorf("another seller's account was recovered: %v", err)
	}
	if err := h.service.Recover(t.Context(), "usr_asha", id, "double", "fa_2"); !errors.Is(err, bank.ErrNone) {
		t.Errorf("what went to another account was taken for this one's: %v", err)
	}
	if diff := cmp.Diff(want, h.account()); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
}

// TestRecover_RecognisesAccountByNumber recovers an account that has no beneficiary in the database yet.
func TestRecover_RecognisesAccountByNumber(t *testing.T) {
	h := newFixture(t)
	a := h.register(h.ashas())
	silent := errors.New("silence")
	for name, tt := range map[string]struct {
		number string
		err    error
		want   error
	}{
		"it is another's":        {"00100123456780", nil, bank.ErrNone},
		"its number ends alike":  {"9" + h.ashas().Number.Reveal()[1:], nil, bank.ErrNone},
		"the gateway knows none": {"", bank.ErrNone, bank.ErrNone},
		"the gateway is silent":  {"", silent, silent},
	} {
		h.gateway.registered, h.gateway.beneficiaryErr = []string{tt.number}, tt.err
		if err := h.service.Recover(t.Context(), "usr_asha", a.ID, "double", "fa_1"); !errors.Is(err, tt.want) || h.account().Beneficiary != "" {
			t.Errorf("%s: %v, and it is %q there", name, err, h.account().Beneficiary)
		}
	}
	h.gateway.registered, h.gateway.beneficiaryErr = []string{h.ashas().Number.Reveal()}, nil
	h.place.ByHand(t, `UPDATE bank_accounts SET holder = 'Ravi Kumar'`)
	if err := h.service.Recover(t.Context(), "usr_asha", a.ID, "double", "fa_1"); !errors.Is(err, ledger.ErrTampered) || h.account().Beneficiary != "" {
		t.Errorf("changed by hand: %v, and it is %q there", err, h.account().Beneficiary)
	}
	h.wantIntact(a.ID, false)
	h.place.ByHand(t, `UPDATE bank_accounts SET holder = 'Asha Desai'`)
	elsewhere := h.ashas()
	elsewhere.IFSC = "ICIC0000021"
	other := h.register(elsewhere)
	if err := h.service.Recover(t.Context(), "usr_asha", other.ID, "double", "fa_1"); !errors.Is(err, bank.ErrNone) {
		t.Errorf("the same number at another bank: %v", err)
	}
	a = h.register(h.ashas())
	if err := h.service.Recover(t.Context(), "usr_asha", a.ID, "double", "fa_1"); err != nil || h.account().Beneficiary != "fa_1" {
		t.Errorf("%v, and it is %q there", err, h.account().Beneficiary)
	}
}

// TestRecover_NamedAtAnotherGateway_NameStays recovers an account for a payout of a gateway that is not the one whose name of it is stored.
func TestRecover_NamedAtAnotherGateway_NameStays(t *testing.T) {
	h := newFixture(t, pending())
	a := h.register(h.ashas())
	h.mustStep()
	want := h.account()
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	other := &double{name: "another", registered: []string{h.ashas().Number.Reveal()}}
	if h.router, err = gateway.NewRouter(inr, "another", h.gateway, other); err != nil {
		t.Fatal(err)
	}
	h.open()
	if err := h.service.Recover(t.Context(), a.Seller, a.ID, "another", "fa_other"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, h.account()); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
}

func TestRecover_LostAccount_Restored(t *testing.T) {
	h := newFixture(t)
	current := h.register(h.ashas())
	h.gateway.registered = []string{"00100123456780"}
	lost := bank.ID(id.New("bka_", h.now))
	for range 2 {
		if err := h.service.Recover(t.Context(), "usr_asha", lost, "double", "fa_1"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := h.store.BankAccountByID(t.Context(), lost)
	if err != nil {
		t.Fatal(err)
	}
	h.wantIntact(lost, true)
	if got.EncryptedNumber == "" || got.Reason == "" {
		t.Errorf("its number is not encrypted (%q), or nobody is told where it comes from (%q)", got.EncryptedNumber, got.Reason)
	}
	want := bank.Account{
		ID: lost, Seller: "usr_asha", Holder: "Asha D", IFSC: "HDFC0000053", Last4: "6780", EncryptedNumber: got.EncryptedNumber,
		Status: bank.StatusUnverified, Reason: got.Reason, NameScore: -1, Beneficiary: "fa_1", Gateway: "double", CreatedAt: h.now,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(current, h.account()); diff != "" {
		t.Errorf("the current account (-want +got):\n%s", diff)
	}
}

func TestRecover_UnknownAccount_Refused(t *testing.T) {
	h := newFixture(t)
	h.gateway.registered = []string{"50100123456789"}
	unknown := bank.ID(id.New("bka_", h.now))
	for name, tt := range map[string]struct {
		id          bank.ID
		beneficiary string
	}{"no id of ours": {"bka_1", "fa_1"}, "unknown to the gateway": {unknown, "cont_1"}} {
		if err := h.service.Recover(t.Context(), "usr_asha", tt.id, "double", tt.beneficiary); !errors.Is(err, bank.ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := h.service.Recover(t.Context(), "usr_asha", unknown, "gone", "fa_1"); !errors.Is(err, gateway.ErrNotConfigured) {
		t.Errorf("a gateway that is not configured: %v", err)
	}
	h.gateway.registered = []string{"no number"}
	if err := h.service.Recover(t.Context(), "usr_asha", unknown, "double", "fa_1"); !errors.Is(err, bank.ErrNone) {
		t.Errorf("the gateway tells of no account of a bank: %v", err)
	}
	if _, err := h.service.AccountByID(t.Context(), unknown); !errors.Is(err, bank.ErrNone) {
		t.Errorf("an account was made: %v", err)
	}
	silent := errors.New("silence")
	h.gateway.beneficiaryErr = silent
	if err := h.service.Recover(t.Context(), "usr_asha", unknown, "double", "fa_1"); !errors.Is(err, silent) || errors.Is(err, bank.ErrNone) {
		t.Errorf("a gateway that does not answer: %v", err)
	}
}

// TestRecover_TwoStarts has another start make the account, or an attacker, while the gateway is asked about it.
func TestRecover_TwoStarts(t *testing.T) {
	for name, tt := range map[string]struct {
		seller, beneficiary, then string
		want                      error
	}{
		"the same":            {"usr_asha", "fa_1", "", nil},
		"another seller's":    {"usr_ravi", "fa_1", "", bank.ErrNone},
		"another beneficiary": {"usr_asha", "fa_2", "", bank.ErrNone},
		"changed by hand":     {"usr_asha", "fa_1", `UPDATE bank_accounts SET holder = 'Mallory'`, ledger.ErrTampered},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			h.gateway.registered = []string{"00100123456780"}
			lost := bank.ID(id.New("bka_", h.now))
			h.gateway.described = func() {
				h.gateway.described = nil
				if err := h.service.Recover(t.Context(), tt.seller, lost, "double", tt.beneficiary); err != nil {
					t.Fatal(err)
				}
				if tt.then != "" {
					h.place.ByHand(t, tt.then)
				}
			}
			if err := h.service.Recover(t.Context(), "usr_asha", lost, "double", "fa_1"); !errors.Is(err, tt.want) {
				t.Errorf("the second start ends with %v, want %v", err, tt.want)
			}
			got, err := h.store.BankAccountByID(t.Context(), lost)
			if err != nil || got.Seller != tt.seller || got.Beneficiary != tt.beneficiary {
				t.Errorf("the account is %+v, %v", got, err)
			}
		})
	}
}

// TestRecover_ChangedMeanwhile_NotNamed changes an account without a beneficiary by hand while the gateway is asked about it.
func TestRecover_ChangedMeanwhile_NotNamed(t *testing.T) {
	h := newFixture(t)
	a := h.register(h.ashas())
	h.gateway.registered = []string{h.ashas().Number.Reveal()}
	h.gateway.described = func() { h.place.ByHand(t, `UPDATE bank_accounts SET holder = 'Mallory'`) }
	if err := h.service.Recover(t.Context(), "usr_asha", a.ID, "double", "fa_1"); !errors.Is(err, ledger.ErrTampered) || h.account().Beneficiary != "" {
		t.Errorf("%v, and it is %q there", err, h.account().Beneficiary)
	}
}

// A gateway may not say who the beneficiary of a transfer is. An account that the database lacks can't be made again then.
func TestRecover_NoBeneficiary_None(t *testing.T) {
	h := newFixture(t)
	h.gateway.beneficiaryErr = errors.New("400 the requested URL was not found on the server")
	if err := h.service.Recover(t.Context(), "usr_asha", bank.ID(id.New("bka_", h.now)), "double", ""); !errors.Is(err, bank.ErrNone) {
		t.Errorf("got %v, want %v", err, bank.ErrNone)
	}
}
